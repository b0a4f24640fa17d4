/* kernel/vector/exp_sum.h: [D26]. The eight lanes of [D7] are vectors of half the width, as exp has them. */
#ifndef SLM2_KERNEL_VECTOR_EXP_SUM_H
#define SLM2_KERNEL_VECTOR_EXP_SUM_H

#include "kernel/vector/exp.h"
#include "num/reduce.h"

#define E_PARTS (8 / HALF_LANES)

INLINE float greatest(const float *x, size_t n) {
  float max = x[0];
  size_t i = 0;
  if (n >= LANES) {
    vf most = load(x);
    for (; i + LANES <= n; i += LANES) most = pick(load(x + i) > most, load(x + i), most);
    UNROLL for (int k = 0; k < LANES; k++) max = most[k] > max ? most[k] : max;
  }
  for (; i < n; i++) max = x[i] > max ? x[i] : max;
  for (i = 0; max == 0.0f && x[i] != 0.0f;) i++; /* zeros are equal: the sign is the first one's */
  return max == 0.0f ? x[i] : max;
}

static inline float exp_sum(float *max, const float *x, size_t n) {
  const float m = greatest(x, n);
  vh acc[E_PARTS];
  UNROLL for (int p = 0; p < E_PARTS; p++) acc[p] = (vh){0};
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    UNROLL for (int p = 0; p < E_PARTS; p++) acc[p] = acc[p] + exp_of(load_half(x + i + p * HALF_LANES) - m);
  slm2_lanes8 sum;
  UNROLL for (int p = 0; p < E_PARTS; p++) store_half(sum.s + p * HALF_LANES, acc[p]);
  for (; i < n; i++) sum.s[i & 7] += slm2_expf(x[i] - m);
  *max = m;
  return slm2_lanes8_sum(&sum);
}

#endif
