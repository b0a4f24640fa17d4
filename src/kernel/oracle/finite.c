/* kernel/oracle/finite.c: the check at stage borders, on integers only [D5]. */
#include "kernel/oracle/oracle.h"

bool slm2_oracle_finite(const float *x, size_t n) {
  uint32_t magnitude = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t m = slm2_oracle_magnitude(x[i]);
    magnitude = m > magnitude ? m : magnitude;
  }
  return magnitude < SLM2_INFINITY_BITS;
}
