/* kernel/oracle/add.c: the residual [D17]. */
#include "kernel/oracle/oracle.h"

void slm2_oracle_add(float *x, const float *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) x[i] = x[i] + y[i];
}
