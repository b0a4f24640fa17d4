/* tests/fuzz/gguf.c: a GGUF file, to the end: what is converted is a valid SLM2 file. */
#include "convert/gguf.h"
#include "tests/fuzz/fuzz.h"

enum { OUTPUT_MAX = 1 << 24 };
static uint8_t *output;
static size_t n_output;

typedef struct source {
  const uint8_t *bytes;
  size_t n;
} source;

static slm2_status read_source(void *user, uint64_t offset, void *buffer, size_t n, slm2_error *e) {
  const source *s = user;
  (void)e;
  MUST(offset <= s->n && n <= s->n - offset);
  memcpy(buffer, s->bytes + offset, n);
  return SLM2_OK;
}

static slm2_status write_output(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *e) {
  (void)user;
  if (offset > OUTPUT_MAX || n > OUTPUT_MAX - offset) {
    *e = (slm2_error){.code = SLM2_E_IO, .message = "more than the target keeps"};
    return SLM2_E_IO;
  }
  memcpy(output + offset, bytes, n);
  if (offset + n > n_output) n_output = (size_t)offset + n;
  return SLM2_OK;
}

static void verify(void) {
  slm2_error e = {0};
  slm2_reader *reader;
  void *mem = fuzz_memory(slm2_reader_bytes()), *header = fuzz_memory(SLM2_HEADER_MAX);
  MUST(slm2_reader_init(mem, slm2_reader_bytes(), header, SLM2_HEADER_MAX, n_output, &reader, &e) == SLM2_OK);
  MUST(slm2_reader_push(reader, output, n_output, &e) == SLM2_OK);
  free(mem);
  free(header);
}

static void look_up(const slm2_input *input) {
  slm2_gguf_scan scan;
  slm2_gguf g;
  slm2_error e = {0};
  slm2_status status = slm2_gguf_scan_header(input, &scan, &e);
  if (status != SLM2_OK) {
    fuzz_refusal(status, &e);
    return;
  }
  size_t bytes = slm2_gguf_bytes(&scan);
  MUST(bytes <= input->bytes + 1048576 + 1024);
  void *mem = fuzz_memory(bytes);
  status = slm2_gguf_open(input, &scan, mem, bytes, &g, &e);
  if (status != SLM2_OK) fuzz_refusal(status, &e);
  for (uint32_t i = 0; status == SLM2_OK && i < g.n_tensors; i++) {
    const slm2_gguf_tensor *t = &g.tensors[i];
    char name[SLM2_GGUF_MAX_NAME + 1] = {0};
    MUST(t->n_name <= SLM2_GGUF_MAX_NAME && t->offset <= input->bytes && t->bytes <= input->bytes - t->offset);
    memcpy(name, g.header + t->name_at, t->n_name);
    if (strlen(name) == t->n_name) MUST(slm2_gguf_find_tensor(&g, name) == t);
  }
  free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (output == NULL) output = fuzz_memory(OUTPUT_MAX);
  source s = {data, n};
  slm2_input input = {.user = &s, .name = "f", .bytes = n, .read = read_source};
  slm2_sink sink = {.write = write_output};
  slm2_convert_options options = {.form = SLM2_FORM_PANELS};
  slm2_convert_report report;
  slm2_error e = {0};
  size_t bytes;
  look_up(&input);
  n_output = 0;
  slm2_status status = slm2_convert_gguf_bytes(&input, &bytes, &e);
  if (status == SLM2_OK) {
    void *mem = fuzz_memory(bytes);
    status = slm2_convert_gguf(&input, &sink, &options, mem, bytes, &report, &e);
    free(mem);
  }
  if (status == SLM2_OK) verify();
  else fuzz_refusal(status, &e);
  return 0;
}
