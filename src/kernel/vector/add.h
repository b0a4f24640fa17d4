/* kernel/vector/add.h: [D17] */
#ifndef SLM2_KERNEL_VECTOR_ADD_H
#define SLM2_KERNEL_VECTOR_ADD_H

#include "kernel/vector/vector.h"

static inline void add(float *x, const float *y, uint32_t n) {
  uint32_t i = 0;
  for (; i + LANES <= n; i += LANES) store(x + i, load(x + i) + load(y + i));
  for (; i < n; i++) x[i] = x[i] + y[i];
}

#endif
