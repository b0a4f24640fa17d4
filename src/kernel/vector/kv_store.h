/* kernel/vector/kv_store.h: [D18] to nearest even with gradual underflow, as IEEE has it. */
#ifndef SLM2_KERNEL_VECTOR_KV_STORE_H
#define SLM2_KERNEL_VECTOR_KV_STORE_H

#include "kernel/vector/f16.h"
#include "kernel/vector/finite.h"

static inline bool kv_store(void *dst, const float *x, uint32_t n, bool f16) {
  if (!f16) return slm2_oracle_kv_store(dst, x, n, false);
  uint16_t *to = dst;
  vi large = {0}; /* 65520 and more in magnitude, infinity and NaN: what f16 cannot hold */
  uint32_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    large |= (load_bits(x + i) & 0x7fffffff) >= 0x477ff000;
    UNROLL for (int k = 0; k < LANES; k += A_LANES) store_f16(to + i + k, *(const va_at *)(x + i + k));
  }
  return !any(large) && slm2_oracle_kv_store(to + i, x + i, n - i, true);
}

#endif
