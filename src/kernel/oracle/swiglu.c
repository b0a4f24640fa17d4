/* kernel/oracle/swiglu.c: y = silu(g) * u by a sigmoid that cannot overflow [D16]. */
#include "kernel/oracle/oracle.h"

void slm2_oracle_swiglu(float *y, const float *g, const float *u, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    float gate = g[i];
    float e = slm2_expf(gate >= 0.0f ? -gate : gate);
    float sigmoid = gate >= 0.0f ? 1.0f / (1.0f + e) : e / (1.0f + e);
    y[i] = (gate * sigmoid) * u[i];
  }
}
