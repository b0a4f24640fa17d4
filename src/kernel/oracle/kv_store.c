/* kernel/oracle/kv_store.c: keys and values into the cache [D18]; what is not finite never gets in [D5]. */
#include "kernel/oracle/oracle.h"

bool slm2_oracle_kv_store(void *dst, const float *x, uint32_t n, bool f16) {
  if (!slm2_oracle_finite(x, n)) return false;
  if (!f16) {
    memcpy(dst, x, n * sizeof *x);
    return true;
  }
  uint16_t *half = dst;
  for (uint32_t i = 0; i < n; i++) {
    uint16_t h = slm2_f32_to_f16(x[i]);
    if ((h & 0x7fffu) == 0x7c00u) return false;
    half[i] = h;
  }
  return true;
}
