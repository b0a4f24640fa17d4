/* tests/kernelcheck/vectors.c: the slots between the products: embed, quantize, rmsnorm, rope, kv_store, swiglu, add, finite.
 * Lengths around every vector width, every pattern, in place where the contract allows it. */
#include "tests/kernelcheck/kernelcheck.h"

static char label[160];
static const char *name_case(const slm2_backend *b, const char *slot, uint32_t n, int pattern) {
  snprintf(label, sizeof label, "%s %s, %u values, %s", b->name, slot, (unsigned)n, kc_pattern_names[pattern]);
  return label;
}
static float *filled(size_t n, int pattern) {
  float *x = kc_input(n * sizeof *x, 4);
  kc_fill(x, n, (kc_pattern)pattern);
  return x;
}
static float *copy_of(const float *x, size_t n) {
  float *y = kc_output(n * sizeof *y, 4);
  memcpy(y, x, n * sizeof *y);
  return y;
}
static void expect(const float *y, const float *expected, size_t n, const char *what) {
  CHECK_CASE(kc_same(y, expected, n), what);
  CHECK_CASE(kc_guards_hold(y, n * sizeof *y), what);
}

static void quantize_both(const slm2_backend *b, const float *x, uint32_t n, const char *what) {
  const slm2_backend *o = &slm2_backend_oracle;
  float *a = kc_output(n / 32 * sizeof(float), 4), *a0 = kc_output(n / 32 * sizeof(float), 4);
  int8_t *q = kc_output(n, 1), *q0 = kc_output(n, 1);
  bool fine = o->quantize(q0, a0, x, n);
  CHECK_CASE(b->quantize(q, a, x, n) == fine, what);
  if (fine) {
    expect(a, a0, n / 32, what);
    CHECK_CASE(memcmp(q, q0, n) == 0, what);
  }
  CHECK_CASE(kc_guards_hold(q, n) && kc_guards_hold(a, n / 32 * sizeof(float)), what);
}

static void check_quantize(const slm2_backend *b, uint32_t n, int pattern) {
  quantize_both(b, filled(n, pattern), n, name_case(b, "quantize", n, pattern));
}

/* Every tie, -126.5 to 126.5, in blocks whose scale is 1 or a power of two; and amax around 2^-100, below which a block is
 * zero. */
static void check_quantize_edges(const slm2_backend *b) {
  float x[256 + 32];
  for (int exponent = 0; exponent < 3; exponent++) {
    const float unit = exponent == 0 ? 1.0f : exponent == 1 ? 0x1p-60f : 0x1p100f;
    for (int i = 0; i < 288; i++) x[i] = (i % 32 == 0 ? 127.0f : (float)((i * 7) % 254 - 127) + 0.5f) * unit;
    quantize_both(b, x, 288, name_case(b, "quantize ties", 288, KC_RANDOM));
    kc_release();
  }
  for (int step = -3; step <= 3; step++) {
    for (int i = 0; i < 32; i++) x[i] = i == 17 ? slm2_float_from_bits((uint32_t)(0x0d800000 + step)) : 0x1p-103f * (float)i;
    for (int i = 8; i < 32; i++) x[i] = i == 17 ? x[i] : 0.0f;
    quantize_both(b, x, 32, name_case(b, "quantize near 2^-100", 32, KC_RANDOM));
    kc_release();
  }
}

static void check_rmsnorm(const slm2_backend *b, uint32_t n, int pattern) {
  const char *what = name_case(b, "rmsnorm", n, pattern);
  float *x = filled(n, pattern), *expected = kc_output(n * sizeof *x, 4), *y = kc_output(n * sizeof *x, 4);
  uint8_t *w = kc_input(4 * (size_t)n, 4);
  for (uint32_t i = 0; i < n; i++) slm2_store_f32(w + 4 * (size_t)i, (float)kc_below(1000) / 256.0f - 1.0f);
  slm2_backend_oracle.rmsnorm(expected, x, w, n, 1e-6f);
  b->rmsnorm(y, x, w, n, 1e-6f);
  expect(y, expected, n, what);
  float *same = copy_of(x, n);
  b->rmsnorm(same, same, w, n, 1e-6f);
  expect(same, expected, n, what);
}

static void check_rope(const slm2_backend *b, uint32_t half, int pattern) {
  const char *what = name_case(b, "rope", 2 * half, pattern);
  float *x = filled(2 * (size_t)half, pattern);
  uint8_t *inv_freq = kc_input(4 * (size_t)half, 4);
  for (uint32_t i = 0; i < half; i++) slm2_store_f32(inv_freq + 4 * (size_t)i, 1.0f / (float)(1 + i * i));
  size_t bytes = half * sizeof(float);
  float *c0 = kc_output(bytes, 4), *s0 = kc_output(bytes, 4), *c = kc_output(bytes, 4), *s = kc_output(bytes, 4);
  uint32_t position = kc_below(131072);
  slm2_backend_oracle.rope_table(c0, s0, position, inv_freq, half);
  b->rope_table(c, s, position, inv_freq, half);
  expect(c, c0, half, what);
  expect(s, s0, half, what);
  float *expected = copy_of(x, 2 * (size_t)half), *y = copy_of(x, 2 * (size_t)half);
  slm2_backend_oracle.rope(expected, c0, s0, half);
  b->rope(y, c0, s0, half);
  expect(y, expected, 2 * (size_t)half, what);
}

static void check_kv_store(const slm2_backend *b, uint32_t n, int pattern) {
  float *x = filled(n, pattern);
  for (int f16 = 0; f16 < 2; f16++) {
    const char *what = name_case(b, f16 ? "kv_store f16" : "kv_store f32", n, pattern);
    size_t bytes = n * (f16 ? 2u : 4u);
    uint8_t *expected = kc_output(bytes, 4), *y = kc_output(bytes, 4);
    bool fine = slm2_backend_oracle.kv_store(expected, x, n, f16);
    CHECK_CASE(b->kv_store(y, x, n, f16) == fine, what);
    if (fine) CHECK_CASE(memcmp(y, expected, bytes) == 0, what);
    CHECK_CASE(kc_guards_hold(y, bytes), what);
  }
}

static void check_elements(const slm2_backend *b, uint32_t n, int pattern) {
  const slm2_backend *o = &slm2_backend_oracle;
  float *x = filled(n, pattern), *u = filled(n, pattern), *expected = kc_output(n * sizeof *x, 4);
  const char *what = name_case(b, "swiglu", n, pattern);
  o->swiglu(expected, x, u, n);
  float *y = kc_output(n * sizeof *x, 4);
  b->swiglu(y, x, u, n);
  expect(y, expected, n, what);
  float *same = copy_of(x, n);
  b->swiglu(same, same, u, n);
  expect(same, expected, n, what);
  what = name_case(b, "add", n, pattern);
  float *sum = copy_of(x, n), *sum0 = copy_of(x, n);
  o->add(sum0, u, n);
  b->add(sum, u, n);
  expect(sum, sum0, n, what);
  what = name_case(b, "finite", n, pattern);
  CHECK_CASE(b->finite(x, n) == o->finite(x, n), what);
  for (uint32_t at = 0; at < n; at += 1 + n / 16) { /* one bad value, anywhere */
    float keep = x[at];
    x[at] = slm2_float_from_bits(kc_below(2) == 0 ? 0x7f800000u : 0xffc00001u);
    CHECK_CASE(!b->finite(x, n), what);
    x[at] = keep;
  }
  CHECK_CASE(b->finite(x, 0), what);
}

static void check_logprob(const slm2_backend *b, uint32_t n, int pattern) {
  const slm2_backend *o = &slm2_backend_oracle;
  const float *x = filled(n, pattern);
  float *y = kc_output(n * sizeof *y, 4), *expected = kc_output(n * sizeof *y, 4);
  if (!o->finite(x, n)) return;
  const float max = o->greatest(x, n);
  CHECK_CASE(slm2_float_bits(b->greatest(x, n)) == slm2_float_bits(max), name_case(b, "greatest", n, pattern));
  o->exp_below(expected, x, max, n);
  b->exp_below(y, x, max, n);
  expect(y, expected, n, name_case(b, "exp_below", n, pattern));
}

/* The greatest is a zero: which one shows in the sign. */
static void check_greatest_zeros(const slm2_backend *b) {
  static const float some[] = {0.0f, -0.0f, -1.0f};
  for (uint32_t n = 1; n <= 200; n++) {
    float *x = kc_input(n * sizeof *x, 4);
    for (uint32_t i = 0; i < n; i++) x[i] = some[kc_below(3)];
    CHECK_CASE(slm2_float_bits(b->greatest(x, n)) == slm2_float_bits(slm2_backend_oracle.greatest(x, n)),
               name_case(b, "greatest of zeros", n, KC_ZERO));
    kc_release();
  }
}

static void check_embed(const slm2_backend *b, int pattern) {
  for (int form = 0; form < 2; form++) {
    slm2_matrix w = kc_matrix(64, 160, form ? SLM2_FORM_ROWS : SLM2_FORM_PANELS, (kc_pattern)pattern);
    for (uint32_t row = 0; row < 64; row += 13) {
      float *expected = kc_output(160 * sizeof(float), 4), *y = kc_output(160 * sizeof(float), 4);
      slm2_backend_oracle.embed(expected, &w, row);
      b->embed(y, &w, row);
      expect(y, expected, 160, name_case(b, "embed", 160, pattern));
    }
  }
}

/* exp through swiglu: every exponent and sign, densely where exp(-|g|) leaves the normal range and where it becomes zero. */
static void check_exp(const slm2_backend *b) {
  enum { N = 4096 };
  for (uint32_t base = 0; base < 0x43000000u; base += 0x43000000u / 64) {
    float *x = kc_input(N * sizeof *x, 4), *u = filled(N, KC_ONE);
    float *y = kc_output(N * sizeof *x, 4), *expected = kc_output(N * sizeof *x, 4);
    for (uint32_t i = 0; i < N; i++) x[i] = slm2_float_from_bits((base + (uint32_t)(kc_random() >> 38)) | (i & 1) << 31);
    slm2_backend_oracle.swiglu(expected, x, u, N);
    b->swiglu(y, x, u, N);
    expect(y, expected, N, name_case(b, "swiglu over all exponents", N, KC_BITS));
    kc_release();
  }
}

int kc_check_vectors(void) {
  for (uint32_t i = 0; i < kc_n_twins; i++) {
    const slm2_backend *b = kc_twins[i];
    for (int pattern = 0; pattern < KC_PATTERNS; pattern++) {
      for (uint32_t n = 1; n <= 130; n++) {
        check_elements(b, n, pattern);
        check_rmsnorm(b, n, pattern);
        check_kv_store(b, n, pattern);
        check_logprob(b, n, pattern);
        kc_release();
      }
      for (uint32_t n = 32; n <= 1024; n += n < 256 ? 32 : 256) check_quantize(b, n, pattern), kc_release();
      for (uint32_t half = 4; half <= 256; half += half < 64 ? 4 : 64) check_rope(b, half, pattern), kc_release();
      check_logprob(b, 20011, pattern);
      check_embed(b, pattern);
      kc_release();
    }
    check_exp(b);
    check_greatest_zeros(b);
    check_quantize_edges(b);
  }
  return test_end("kernelcheck vectors");
}
