/* num/inv_freq.c: the RoPE frequencies [D14], computed once by the converter and then read from the file.
 *
 * theta^e, e = fl32(2i / head_dim) in [0, 1), must be correctly rounded to f32. Every finite e is a / 2^b with a
 * odd, and theta^(a / 2^b) is rational only if theta is a perfect 2^b-th power m^(2^b) (a is odd), so
 * b <= 4 for theta <= 2^31; then the power is the integer m^a < 2^31, the only kind of value that can be a tie,
 * and it is computed exactly. Every other power is irrational and is computed in double-double arithmetic to
 * about 2^-95 relative, 2^70 times finer than a half unit of f32. */
#include "num/math.h"
#include "num/round.h"

typedef struct dd { double hi, lo; } dd; /* hi + lo, hi = fl64(hi + lo): about 106 bits */

static dd fast_two_sum(double a, double b) { /* |a| >= |b| or a == 0 */
  double s = a + b;
  return (dd){s, (a - s) + b};
}
static dd two_sum(double a, double b) {
  double s = a + b, v = s - a;
  return (dd){s, (a - (s - v)) + (b - v)};
}
static dd two_product(double a, double b) { /* Dekker */
  double ca = 134217729.0 * a, ah = ca - (ca - a), al = a - ah;
  double cb = 134217729.0 * b, bh = cb - (cb - b), bl = b - bh;
  double p = a * b;
  return (dd){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
static dd add(dd a, dd b) {
  dd s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
  s = fast_two_sum(s.hi, s.lo + t.hi);
  return fast_two_sum(s.hi, s.lo + t.lo);
}
static dd multiply(dd a, dd b) {
  dd p = two_product(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
static dd divide(dd a, double b) {
  double q = a.hi / b;
  dd p = two_product(q, b);
  return fast_two_sum(q, ((a.hi - p.hi) - p.lo + a.lo) / b);
}

static const dd ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/* log(x) for an integer x >= 1: x = 2^k m, m in [3/4, 3/2), log m = 2 atanh(s), s = (m - 1) / (m + 1) in
 * [-1/7, 1/5]: s^2 <= 1/25 and 24 terms leave 2^-114. */
static dd log_of(uint32_t x) {
  double m = (double)x, k = 0;
  for (; m >= 1.5; m *= 0.5) k += 1.0;
  dd s = divide((dd){m - 1.0, 0}, m + 1.0), z = multiply(s, s), sum = {0, 0};
  for (int n = 47; n >= 1; n -= 2) sum = add(multiply(sum, z), divide((dd){1.0, 0}, (double)n));
  sum = multiply(sum, s);
  return add(multiply(ln2, (dd){k, 0}), (dd){2.0 * sum.hi, 2.0 * sum.lo});
}

/* e^x for 0 <= x < 22: x = k ln2 + r, then 1 + r (1 + r/2 (1 + r/3 (...))); |r| < 0.7 and 32 terms leave 2^-134. */
static dd exp_of(dd x) {
  double k = 0, scale = 1.0;
  for (; (k + 1.0) * ln2.hi <= x.hi; k += 1.0) scale *= 2.0;
  dd r = add(x, multiply(ln2, (dd){-k, 0})), sum = {1.0, 0};
  for (int n = 32; n >= 1; n--) sum = add((dd){1.0, 0}, divide(multiply(sum, r), (double)n));
  return (dd){sum.hi * scale, sum.lo * scale};
}

static uint32_t integer_sqrt(uint32_t x) {
  uint32_t root = 0;
  for (uint32_t bit = 1u << 15; bit != 0; bit >>= 1)
    if ((uint64_t)(root + bit) * (root + bit) <= x) root += bit;
  return root;
}

/* fl32(theta^e), 0 <= e < 1 */
static float power(uint32_t theta, float e) {
  uint32_t m = theta;
  float a = e; /* theta^e = m^a throughout */
  for (; a != (float)(uint32_t)a; a *= 2.0f) {
    uint32_t root = integer_sqrt(m);
    if (root * root != m) {
      dd y = exp_of(multiply(log_of(theta), (dd){(double)e, 0}));
      return (float)slm2_round_to_odd(y.hi, y.lo);
    }
    m = root;
  }
  uint64_t exact = 1;
  for (uint32_t i = 0; i < (uint32_t)a; i++) exact *= m;
  return (float)exact;
}

bool slm2_inv_freq(uint32_t theta, uint32_t head_dim, float *out) {
  if (theta < 2 || theta > (uint32_t)1 << 31) return false;
  for (uint32_t i = 0; i < head_dim / 2; i++) out[i] = 1.0f / power(theta, (float)(2 * i) / (float)head_dim);
  return true;
}
