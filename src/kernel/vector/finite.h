/* kernel/vector/finite.h: [D5] */
#ifndef SLM2_KERNEL_VECTOR_FINITE_H
#define SLM2_KERNEL_VECTOR_FINITE_H

#include "kernel/vector/vector.h"

static inline bool finite(const float *x, size_t n) {
  vi bad = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) bad |= (load_bits(x + i) & 0x7f800000) == 0x7f800000;
  return !any(bad) && slm2_oracle_finite(x + i, n - i);
}

#endif
