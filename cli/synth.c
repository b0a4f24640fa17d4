/* cli/synth.c: `slm2 synth`: real shapes, synthetic weights, the same bytes on every machine [D27]. */
#include "cli/cli.h"

#include <stdlib.h>

static const char help[] =
  "slm2 synth OUT.slm2 --shape NAME [--seed N]: a file with real shapes and synthetic weights, the same bytes on every machine.\n"
  "\n"
  "  --shape NAME         tiny, small, qwen3-0.6b, qwen3-0.6b-4layer, qwen3-1.7b, qwen3-4b or qwen3-8b\n"
  "  --seed N             seed of the weights (default 1)\n"
  "  --layout panels|rows storage of the 2-D weights (default panels); both give the same bits\n"
  "  --tokenizer HF_DIR   take tokenizer.json from this folder; small shapes then grow to its vocabulary\n"
  "\n"
  "Such a model answers nonsense: it is for tests and for measuring speed and memory.\n"
  "\n"
  "Examples:\n"
  "  slm2 synth s.slm2 --shape qwen3-0.6b --seed 1\n"
  "  slm2 synth q.slm2 --shape tiny --tokenizer Qwen3-0.6B --seed 1\n";

/* tokenizer.json of a folder to a section; *section is cli_alloc'ed. */
static int load_tokenizer(const char *folder, uint8_t **section, size_t *n_section) {
  slm2_error error = {0};
  cli_text path = {0};
  slm2_mapping map = {0};
  size_t scratch_bytes = 0, capacity = 0;
  cli_text_print(&path, "%s/tokenizer.json", folder);
  slm2_status status = slm2_map(path.bytes, &map, &error);
  cli_text_free(&path);
  if (status != SLM2_OK) return cli_fail(&error);
  status = slm2_tokenizer_convert_bytes((const char *)map.bytes, (size_t)map.n, &scratch_bytes, &capacity, &error);
  if (status == SLM2_OK) {
    void *scratch = cli_alloc(scratch_bytes, 1);
    *section = cli_alloc(capacity, 1);
    status = slm2_tokenizer_convert((const char *)map.bytes, (size_t)map.n, scratch, scratch_bytes, *section, capacity, n_section,
                                    &error);
    free(scratch);
  }
  slm2_unmap(&map);
  return status == SLM2_OK ? CLI_OK : cli_fail(&error);
}

static int make(const slm2_synth_params *params, const char *out) {
  slm2_error error = {0};
  size_t bytes = 0;
  void *memory = NULL;
  slm2_status status = slm2_synth_bytes(params, &bytes, &error);
  if (status == SLM2_OK) status = slm2_memory_reserve(bytes, &memory, &error);
  if (status != SLM2_OK) return cli_fail(&error);
  cli_maker maker;
  slm2_convert_report report;
  int code = cli_maker_begin(&maker, out);
  if (code == CLI_OK) {
    status = slm2_synth(params, &maker.sink, memory, bytes, &report, &error);
    code = cli_maker_end(&maker, status, &error);
  }
  slm2_memory_release(memory, bytes);
  if (code != CLI_OK) return code;
  cli_text t = {0};
  cli_text_report(&t, out, &report);
  code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

/* The shape's geometry, grown to the tokenizer where the shape allows it. */
static int set_shape(slm2_synth_params *params, const char *shape) {
  slm2_error error = {0};
  uint32_t n_tokens = 0;
  if (params->tokenizer != NULL &&
      slm2_tokenizer_section_tokens(params->tokenizer, params->tokenizer_bytes, &n_tokens, &error) != SLM2_OK)
    return cli_fail(&error);
  if (slm2_synth_shape(shape, n_tokens, &params->config, &error) == SLM2_OK) return CLI_OK;
  return cli_complain(CLI_USAGE, "--shape", "%s", error.message);
}

int cli_cmd_synth(int argc, char **argv) {
  unsigned rows = 0;
  const char *out, *folder = NULL, *shape = NULL;
  slm2_synth_params params = {.seed = 1};
  const cli_option options[] = {
    {.name = "--shape", .kind = CLI_STRING, .target = &shape},
    {.name = "--seed", .kind = CLI_U64, .target = &params.seed, .high = UINT64_MAX},
    {.name = "--layout", .kind = CLI_CHOICE, .target = &rows, .expects = "panels|rows"},
    {.name = "--tokenizer", .kind = CLI_STRING, .target = &folder},
  };
  static const char *const names[] = {"an OUT file"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &out, names, 1);
  if (code != CLI_CONTINUE) return code;
  if (shape == NULL) return cli_complain(CLI_USAGE, "synth", "needs --shape NAME; try slm2 synth --help");
  code = set_shape(&params, shape); /* an unknown name is refused before any file is opened */
  params.form = rows ? SLM2_FORM_ROWS : SLM2_FORM_PANELS;
  uint8_t *section = NULL;
  if (code == CLI_OK && folder != NULL) {
    code = load_tokenizer(folder, &section, &params.tokenizer_bytes);
    params.tokenizer = section;
    if (code == CLI_OK) code = set_shape(&params, shape);
  }
  if (code == CLI_OK) code = make(&params, out);
  free(section);
  return code;
}
