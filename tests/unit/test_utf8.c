/* tests/unit/test_utf8.c: UTF-8 against the Unicode Standard's own definition: exhaustively over all scalar
 * values and the byte strings up to three bytes, with a second decoder written from the definition of "maximal
 * subpart", and against the Standard's worked examples (section 3.9, tables 3-8 to 3-11). */
#include "base/utf8.h"
#include "tests/test.h"

static void test_scalars(void) {
  unsigned bad = 0;
  for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
    uint8_t bytes[4];
    size_t n = slm2_utf8_put(cp, bytes);
    uint32_t back;
    bool valid;
    size_t m = slm2_utf8_next(bytes, n, &back, &valid);
    bool surrogate = cp >= 0xd800 && cp < 0xe000;
    bad += m != n || !valid || back != (surrogate ? SLM2_REPLACEMENT : cp);
    bad += slm2_utf8_incomplete_tail(bytes, n) != 0;
    for (size_t k = 1; k < n; k++) bad += slm2_utf8_incomplete_tail(bytes, k) != k; /* a proper prefix is a tail */
  }
  CHECK(bad == 0);
  static const struct {
    uint32_t cp;
    uint8_t bytes[4];
    size_t n;
  } cases[] = {{0, {0}, 1}, {0x7f, {0x7f}, 1}, {0x80, {0xc2, 0x80}, 2}, {0x7ff, {0xdf, 0xbf}, 2}, {0x800, {0xe0, 0xa0, 0x80}, 3},
               {0xd7ff, {0xed, 0x9f, 0xbf}, 3}, {0xe000, {0xee, 0x80, 0x80}, 3}, {0xffff, {0xef, 0xbf, 0xbf}, 3},
               {0x10000, {0xf0, 0x90, 0x80, 0x80}, 4}, {0x10ffff, {0xf4, 0x8f, 0xbf, 0xbf}, 4}, {0x110000, {0xef, 0xbf, 0xbd}, 3},
               {0xd800, {0xef, 0xbf, 0xbd}, 3}, {UINT32_MAX, {0xef, 0xbf, 0xbd}, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t out[4];
    CHECK(slm2_utf8_put(cases[i].cp, out) == cases[i].n && memcmp(out, cases[i].bytes, cases[i].n) == 0);
  }
}

/* The definition, slowly: whether b[0..n) is well formed as one code point by decoding and re-encoding. */
static bool one_code_point(const uint8_t *b, size_t n) {
  uint32_t cp = n == 1 ? b[0] : n == 2 ? b[0] & 0x1fu : n == 3 ? b[0] & 0x0fu : b[0] & 0x07u;
  if (n > 1 && (b[0] & (0xf8u << (4 - n) & 0xffu)) != (0xf0u << (4 - n) & 0xffu)) return false;
  for (size_t i = 1; i < n; i++) {
    if ((b[i] & 0xc0) != 0x80) return false;
    cp = cp << 6 | (b[i] & 0x3fu);
  }
  static const uint32_t first[5] = {0, 0, 0x80, 0x800, 0x10000}, last[5] = {0, 0x7f, 0x7ff, 0xffff, 0x10ffff};
  return cp >= first[n] && cp <= last[n] && (cp < 0xd800 || cp > 0xdfff);
}
/* Whether b[0..n) can be extended to a code point: only the extremes of the remaining bytes matter. */
static bool extensible(const uint8_t *b, size_t n) {
  for (size_t full = n; full <= 4; full++) {
    uint8_t low[4], high[4];
    memcpy(low, b, n);
    memcpy(high, b, n);
    memset(low + n, 0x80, 4 - n);
    memset(high + n, 0xbf, 4 - n);
    if (one_code_point(low, full) || one_code_point(high, full)) return true;
  }
  return false;
}

/* Returns the number of disagreements, 0..2, and prints them. */
static unsigned check_bytes(const uint8_t *b, size_t n) {
  uint32_t cp;
  bool valid, expected_valid = false;
  size_t got = slm2_utf8_next(b, n, &cp, &valid), expected = 0;
  for (size_t k = 1; k <= n && !expected_valid; k++) {
    if (one_code_point(b, k)) {
      expected = k;
      expected_valid = true;
    }
  }
  if (!expected_valid) {
    for (expected = 1; expected < n && extensible(b, expected + 1); expected++) {}
  }
  size_t tail = 0;
  for (size_t k = 3; k >= 1; k--) {
    if (k <= n && tail == 0 && !one_code_point(b + n - k, k) && extensible(b + n - k, k)) tail = k;
  }
  unsigned bad = got != expected || valid != expected_valid || (!valid && cp != SLM2_REPLACEMENT);
  bad += slm2_utf8_incomplete_tail(b, n) != tail;
  if (bad != 0) printf("differs at %02x%02x%02x (%d bytes)\n", b[0], n > 1 ? b[1] : 0, n > 2 ? b[2] : 0, (int)n);
  return bad;
}

static void test_exhaustive(void) {
  unsigned bad = 0;
  for (uint32_t v = 0; v < 1u << 24; v++) {
    uint8_t b[3] = {(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    if (b[2] == 0) bad += check_bytes(b, 2);
    if (b[2] == 0 && b[1] == 0) bad += check_bytes(b, 1);
    if (b[0] >= 0xc0 || v % 251 == 0) bad += check_bytes(b, 3); /* one-byte results: a sample is enough */
  }
  CHECK(bad == 0);
}

/* What a text becomes when each maximal subpart turns into U+FFFD ("?" here). */
static void test_examples(void) {
  static const struct {
    const char *in, *out;
    int valid;
  } cases[] = {
    {"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "....", 1},
    {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82" "A", "????????.", 0},
    {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf" "A", "????????.", 0},
    {"\xf4\x91\x92\x93\xff" "A\x80\xbf" "B", "?????.??.", 0},
    {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf" "A", "????.", 0},
    {"\xf0\x80\x80\x41", "???.", 0}, {"\xe2\x82", "?", 0}, {"\xf0\x9f\x98", "?", 0}, {"", "", 1}, {"\xfe", "?", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint8_t *in = (const uint8_t *)cases[i].in;
    size_t n = strlen(cases[i].in), k = 0;
    char out[16];
    for (size_t at = 0; at < n && k < 15;) {
      uint32_t cp;
      bool valid;
      at += slm2_utf8_next(in + at, n - at, &cp, &valid);
      out[k++] = valid ? '.' : '?';
    }
    out[k] = 0;
    CHECK_CASE(strcmp(out, cases[i].out) == 0, cases[i].out);
    CHECK_CASE(slm2_utf8_valid(in, n) == cases[i].valid, cases[i].out);
  }
  CHECK(slm2_utf8_incomplete_tail(NULL, 0) == 0);
  CHECK(slm2_utf8_incomplete_tail((const uint8_t *)"ab\xe2\x82", 4) == 2);
  CHECK(slm2_utf8_incomplete_tail((const uint8_t *)"\xf0\x9f\x98\x80\xf0\x9f\x98", 7) == 3);
  CHECK(slm2_utf8_incomplete_tail((const uint8_t *)"\x80\x80\x80\x80", 4) == 0);
}

int main(void) {
  test_scalars();
  test_exhaustive();
  test_examples();
  return test_end("utf8");
}
