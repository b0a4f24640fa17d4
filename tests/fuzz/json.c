/* tests/fuzz/json.c: the JSON reader. Pulling token by token and checking the whole text give one verdict; strings survive
 * being decoded, escaped and decoded again. */
#include "base/json.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

static void check_string(const slm2_json_token *t) {
  char *text = fuzz_memory(t->n_raw);
  size_t n = slm2_json_decode(t, text);
  MUST(n <= t->n_raw && slm2_utf8_valid((const uint8_t *)text, n));
  size_t n_escaped = slm2_json_escape(text, n, NULL, 0);
  char *escaped = fuzz_memory(n_escaped), *again = fuzz_memory(n_escaped);
  MUST(slm2_json_escape(text, n, escaped, n_escaped) == n_escaped);
  slm2_json_token u = *t;
  u.raw = escaped;
  u.n_raw = n_escaped;
  u.escaped = memchr(escaped, '\\', n_escaped) != NULL;
  MUST(slm2_json_decode(&u, again) == n && memcmp(again, text, n) == 0);
  free(text);
  free(escaped);
  free(again);
}

static void check_number(const slm2_json *j, const slm2_json_token *t) {
  uint64_t u = 0;
  double d = 0;
  slm2_error e = {0};
  slm2_status real = slm2_json_f64(j, t, "x", &d, &e), whole = slm2_json_u64(j, t, "x", &u, &e);
  MUST(real == SLM2_OK || e.code != SLM2_OK);
  if (whole == SLM2_OK) MUST(real == SLM2_OK && d == (double)u);
  char text[64];
  if (real == SLM2_OK && t->n_raw < sizeof text) { /* the C library agrees */
    memcpy(text, t->raw, t->n_raw);
    text[t->n_raw] = 0;
    MUST(strtod(text, NULL) == d);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  slm2_error e = {0}, whole = {0};
  slm2_json j;
  slm2_json_token t;
  slm2_status status, verdict = slm2_json_check((const char *)data, n, "text", &whole);
  size_t last = 0;
  slm2_json_init(&j, (const char *)data, n, "text");
  for (;;) {
    status = slm2_json_next(&j, &t, &e);
    if (status != SLM2_OK || t.type == SLM2_JSON_END) break;
    MUST(t.offset >= last && t.offset < n);
    last = t.offset;
    if (t.type == SLM2_JSON_KEY || t.type == SLM2_JSON_STRING) check_string(&t);
    if (t.type == SLM2_JSON_NUMBER) check_number(&j, &t);
  }
  MUST(status == verdict);
  if (status != SLM2_OK) {
    fuzz_refusal(status, &e);
    MUST(strcmp(e.message, whole.message) == 0 && e.offset == whole.offset && e.offset <= n);
  }
  return 0;
}
