/* kernel/vector/quantize.h: [D11] A block of 32 is two or more whole vectors on every instruction set. */
#ifndef SLM2_KERNEL_VECTOR_QUANTIZE_H
#define SLM2_KERNEL_VECTOR_QUANTIZE_H

#include "kernel/vector/vector.h"

typedef int8_t vb __attribute__((vector_size(LANES)));
typedef vb vb_at __attribute__((aligned(1), may_alias));

/* max |x| of a block as an integer. */
INLINE uint32_t magnitude_of(const float *x) {
  vi most = {0};
  UNROLL for (int i = 0; i < 32; i += LANES) {
    vi m = load_bits(x + i) & 0x7fffffff;
    most = (vi)pick(m > most, (vf)m, (vf)most);
  }
  int32_t magnitude = 0;
  UNROLL for (int i = 0; i < LANES; i++) magnitude = most[i] > magnitude ? most[i] : magnitude;
  return (uint32_t)magnitude;
}

static inline bool quantize(int8_t *xq, float *a, const float *x, uint32_t n) {
  for (uint32_t b = 0; b < n / SLM2_BLOCK; b++, x += SLM2_BLOCK, xq += SLM2_BLOCK) {
    const uint32_t magnitude = magnitude_of(x);
    if (magnitude >= SLM2_INFINITY_BITS) return false;
    const float amax = slm2_float_from_bits(magnitude), shift = 0x1.8p23f;
    const bool zero = amax < 0x1p-100f;
    const float id = zero ? 0.0f : 127.0f / amax;
    a[b] = zero ? 0.0f : amax / 127.0f;
    UNROLL for (int i = 0; i < 32; i += LANES) {
      vf v = load(x + i) * id;
      v = (v + shift) - shift; /* nearest integer, ties to even: kernel/oracle/quantize.c, which proves |v| <= 127 as well */
      *(vb_at *)(xq + i) = __builtin_convertvector(__builtin_convertvector(v, vi), vb);
    }
  }
  return true;
}

#endif
