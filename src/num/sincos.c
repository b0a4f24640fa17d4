/* num/sincos.c: correctly rounded f32 sine and cosine on [0, 2^17] [D4].
 *
 * x = k pi/2 + r, |r| <= pi/4. pi/2 comes in pieces of 36, 36 and 53 bits, so that k * PIO2_1, k * PIO2_2 and
 * x - k * PIO2_1 are exact for k < 2^17; r is known as r + r_low to about 2^-100. Then
 *   sin r = r + (r_low cos r + r^3 S(r^2)),   cos r = 1 - r^2/2 + (r^4 C(r^2) - r_low sin r).
 * Both are good to 2^-51 relative; the sine keeps its last rounding error too, since sin(0x1.33333p+13) lies within
 * 2^-53 of a tie. Exhaustion shows that this suffices for every x (tests/exhaustive). */
#include "num/math.h"
#include "num/round.h"

#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define PIO2_1 0x1.921fb5444p+0
#define PIO2_2 0x1.68c234c4cp-39
#define PIO2_3 0x1.98a2e03707345p-77
#define TO_INTEGER 0x1.8p52 /* adding it rounds to an integer, held in the low bits */

typedef struct pair { double hi, lo; } pair; /* hi = fl64(hi + lo) */

static pair fast_two_sum(double a, double b) { /* |a| >= |b| or a == 0 */
  double s = a + b;
  return (pair){s, (a - s) + b};
}

/* z = r^2 below 0.617: the terms left out are below 2^-62. */
static pair sine(double r, double r_low, double z) {
  double s = 1.0 / 355687428096000.0;
  s = s * z - 1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  return fast_two_sum(r, r * z * s + r_low * (1.0 - 0.5 * z));
}

static double cosine(double r, double r_low, double z) {
  double c = 1.0 / 6402373705728000.0;
  c = 1.0 / 20922789888000.0 - c * z;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  return (1.0 - 0.5 * z) + (z * z * c - r * r_low);
}

void slm2_sincosf(float xf, float *sin_out, float *cos_out) {
  double x = (double)xf, shifted = x * TWO_OVER_PI + TO_INTEGER, k = shifted - TO_INTEGER;
  double a = x - k * PIO2_1, b = k * PIO2_2;
  double d = a - b, v = d - a, e = (a - (d - v)) - (b + v); /* d + e = a - b exactly (Knuth) */
  pair r = fast_two_sum(d, e - k * PIO2_3);
  double z = r.hi * r.hi;
  pair s = sine(r.hi, r.lo, z);
  double sin_r = slm2_round_to_odd(s.hi, s.lo), cos_r = cosine(r.hi, r.lo, z);
  uint64_t quadrant = slm2_double_bits(shifted) & 3;
  double sin_x = (quadrant & 1) != 0 ? cos_r : sin_r, cos_x = (quadrant & 1) != 0 ? sin_r : cos_r;
  *sin_out = (float)((quadrant & 2) != 0 ? -sin_x : sin_x);
  *cos_out = (float)(((quadrant + 1) & 2) != 0 ? -cos_x : cos_x);
}
