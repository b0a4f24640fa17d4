/* cli/verify.c: `slm2 verify`: the whole file through the streaming verifier. */
#include "cli/cli.h"

#include <stdlib.h>

#include "base/sha256.h"

static const char help[] =
  "slm2 verify FILE: read a .slm2 file once and check its header, the SHA-256 of every 4 MiB chunk, the padding, that every\n"
  "scale is finite and that no weight is -128. Prints \"verified\", the sizes and the model's identity; exit 1 names what is\n"
  "wrong and where.\n"
  "\n"
  "Example:\n"
  "  slm2 verify models/demo.slm2\n";

typedef struct verify_state {
  slm2_file *file;
  uint64_t n_bytes;
  void *memory;
  uint8_t *header, *piece;
  slm2_reader *reader;
} verify_state;

static slm2_status read_all(verify_state *v, slm2_error *error) {
  cli_progress progress;
  cli_progress_begin(&progress);
  slm2_status status =
      slm2_reader_init(v->memory, slm2_reader_bytes(), v->header, SLM2_HEADER_MAX, v->n_bytes, &v->reader, error);
  if (status == SLM2_OK) status = SLM2_NEED_MORE;
  uint64_t at = 0;
  while (status == SLM2_NEED_MORE && at < v->n_bytes) {
    size_t n = v->n_bytes - at < SLM2_CHUNK_BYTES ? (size_t)(v->n_bytes - at) : SLM2_CHUNK_BYTES;
    if ((status = slm2_file_read(v->file, at, v->piece, n, error)) != SLM2_OK) break;
    status = slm2_reader_push(v->reader, v->piece, n, error);
    at += n;
    cli_progress_show(&progress, "verify", at, v->n_bytes);
    if (status == SLM2_NEED_MORE && cli_cancelled()) {
      *error = (slm2_error){.code = SLM2_E_CANCELLED, .operation = "verify", .message = "cancelled", .offset = at};
      status = SLM2_E_CANCELLED;
    }
  }
  cli_progress_end(&progress);
  return status;
}

static int report(const verify_state *v, const char *path) {
  const slm2_header *h = slm2_reader_header(v->reader);
  uint8_t identity[32];
  char hex[65];
  slm2_header_identity(v->header, (size_t)h->header_bytes, identity);
  slm2_hex(identity, sizeof identity, hex);
  cli_text t = {0};
  cli_text_print(&t, "verified %s\n", path);
  char a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX], c[CLI_GROUPED_MAX], d[CLI_GROUPED_MAX];
  cli_text_print(&t, "  file      %s bytes: header %s, data %s in %s chunks\n", cli_grouped(v->n_bytes, a),
                 cli_grouped(h->header_bytes, b), cli_grouped(h->data_bytes, c), cli_grouped(h->n_chunks, d));
  cli_text_print(&t, "  tensors   %s bytes\n", cli_grouped(slm2_tensor_bytes(h), a));
  cli_text_print(&t, "  identity  %s\n", hex);
  int code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

int cli_cmd_verify(int argc, char **argv) {
  const char *file;
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, NULL, 0, &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  slm2_error error = {0};
  verify_state v = {0};
  if (slm2_file_open(file, &v.file, &v.n_bytes, &error) != SLM2_OK) return cli_fail(&error);
  v.memory = cli_alloc(slm2_reader_bytes(), 1);
  v.header = cli_alloc(SLM2_HEADER_MAX, 1);
  v.piece = cli_alloc(SLM2_CHUNK_BYTES, 1);
  cli_catch_interrupts();
  slm2_status status = read_all(&v, &error);
  if (status == SLM2_OK) code = report(&v, file);
  else if (status == SLM2_NEED_MORE)
    code = cli_complain(CLI_FAILED, file, "the file ends early, after %llu bytes", (unsigned long long)v.n_bytes);
  else code = cli_fail_in(file, &error);
  slm2_file_close(v.file);
  free(v.memory);
  free(v.header);
  free(v.piece);
  return code;
}
