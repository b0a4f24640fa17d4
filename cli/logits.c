/* cli/logits.c: `slm2 logits`: the logits at every position as a file. */
#include "cli/cli.h"

static const char help[] =
  "slm2 logits FILE --ids 1,2,3 --out F: the logits at every position as raw f32, little endian, [positions, vocabulary].\n"
  "\n"
  "  --ids 1,2,3        token ids, from position 0 on\n"
  "  --out F            the file to write; it appears whole or not at all\n" CLI_POSITIONS_HELP
  "\n"
  "Example:\n"
  "  slm2 logits models/demo.slm2 --ids 1,2,3 --out logits.f32\n";

static slm2_status write_row(void *output, uint32_t position, const uint8_t *row, size_t n, slm2_error *error) {
  return slm2_output_write(output, (uint64_t)position * n, row, n, error);
}

int cli_cmd_logits(int argc, char **argv) {
  const char *file, *ids = NULL, *out = NULL;
  cli_setup setup = CLI_SETUP_DEFAULTS;
  const cli_option options[] = {
    {.name = "--ids", .kind = CLI_STRING, .target = &ids},
    {.name = "--out", .kind = CLI_STRING, .target = &out},
    CLI_SETUP_OPTIONS(&setup),
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  if (ids == NULL || out == NULL) return cli_complain(CLI_USAGE, "logits", "needs --ids 1,2,3 and --out F");
  if (slm2_same_file(file, out)) return cli_complain(CLI_USAGE, "--out", "is the model itself");
  slm2_error error = {0};
  slm2_output *output;
  if (slm2_output_create(out, &output, &error) != SLM2_OK) return cli_fail(&error);
  size_t n;
  code = cli_positions(file, ids, &setup, &(cli_taker){.each = write_row, .user = output}, &n);
  if (code != CLI_OK) slm2_output_abandon(output);
  else if (slm2_output_commit(output, &error) != SLM2_OK) code = cli_fail(&error);
  return code;
}
