/* convert/text.h: what the freestanding converter needs of <string.h> beyond memory. */
#ifndef SLM2_CONVERT_TEXT_H
#define SLM2_CONVERT_TEXT_H

#include <stdbool.h>
#include "base/bytes.h"

/* What every lent block must be: arrays of 64-bit words are placed in it. */
static inline bool is_aligned(const void *mem) { return (uintptr_t)mem % 16 == 0; }
static inline size_t text_length(const char *s) {
  size_t n = 0;
  while (s[n] != 0) n++;
  return n;
}
/* Order of unsigned bytes, shorter first. */
static inline int text_compare(const char *a, size_t n_a, const char *b, size_t n_b) {
  size_t n = n_a < n_b ? n_a : n_b;
  int order = n == 0 ? 0 : memcmp(a, b, n);
  return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}
/* Copies a NUL-terminated text into a field of `capacity` bytes that is known to be wide enough. */
static inline void text_copy(char *out, size_t capacity, const char *s) {
  size_t n = text_length(s);
  if (n >= capacity) n = capacity - 1;
  memcpy(out, s, n);
  out[n] = 0;
}

#endif
