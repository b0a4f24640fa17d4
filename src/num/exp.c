/* num/exp.c: correctly rounded f32 exp [D4].
 *
 * x = k ln2 + r, |r| <= ln2 / 2; e^x = 2^k (1 + r + r^2 q(r)), in f64 to 2^-52 relative, then one rounding to f32 (2^k is
 * applied in f64, so that a subnormal result is rounded once as well). Of all f32 only eight have a power within 2^-50
 * of a tie; exhaustion shows that every result is right (tests/exhaustive). */
#include "base/bytes.h"
#include "num/math.h"

#define INV_LN2 0x1.71547652b82fep+0
#define LN2_HI 0x1.62e42fefa2p-1 /* 40 bits: k * LN2_HI and x - k * LN2_HI are exact for |k| <= 150 */
#define LN2_LO 0x1.9ef35793c7673p-41
#define TO_INTEGER 0x1.8p52 /* adding it rounds to an integer, held in the low bits */

float slm2_expf(float xf) {
  if (!(xf > -104.0f)) return xf != xf ? xf : 0.0f; /* e^-104 < 2^-150 */
  if (xf > 89.0f) return slm2_float_from_bits(0x7f800000u);
  double x = (double)xf, shifted = x * INV_LN2 + TO_INTEGER, k = shifted - TO_INTEGER;
  double r = (x - k * LN2_HI) - k * LN2_LO, z = r * r;
  /* q(r) = sum r^n / (n + 2)!, even and odd n; the first term left out is below 2^-57. */
  double even = 1.0 / 479001600.0;
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
  double y = 1.0 + (r + z * (even + r * odd));
  uint64_t n = slm2_double_bits(shifted) - slm2_double_bits(TO_INTEGER); /* k modulo 2^64 */
  return (float)(y * slm2_double_from_bits((n + 1023) << 52));
}
