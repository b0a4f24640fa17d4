/* kernel/oracle/quantize.c: activations to int8 blocks [D11], refusing what is not finite [D5]. */
#include "kernel/oracle/oracle.h"

/* Round half to even without libm. For |v| <= 2^22 the sum lies in [2^23, 2^24], where neighbouring f32 are 1 apart, so
 * the addition itself rounds v to an integer, ties to even (1.5 * 2^23 is even); the subtraction is exact. */
static float round_half_even(float v) {
  const float shift = 0x1.8p23f;
  return (v + shift) - shift;
}

bool slm2_oracle_quantize(int8_t *xq, float *a, const float *x, uint32_t n) {
  for (uint32_t b = 0; b < n / SLM2_BLOCK; b++, x += SLM2_BLOCK, xq += SLM2_BLOCK) {
    uint32_t magnitude = 0;
    for (uint32_t k = 0; k < SLM2_BLOCK; k++) {
      uint32_t m = slm2_oracle_magnitude(x[k]);
      magnitude = m > magnitude ? m : magnitude;
    }
    if (magnitude >= SLM2_INFINITY_BITS) return false;
    float amax = slm2_float_from_bits(magnitude);
    if (amax < 0x1p-100f) { /* so id below is finite, with room to spare */
      memset(xq, 0, SLM2_BLOCK);
      a[b] = 0.0f;
      continue;
    }
    a[b] = amax / 127.0f;
    float id = 127.0f / amax;
    for (uint32_t k = 0; k < SLM2_BLOCK; k++) {
      /* |x * id| <= 127 (1 + 2^-24)^2 before its last rounding, so the clamp binds only the reader. */
      float v = round_half_even(x[k] * id);
      xq[k] = (int8_t)(v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v);
    }
  }
  return true;
}
