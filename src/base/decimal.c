/* base/decimal.c: decimal text and binary64, both ways, with exact integers only, so that no floating-point
 * control state can change a result. Reading follows Clinger's AlgorithmM (long division of exact integers),
 * writing Steele and White's free-format algorithm (shortest digits, closest last digit).
 *
 * Bound of every big integer below: 2^2688 = 84 limbs of 32 bits.
 *   Reading: at most 801 digits D < 10^801 < 2^2661, and 5^k with k <= 323 + 801, 5^1124 < 2^2610; both are
 *   aligned to the longer one and the numerator stays below twice the denominator: at most 2^2662.
 *   Writing: numerator and denominator stay below 10 * 2^55 * 10^324 < 2^1136. */
#include "base/decimal.h"
#include "base/bytes.h"

#define LIMBS 84u
#define DIGITS_KEPT 800 /* a border between two binary64 has at most 767 significant digits */

typedef struct big {
  uint32_t n; /* limbs in use; the top one is not zero */
  uint32_t limb[LIMBS];
} big;

static void big_set(big *b, uint64_t v) {
  b->limb[0] = (uint32_t)v;
  b->limb[1] = (uint32_t)(v >> 32);
  b->n = b->limb[1] != 0 ? 2 : b->limb[0] != 0;
}

/* b = b * m + add */
static void big_multiply(big *b, uint32_t m, uint32_t add) {
  uint64_t carry = add;
  for (uint32_t i = 0; i < b->n; i++) {
    carry += (uint64_t)b->limb[i] * m;
    b->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry != 0) b->limb[b->n++] = (uint32_t)carry;
}

static void big_multiply_pow5(big *b, int64_t k) {
  for (; k >= 13; k -= 13) big_multiply(b, 1220703125u, 0); /* 5^13 */
  uint32_t m = 1;
  for (; k > 0; k--) m *= 5;
  big_multiply(b, m, 0);
}

static void big_shift_left(big *b, int64_t bits) {
  if (b->n == 0) return;
  uint32_t whole = (uint32_t)(bits / 32), part = (uint32_t)(bits % 32);
  if (whole > 0) {
    memmove(b->limb + whole, b->limb, b->n * sizeof b->limb[0]);
    memset(b->limb, 0, whole * sizeof b->limb[0]);
    b->n += whole;
  }
  if (part > 0) big_multiply(b, (uint32_t)1 << part, 0);
}

static int64_t big_bits(const big *b) {
  if (b->n == 0) return 0;
  int64_t bits = 32 * (int64_t)(b->n - 1);
  for (uint32_t top = b->limb[b->n - 1]; top != 0; top >>= 1) bits++;
  return bits;
}

static int big_compare(const big *a, const big *b) {
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  for (uint32_t i = a->n; i-- > 0;)
    if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
  return 0;
}

static void big_trim(big *b) {
  while (b->n > 0 && b->limb[b->n - 1] == 0) b->n--;
}

/* a = a - b, a >= b */
static void big_subtract(big *a, const big *b) {
  uint64_t borrow = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    uint64_t take = (i < b->n ? b->limb[i] : 0) + borrow;
    borrow = a->limb[i] < take;
    a->limb[i] = (uint32_t)(a->limb[i] - take);
  }
  big_trim(a);
}

static void big_add(big *a, const big *b) {
  uint64_t carry = 0;
  while (a->n < b->n) a->limb[a->n++] = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    carry += (uint64_t)a->limb[i] + (i < b->n ? b->limb[i] : 0);
    a->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry != 0) a->limb[a->n++] = (uint32_t)carry;
  big_trim(a);
}

/* --- text to number --------------------------------------------------------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Value = +-digits * 10^exponent, or +-0 when digits is zero. */
typedef struct decimal {
  bool negative;
  big digits;
  int64_t n_digits, point; /* value in [10^(point-1), 10^point) */
} decimal;

/* Significant digits of text[0..n), of which the first n_whole come before the point. Digits past
 * DIGITS_KEPT can only break a tie: one digit 1 stands for all of them when any is not zero. */
static void collect(decimal *d, const char *text, size_t n, size_t n_whole) {
  bool started = false, dropped = false;
  big_set(&d->digits, 0);
  d->n_digits = 0;
  d->point = (int64_t)n_whole;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '.') continue;
    if (!started && text[i] == '0') {
      d->point--;
      continue;
    }
    started = true;
    if (d->n_digits == DIGITS_KEPT) {
      dropped = dropped || text[i] != '0';
      continue;
    }
    big_multiply(&d->digits, 10, (uint32_t)(text[i] - '0'));
    d->n_digits++;
  }
  if (dropped) {
    big_multiply(&d->digits, 10, 1);
    d->n_digits++;
  }
}

/* Grammar of the header. The exponent saturates far above any length of text. */
static bool parse(const char *text, size_t n, decimal *d) {
  size_t i = 0;
  d->negative = n > 0 && text[0] == '-';
  if (d->negative) i++;
  size_t begin = i;
  while (i < n && is_digit(text[i])) i++;
  size_t n_whole = i - begin;
  if (n_whole == 0 || (n_whole > 1 && text[begin] == '0')) return false;
  if (i < n && text[i] == '.') {
    size_t fraction = ++i;
    while (i < n && is_digit(text[i])) i++;
    if (i == fraction) return false;
  }
  size_t end = i;
  int64_t exponent = 0;
  if (i < n && (text[i] == 'e' || text[i] == 'E')) {
    i++;
    bool down = i < n && text[i] == '-';
    if (i < n && (text[i] == '-' || text[i] == '+')) i++;
    size_t first = i;
    for (; i < n && is_digit(text[i]); i++)
      if (exponent < 100000000000000000) exponent = exponent * 10 + (text[i] - '0');
    if (i == first) return false;
    if (down) exponent = -exponent;
  }
  if (i != n) return false;
  collect(d, text + begin, end - begin, n_whole);
  d->point += exponent;
  return true;
}

/* Bits of the binary64 nearest to a non-zero value; ties to even. */
static uint64_t nearest_f64(decimal *d) {
  if (d->point > 309) return (uint64_t)0x7ff << 52; /* >= 10^309 */
  if (d->point < -323) return 0;                    /* < 10^-324 < 2^-1075 */
  int64_t e = d->point - d->n_digits;
  big *num = &d->digits, den;
  big_set(&den, 1);
  if (e > 0) big_multiply_pow5(num, e);
  if (e < 0) big_multiply_pow5(&den, -e);
  /* value = num / den * 2^e; make num / den lie in [1, 2). */
  int64_t shift = big_bits(num) - big_bits(&den);
  if (shift > 0) big_shift_left(&den, shift);
  if (shift < 0) big_shift_left(num, -shift);
  e += shift;
  if (big_compare(num, &den) < 0) {
    big_shift_left(num, 1);
    e--;
  }
  if (e > 1023) return (uint64_t)0x7ff << 52;
  int64_t precision = e >= -1022 ? 53 : e + 1075; /* bits this binade can hold */
  if (precision < 0) return 0;
  uint64_t q = 0;
  for (int64_t i = 0; i < precision; i++) {
    q <<= 1;
    if (big_compare(num, &den) >= 0) {
      big_subtract(num, &den);
      q |= 1;
    }
    big_shift_left(num, 1);
  }
  int half = big_compare(num, &den); /* the rest of the value against half a unit of q */
  if (half > 0 || (half == 0 && (q & 1) != 0)) q++;
  /* q carries the implicit bit, which counts one binade; a carry out of q moves on to the next one. */
  return e >= -1022 ? ((uint64_t)(e + 1022) << 52) + q : q;
}

static bool decimal_bits(const char *text, size_t n, uint64_t *out) {
  decimal d;
  if (!parse(text, n, &d)) return false;
  *out = (d.n_digits == 0 ? 0 : nearest_f64(&d)) | (uint64_t)d.negative << 63;
  return true;
}

bool slm2_decimal_to_f64(const char *text, size_t n, double *out) {
  uint64_t bits;
  if (!decimal_bits(text, n, &bits)) return false;
  *out = slm2_double_from_bits(bits);
  return true;
}

/* Nearest-even f32 of the non-NaN f64 with these bits. */
static uint32_t narrow(uint64_t bits) {
  uint32_t sign = (uint32_t)(bits >> 63) << 31;
  int64_t e = (int64_t)(bits >> 52 & 0x7ff) - 1023;
  uint64_t m = (bits & 0xfffffffffffff) | (uint64_t)1 << 52;
  if (e > 127) return sign | 0x7f800000u;
  if (e < -150) return sign; /* < 2^-150, f64 subnormals included */
  int64_t drop = e >= -126 ? 29 : 29 + (-126 - e); /* 29 .. 53 low bits have no room */
  uint64_t q = m >> drop, rest = m & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
  if (rest > half || (rest == half && (q & 1) != 0)) q++;
  return sign | (uint32_t)((e >= -126 ? (uint64_t)(e + 126) << 23 : 0) + q);
}

bool slm2_decimal_to_f32(const char *text, size_t n, float *out) {
  uint64_t bits;
  if (!decimal_bits(text, n, &bits)) return false;
  *out = slm2_float_from_bits(narrow(bits));
  return true;
}

/* --- number to text --------------------------------------------------------- */

/* A positive number value * 2^exponent, and how far a decimal may lie below and above it and still read
 * back, in the same units. inclusive: the two borders themselves read back too. */
typedef struct interval {
  uint64_t value;
  uint32_t shift; /* value is to be shifted left by this */
  uint64_t below, above;
  int32_t exponent;
  bool inclusive;
} interval;

/* Shortest digits inside the interval, the closest ones of that length; 0.d1d2... * 10^*point. At most 17. */
static size_t shortest_digits(const interval *v, char digits[20], int32_t *point) {
  big r, s, low, high; /* value = r / s, borders low / s below and high / s above */
  big_set(&r, v->value);
  big_shift_left(&r, v->shift);
  big_set(&s, 1);
  big_set(&low, v->below);
  big_set(&high, v->above);
  /* floor((bits - 1) * log10(2)) + 1 is the decimal point or one less; log10(2) = 0.30102999... */
  int32_t top = (int32_t)big_bits(&r) - 1 + v->exponent;
  int32_t k = (int32_t)(((int64_t)top * 30103 - (top < 0 ? 99999 : 0)) / 100000) + 1;
  big *const scaled[3] = {&r, &low, &high};
  if (v->exponent > 0)
    for (int i = 0; i < 3; i++) big_shift_left(scaled[i], v->exponent);
  else
    big_shift_left(&s, -v->exponent);
  if (k > 0) {
    big_multiply_pow5(&s, k);
    big_shift_left(&s, k);
  } else {
    for (int i = 0; i < 3; i++) {
      big_multiply_pow5(scaled[i], -k);
      big_shift_left(scaled[i], -k);
    }
  }
  /* The point is one more when a decimal inside the interval reaches 10^k. */
  big sum = r;
  big_add(&sum, &high);
  int reach = big_compare(&sum, &s);
  if (reach > 0 || (reach == 0 && v->inclusive)) {
    big_multiply(&s, 10, 0);
    k++;
  }
  *point = k;
  for (size_t n = 0;;) {
    for (int i = 0; i < 3; i++) big_multiply(scaled[i], 10, 0);
    char digit = '0';
    while (big_compare(&r, &s) >= 0) {
      big_subtract(&r, &s);
      digit++;
    }
    int down = big_compare(&r, &low);
    sum = r;
    big_add(&sum, &high);
    int up = big_compare(&sum, &s);
    bool down_ok = down < 0 || (down == 0 && v->inclusive), up_ok = up > 0 || (up == 0 && v->inclusive);
    if (!down_ok && !up_ok) {
      digits[n++] = digit;
      continue;
    }
    big_shift_left(&r, 1);
    int half = big_compare(&r, &s);
    bool round_up = up_ok && (!down_ok || half > 0 || (half == 0 && (digit & 1) != 0));
    digits[n++] = (char)(digit + round_up); /* never past '9': the point above was chosen for that */
    return n;
  }
}

/* Python's repr: plain for 1e-4 <= x < 1e16, else d.ddde[+-]XX. */
static size_t lay_out(bool negative, const char *digits, size_t n, int32_t point, char out[SLM2_DECIMAL_MAX]) {
  size_t at = 0;
  if (negative) out[at++] = '-';
  if (point > -4 && point <= 16) {
    if (point <= 0) {
      out[at++] = '0';
      out[at++] = '.';
      for (int32_t i = point; i < 0; i++) out[at++] = '0';
    }
    for (size_t i = 0; i < n; i++) {
      if (point > 0 && i == (size_t)point) out[at++] = '.';
      out[at++] = digits[i];
    }
    for (int32_t i = (int32_t)n; i < point; i++) out[at++] = '0';
    if (point > 0 && (size_t)point >= n) {
      out[at++] = '.';
      out[at++] = '0';
    }
  } else {
    out[at++] = digits[0];
    if (n > 1) out[at++] = '.';
    for (size_t i = 1; i < n; i++) out[at++] = digits[i];
    int32_t e = point - 1;
    out[at++] = 'e';
    out[at++] = e < 0 ? '-' : '+';
    uint32_t magnitude = (uint32_t)(e < 0 ? -e : e);
    if (magnitude < 10) out[at++] = '0';
    at += slm2_u64_to_decimal(magnitude, out + at);
  }
  out[at] = 0;
  return at;
}

static size_t write_interval(bool negative, const interval *v, char out[SLM2_DECIMAL_MAX]) {
  char digits[20];
  int32_t point = 1;
  if (v->value == 0) return lay_out(negative, "0", 1, 1, out);
  size_t n = shortest_digits(v, digits, &point);
  return lay_out(negative, digits, n, point, out);
}

size_t slm2_f64_to_decimal(double x, char out[SLM2_DECIMAL_MAX]) {
  uint64_t bits = slm2_double_bits(x), m = bits & 0xfffffffffffff;
  int32_t e = (int32_t)(bits >> 52 & 0x7ff);
  bool first = m == 0 && e > 1; /* the number below is half a unit nearer */
  if (e > 0) m |= (uint64_t)1 << 52;
  /* units of a quarter of the last place */
  interval v = {m, 2, first ? 1 : 2, 2, (e > 0 ? e : 1) - 1075 - 2, (m & 1) == 0};
  return write_interval(bits >> 63 != 0, &v, out);
}

size_t slm2_f32_to_decimal(float x, char out[SLM2_DECIMAL_MAX]) {
  uint32_t bits = slm2_float_bits(x), m = bits & 0x7fffff;
  int32_t e = (int32_t)(bits >> 23 & 0xff);
  bool first = m == 0 && e > 1;
  if (e > 0) m |= 0x800000;
  int32_t top = -1; /* of m */
  for (uint32_t t = m; t != 0; t >>= 1) top++;
  /* Units of 2^-54 of the last place, of which half a binary64 unit near [2^t, 2^(t+1)) last places has
   * 2^(t + 1). A decimal is first rounded to binary64: that ends an odd m half such a unit before the border to
   * its neighbour and an even m half a unit after it. Above, t = top. Below, t = top but for powers of two, where
   * the border lies one binade lower (m = 1: border 2^-1, odd, so the unit above it counts: t = -1). */
  uint64_t above = (uint64_t)1 << 53, below = first ? above >> 1 : above;
  uint64_t slack_above = m == 0 ? 0 : (uint64_t)2 << top;
  uint64_t slack_below = (m & (m - 1)) == 0 ? slack_above >> 1 : slack_above;
  bool even = (m & 1) == 0;
  interval v = {m, 54, even ? below + slack_below : below - slack_below, even ? above + slack_above : above - slack_above,
                (e > 0 ? e : 1) - 150 - 54, even};
  return write_interval(bits >> 31 != 0, &v, out);
}

size_t slm2_u64_to_decimal(uint64_t x, char out[SLM2_DECIMAL_MAX]) {
  char reversed[SLM2_DECIMAL_MAX];
  size_t n = 0;
  do {
    reversed[n++] = (char)('0' + x % 10);
    x /= 10;
  } while (x != 0);
  for (size_t i = 0; i < n; i++) out[i] = reversed[n - 1 - i];
  out[n] = 0;
  return n;
}
