/* kernel/oracle/matmul_f32.c: weights times f32 activations [D10]. Each y is one seq sum [D6] over the columns,
 * whatever n is: a block of weights is decoded once and serves all n tokens, whose sums never meet. */
#include "kernel/oracle/oracle.h"

void slm2_oracle_matmul_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0,
                            uint32_t r1) {
  for (uint32_t r = r0; r < r1; r++) {
    for (uint32_t t = 0; t < n; t++) y[t * y_stride + r] = 0.0f;
    for (uint32_t b = 0; b < w->cols / SLM2_BLOCK; b++) {
      float d = slm2_oracle_scale(w, r, b), weight[SLM2_BLOCK];
      for (uint32_t k = 0; k < SLM2_BLOCK; k++) weight[k] = (float)slm2_oracle_weight(w, r, b, k) * d;
      for (uint32_t t = 0; t < n; t++) {
        const float *act = x + (size_t)t * w->cols + (size_t)b * SLM2_BLOCK;
        float acc = y[t * y_stride + r];
        for (uint32_t k = 0; k < SLM2_BLOCK; k++) acc = acc + act[k] * weight[k];
        y[t * y_stride + r] = acc;
      }
    }
  }
}
