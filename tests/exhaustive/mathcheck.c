/* tests/exhaustive/mathcheck.c: every f32 of the ranges in num/math.h against MPFR [D4] [D14] [D18], and every rounding
 * of the two quantisers [D9] [D11] against exact arithmetic.
 *
 *   mathcheck exp|log|sincos [STRIDE]   every STRIDE-th bit pattern of the range, in rising order (default 1: all)
 *   mathcheck f16 [STRIDE]              f32 to f16, and all f16 to f32, against the compiler's own half precision
 *   mathcheck inv_freq                  theta and head_dim tables against mpfr_pow
 *   mathcheck rope                      sine and cosine of every angle that 40,960 positions reach
 *   mathcheck quantize [STRIDE]         every f32 up to 127 at scale 1; all ties and their neighbours at every power of
 *                                       two, and at 20,000 other scales
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
#include "kernel/kernel.h"
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

static void record_n(tally *t, uint32_t bits, size_t n) {
  for (size_t i = 0; i < n; i++) t->bytes[t->n_bytes++] = (uint8_t)(bits >> (8 * i));
  if (t->n_bytes == sizeof t->bytes) {
    slm2_sha256_update(&t->sha, t->bytes, t->n_bytes);
    t->n_bytes = 0;
  }
}

static void record(tally *t, uint32_t bits) { record_n(t, bits, 4); }

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

#ifdef __FLT16_MANT_DIG__
static int check_f16(uint32_t stride) {
  static tally t;
  begin(&t, "f32_to_f16", NULL, NULL);
  for (uint64_t u = 0; u < (uint64_t)1 << 32; u += stride) {
    float x = slm2_float_from_bits((uint32_t)u);
    _Float16 half = (_Float16)x;
    uint16_t want, got = slm2_f32_to_f16(x);
    memcpy(&want, &half, sizeof want);
    if (x != x) want = (uint16_t)(0x7e00 | (u >> 16 & 0x8000));
    if (got != want && ++t.wrong <= 20) printf("WRONG f32_to_f16(%a) = %04x, not %04x\n", (double)x, got, want);
    record_n(&t, got, 2);
    t.n++;
  }
  int bad = end(&t, "all", stride);
  begin(&t, "f16_to_f32", NULL, NULL);
  for (uint32_t h = 0; h < 65536; h++) {
    uint16_t bits = (uint16_t)h;
    _Float16 half;
    memcpy(&half, &bits, sizeof half);
    uint32_t want = slm2_float_bits((float)half), got = slm2_float_bits(slm2_f16_to_f32(bits));
    if ((bits & 0x7fff) > 0x7c00) want = (h & 0x8000) << 16 | 0x7f800000 | (h & 0x3ff) << 13; /* NaN: payload kept */
    if (got != want && ++t.wrong <= 20) printf("WRONG f16_to_f32(%04x) = %08x, not %08x\n", h, got, want);
    record(&t, got);
    t.n++;
  }
  return end(&t, "all", 1) | bad;
}
#else
static int check_f16(uint32_t stride) {
  printf("# f16: this compiler has no half precision to compare with (stride %u)\n", stride);
  return 1;
}
#endif

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

/* Every angle of positions 0 .. 40959, through the kernel's table. The product of a position and a frequency is exact in
 * binary64 and so rounded once. */
static int check_rope_shape(uint32_t theta, uint32_t head_dim) {
  static tally s, c;
  char range[64];
  float freq[256], sin_x[256], cos_x[256];
  uint8_t bytes[1024];
  const slm2_backend *backend = &slm2_backend_oracle;
  begin(&s, "rope_sin", sin, mpfr_sin);
  begin(&c, "rope_cos", cos, mpfr_cos);
  if (!slm2_inv_freq(theta, head_dim, freq)) s.wrong++; /* itself checked by inv_freq */
  for (uint32_t i = 0; i < head_dim / 2; i++) slm2_store_f32(bytes + 4 * i, freq[i]);
  for (uint32_t position = 0; position < 40960; position++) {
    backend->rope_table(cos_x, sin_x, position, bytes, head_dim / 2);
    for (uint32_t i = 0; i < head_dim / 2; i++) {
      float angle = (float)((double)position * (double)freq[i]);
      compare(&s, angle, sin_x[i]);
      compare(&c, angle, cos_x[i]);
    }
  }
  snprintf(range, sizeof range, "theta=%u;head_dim=%u;positions=0..40959", theta, head_dim);
  int bad = end(&s, range, 1);
  return end(&c, range, 1) | bad;
}

static int check_rope(void) {
  int bad = 0;
  for (uint32_t head_dim = 32; head_dim <= 128; head_dim *= 2) bad |= check_rope_shape(1000000, head_dim);
  return bad | check_rope_shape(10000, 128) | check_rope_shape(5000000, 128);
}

/* --- quantisers ------------------------------------------------------------------------------------------- */

/* 31 values and the block's largest one. The product is exact in binary64, so each expected value has one rounding to
 * f32 and one, stated by the rule, to an integer. */
typedef struct block_check {
  tally *weights, *activations; /* [D9], [D11] */
  float x[32];
  uint32_t n;
  bool weights_too; /* the scale fits f16 */
} block_check;

static void judge(tally *t, const char *rule, float x, float id, int got, double want) {
  if (got != (int)want && ++t->wrong <= 20)
    printf("WRONG %s: %a times %a gives %d, not %d\n", rule, (double)x, (double)id, got, (int)want);
  record_n(t, (uint8_t)got, 1);
  t->n++;
}

static void flush_block(block_check *b) {
  float amax = b->x[31], d32 = (float)((double)amax / 127.0);
  float id9 = (float)(1.0 / (double)d32), id11 = (float)(127.0 / (double)amax), scale;
  uint8_t block[34];
  int8_t xq[32];
  for (uint32_t i = b->n; i < 31; i++) b->x[i] = 0.0f;
  if (b->weights_too) {
    if (slm2_q8_quantize(b->x, block, NULL) != SLM2_OK) b->weights->wrong++;
    for (uint32_t i = 0; i < b->n; i++) {
      double p = (double)(float)((double)b->x[i] * (double)id9);
      judge(b->weights, "[D9]", b->x[i], id9, (int8_t)block[2 + i], p < 0 ? -floor(0.5 - p) : floor(p + 0.5));
    }
  }
  bool quantized = slm2_backend_oracle.quantize(xq, &scale, b->x, 32);
  if (!quantized || slm2_float_bits(scale) != slm2_float_bits(d32)) b->activations->wrong++;
  for (uint32_t i = 0; i < b->n; i++) {
    double p = (double)(float)((double)b->x[i] * (double)id11), nearest = nearbyint(p);
    judge(b->activations, "[D11]", b->x[i], id11, xq[i], nearest > 127 ? 127 : nearest < -127 ? -127 : nearest);
  }
  b->n = 0;
}

static void add_value(block_check *b, float x) {
  if (fabsf(x) > b->x[31]) return;
  b->x[b->n++] = x;
  if (b->n == 31) flush_block(b);
}

/* The value that id takes to k + 1/2, if there is one, and its neighbours. */
static void add_ties(block_check *b, float id) {
  for (int k = 0; k < 127; k++)
    for (int sign = -1; sign <= 1; sign += 2) {
      float x = (float)(sign * (k + 0.5) / (double)id);
      add_value(b, x);
      add_value(b, nextafterf(x, 0.0f));
      add_value(b, nextafterf(x, sign < 0 ? -INFINITY : INFINITY));
    }
}

static int check_quantize(uint32_t stride) {
  static tally d9, d11;
  block_check b = {.weights = &d9, .activations = &d11, .weights_too = true};
  begin(&d9, "quantize_d9", NULL, NULL);
  begin(&d11, "quantize_d11", NULL, NULL);
  b.x[31] = 127.0f;
  for (uint64_t u = 0; u <= 0x42fe0000; u += stride) {
    add_value(&b, slm2_float_from_bits((uint32_t)u));
    add_value(&b, -slm2_float_from_bits((uint32_t)u));
  }
  flush_block(&b);
  int bad = end(&d9, "every-f32-to-127", stride);
  bad |= end(&d11, "every-f32-to-127", stride);
  begin(&d9, "quantize_d9", NULL, NULL);
  begin(&d11, "quantize_d11", NULL, NULL);
  for (int e = -106; e <= 120; e++) { /* 127 * 2^-106 is the first above 2^-100 */
    b.x[31] = (float)ldexp(127, e);
    b.weights_too = e >= -24 && e <= 15;
    add_ties(&b, (float)ldexp(1, -e));
    flush_block(&b);
  }
  uint64_t seed = 9;
  for (int i = 0; i < 20000; i++) {
    b.x[31] = (float)ldexp(1.0 + (double)(test_random(&seed) >> 41) * 0x1p-23, (int)(test_random(&seed) % 220) - 99);
    double d32 = (double)(float)((double)b.x[31] / 127.0);
    b.weights_too = d32 > 0x1p-24 && d32 < 65504;
    add_ties(&b, (float)(127.0 / (double)b.x[31]));
    if (b.weights_too) add_ties(&b, (float)(1.0 / d32));
    flush_block(&b);
  }
  bad |= end(&d9, "ties", 1);
  return bad | end(&d11, "ties", 1);
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
  if (strcmp(what, "f16") == 0) return check_f16(stride);
  if (strcmp(what, "inv_freq") == 0) return check_inv_freq();
  if (strcmp(what, "rope") == 0) return check_rope();
  if (strcmp(what, "quantize") == 0) return check_quantize(stride);
  fprintf(stderr, "usage: mathcheck exp|log|sincos|f16|quantize [STRIDE] | inv_freq | rope\n");
  return 2;
}
