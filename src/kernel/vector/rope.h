/* kernel/vector/rope.h: [D14] */
#ifndef SLM2_KERNEL_VECTOR_ROPE_H
#define SLM2_KERNEL_VECTOR_ROPE_H

#include "kernel/vector/vector.h"

static inline void rope(float *x, const float *c, const float *s, uint32_t half) {
  uint32_t i = 0;
  for (; i + LANES <= half; i += LANES) {
    vf low = load(x + i), high = load(x + half + i), cosine = load(c + i), sine = load(s + i);
    store(x + i, low * cosine - high * sine);
    store(x + half + i, high * cosine + low * sine);
  }
  for (; i < half; i++) {
    float low = x[i], high = x[half + i];
    x[i] = low * c[i] - high * s[i];
    x[half + i] = high * c[i] + low * s[i];
  }
}

#endif
