/* cli/gguf.c: GGUF files on the command line: import and inspect. convert/ does the work. */
#include "cli/convert.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "convert/gguf.h"

static slm2_status read_input(void *user, uint64_t offset, void *buffer, size_t n, slm2_error *error) {
  cli_input *in = user;
  if (cli_cancelled()) return slm2_fail(error, SLM2_E_CANCELLED, "convert", NULL, SLM2_NO_OFFSET, "cancelled");
  return slm2_file_read(in->file, offset, buffer, n, error);
}

slm2_status cli_input_open(cli_input *in, const char *path, slm2_error *error) {
  const char *slash = strrchr(path, '/');
  *in = (cli_input){.input = {.user = in, .name = slash == NULL ? path : slash + 1, .read = read_input}};
  return slm2_file_open(path, &in->file, &in->input.bytes, error);
}

void cli_input_close(cli_input *in) { slm2_file_close(in->file); }

bool cli_ends_with(const char *path, const char *end) {
  size_t n = strlen(path), n_end = strlen(end);
  return n > n_end && strcmp(path + n - n_end, end) == 0;
}

bool cli_is_gguf(const char *path) {
  uint8_t magic[4] = {0};
  cli_input in;
  slm2_status status = cli_input_open(&in, path, NULL);
  if (status == SLM2_OK) status = slm2_file_read(in.file, 0, magic, sizeof magic, NULL);
  cli_input_close(&in);
  return (status == SLM2_OK && memcmp(magic, "GGUF", 4) == 0) || cli_ends_with(path, ".gguf");
}

int cli_convert_gguf(const char *path, const slm2_convert_options *options, const char *out) {
  slm2_error error = {0};
  cli_input in;
  size_t bytes = 0;
  void *memory = NULL;
  slm2_convert_report result;
  cli_maker maker;
  slm2_status status = cli_input_open(&in, path, &error);
  if (status == SLM2_OK) status = slm2_convert_gguf_bytes(&in.input, &bytes, &error);
  if (status == SLM2_OK) status = slm2_memory_reserve(bytes, &memory, &error);
  int code = status == SLM2_OK ? cli_maker_begin(&maker, out) : cli_fail(&error);
  if (code == CLI_OK) {
    status = slm2_convert_gguf(&in.input, &maker.sink, options, memory, bytes, &result, &error);
    code = cli_maker_end(&maker, status, &error);
  }
  slm2_memory_release(memory, bytes);
  cli_input_close(&in);
  return code == CLI_OK ? cli_convert_report(out, &result) : code;
}

/* --- inspect ----------------------------------------------------------------------------- */

/* The first `limit` items of a value: a number, a text, or an array of them. */
#define SHOWN_ITEMS 4u
#define SHOWN_TEXT 60u

static uint64_t load(const uint8_t *p, uint32_t bytes) {
  uint64_t x = 0;
  for (uint32_t i = 0; i < bytes; i++) x |= (uint64_t)p[i] << (8 * i);
  return x;
}

static void print_number(cli_text *t, uint32_t type, const uint8_t *p) {
  uint32_t bytes = slm2_gguf_type_bytes(type);
  uint64_t x = load(p, bytes);
  double wide;
  switch (type) {
  case SLM2_GGUF_I8: case SLM2_GGUF_I16: case SLM2_GGUF_I32: case SLM2_GGUF_I64: {
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    cli_text_print(t, "%lld", (long long)(int64_t)((x ^ sign) - sign));
    return;
  }
  case SLM2_GGUF_BOOL: cli_text_puts(t, x == 0 ? "false" : "true"); return;
  case SLM2_GGUF_F32:
    if ((x & 0x7f800000) == 0x7f800000) cli_text_puts(t, "null"); /* JSON knows no others */
    else cli_text_f32(t, slm2_float_from_bits((uint32_t)x));
    return;
  case SLM2_GGUF_F64:
    wide = slm2_double_from_bits(x);
    if (wide - wide != 0) cli_text_puts(t, "null");
    else cli_text_print(t, "%.17g", wide);
    return;
  default: cli_text_print(t, "%llu", (unsigned long long)x); return;
  }
}

static void print_value(cli_text *t, const slm2_gguf *g, const slm2_gguf_value *v, bool json) {
  const uint8_t *p = g->header + v->at;
  if (v->type == SLM2_GGUF_STRING) {
    size_t n = (size_t)v->count, shown = json || n <= SHOWN_TEXT ? n : SHOWN_TEXT;
    cli_text_json(t, (const char *)p, shown);
    if (shown < n) cli_text_print(t, "... (%zu bytes)", n);
    return;
  }
  if (v->type != SLM2_GGUF_ARRAY) {
    print_number(t, v->type, p);
    return;
  }
  uint32_t at = v->at;
  cli_text_puts(t, "[");
  for (uint64_t i = 0; i < v->count && i < SHOWN_ITEMS; i++) {
    if (i > 0) cli_text_puts(t, json ? "," : ", ");
    size_t n;
    if (v->item == SLM2_GGUF_STRING) {
      const char *text = slm2_gguf_next_string(g, &at, &n);
      cli_text_json(t, text, n < SHOWN_TEXT ? n : SHOWN_TEXT);
    } else {
      print_number(t, v->item, g->header + at);
      at += slm2_gguf_type_bytes(v->item);
    }
  }
  cli_text_puts(t, !json && v->count > SHOWN_ITEMS ? ", ...]" : "]");
}

static void print_values(cli_text *t, const slm2_gguf *g, bool json) {
  for (uint32_t i = 0; i < g->n_values; i++) {
    const slm2_gguf_value *v = &g->values[i];
    bool array = v->type == SLM2_GGUF_ARRAY;
    cli_text key = {0};
    cli_text_json(&key, (const char *)g->header + v->key_at, v->n_key);
    if (json) cli_text_print(t, "%s{\"key\":%s,\"type\":\"%s\",", i == 0 ? "" : ",", key.bytes, slm2_gguf_type_name(v->type));
    else cli_text_print(t, "  %-48s %s ", key.bytes, slm2_gguf_type_name(array ? v->item : v->type));
    if (array && json)
      cli_text_print(t, "\"item\":\"%s\",\"count\":%llu,", slm2_gguf_type_name(v->item), (unsigned long long)v->count);
    if (array && !json) cli_text_print(t, "x %llu ", (unsigned long long)v->count);
    if (json) cli_text_puts(t, array ? "\"first\":" : "\"value\":");
    print_value(t, g, v, json);
    cli_text_puts(t, json ? "}" : "\n");
    cli_text_free(&key);
  }
}

static void print_tensors(cli_text *t, const slm2_gguf *g, bool json) {
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    const slm2_gguf_tensor *tensor = &g->tensors[i];
    cli_text name = {0}, shape = {0};
    cli_text_json(&name, (const char *)g->header + tensor->name_at, tensor->n_name);
    for (uint32_t k = 0; k < tensor->rank; k++)
      cli_text_print(&shape, "%s%llu", k == 0 ? "" : ",", (unsigned long long)slm2_gguf_dim(g, tensor, k));
    cli_text_print(t,
                   json ? "%s{\"name\":%s,\"type\":\"%s\",\"dims\":[%s],\"offset\":%llu,\"bytes\":%llu}"
                        : "%s  %-48s %-8s [%s] at %llu, %llu bytes\n",
                   json && i > 0 ? "," : "", name.bytes, slm2_ggml_name(tensor->type), shape.bytes,
                   (unsigned long long)tensor->offset, (unsigned long long)tensor->bytes);
    cli_text_free(&name);
    cli_text_free(&shape);
  }
}

static void print_all(cli_text *t, const slm2_gguf *g, const char *path, bool json) {
  char a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX];
  if (!json) {
    cli_text_print(t, "%s: GGUF version %u, %s bytes: header %s, alignment %u; %u values, %u tensors\n", path, g->version,
                   cli_grouped(g->input->bytes, a), cli_grouped(g->header_bytes, b), g->alignment, g->n_values, g->n_tensors);
    print_values(t, g, false);
    print_tensors(t, g, false);
    return;
  }
  cli_text_print(t, "{\"format\":\"gguf\",\"version\":%u,\"file_bytes\":%llu,\"header_bytes\":%zu,\"alignment\":%u,\"values\":[",
                 g->version, (unsigned long long)g->input->bytes, g->header_bytes, g->alignment);
  print_values(t, g, true);
  cli_text_puts(t, "],\"tensors\":[");
  print_tensors(t, g, true);
  cli_text_puts(t, "]}\n");
}

slm2_status cli_inspect_gguf(const char *path, bool json, cli_text *t, slm2_error *error) {
  cli_input in;
  slm2_gguf_scan scan;
  slm2_gguf g;
  slm2_status status = cli_input_open(&in, path, error);
  if (status == SLM2_OK) status = slm2_gguf_scan_header(&in.input, &scan, error);
  if (status == SLM2_OK) {
    size_t bytes = slm2_gguf_bytes(&scan);
    void *memory = cli_alloc(bytes, 1);
    status = slm2_gguf_open(&in.input, &scan, memory, bytes, &g, error);
    if (status == SLM2_OK) print_all(t, &g, path, json);
    free(memory);
  }
  cli_input_close(&in);
  return status;
}
