/* convert/export_hf.c: a .slm2 file to a Hugging Face folder that transformers loads: the weights as f32, which holds every
 * q * d exactly (8 bits times 11), config, sampling defaults and tokenizer. */
#include "convert/export.h"
#include "convert/text.h"
#include "base/error.h"
#include "kernel/weights.h"
#include "num/fp_env.h"
#include "num/math.h"

enum { FILE_CONFIG, FILE_GENERATION, FILE_WEIGHTS, FILE_TOKENIZER, FILE_TOKENIZER_CONFIG, N_FILES };
static const char *const file_names[N_FILES] = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                                                "tokenizer_config.json"};

uint32_t slm2_export_files(const slm2_export *e) { return e->tokenizer == NULL ? FILE_TOKENIZER : N_FILES; }
const char *slm2_export_file_name(uint32_t i) { return i < N_FILES ? file_names[i] : ""; }

/* --- configs ---------------------------------------------------------------------------------- */

/* One member of the object, in a line of its own; between: what stands before it. */
static void begin_member(slm2_emitter *out, const char *between, const char *key) {
  slm2_emit_text(out, between);
  slm2_emit_text(out, "\n  \"");
  slm2_emit_text(out, key);
  slm2_emit_text(out, "\": ");
}
static void put_number(slm2_emitter *out, const char *key, uint64_t value) {
  begin_member(out, ",", key);
  slm2_emit_decimal(out, value);
}
static void put_float(slm2_emitter *out, const char *key, float value) {
  begin_member(out, ",", key);
  slm2_emit_float(out, value);
}
static void put_literal(slm2_emitter *out, const char *key, const char *value) {
  begin_member(out, ",", key);
  slm2_emit_text(out, value);
}
static void put_id(slm2_emitter *out, const char *key, uint32_t id) {
  if (id == UINT32_MAX) put_literal(out, key, "null");
  else put_number(out, key, id);
}

static void put_config(const slm2_export *e, slm2_emitter *out) {
  const slm2_config *c = &e->header->config;
  const slm2_generation *g = &e->header->generation;
  slm2_emit_text(out, "{\n  \"architectures\": [\"Qwen3ForCausalLM\"]");
  put_literal(out, "attention_bias", "false");
  put_literal(out, "attention_dropout", "0.0");
  put_id(out, "bos_token_id", g->bos);
  put_id(out, "eos_token_id", g->n_eos == 0 ? UINT32_MAX : g->eos[0]);
  put_id(out, "pad_token_id", g->pad);
  put_number(out, "head_dim", c->head_dim);
  put_literal(out, "hidden_act", "\"silu\"");
  put_number(out, "hidden_size", c->hidden);
  put_literal(out, "initializer_range", "0.02");
  put_number(out, "intermediate_size", c->intermediate);
  put_number(out, "max_position_embeddings", c->max_positions);
  put_number(out, "max_window_layers", c->layers);
  put_literal(out, "model_type", "\"qwen3\"");
  put_number(out, "num_attention_heads", c->heads);
  put_number(out, "num_hidden_layers", c->layers);
  put_number(out, "num_key_value_heads", c->kv_heads);
  put_float(out, "rms_norm_eps", c->rms_eps);
  put_literal(out, "rope_scaling", "null");
  put_number(out, "rope_theta", c->rope_theta);
  put_literal(out, "sliding_window", "null");
  put_literal(out, "tie_word_embeddings", c->tied ? "true" : "false");
  put_literal(out, "torch_dtype", "\"float32\"");
  put_literal(out, "use_cache", "true");
  put_literal(out, "use_sliding_window", "false");
  put_number(out, "vocab_size", c->vocab);
  slm2_emit_text(out, "\n}\n");
}

static void put_generation(const slm2_export *e, slm2_emitter *out) {
  const slm2_generation *g = &e->header->generation;
  slm2_emit_text(out, "{\n  \"do_sample\": ");
  slm2_emit_text(out, g->do_sample ? "true" : "false");
  put_id(out, "bos_token_id", g->bos);
  put_id(out, "pad_token_id", g->pad);
  if (g->n_eos > 0) {
    begin_member(out, ",", "eos_token_id");
    for (uint32_t i = 0; i < g->n_eos; i++) {
      slm2_emit_text(out, i == 0 ? "[" : ", ");
      slm2_emit_decimal(out, g->eos[i]);
    }
    slm2_emit_text(out, "]");
  }
  put_float(out, "temperature", g->temperature);
  put_number(out, "top_k", g->top_k);
  put_float(out, "top_p", g->top_p);
  put_float(out, "repetition_penalty", g->repeat_penalty);
  slm2_emit_text(out, "\n}\n");
}

/* The text of a special id, when it has one that the tokenizer adds. */
static void put_token(const slm2_export *e, slm2_emitter *out, const char *key, uint32_t id) {
  if (id >= slm2_tokenizer_size(e->tokenizer) || !slm2_token_is_added(e->tokenizer, id)) return;
  size_t n;
  const uint8_t *text = slm2_token_bytes(e->tokenizer, id, &n);
  begin_member(out, ",", key);
  slm2_emit_string(out, text, n);
}

static void put_tokenizer_config(const slm2_export *e, slm2_emitter *out) {
  const slm2_generation *g = &e->header->generation;
  slm2_emit_text(out, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"");
  put_literal(out, "add_bos_token", "false");
  put_literal(out, "add_prefix_space", "false");
  put_literal(out, "bos_token", "null");
  put_literal(out, "clean_up_tokenization_spaces", "false");
  if (g->n_eos > 0) put_token(e, out, "eos_token", g->eos[0]);
  put_token(e, out, "pad_token", g->pad);
  put_literal(out, "unk_token", "null");
  put_number(out, "model_max_length", e->header->config.max_positions);
  slm2_emit_text(out, "\n}\n");
}

/* --- weights ---------------------------------------------------------------------------------------- */

/* The header of the safetensors file, without its length; returns the bytes of the data. */
static uint64_t put_list(const slm2_export *e, slm2_emitter *out) {
  slm2_section s;
  uint64_t at = 0;
  slm2_emit_text(out, "{\"__metadata__\":{\"format\":\"pt\"}");
  for (uint32_t i = 2; slm2_section_get(e->header, i, &s) == SLM2_OK; i++) {
    uint64_t bytes = 4 * s.dims[0] * s.dims[1]; /* within the limits of a config, far below 2^64 */
    slm2_emit_text(out, ",\"");
    slm2_emit_text(out, s.name);
    slm2_emit_text(out, "\":{\"dtype\":\"F32\",\"shape\":[");
    slm2_emit_decimal(out, s.dims[0]);
    if (s.n_dims == 2) slm2_emit_text(out, ",");
    if (s.n_dims == 2) slm2_emit_decimal(out, s.dims[1]);
    slm2_emit_text(out, "],\"data_offsets\":[");
    slm2_emit_decimal(out, at);
    slm2_emit_text(out, ",");
    slm2_emit_decimal(out, at += bytes);
    slm2_emit_text(out, "]}");
  }
  slm2_emit_text(out, "}");
  slm2_emit_fill(out, ' ', 8);
  return at;
}

static void put_matrix(const slm2_export *e, const slm2_section *s, slm2_emitter *out) {
  size_t blocks = SLM2_PANEL_ROWS * (size_t)s->dims[1] / SLM2_BLOCK;
  for (uint64_t row = 0; row < s->dims[0] && out->status == SLM2_OK; row += SLM2_PANEL_ROWS) {
    const uint8_t *rows = slm2_export_rows(e, s, row);
    for (size_t b = 0; b < blocks; b++) {
      const uint8_t *block = rows + b * SLM2_BLOCK_BYTES;
      float d = slm2_f16_to_f32(slm2_load_u16(block));
      for (uint32_t k = 0; k < SLM2_BLOCK; k++)
        slm2_store_f32(e->values + 4 * (b * SLM2_BLOCK + k), (float)(int8_t)block[2 + k] * d);
    }
    slm2_emit_bytes(out, e->values, 4 * blocks * SLM2_BLOCK);
  }
}

static SLM2_NOINLINE slm2_status put_weights(slm2_export *e, const slm2_sink *sink, slm2_error *error) {
  slm2_section s;
  slm2_emitter *out = slm2_export_begin(e, NULL, error);
  uint64_t data_bytes = put_list(e, out), header_bytes = out->at;
  out = slm2_export_begin(e, sink, error);
  out->total = 8 + header_bytes + data_bytes;
  slm2_emit_u64(out, header_bytes);
  (void)put_list(e, out);
  for (uint32_t i = 2; slm2_section_get(e->header, i, &s) == SLM2_OK && out->status == SLM2_OK; i++) {
    if (s.n_dims == 2) put_matrix(e, &s, out);
    else slm2_emit_bytes(out, e->data + s.offset, (size_t)s.bytes);
  }
  return slm2_emit_end(out);
}

slm2_status slm2_export_file(slm2_export *e, uint32_t i, const slm2_sink *sink, slm2_error *error) {
  if (i >= slm2_export_files(e)) {
    return slm2_fail(error, SLM2_E_ARGUMENT, "export", "i", SLM2_NO_OFFSET, "file %u of %u", (uint64_t)i,
                     (uint64_t)slm2_export_files(e));
  }
  if (i == FILE_WEIGHTS) {
    slm2_fp_state state = slm2_fp_enter();
    slm2_status status = put_weights(e, sink, error);
    slm2_fp_leave(state);
    return status;
  }
  slm2_emitter *out = slm2_export_begin(e, sink, error);
  if (i == FILE_CONFIG) put_config(e, out);
  else if (i == FILE_GENERATION) put_generation(e, out);
  else if (i == FILE_TOKENIZER) slm2_export_tokenizer(e, out);
  else put_tokenizer_config(e, out);
  return slm2_emit_end(out);
}
