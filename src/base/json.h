/* base/json.h: a strict (RFC 8259) pull reader without allocation or recursion. It serves the
 * format's header, Hugging Face configs, tokenizer.json and chat messages: one JSON border for all.
 *
 *   slm2_json j; slm2_json_init(&j, text, n, "config.json");
 *   SLM2_TRY(slm2_json_next(&j, &tok, error)); ...
 *
 * Refused with offset and reason: anything outside the grammar, invalid UTF-8, a byte order mark, lone
 * surrogate escapes, raw control bytes in strings, numbers like 01 or +1, trailing commas or text, nesting
 * deeper than SLM2_JSON_DEPTH. Duplicate keys are the consumer's matter.
 */
#ifndef SLM2_BASE_JSON_H
#define SLM2_BASE_JSON_H

#include <stdbool.h>
#include "slm2/status.h"

#define SLM2_JSON_DEPTH 64u

typedef enum slm2_json_type {
  SLM2_JSON_END = 0, /* the whole text is consumed */
  SLM2_JSON_OBJECT, SLM2_JSON_OBJECT_END,
  SLM2_JSON_ARRAY, SLM2_JSON_ARRAY_END,
  SLM2_JSON_KEY, /* an object's member name; its value is the next token */
  SLM2_JSON_STRING, SLM2_JSON_NUMBER, SLM2_JSON_TRUE, SLM2_JSON_FALSE, SLM2_JSON_NULL,
} slm2_json_type;

typedef struct slm2_json_token {
  slm2_json_type type;
  const char *raw; /* KEY, STRING: between the quotes, escapes undecoded. NUMBER: its text. */
  size_t n_raw;
  bool escaped;    /* raw contains a backslash */
  size_t offset;   /* of the token's first byte in text (the quote of a string) */
} slm2_json_token;

typedef struct slm2_json {
  const char *text;
  size_t n, at;
  const char *what;              /* names the text in errors */
  uint64_t base;                 /* added to offsets in errors: where text begins in its file; 0 after init */
  uint32_t depth;
  uint8_t state;                 /* what the grammar allows next */
  uint8_t kind[SLM2_JSON_DEPTH]; /* '{' or '[' per open level */
} slm2_json;

void slm2_json_init(slm2_json *j, const char *text, size_t n, const char *what);
SLM2_NODISCARD slm2_status slm2_json_next(slm2_json *j, slm2_json_token *out, slm2_error *error);
/* Next token, which must be of this type; else SLM2_E_JSON naming both types. */
SLM2_NODISCARD slm2_status slm2_json_expect(slm2_json *j, slm2_json_type type, slm2_json_token *out, slm2_error *error);
/* Skips one whole value whose first token was just read (or, after a KEY, reads and skips its value). */
SLM2_NODISCARD slm2_status slm2_json_skip(slm2_json *j, const slm2_json_token *first, slm2_error *error);
/* Checks a whole text. */
SLM2_NODISCARD slm2_status slm2_json_check(const char *text, size_t n, const char *what, slm2_error *error);

/* Decodes a KEY or STRING token into out (its UTF-8 is at most n_raw bytes). Returns the length. */
size_t slm2_json_decode(const slm2_json_token *t, char *out);
/* Whether the decoded KEY or STRING equals the NUL-terminated s. */
bool slm2_json_is(const slm2_json_token *t, const char *s);
/* Non-negative integer without fraction or exponent that fits; else SLM2_E_JSON naming `name`. */
SLM2_NODISCARD slm2_status slm2_json_u64(const slm2_json *j, const slm2_json_token *t, const char *name, uint64_t *out,
                                         slm2_error *error);
SLM2_NODISCARD slm2_status slm2_json_u32(const slm2_json *j, const slm2_json_token *t, const char *name, uint32_t *out,
                                         slm2_error *error);
/* Nearest f64 of a NUMBER token (base/decimal.h); refuses overflow to infinity. */
SLM2_NODISCARD slm2_status slm2_json_f64(const slm2_json *j, const slm2_json_token *t, const char *name, double *out,
                                         slm2_error *error);
SLM2_NODISCARD slm2_status slm2_json_bool(const slm2_json *j, const slm2_json_token *t, const char *name, bool *out,
                                          slm2_error *error);

/* Writes s[0..n) (valid UTF-8) as the inside of a JSON string: escapes ", \, and control bytes like
 * Python's json.dumps(ensure_ascii=False). Returns the length needed; writes only while it fits. */
size_t slm2_json_escape(const char *s, size_t n, char *out, size_t capacity);

#endif
