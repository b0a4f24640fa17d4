/* tests/kernelcheck/attention.c: attention [D15] over contexts of 1 to 300 positions and some thousands, f32 and f16. */
#include "tests/kernelcheck/kernelcheck.h"

typedef struct head {
  uint32_t n, head_dim;
  float *q;
  slm2_kv_view k, v;
  const char *label;
} head;

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

static void compare(const head *h) {
  const size_t bytes = h->head_dim * sizeof(float), scratch = h->n * sizeof(float);
  float *expected = kc_output(bytes, 4), *scores = kc_output(scratch, 4);
  bool fine = slm2_backend_oracle.attention(expected, h->q, h->k, h->v, h->n, h->head_dim, scores);
  for (uint32_t i = 0; i < kc_n_twins; i++) {
    char label[200];
    snprintf(label, sizeof label, "%s attention %s, %u positions, head_dim %u, %s", kc_twins[i]->name, h->label,
             (unsigned)h->n, (unsigned)h->head_dim, h->k.f16 ? "f16" : "f32");
    float *out = kc_output(bytes, 4), *own = kc_output(scratch, 4);
    CHECK_CASE(kc_twins[i]->attention(out, h->q, h->k, h->v, h->n, h->head_dim, own) == fine, label);
    if (fine) CHECK_CASE(kc_same(out, expected, h->head_dim), label);
    CHECK_CASE(kc_guards_hold(out, bytes) && kc_guards_hold(own, scratch), label);
  }
}

static void one(uint32_t n, uint32_t head_dim, bool f16, kc_pattern query, kc_pattern keys, kc_pattern values) {
  head h = {.n = n, .head_dim = head_dim, .label = kc_pattern_names[keys]};
  h.q = kc_input(head_dim * sizeof(float), 4);
  kc_fill(h.q, head_dim, query);
  h.k = stored((size_t)n * head_dim, keys, f16);
  h.v = stored((size_t)n * head_dim, values, f16);
  compare(&h);
  kc_release();
}

int kc_check_attention(void) {
  for (int f16 = 0; f16 < 2; f16++) {
    for (uint32_t n = 1; n <= 300; n++) one(n, n % 3 == 0 ? 64 : 32, f16, KC_RANDOM, KC_RANDOM, KC_RANDOM);
    for (uint32_t dim = 8; dim <= 512; dim += 8) one(1 + kc_below(40), dim, f16, KC_RANDOM, KC_RANDOM, KC_RANDOM);
    for (uint32_t n = 1; n <= 33; n += 8)
      for (int query = 0; query < KC_PATTERNS; query++)
        for (int keys = 0; keys < KC_NOT_FINITE; keys++) one(n, 64, f16, (kc_pattern)query, (kc_pattern)keys, (kc_pattern)keys);
    one(2049, 128, f16, KC_RANDOM, KC_RANDOM, KC_BITS);
    one(5003, 64, f16, KC_RANDOM, KC_RANDOM, KC_CANCEL);
  }
  return test_end("kernelcheck attention");
}
