/* kernel/oracle/rope.c: rotary position embedding over the pairs (i, i + half) [D14]. */
#include "kernel/oracle/oracle.h"

void slm2_oracle_rope_table(float *c, float *s, uint32_t position, const uint8_t *inv_freq, uint32_t half) {
  for (uint32_t i = 0; i < half; i++) slm2_sincosf((float)position * slm2_load_f32(inv_freq + 4 * (size_t)i), &s[i], &c[i]);
}

void slm2_oracle_rope(float *x, const float *c, const float *s, uint32_t half) {
  for (uint32_t i = 0; i < half; i++) {
    float low = x[i], high = x[i + half];
    x[i] = low * c[i] - high * s[i];
    x[i + half] = high * c[i] + low * s[i];
  }
}
