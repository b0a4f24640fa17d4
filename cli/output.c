/* cli/output.c: a .slm2 file in the making: what convert and synth share. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "base/sha256.h"

static slm2_status cancelled(slm2_error *error, uint64_t offset) {
  return slm2_fail(error, SLM2_E_CANCELLED, "write", NULL, offset, "cancelled");
}

static slm2_status sink_write(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *error) {
  cli_maker *maker = user;
  if (cli_cancelled()) return cancelled(error, offset);
  return slm2_output_write(maker->output, offset, bytes, n, error);
}

static void sink_progress(void *user, const char *phase, uint64_t done, uint64_t total) {
  cli_maker *maker = user;
  cli_progress_show(&maker->progress, phase, done, total);
}

int cli_maker_begin(cli_maker *maker, const char *path) {
  slm2_error error = {0};
  *maker = (cli_maker){.path = path, .sink = {maker, sink_write, sink_progress}};
  if (slm2_output_create(path, &maker->output, &error) != SLM2_OK) return cli_fail(&error);
  cli_progress_begin(&maker->progress);
  cli_catch_interrupts();
  return CLI_OK;
}

int cli_maker_end(cli_maker *maker, slm2_status status, slm2_error *error) {
  cli_progress_end(&maker->progress);
  if (status == SLM2_OK && cli_cancelled()) status = cancelled(error, SLM2_NO_OFFSET);
  if (status == SLM2_OK) return slm2_output_commit(maker->output, error) == SLM2_OK ? CLI_OK : cli_fail(error);
  slm2_output_abandon(maker->output);
  return cli_fail(error);
}

void cli_text_report(cli_text *t, const char *path, const slm2_convert_report *r) {
  const slm2_header *h = &r->header;
  const slm2_config *c = &h->config;
  char a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX], hex[65];
  slm2_hex(r->identity, 32, hex);
  cli_text_print(t, "wrote %s: %s bytes, tensors %s\n", path, cli_grouped(8 + h->header_bytes + h->data_bytes, a),
                 cli_grouped(slm2_tensor_bytes(h), b));
  cli_text_print(
      t, "  model     %s parameters: hidden %u, layers %u, heads %u, kv heads %u, head dim %u, mlp %u, vocabulary %u, %s\n",
      cli_grouped(slm2_parameter_count(c), a), c->hidden, c->layers, c->heads, c->kv_heads, c->head_dim, c->intermediate,
      c->vocab, c->tied ? "tied" : "untied");
  cli_text_print(t, "  layout    %s\n", h->form == SLM2_FORM_PANELS ? "panels" : "rows");
  cli_text_print(t, "  source    %s, revision %s, license %s\n", h->source, h->source_revision, h->license);
  cli_text_print(t, "  tokenizer %s bytes, chat format %s\n", cli_grouped(h->tokenizer_bytes, a), cli_chat_name(h->chat_format));
  cli_text_print(t, "  identity  %s\n", hex);
}

const char *cli_chat_name(slm2_chat_format format) { return format == SLM2_CHAT_QWEN3 ? "qwen3" : "none"; }
