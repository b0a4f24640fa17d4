/* kernel/vector/rmsnorm.h: [D13]. The sum of squares is one chain of f64 additions and its pace is theirs; only the
 * scaling that follows has lanes. The hosts of these twins are little-endian, as the weights are. */
#ifndef SLM2_KERNEL_VECTOR_RMSNORM_H
#define SLM2_KERNEL_VECTOR_RMSNORM_H

#include "kernel/vector/vector.h"

static inline void rmsnorm(float *y, const float *x, const uint8_t *w, uint32_t n, float eps) {
  double ss = 0.0;
  for (uint32_t i = 0; i < n; i++) ss = ss + (double)x[i] * (double)x[i];
  const float inv = (float)(1.0 / slm2_sqrt(ss / (double)n + (double)eps));
  uint32_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, (load(x + i) * inv) * load(w + 4 * (size_t)i));
  for (; i < n; i++) y[i] = (x[i] * inv) * slm2_load_f32(w + 4 * (size_t)i);
}

#endif
