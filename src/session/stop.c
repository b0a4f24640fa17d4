/* session/stop.c: stop strings across tokens [SAM-3]. Bytes are compared, so no border between tokens, decoder pushes or
 * code points matters. */
#include "session/stop.h"
#include "base/bytes.h"

void slm2_stop_init(slm2_stop_matcher *m) { memset(m, 0, sizeof *m); }

void slm2_stop_reset(slm2_stop_matcher *m) { memset(m->matched, 0, sizeof m->matched); }

/* Longest prefix of string i that ends with byte, when its first `matched` < length bytes ended before it. */
static size_t advance(const slm2_stop_matcher *m, uint32_t i, size_t matched, uint8_t byte) {
  while (matched > 0 && m->text[i][matched] != byte) matched = m->border[i][matched - 1];
  return matched + (m->text[i][matched] == byte);
}

void slm2_stop_add(slm2_stop_matcher *m, const char *text, size_t n) {
  uint32_t i = m->n++;
  m->length[i] = (uint16_t)n;
  memcpy(m->text[i], text, n);
  size_t border = 0;
  for (size_t k = 1; k < n; k++) { /* a border is shorter than k + 1 <= 256, so it fits a byte */
    border = advance(m, i, border, m->text[i][k]);
    m->border[i][k] = (uint8_t)border;
  }
}

size_t slm2_stop_push(slm2_stop_matcher *m, uint8_t byte) {
  size_t longest = 0;
  for (uint32_t i = 0; i < m->n; i++) {
    size_t matched = advance(m, i, m->matched[i], byte);
    if (matched == m->length[i]) {
      longest = matched > longest ? matched : longest;
      matched = m->border[i][matched - 1];
    }
    m->matched[i] = (uint16_t)matched;
  }
  return longest;
}

size_t slm2_stop_pending(const slm2_stop_matcher *m) {
  size_t longest = 0;
  for (uint32_t i = 0; i < m->n; i++) longest = m->matched[i] > longest ? m->matched[i] : longest;
  return longest;
}
