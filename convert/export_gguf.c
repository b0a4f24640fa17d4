/* convert/export_gguf.c: a .slm2 file to GGUF version 3 as llama.cpp reads it. The file follows from the source's bytes
 * alone. Importing it gives the source back, byte for byte: what GGUF has no key for is stored under "slm2.". */
#include "convert/export.h"
#include "convert/gguf_model.h"
#include "convert/text.h"
#include "base/decimal.h"
#include "format/layout.h"
#include "kernel/weights.h"

enum { TYPE_NORMAL = 1, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_UNUSED = 5 }; /* of tokens, in llama.cpp */
#define FILE_TYPE_Q8_0 7u
#define QUANTIZATION_VERSION 2u

/* The metadata are written twice: once to count the values and bytes, then to the file. */
typedef struct values {
  const slm2_export *export;
  slm2_emitter *out;
  uint64_t n;
} values;

/* --- values ------------------------------------------------------------------------------------ */

static void put_string(slm2_emitter *out, const char *text, size_t n) {
  slm2_emit_u64(out, n);
  slm2_emit_bytes(out, text, n);
}
static void key(values *v, const char *name, uint32_t type) {
  v->n++;
  put_string(v->out, name, text_length(name));
  slm2_emit_u32(v->out, type);
}
static void put_text(values *v, const char *name, const char *text) {
  key(v, name, SLM2_GGUF_STRING);
  put_string(v->out, text, text_length(text));
}
static void put_u32(values *v, const char *name, uint32_t value) {
  key(v, name, SLM2_GGUF_U32);
  slm2_emit_u32(v->out, value);
}
static void put_f32(values *v, const char *name, float value) {
  key(v, name, SLM2_GGUF_F32);
  slm2_emit_u32(v->out, slm2_float_bits(value));
}
static void put_false(values *v, const char *name) {
  const uint8_t no = 0;
  key(v, name, SLM2_GGUF_BOOL);
  slm2_emit_bytes(v->out, &no, 1);
}
static void begin_array(values *v, const char *name, uint32_t item, uint64_t n) {
  key(v, name, SLM2_GGUF_ARRAY);
  slm2_emit_u32(v->out, item);
  slm2_emit_u64(v->out, n);
}

static void put_model(values *v) {
  const slm2_header *h = v->export->header;
  const slm2_config *c = &h->config;
  put_text(v, "general.architecture", "qwen3");
  put_text(v, "general.type", "model");
  put_text(v, "general.name", h->source);
  if (text_compare(h->license, text_length(h->license), "unknown", 7) != 0) put_text(v, "general.license", h->license);
  put_u32(v, "general.file_type", FILE_TYPE_Q8_0);
  put_u32(v, "general.quantization_version", QUANTIZATION_VERSION);
  put_u32(v, "qwen3.block_count", c->layers);
  put_u32(v, "qwen3.context_length", c->max_positions);
  put_u32(v, "qwen3.embedding_length", c->hidden);
  put_u32(v, "qwen3.feed_forward_length", c->intermediate);
  put_u32(v, "qwen3.attention.head_count", c->heads);
  put_u32(v, "qwen3.attention.head_count_kv", c->kv_heads);
  put_u32(v, "qwen3.attention.key_length", c->head_dim);
  put_u32(v, "qwen3.attention.value_length", c->head_dim);
  put_f32(v, "qwen3.attention.layer_norm_rms_epsilon", c->rms_eps);
  put_f32(v, "qwen3.rope.freq_base", (float)c->rope_theta);
  put_u32(v, "qwen3.vocab_size", c->vocab);
}

/* llama.cpp's sampling defaults; greedy is temperature 0 there. */
static void put_sampling(values *v) {
  const slm2_generation *g = &v->export->header->generation;
  key(v, "general.sampling.top_k", SLM2_GGUF_I32);
  slm2_emit_u32(v->out, g->top_k < INT32_MAX ? g->top_k : INT32_MAX);
  put_f32(v, "general.sampling.top_p", g->top_p);
  put_f32(v, "general.sampling.temp", g->do_sample ? g->temperature : 0);
  put_f32(v, "general.sampling.penalty_repeat", g->repeat_penalty);
}

static void put_own(values *v) {
  for (uint32_t i = 0; i < slm2_n_gguf_own_keys; i++) {
    char name[SLM2_GGUF_OWN_KEY_MAX];
    uint8_t text[8 * (SLM2_DECIMAL_MAX + 1)]; /* more than the longest value, eight ids */
    slm2_header_sink sink = {.out = text, .capacity = sizeof text, .difference = UINT64_MAX};
    slm2_emit_metadata_value(&sink, slm2_gguf_own_field(i), v->export->header, NULL);
    slm2_gguf_own_key(i, name);
    key(v, name, SLM2_GGUF_STRING);
    put_string(v->out, (const char *)text, (size_t)sink.at);
  }
}

/* --- tokenizer ---------------------------------------------------------------------------------- */

/* The text of an id: an id without a token is "[PADn]", as llama.cpp's converter calls it. */
static void put_token(values *v, uint32_t id) {
  const slm2_tokenizer *t = v->export->tokenizer;
  size_t n;
  const uint8_t *bytes = slm2_token_bytes(t, id, &n);
  if (n == 0) {
    char text[8 + SLM2_DECIMAL_MAX] = "[PAD";
    size_t length = 4 + slm2_u64_to_decimal(id, text + 4);
    text[length++] = ']';
    put_string(v->out, text, length);
  } else if (slm2_token_is_added(t, id)) {
    put_string(v->out, (const char *)bytes, n);
  } else {
    slm2_emit_u64(v->out, slm2_symbols_length(bytes, n));
    slm2_emit_symbols(v->out, bytes, n, false);
  }
}

static uint32_t token_type(const slm2_tokenizer *t, uint32_t id) {
  if (!slm2_token_exists(t, id)) return TYPE_UNUSED;
  if (slm2_token_is_special(t, id)) return TYPE_CONTROL;
  return slm2_token_is_added(t, id) ? TYPE_USER_DEFINED : TYPE_NORMAL;
}

static void put_merge(values *v, uint32_t rank) {
  const uint8_t *row = v->export->merges + 12 * (size_t)rank, *sides[2];
  size_t n[2], length = 1;
  for (size_t i = 0; i < 2; i++) {
    sides[i] = slm2_token_bytes(v->export->tokenizer, slm2_load_u32(row + 4 * i), &n[i]);
    length += slm2_symbols_length(sides[i], n[i]);
  }
  slm2_emit_u64(v->out, length);
  slm2_emit_symbols(v->out, sides[0], n[0], false);
  slm2_emit_text(v->out, " ");
  slm2_emit_symbols(v->out, sides[1], n[1], false);
}

static void put_tokenizer(values *v) {
  const slm2_export *e = v->export;
  const slm2_generation *g = &e->header->generation;
  uint32_t vocab = e->header->config.vocab;
  if (e->tokenizer == NULL) {
    put_text(v, "tokenizer.ggml.model", "none");
    return;
  }
  put_text(v, "tokenizer.ggml.model", "gpt2");
  put_text(v, "tokenizer.ggml.pre", "qwen2");
  begin_array(v, "tokenizer.ggml.tokens", SLM2_GGUF_STRING, vocab);
  for (uint32_t id = 0; id < vocab; id++) put_token(v, id);
  begin_array(v, "tokenizer.ggml.token_type", SLM2_GGUF_I32, vocab);
  for (uint32_t id = 0; id < vocab; id++) slm2_emit_u32(v->out, token_type(e->tokenizer, id));
  begin_array(v, "tokenizer.ggml.merges", SLM2_GGUF_STRING, e->n_merges);
  for (uint32_t rank = 0; rank < e->n_merges; rank++) put_merge(v, rank);
  if (g->bos != UINT32_MAX) put_u32(v, "tokenizer.ggml.bos_token_id", g->bos);
  if (g->n_eos > 0) put_u32(v, "tokenizer.ggml.eos_token_id", g->eos[0]);
  if (g->pad != UINT32_MAX) put_u32(v, "tokenizer.ggml.padding_token_id", g->pad);
  put_false(v, "tokenizer.ggml.add_bos_token");
}

/* Returns how many there are. */
static uint64_t put_values(const slm2_export *e, slm2_emitter *out) {
  values v = {.export = e, .out = out};
  put_model(&v);
  put_sampling(&v);
  put_tokenizer(&v);
  put_own(&v);
  return v.n;
}

/* --- tensors -------------------------------------------------------------------------------------- */

/* The list; returns the bytes of the data. */
static uint64_t put_list(const slm2_export *e, slm2_emitter *out) {
  slm2_section s;
  uint64_t offset = 0;
  for (uint32_t i = 2; slm2_section_get(e->header, i, &s) == SLM2_OK; i++) {
    slm2_gguf_rename(&s);
    put_string(out, s.name, text_length(s.name));
    slm2_emit_u32(out, s.n_dims);
    for (uint32_t k = s.n_dims; k > 0; k--) slm2_emit_u64(out, s.dims[k - 1]); /* innermost first */
    slm2_emit_u32(out, s.n_dims == 2 ? SLM2_GGML_Q8_0 : SLM2_GGML_F32);
    slm2_emit_u64(out, offset);
    offset += (s.bytes + SLM2_GGUF_ALIGNMENT - 1) / SLM2_GGUF_ALIGNMENT * SLM2_GGUF_ALIGNMENT;
  }
  return offset;
}

static void put_data(const slm2_export *e, slm2_emitter *out) {
  slm2_section s;
  for (uint32_t i = 2; slm2_section_get(e->header, i, &s) == SLM2_OK && out->status == SLM2_OK; i++) {
    if (s.n_dims == 1) slm2_emit_bytes(out, e->data + s.offset, (size_t)s.bytes);
    size_t group = SLM2_PANEL_ROWS * (size_t)s.dims[1] / SLM2_BLOCK * SLM2_BLOCK_BYTES;
    for (uint64_t row = 0; s.n_dims == 2 && row < s.dims[0] && out->status == SLM2_OK; row += SLM2_PANEL_ROWS)
      slm2_emit_bytes(out, slm2_export_rows(e, &s, row), group);
    slm2_emit_fill(out, 0, SLM2_GGUF_ALIGNMENT);
  }
}

slm2_status slm2_export_gguf(slm2_export *e, const slm2_sink *sink, slm2_error *error) {
  slm2_emitter *out = slm2_export_begin(e, NULL, error);
  uint64_t n_values = put_values(e, out);
  out = slm2_export_begin(e, sink, error);
  slm2_emit_text(out, "GGUF");
  slm2_emit_u32(out, 3);
  slm2_emit_u64(out, slm2_section_count(&e->header->config) - 2);
  slm2_emit_u64(out, n_values);
  (void)put_values(e, out);
  uint64_t data_bytes = put_list(e, out);
  slm2_emit_fill(out, 0, SLM2_GGUF_ALIGNMENT);
  out->total = out->at + data_bytes;
  put_data(e, out);
  return slm2_emit_end(out);
}
