/* kernel/vector/logprob.h: what log-probabilities are made from [D26]. */
#ifndef SLM2_KERNEL_VECTOR_LOGPROB_H
#define SLM2_KERNEL_VECTOR_LOGPROB_H

#include "kernel/vector/exp.h"

static inline float greatest(const float *x, size_t n) {
  const float max = most_of(x, n);
  size_t i = 0;
  while (max == 0.0f && x[i] != 0.0f) i++; /* zeros are equal: the sign is the first one's */
  return max == 0.0f ? x[i] : max;
}

static inline void exp_below(float *y, const float *x, float max, size_t n) {
  size_t i = 0;
  for (; i + HALF_LANES <= n; i += HALF_LANES) store_half(y + i, exp_of(load_half(x + i) - max));
  for (; i < n; i++) y[i] = slm2_expf(x[i] - max);
}

#endif
