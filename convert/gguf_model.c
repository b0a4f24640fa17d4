/* convert/gguf_model.c: the metadata of a dense Qwen3 in GGUF to the fields of an SLM2 header. Keys that begin with
 * "qwen3." state how the model computes, so an unknown one is refused by name; of the others, those that would change
 * tokens or sampling are taken or refused, and the rest is ignored. Defaults of absent keys are llama.cpp's. */
#include <float.h>
#include "convert/byte_tokenizer.h"
#include "convert/gguf_model.h"
#include "convert/hf.h"
#include "convert/text.h"
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "format/layout.h"

#define ARCH "qwen3."

/* --- geometry ----------------------------------------------------------------------------- */

typedef enum rule_kind {
  RULE_U32,      /* a count, to the config at offset `at` */
  RULE_KNOWN,    /* read by name */
  RULE_ZERO,     /* a whole number that must be 0 */
  RULE_TRUE,
  RULE_NONE,     /* the text "none" */
} rule_kind;

static const struct {
  const char *key;
  rule_kind kind;
  size_t at;
  bool required;
} rules[] = {
    {ARCH "block_count", RULE_U32, offsetof(slm2_config, layers), true},
    {ARCH "context_length", RULE_U32, offsetof(slm2_config, max_positions), true},
    {ARCH "embedding_length", RULE_U32, offsetof(slm2_config, hidden), true},
    {ARCH "feed_forward_length", RULE_U32, offsetof(slm2_config, intermediate), true},
    {ARCH "attention.head_count", RULE_U32, offsetof(slm2_config, heads), true},
    {ARCH "attention.head_count_kv", RULE_U32, offsetof(slm2_config, kv_heads), false},
    {ARCH "attention.key_length", RULE_U32, offsetof(slm2_config, head_dim), false},
    {ARCH "attention.value_length", RULE_KNOWN, 0, false},
    {ARCH "attention.layer_norm_rms_epsilon", RULE_KNOWN, 0, true},
    {ARCH "rope.freq_base", RULE_KNOWN, 0, false},
    {ARCH "rope.dimension_count", RULE_KNOWN, 0, false},
    {ARCH "vocab_size", RULE_KNOWN, 0, false},
    {ARCH "rope.scaling.type", RULE_NONE, 0, false},
    {ARCH "attention.causal", RULE_TRUE, 0, false},
    {ARCH "attention.sliding_window", RULE_ZERO, 0, false},
    {ARCH "expert_count", RULE_ZERO, 0, false},
    {ARCH "expert_used_count", RULE_ZERO, 0, false},
    {ARCH "pooling_type", RULE_ZERO, 0, false},
};
#define N_RULES (sizeof rules / sizeof rules[0])

static bool begins(const slm2_gguf *g, const slm2_gguf_value *v, const char *prefix) {
  size_t n = text_length(prefix);
  return v->n_key >= n && memcmp(g->header + v->key_at, prefix, n) == 0;
}
static bool text_is(const char *text, size_t n, const char *wanted) {
  return text_compare(text, n, wanted, text_length(wanted)) == 0;
}

/* A refusal that shows a text of the file, cut to 47 bytes. */
static slm2_status refuse_text(const slm2_gguf *g, const char *key, const char *text, size_t n, const char *wanted,
                               slm2_error *error) {
  char shown[48] = {0};
  memcpy(shown, text, n < sizeof shown ? n : sizeof shown - 1);
  return slm2_fail(error, SLM2_E_UNSUPPORTED, "gguf", key, slm2_gguf_find(g, key)->at, "%s: %s is %s; only %s is supported",
                   g->input->name, key, shown, wanted);
}
/* The string of this key must be this text, if it is there. */
static slm2_status expect_text(const slm2_gguf *g, const char *key, const char *wanted, slm2_error *error) {
  const char *text = NULL;
  size_t n = 0;
  SLM2_TRY(slm2_gguf_string(g, key, &text, &n, error));
  return text == NULL || text_is(text, n, wanted) ? SLM2_OK : refuse_text(g, key, text, n, wanted, error);
}
static slm2_status expect_zero(const slm2_gguf *g, const char *key, slm2_error *error) {
  uint32_t value = 0;
  SLM2_TRY(slm2_gguf_u32(g, key, &value, error));
  if (value == 0) return SLM2_OK;
  return slm2_gguf_refuse(g, slm2_gguf_find(g, key), SLM2_E_UNSUPPORTED, key, "%s: %s is %u; only 0 is supported", value, 0,
                          error);
}
static slm2_status expect_bool(const slm2_gguf *g, const char *key, bool wanted, slm2_error *error) {
  bool value = wanted;
  SLM2_TRY(slm2_gguf_bool(g, key, &value, error));
  if (value == wanted) return SLM2_OK;
  return slm2_gguf_refuse(g, slm2_gguf_find(g, key), SLM2_E_UNSUPPORTED, key,
                          value ? "%s: %s is true; only false is supported" : "%s: %s is false; only true is supported", 0, 0,
                          error);
}
static slm2_status missing(const slm2_gguf *g, const char *key, slm2_error *error) {
  return slm2_gguf_refuse(g, NULL, SLM2_E_FORMAT, key, "%s: %s is missing", 0, 0, error);
}

/* What kind of file this is. */
static slm2_status check_kind(const slm2_gguf *g, slm2_error *error) {
  uint32_t parts = 1, version = 2;
  if (slm2_gguf_find(g, "general.architecture") == NULL) return missing(g, "general.architecture", error);
  SLM2_TRY(expect_text(g, "general.architecture", "qwen3", error));
  SLM2_TRY(expect_text(g, "general.type", "model", error));
  SLM2_TRY(slm2_gguf_u32(g, "split.count", &parts, error));
  if (parts > 1) {
    return slm2_gguf_refuse(g, slm2_gguf_find(g, "split.count"), SLM2_E_UNSUPPORTED, "split.count",
                            "%s: %s is %u: one of several parts; join them first (llama-gguf-split --merge)", parts, 0, error);
  }
  SLM2_TRY(slm2_gguf_u32(g, "general.quantization_version", &version, error));
  if (version == 2) return SLM2_OK;
  return slm2_gguf_refuse(g, slm2_gguf_find(g, "general.quantization_version"), SLM2_E_UNSUPPORTED_QUANTIZATION,
                          "general.quantization_version", "%s: %s is %u; only 2 is supported", version, 0, error);
}

static slm2_status check_keys(const slm2_gguf *g, slm2_error *error) {
  for (uint32_t i = 0; i < g->n_values; i++) {
    const slm2_gguf_value *v = &g->values[i];
    const char *key = (const char *)g->header + v->key_at;
    size_t r = 0;
    if (!begins(g, v, ARCH)) continue;
    while (r < N_RULES && !text_is(key, v->n_key, rules[r].key)) r++;
    if (r < N_RULES) continue;
    return slm2_fail_n(error, SLM2_E_UNSUPPORTED, "gguf", key, v->n_key, v->key_at,
                       "%s: a key of the architecture that is not supported", g->input->name);
  }
  return SLM2_OK;
}

static slm2_status apply_rules(const slm2_gguf *g, slm2_config *config, slm2_error *error) {
  for (size_t r = 0; r < N_RULES; r++) {
    const char *key = rules[r].key;
    uint32_t count;
    if (slm2_gguf_find(g, key) == NULL) {
      if (rules[r].required) return missing(g, key, error);
      continue;
    }
    switch (rules[r].kind) {
    case RULE_U32:
      SLM2_TRY(slm2_gguf_u32(g, key, &count, error));
      memcpy((uint8_t *)config + rules[r].at, &count, sizeof count);
      break;
    case RULE_ZERO: SLM2_TRY(expect_zero(g, key, error)); break;
    case RULE_TRUE: SLM2_TRY(expect_bool(g, key, true, error)); break;
    case RULE_NONE: SLM2_TRY(expect_text(g, key, "none", error)); break;
    case RULE_KNOWN: break;
    }
  }
  return SLM2_OK;
}

/* The value of this key must be `wanted`, if it is there. */
static slm2_status expect_u32(const slm2_gguf *g, const char *key, uint32_t wanted, const char *what, slm2_error *error) {
  uint32_t value = wanted;
  SLM2_TRY(slm2_gguf_u32(g, key, &value, error));
  if (value == wanted) return SLM2_OK;
  return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, "gguf", key, slm2_gguf_find(g, key)->at, "%s: %s is %u, but %s %u",
                   g->input->name, key, (uint64_t)value, what, (uint64_t)wanted);
}

static slm2_status read_numbers(const slm2_gguf *g, slm2_config *c, slm2_error *error) {
  static const char theta_key[] = ARCH "rope.freq_base", eps_key[] = ARCH "attention.layer_norm_rms_epsilon";
  float theta = 10000.0f;
  SLM2_TRY(slm2_gguf_f32(g, theta_key, &theta, error));
  SLM2_TRY(slm2_gguf_f32(g, eps_key, &c->rms_eps, error));
  if (!(theta >= 2 && theta <= 2147483648.0f) || (float)(uint32_t)theta != theta) {
    return slm2_gguf_refuse(g, slm2_gguf_find(g, theta_key), SLM2_E_UNSUPPORTED, theta_key,
                            "%s: %s is no whole number from 2 to 2147483648", 0, 0, error);
  }
  if (!(c->rms_eps > 0 && c->rms_eps < 1)) {
    return slm2_gguf_refuse(g, slm2_gguf_find(g, eps_key), SLM2_E_UNSUPPORTED, eps_key, "%s: %s is not between 0 and 1", 0, 0,
                            error);
  }
  c->rope_theta = (uint32_t)theta;
  return SLM2_OK;
}

slm2_status slm2_gguf_config(const slm2_gguf *g, slm2_config *config, slm2_error *error) {
  slm2_config c = {.kv_heads = UINT32_MAX, .head_dim = UINT32_MAX};
  SLM2_TRY(check_kind(g, error));
  SLM2_TRY(check_keys(g, error));
  SLM2_TRY(apply_rules(g, &c, error));
  SLM2_TRY(read_numbers(g, &c, error));
  if (c.kv_heads == UINT32_MAX) c.kv_heads = c.heads;
  if (c.head_dim == UINT32_MAX) c.head_dim = c.heads == 0 ? 0 : c.hidden / c.heads;
  SLM2_TRY(expect_u32(g, ARCH "attention.value_length", c.head_dim, "the keys have", error));
  SLM2_TRY(expect_u32(g, ARCH "rope.dimension_count", c.head_dim, "the keys have", error));
  const slm2_gguf_tensor *embed = slm2_gguf_find_tensor(g, "token_embd.weight");
  if (embed == NULL || embed->rank != 2) {
    return slm2_fail(error, SLM2_E_FORMAT, "gguf", "token_embd.weight", SLM2_NO_OFFSET,
                     "%s: there is no matrix token_embd.weight", g->input->name);
  }
  uint64_t rows = slm2_gguf_dim(g, embed, 1);
  c.vocab = rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX;
  SLM2_TRY(expect_u32(g, ARCH "vocab_size", c.vocab, "token_embd.weight has", error));
  c.tied = slm2_gguf_find_tensor(g, "output.weight") == NULL;
  SLM2_TRY(slm2_config_check(&c, error));
  *config = c;
  return SLM2_OK;
}

/* --- settings -------------------------------------------------------------------------------- */

/* A token id, UINT32_MAX when the key is absent or says so. */
static slm2_status read_id(const slm2_gguf *g, const char *key, uint32_t vocab, uint32_t *id, slm2_error *error) {
  *id = UINT32_MAX;
  SLM2_TRY(slm2_gguf_u32(g, key, id, error));
  if (*id < vocab || *id == UINT32_MAX) return SLM2_OK;
  return slm2_gguf_refuse(g, slm2_gguf_find(g, key), SLM2_E_TOKEN, key, "%s: %s is %u, but there are %u tokens", *id, vocab,
                          error);
}

static void add_eos(slm2_generation *g, uint32_t id) {
  uint32_t i = 0;
  while (i < g->n_eos && g->eos[i] != id) i++;
  if (id != UINT32_MAX && i == g->n_eos) g->eos[g->n_eos++] = id; /* at most four are asked for */
}

/* GGUF names one end token; Hugging Face's list has <|endoftext|> too. Both are the ends of Qwen3's texts. */
static slm2_status read_ids(const slm2_gguf *g, const uint8_t *section, slm2_header *h, slm2_error *error) {
  static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"};
  static const char *const texts[] = {"<|im_end|>", "<|endoftext|>"};
  uint32_t vocab = h->config.vocab, id;
  h->generation.n_eos = 0;
  SLM2_TRY(read_id(g, "tokenizer.ggml.bos_token_id", vocab, &h->generation.bos, error));
  SLM2_TRY(read_id(g, "tokenizer.ggml.padding_token_id", vocab, &h->generation.pad, error));
  for (int i = 0; i < 2; i++) {
    SLM2_TRY(read_id(g, keys[i], vocab, &id, error));
    add_eos(&h->generation, id);
  }
  for (int i = 0; i < 2 && section != NULL; i++)
    add_eos(&h->generation, slm2_section_added_id(section, texts[i], text_length(texts[i]), NULL));
  return SLM2_OK;
}

static slm2_status read_float(const slm2_gguf *g, const char *key, float low, float high, float *out, bool *any,
                              slm2_error *error) {
  const slm2_gguf_value *v = slm2_gguf_find(g, key);
  if (v == NULL) return SLM2_OK;
  SLM2_TRY(slm2_gguf_f32(g, key, out, error));
  *any = true;
  if (*out >= low && *out <= high) return SLM2_OK;
  return slm2_gguf_refuse(g, v, SLM2_E_UNSUPPORTED, key, "%s: %s is out of range", 0, 0, error);
}

/* Sampling defaults as the file states them. A file that states none gets Qwen3's own; in one that states some, the others
 * are those of transformers' generate(), from whose settings such files are made. */
static slm2_status read_sampling(const slm2_gguf *g, slm2_generation *out, slm2_error *error) {
  slm2_generation s = *out;
  bool any = slm2_gguf_find(g, "general.sampling.top_k") != NULL;
  float off = 0;
  s.temperature = 1.0f;
  s.top_k = 50;
  s.top_p = 1.0f;
  s.repeat_penalty = 1.0f;
  SLM2_TRY(slm2_gguf_u32(g, "general.sampling.top_k", &s.top_k, error));
  SLM2_TRY(read_float(g, "general.sampling.temp", 0, FLT_MAX, &s.temperature, &any, error));
  SLM2_TRY(read_float(g, "general.sampling.top_p", 0, 1, &s.top_p, &any, error));
  SLM2_TRY(read_float(g, "general.sampling.penalty_repeat", FLT_TRUE_MIN, FLT_MAX, &s.repeat_penalty, &any, error));
  SLM2_TRY(read_float(g, "general.sampling.min_p", 0, 0, &off, &any, error)); /* no place in the header */
  SLM2_TRY(read_float(g, "general.sampling.xtc_probability", 0, 0, &off, &any, error));
  SLM2_TRY(expect_zero(g, "general.sampling.mirostat", error));
  if (!any) {
    s.temperature = 0.6f;
    s.top_k = 20;
    s.top_p = 0.95f;
  }
  s.do_sample = true;
  *out = s;
  return SLM2_OK;
}

/* An SPDX identifier in lower case, when the file has one of the header's form; else "unknown". */
static slm2_status read_license(const slm2_gguf *g, slm2_header *h, slm2_error *error) {
  const char *text = NULL;
  size_t n = 0;
  SLM2_TRY(slm2_gguf_string(g, "general.license", &text, &n, error));
  bool good = n > 0 && n < sizeof h->license;
  for (size_t i = 0; i < n && good; i++) {
    char c = text[i];
    good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-';
  }
  text_copy(h->license, sizeof h->license, "unknown");
  if (!good) return SLM2_OK;
  memcpy(h->license, text, n);
  h->license[n] = 0;
  return SLM2_OK;
}

bool slm2_gguf_is_own(const slm2_gguf *g) { return slm2_gguf_find(g, "slm2.format_version") != NULL; }

/* What an export of slm2 wrote: each value as the header has it. */
static slm2_status read_own(const slm2_gguf *g, slm2_header *h, slm2_error *error) {
  uint32_t theta = h->config.rope_theta;
  for (uint32_t i = 0; i < slm2_n_gguf_own_keys; i++) {
    char key[SLM2_GGUF_OWN_KEY_MAX];
    const char *text = NULL;
    size_t n = 0;
    slm2_gguf_own_key(i, key);
    SLM2_TRY(slm2_gguf_string(g, key, &text, &n, error));
    if (text == NULL) return missing(g, key, error);
    slm2_json_token token = {.type = SLM2_JSON_STRING, .raw = text, .n_raw = n};
    SLM2_TRY(slm2_metadata_read(slm2_gguf_own_field(i), &token, slm2_gguf_find(g, key)->at, h, error));
  }
  if ((float)h->config.rope_theta == (float)theta) return SLM2_OK; /* the exact number behind the f32 of rope.freq_base */
  return slm2_gguf_refuse(g, slm2_gguf_find(g, "slm2.rope_theta"), SLM2_E_FORMAT, "slm2.rope_theta",
                          "%s: %s is %u, but qwen3.rope.freq_base %u", h->config.rope_theta, theta, error);
}

/* What llama.cpp's converter writes. */
static slm2_status read_foreign(const slm2_gguf *g, const uint8_t *section, slm2_header *h, slm2_error *error) {
  SLM2_TRY(read_ids(g, section, h, error));
  SLM2_TRY(read_sampling(g, &h->generation, error));
  SLM2_TRY(read_license(g, h, error));
  text_copy(h->source, sizeof h->source, "unknown");
  text_copy(h->source_revision, sizeof h->source_revision, "unknown");
  h->chat_format = SLM2_CHAT_NONE;
  return SLM2_OK;
}

slm2_status slm2_gguf_settings(const slm2_gguf *g, const uint8_t *section, slm2_header *header, bool *template_found,
                               uint8_t template_sha256[32], slm2_error *error) {
  const char *text = NULL;
  size_t n = 0;
  slm2_header h = *header;
  if (slm2_gguf_is_own(g)) SLM2_TRY(read_own(g, &h, error));
  else SLM2_TRY(read_foreign(g, section, &h, error));
  SLM2_TRY(slm2_gguf_string(g, "tokenizer.chat_template", &text, &n, error));
  *template_found = text != NULL;
  if (text != NULL) {
    slm2_sha256_of(text, n, template_sha256);
    h.chat_format = slm2_known_chat_format(template_sha256);
  }
  *header = h;
  return SLM2_OK;
}
