/* base/utf8.c: UTF-8 by table 3-7 of the Unicode Standard (well-formed byte sequences), with the maximal
 * subparts of its section 3.9. */
#include "base/utf8.h"

/* Length of the sequence that lead byte b starts, with the range of its second byte; 0: b starts none. */
static size_t sequence_of(uint8_t b, uint8_t *low, uint8_t *high) {
  *low = 0x80;
  *high = 0xbf;
  if (b < 0x80) return 1;
  if (b < 0xc2 || b > 0xf4) return 0; /* continuations, overlong C0 C1, beyond U+10FFFF */
  if (b < 0xe0) return 2;
  if (b < 0xf0) {
    if (b == 0xe0) *low = 0xa0;  /* else overlong */
    if (b == 0xed) *high = 0x9f; /* else a surrogate */
    return 3;
  }
  if (b == 0xf0) *low = 0x90;  /* else overlong */
  if (b == 0xf4) *high = 0x8f; /* else beyond U+10FFFF */
  return 4;
}

/* Bytes at the start of bytes[0..n), n >= 1, that belong to one sequence; *need is its full length (0: none). */
static size_t prefix(const uint8_t *bytes, size_t n, size_t *need) {
  uint8_t low, high;
  *need = sequence_of(bytes[0], &low, &high);
  size_t got = 1;
  while (got < *need && got < n && bytes[got] >= low && bytes[got] <= high) {
    low = 0x80;
    high = 0xbf;
    got++;
  }
  return got;
}

size_t slm2_utf8_next(const uint8_t *bytes, size_t n, uint32_t *cp, bool *valid) {
  static const uint8_t lead_bits[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  size_t need, got = prefix(bytes, n, &need);
  *valid = got == need;
  if (!*valid) {
    *cp = SLM2_REPLACEMENT;
    return got;
  }
  uint32_t c = bytes[0] & lead_bits[need];
  for (size_t i = 1; i < need; i++) c = c << 6 | (bytes[i] & 0x3fu);
  *cp = c;
  return need;
}

size_t slm2_utf8_put(uint32_t cp, uint8_t out[4]) {
  if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) cp = SLM2_REPLACEMENT;
  size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = n - 1; i > 0; i--, cp >>= 6) out[i] = (uint8_t)(0x80 | (cp & 0x3f));
  out[0] = (uint8_t)(lead[n] | cp);
  return n;
}

bool slm2_utf8_valid(const uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n;) {
    size_t need, got = prefix(bytes + i, n - i, &need);
    if (got != need) return false;
    i += got;
  }
  return true;
}

size_t slm2_utf8_incomplete_tail(const uint8_t *bytes, size_t n) {
  for (size_t k = 1; k <= 3 && k <= n; k++) {
    size_t need, got = prefix(bytes + n - k, k, &need);
    if (got == k && need > k) return k;
  }
  return 0;
}
