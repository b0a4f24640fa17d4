/* kernel/oracle/embed.c: one row of the embedding, dequantised [D12]. */
#include "kernel/oracle/oracle.h"

void slm2_oracle_embed(float *y, const slm2_matrix *w, uint32_t row) {
  for (uint32_t b = 0; b < w->cols / SLM2_BLOCK; b++) {
    float d = slm2_oracle_scale(w, row, b);
    for (uint32_t k = 0; k < SLM2_BLOCK; k++) y[b * SLM2_BLOCK + k] = (float)slm2_oracle_weight(w, row, b, k) * d;
  }
}
