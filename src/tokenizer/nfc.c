/* tokenizer/nfc.c: canonical composition (Unicode Standard Annex 15) over the engine's own tables.
 *
 * Most text is in NFC already and is returned untouched. Where it may not be, the text is cut at characters
 * that begin a new segment (SLM2_NFC_BOUNDARY) and each segment is decomposed, ordered and composed. A segment
 * can be as long as the text: ordering a long run of marks counts instead of comparing, so all is linear.
 */
#include "base/utf8.h"
#include "tokenizer/internal.h"
#include "tokenizer/unicode.h"

enum { HANGUL_S = 0xAC00, HANGUL_L = 0x1100, HANGUL_V = 0x1161, HANGUL_T = 0x11A7, N_L = 19, N_V = 21, N_T = 28 };
enum { INSERTION_MAX = 16 };

/* Characters of a segment carry their combining class in the top byte. */
#define CP(c) ((c) & 0x1fffffu)
#define CCC(c) ((c) >> 24)

static uint32_t nfc_word(uint32_t cp) { return slm2_unicode_nfc[slm2_unicode_kind(cp)]; }
static uint32_t with_ccc(uint32_t cp) { return cp | (nfc_word(cp) & 0xffu) << 24; }

/* Appends the full decomposition; returns the new count. */
static size_t decompose(uint32_t cp, uint32_t *segment, size_t count) {
  if (cp - HANGUL_S < N_L * N_V * N_T) {
    uint32_t s = cp - HANGUL_S;
    segment[count++] = HANGUL_L + s / (N_V * N_T);
    segment[count++] = HANGUL_V + s / N_T % N_V;
    if (s % N_T != 0) segment[count++] = HANGUL_T + s % N_T;
    return count;
  }
  uint32_t low = 0, high = slm2_unicode_n_decomposing;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    if (slm2_unicode_decomposing[mid] < cp) low = mid + 1;
    else high = mid;
  }
  if (low == slm2_unicode_n_decomposing || slm2_unicode_decomposing[low] != cp) {
    segment[count++] = with_ccc(cp);
    return count;
  }
  for (uint32_t i = slm2_unicode_decomposed_at[low]; i < slm2_unicode_decomposed_at[low + 1]; i++)
    segment[count++] = with_ccc(slm2_unicode_decomposed[i]);
  return count;
}

/* Stable sort of one run of marks by combining class. */
static void order_run(uint32_t *run, size_t n, uint32_t *temp) {
  if (n <= INSERTION_MAX) {
    for (size_t i = 1; i < n; i++) {
      uint32_t c = run[i];
      size_t at = i;
      for (; at > 0 && CCC(run[at - 1]) > CCC(c); at--) run[at] = run[at - 1];
      run[at] = c;
    }
    return;
  }
  uint32_t starts[257] = {0};
  for (size_t i = 0; i < n; i++) starts[CCC(run[i]) + 1]++;
  for (size_t k = 1; k < 257; k++) starts[k] += starts[k - 1];
  for (size_t i = 0; i < n; i++) temp[starts[CCC(run[i])]++] = run[i];
  memcpy(run, temp, n * sizeof *run);
}

static void order(uint32_t *segment, size_t n, uint32_t *temp) {
  for (size_t i = 0; i < n;) {
    size_t end = i;
    while (end < n && CCC(segment[end]) != 0) end++;
    order_run(segment + i, end - i, temp);
    i = end + 1;
  }
}

/* The primary composite of two characters, or 0. */
static uint32_t composite(uint32_t first, uint32_t second) {
  if (first - HANGUL_L < N_L && second - HANGUL_V < N_V)
    return HANGUL_S + ((first - HANGUL_L) * N_V + (second - HANGUL_V)) * N_T;
  if (first - HANGUL_S < N_L * N_V * N_T && (first - HANGUL_S) % N_T == 0 && second - (HANGUL_T + 1) < N_T - 1)
    return first + (second - HANGUL_T);
  uint32_t low = 0, high = slm2_unicode_n_compositions;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    const slm2_composition *c = &slm2_unicode_compositions[mid];
    if (c->first < first || (c->first == first && c->second < second)) low = mid + 1;
    else high = mid;
  }
  if (low == slm2_unicode_n_compositions) return 0;
  const slm2_composition *c = &slm2_unicode_compositions[low];
  return c->first == first && c->second == second ? c->composite : 0;
}

/* Composes an ordered segment in place; returns the new count. A character combines with the last starter
 * unless one between them has the same or a higher class, or is a starter itself. */
static size_t compose(uint32_t *segment, size_t n) {
  size_t kept = 0, starter = SIZE_MAX;
  for (size_t i = 0; i < n; i++) {
    uint32_t c = segment[i];
    if (starter != SIZE_MAX && (kept == starter + 1 || CCC(segment[kept - 1]) < CCC(c))) {
      uint32_t combined = composite(CP(segment[starter]), CP(c));
      if (combined != 0) {
        segment[starter] = combined;
        continue;
      }
    }
    if (CCC(c) == 0) starter = kept;
    segment[kept++] = c;
  }
  return kept;
}

/* Normalises the segment that begins at text[at]; returns its end and appends to out. */
static size_t normalize_segment(const uint8_t *text, size_t n, size_t at, uint32_t *scratch, uint8_t *out, size_t *n_out) {
  uint32_t *segment = scratch, *temp = scratch + SLM2_NFC_SCRATCH(n) / 2;
  size_t count = 0, end = at;
  while (end < n) {
    uint32_t cp;
    bool valid = true;
    size_t length = slm2_utf8_next(text + end, n - end, &cp, &valid);
    if (end != at && (nfc_word(cp) & SLM2_NFC_BOUNDARY) != 0) break;
    count = decompose(cp, segment, count);
    end += length;
  }
  order(segment, count, temp);
  count = compose(segment, count);
  for (size_t i = 0; i < count; i++) *n_out += slm2_utf8_put(CP(segment[i]), out + *n_out);
  return end;
}

const uint8_t *slm2_nfc(const uint8_t *text, size_t n, uint8_t *out, uint32_t *scratch, size_t *n_out) {
  size_t at = 0, copied = 0, last_boundary = 0;
  *n_out = 0;
  while (at < n) {
    if (text[at] < 0x80) {
      last_boundary = at++;
      continue;
    }
    uint32_t cp;
    bool valid = true;
    size_t length = slm2_utf8_next(text + at, n - at, &cp, &valid);
    uint32_t word = nfc_word(cp);
    bool boundary = (word & SLM2_NFC_BOUNDARY) != 0;
    if (boundary) last_boundary = at;
    if (valid && boundary && (word & SLM2_NFC_SAME) != 0) {
      at += length;
      continue;
    }
    memcpy(out + *n_out, text + copied, last_boundary - copied);
    *n_out += last_boundary - copied;
    at = copied = last_boundary = normalize_segment(text, n, last_boundary, scratch, out, n_out);
  }
  if (copied == 0) {
    *n_out = n;
    return text;
  }
  memcpy(out + *n_out, text + copied, n - copied);
  *n_out += n - copied;
  return out;
}
