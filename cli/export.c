/* cli/export.c: `slm2 convert FILE.slm2 OUT`: to a GGUF file or a Hugging Face folder. convert/ does the work. */
#include "cli/convert.h"

#include "base/error.h"

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
  if (slm2_export_header(s->export)->chat_format == SLM2_CHAT_QWEN3)
    cli_text_puts(&t, "  note      a .slm2 file does not hold the text of the chat template, so this file has none\n");
  code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

/* --- a folder -------------------------------------------------------------------------------- */

typedef struct folder_file {
  slm2_output *output;
  cli_progress *progress;
} folder_file;

static slm2_status write_file(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *error) {
  folder_file *f = user;
  if (cli_cancelled()) return slm2_fail(error, SLM2_E_CANCELLED, "write", NULL, offset, "cancelled");
  return slm2_output_write(f->output, offset, bytes, n, error);
}
static void show_file(void *user, const char *phase, uint64_t done, uint64_t total) {
  folder_file *f = user;
  cli_progress_show(f->progress, phase, done, total);
}

static slm2_status export_file(export_source *s, uint32_t i, slm2_folder *folder, cli_progress *progress, slm2_error *error) {
  folder_file f = {.progress = progress};
  slm2_sink sink = {&f, write_file, show_file};
  slm2_status status = slm2_folder_file(folder, slm2_export_file_name(i), &f.output, error);
  if (status != SLM2_OK) return status;
  status = slm2_export_file(s->export, i, &sink, error);
  if (status == SLM2_OK) return slm2_output_commit(f.output, error);
  slm2_output_abandon(f.output);
  return status;
}

static int report_folder(const export_source *s, const char *out) {
  cli_text t = {0};
  char a[CLI_GROUPED_MAX];
  uint64_t inexact = slm2_export_inexact_blocks(s->export);
  cli_text_print(&t, "wrote %s: a Hugging Face folder, all weights in F32\n", out);
  if (slm2_export_header(s->export)->chat_format == SLM2_CHAT_QWEN3)
    cli_text_puts(&t, "  note      a .slm2 file does not hold the text of the chat template, so the folder has none; converting\n"
                      "            it back needs --chat-format qwen3\n");
  if (inexact > 0)
    cli_text_print(&t, "  note      %s blocks of 32 weights have a scale of their own: converting back rounds them again\n",
                   cli_grouped(inexact, a));
  int code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

static int export_folder(export_source *s, const char *out) {
  slm2_error error = {0};
  slm2_folder *folder;
  cli_progress progress;
  if (slm2_folder_create(out, &folder, &error) != SLM2_OK) return cli_fail(&error);
  cli_progress_begin(&progress);
  cli_catch_interrupts();
  slm2_status status = SLM2_OK;
  for (uint32_t i = 0; i < slm2_export_files(s->export) && status == SLM2_OK; i++)
    status = export_file(s, i, folder, &progress, &error);
  cli_progress_end(&progress);
  if (status == SLM2_OK && cli_cancelled())
    status = slm2_fail(&error, SLM2_E_CANCELLED, "write", NULL, SLM2_NO_OFFSET, "cancelled");
  if (status == SLM2_OK) status = slm2_folder_commit(folder, &error);
  else slm2_folder_abandon(folder);
  return status == SLM2_OK ? report_folder(s, out) : cli_fail(&error);
}

int cli_export(const char *path, const char *out) {
  export_source s;
  int code = open_source(&s, path);
  if (code == CLI_OK) code = cli_ends_with(out, ".gguf") ? export_gguf(&s, out) : export_folder(&s, out);
  close_source(&s);
  return code;
}
