/* kernel/oracle/logprob.c: what log-probabilities are made from [D26]. */
#include "kernel/oracle/oracle.h"

float slm2_oracle_greatest(const float *x, size_t n) {
  float max = x[0];
  for (size_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
  return max;
}

void slm2_oracle_exp_below(float *y, const float *x, float max, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = slm2_expf(x[i] - max);
}
