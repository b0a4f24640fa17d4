/* convert/hf_pipeline.c: is the pipeline of a tokenizer.json the one that src/tokenizer implements? Tables state what
 * every key of every component must be, so a file that asks for anything else is refused by that key's name. */
#include "convert/hf_pipeline.h"
#include "base/bytes.h"
#include "base/error.h"

#define WHAT "tokenizer.json"

const char slm2_qwen_pattern[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                                   "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

typedef struct scan_state {
  slm2_json json;
  slm2_tokenizer_scan out;
} scan_state;

typedef enum rule_kind {
  RULE_TEXT,  /* this text */
  RULE_FALSE,
  RULE_BOOL,  /* either: it does not matter here */
  RULE_NONE,  /* null, "" or 0 */
  RULE_ANY,   /* does not change ids or text */
  RULE_INNER, /* checked by a function that gets the value's first token */
} rule_kind;

typedef struct rule {
  const char *key;
  rule_kind kind;
  bool optional;
  const char *text;
  slm2_status (*inner)(scan_state *s, const slm2_json_token *first, slm2_error *error);
} rule;
#define MAX_RULES 10

static slm2_status refuse(slm2_error *error, const char *path, const char *key, uint64_t at, const char *why) {
  return slm2_fail(error, SLM2_E_UNSUPPORTED, "tokenizer", key, at, WHAT ": %s%s%s %s", path, *path == 0 ? "" : ".", key, why);
}

/* The message shows what came instead of the only text that is supported. */
static slm2_status refuse_text(slm2_error *error, const char *path, const rule *r, const slm2_json_token *t) {
  char found[80];
  size_t n = t->n_raw < sizeof found ? t->n_raw : sizeof found - 1;
  memcpy(found, t->raw, n);
  found[n] = 0;
  return slm2_fail(error, SLM2_E_UNSUPPORTED, "tokenizer", r->key, t->offset, WHAT ": %s.%s is %s; only %s is supported", path,
                   r->key, found, r->text);
}

static slm2_status check_value(scan_state *s, const char *path, const rule *r, slm2_error *error) {
  slm2_json_token t;
  SLM2_TRY(slm2_json_next(&s->json, &t, error));
  switch (r->kind) {
  case RULE_TEXT:
    if (t.type != SLM2_JSON_STRING) return refuse(error, path, r->key, t.offset, "is no text");
    return slm2_json_is(&t, r->text) ? SLM2_OK : refuse_text(error, path, r, &t);
  case RULE_FALSE:
    return t.type == SLM2_JSON_FALSE ? SLM2_OK : refuse(error, path, r->key, t.offset, "is not false; only false is supported");
  case RULE_BOOL:
    if (t.type == SLM2_JSON_TRUE || t.type == SLM2_JSON_FALSE) return SLM2_OK;
    return refuse(error, path, r->key, t.offset, "is neither true nor false");
  case RULE_NONE: {
    bool zero = t.type == SLM2_JSON_NUMBER && (t.n_raw == 1 || t.n_raw == 3) && memcmp(t.raw, "0.0", t.n_raw) == 0;
    bool empty = t.type == SLM2_JSON_STRING && t.n_raw == 0;
    if (t.type == SLM2_JSON_NULL || zero || empty) return SLM2_OK;
    return refuse(error, path, r->key, t.offset, "is not supported");
  }
  case RULE_INNER: return r->inner(s, &t, error);
  default: return slm2_json_skip(&s->json, &t, error);
  }
}

/* An object whose keys are exactly those of the rules. first: its first token. */
static slm2_status check_object(scan_state *s, const slm2_json_token *first, const char *path, const rule *rules, size_t n,
                                slm2_error *error) {
  bool seen[MAX_RULES] = {false};
  slm2_json_token t;
  if (first->type != SLM2_JSON_OBJECT) return refuse(error, "", path, first->offset, "is no object");
  for (;;) {
    SLM2_TRY(slm2_json_next(&s->json, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    size_t i = 0;
    while (i < n && !slm2_json_is(&t, rules[i].key)) i++;
    if (i == n) {
      return slm2_fail_n(error, SLM2_E_UNSUPPORTED, "tokenizer", t.raw, t.n_raw, t.offset, WHAT ": a key of %s is not supported",
                         *path == 0 ? "the file" : path);
    }
    if (seen[i]) return refuse(error, path, rules[i].key, t.offset, "comes twice");
    seen[i] = true;
    SLM2_TRY(check_value(s, path, &rules[i], error));
  }
  for (size_t i = 0; i < n; i++) {
    if (!seen[i] && !rules[i].optional) return refuse(error, path, rules[i].key, t.offset, "is missing");
  }
  return SLM2_OK;
}
#define CHECK_OBJECT(s, first, path, rules, error) check_object(s, first, path, rules, sizeof(rules) / sizeof(rules)[0], error)

/* --- components ------------------------------------------------------------------ */

static slm2_status check_normalizer(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  static const rule rules[] = {{"type", RULE_TEXT, false, "NFC", NULL}};
  return CHECK_OBJECT(s, first, "normalizer", rules, error);
}

static slm2_status check_pattern(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  static const rule rules[] = {{"Regex", RULE_TEXT, false, slm2_qwen_pattern, NULL}};
  return CHECK_OBJECT(s, first, "pre_tokenizer.pattern", rules, error);
}

static slm2_status check_pretokenizers(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  static const rule split[] = {{"type", RULE_TEXT, false, "Split", NULL},
                               {"pattern", RULE_INNER, false, NULL, check_pattern},
                               {"behavior", RULE_TEXT, false, "Isolated", NULL},
                               {"invert", RULE_FALSE, false, NULL, NULL}};
  static const rule bytes[] = {{"type", RULE_TEXT, false, "ByteLevel", NULL},
                               {"add_prefix_space", RULE_FALSE, false, NULL, NULL},
                               {"trim_offsets", RULE_BOOL, true, NULL, NULL},
                               {"use_regex", RULE_FALSE, false, NULL, NULL}};
  slm2_json_token t;
  if (first->type != SLM2_JSON_ARRAY) return refuse(error, "pre_tokenizer", "pretokenizers", first->offset, "is no list");
  SLM2_TRY(slm2_json_next(&s->json, &t, error));
  SLM2_TRY(CHECK_OBJECT(s, &t, "pre_tokenizer", split, error));
  SLM2_TRY(slm2_json_next(&s->json, &t, error));
  SLM2_TRY(CHECK_OBJECT(s, &t, "pre_tokenizer", bytes, error));
  SLM2_TRY(slm2_json_next(&s->json, &t, error));
  return t.type == SLM2_JSON_ARRAY_END
             ? SLM2_OK
             : refuse(error, "pre_tokenizer", "pretokenizers", t.offset, "has more than Split and ByteLevel");
}

static slm2_status check_pre_tokenizer(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  static const rule rules[] = {{"type", RULE_TEXT, false, "Sequence", NULL},
                               {"pretokenizers", RULE_INNER, false, NULL, check_pretokenizers}};
  return CHECK_OBJECT(s, first, "pre_tokenizer", rules, error);
}

static const rule byte_level[] = {{"type", RULE_TEXT, false, "ByteLevel", NULL},
                                  {"add_prefix_space", RULE_BOOL, true, NULL, NULL},
                                  {"trim_offsets", RULE_BOOL, true, NULL, NULL},
                                  {"use_regex", RULE_BOOL, true, NULL, NULL}};

static slm2_status check_decoder(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  return CHECK_OBJECT(s, first, "decoder", byte_level, error);
}

/* ByteLevel here only trims offsets. */
static slm2_status check_post_processor(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  if (first->type == SLM2_JSON_NULL) return SLM2_OK;
  return CHECK_OBJECT(s, first, "post_processor", byte_level, error);
}

/* --- the big parts: counted here, read later --------------------------------------- */

static slm2_status scan_added(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  slm2_json_token t;
  if (first->type != SLM2_JSON_ARRAY) return refuse(error, "", "added_tokens", first->offset, "is no list");
  s->out.added = s->json;
  for (;;) {
    SLM2_TRY(slm2_json_next(&s->json, &t, error));
    if (t.type == SLM2_JSON_ARRAY_END) return SLM2_OK;
    size_t from = t.offset;
    SLM2_TRY(slm2_json_skip(&s->json, &t, error));
    s->out.text_bytes += s->json.at - from;
    s->out.n_added++;
  }
}

static slm2_status scan_vocab(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  slm2_json_token t;
  if (first->type != SLM2_JSON_OBJECT) return refuse(error, "model", "vocab", first->offset, "is no object");
  s->out.vocab = s->json;
  for (;;) {
    SLM2_TRY(slm2_json_next(&s->json, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) return SLM2_OK;
    s->out.text_bytes += t.n_raw;
    s->out.n_vocab++;
    SLM2_TRY(slm2_json_skip(&s->json, &t, error));
  }
}

static slm2_status scan_merges(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  slm2_json_token t;
  if (first->type != SLM2_JSON_ARRAY) return refuse(error, "model", "merges", first->offset, "is no list");
  s->out.merges = s->json;
  for (;;) {
    SLM2_TRY(slm2_json_next(&s->json, &t, error));
    if (t.type == SLM2_JSON_ARRAY_END) return SLM2_OK;
    s->out.n_merges++;
    SLM2_TRY(slm2_json_skip(&s->json, &t, error));
  }
}

static slm2_status check_model(scan_state *s, const slm2_json_token *first, slm2_error *error) {
  static const rule rules[MAX_RULES] = {{"type", RULE_TEXT, false, "BPE", NULL},
                                        {"dropout", RULE_NONE, true, NULL, NULL},
                                        {"unk_token", RULE_NONE, true, NULL, NULL},
                                        {"continuing_subword_prefix", RULE_NONE, true, NULL, NULL},
                                        {"end_of_word_suffix", RULE_NONE, true, NULL, NULL},
                                        {"fuse_unk", RULE_BOOL, true, NULL, NULL}, /* without unk_token it does nothing */
                                        {"byte_fallback", RULE_FALSE, true, NULL, NULL},
                                        {"ignore_merges", RULE_FALSE, true, NULL, NULL},
                                        {"vocab", RULE_INNER, false, NULL, scan_vocab},
                                        {"merges", RULE_INNER, false, NULL, scan_merges}};
  return CHECK_OBJECT(s, first, "model", rules, error);
}

slm2_status slm2_tokenizer_scan_json(const char *json, size_t n, slm2_tokenizer_scan *out, slm2_error *error) {
  static const rule rules[] = {{"version", RULE_ANY, true, NULL, NULL},
                               {"truncation", RULE_ANY, true, NULL, NULL}, /* asked for per call, not part of the model */
                               {"padding", RULE_ANY, true, NULL, NULL},
                               {"added_tokens", RULE_INNER, true, NULL, scan_added},
                               {"normalizer", RULE_INNER, false, NULL, check_normalizer},
                               {"pre_tokenizer", RULE_INNER, false, NULL, check_pre_tokenizer},
                               {"post_processor", RULE_INNER, true, NULL, check_post_processor},
                               {"decoder", RULE_INNER, false, NULL, check_decoder},
                               {"model", RULE_INNER, false, NULL, check_model}};
  scan_state s = {.out = {.n_added = 0}};
  slm2_json_token t;
  if (n > UINT32_MAX)
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "tokenizer", WHAT, SLM2_NO_OFFSET, WHAT ": %u bytes long", (uint64_t)n);
  slm2_json_init(&s.json, json, n, WHAT);
  SLM2_TRY(slm2_json_next(&s.json, &t, error));
  SLM2_TRY(CHECK_OBJECT(&s, &t, "", rules, error));
  SLM2_TRY(slm2_json_expect(&s.json, SLM2_JSON_END, &t, error));
  *out = s.out;
  return SLM2_OK;
}
