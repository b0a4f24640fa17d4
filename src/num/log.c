/* num/log.c: correctly rounded f32 natural logarithm [D4].
 *
 * x = 2^k m, m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f), z = s^2. From log(1 + f) = 2 atanh(s):
 *   log(1 + f) = f - f^2/2 + s (f^2/2 + R),  R = 2 z/3 + 2 z^2/5 + 2 z^3/7 + ...
 * f has at most 24 bits: k LN2_HI + f and f^2 / 2 are exact, and so is their difference as hi + lo. Only the last
 * term (<= 0.018) is rounded. Exhaustion shows that this suffices for every x (tests/exhaustive). */
#include "num/math.h"
#include "num/round.h"

#define LN2_HI 0x1.62e42fefa2p-1 /* 40 bits: k * LN2_HI is exact for |k| <= 150 */
#define LN2_LO 0x1.9ef35793c7673p-41
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdu
#define ONE_BITS 0x3ff0000000000000u

float slm2_logf(float x) {
  uint64_t bits = slm2_double_bits((double)x) + (ONE_BITS - SQRT_HALF_BITS); /* normal, though x may be subnormal */
  double k = (double)((int32_t)(bits >> 52) - 1023);
  double f = slm2_double_from_bits((bits & 0xfffffffffffffu) + SQRT_HALF_BITS) - 1.0;
  double s = f / (2.0 + f), z = s * s, w = z * z, half_square = 0.5 * f * f;
  /* R in powers of w = z^2; z < 0.0295, so the first term left out is below 2^-64. */
  double odd = 2.0 / 23.0; /* z, z^3, ... */
  odd = odd * w + 2.0 / 19.0;
  odd = odd * w + 2.0 / 15.0;
  odd = odd * w + 2.0 / 11.0;
  odd = odd * w + 2.0 / 7.0;
  odd = odd * w + 2.0 / 3.0;
  double even = 2.0 / 25.0; /* z^2, z^4, ... */
  even = even * w + 2.0 / 21.0;
  even = even * w + 2.0 / 17.0;
  even = even * w + 2.0 / 13.0;
  even = even * w + 2.0 / 9.0;
  even = even * w + 2.0 / 5.0;
  double exact = k * LN2_HI + f;
  double hi = exact - half_square, lo = (exact - hi) - half_square;
  lo += k * LN2_LO + s * (half_square + (z * odd + w * even));
  double y = hi + lo;
  lo = (hi - y) + lo;
  return (float)slm2_round_to_odd(y, lo);
}
