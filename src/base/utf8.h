/* base/utf8.h: UTF-8 as Unicode 3.9 table 3-7 defines it. */
#ifndef SLM2_BASE_UTF8_H
#define SLM2_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLM2_REPLACEMENT 0xFFFDu

/* Decodes the code point at bytes[0..n), n >= 1. Returns its length 1..4 and sets *cp; for ill-formed input
 * returns the length of the maximal subpart (>= 1), sets *cp = SLM2_REPLACEMENT and *valid = false. */
size_t slm2_utf8_next(const uint8_t *bytes, size_t n, uint32_t *cp, bool *valid);
/* Writes 1..4 bytes of a scalar value (anything else is written as U+FFFD). */
size_t slm2_utf8_put(uint32_t cp, uint8_t out[4]);
bool slm2_utf8_valid(const uint8_t *bytes, size_t n);
/* Number of trailing bytes (0..3) that begin a code point which more bytes could complete. */
size_t slm2_utf8_incomplete_tail(const uint8_t *bytes, size_t n);

#endif
