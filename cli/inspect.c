/* cli/inspect.c: `slm2 inspect`: what a .slm2, .safetensors or .gguf file holds. Only headers are read. */
#include "cli/convert.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "convert/safetensors.h"

static const char help[] =
  "slm2 inspect FILE [--json]: the configuration, tensors, sizes and hashes of a .slm2 file, the tensors of a .safetensors\n"
  "file, or the metadata and tensors of a GGUF file. Only the header is read and checked; `slm2 verify` checks the data of\n"
  "a .slm2 file too.\n"
  "\n"
  "  --json   one JSON object, with the hash of every 4 MiB chunk\n"
  "\n"
  "Examples:\n"
  "  slm2 inspect models/demo.slm2\n"
  "  slm2 inspect model.safetensors --json\n";

static const char *dtype_name(const slm2_header *h, slm2_dtype dtype) {
  if (dtype == SLM2_DTYPE_U8) return "U8";
  if (dtype == SLM2_DTYPE_F32) return "F32";
  return h->form == SLM2_FORM_PANELS ? "Q8_0_P32" : "Q8_0";
}

static const char *form_name(const slm2_header *h) { return h->form == SLM2_FORM_PANELS ? "panels" : "rows"; }

/* --- .slm2 ------------------------------------------------------------------ */

typedef struct model_view {
  slm2_mapping map;
  uint64_t n; /* header bytes, from map.bytes + 8 */
  slm2_header header;
  char identity[65];
} model_view;

static slm2_status open_view(model_view *v, const char *path, slm2_error *error) {
  uint8_t first[8] = {0}, identity[32];
  slm2_status status = slm2_map(path, &v->map, error);
  if (status == SLM2_OK && v->map.n > 0) memcpy(first, v->map.bytes, v->map.n < 8 ? (size_t)v->map.n : 8);
  if (status == SLM2_OK) status = slm2_header_length(first, v->map.n, &v->n, error);
  if (status == SLM2_OK) status = slm2_header_parse(v->map.bytes + 8, (size_t)v->n, v->map.n, &v->header, error);
  if (status != SLM2_OK) return status;
  slm2_header_identity(v->map.bytes + 8, (size_t)v->n, identity);
  slm2_hex(identity, sizeof identity, v->identity);
  return SLM2_OK;
}

static void text_config(cli_text *t, const model_view *v, const char *path) {
  const slm2_header *h = &v->header;
  const slm2_config *c = &h->config;
  char a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX], d[CLI_GROUPED_MAX];
  cli_text_print(t, "%s: SLM2 version %u\n", path, SLM2_FORMAT_VERSION);
  cli_text_print(t, "  identity    %s\n", v->identity);
  cli_text_print(t, "  source      %s, revision %s, license %s\n", h->source, h->source_revision, h->license);
  cli_text_print(t, "  file        %s bytes: header %s, data %s in %llu chunks\n", cli_grouped(v->map.n, a),
                 cli_grouped(h->header_bytes, b), cli_grouped(h->data_bytes, d), (unsigned long long)h->n_chunks);
  cli_text_print(t, "  tensors     %s bytes, %s parameters, layout %s\n", cli_grouped(slm2_tensor_bytes(h), a),
                 cli_grouped(slm2_parameter_count(c), b), form_name(h));
  cli_text_print(t, "  model       hidden %u, mlp %u, layers %u, heads %u, kv heads %u, head dim %u, vocabulary %u, %s\n",
                 c->hidden, c->intermediate, c->layers, c->heads, c->kv_heads, c->head_dim, c->vocab,
                 c->tied ? "tied" : "untied");
  cli_text_print(t, "  positions   %u, rope theta %u, rms eps ", c->max_positions, c->rope_theta);
  cli_text_f32(t, c->rms_eps);
  cli_text_print(t, "\n  tokenizer   %s bytes, chat format %s\n", cli_grouped(h->tokenizer_bytes, a),
                 cli_chat_name(h->chat_format));
}

static void text_generation(cli_text *t, const slm2_generation *g) {
  cli_text_print(t, "  sampling    %s, temperature ", g->do_sample ? "on" : "off (greedy)");
  cli_text_f32(t, g->temperature);
  cli_text_print(t, ", top-k %u, top-p ", g->top_k);
  cli_text_f32(t, g->top_p);
  cli_text_puts(t, ", repeat penalty ");
  cli_text_f32(t, g->repeat_penalty);
  cli_text_puts(t, "; end tokens ");
  if (g->n_eos == 0) cli_text_puts(t, "none");
  cli_text_ids(t, g->eos, g->n_eos, ", ");
  cli_text_puts(t, "\n");
}

static slm2_status text_sections(cli_text *t, const slm2_header *h) {
  cli_text_print(t, "  %-48s %-8s %-16s %14s %14s\n", "section", "dtype", "shape", "data offset", "bytes");
  for (uint32_t i = 0; i < slm2_section_count(&h->config); i++) {
    slm2_section s;
    slm2_status status = slm2_section_get(h, i, &s);
    if (status != SLM2_OK) return status;
    cli_text shape = {0};
    cli_text_print(&shape, s.n_dims == 2 ? "%llu x %llu" : "%llu", (unsigned long long)s.dims[0], (unsigned long long)s.dims[1]);
    cli_text_print(t, "  %-48s %-8s %-16s %14llu %14llu\n", s.name, dtype_name(h, s.dtype), shape.bytes,
                   (unsigned long long)s.offset, (unsigned long long)s.bytes);
    cli_text_free(&shape);
  }
  return SLM2_OK;
}

static void json_config(cli_text *t, const model_view *v) {
  const slm2_header *h = &v->header;
  const slm2_config *c = &h->config;
  const slm2_generation *g = &h->generation;
  cli_text_print(t, "{\"format\":\"slm2\",\"version\":%u,\"identity\":\"%s\",\"source\":", SLM2_FORMAT_VERSION, v->identity);
  cli_text_json(t, h->source, strlen(h->source));
  cli_text_puts(t, ",\"source_revision\":");
  cli_text_json(t, h->source_revision, strlen(h->source_revision));
  cli_text_puts(t, ",\"license\":");
  cli_text_json(t, h->license, strlen(h->license));
  cli_text_print(t, ",\"file_bytes\":%llu,\"header_bytes\":%llu,\"data_bytes\":%llu,\"tensor_bytes\":%llu,\"parameters\":%llu",
                 (unsigned long long)v->map.n, (unsigned long long)h->header_bytes, (unsigned long long)h->data_bytes,
                 (unsigned long long)slm2_tensor_bytes(h), (unsigned long long)slm2_parameter_count(c));
  cli_text_print(t, ",\"layout\":\"%s\",\"chat_format\":\"%s\",\"tokenizer_bytes\":%llu", form_name(h),
                 cli_chat_name(h->chat_format), (unsigned long long)h->tokenizer_bytes);
  cli_text_print(t, ",\"config\":{\"hidden\":%u,\"intermediate\":%u,\"layers\":%u,\"heads\":%u,\"kv_heads\":%u,\"head_dim\":%u",
                 c->hidden, c->intermediate, c->layers, c->heads, c->kv_heads, c->head_dim);
  cli_text_print(t, ",\"vocab\":%u,\"max_positions\":%u,\"rope_theta\":%u,\"rms_eps\":", c->vocab, c->max_positions,
                 c->rope_theta);
  cli_text_f32(t, c->rms_eps);
  cli_text_print(t, ",\"tied\":%s},\"generation\":{\"do_sample\":%s,\"temperature\":", c->tied ? "true" : "false",
                 g->do_sample ? "true" : "false");
  cli_text_f32(t, g->temperature);
  cli_text_print(t, ",\"top_k\":%u,\"top_p\":", g->top_k);
  cli_text_f32(t, g->top_p);
  cli_text_puts(t, ",\"repeat_penalty\":");
  cli_text_f32(t, g->repeat_penalty);
  cli_text_puts(t, ",\"eos\":[");
  cli_text_ids(t, g->eos, g->n_eos, ",");
  cli_text_puts(t, "]}");
}

static slm2_status json_sections(cli_text *t, const model_view *v) {
  const slm2_header *h = &v->header;
  cli_text_puts(t, ",\"sections\":[");
  for (uint32_t i = 0; i < slm2_section_count(&h->config); i++) {
    slm2_section s;
    slm2_status status = slm2_section_get(h, i, &s);
    if (status != SLM2_OK) return status;
    cli_text_print(t, "%s{\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":[%llu", i == 0 ? "" : ",", s.name, dtype_name(h, s.dtype),
                   (unsigned long long)s.dims[0]);
    if (s.n_dims == 2) cli_text_print(t, ",%llu", (unsigned long long)s.dims[1]);
    cli_text_print(t, "],\"offset\":%llu,\"bytes\":%llu}", (unsigned long long)s.offset, (unsigned long long)s.bytes);
  }
  cli_text_puts(t, "],\"chunks\":[");
  for (uint64_t i = 0; i < h->n_chunks; i++) {
    uint8_t hash[32];
    char hex[65];
    slm2_status status = slm2_header_chunk_hash(v->map.bytes + 8, (size_t)v->n, h, i, hash);
    if (status != SLM2_OK) return status;
    slm2_hex(hash, sizeof hash, hex);
    cli_text_print(t, "%s\"%s\"", i == 0 ? "" : ",", hex);
  }
  cli_text_puts(t, "]}\n");
  return SLM2_OK;
}

static slm2_status inspect_slm2(const char *path, bool json, cli_text *t, slm2_error *error) {
  model_view v = {0};
  slm2_status status = open_view(&v, path, error);
  if (status == SLM2_OK) {
    if (json) {
      json_config(t, &v);
      status = json_sections(t, &v);
    } else {
      text_config(t, &v, path);
      text_generation(t, &v.header.generation);
      status = text_sections(t, &v.header);
    }
    if (status != SLM2_OK)
      *error = (slm2_error){
          .code = status, .operation = "inspect", .message = "a checked header has no such section", .offset = UINT64_MAX};
  }
  slm2_unmap(&v.map);
  return status;
}

/* --- .safetensors ------------------------------------------------------------- */

static void print_tensors(const slm2_safetensors *st, uint64_t file_bytes, const char *path, bool json, cli_text *t) {
  char a[CLI_GROUPED_MAX];
  if (json)
    cli_text_print(t, "{\"format\":\"safetensors\",\"file_bytes\":%llu,\"header_bytes\":%zu,\"data_bytes\":%llu,\"tensors\":[",
                   (unsigned long long)file_bytes, st->header_bytes, (unsigned long long)st->data_bytes);
  else cli_text_print(t, "%s: safetensors, %s bytes, %u tensors\n", path, cli_grouped(file_bytes, a), st->n_tensors);
  for (uint32_t i = 0; i < st->n_tensors; i++) {
    slm2_st_tensor tensor;
    slm2_st_get(st, i, &tensor);
    cli_text name = {0}, shape = {0};
    cli_text_json(&name, tensor.name, tensor.n_name);
    for (uint32_t k = 0; k < tensor.rank; k++)
      cli_text_print(&shape, "%s%llu", k == 0 ? "" : ",", (unsigned long long)tensor.dims[k]);
    cli_text_print(t,
                   json ? "%s{\"name\":%s,\"dtype\":\"%s\",\"shape\":[%s],\"offset\":%llu,\"bytes\":%llu}"
                        : "%s  %-48s %-8s [%s] at %llu, %llu bytes\n",
                   json && i > 0 ? "," : "", name.bytes, slm2_st_dtype_name(tensor.dtype), shape.n > 0 ? shape.bytes : "",
                   (unsigned long long)tensor.offset, (unsigned long long)tensor.bytes);
    cli_text_free(&name);
    cli_text_free(&shape);
  }
  if (json) cli_text_puts(t, "]}\n");
}

static slm2_status inspect_safetensors(const char *path, bool json, cli_text *t, slm2_error *error) {
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  slm2_file *file = NULL;
  uint64_t file_bytes = 0;
  uint8_t first[8] = {0};
  size_t n = 0;
  slm2_status status = slm2_file_open(path, &file, &file_bytes, error);
  if (status == SLM2_OK) status = slm2_file_read(file, 0, first, file_bytes < 8 ? (size_t)file_bytes : 8, error);
  if (status == SLM2_OK) status = slm2_st_header_length(name, first, file_bytes, &n, error);
  if (status == SLM2_OK) {
    char *header = cli_alloc(n, 1);
    void *memory = cli_alloc(slm2_st_bytes(n), 1);
    slm2_safetensors st;
    status = slm2_file_read(file, 8, header, n, error);
    if (status == SLM2_OK) status = slm2_st_open(name, header, n, file_bytes, memory, slm2_st_bytes(n), &st, error);
    if (status == SLM2_OK && st.n_tensors == 0) {
      status = SLM2_E_FORMAT;
      *error = (slm2_error){.code = status, .operation = "safetensors", .message = "the file holds no tensors", .offset = 8};
    }
    if (status == SLM2_OK) print_tensors(&st, file_bytes, path, json, t);
    free(memory);
    free(header);
  }
  slm2_file_close(file);
  return status;
}

int cli_cmd_inspect(int argc, char **argv) {
  bool json = false;
  const char *path;
  const cli_option options[] = {{.name = "--json", .kind = CLI_FLAG, .target = &json}};
  static const char *const names[] = {"a FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &path, names, 1);
  if (code != CLI_CONTINUE) return code;
  slm2_error error = {0};
  cli_text t = {0};
  slm2_status status = cli_is_gguf(path)                      ? cli_inspect_gguf(path, json, &t, &error)
                       : cli_ends_with(path, ".safetensors") ? inspect_safetensors(path, json, &t, &error)
                                                             : inspect_slm2(path, json, &t, &error);
  code = status == SLM2_OK ? cli_out_text(&t) : cli_fail_in(path, &error);
  cli_text_free(&t);
  return code;
}
