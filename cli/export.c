/* cli/export.c: `slm2 convert FILE.slm2 OUT`: to a GGUF file or a Hugging Face folder. convert/ does the work. */
#include "cli/convert.h"

#include <string.h>

typedef struct export_source {
  slm2_mapping file;
  void *memory;
  size_t bytes;
  slm2_export *export;
} export_source;

static void show_progress(void *user, const char *phase, uint64_t done, uint64_t total) {
  cli_progress_show(user, phase, done, total);
}

/* Maps and verifies the file. */
static int open_source(export_source *s, const char *path) {
  slm2_error error = {0};
  cli_progress progress;
  *s = (export_source){.bytes = 0};
  slm2_status status = slm2_map(path, &s->file, &error);
  if (status == SLM2_OK) status = slm2_export_bytes(s->file.bytes, s->file.n, &s->bytes, &error);
  if (status == SLM2_OK) status = slm2_memory_reserve(s->bytes, &s->memory, &error);
  if (status == SLM2_OK) {
    cli_progress_begin(&progress);
    status = slm2_export_open(s->file.bytes, s->file.n, s->memory, s->bytes, show_progress, &progress, &s->export, &error);
    cli_progress_end(&progress);
  }
  return status == SLM2_OK ? CLI_OK : cli_fail_in(path, &error);
}

static void close_source(export_source *s) {
  slm2_memory_release(s->memory, s->bytes);
  slm2_unmap(&s->file);
}

static int export_gguf(export_source *s, const char *out) {
  slm2_error error = {0};
  cli_maker maker;
  int code = cli_maker_begin(&maker, out);
  if (code != CLI_OK) return code;
  code = cli_maker_end(&maker, slm2_export_gguf(s->export, &maker.sink, &error), &error);
  if (code != CLI_OK) return code;
  cli_text t = {0};
  cli_text_print(&t, "wrote %s: GGUF, matrices in Q8_0, norms in F32\n", out);
  cli_text_puts(&t, "  note      a .slm2 file does not hold the text of the chat template, so this file has none\n");
  code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

int cli_export(const char *path, const char *out) {
  export_source s;
  int code = open_source(&s, path);
  if (code == CLI_OK) code = export_gguf(&s, out);
  close_source(&s);
  return code;
}
