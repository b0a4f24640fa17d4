/* session/stop.h: finding stop strings in a stream of bytes. One Knuth-Morris-Pratt automaton per string: a byte costs
 * amortised constant work per string, whatever the strings look like. Plain data without pointers.
 */
#ifndef SLM2_SESSION_STOP_H
#define SLM2_SESSION_STOP_H

#include <stddef.h>
#include <stdint.h>
#include "slm2/session.h"

typedef struct slm2_stop_matcher {
  uint32_t n;
  uint16_t length[SLM2_MAX_STOP_STRINGS];  /* 1 .. SLM2_MAX_STOP_BYTES */
  uint16_t matched[SLM2_MAX_STOP_STRINGS]; /* longest prefix of the string that ends at the last byte */
  uint8_t text[SLM2_MAX_STOP_STRINGS][SLM2_MAX_STOP_BYTES];
  uint8_t border[SLM2_MAX_STOP_STRINGS][SLM2_MAX_STOP_BYTES]; /* [i]: longest proper prefix of the string that ends text[0..i] */
} slm2_stop_matcher;

void slm2_stop_init(slm2_stop_matcher *m);
/* At most SLM2_MAX_STOP_STRINGS strings of 1 .. SLM2_MAX_STOP_BYTES bytes. */
void slm2_stop_add(slm2_stop_matcher *m, const char *text, size_t n);
/* Takes the next byte. Returns the length of the longest stop string that ends with it, or 0. */
size_t slm2_stop_push(slm2_stop_matcher *m, uint8_t byte);
/* Length of the longest end of the stream that could still become a stop string: what has to be held back. */
size_t slm2_stop_pending(const slm2_stop_matcher *m);
/* Forgets the stream, keeps the strings. */
void slm2_stop_reset(slm2_stop_matcher *m);

#endif
