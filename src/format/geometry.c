/* format/geometry.c: the limits of a config, and the sections it fixes: names, shapes, sizes and places, in
 * Hugging Face's names (modeling_qwen3). Nothing here reads bytes. */
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "kernel/weights.h"
#include "slm2/format.h"

/* --- limits ---------------------------------------------------------------- */

typedef struct limit {
  const char *key; /* as in config.json */
  size_t offset;   /* of the uint32_t in slm2_config */
  uint32_t min, max, multiple;
} limit;

static const limit limits[] = {
  {"hidden_size", offsetof(slm2_config, hidden), 32, SLM2_MAX_HIDDEN, 32},
  {"intermediate_size", offsetof(slm2_config, intermediate), 32, SLM2_MAX_INTERMEDIATE, 32},
  {"num_hidden_layers", offsetof(slm2_config, layers), 1, SLM2_MAX_LAYERS, 1},
  {"num_attention_heads", offsetof(slm2_config, heads), 1, SLM2_MAX_HEADS, 1},
  {"num_key_value_heads", offsetof(slm2_config, kv_heads), 1, SLM2_MAX_HEADS, 1},
  {"head_dim", offsetof(slm2_config, head_dim), 8, SLM2_MAX_HEAD_DIM, 8},
  {"vocab_size", offsetof(slm2_config, vocab), 32, SLM2_MAX_VOCAB, 32},
  {"max_position_embeddings", offsetof(slm2_config, max_positions), 1, SLM2_MAX_POSITIONS, 1},
  {"rope_theta", offsetof(slm2_config, rope_theta), 2, 0x80000000u, 1},
};

static slm2_status check_limit(const limit *l, uint32_t value, slm2_error *error) {
  if (value % l->multiple != 0) {
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, "slm2 config", l->key, SLM2_NO_OFFSET,
                     "%s is %u, which is not a multiple of %u", l->key, (uint64_t)value, (uint64_t)l->multiple);
  }
  if (value < l->min || value > l->max) {
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "slm2 config", l->key, SLM2_NO_OFFSET, "%s is %u, which is outside %u .. %u",
                     l->key, (uint64_t)value, (uint64_t)l->min, (uint64_t)l->max);
  }
  return SLM2_OK;
}

slm2_status slm2_config_check(const slm2_config *config, slm2_error *error) {
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    uint32_t value;
    memcpy(&value, (const char *)config + limits[i].offset, sizeof value);
    SLM2_TRY(check_limit(&limits[i], value, error));
  }
  if (config->heads % config->kv_heads != 0) {
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, "slm2 config", "num_attention_heads", SLM2_NO_OFFSET,
                     "num_attention_heads is %u, which is not a multiple of num_key_value_heads %u", (uint64_t)config->heads,
                     (uint64_t)config->kv_heads);
  }
  if (config->kv_heads * config->head_dim % 32 != 0) { /* then heads * head_dim is one too */
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, "slm2 config", "num_key_value_heads", SLM2_NO_OFFSET,
                     "num_key_value_heads %u times head_dim %u is not a multiple of 32", (uint64_t)config->kv_heads,
                     (uint64_t)config->head_dim);
  }
  if (!(config->rms_eps > 0 && config->rms_eps <= 1)) { /* a NaN fails too */
    char text[SLM2_DECIMAL_MAX] = "not finite";
    if (config->rms_eps - config->rms_eps == 0) slm2_f32_to_decimal(config->rms_eps, text);
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "slm2 config", "rms_norm_eps", SLM2_NO_OFFSET,
                     "rms_norm_eps is %s; it must be above 0 and at most 1", text);
  }
  return SLM2_OK;
}

/* --- sections -------------------------------------------------------------- */

typedef enum extent { NONE, TOKENIZER, HALF_HEAD, HEAD_DIM, HIDDEN, INTERMEDIATE, Q_ROWS, KV_ROWS, VOCAB } extent;

/* The kinds of sections in file order: [d0] or [d0, d1]. Those of a layer stand once here, once per layer in a file. */
static const struct {
  const char *name;
  uint8_t dtype, d0, d1;
} kinds[] = {
  {"tokenizer", SLM2_DTYPE_U8, TOKENIZER, NONE},
  {"rope.inv_freq", SLM2_DTYPE_F32, HALF_HEAD, NONE},
  {"model.embed_tokens.weight", SLM2_DTYPE_Q8, VOCAB, HIDDEN},
  {"input_layernorm.weight", SLM2_DTYPE_F32, HIDDEN, NONE},
  {"self_attn.q_proj.weight", SLM2_DTYPE_Q8, Q_ROWS, HIDDEN},
  {"self_attn.k_proj.weight", SLM2_DTYPE_Q8, KV_ROWS, HIDDEN},
  {"self_attn.v_proj.weight", SLM2_DTYPE_Q8, KV_ROWS, HIDDEN},
  {"self_attn.o_proj.weight", SLM2_DTYPE_Q8, HIDDEN, Q_ROWS},
  {"self_attn.q_norm.weight", SLM2_DTYPE_F32, HEAD_DIM, NONE},
  {"self_attn.k_norm.weight", SLM2_DTYPE_F32, HEAD_DIM, NONE},
  {"post_attention_layernorm.weight", SLM2_DTYPE_F32, HIDDEN, NONE},
  {"mlp.gate_proj.weight", SLM2_DTYPE_Q8, INTERMEDIATE, HIDDEN},
  {"mlp.up_proj.weight", SLM2_DTYPE_Q8, INTERMEDIATE, HIDDEN},
  {"mlp.down_proj.weight", SLM2_DTYPE_Q8, HIDDEN, INTERMEDIATE},
  {"model.norm.weight", SLM2_DTYPE_F32, HIDDEN, NONE},
  {"lm_head.weight", SLM2_DTYPE_Q8, VOCAB, HIDDEN},
};
enum { KINDS = 16, FIRST_WEIGHT = 2, FIRST_OF_LAYER = 3, PER_LAYER = 11, FINAL_NORM = FIRST_OF_LAYER + PER_LAYER };

static uint64_t extent_of(const slm2_header *h, uint8_t e) {
  const slm2_config *c = &h->config;
  switch (e) {
  case TOKENIZER: return h->tokenizer_bytes;
  case HALF_HEAD: return c->head_dim / 2;
  case HEAD_DIM: return c->head_dim;
  case HIDDEN: return c->hidden;
  case INTERMEDIATE: return c->intermediate;
  case Q_ROWS: return (uint64_t)c->heads * c->head_dim;
  case KV_ROWS: return (uint64_t)c->kv_heads * c->head_dim;
  case VOCAB: return c->vocab;
  default: return 1;
  }
}

/* Payload bytes of one section of this kind: at most 2^20 * 2^19 / 32 * 34 within the limits. */
static uint64_t kind_bytes(const slm2_header *h, uint32_t kind) {
  uint64_t n = extent_of(h, kinds[kind].d0) * extent_of(h, kinds[kind].d1);
  switch (kinds[kind].dtype) {
  case SLM2_DTYPE_F32: return n * 4;
  case SLM2_DTYPE_Q8: return n / SLM2_BLOCK * SLM2_BLOCK_BYTES;
  default: return n;
  }
}
static uint64_t padded(uint64_t n) { return (n + (SLM2_SECTION_ALIGN - 1)) & ~(uint64_t)(SLM2_SECTION_ALIGN - 1); }

uint32_t slm2_section_count(const slm2_config *config) {
  return FIRST_OF_LAYER + PER_LAYER * config->layers + (config->tied ? 1 : 2);
}

/* Kind and layer of section i. */
static uint32_t kind_of(const slm2_config *c, uint32_t i, uint32_t *layer) {
  *layer = 0;
  if (i < FIRST_OF_LAYER) return i;
  uint32_t k = i - FIRST_OF_LAYER;
  if (k >= PER_LAYER * c->layers) return FINAL_NORM + (k - PER_LAYER * c->layers);
  *layer = k / PER_LAYER;
  return FIRST_OF_LAYER + k % PER_LAYER;
}
static bool of_layer(uint32_t kind) { return kind >= FIRST_OF_LAYER && kind < FINAL_NORM; }

static uint64_t offset_of(const slm2_header *h, uint32_t kind, uint32_t layer) {
  uint64_t before = 0, per_layer = 0;
  for (uint32_t k = 0; k < FINAL_NORM; k++) {
    uint64_t n = padded(kind_bytes(h, k));
    if (of_layer(k)) per_layer += n;
    if (k < kind && (!of_layer(k) || of_layer(kind))) before += n;
  }
  if (of_layer(kind)) return before + layer * per_layer;
  if (kind < FINAL_NORM) return before;
  return before + h->config.layers * per_layer + (kind == FINAL_NORM ? 0 : padded(kind_bytes(h, FINAL_NORM)));
}

static size_t append(char name[64], size_t at, const char *text) {
  while (*text != 0 && at < 63) name[at++] = *text++;
  return at;
}
static void name_section(char name[64], uint32_t kind, uint32_t layer) {
  size_t at = 0;
  if (of_layer(kind)) {
    char digits[SLM2_DECIMAL_MAX];
    slm2_u64_to_decimal(layer, digits);
    at = append(name, at, "model.layers.");
    at = append(name, at, digits);
    at = append(name, at, ".");
  }
  at = append(name, at, kinds[kind].name);
  memset(name + at, 0, 64 - at);
}

slm2_status slm2_section_get(const slm2_header *header, uint32_t i, slm2_section *out) {
  if (i >= slm2_section_count(&header->config)) return SLM2_E_ARGUMENT;
  uint32_t layer, kind = kind_of(&header->config, i, &layer);
  name_section(out->name, kind, layer);
  out->dtype = (slm2_dtype)kinds[kind].dtype;
  out->n_dims = kinds[kind].d1 == NONE ? 1 : 2;
  out->dims[0] = extent_of(header, kinds[kind].d0);
  out->dims[1] = extent_of(header, kinds[kind].d1);
  out->offset = offset_of(header, kind, layer);
  out->bytes = kind_bytes(header, kind);
  out->padded_bytes = padded(out->bytes);
  return SLM2_OK;
}

/* Sections of this kind in a file. */
static uint64_t kind_count(const slm2_config *c, uint32_t kind) {
  if (of_layer(kind)) return c->layers;
  return kind == KINDS - 1 && c->tied ? 0 : 1;
}

uint64_t slm2_tensor_bytes(const slm2_header *header) {
  uint64_t sum = 0;
  for (uint32_t k = FIRST_WEIGHT; k < KINDS; k++) sum += kind_count(&header->config, k) * kind_bytes(header, k);
  return sum;
}

uint64_t slm2_parameter_count(const slm2_config *config) {
  slm2_header h = {.config = *config};
  uint64_t sum = 0;
  for (uint32_t k = FIRST_WEIGHT; k < KINDS; k++) {
    sum += kind_count(config, k) * extent_of(&h, kinds[k].d0) * extent_of(&h, kinds[k].d1);
  }
  return sum;
}
