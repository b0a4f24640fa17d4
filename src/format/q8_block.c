/* format/q8_block.c: the quantiser of one Q8_0 block [D9], as convert uses it. */
#include "base/bytes.h"
#include "base/error.h"
#include "kernel/weights.h"
#include "num/math.h"
#include "slm2/format.h"

/* Nearest integer, halves away from zero; |v| < 128. The truncation and v - t are exact, so nothing is rounded twice. */
static int32_t round_away(float v) {
  int32_t t = (int32_t)v;
  float fraction = v - (float)t;
  if (fraction >= 0.5f) return t + 1;
  return fraction <= -0.5f ? t - 1 : t;
}

/* Index of the largest |x|, or of the first value that is not finite. */
static uint32_t largest(const float x[32], bool *finite) {
  uint32_t at = 0, max = 0;
  for (uint32_t i = 0; i < SLM2_BLOCK; i++) {
    uint32_t bits = slm2_float_bits(x[i]) & 0x7fffffff; /* ordered as |x| */
    if (bits >= 0x7f800000) {
      *finite = false;
      return i;
    }
    if (bits > max) {
      max = bits;
      at = i;
    }
  }
  *finite = true;
  return at;
}

slm2_status slm2_q8_quantize(const float x[32], uint8_t block[34], slm2_error *error) {
  bool finite;
  uint32_t at = largest(x, &finite);
  uint32_t bits = slm2_float_bits(x[at]);
  if (!finite) {
    return slm2_fail(error, SLM2_E_WEIGHT, "quantize", NULL, at, "value %u of a block is not finite (bits 0x%x)", (uint64_t)at,
                     (uint64_t)bits);
  }
  float amax = slm2_float_from_bits(bits & 0x7fffffff);
  float d32 = amax / 127.0f;
  uint16_t d = slm2_f32_to_f16(d32);
  if (d == 0x7c00) {
    return slm2_fail(error, SLM2_E_WEIGHT, "quantize", NULL, at,
                     "value %u of a block is too large (bits 0x%x): its scale does not fit f16, which ends at 65504",
                     (uint64_t)at, (uint64_t)bits);
  }
  slm2_store_u16(block, d);
  memset(block + 2, 0, SLM2_BLOCK);
  if (d == 0) return SLM2_OK;
  /* id = (1 + e1) / d32 and d32 = amax (1 + e2) / 127, so |x id| <= 127 (1 + 4 * 2^-24) < 127.5: q stays in
   * -127 .. 127 without a clamp. d32 is normal here: d > 0 means d32 > 2^-25. */
  float id = 1.0f / d32;
  for (uint32_t i = 0; i < SLM2_BLOCK; i++) block[2 + i] = (uint8_t)round_away(x[i] * id);
  return SLM2_OK;
}
