/* convert/hf_tokenizer.c: the vocabulary, merges and added tokens of a tokenizer.json to a tokenizer section. */
#include "convert/convert.h"
#include "convert/hf_pipeline.h"
#include "convert/section.h"
#include "convert/text.h"
#include "base/error.h"
#include "base/sha256.h"
#include "tokenizer/section.h"

#define WHAT "tokenizer.json"
/* A token's bytes as symbols in JSON: at most six characters (\uXXXX) each. */
#define MAX_TOKEN_TEXT (6 * SLM2_MAX_TOKEN_BYTES)

/* A token while its bytes are still text. n_text 0: no token has this id yet. */
typedef struct token_text {
  uint32_t at; /* of the text behind its quote */
  uint16_t n_text;
  bool escaped, added, special;
  bool listed; /* an added token that the vocabulary lists too, as trainers do */
} token_text;

typedef struct job {
  const char *json;
  slm2_tokenizer_scan scan;
  uint32_t n_tokens;
  /* scratch */
  token_text *tokens; /* [n_vocab + n_added] */
  char *text;         /* [2][MAX_TOKEN_TEXT], decoded JSON strings: a token, or both sides of a merge */
  slm2_section_builder builder;
} job;

static slm2_status refuse(slm2_error *error, slm2_status code, const char *name, uint64_t at, const char *why, uint64_t a,
                          uint64_t b) {
  return slm2_fail(error, code, "tokenizer", name, at, why, a, b);
}
static slm2_status refuse_token(slm2_error *error, const job *w, uint32_t id, const char *why, uint64_t a, uint64_t b) {
  const token_text *t = &w->tokens[id];
  return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", w->json + t->at, t->n_text, t->at, why, a, b);
}

/* --- memory ----------------------------------------------------------------------------- */

static void place(job *w, slm2_arena *a) {
  uint32_t n = w->scan.n_vocab + w->scan.n_added;
  w->tokens = slm2_arena_take(a, n, sizeof *w->tokens);
  w->text = slm2_arena_take(a, 2 * MAX_TOKEN_TEXT, 1);
  slm2_section_place(&w->builder, n, w->scan.n_merges, a);
}

static slm2_status check_counts(const slm2_tokenizer_scan *s, slm2_error *error) {
  return slm2_section_check(WHAT, s->n_vocab, s->n_merges, s->n_added, error);
}

static uint64_t section_capacity(const slm2_tokenizer_scan *s) {
  return slm2_section_capacity((uint64_t)s->n_vocab + s->n_added, s->n_merges, s->n_added, s->text_bytes);
}

slm2_status slm2_tokenizer_convert_bytes(const char *json, size_t n, size_t *scratch_bytes, size_t *capacity, slm2_error *error) {
  job w = {.json = json};
  slm2_arena arena;
  SLM2_TRY(slm2_tokenizer_scan_json(json, n, &w.scan, error));
  SLM2_TRY(check_counts(&w.scan, error));
  slm2_arena_init(&arena, NULL, 0);
  place(&w, &arena);
  uint64_t section = section_capacity(&w.scan);
  if (arena.failed || arena.used > SIZE_MAX || section > SIZE_MAX) {
    return refuse(error, SLM2_E_MEMORY, "", SLM2_NO_OFFSET, WHAT ": %u bytes of scratch and %u of output do not fit this machine",
                  arena.used, section);
  }
  *scratch_bytes = (size_t)arena.used;
  *capacity = (size_t)section;
  return SLM2_OK;
}

/* --- tokens: first where their texts are, then their bytes in the order of ids ------------------ */

static slm2_status set_token(job *w, const slm2_json_token *text, uint32_t id, token_text value, slm2_error *error) {
  uint32_t n = w->scan.n_vocab + w->scan.n_added;
  if (text->n_raw == 0 || text->n_raw > MAX_TOKEN_TEXT) {
    return refuse(error, SLM2_E_FORMAT, "", text->offset, WHAT ": the text of token %u has %u bytes", id, text->n_raw);
  }
  if (id >= n) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", text->raw, text->n_raw, text->offset,
                       WHAT ": id %u, but there are only %u tokens; ids have no gaps", (uint64_t)id, (uint64_t)n);
  }
  token_text *t = &w->tokens[id];
  value.at = (uint32_t)(text->raw - w->json);
  value.n_text = (uint16_t)text->n_raw;
  value.escaped = text->escaped;
  if (t->n_text != 0) {
    bool same = t->n_text == value.n_text && memcmp(w->json + t->at, text->raw, text->n_raw) == 0;
    if (!t->added || value.added || t->listed || !same)
      return refuse_token(error, w, id, WHAT ": two tokens have the id %u", id, 0);
    t->listed = true;
    w->n_tokens--;
    return SLM2_OK;
  }
  *t = value;
  return SLM2_OK;
}

static slm2_status read_added_token(job *w, slm2_json *j, slm2_error *error) {
  enum { ID = 1, CONTENT = 2, SPECIAL = 4, ALL = 7 };
  static const char *const off[] = {"lstrip", "rstrip", "single_word", "normalized"};
  slm2_json_token t, content = {.type = SLM2_JSON_END};
  uint32_t id = 0;
  unsigned seen = 0;
  token_text value = {.added = true};
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    unsigned key = slm2_json_is(&t, "id")        ? ID
                   : slm2_json_is(&t, "content") ? CONTENT
                   : slm2_json_is(&t, "special") ? SPECIAL
                                                 : 0;
    for (unsigned i = 0; i < 4; i++) key |= slm2_json_is(&t, off[i]) ? 8u << i : 0;
    if (key == 0 || (seen & key) != 0) {
      return slm2_fail_n(error, SLM2_E_UNSUPPORTED, "tokenizer", t.raw, t.n_raw, t.offset, WHAT ": %s key in an added token",
                         key == 0 ? "an unknown" : "a repeated");
    }
    seen |= key;
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (key == ID) {
      SLM2_TRY(slm2_json_u32(j, &t, "id", &id, error));
    } else if (key == CONTENT && t.type == SLM2_JSON_STRING) {
      content = t;
    } else if (key == CONTENT) {
      return refuse(error, SLM2_E_JSON, "content", t.offset, WHAT ": the content of an added token is no text", 0, 0);
    } else if (key == SPECIAL) {
      SLM2_TRY(slm2_json_bool(j, &t, "special", &value.special, error));
    } else if (t.type != SLM2_JSON_FALSE) {
      return refuse(error, SLM2_E_UNSUPPORTED, off[key == 8 ? 0 : key == 16 ? 1 : key == 32 ? 2 : 3], t.offset,
                    WHAT ": an added token has a flag of lstrip, rstrip, single_word, normalized that is not false", 0, 0);
    }
  }
  if ((seen & ALL) != ALL)
    return refuse(error, SLM2_E_JSON, "added_tokens", t.offset, WHAT ": an added token lacks id, content or special", 0, 0);
  return set_token(w, &content, id, value, error);
}

static slm2_status read_tokens(job *w, slm2_error *error) {
  slm2_json j = w->scan.added;
  slm2_json_token t, key;
  for (uint32_t i = 0; i < w->scan.n_added; i++) {
    SLM2_TRY(slm2_json_next(&j, &t, error));
    if (t.type != SLM2_JSON_OBJECT)
      return refuse(error, SLM2_E_JSON, "added_tokens", t.offset, WHAT ": added token %u is no object", i, 0);
    SLM2_TRY(read_added_token(w, &j, error));
  }
  j = w->scan.vocab;
  for (uint32_t i = 0; i < w->scan.n_vocab; i++) {
    uint32_t id;
    SLM2_TRY(slm2_json_next(&j, &key, error));
    SLM2_TRY(slm2_json_next(&j, &t, error));
    SLM2_TRY(slm2_json_u32(&j, &t, "vocab", &id, error));
    SLM2_TRY(set_token(w, &key, id, (token_text){.added = false}, error));
  }
  return SLM2_OK;
}

/* A JSON string without its escapes: itself, or decoded into half 0 or 1 of w->text. */
static const char *plain_text(const job *w, uint32_t half, const char *raw, size_t n_raw, bool escaped, size_t *n) {
  *n = n_raw;
  if (!escaped) return raw;
  slm2_json_token t = {.type = SLM2_JSON_STRING, .raw = raw, .n_raw = n_raw, .escaped = true};
  char *out = w->text + half * (size_t)MAX_TOKEN_TEXT;
  *n = slm2_json_decode(&t, out);
  return out;
}

static slm2_status write_token(job *w, uint32_t id, slm2_error *error) {
  const token_text *t = &w->tokens[id];
  if (t->n_text == 0)
    return refuse(error, SLM2_E_FORMAT, "vocab", SLM2_NO_OFFSET, WHAT ": no token has id %u; ids 0..%u must all be there", id,
                  w->n_tokens - 1);
  slm2_section_text text = {.name = w->json + t->at, .n_name = t->n_text, .at = t->at};
  text.text = plain_text(w, 0, text.name, t->n_text, t->escaped, &text.n);
  return slm2_section_token(&w->builder, t->special ? SLM2_TOKEN_SPECIAL : t->added ? SLM2_TOKEN_ADDED : SLM2_TOKEN_NORMAL, &text,
                            error);
}

/* --- merges --------------------------------------------------------------------------------- */

/* "left right" in old files, ["left", "right"] in new ones. */
static slm2_status write_merge(job *w, slm2_json *j, uint32_t rank, slm2_error *error) {
  slm2_json_token t;
  const char *text[2];
  size_t n[2];
  SLM2_TRY(slm2_json_next(j, &t, error));
  uint64_t at = t.offset;
  bool pair = t.type == SLM2_JSON_ARRAY;
  if (!pair && t.type != SLM2_JSON_STRING)
    return refuse(error, SLM2_E_JSON, "merges", at, WHAT ": merge %u is neither a text nor a pair", rank, 0);
  for (uint32_t side = 0; side < (pair ? 2u : 1u); side++) {
    if (pair) SLM2_TRY(slm2_json_expect(j, SLM2_JSON_STRING, &t, error));
    if (t.n_raw > MAX_TOKEN_TEXT)
      return refuse(error, SLM2_E_FORMAT, "merges", at, WHAT ": merge %u has %u bytes", rank, t.n_raw);
    text[side] = plain_text(w, side, t.raw, t.n_raw, t.escaped, &n[side]);
  }
  if (pair) {
    SLM2_TRY(slm2_json_expect(j, SLM2_JSON_ARRAY_END, &t, error));
    return slm2_section_merge(&w->builder, text[0], n[0], text[1], n[1], at, error);
  }
  return slm2_section_merge_line(&w->builder, text[0], n[0], at, error);
}

/* --- all ------------------------------------------------------------------------------------- */

slm2_status slm2_tokenizer_convert(const char *json, size_t n, void *scratch, size_t scratch_bytes, uint8_t *section,
                                   size_t capacity, size_t *section_bytes, slm2_error *error) {
  job w = {.json = json};
  slm2_arena arena;
  uint8_t digest[32];
  if (!is_aligned(scratch))
    return refuse(error, SLM2_E_ARGUMENT, "scratch", SLM2_NO_OFFSET, "scratch is not 16-byte aligned", 0, 0);
  SLM2_TRY(slm2_tokenizer_scan_json(json, n, &w.scan, error));
  SLM2_TRY(check_counts(&w.scan, error));
  slm2_arena_init(&arena, scratch, scratch_bytes);
  place(&w, &arena);
  if (arena.failed || capacity < section_capacity(&w.scan)) {
    return refuse(error, SLM2_E_MEMORY, "", SLM2_NO_OFFSET, WHAT ": %u bytes of scratch or %u of output are too few",
                  scratch_bytes, capacity);
  }
  memset(w.tokens, 0, ((size_t)w.scan.n_vocab + w.scan.n_added) * sizeof *w.tokens);
  slm2_sha256_of(json, n, digest);
  w.n_tokens = w.scan.n_vocab + w.scan.n_added;
  SLM2_TRY(read_tokens(&w, error));
  slm2_section_begin(&w.builder, WHAT, digest, w.n_tokens, w.scan.n_merges, w.scan.n_added, section);
  for (uint32_t id = 0; id < w.n_tokens; id++) SLM2_TRY(write_token(&w, id, error));
  SLM2_TRY(slm2_section_tokens_end(&w.builder, error));
  slm2_json merges = w.scan.merges;
  for (uint32_t rank = 0; rank < w.scan.n_merges; rank++) SLM2_TRY(write_merge(&w, &merges, rank, error));
  *section_bytes = slm2_section_end(&w.builder);
  return SLM2_OK;
}
