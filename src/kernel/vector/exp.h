/* kernel/vector/exp.h: num/exp.c in lanes, operation by operation, for x <= 0, -infinity and NaN: the same bits because the
 * same IEEE operations in the same order give them. Works on half vectors of floats, whose f64 core fills whole ones. */
#ifndef SLM2_KERNEL_VECTOR_EXP_H
#define SLM2_KERNEL_VECTOR_EXP_H

#include "kernel/vector/vector.h"

#define HALF_LANES (LANES / 2)
typedef float vh __attribute__((vector_size(SLM2_VB / 2)));
typedef int32_t vhi __attribute__((vector_size(SLM2_VB / 2)));
typedef double vd __attribute__((vector_size(SLM2_VB)));
typedef uint64_t vl __attribute__((vector_size(SLM2_VB)));
typedef vh vh_at __attribute__((aligned(1), may_alias));

INLINE vh load_half(const float *p) { return *(const vh_at *)p; }
INLINE void store_half(float *p, vh v) { *(vh_at *)p = v; }

INLINE vh exp_of(vh xf) {
  const double to_integer = 0x1.8p52;
  vd x = __builtin_convertvector(xf, vd), shifted = x * 0x1.71547652b82fep+0 + to_integer, k = shifted - to_integer;
  vd r = (x - k * 0x1.62e42fefa2p-1) - k * 0x1.9ef35793c7673p-41, z = r * r;
  vd even = 1.0 / 479001600.0 * z + 1.0 / 3628800.0;
  even = (even * z + 1.0 / 40320.0) * z + 1.0 / 720.0;
  even = (even * z + 1.0 / 24.0) * z + 1.0 / 2.0;
  vd odd = 1.0 / 6227020800.0 * z + 1.0 / 39916800.0;
  odd = (odd * z + 1.0 / 362880.0) * z + 1.0 / 5040.0;
  odd = (odd * z + 1.0 / 120.0) * z + 1.0 / 6.0;
  vd y = 1.0 + (r + z * (even + r * odd));
  vl n = (vl)shifted - (vl)((vd){0} + to_integer);
  vhi vanishes = xf <= -104.0f; /* false for NaN, which has gone through the sums */
  vh result = __builtin_convertvector(y * (vd)((n + 1023) << 52), vh);
  return (vh)(~vanishes & (vhi)result);
}

#endif
