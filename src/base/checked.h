/* base/checked.h: size arithmetic that cannot wrap. Each returns false on overflow and then
 * leaves *out alone. size_t variants are right for 32-bit targets too. */
#ifndef SLM2_BASE_CHECKED_H
#define SLM2_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool slm2_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (a > UINT64_MAX - b) return false;
  *out = a + b;
  return true;
}
static inline bool slm2_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (b != 0 && a > UINT64_MAX / b) return false;
  *out = a * b;
  return true;
}
static inline bool slm2_add_size(size_t a, size_t b, size_t *out) {
  if (a > SIZE_MAX - b) return false;
  *out = a + b;
  return true;
}
static inline bool slm2_mul_size(size_t a, size_t b, size_t *out) {
  if (b != 0 && a > SIZE_MAX / b) return false;
  *out = a * b;
  return true;
}
/* n rounded up to a multiple of align (a power of two). */
static inline bool slm2_align_u64(uint64_t n, uint64_t align, uint64_t *out) {
  if (n > UINT64_MAX - (align - 1)) return false;
  *out = (n + (align - 1)) & ~(align - 1);
  return true;
}
static inline bool slm2_to_size(uint64_t n, size_t *out) {
  if (n > SIZE_MAX) return false;
  *out = (size_t)n;
  return true;
}

#endif
