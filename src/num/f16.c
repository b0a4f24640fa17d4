/* num/f16.c: binary16 and back, in integers [D18]. */
#include "base/bytes.h"
#include "num/math.h"

float slm2_f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h >> 15) << 31, e = h >> 10 & 31, m = h & 0x3ff;
  if (e == 31) return slm2_float_from_bits(sign | 0x7f800000u | m << 13);
  if (e != 0) return slm2_float_from_bits(sign | (e + 127 - 15) << 23 | m << 13);
  /* zero or m * 2^-24: m < 2^10, exact */
  return slm2_float_from_bits(sign | slm2_float_bits((float)m * 0x1p-24f));
}

uint16_t slm2_f32_to_f16(float x) {
  uint32_t bits = slm2_float_bits(x), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
  if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* >= 65520, half way to 2^16 */
  if (a < 0x33000000) return (uint16_t)sign;             /* < 2^-25, half of the smallest subnormal */
  uint32_t e = a >> 23, m = (a & 0x7fffff) | 0x800000;
  uint32_t drop = e >= 113 ? 13 : 13 + (113 - e); /* 13 .. 24 low bits of m have no room */
  uint32_t q = m >> drop, rest = m & ((1u << drop) - 1), half = 1u << (drop - 1);
  if (rest > half || (rest == half && (q & 1) != 0)) q++;
  /* q of a normal number carries the implicit bit, which counts one binade. */
  return (uint16_t)(sign | ((e >= 113 ? (e - 113) << 10 : 0) + q));
}
