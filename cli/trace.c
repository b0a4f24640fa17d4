/* cli/trace.c: `slm2 trace`: every stage of the computation at every position, hashed as text, or whole as a safetensors
 * file. Both are sorted by position (a row of each tensor), layer and stage, whatever the tile; docs/TESTING.md. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"

static const char help[] =
  "slm2 trace FILE --ids 1,2,3 [--out F]: what every stage of the computation gave, position after position: its number of\n"
  "values, the largest magnitude among them, and their SHA-256 (f32, little endian). The same for every --chunk, --threads\n"
  "and --backend; --profile and --kv are part of it.\n"
  "slm2 trace --diff A B: the first position, layer and stage at which two traces differ, and with files made by --out the\n"
  "index and both values. Exit code 0 when they are identical, 1 when they differ.\n"
  "\n"
  "  --ids 1,2,3        token ids, from position 0 on\n"
  "  --out F            write all values instead: a safetensors file of one tensor [positions, values] per stage, named\n"
  "                     embed, layers.0.q_proj, ..., logits; it appears whole or not at all\n" CLI_POSITIONS_HELP
  "\n"
  "--chunk N feeds N ids at a time.\n"
  "\n"
  "Examples:\n"
  "  slm2 trace models/demo.slm2 --ids 1,2,3\n"
  "  slm2 trace models/demo.slm2 --ids 1,2,3 --out a.safetensors\n"
  "  slm2 trace models/demo.slm2 --ids 1,2,3 --kv f16 --out b.safetensors\n"
  "  slm2 trace --diff a.safetensors b.safetensors\n";

/* What the text keeps of a stage at a position. */
typedef struct record {
  uint8_t hash[32];
  uint32_t magnitude; /* bits of the largest |x|, compared as integers: NaN is above infinity [D5] */
} record;

typedef struct tracer {
  const cli_setup *setup;
  slm2_output *output; /* NULL: text */
  char model[65];
  slm2_config config;
  uint32_t positions, n_stages;
  record *records;     /* [positions, n_stages]; text only */
  uint64_t *offsets;   /* [n_stages] in the file; values only */
  uint8_t *bytes;      /* one stage at one position */
  slm2_status status;  /* of the first write that failed */
  slm2_error error;
} tracer;

static uint32_t width(const tracer *t, uint32_t i) {
  uint32_t layer;
  return slm2_stage_width(&t->config, cli_stage_at(t->config.layers, i, &layer));
}

/* --- values: the safetensors header --------------------------------------------- */

static void begin_values(tracer *t, const cli_ids *ids) {
  cli_text head = {0};
  uint64_t offset = 0;
  cli_text_print(&head, "{\"__metadata__\":{\"slm2_trace\":\"1\",\"model\":\"%s\",\"profile\":\"%s\",\"kv\":\"%s\",\"ids\":\"",
                 t->model, slm2_profile_name((slm2_profile)t->setup->profile), slm2_kv_name((slm2_kv_type)t->setup->kv));
  cli_text_ids(&head, ids->at, ids->n, ",");
  cli_text_puts(&head, "\"}");
  for (uint32_t i = 0; i < t->n_stages; i++) {
    char label[CLI_STAGE_LABEL_MAX];
    uint64_t bytes = (uint64_t)t->positions * width(t, i) * 4;
    cli_stage_label(t->config.layers, i, label);
    cli_text_print(&head, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%u,%u],\"data_offsets\":[%llu,%llu]}", label, t->positions,
                   width(t, i), (unsigned long long)offset, (unsigned long long)(offset + bytes));
    t->offsets[i] = offset;
    offset += bytes;
  }
  cli_text_puts(&head, "}");
  while (head.n % 8 != 0) cli_text_puts(&head, " ");
  uint8_t length[8];
  slm2_store_u64(length, head.n);
  t->status = slm2_output_write(t->output, 0, length, 8, &t->error);
  if (t->status == SLM2_OK) t->status = slm2_output_write(t->output, 8, head.bytes, head.n, &t->error);
  for (uint32_t i = 0; i < t->n_stages; i++) t->offsets[i] += 8 + head.n;
  cli_text_free(&head);
}

/* --- what the computation shows --------------------------------------------------- */

static int begin(void *user, const cli_model *m, const cli_ids *ids) {
  tracer *t = user;
  memcpy(t->model, m->identity, sizeof t->model);
  t->config = m->header->config;
  t->positions = (uint32_t)ids->n;
  t->n_stages = cli_stage_count(t->config.layers);
  uint32_t widest = 0;
  for (uint32_t i = 0; i < t->n_stages; i++) widest = width(t, i) > widest ? width(t, i) : widest;
  t->bytes = cli_alloc(widest, 4);
  if (t->output == NULL) {
    t->records = cli_alloc((size_t)t->positions * t->n_stages, sizeof *t->records);
  } else {
    t->offsets = cli_alloc(t->n_stages, sizeof *t->offsets);
    begin_values(t, ids);
  }
  return t->status == SLM2_OK ? CLI_OK : cli_fail(&t->error);
}

static void take_stage(void *user, slm2_stage stage, uint32_t layer, uint32_t position, const float *values, uint32_t n) {
  tracer *t = user;
  uint32_t i = layer * SLM2_LAYER_STAGES + (uint32_t)stage, magnitude = 0;
  if (layer == t->config.layers) i -= SLM2_LAYER_STAGES; /* the last two are numbered behind a layer's */
  for (uint32_t k = 0; k < n; k++) {
    uint32_t m = slm2_float_bits(values[k]) & 0x7fffffffu;
    magnitude = m > magnitude ? m : magnitude;
    slm2_store_f32(t->bytes + 4 * (size_t)k, values[k]);
  }
  if (t->output == NULL) {
    record *r = &t->records[(size_t)position * t->n_stages + i];
    r->magnitude = magnitude;
    slm2_sha256_of(t->bytes, 4 * (size_t)n, r->hash);
  } else if (t->status == SLM2_OK) {
    t->status = slm2_output_write(t->output, t->offsets[i] + (uint64_t)position * n * 4, t->bytes, 4 * (size_t)n, &t->error);
  }
}

/* After the stages of a position: a write that failed ends the computation. */
static slm2_status after_position(void *user, uint32_t position, const uint8_t *row, size_t n, slm2_error *error) {
  const tracer *t = user;
  (void)position, (void)row, (void)n;
  if (t->status != SLM2_OK) *error = t->error;
  return t->status;
}

/* --- text ---------------------------------------------------------------------------- */

static void print_record(cli_text *text, uint32_t position, const char *label, uint32_t n, const record *r) {
  char hex[65];
  slm2_hex(r->hash, sizeof r->hash, hex);
  cli_text_print(text, "%u %s %u ", position, label, n);
  if (r->magnitude < 0x7f800000u) cli_text_f32(text, slm2_float_from_bits(r->magnitude));
  else cli_text_puts(text, r->magnitude > 0x7f800000u ? "nan" : "inf");
  cli_text_print(text, " %s\n", hex);
}

static int print_text(const tracer *t) {
  cli_text text = {0};
  int code = CLI_OK;
  cli_text_print(&text, CLI_TRACE_HEAD "positions=%u layers=%u profile=%s kv=%s model=%s\n", t->positions, t->config.layers,
                 slm2_profile_name((slm2_profile)t->setup->profile), slm2_kv_name((slm2_kv_type)t->setup->kv), t->model);
  for (uint32_t p = 0; p < t->positions && code == CLI_OK; p++) {
    for (uint32_t i = 0; i < t->n_stages; i++) {
      char label[CLI_STAGE_LABEL_MAX];
      cli_stage_label(t->config.layers, i, label);
      print_record(&text, p, label, width(t, i), &t->records[(size_t)p * t->n_stages + i]);
    }
    code = cli_out_text(&text);
    text.n = 0;
  }
  cli_text_free(&text);
  return code;
}

static int trace(const char *file, const char *ids, cli_setup *setup, const char *out) {
  tracer t = {.setup = setup};
  slm2_error error = {0};
  if (out != NULL && slm2_output_create(out, &t.output, &error) != SLM2_OK) return cli_fail(&error);
  const cli_taker taker = {.begin = begin, .each = after_position, .tap = take_stage, .user = &t};
  size_t n;
  int code = cli_positions(file, ids, setup, &taker, &n);
  if (t.output == NULL) {
    if (code == CLI_OK) code = print_text(&t);
  } else if (code != CLI_OK) {
    slm2_output_abandon(t.output);
  } else if (slm2_output_commit(t.output, &error) != SLM2_OK) {
    code = cli_fail(&error);
  }
  free(t.records);
  free(t.offsets);
  free(t.bytes);
  return code;
}

int cli_cmd_trace(int argc, char **argv) {
  const char *file, *ids = NULL, *out = NULL;
  cli_setup setup = CLI_SETUP_DEFAULTS;
  const cli_option options[] = {
    {.name = "--ids", .kind = CLI_STRING, .target = &ids},
    {.name = "--out", .kind = CLI_STRING, .target = &out},
    CLI_SETUP_OPTIONS(&setup),
  };
  static const char *const names[] = {"a model FILE, or --diff A B"};
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strncmp(argv[i], "--diff", 6) == 0) return cli_trace_diff(argc, argv, help);
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  if (ids == NULL) return cli_complain(CLI_USAGE, "trace", "needs --ids 1,2,3");
  if (out != NULL && slm2_same_file(file, out)) return cli_complain(CLI_USAGE, "--out", "is the model itself");
  return trace(file, ids, &setup, out);
}
