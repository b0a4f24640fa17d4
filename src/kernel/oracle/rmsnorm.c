/* kernel/oracle/rmsnorm.c: y = (x / sqrt(mean(x^2) + eps)) * w [D13], summed in f64: squares of f32 are exact there,
 * and no finite x can overflow. */
#include "kernel/oracle/oracle.h"

void slm2_oracle_rmsnorm(float *y, const float *x, const uint8_t *w, uint32_t n, float eps) {
  double ss = 0.0;
  for (uint32_t i = 0; i < n; i++) ss = ss + (double)x[i] * (double)x[i];
  float inv = (float)(1.0 / slm2_sqrt(ss / (double)n + (double)eps));
  for (uint32_t i = 0; i < n; i++) y[i] = (x[i] * inv) * slm2_load_f32(w + 4 * (size_t)i);
}
