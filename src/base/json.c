/* base/json.c: the strict pull reader. One call of slm2_json_next reads one token; what may follow is kept in
 * j->state, the open containers in j->kind, so nothing recurses and nothing is allocated. Grammar: RFC 8259. */
#include "base/json.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/utf8.h"

/* What the grammar allows next. */
enum {
  WANT_VALUE,        /* at the start, or after ',' in an array */
  WANT_VALUE_OR_END, /* after '[' */
  WANT_KEY_OR_END,   /* after '{' */
  WANT_COLON,        /* after a key */
  WANT_COMMA_OR_END, /* after a value inside a container */
  WANT_NOTHING,      /* after the outermost value */
};

static slm2_status refuse(const slm2_json *j, size_t at, slm2_error *error, const char *why) {
  return slm2_fail(error, SLM2_E_JSON, "json", j->what, j->base + at, "not valid JSON at byte %u: %s", j->base + at, why);
}

void slm2_json_init(slm2_json *j, const char *text, size_t n, const char *what) {
  *j = (slm2_json){.text = text, .n = n, .what = what, .state = WANT_VALUE};
}

static size_t skip_space(const slm2_json *j, size_t at) {
  while (at < j->n && (j->text[at] == ' ' || j->text[at] == '\n' || j->text[at] == '\r' || j->text[at] == '\t')) at++;
  return at;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
/* The four hexadecimal digits at s[0..n); false when there are none. */
static bool hex4(const char *s, size_t n, uint32_t *out) {
  if (n < 4) return false;
  uint32_t v = 0;
  for (int i = 0; i < 4; i++) {
    int d = hex_digit(s[i]);
    if (d < 0) return false;
    v = v << 4 | (uint32_t)d;
  }
  *out = v;
  return true;
}

/* Length of the escape at text[at] == '\\', or 0 with *why. A surrogate must be one half of a pair of escapes. */
static size_t escape_length(const slm2_json *j, size_t at, const char **why) {
  size_t left = j->n - at;
  char c = left < 2 ? '\0' : j->text[at + 1];
  if (c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't') return 2;
  *why = "an unknown escape in a string";
  if (c != 'u') return 0;
  uint32_t high, low;
  *why = "\\u without four hexadecimal digits";
  if (!hex4(j->text + at + 2, left - 2, &high)) return 0;
  if (high < 0xd800 || high > 0xdfff) return 6;
  *why = "a lone surrogate escape";
  if (high > 0xdbff || left < 12 || j->text[at + 6] != '\\' || j->text[at + 7] != 'u') return 0;
  if (!hex4(j->text + at + 8, left - 8, &low) || low < 0xdc00 || low > 0xdfff) return 0;
  return 12;
}

/* The string whose opening quote is at *at; *at moves behind the closing one. */
static slm2_status read_string(const slm2_json *j, size_t *at, slm2_json_token *out, slm2_error *error) {
  size_t i = *at + 1;
  out->offset = *at;
  out->escaped = false;
  while (i < j->n && j->text[i] != '"') {
    uint8_t c = (uint8_t)j->text[i];
    if (c < 0x20) return refuse(j, i, error, "a raw control character in a string");
    if (c == '\\') {
      const char *why;
      size_t n = escape_length(j, i, &why);
      if (n == 0) return refuse(j, i, error, why);
      out->escaped = true;
      i += n;
    } else if (c < 0x80) {
      i++;
    } else {
      uint32_t cp;
      bool valid;
      size_t n = slm2_utf8_next((const uint8_t *)j->text + i, j->n - i, &cp, &valid);
      if (!valid) return refuse(j, i, error, "invalid UTF-8");
      i += n;
    }
  }
  if (i >= j->n) return refuse(j, *at, error, "a string without its closing quote");
  out->raw = j->text + *at + 1;
  out->n_raw = i - *at - 1;
  *at = i + 1;
  return SLM2_OK;
}

static size_t skip_digits(const slm2_json *j, size_t at) {
  while (at < j->n && is_digit(j->text[at])) at++;
  return at;
}

/* End of the number at `at`, or 0 when it breaks the grammar. */
static size_t number_end(const slm2_json *j, size_t at) {
  size_t i = at;
  if (i < j->n && j->text[i] == '-') i++;
  size_t digits = i;
  i = skip_digits(j, i);
  if (i == digits || (j->text[digits] == '0' && i > digits + 1)) return 0;
  if (i < j->n && j->text[i] == '.') {
    size_t fraction = i + 1;
    i = skip_digits(j, fraction);
    if (i == fraction) return 0;
  }
  if (i < j->n && (j->text[i] == 'e' || j->text[i] == 'E')) {
    i++;
    if (i < j->n && (j->text[i] == '+' || j->text[i] == '-')) i++;
    size_t exponent = i;
    i = skip_digits(j, exponent);
    if (i == exponent) return 0;
  }
  return i;
}

/* Whether a word or number may end before text[at]. */
static bool at_border(const slm2_json *j, size_t at) {
  if (at >= j->n) return true;
  char c = j->text[at];
  return c == ',' || c == ']' || c == '}' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static slm2_status read_scalar(const slm2_json *j, size_t *at, slm2_json_token *out, slm2_error *error) {
  static const struct {
    const char *word;
    size_t n;
    slm2_json_type type;
  } words[3] = {{"true", 4, SLM2_JSON_TRUE}, {"false", 5, SLM2_JSON_FALSE}, {"null", 4, SLM2_JSON_NULL}};
  char c = j->text[*at];
  out->offset = *at;
  out->raw = j->text + *at;
  out->escaped = false;
  if (c == '-' || is_digit(c)) {
    size_t end = number_end(j, *at);
    if (end == 0 || !at_border(j, end)) return refuse(j, *at, error, "a malformed number");
    out->type = SLM2_JSON_NUMBER;
    out->n_raw = end - *at;
    *at = end;
    return SLM2_OK;
  }
  for (int i = 0; i < 3; i++) {
    size_t n = words[i].n;
    if (j->n - *at < n || memcmp(j->text + *at, words[i].word, n) != 0 || !at_border(j, *at + n)) continue;
    out->type = words[i].type;
    out->n_raw = n;
    *at += n;
    return SLM2_OK;
  }
  return refuse(j, *at, error, "a value was expected");
}

/* After a whole value: what may come next. */
static uint8_t after_value(uint32_t depth) { return depth == 0 ? WANT_NOTHING : WANT_COMMA_OR_END; }

static slm2_status open_container(slm2_json *j, size_t at, slm2_json_token *out, slm2_error *error) {
  char c = j->text[at];
  if (j->depth == SLM2_JSON_DEPTH) return refuse(j, at, error, "nested deeper than 64 levels");
  *out = (slm2_json_token){c == '{' ? SLM2_JSON_OBJECT : SLM2_JSON_ARRAY, j->text + at, 1, false, at};
  j->kind[j->depth++] = (uint8_t)c;
  j->state = c == '{' ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
  j->at = at + 1;
  return SLM2_OK;
}

static void close_container(slm2_json *j, size_t at, slm2_json_token *out) {
  *out = (slm2_json_token){j->text[at] == '}' ? SLM2_JSON_OBJECT_END : SLM2_JSON_ARRAY_END, j->text + at, 1, false, at};
  j->depth--;
  j->state = after_value(j->depth);
  j->at = at + 1;
}

static slm2_status read_value(slm2_json *j, size_t at, slm2_json_token *out, slm2_error *error) {
  if (at >= j->n) return refuse(j, at, error, j->depth == 0 ? "the text is empty" : "the text ends early");
  if (j->text[at] == '{' || j->text[at] == '[') return open_container(j, at, out, error);
  slm2_json_token t = {.type = SLM2_JSON_STRING};
  if (j->text[at] == '"') SLM2_TRY(read_string(j, &at, &t, error));
  else SLM2_TRY(read_scalar(j, &at, &t, error));
  *out = t;
  j->at = at;
  j->state = after_value(j->depth);
  return SLM2_OK;
}

static slm2_status read_key(slm2_json *j, size_t at, slm2_json_token *out, slm2_error *error) {
  if (at >= j->n) return refuse(j, at, error, "the text ends early");
  if (j->text[at] != '"') return refuse(j, at, error, "a quoted key was expected");
  slm2_json_token t = {.type = SLM2_JSON_KEY};
  SLM2_TRY(read_string(j, &at, &t, error));
  *out = t;
  j->at = at;
  j->state = WANT_COLON;
  return SLM2_OK;
}

/* Inside a container, behind a value: ',' and the next member, or the end. */
static slm2_status read_next_member(slm2_json *j, size_t at, slm2_json_token *out, slm2_error *error) {
  bool object = j->kind[j->depth - 1] == '{';
  if (at >= j->n) return refuse(j, at, error, "the text ends early");
  if (j->text[at] == (object ? '}' : ']')) {
    close_container(j, at, out);
    return SLM2_OK;
  }
  if (j->text[at] != ',') return refuse(j, at, error, object ? "',' or '}' was expected" : "',' or ']' was expected");
  at = skip_space(j, at + 1);
  return object ? read_key(j, at, out, error) : read_value(j, at, out, error);
}

slm2_status slm2_json_next(slm2_json *j, slm2_json_token *out, slm2_error *error) {
  if (j->at == 0 && j->n >= 3 && memcmp(j->text, "\xef\xbb\xbf", 3) == 0) return refuse(j, 0, error, "a byte order mark");
  size_t at = skip_space(j, j->at);
  bool more = at < j->n;
  switch (j->state) {
  case WANT_VALUE_OR_END:
  case WANT_KEY_OR_END:
    if (more && j->text[at] == (j->state == WANT_KEY_OR_END ? '}' : ']')) {
      close_container(j, at, out);
      return SLM2_OK;
    }
    return j->state == WANT_KEY_OR_END ? read_key(j, at, out, error) : read_value(j, at, out, error);
  case WANT_COLON:
    if (!more || j->text[at] != ':') return refuse(j, at, error, "':' was expected after a key");
    return read_value(j, skip_space(j, at + 1), out, error);
  case WANT_COMMA_OR_END: return read_next_member(j, at, out, error);
  case WANT_NOTHING:
    if (more) return refuse(j, at, error, "more text after the end of the value");
    *out = (slm2_json_token){SLM2_JSON_END, j->text + at, 0, false, at};
    return SLM2_OK;
  default: return read_value(j, at, out, error);
  }
}

static const char *type_name(slm2_json_type type) {
  static const char *const names[] = {"the end", "an object", "the end of an object", "an array", "the end of an array", "a key",
                                      "a string", "a number", "true", "false", "null"};
  return names[type];
}

static slm2_status wrong_type(const slm2_json *j, const slm2_json_token *t, const char *wanted, slm2_error *error) {
  return slm2_fail(error, SLM2_E_JSON, "json", j->what, j->base + t->offset, "at byte %u: %s was expected, but %s came",
                   j->base + t->offset, wanted, type_name(t->type));
}

slm2_status slm2_json_expect(slm2_json *j, slm2_json_type type, slm2_json_token *out, slm2_error *error) {
  slm2_json before = *j;
  slm2_json_token t;
  SLM2_TRY(slm2_json_next(j, &t, error));
  if (t.type != type) {
    *j = before;
    return wrong_type(j, &t, type_name(type), error);
  }
  *out = t;
  return SLM2_OK;
}

slm2_status slm2_json_skip(slm2_json *j, const slm2_json_token *first, slm2_error *error) {
  slm2_json inner = *j; /* j moves only when the whole value is good */
  slm2_json_token t = *first;
  if (t.type == SLM2_JSON_KEY) SLM2_TRY(slm2_json_next(&inner, &t, error));
  if (t.type == SLM2_JSON_OBJECT || t.type == SLM2_JSON_ARRAY) {
    for (uint32_t outside = inner.depth - 1; inner.depth > outside;) SLM2_TRY(slm2_json_next(&inner, &t, error));
  }
  *j = inner;
  return SLM2_OK;
}

slm2_status slm2_json_check(const char *text, size_t n, const char *what, slm2_error *error) {
  slm2_json j;
  slm2_json_token t;
  slm2_json_init(&j, text, n, what);
  do SLM2_TRY(slm2_json_next(&j, &t, error));
  while (t.type != SLM2_JSON_END);
  return SLM2_OK;
}

/* Decodes one unit of a checked string at raw[*i]: a plain byte, or an escape as UTF-8. Returns bytes in out. */
static size_t decode_unit(const char *raw, size_t n, size_t *i, uint8_t out[4]) {
  if (raw[*i] != '\\') {
    out[0] = (uint8_t)raw[(*i)++];
    return 1;
  }
  char c = raw[*i + 1];
  *i += 2;
  if (c != 'u') {
    out[0] = (uint8_t)(c == 'b' ? '\b' : c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
    return 1;
  }
  uint32_t cp = 0, low = 0;
  hex4(raw + *i, n - *i, &cp);
  *i += 4;
  if (cp >= 0xd800 && cp <= 0xdbff) {
    hex4(raw + *i + 2, n - *i - 2, &low);
    *i += 6;
    cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
  }
  return slm2_utf8_put(cp, out);
}

size_t slm2_json_decode(const slm2_json_token *t, char *out) {
  size_t n = 0;
  for (size_t i = 0; i < t->n_raw;) {
    uint8_t unit[4];
    size_t k = decode_unit(t->raw, t->n_raw, &i, unit);
    memcpy(out + n, unit, k);
    n += k;
  }
  return n;
}

bool slm2_json_is(const slm2_json_token *t, const char *s) {
  if (t->type != SLM2_JSON_KEY && t->type != SLM2_JSON_STRING) return false;
  for (size_t i = 0; i < t->n_raw;) {
    uint8_t unit[4];
    size_t k = decode_unit(t->raw, t->n_raw, &i, unit);
    for (size_t m = 0; m < k; m++, s++) {
      if (*s == 0 || (uint8_t)*s != unit[m]) return false;
    }
  }
  return *s == 0;
}

static slm2_status bad_value(const slm2_json *j, const slm2_json_token *t, const char *name, const char *why, slm2_error *error) {
  return slm2_fail(error, SLM2_E_JSON, j->what, name, j->base + t->offset, "%s at byte %u %s", name, j->base + t->offset, why);
}

static slm2_status integer(const slm2_json *j, const slm2_json_token *t, const char *name, uint64_t max, uint64_t *out,
                           slm2_error *error) {
  if (t->type != SLM2_JSON_NUMBER) return bad_value(j, t, name, "is not a number", error);
  uint64_t v = 0;
  for (size_t i = 0; i < t->n_raw; i++) {
    if (!is_digit(t->raw[i])) return bad_value(j, t, name, "is not a non-negative integer without fraction or exponent", error);
    unsigned digit = (unsigned)(t->raw[i] - '0');
    if (v > max / 10 || v * 10 > max - digit) {
      return slm2_fail(error, SLM2_E_JSON, j->what, name, j->base + t->offset, "%s at byte %u is larger than %u", name,
                       j->base + t->offset, max);
    }
    v = v * 10 + digit;
  }
  *out = v;
  return SLM2_OK;
}

slm2_status slm2_json_u64(const slm2_json *j, const slm2_json_token *t, const char *name, uint64_t *out, slm2_error *error) {
  return integer(j, t, name, UINT64_MAX, out, error);
}

slm2_status slm2_json_u32(const slm2_json *j, const slm2_json_token *t, const char *name, uint32_t *out, slm2_error *error) {
  uint64_t v = 0;
  SLM2_TRY(integer(j, t, name, UINT32_MAX, &v, error));
  *out = (uint32_t)v;
  return SLM2_OK;
}

slm2_status slm2_json_f64(const slm2_json *j, const slm2_json_token *t, const char *name, double *out, slm2_error *error) {
  double v;
  if (t->type != SLM2_JSON_NUMBER) return bad_value(j, t, name, "is not a number", error);
  if (!slm2_decimal_to_f64(t->raw, t->n_raw, &v) || v - v != 0) return bad_value(j, t, name, "is too large", error);
  *out = v;
  return SLM2_OK;
}

slm2_status slm2_json_bool(const slm2_json *j, const slm2_json_token *t, const char *name, bool *out, slm2_error *error) {
  if (t->type != SLM2_JSON_TRUE && t->type != SLM2_JSON_FALSE) return bad_value(j, t, name, "is neither true nor false", error);
  *out = t->type == SLM2_JSON_TRUE;
  return SLM2_OK;
}

/* The letter of c's two-byte escape, or 0. */
static char brief_escape(uint8_t c) {
  switch (c) {
  case '"': return '"';
  case '\\': return '\\';
  case '\n': return 'n';
  case '\r': return 'r';
  case '\t': return 't';
  case '\b': return 'b';
  case '\f': return 'f';
  default: return 0;
  }
}

size_t slm2_json_escape(const char *s, size_t n, char *out, size_t capacity) {
  size_t need = 0;
  for (size_t i = 0; i < n; i++) {
    uint8_t c = (uint8_t)s[i];
    char unit[6] = {(char)c};
    size_t k = 1;
    char brief = brief_escape(c);
    if (brief != 0) {
      unit[0] = '\\';
      unit[1] = brief;
      k = 2;
    } else if (c < 0x20) {
      memcpy(unit, "\\u00", 4);
      unit[4] = (char)('0' + (c >> 4));
      unit[5] = "0123456789abcdef"[c & 15];
      k = 6;
    }
    if (need <= capacity && k <= capacity - need) memcpy(out + need, unit, k);
    need += k;
  }
  return need;
}
