/* cli/digest.c: `slm2 digest`: one hash over the logits at every position [D23]. */
#include "cli/cli.h"

#include "base/sha256.h"

static const char help[] =
  "slm2 digest FILE --ids 1,2,3: one SHA-256 over the logits at every position (f32, little endian, position after\n"
  "position). The same on every machine, for every --chunk, --threads and --backend; --profile and --kv are part of it.\n"
  "\n"
  "  --ids 1,2,3        token ids, from position 0 on\n" CLI_POSITIONS_HELP
  "\n"
  "--chunk N feeds N ids at a time.\n"
  "Prints: HEX  profile=q8 kv=f32 positions=3\n"
  "\n"
  "Example:\n"
  "  slm2 digest models/demo.slm2 --ids 1,2,3,4,5 --profile f32\n";

static slm2_status hash_row(void *hash, uint32_t position, const uint8_t *row, size_t n, slm2_error *error) {
  (void)position;
  (void)error;
  slm2_sha256_update(hash, row, n);
  return SLM2_OK;
}

int cli_cmd_digest(int argc, char **argv) {
  const char *file, *ids = NULL;
  cli_setup setup = CLI_SETUP_DEFAULTS;
  const cli_option options[] = {
    {.name = "--ids", .kind = CLI_STRING, .target = &ids},
    CLI_SETUP_OPTIONS(&setup),
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  if (ids == NULL) return cli_complain(CLI_USAGE, "digest", "needs --ids 1,2,3");
  slm2_sha256 hash;
  slm2_sha256_init(&hash);
  size_t n;
  code = cli_positions(file, ids, &setup, &(cli_taker){.each = hash_row, .user = &hash}, &n);
  if (code != CLI_OK) return code;
  uint8_t sum[32];
  char hex[65];
  slm2_sha256_final(&hash, sum);
  slm2_hex(sum, sizeof sum, hex);
  cli_text t = {0};
  cli_text_print(&t, "%s  profile=%s kv=%s positions=%zu\n", hex, slm2_profile_name((slm2_profile)setup.profile),
                 slm2_kv_name((slm2_kv_type)setup.kv), n);
  code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}
