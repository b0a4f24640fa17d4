/* num/exp.c: correctly rounded f32 exp [D4].
 *
 * x = k ln2 + r, |r| <= ln2 / 2; e^x = 2^k (1 + r + r^2 q(r)). 1 + r and every rounding error before it are kept
 * as hi + lo; only r^2 q(r) <= 0.07 is rounded, so the sum is off by less than 2^-55 before its one rounding
 * to f32. That this suffices for every x is shown by exhaustion (tests/exhaustive). */
#include "num/math.h"
#include "num/round.h"

#define INV_LN2 0x1.71547652b82fep+0
#define LN2_HI 0x1.62e42fefa2p-1          /* 40 bits: k * LN2_HI and x - k * LN2_HI are exact for |k| <= 150 */
#define LN2_LO 0x1.9ef35793c7673p-41
#define TO_INTEGER 0x1.8p52 /* adding it rounds to an integer, held in the low bits */

float slm2_expf(float xf) {
  if (!(xf > -104.0f)) return xf != xf ? xf : 0.0f; /* e^-104 < 2^-150 */
  if (xf > 89.0f) return slm2_float_from_bits(0x7f800000u);
  double x = (double)xf, shifted = x * INV_LN2 + TO_INTEGER, k = shifted - TO_INTEGER;
  double a = x - k * LN2_HI, b = k * LN2_LO;
  double r = a - b, r_low = (a - r) - b, z = r * r;
  /* q(r) = sum r^n / (n + 2)!, even and odd n; the first term left out is below 2^-59. */
  double even = 1.0 / 87178291200.0;
  even = even * z + 1.0 / 479001600.0;
  even = even * z + 1.0 / 3628800.0;
  even = even * z + 1.0 / 40320.0;
  even = even * z + 1.0 / 720.0;
  even = even * z + 1.0 / 24.0;
  even = even * z + 1.0 / 2.0;
  double odd = 1.0 / 6227020800.0;
  odd = odd * z + 1.0 / 39916800.0;
  odd = odd * z + 1.0 / 362880.0;
  odd = odd * z + 1.0 / 5040.0;
  odd = odd * z + 1.0 / 120.0;
  odd = odd * z + 1.0 / 6.0;
  double hi = 1.0 + r, lo = (1.0 - hi) + r;
  lo += z * (even + r * odd) + r_low * hi;
  double y = hi + lo;
  lo = (hi - y) + lo;
  uint64_t n = slm2_double_bits(shifted) - slm2_double_bits(TO_INTEGER); /* k modulo 2^64 */
  return (float)(slm2_round_to_odd(y, lo) * slm2_double_from_bits((n + 1023) << 52));
}
