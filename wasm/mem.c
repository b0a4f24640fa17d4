/* wasm/mem.c: what a freestanding compiler calls by itself. With -mbulk-memory the first three are one instruction each, and
 * so no calls of themselves. */
#include "base/bytes.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n) { return __builtin_memcpy(to, from, n); }
void *memmove(void *to, const void *from, size_t n) { return __builtin_memmove(to, from, n); }
void *memset(void *to, int byte, size_t n) { return __builtin_memset(to, byte, n); }

int memcmp(const void *a, const void *b, size_t n) {
  const uint8_t *p = a, *q = b;
  for (size_t i = 0; i < n; i++)
    if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
  return 0;
}

/* The low 128 bits of a product: clang's test of whether one of 64-bit numbers overflows (base/checked.h). */
__int128 __multi3(__int128 a, __int128 b);
__int128 __multi3(__int128 a, __int128 b) {
  const uint64_t a0 = (uint32_t)a, a1 = (uint64_t)a >> 32, b0 = (uint32_t)b, b1 = (uint64_t)b >> 32;
  const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle; /* none can wrap */
  const uint64_t carried = a1 * b1 + (middle >> 32) + (other >> 32);
  const uint64_t high = carried + (uint64_t)a * (uint64_t)(b >> 64) + (uint64_t)(a >> 64) * (uint64_t)b;
  return (__int128)((unsigned __int128)high << 64 | (other << 32 | (uint32_t)low));
}
