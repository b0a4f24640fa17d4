/* tests/unit/test_json.c: the strict pull reader: a table of accepted and refused texts by the parts of RFC 8259,
 * tokens, decoding, typed values, every prefix and many mutations; where jansson is installed, its verdict too. */
#include "base/json.h"
#include "base/error.h"
#include "tests/test.h"
#ifdef SLM2_HAVE_JANSSON
#include <jansson.h>
#endif

typedef struct text_case {
  const char *text;
  size_t n;
} text_case;
#define T(s) {s, sizeof(s) - 1}

static const text_case accepted[] = {
  T("0"), T("-0"), T("1"), T("-1"), T("10"), T("1.5"), T("-0.0"), T("1e5"), T("1E+5"), T("1e-5"), T("0e0"),
  T("123456789012345678901234567890"),
  T("1.0000000000000000000000000000000000000000001"), T("1e400"), T("true"), T("false"), T("null"), T(" \t\r\n0 \t\r\n"),
  T("\"\""), T("\"a\""), T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), T("\"\\u0000\""), T("\"\\u00e9\\u20AC\""),
  T("\"\\ud83c\\udf4e\""), T("\"\\uD800\\uDC00\""),
  T("\"\\uffff\\ufffe\""), T("\"\x7f\""), T("\"caf\xc3\xa9\""), T("\"\xf4\x8f\xbf\xbf\""), T("\"\xef\xbb\xbf\""),
  T("\"\xe2\x80\xa8\""), T("\"\\u2028\""), T("\"/\""),
  T("[]"), T("[ ]"), T("[1]"), T("[1,2]"), T("[ 1 , 2 ]"), T("[[],[[]],{}]"), T("[null,true,false,\"\",0,{},[]]"),
  T("{}"), T("{ }"), T("{\"a\":1}"), T("{ \"a\" : 1 , \"b\" : [ ] }"), T("{\"\":0}"), T("{\"a\":1,\"a\":2}"),
  T("{\"a\\u0000b\":1}"), T("{\"a\":{\"b\":{\"c\":[]}}}"),
};

static const text_case refused[] = {
  /* nothing, or too much */
  T(""), T(" "), T("\n"), T("0 0"), T("[] []"), T("{}}"), T("[]]"), T("{}x"), T("1,"), T(",1"), T("\"a\" \"b\""),
  T("[]\0"), T("\0"), T("[1]//c"), T("/**/1"),
  T("\xef\xbb\xbf{}"), T("\xef\xbb\xbf"), T("\xff\xfe{\0}\0"), T("\xc2\xa0" "1"), T("\f1"), T("\v1"), T("\xe2\x81\xa0[]"),
  /* numbers */
  T("01"), T("-01"), T("00"), T("-"), T("+1"), T("+"), T(".5"), T("-.5"), T("5."), T("5.e1"), T("1e"), T("1e+"), T("1e-"),
  T("1e1.5"), T("1.5.5"), T("0x10"), T("1_000"),
  T("Infinity"), T("-Infinity"), T("NaN"), T("nan"), T("1a"), T("1\"\""), T("--1"), T("1-"), T("1+1"), T("0e"),
  T("\xef\xbc\x91"), T("[1\0]"), T("[-]"), T("[1e]"), T("[0 1]"),
  /* words */
  T("True"), T("TRUE"), T("tru"), T("truee"), T("nul"), T("nullx"), T("undefined"), T("fals"), T("true1"),
  T("[true false]"), T("t"), T("trueX"), T("null\"\""),
  /* strings */
  T("\""), T("\"a"), T("a\""), T("'a'"), T("\"\\\""), T("\"\\"), T("\"\\x41\""), T("\"\\a\""), T("\"\\'\""), T("\"\\0\""),
  T("\"\\u\""), T("\"\\u1\""), T("\"\\u12\""), T("\"\\u123\""),
  T("\"\\u123"), T("\"\\u00g0\""), T("\"\\U0041\""), T("\"\\u 041\""), T("\"\\u+041\""), T("\"\\ud800\""),
  T("\"\\udc00\""), T("\"\\ud800x\""), T("\"\\ud800\\n\""), T("\"\\ud800\\u0041\""),
  T("\"\\ud800\\ud800\""), T("\"\\udc00\\ud800\""), T("\"\\ud800\\"), T("\"\\ud800\\udc0"), T("\"\\ud800\\udc0g\""),
  T("\"\t\""), T("\"\n\""), T("\"\0\""), T("\"\x1f\""), T("\"\\\n\""),
  T("\"\xff\""), T("\"\x80\""), T("\"\xc0\x80\""), T("\"\xed\xa0\x80\""), T("\"\xf4\x90\x80\x80\""), T("\"\xe2\x82\""),
  T("\"\xe2\x82"), T("\"\xf0\x9f\x8d\""), T("\"\\\xc3\xa9\""), T("\"\\u\xc3\xa9\""),
  /* arrays */
  T("["), T("]"), T("[1"), T("[1,"), T("[,"), T("[,1]"), T("[1,]"), T("[1,,2]"), T("[1 2]"), T("[1:2]"), T("[}"),
  T("[1}"), T("[\"a\":1]"), T("[[]"), T("[]["), T("[;]"), T("[\"a"),
  /* objects */
  T("{"), T("}"), T("{\"a\""), T("{\"a\":"), T("{\"a\":1"), T("{\"a\":1,"), T("{\"a\":1,}"), T("{,}"), T("{\"a\"}"),
  T("{\"a\",1}"), T("{\"a\" 1}"), T("{\"a\"::1}"), T("{:1}"), T("{a:1}"),
  T("{1:1}"), T("{'a':1}"), T("{null:1}"), T("{[]:1}"), T("{{}:1}"), T("{\"a\":1 \"b\":2}"), T("{\"a\":1;\"b\":2}"),
  T("{\"a\":1,,\"b\":2}"), T("{]"), T("{\"a\":1]"), T("{\"a\":}"), T("{\"a\":1:2}"),
  T("{\"a\":1}\"b\""), T("{\"a\":[1,{\"b\":2]}"), T("{\"\\ud800\":1}"), T("{\"a\n\":1}"),
};

static slm2_status verdict(const char *text, size_t n, slm2_error *e) {
  char *exact = malloc(n + (n == 0)); /* exactly n bytes: the sanitizer sees any read beyond */
  memcpy(exact, text, n);
  slm2_status s = slm2_json_check(exact, n, "text", e);
  free(exact);
  return s;
}

static void test_tables(void) {
  slm2_error e;
  for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
    CHECK_CASE(verdict(accepted[i].text, accepted[i].n, &e) == SLM2_OK, accepted[i].text);
  }
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    memset(&e, 0, sizeof e);
    CHECK_CASE(verdict(refused[i].text, refused[i].n, &e) == SLM2_E_JSON, refused[i].text);
    CHECK_CASE(e.code == SLM2_E_JSON && e.offset <= refused[i].n && e.message[0] != 0 && strcmp(e.name, "text") == 0,
      refused[i].text);
  }
}

static void test_depth(void) {
  char text[200];
  slm2_error e;
  memset(text, '[', 64);
  memset(text + 64, ']', 64);
  CHECK(verdict(text, 128, &e) == SLM2_OK);
  memset(text, '[', 65);
  memset(text + 65, ']', 65);
  CHECK(verdict(text, 130, &e) == SLM2_E_JSON && e.offset == 64 && strstr(e.message, "64 levels") != NULL);
}

static void test_offsets(void) {
  static const struct {
    const char *text;
    uint64_t offset;
    const char *why;
  } cases[] = {
    {"{\"a\":01}", 5, "number"}, {"[1,]", 3, "value"}, {"{\"a\" 1}", 5, "':'"}, {"[1 2]", 3, "','"},
    {"{\"a\":1,}", 7, "key"}, {"[\"ab\tc\"]", 4, "control"},
    {"[\"ab\\q\"]", 4, "escape"}, {"[\"\\ud800\"]", 2, "surrogate"}, {"[1] x", 4, "more text"},
    {"\xef\xbb\xbf[]", 0, "byte order mark"}, {"[\"a\xff\"]", 3, "UTF-8"},
    {"[\"abc", 1, "closing quote"}, {"[1", 2, "ends early"}, {"  ", 2, "empty"}, {"{\"a\"", 4, "':'"},
    {"{\"a\":1", 6, "ends early"}, {"[\"\\u12\"]", 2, "hexadecimal"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_error e;
    CHECK_CASE(verdict(cases[i].text, strlen(cases[i].text), &e) == SLM2_E_JSON && e.offset == cases[i].offset, cases[i].text);
    CHECK_CASE(strstr(e.message, cases[i].why) != NULL && strstr(e.message, "at byte ") != NULL, cases[i].text);
  }
}

/* The tokens of one text, written as letters, with their raw text. */
static void test_tokens(void) {
  static const char text[] = " {\"a\\n\": [1.5e3 , \"x\\u0041\", true,false,null, {}], \"b\":\"\"} ";
  static const struct {
    slm2_json_type type;
    const char *raw;
    size_t offset;
    bool escaped;
  } want[] = {
    {SLM2_JSON_OBJECT, "{", 1, false}, {SLM2_JSON_KEY, "a\\n", 2, true}, {SLM2_JSON_ARRAY, "[", 9, false},
    {SLM2_JSON_NUMBER, "1.5e3", 10, false},
    {SLM2_JSON_STRING, "x\\u0041", 18, true}, {SLM2_JSON_TRUE, "true", 29, false},
    {SLM2_JSON_FALSE, "false", 34, false}, {SLM2_JSON_NULL, "null", 40, false},
    {SLM2_JSON_OBJECT, "{", 46, false}, {SLM2_JSON_OBJECT_END, "}", 47, false}, {SLM2_JSON_ARRAY_END, "]", 48, false},
    {SLM2_JSON_KEY, "b", 51, false},
    {SLM2_JSON_STRING, "", 55, false}, {SLM2_JSON_OBJECT_END, "}", 57, false}, {SLM2_JSON_END, "", 59, false},
    {SLM2_JSON_END, "", 59, false},
  };
  slm2_json j;
  slm2_error e;
  slm2_json_init(&j, text, sizeof text - 1, "text");
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    slm2_json_token t;
    CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK);
    CHECK_CASE(t.type == want[i].type && t.n_raw == strlen(want[i].raw) && memcmp(t.raw, want[i].raw, t.n_raw) == 0, want[i].raw);
    CHECK_CASE(t.offset == want[i].offset && t.escaped == want[i].escaped, want[i].raw);
  }
}

static void test_decode(void) {
  static const struct {
    text_case in, out;
  } cases[] = {
    {T("\"plain\""), T("plain")}, {T("\"\""), T("")}, {T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), T("\"\\/\b\f\n\r\t")},
    {T("\"a\\u0000b\""), T("a\0b")},
    {T("\"\\u0041\\u00e9\\u20AC\\uFFFF\""), T("A\xc3\xa9\xe2\x82\xac\xef\xbf\xbf")},
    {T("\"\\ud83c\\udf4e\""), T("\xf0\x9f\x8d\x8e")},
    {T("\"\\uD800\\uDC00\\uDBFF\\uDFFF\""), T("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
    {T("\"\xf0\x9f\x8d\x8e\\\\u0041\""), T("\xf0\x9f\x8d\x8e\\u0041")},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_json j;
    slm2_json_token t;
    slm2_error e;
    slm2_json_init(&j, cases[i].in.text, cases[i].in.n, "text");
    CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && t.type == SLM2_JSON_STRING);
    char *out = malloc(t.n_raw + 1);
    size_t n = slm2_json_decode(&t, out);
    CHECK_CASE(n == cases[i].out.n && memcmp(out, cases[i].out.text, n) == 0, cases[i].in.text);
    CHECK_CASE(slm2_json_is(&t, cases[i].out.text) == (memchr(cases[i].out.text, 0, cases[i].out.n) == NULL), cases[i].in.text);
    CHECK_CASE(!slm2_json_is(&t, "plainer") && !slm2_json_is(&t, "plai") && !slm2_json_is(&t, "a"), cases[i].in.text);
    free(out);
  }
  slm2_json_token number = {SLM2_JSON_NUMBER, "1", 1, false, 0};
  CHECK(!slm2_json_is(&number, "1"));
}

static void test_integers(void) {
  static const struct {
    const char *text;
    bool u32_ok, u64_ok;
    uint64_t value;
  } cases[] = {
    {"0", true, true, 0}, {"7", true, true, 7}, {"4294967295", true, true, UINT32_MAX}, {"4294967296", false, true, 4294967296u},
    {"18446744073709551615", false, true, UINT64_MAX}, {"18446744073709551616", false, false, 0},
    {"18446744073709551620", false, false, 0},
    {"99999999999999999999999", false, false, 0}, {"-0", false, false, 0}, {"-1", false, false, 0},
    {"1.0", false, false, 0}, {"1e3", false, false, 0},
    {"\"1\"", false, false, 0}, {"true", false, false, 0}, {"null", false, false, 0}, {"[]", false, false, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_json j;
    slm2_json_token t;
    slm2_error e;
    uint64_t v64 = 77;
    uint32_t v32 = 77;
    slm2_json_init(&j, cases[i].text, strlen(cases[i].text), "text");
    CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK);
    CHECK_CASE(slm2_json_u64(&j, &t, "size", &v64, &e) == (cases[i].u64_ok ? SLM2_OK : SLM2_E_JSON), cases[i].text);
    CHECK_CASE(v64 == (cases[i].u64_ok ? cases[i].value : 77), cases[i].text);
    if (!cases[i].u64_ok) CHECK_CASE(strcmp(e.name, "size") == 0 && strstr(e.message, "size at byte 0") != NULL, cases[i].text);
    CHECK_CASE(slm2_json_u32(&j, &t, "size", &v32, &e) == (cases[i].u32_ok ? SLM2_OK : SLM2_E_JSON), cases[i].text);
    CHECK_CASE(v32 == (cases[i].u32_ok ? cases[i].value : 77), cases[i].text);
  }
}

static void test_other_values(void) {
  static const char text[] = "[0.1,1e309,-1e309,true,false,\"x\",1e-400]";
  slm2_json j;
  slm2_json_token t;
  slm2_error e;
  double v = 0;
  bool b = false;
  slm2_json_init(&j, text, sizeof text - 1, "text");
  CHECK(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, &e) == SLM2_E_JSON && strstr(e.message,
    "an object was expected, but an array came") != NULL);
  CHECK(slm2_json_expect(&j, SLM2_JSON_ARRAY, &t, &e) == SLM2_OK); /* the refusal consumed nothing */
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_f64(&j, &t, "t", &v, &e) == SLM2_OK && v == 0.1);
  CHECK(slm2_json_bool(&j, &t, "t", &b, &e) == SLM2_E_JSON);
  for (int i = 0; i < 2; i++) CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_f64(&j, &t, "t", &v,
    &e) == SLM2_E_JSON && v == 0.1);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_bool(&j, &t, "t", &b, &e) == SLM2_OK && b);
  CHECK(slm2_json_f64(&j, &t, "t", &v, &e) == SLM2_E_JSON);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_bool(&j, &t, "t", &b, &e) == SLM2_OK && !b);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_f64(&j, &t, "t", &v, &e) == SLM2_E_JSON);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_f64(&j, &t, "t", &v, &e) == SLM2_OK && v == 0);
}

/* A text that begins at byte 8 of its file is refused with offsets in the file. */
static void test_base(void) {
  slm2_json j;
  slm2_json_token t;
  slm2_error e;
  uint64_t v;
  slm2_json_init(&j, "[-1,x]", 6, "text");
  j.base = 8;
  CHECK(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, &e) == SLM2_E_JSON && e.offset == 8 && strstr(e.message, "at byte 8") != NULL);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_next(&j, &t, &e) == SLM2_OK && t.offset == 1);
  CHECK(slm2_json_u64(&j, &t, "v", &v, &e) == SLM2_E_JSON && e.offset == 9 && strstr(e.message, "at byte 9") != NULL);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_E_JSON && e.offset == 12 && strstr(e.message, "at byte 12") != NULL);
}

static void test_skip(void) {
  static const char text[] = "{\"a\":{\"b\":[1,[2,{\"c\":3}]]},\"d\":4,\"e\":[5,[6]],\"f\":7}";
  slm2_json j;
  slm2_json_token t;
  slm2_error e;
  slm2_json_init(&j, text, sizeof text - 1, "text");
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_is(&t, "a") && slm2_json_skip(&j, &t,
    &e) == SLM2_OK); /* from the key */
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_is(&t, "d") && slm2_json_skip(&j, &t, &e) == SLM2_OK);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_is(&t, "e") && slm2_json_next(&j, &t, &e) == SLM2_OK);
  CHECK(slm2_json_skip(&j, &t, &e) == SLM2_OK); /* from the value's first token */
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_is(&t, "f") && slm2_json_next(&j, &t, &e) == SLM2_OK);
  CHECK(slm2_json_skip(&j, &t, &e) == SLM2_OK && slm2_json_next(&j, &t, &e) == SLM2_OK && t.type == SLM2_JSON_OBJECT_END);
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && t.type == SLM2_JSON_END);
  slm2_json_init(&j, "[{\"a\":[1,x]}]", 13, "text");
  CHECK(slm2_json_next(&j, &t, &e) == SLM2_OK && slm2_json_next(&j, &t, &e) == SLM2_OK);
  slm2_json before = j;
  CHECK(slm2_json_skip(&j, &t, &e) == SLM2_E_JSON && memcmp(&before, &j, sizeof j) == 0);
}

/* Expected texts by Python: json.dumps(s, ensure_ascii=False)[1:-1]. */
static void test_escape(void) {
  static const struct {
    text_case in, out;
  } cases[] = {
    {T("plain / caf\xc3\xa9 \x7f"), T("plain / caf\xc3\xa9 \x7f")}, {T("\"\\\b\f\n\r\t"), T("\\\"\\\\\\b\\f\\n\\r\\t")},
    {T("\0\x01\x0b\x1f"), T("\\u0000\\u0001\\u000b\\u001f")}, {T(""), T("")},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char out[64];
    for (size_t capacity = 0; capacity <= cases[i].out.n + 1; capacity++) {
      memset(out, '#', sizeof out);
      CHECK(slm2_json_escape(cases[i].in.text, cases[i].in.n, out, capacity) == cases[i].out.n);
      CHECK(out[capacity] == '#');
      if (capacity >= cases[i].out.n) CHECK_CASE(memcmp(out, cases[i].out.text, cases[i].out.n) == 0, cases[i].out.text);
    }
  }
}

#ifdef SLM2_HAVE_JANSSON
/* jansson's verdict; -1 where it differs from RFC 8259: NUL in keys and numbers that overflow a double are refused,
 * and a raw NUL byte right after a number is lost when its reader steps back. */
static int jansson_accepts(const char *text, size_t n) {
  for (size_t i = 1; i < n; i++) {
    if (text[i] == 0 && text[i - 1] >= '0' && text[i - 1] <= '9') return -1;
  }
  json_error_t error;
  json_t *root = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
  int ok = root != NULL;
  if (!ok && (json_error_code(&error) == json_error_numeric_overflow ||
    json_error_code(&error) == json_error_null_byte_in_key)) ok = -1;
  json_decref(root);
  return ok;
}
#endif

static void agree(const char *text, size_t n) {
  slm2_error e;
  slm2_status s = verdict(text, n, &e);
  CHECK(s == SLM2_OK || (s == SLM2_E_JSON && e.offset <= n));
#ifdef SLM2_HAVE_JANSSON
  int other = jansson_accepts(text, n);
  if (other >= 0) CHECK_CASE((s == SLM2_OK) == (other == 1), text);
#endif
}

static const char sample[] =
  "{\"name\": \"caf\xc3\xa9 \\u20ac \\ud83c\\udf4e\\n\", \"n\": [0, -1.5e+10, 1E-3, true, false, null], "
  "\"o\": {\"a\": {}, \"b\": []}}";

/* Proper prefixes of an object are never JSON; mutations never crash, and agree with jansson. */
static void test_hostile(void) {
  slm2_error e;
  size_t n = sizeof sample - 1;
  CHECK(verdict(sample, n, &e) == SLM2_OK);
  for (size_t k = 0; k < n; k++) CHECK(verdict(sample, k, &e) == SLM2_E_JSON);
  for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) agree(accepted[i].text, accepted[i].n);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) agree(refused[i].text, refused[i].n);
  char text[sizeof sample];
  for (size_t at = 0; at < n; at++) {
    for (int b = 0; b < 256; b++) {
      memcpy(text, sample, sizeof sample);
      text[at] = (char)b;
      agree(text, n);
    }
  }
  static const char alphabet[] = "{}[]:,\"\\u019dbeEfalstrn.+- \n\xc3\xa9\x00\x1f";
  uint64_t seed = 1; /* seed 1 */
  for (int i = 0; i < 100000; i++) {
    memcpy(text, sample, sizeof sample);
    uint64_t edits = 1 + test_random(&seed) % 4;
    size_t from = (size_t)(test_random(&seed) % n), length = (size_t)(test_random(&seed) % (n - from + 1));
    for (uint64_t k = 0; k < edits; k++) text[test_random(&seed) % n] = alphabet[test_random(&seed) % (sizeof alphabet - 1)];
    agree(i % 2 == 0 ? text : text + from, i % 2 == 0 ? n : length);
  }
  for (int i = 0; i < 100000; i++) {
    size_t length = (size_t)(test_random(&seed) % 12);
    for (size_t k = 0; k < length; k++) text[k] = alphabet[test_random(&seed) % (sizeof alphabet - 1)];
    text[length] = 0;
    agree(text, length);
  }
}

int main(void) {
  test_tables();
  test_depth();
  test_offsets();
  test_tokens();
  test_decode();
  test_integers();
  test_other_values();
  test_base();
  test_skip();
  test_escape();
  test_hostile();
  return test_end("json");
}
