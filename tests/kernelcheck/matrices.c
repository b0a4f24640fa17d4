/* tests/kernelcheck/matrices.c: matmul_f32 and matmul_q8 [D10] [D11]: every count of tokens up to 130, every range of half
 * panels, both forms, every pattern against every pattern. */
#include "tests/kernelcheck/kernelcheck.h"

typedef struct product {
  slm2_matrix w;
  uint32_t n, r0, r1;
  size_t y_stride;
  float *x;       /* profile f32 */
  int8_t *xq;     /* profile q8 */
  float *a;
  char label[160];
} product;

static void run(const slm2_backend *b, const product *p, bool q8, float *y) {
  if (q8) b->matmul_q8(y, p->y_stride, &p->w, p->xq, p->a, p->n, p->r0, p->r1);
  else b->matmul_f32(y, p->y_stride, &p->w, p->x, p->n, p->r0, p->r1);
}

/* Whole outputs are compared, gaps between rows too: what is not asked for is not touched. */
static void compare(product *p) {
  const size_t n_y = (p->n - 1) * p->y_stride + p->w.rows;
  for (int q8 = 0; q8 < 2; q8++) {
    float *expected = kc_output(n_y * sizeof(float), 4);
    run(&slm2_backend_oracle, p, q8, expected);
    for (uint32_t i = 0; i < kc_n_twins; i++) {
      float *y = kc_output(n_y * sizeof(float), 4);
      run(kc_twins[i], p, q8, y);
      char label[240];
      snprintf(label, sizeof label, "%s matmul_%s %s", kc_twins[i]->name, q8 ? "q8" : "f32", p->label);
      CHECK_CASE(kc_same(y, expected, n_y), label);
      CHECK_CASE(kc_guards_hold(y, n_y * sizeof(float)), label);
    }
  }
}

static void one(uint32_t rows, uint32_t cols, uint32_t n, uint32_t r0, uint32_t r1, slm2_weight_form form, kc_pattern weights,
                kc_pattern activations) {
  product p = {.w = kc_matrix(rows, cols, form, weights), .n = n, .r0 = r0, .r1 = r1, .y_stride = rows + kc_below(3)};
  const size_t blocks = cols / SLM2_BLOCK;
  p.x = kc_input(n * cols * sizeof(float), 4);
  p.xq = kc_input(n * cols, 1);
  p.a = kc_input(n * blocks * sizeof(float), 4);
  kc_fill(p.x, n * cols, activations);
  kc_fill(p.a, n * blocks, activations == KC_EXTREME ? KC_RANDOM : activations);
  for (size_t i = 0; i < n * cols; i++)
    p.xq[i] = (int8_t)(activations == KC_EXTREME ? (kc_random() & 1 ? 127 : -127)
                       : activations == KC_ALTERNATING ? (i % 2 == 0 ? 127 : -127)
                                                       : (int)kc_below(255) - 127);
  snprintf(p.label, sizeof p.label, "%u x %u %s, %u tokens, rows %u to %u, weights %s, activations %s", rows, cols,
           form == SLM2_FORM_PANELS ? "panels" : "rows", n, r0, r1, kc_pattern_names[weights], kc_pattern_names[activations]);
  compare(&p);
  kc_release();
}

int kc_check_matrices(void) {
  for (uint32_t n = 1; n <= 130; n++) { /* token tails, with a range drawn anew */
    uint32_t r0 = 16 * kc_below(6), r1 = r0 + 16 * (1 + kc_below(6 - r0 / 16));
    one(96, n % 2 == 0 ? 32 : 96, n, r0, r1, SLM2_FORM_PANELS, KC_RANDOM, KC_RANDOM);
  }
  for (uint32_t r0 = 0; r0 <= 160; r0 += 16) /* ranges, the empty ones too */
    for (uint32_t r1 = r0; r1 <= 160; r1 += 16)
      for (uint32_t n = 1; n <= 4; n += 3) one(160, 64, n, r0, r1, SLM2_FORM_PANELS, KC_BITS, KC_RANDOM);
  for (int weights = 0; weights < KC_PATTERNS; weights++) /* patterns */
    for (int activations = 0; activations < KC_PATTERNS; activations++)
      for (uint32_t n = 1; n <= 17; n += 8)
        one(64, 128, n, 0, 64, SLM2_FORM_PANELS, (kc_pattern)weights, (kc_pattern)activations);
  for (uint32_t cols = 32; cols <= 4096; cols += cols < 512 ? 32 : 896) { /* lengths of the sum */
    one(64, cols, 1, 0, 64, SLM2_FORM_PANELS, KC_RANDOM, KC_EXTREME);
    one(64, cols, 7, 0, 64, SLM2_FORM_PANELS, KC_EXTREME, KC_CANCEL);
  }
  for (uint32_t n = 1; n <= 9; n += 4) one(64, 96, n, 16, 64, SLM2_FORM_ROWS, KC_RANDOM, KC_RANDOM);
  return test_end("kernelcheck matrices");
}
