/* convert/gguf_tokenizer.c: tokenizer.ggml.* of a GGUF file to a tokenizer section. Qwen3's tokenizer is called "gpt2"
 * (byte-level BPE) with the pre-tokenizer "qwen2" there; any other is refused by name. */
#include "convert/gguf_model.h"
#include "convert/text.h"
#include "base/error.h"
#include "base/sha256.h"

/* Types of tokens, by llama.cpp's numbers. */
enum { TYPE_NORMAL = 1, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_UNUSED = 5 };

static const char tokens_key[] = "tokenizer.ggml.tokens", types_key[] = "tokenizer.ggml.token_type",
                  merges_key[] = "tokenizer.ggml.merges", model_key[] = "tokenizer.ggml.model", pre_key[] = "tokenizer.ggml.pre";

/* Added tokens that answers show, although llama.cpp's converter marks every "<|...|>" as a control token. */
static const char *const shown[] = {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
                                    "<|fim_pad|>",    "<|repo_name|>",  "<|file_sep|>"};

static uint32_t type_of(const slm2_gguf *g, const slm2_gguf_tokenizer *t, uint32_t id) {
  return slm2_load_u32(g->header + t->types->at + 4 * (size_t)id);
}

static slm2_token_kind kind_of(uint32_t type, const char *text, size_t n) {
  if (type == TYPE_NORMAL) return SLM2_TOKEN_NORMAL;
  if (type == TYPE_UNUSED) return SLM2_TOKEN_ABSENT;
  if (type == TYPE_USER_DEFINED) return SLM2_TOKEN_ADDED;
  for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
    if (text_compare(text, n, shown[i], text_length(shown[i])) == 0) return SLM2_TOKEN_ADDED;
  }
  return SLM2_TOKEN_SPECIAL;
}

/* The string of a key must be this one. */
static slm2_status expect(const slm2_gguf *g, const char *key, const char *wanted, slm2_error *error) {
  const char *text = NULL;
  char found[48] = "missing";
  size_t n = 0;
  SLM2_TRY(slm2_gguf_string(g, key, &text, &n, error));
  if (text != NULL && text_compare(text, n, wanted, text_length(wanted)) == 0) return SLM2_OK;
  const slm2_gguf_value *v = slm2_gguf_find(g, key);
  if (text != NULL) {
    memset(found, 0, sizeof found);
    memcpy(found, text, n < sizeof found ? n : sizeof found - 1);
  }
  return slm2_fail(error, SLM2_E_UNSUPPORTED, "gguf", key, v == NULL ? SLM2_NO_OFFSET : v->at,
                   "%s: %s is %s; only %s is supported", g->input->name, key, found, wanted);
}

static slm2_status expect_off(const slm2_gguf *g, const char *key, slm2_error *error) {
  bool on = false;
  SLM2_TRY(slm2_gguf_bool(g, key, &on, error));
  if (!on) return SLM2_OK;
  return slm2_gguf_refuse(g, slm2_gguf_find(g, key), SLM2_E_UNSUPPORTED, key, "%s: %s is true; only false is supported", 0, 0,
                          error);
}

static slm2_status open_arrays(const slm2_gguf *g, slm2_gguf_tokenizer *t, slm2_error *error) {
  SLM2_TRY(slm2_gguf_array(g, tokens_key, SLM2_GGUF_STRING, &t->tokens, error));
  SLM2_TRY(slm2_gguf_array(g, types_key, SLM2_GGUF_I32, &t->types, error));
  SLM2_TRY(slm2_gguf_array(g, merges_key, SLM2_GGUF_STRING, &t->merges, error));
  const char *absent = t->tokens == NULL ? tokens_key : t->types == NULL ? types_key : t->merges == NULL ? merges_key : NULL;
  if (absent != NULL) return slm2_gguf_refuse(g, NULL, SLM2_E_FORMAT, absent, "%s: %s is missing", 0, 0, error);
  if (t->types->count != t->tokens->count) {
    return slm2_gguf_refuse(g, t->types, SLM2_E_FORMAT, types_key, "%s: %s has %u entries for %u tokens", t->types->count,
                            t->tokens->count, error);
  }
  return slm2_section_check(g->input->name, t->tokens->count, t->merges->count, 0, error);
}

slm2_status slm2_gguf_tokenizer_open(const slm2_gguf *g, slm2_gguf_tokenizer *out, slm2_error *error) {
  slm2_gguf_tokenizer t = {.tokens = NULL};
  const char *model = NULL;
  size_t n = 0;
  SLM2_TRY(slm2_gguf_string(g, model_key, &model, &n, error));
  if (model != NULL && text_compare(model, n, "none", 4) == 0) { /* llama.cpp's word for it */
    *out = t;
    return SLM2_OK;
  }
  SLM2_TRY(expect(g, model_key, "gpt2", error));
  SLM2_TRY(expect(g, pre_key, "qwen2", error));
  SLM2_TRY(expect_off(g, "tokenizer.ggml.add_bos_token", error));
  SLM2_TRY(expect_off(g, "tokenizer.ggml.add_eos_token", error));
  SLM2_TRY(expect_off(g, "tokenizer.ggml.add_space_prefix", error));
  SLM2_TRY(open_arrays(g, &t, error));
  for (uint32_t id = 0; id < t.tokens->count; id++) {
    uint32_t type = type_of(g, &t, id);
    if (type != TYPE_NORMAL && type != TYPE_CONTROL && type != TYPE_USER_DEFINED && type != TYPE_UNUSED) {
      return slm2_fail(error, SLM2_E_UNSUPPORTED, "gguf", types_key, t.types->at + 4 * (uint64_t)id,
                       "%s: %s: token %u is of type %u; supported are 1 (normal), 3 (control), 4 (user defined), 5 (unused)",
                       g->input->name, types_key, (uint64_t)id, (uint64_t)type);
    }
    if (type != TYPE_UNUSED) t.n_tokens = id + 1;
    t.n_added += type == TYPE_CONTROL || type == TYPE_USER_DEFINED;
  }
  t.n_merges = (uint32_t)t.merges->count;
  SLM2_TRY(slm2_section_check(g->input->name, t.n_tokens, t.n_merges, t.n_added, error));
  *out = t;
  return SLM2_OK;
}

slm2_status slm2_gguf_tokenizer_convert(const slm2_gguf *g, const slm2_gguf_tokenizer *t, slm2_section_builder *b,
                                        uint8_t *section, size_t *section_bytes, slm2_error *error) {
  uint8_t sha256[32];
  uint32_t at = t->tokens->at;
  size_t n;
  slm2_sha256_of(g->header, g->header_bytes, sha256);
  slm2_section_begin(b, g->input->name, sha256, t->n_tokens, t->n_merges, t->n_added, section);
  for (uint32_t id = 0; id < t->n_tokens; id++) {
    uint32_t where = at;
    const char *text = slm2_gguf_next_string(g, &at, &n);
    const slm2_section_text token = {.text = text, .name = text, .n = n, .n_name = n, .at = where};
    SLM2_TRY(slm2_section_token(b, kind_of(type_of(g, t, id), text, n), &token, error));
  }
  SLM2_TRY(slm2_section_tokens_end(b, error));
  at = t->merges->at;
  for (uint32_t rank = 0; rank < t->n_merges; rank++) {
    uint32_t where = at;
    const char *text = slm2_gguf_next_string(g, &at, &n);
    SLM2_TRY(slm2_section_merge_line(b, text, n, where, error));
  }
  *section_bytes = slm2_section_end(b);
  return SLM2_OK;
}
