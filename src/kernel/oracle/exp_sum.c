/* kernel/oracle/exp_sum.c: what the log-probabilities of a position share [D26]. */
#include "kernel/oracle/oracle.h"
#include "num/reduce.h"

float slm2_oracle_exp_sum(float *max, const float *x, size_t n) {
  *max = x[0];
  for (size_t i = 1; i < n; i++) *max = x[i] > *max ? x[i] : *max;
  slm2_lanes8 sum = {{0}};
  for (size_t i = 0; i < n; i++) sum.s[i & 7] += slm2_expf(x[i] - *max);
  return slm2_lanes8_sum(&sum);
}
