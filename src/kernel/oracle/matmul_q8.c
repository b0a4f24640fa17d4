/* kernel/oracle/matmul_q8.c: weights times quantised activations [D11]: exact integer block sums S, then one seq
 * sum [D6] over the blocks. |S| <= 32 * 127 * 127 < 2^24, so (float)S is exact. */
#include "kernel/oracle/oracle.h"

void slm2_oracle_matmul_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n,
                           uint32_t r0, uint32_t r1) {
  uint32_t blocks = w->cols / SLM2_BLOCK;
  for (uint32_t r = r0; r < r1; r++) {
    for (uint32_t t = 0; t < n; t++) y[t * y_stride + r] = 0.0f;
    for (uint32_t b = 0; b < blocks; b++) {
      float d = slm2_oracle_scale(w, r, b);
      int8_t weight[SLM2_BLOCK];
      for (uint32_t k = 0; k < SLM2_BLOCK; k++) weight[k] = slm2_oracle_weight(w, r, b, k);
      for (uint32_t t = 0; t < n; t++) {
        const int8_t *act = xq + (size_t)t * w->cols + (size_t)b * SLM2_BLOCK;
        int32_t sum = 0;
        for (uint32_t k = 0; k < SLM2_BLOCK; k++) sum += act[k] * weight[k];
        float *out = &y[t * y_stride + r];
        *out = *out + (float)sum * (d * a[(size_t)t * blocks + b]);
      }
    }
  }
}
