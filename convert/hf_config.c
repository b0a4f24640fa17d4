/* convert/hf_config.c: config.json of transformers 4 and 5 to the geometry of a dense Qwen3. A table says what each
 * key must be; keys outside it do not change what the model computes. Defaults are those of transformers' Qwen3Config. */
#include "convert/hf.h"
#include "convert/text.h"
#include "base/error.h"
#include "base/json.h"

#define WHAT "config.json"

typedef enum field_kind {
  FIELD_U32,          /* a count, to config at offset `at` */
  FIELD_EPS,
  FIELD_THETA,
  FIELD_ROPE,         /* null or an object: only the plain rotation */
  FIELD_TIED,
  FIELD_FALSE,        /* false or null */
  FIELD_ABSENT,       /* null */
  FIELD_TEXT,         /* this text */
  FIELD_ARCHITECTURE, /* a list of this text */
  FIELD_LAYER_TYPES,  /* a list of any number of this text */
  FIELD_BOS, FIELD_PAD, FIELD_EOS,
} field_kind;

typedef struct field {
  const char *key;
  field_kind kind;
  bool required;
  size_t at;        /* FIELD_U32: offset in slm2_config */
  const char *text; /* FIELD_TEXT, FIELD_ARCHITECTURE, FIELD_LAYER_TYPES */
} field;

static const field fields[] = {
    {"model_type", FIELD_TEXT, true, 0, "qwen3"},
    {"architectures", FIELD_ARCHITECTURE, false, 0, "Qwen3ForCausalLM"},
    {"hidden_size", FIELD_U32, true, offsetof(slm2_config, hidden), NULL},
    {"intermediate_size", FIELD_U32, true, offsetof(slm2_config, intermediate), NULL},
    {"num_hidden_layers", FIELD_U32, true, offsetof(slm2_config, layers), NULL},
    {"num_attention_heads", FIELD_U32, true, offsetof(slm2_config, heads), NULL},
    {"num_key_value_heads", FIELD_U32, true, offsetof(slm2_config, kv_heads), NULL},
    {"head_dim", FIELD_U32, false, offsetof(slm2_config, head_dim), NULL},
    {"vocab_size", FIELD_U32, true, offsetof(slm2_config, vocab), NULL},
    {"max_position_embeddings", FIELD_U32, true, offsetof(slm2_config, max_positions), NULL},
    {"rms_norm_eps", FIELD_EPS, true, 0, NULL},
    {"rope_theta", FIELD_THETA, false, 0, NULL},
    {"rope_scaling", FIELD_ROPE, false, 0, NULL},
    {"rope_parameters", FIELD_ROPE, false, 0, NULL},
    {"tie_word_embeddings", FIELD_TIED, false, 0, NULL},
    {"attention_bias", FIELD_FALSE, false, 0, NULL},
    {"use_sliding_window", FIELD_FALSE, false, 0, NULL},
    {"layer_types", FIELD_LAYER_TYPES, false, 0, "full_attention"},
    {"hidden_act", FIELD_TEXT, false, 0, "silu"},
    {"quantization_config", FIELD_ABSENT, false, 0, NULL},
    {"compression_config", FIELD_ABSENT, false, 0, NULL},
    {"num_experts", FIELD_ABSENT, false, 0, NULL},
    {"num_local_experts", FIELD_ABSENT, false, 0, NULL},
    {"num_experts_per_tok", FIELD_ABSENT, false, 0, NULL},
    {"moe_intermediate_size", FIELD_ABSENT, false, 0, NULL},
    {"partial_rotary_factor", FIELD_ABSENT, false, 0, NULL},
    {"auto_map", FIELD_ABSENT, false, 0, NULL}, /* code of its own: it may compute anything */
    {"bos_token_id", FIELD_BOS, false, 0, NULL},
    {"pad_token_id", FIELD_PAD, false, 0, NULL},
    {"eos_token_id", FIELD_EOS, false, 0, NULL},
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

typedef struct config_reader {
  slm2_json json;
  slm2_config config;
  slm2_generation ids;
  bool seen[N_FIELDS];
} config_reader;

static slm2_status unsupported(slm2_error *error, const char *key, uint64_t at, const char *why) {
  return slm2_fail(error, SLM2_E_UNSUPPORTED, "config", key, at, WHAT ": %s %s", key, why);
}

/* The text must be `wanted`; the message shows what came. */
static slm2_status expect_text(slm2_json *j, const slm2_json_token *t, const char *key, const char *wanted, slm2_error *error) {
  if (slm2_json_is(t, wanted)) return SLM2_OK;
  char found[64];
  size_t n = t->n_raw < sizeof found ? t->n_raw : sizeof found - 1;
  memcpy(found, t->raw, n);
  found[n] = 0;
  return slm2_fail(error, SLM2_E_UNSUPPORTED, "config", key, t->offset, "%s: %s is %s; only %s is supported", j->what, key, found,
                   wanted);
}

/* A whole number from 2 to 2^31, also written like 1000000.0. */
static slm2_status read_theta(config_reader *r, const slm2_json_token *t, slm2_error *error) {
  double theta;
  SLM2_TRY(slm2_json_f64(&r->json, t, "rope_theta", &theta, error));
  if (!(theta >= 2 && theta <= 2147483648.0) || (double)(uint32_t)theta != theta) {
    return unsupported(error, "rope_theta", t->offset, "is not a whole number from 2 to 2147483648");
  }
  if (r->config.rope_theta != 0 && r->config.rope_theta != (uint32_t)theta) {
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "config", "rope_theta", t->offset,
                     WHAT ": rope_theta is stated twice, as %u and %u", (uint64_t)r->config.rope_theta, (uint64_t)theta);
  }
  r->config.rope_theta = (uint32_t)theta;
  return SLM2_OK;
}

/* rope_scaling (transformers 4: null) or rope_parameters (5: {"rope_type": "default", "rope_theta": n}). */
static slm2_status read_rope(config_reader *r, const slm2_json_token *first, const char *key, slm2_error *error) {
  slm2_json_token t;
  if (first->type == SLM2_JSON_NULL) return SLM2_OK;
  if (first->type != SLM2_JSON_OBJECT) return unsupported(error, key, first->offset, "is neither null nor an object");
  slm2_json ahead = r->json; /* the type first: the other keys belong to it */
  for (int pass = 0; pass < 2; pass++) {
    slm2_json *j = pass == 0 ? &ahead : &r->json;
    for (;;) {
      SLM2_TRY(slm2_json_next(j, &t, error));
      if (t.type == SLM2_JSON_OBJECT_END) break;
      bool is_type = slm2_json_is(&t, "rope_type") || slm2_json_is(&t, "type"), is_theta = slm2_json_is(&t, "rope_theta");
      if (pass == 0 && is_type) {
        SLM2_TRY(slm2_json_expect(j, SLM2_JSON_STRING, &t, error));
        SLM2_TRY(expect_text(j, &t, key, "default", error));
      } else if (pass == 1 && is_theta) {
        SLM2_TRY(slm2_json_next(j, &t, error));
        SLM2_TRY(read_theta(r, &t, error));
      } else if (pass == 1 && !is_type) {
        return slm2_fail_n(error, SLM2_E_UNSUPPORTED, "config", t.raw, t.n_raw, t.offset,
                           WHAT ": %s has a key that is not supported", key);
      } else {
        SLM2_TRY(slm2_json_skip(j, &t, error));
      }
    }
  }
  return SLM2_OK;
}

static slm2_status read_eps(config_reader *r, const slm2_json_token *t, slm2_error *error) {
  double eps;
  SLM2_TRY(slm2_json_f64(&r->json, t, "rms_norm_eps", &eps, error));
  if (!(eps > 0 && eps < 1)) return unsupported(error, "rms_norm_eps", t->offset, "is not between 0 and 1");
  r->config.rms_eps = (float)eps;
  return SLM2_OK;
}

static slm2_status read_texts(config_reader *r, const slm2_json_token *first, const field *f, slm2_error *error) {
  slm2_json_token t;
  uint32_t n = 0;
  if (first->type == SLM2_JSON_NULL) return SLM2_OK;
  if (first->type != SLM2_JSON_ARRAY) return unsupported(error, f->key, first->offset, "is no list");
  for (;;) {
    SLM2_TRY(slm2_json_next(&r->json, &t, error));
    if (t.type == SLM2_JSON_ARRAY_END) break;
    if (t.type != SLM2_JSON_STRING) return unsupported(error, f->key, t.offset, "holds something that is no text");
    SLM2_TRY(expect_text(&r->json, &t, f->key, f->text, error));
    n++;
  }
  if (f->kind == FIELD_ARCHITECTURE && n != 1) return unsupported(error, f->key, first->offset, "does not hold exactly one name");
  return SLM2_OK;
}

static slm2_status read_field(config_reader *r, const field *f, slm2_error *error) {
  slm2_json_token t;
  slm2_json *j = &r->json;
  uint32_t value;
  SLM2_TRY(slm2_json_next(j, &t, error));
  switch (f->kind) {
  case FIELD_U32:
    SLM2_TRY(slm2_json_u32(j, &t, f->key, &value, error));
    memcpy((uint8_t *)&r->config + f->at, &value, sizeof value);
    return SLM2_OK;
  case FIELD_EPS: return read_eps(r, &t, error);
  case FIELD_THETA: return t.type == SLM2_JSON_NULL ? SLM2_OK : read_theta(r, &t, error);
  case FIELD_ROPE: return read_rope(r, &t, f->key, error);
  case FIELD_TIED: return slm2_json_bool(j, &t, f->key, &r->config.tied, error);
  case FIELD_FALSE:
    if (t.type == SLM2_JSON_FALSE || t.type == SLM2_JSON_NULL) return SLM2_OK;
    return unsupported(error, f->key, t.offset, "is not false; only false is supported");
  case FIELD_ABSENT:
    return t.type == SLM2_JSON_NULL ? SLM2_OK : unsupported(error, f->key, t.offset, "is not supported");
  case FIELD_TEXT:
    if (t.type != SLM2_JSON_STRING) return unsupported(error, f->key, t.offset, "is no text");
    return expect_text(j, &t, f->key, f->text, error);
  case FIELD_ARCHITECTURE:
  case FIELD_LAYER_TYPES: return read_texts(r, &t, f, error);
  case FIELD_BOS: return slm2_hf_token_id(j, &t, f->key, &r->ids.bos, error);
  case FIELD_PAD: return slm2_hf_token_id(j, &t, f->key, &r->ids.pad, error);
  default: return slm2_hf_eos_ids(j, &t, &r->ids, error);
  }
}

static slm2_status check_complete(const config_reader *r, slm2_error *error) {
  for (size_t i = 0; i < N_FIELDS; i++) {
    if (!fields[i].required || r->seen[i]) continue;
    return slm2_fail(error, SLM2_E_JSON, "config", fields[i].key, SLM2_NO_OFFSET, WHAT ": %s is missing", fields[i].key);
  }
  if (r->config.rope_theta == 0) {
    return slm2_fail(error, SLM2_E_JSON, "config", "rope_theta", SLM2_NO_OFFSET, WHAT ": rope_theta is missing");
  }
  return slm2_config_check(&r->config, error);
}

slm2_status slm2_hf_config(const char *json, size_t n, slm2_config *config, slm2_generation *ids, slm2_error *error) {
  config_reader r = {.config = {.head_dim = 128}, .ids = {.bos = UINT32_MAX, .pad = UINT32_MAX}};
  slm2_json_token t;
  slm2_json_init(&r.json, json, n, WHAT);
  SLM2_TRY(slm2_json_expect(&r.json, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(&r.json, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    size_t i = 0;
    while (i < N_FIELDS && !slm2_json_is(&t, fields[i].key)) i++;
    if (i == N_FIELDS) {
      SLM2_TRY(slm2_json_skip(&r.json, &t, error));
      continue;
    }
    if (r.seen[i])
      return slm2_fail(error, SLM2_E_JSON, "config", fields[i].key, t.offset, WHAT ": %s comes twice", fields[i].key);
    r.seen[i] = true;
    SLM2_TRY(read_field(&r, &fields[i], error));
  }
  SLM2_TRY(slm2_json_expect(&r.json, SLM2_JSON_END, &t, error));
  SLM2_TRY(check_complete(&r, error));
  *config = r.config;
  *ids = r.ids;
  return SLM2_OK;
}
