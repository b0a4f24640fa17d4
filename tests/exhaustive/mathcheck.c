/* tests/exhaustive/mathcheck.c: every f32 of the ranges in num/math.h against MPFR [D4] [D14] [D18].
 *
 *   mathcheck exp|log|sincos [STRIDE]   every STRIDE-th bit pattern of the range, in rising order (default 1: all)
 *   mathcheck f16                       all 2^32 f32 to f16 against the compiler's own half precision
 *   mathcheck inv_freq                  theta and head_dim tables against mpfr_pow
 *
 * Prints the hard arguments (below), then one line per function and range: stride, number of results, the SHA-256
 * of our results as little-endian bits (a line of tests/golden/math.txt), how many of them MPFR decided and how many
 * are wrong. Exit 1 when one is wrong.
 *
 * The C library's binary64 function is trusted to 2^-50 relative (glibc states less than one ulp, 2^-52): where the
 * whole interval of that width rounds to one f32, that is the right one; else the argument is hard, and MPFR decides
 * with 160 bits, as it does for every 65,537th argument anyway. */
#include <math.h>
#include <mpfr.h>
#include "base/bytes.h"
#include "base/sha256.h"
#include "num/math.h"
#include "tests/test.h"

typedef double binary64_fn(double);
typedef int mpfr_fn(mpfr_t, const mpfr_t, mpfr_rnd_t);

typedef struct tally {
  const char *name;
  binary64_fn *fast;
  mpfr_fn *exact;
  uint64_t n, decided, wrong;
  size_t n_bytes;
  uint8_t bytes[65536];
  slm2_sha256 sha;
  mpfr_t x, y;
} tally;

static void begin(tally *t, const char *name, binary64_fn *fast, mpfr_fn *exact) {
  t->name = name;
  t->fast = fast;
  t->exact = exact;
  t->n = t->decided = t->wrong = 0;
  t->n_bytes = 0;
  slm2_sha256_init(&t->sha);
  mpfr_init2(t->x, 160);
  mpfr_init2(t->y, 160);
}

static void record(tally *t, uint32_t bits) {
  slm2_store_u32(t->bytes + t->n_bytes, bits);
  t->n_bytes += 4;
  if (t->n_bytes == sizeof t->bytes) {
    slm2_sha256_update(&t->sha, t->bytes, t->n_bytes);
    t->n_bytes = 0;
  }
}

static void compare(tally *t, float x, float ours) {
  double d = t->fast((double)x), slack = fabs(d) * 0x1p-50;
  float want = (float)(d - slack);
  bool hard = slm2_float_bits(want) != slm2_float_bits((float)(d + slack));
  if (hard) printf("hard %s %08x\n", t->name, slm2_float_bits(x));
  if (hard || t->n % 65537 == 0) {
    mpfr_set_flt(t->x, x, MPFR_RNDN);
    t->exact(t->y, t->x, MPFR_RNDN);
    want = mpfr_get_flt(t->y, MPFR_RNDN);
    t->decided++;
  }
  if (slm2_float_bits(ours) != slm2_float_bits(want) && ++t->wrong <= 20)
    printf("WRONG %s(%a) = %a, not %a\n", t->name, (double)x, (double)ours, (double)want);
  record(t, slm2_float_bits(ours));
  t->n++;
}

static int end(tally *t, const char *range, uint32_t stride) {
  uint8_t hash[32];
  char hex[65];
  slm2_sha256_update(&t->sha, t->bytes, t->n_bytes);
  slm2_sha256_final(&t->sha, hash);
  slm2_hex(hash, 32, hex);
  printf("%s %s %u %llu %s  # %llu decided by MPFR, %llu wrong\n", t->name, range, stride, (unsigned long long)t->n, hex,
         (unsigned long long)t->decided, (unsigned long long)t->wrong);
  mpfr_clear(t->x);
  mpfr_clear(t->y);
  return t->wrong != 0;
}

static int check_one(const char *name, const char *range, binary64_fn *fast, mpfr_fn *exact, float (*ours)(float),
                     uint32_t first, uint32_t last, uint32_t stride) {
  static tally t;
  begin(&t, name, fast, exact);
  for (uint64_t u = first; u <= last; u += stride) {
    float x = slm2_float_from_bits((uint32_t)u);
    compare(&t, x, ours(x));
  }
  return end(&t, range, stride);
}

static int check_sincos(uint32_t stride) {
  static tally s, c;
  begin(&s, "sin", sin, mpfr_sin);
  begin(&c, "cos", cos, mpfr_cos);
  for (uint64_t u = 0; u <= 0x48000000; u += stride) {
    float x = slm2_float_from_bits((uint32_t)u), sin_x, cos_x;
    slm2_sincosf(x, &sin_x, &cos_x);
    compare(&s, x, sin_x);
    compare(&c, x, cos_x);
  }
  int bad = end(&s, "0..2^17", stride);
  return end(&c, "0..2^17", stride) | bad;
}

static int check_f16(void) {
#ifdef __FLT16_MANT_DIG__
  uint64_t wrong = 0;
  for (uint64_t u = 0; u < (uint64_t)1 << 32; u++) {
    float x = slm2_float_from_bits((uint32_t)u);
    _Float16 half = (_Float16)x;
    uint16_t want;
    memcpy(&want, &half, sizeof want);
    if (x != x) want = (uint16_t)(0x7e00 | (u >> 16 & 0x8000));
    if (slm2_f32_to_f16(x) != want && ++wrong <= 20) printf("WRONG f16(%a)\n", (double)x);
  }
  printf("# f16: all 2^32 f32 to f16, %llu wrong\n", (unsigned long long)wrong);
  return wrong != 0;
#else
  printf("# f16: this compiler has no half precision to compare with\n");
  return 1;
#endif
}

/* The frequencies of one theta and head_dim. */
static void check_frequencies(tally *t, uint32_t theta, uint32_t head_dim) {
  float out[256];
  mpfr_t e, p;
  mpfr_inits2(24, e, p, (mpfr_ptr)0);
  if (!slm2_inv_freq(theta, head_dim, out)) t->wrong++;
  for (uint32_t i = 0; i < head_dim / 2; i++) {
    mpfr_set_ui(e, 2 * i, MPFR_RNDN);
    mpfr_div_ui(e, e, head_dim, MPFR_RNDN);
    mpfr_ui_pow(p, theta, e, MPFR_RNDN); /* correctly rounded to 24 bits, exact ties included */
    float want = 1.0f / mpfr_get_flt(p, MPFR_RNDN);
    if (slm2_float_bits(out[i]) != slm2_float_bits(want) && ++t->wrong <= 20)
      printf("WRONG inv_freq(theta %u, head_dim %u)[%u] = %a, not %a\n", theta, head_dim, i, (double)out[i], (double)want);
    record(t, slm2_float_bits(out[i]));
    t->n++;
    t->decided++;
  }
  mpfr_clears(e, p, (mpfr_ptr)0);
}

static int check_inv_freq(void) {
  static const uint32_t thetas[] = {10000, 500000, 1000000, 5000000};
  static tally t;
  begin(&t, "inv_freq", NULL, NULL);
  for (size_t i = 0; i < sizeof thetas / sizeof thetas[0]; i++)
    for (uint32_t head_dim = 8; head_dim <= 512; head_dim += 8) check_frequencies(&t, thetas[i], head_dim);
  int bad = end(&t, "theta=1e4,5e5,1e6,5e6;head_dim=8..512", 8);
  begin(&t, "inv_freq", NULL, NULL);
  for (uint32_t head_dim = 2; head_dim <= 512; head_dim += 2) {
    check_frequencies(&t, 2, head_dim);
    check_frequencies(&t, (uint32_t)1 << 31, head_dim);
  }
  for (uint32_t theta = 2; theta <= 2000; theta++) check_frequencies(&t, theta, 128);
  for (uint64_t m = 2; m * m <= (uint64_t)1 << 31; m += m < 1300 ? 1 : 97) /* squares, and all 4th, 8th and 16th powers */
    for (uint64_t power = m * m; power <= (uint64_t)1 << 31; power *= power) check_frequencies(&t, (uint32_t)power, 32);
  uint64_t seed = 14;
  for (int i = 0; i < 2000; i++) {
    uint32_t theta = 2 + (uint32_t)(test_random(&seed) % (((uint64_t)1 << 31) - 1));
    check_frequencies(&t, theta, 2 + 2 * (uint32_t)(test_random(&seed) % 256));
  }
  return end(&t, "small,extreme,perfect-power,random", 1) | bad;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  uint32_t stride = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
  if (stride == 0) stride = 1;
  if (strcmp(what, "exp") == 0)
    return check_one("exp", "-0..-104", exp, mpfr_exp, slm2_expf, 0x80000000u, 0xc2d00000u, stride) |
           check_one("exp", "0..89", exp, mpfr_exp, slm2_expf, 0, 0x42b20000u, stride);
  if (strcmp(what, "log") == 0)
    return check_one("log", "2^-149..2^128-2^104", log, mpfr_log, slm2_logf, 1, 0x7f7fffffu, stride);
  if (strcmp(what, "sincos") == 0) return check_sincos(stride);
  if (strcmp(what, "f16") == 0) return check_f16();
  if (strcmp(what, "inv_freq") == 0) return check_inv_freq();
  fprintf(stderr, "usage: mathcheck exp|log|sincos [STRIDE] | f16 | inv_freq\n");
  return 2;
}
