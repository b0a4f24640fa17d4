/* tests/kernelcheck/attention.c: attention [D15] over contexts of 1 to 300 positions and some thousands, every number of
 * rows, f32 and f16. */
#include "tests/kernelcheck/kernelcheck.h"

static slm2_kv_view stored(size_t n, kc_pattern pattern, bool f16) {
  float *x = malloc(n * sizeof *x);
  if (x == NULL) exit(1);
  kc_fill(x, n, pattern);
  if (!f16) {
    float *data = kc_input(n * sizeof *x, 4);
    memcpy(data, x, n * sizeof *x);
    free(x);
    return (slm2_kv_view){data, false};
  }
  uint16_t *data = kc_input(n * sizeof *data, 2);
  for (size_t i = 0; i < n; i++) { /* a cache holds finite values only */
    data[i] = slm2_f32_to_f16(x[i]);
    if ((data[i] & 0x7c00) == 0x7c00) data[i] = (uint16_t)(data[i] & 0x83ff);
  }
  free(x);
  return (slm2_kv_view){data, true};
}

/* Rows lie `gap` values further apart than they must; nothing in between may be written. */
static void compare(slm2_attention a, uint32_t gap, const char *label) {
  const uint32_t rows = a.tokens * a.heads, width = a.heads * a.head_dim;
  a.stride = width + gap;
  const size_t n = (a.tokens - 1) * a.stride + width, scratch = slm2_attention_scratch(rows, a.n + a.tokens - 1, a.head_dim);
  float *expected = kc_output(n * sizeof *expected, 4);
  a.out = expected;
  a.scratch = kc_output(scratch * sizeof *expected, 4);
  bool fine = slm2_backend_oracle.attention(&a);
  for (uint32_t i = 0; i < kc_n_twins; i++) {
    char name[200];
    snprintf(name, sizeof name, "%s attention %s, %u positions, %u tokens, %u heads, head_dim %u, %s", kc_twins[i]->name, label,
             (unsigned)a.n, (unsigned)a.tokens, (unsigned)a.heads, (unsigned)a.head_dim, a.k.f16 ? "f16" : "f32");
    float *out = kc_output(n * sizeof *out, 4), *own = kc_output(scratch * sizeof *own, 4);
    a.out = out;
    a.scratch = own;
    CHECK_CASE(kc_twins[i]->attention(&a) == fine, name);
    if (fine) CHECK_CASE(memcmp(out, expected, n * sizeof *out) == 0, name);
    CHECK_CASE(kc_guards_hold(out, n * sizeof *out) && kc_guards_hold(own, scratch * sizeof *own), name);
  }
}

static void some(uint32_t n, uint32_t tokens, uint32_t heads, uint32_t head_dim, bool f16, const kc_pattern pattern[3]) {
  const uint32_t gap = kc_below(2) * kc_below(40);
  const size_t queries = tokens * ((size_t)heads * head_dim + gap), values = ((size_t)n + tokens - 1) * head_dim;
  slm2_attention a = {.tokens = tokens, .heads = heads, .head_dim = head_dim, .n = n};
  float *q = kc_input(queries * sizeof *q, 4);
  kc_fill(q, queries, pattern[0]);
  a.q = q;
  a.k = stored(values, pattern[1], f16);
  a.v = stored(values, pattern[2], f16);
  compare(a, gap, kc_pattern_names[pattern[1]]);
  kc_release();
}

static const kc_pattern random_values[3] = {KC_RANDOM, KC_RANDOM, KC_RANDOM};

/* Every legal number of rows, as heads and as tokens; lengths around what goes side by side and what is a block. */
static void check_rows(bool f16) {
  for (uint32_t heads = 1; heads <= SLM2_ATTENTION_ROWS; heads++)
    for (uint32_t tokens = 1; tokens * heads <= SLM2_ATTENTION_ROWS; tokens++)
      some(1 + kc_below(80), tokens, heads, 8 * (1 + kc_below(10)), f16, random_values);
  for (uint32_t n = 1; n <= 70; n++) some(n, 16, 2, 16, f16, random_values);
}

/* A score that overflows counts where a row sees it, and not where it is masked. */
static void check_masked_overflow(bool f16) {
  enum { TOKENS = 16, DIM = 32, N = 5 };
  for (uint32_t at = 0; at < N + TOKENS - 1; at++) {
    for (uint32_t token = 0; token < TOKENS; token++) {
      float *q = kc_input(TOKENS * DIM * sizeof *q, 4);
      slm2_kv_view v = stored((N + TOKENS - 1) * DIM, KC_RANDOM, f16);
      slm2_kv_view k = stored((N + TOKENS - 1) * DIM, KC_ZERO, f16);
      const slm2_attention a = {.tokens = TOKENS, .heads = 1, .head_dim = DIM, .n = N, .q = q, .k = k, .v = v};
      kc_fill(q, TOKENS * DIM, KC_RANDOM);
      q[token * DIM + 3] = 0x1.8p127f;
      if (f16) ((uint16_t *)(uintptr_t)k.data)[at * DIM + 3] = 0x7bff;
      else ((float *)(uintptr_t)k.data)[at * DIM + 3] = 0x1p100f;
      compare(a, 0, "masked overflow");
      kc_release();
    }
  }
}

int kc_check_attention(void) {
  for (int f16 = 0; f16 < 2; f16++) {
    for (uint32_t n = 1; n <= 300; n++) some(n, 1, 1 + n % 2, n % 3 == 0 ? 64 : 32, f16, random_values);
    for (uint32_t dim = 8; dim <= 512; dim += 8) some(1 + kc_below(40), 1 + dim / 8 % 3 * 5, 2, dim, f16, random_values);
    for (uint32_t n = 1; n <= 33; n += 8)
      for (int query = 0; query < KC_PATTERNS; query++)
        for (int keys = 0; keys < KC_NOT_FINITE; keys++)
          for (uint32_t tokens = 1; tokens <= 16; tokens += 15)
            some(n, tokens, 2, 64, f16, (kc_pattern[]){(kc_pattern)query, (kc_pattern)keys, (kc_pattern)keys});
    check_rows(f16);
    check_masked_overflow(f16);
    some(2049, 3, 2, 128, f16, (kc_pattern[]){KC_RANDOM, KC_RANDOM, KC_BITS});
    some(2033, 16, 2, 128, f16, (kc_pattern[]){KC_RANDOM, KC_RANDOM, KC_BITS});
    some(5003, 1, 3, 64, f16, (kc_pattern[]){KC_RANDOM, KC_RANDOM, KC_CANCEL});
  }
  return test_end("kernelcheck attention");
}
