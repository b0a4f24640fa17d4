/* convert/hf_generation.c: generation_config.json to the sampling defaults of the header. Defaults of absent keys are
 * those of transformers' generate(). Settings that would change the answer and have no place in the header are refused
 * unless they are off. */
#include <float.h>
#include "convert/hf.h"
#include "base/error.h"

#define WHAT "generation_config.json"

typedef enum field_kind {
  FIELD_DO_SAMPLE, FIELD_TEMPERATURE, FIELD_TOP_K, FIELD_TOP_P, FIELD_PENALTY, FIELD_BOS, FIELD_PAD, FIELD_EOS,
  FIELD_NUMBER, /* must be `off` or null */
  FIELD_ABSENT, /* must be null */
} field_kind;

static const struct {
  const char *key;
  field_kind kind;
  double off;
} fields[] = {
    {"do_sample", FIELD_DO_SAMPLE, 0},      {"temperature", FIELD_TEMPERATURE, 0},
    {"top_k", FIELD_TOP_K, 0},              {"top_p", FIELD_TOP_P, 0},
    {"repetition_penalty", FIELD_PENALTY, 0},
    {"bos_token_id", FIELD_BOS, 0},         {"pad_token_id", FIELD_PAD, 0},
    {"eos_token_id", FIELD_EOS, 0},         {"min_p", FIELD_NUMBER, 0},
    {"top_h", FIELD_ABSENT, 0},             {"typical_p", FIELD_NUMBER, 1},
    {"epsilon_cutoff", FIELD_NUMBER, 0},    {"eta_cutoff", FIELD_NUMBER, 0},
    {"num_beams", FIELD_NUMBER, 1},         {"num_beam_groups", FIELD_NUMBER, 1},
    {"diversity_penalty", FIELD_NUMBER, 0}, {"penalty_alpha", FIELD_NUMBER, 0},
    {"no_repeat_ngram_size", FIELD_NUMBER, 0},
    {"encoder_repetition_penalty", FIELD_NUMBER, 1},
    {"encoder_no_repeat_ngram_size", FIELD_NUMBER, 0},
    {"guidance_scale", FIELD_NUMBER, 1},    {"bad_words_ids", FIELD_ABSENT, 0},
    {"force_words_ids", FIELD_ABSENT, 0},   {"constraints", FIELD_ABSENT, 0},
    {"forced_bos_token_id", FIELD_ABSENT, 0},
    {"forced_eos_token_id", FIELD_ABSENT, 0},
    {"suppress_tokens", FIELD_ABSENT, 0},   {"begin_suppress_tokens", FIELD_ABSENT, 0},
    {"sequence_bias", FIELD_ABSENT, 0},     {"exponential_decay_length_penalty", FIELD_ABSENT, 0},
    {"watermarking_config", FIELD_ABSENT, 0},
    {"stop_strings", FIELD_ABSENT, 0},
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

slm2_status slm2_hf_token_id(const slm2_json *j, const slm2_json_token *t, const char *key, uint32_t *id, slm2_error *error) {
  if (t->type == SLM2_JSON_NULL) {
    *id = UINT32_MAX;
    return SLM2_OK;
  }
  return slm2_json_u32(j, t, key, id, error);
}

/* Adds an id once. */
static slm2_status add_eos(const slm2_json *j, const slm2_json_token *t, slm2_generation *out, slm2_error *error) {
  uint32_t id, i = 0;
  SLM2_TRY(slm2_json_u32(j, t, "eos_token_id", &id, error));
  while (i < out->n_eos && out->eos[i] != id) i++;
  if (i < out->n_eos) return SLM2_OK;
  if (i == SLM2_MAX_EOS) {
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "generation", "eos_token_id", t->offset, "%s: more than %u eos_token_id", j->what,
                     (uint64_t)SLM2_MAX_EOS);
  }
  out->eos[out->n_eos++] = id;
  return SLM2_OK;
}

slm2_status slm2_hf_eos_ids(slm2_json *j, const slm2_json_token *first, slm2_generation *out, slm2_error *error) {
  slm2_json_token t = *first;
  out->n_eos = 0;
  if (t.type == SLM2_JSON_NULL) return SLM2_OK;
  if (t.type != SLM2_JSON_ARRAY) return add_eos(j, &t, out, error);
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_ARRAY_END) return SLM2_OK;
    SLM2_TRY(add_eos(j, &t, out, error));
  }
}

static slm2_status out_of_range(slm2_error *error, const char *key, uint64_t at, const char *range) {
  return slm2_fail(error, SLM2_E_UNSUPPORTED, "generation", key, at, WHAT ": %s is not %s", key, range);
}

/* Nearest f64, then f32 [D19], from 0 (more than 0 when `positive`) to high. */
static slm2_status read_float(const slm2_json *j, const slm2_json_token *t, const char *key, float high, bool positive,
                              const char *range, float *out, slm2_error *error) {
  double wide;
  SLM2_TRY(slm2_json_f64(j, t, key, &wide, error));
  if (!(wide >= 0 && wide <= high) || (positive && (float)wide == 0)) return out_of_range(error, key, t->offset, range);
  *out = (float)wide;
  return SLM2_OK;
}

static slm2_status read_field(slm2_json *j, size_t i, slm2_generation *out, slm2_error *error) {
  slm2_json_token t;
  double value;
  const char *key = fields[i].key;
  SLM2_TRY(slm2_json_next(j, &t, error));
  if (t.type == SLM2_JSON_NULL) return SLM2_OK; /* as if absent */
  switch (fields[i].kind) {
  case FIELD_DO_SAMPLE: return slm2_json_bool(j, &t, key, &out->do_sample, error);
  case FIELD_TEMPERATURE: return read_float(j, &t, key, FLT_MAX, false, "a number from 0", &out->temperature, error);
  case FIELD_TOP_K: return slm2_json_u32(j, &t, key, &out->top_k, error);
  case FIELD_TOP_P: return read_float(j, &t, key, 1.0f, false, "a number from 0 to 1", &out->top_p, error);
  case FIELD_PENALTY: return read_float(j, &t, key, FLT_MAX, true, "a number above 0", &out->repeat_penalty, error);
  case FIELD_BOS: return slm2_hf_token_id(j, &t, key, &out->bos, error);
  case FIELD_PAD: return slm2_hf_token_id(j, &t, key, &out->pad, error);
  case FIELD_EOS: return slm2_hf_eos_ids(j, &t, out, error);
  case FIELD_NUMBER:
    SLM2_TRY(slm2_json_f64(j, &t, key, &value, error));
    return value == fields[i].off ? SLM2_OK : out_of_range(error, key, t.offset, "off, and is not supported as a default");
  default: return out_of_range(error, key, t.offset, "absent, and is not supported");
  }
}

static slm2_status check_ids(const slm2_generation *g, uint32_t vocab, slm2_error *error) {
  for (uint32_t i = 0; i < g->n_eos + 2; i++) {
    uint32_t id = i < g->n_eos ? g->eos[i] : i == g->n_eos ? g->bos : g->pad;
    const char *key = i < g->n_eos ? "eos_token_id" : i == g->n_eos ? "bos_token_id" : "pad_token_id";
    if (id < vocab || (i >= g->n_eos && id == UINT32_MAX)) continue;
    return slm2_fail(error, SLM2_E_TOKEN, "generation", key, SLM2_NO_OFFSET, "%s %u lies outside the vocabulary of %u", key,
                     (uint64_t)id, (uint64_t)vocab);
  }
  return SLM2_OK;
}

slm2_status slm2_hf_generation(const char *json, size_t n, const slm2_generation *ids, uint32_t vocab, slm2_generation *out,
                               slm2_error *error) {
  slm2_generation g = *ids;
  slm2_json j;
  slm2_json_token t;
  bool seen[N_FIELDS] = {false};
  g.do_sample = false;
  g.temperature = 1.0f;
  g.top_k = 50;
  g.top_p = 1.0f;
  g.repeat_penalty = 1.0f;
  slm2_json_init(&j, json == NULL ? "{}" : json, json == NULL ? 2 : n, WHAT);
  SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(&j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    size_t i = 0;
    while (i < N_FIELDS && !slm2_json_is(&t, fields[i].key)) i++;
    if (i == N_FIELDS) {
      SLM2_TRY(slm2_json_skip(&j, &t, error));
      continue;
    }
    if (seen[i])
      return slm2_fail(error, SLM2_E_JSON, "generation", fields[i].key, t.offset, WHAT ": %s comes twice", fields[i].key);
    seen[i] = true;
    SLM2_TRY(read_field(&j, i, &g, error));
  }
  SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_END, &t, error));
  SLM2_TRY(check_ids(&g, vocab, error));
  *out = g;
  return SLM2_OK;
}
