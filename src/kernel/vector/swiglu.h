/* kernel/vector/swiglu.h: [D16] */
#ifndef SLM2_KERNEL_VECTOR_SWIGLU_H
#define SLM2_KERNEL_VECTOR_SWIGLU_H

#include "kernel/vector/exp.h"

static inline void swiglu(float *y, const float *g, const float *u, uint32_t n) {
  uint32_t i = 0;
  for (; i + HALF_LANES <= n; i += HALF_LANES) {
    vh gate = load_half(g + i);
    vhi up = gate >= 0.0f;
    vh e = exp_of((vh)((vhi)gate ^ (up & INT32_MIN))); /* of -gate, or of gate below zero */
    vh numerator = (vh)((up & (vhi)((vh){0} + 1.0f)) | (~up & (vhi)e));
    store_half(y + i, (gate * (numerator / (1.0f + e))) * load_half(u + i));
  }
  if (i < n) slm2_oracle_swiglu(y + i, g + i, u + i, n - i);
}

#endif
