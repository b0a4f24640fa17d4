/* tokenizer/decoder.c: token bytes to text while they stream. What is held is always a prefix of one code
 * point, so pieces cut anywhere give the text of the whole.
 */
#include "base/bytes.h"
#include "base/utf8.h"
#include "slm2/tokenizer.h"

void slm2_decoder_init(slm2_decoder *d) { *d = (slm2_decoder){{0}, 0}; }

/* Writes what is complete, or certainly ill-formed, at the front of held. */
static size_t release(slm2_decoder *d, bool end, uint8_t *out) {
  size_t n_out = 0;
  while (d->n_held != 0 && (end || slm2_utf8_incomplete_tail(d->held, d->n_held) != d->n_held)) {
    uint32_t cp;
    bool valid = true;
    size_t n = slm2_utf8_next(d->held, d->n_held, &cp, &valid);
    n_out += slm2_utf8_put(cp, out + n_out);
    d->n_held -= (uint32_t)n;
    memmove(d->held, d->held + n, d->n_held);
  }
  return n_out;
}

size_t slm2_decoder_push(slm2_decoder *d, const uint8_t *bytes, size_t n, uint8_t *out) {
  size_t n_out = 0;
  for (size_t i = 0; i < n; i++) {
    if (d->n_held == 0 && bytes[i] < 0x80) {
      out[n_out++] = bytes[i];
      continue;
    }
    d->held[d->n_held++] = bytes[i];
    n_out += release(d, false, out + n_out);
  }
  return n_out;
}

size_t slm2_decoder_flush(slm2_decoder *d, uint8_t *out) { return release(d, true, out); }
