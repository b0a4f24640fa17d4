/* tests/kernelcheck/bench.c: what each twin gains over the oracle, at the shapes of Qwen3-0.6B, one thread. The minimum of
 * many short runs, backends taking turns, so that a busy machine disturbs all of them alike. */
#include "platform/platform.h"
#include "tests/kernelcheck/kernelcheck.h"

#define ROUNDS 9

typedef struct setup {
  slm2_matrix w;
  uint32_t n; /* tokens, positions, values */
  uint32_t tokens; /* that attend, with two heads each */
  const float *x, *u, *scale;
  const int8_t *xq;
  const uint8_t *norm;
  slm2_kv_view k, v;
  float *y, *scores;
  int8_t *out;
} setup;

typedef struct task {
  const char *name, *unit;
  double amount; /* units / 1e9 of one run */
  void (*run)(const slm2_backend *b, const setup *s);
} task;

static void run_f32(const slm2_backend *b, const setup *s) {
  b->matmul_f32(s->y, s->w.rows, &s->w, s->x, s->n, 0, s->w.rows);
}
static void run_q8(const slm2_backend *b, const setup *s) {
  b->matmul_q8(s->y, s->w.rows, &s->w, s->xq, s->scale, s->n, 0, s->w.rows);
}
static void run_attention(const slm2_backend *b, const setup *s) {
  const slm2_attention a = {.out = s->y, .q = s->x, .stride = 256, .k = s->k, .v = s->v, .tokens = s->tokens, .heads = 2,
                            .head_dim = 128, .n = s->n - s->tokens + 1, .scratch = s->scores};
  if (!b->attention(&a)) exit(1);
}
static void run_quantize(const slm2_backend *b, const setup *s) {
  if (!b->quantize(s->out, s->y, s->x, s->n)) exit(1);
}
static void run_rmsnorm(const slm2_backend *b, const setup *s) { b->rmsnorm(s->y, s->x, s->norm, s->n, 1e-6f); }
static void run_rope(const slm2_backend *b, const setup *s) {
  for (uint32_t h = 0; h < s->n; h += 128) b->rope(s->y + h, s->x, s->u, 64);
}
static void run_kv16(const slm2_backend *b, const setup *s) {
  if (!b->kv_store(s->y, s->x, s->n, true)) exit(1);
}
static void run_swiglu(const slm2_backend *b, const setup *s) { b->swiglu(s->y, s->x, s->u, s->n); }
static void run_greatest(const slm2_backend *b, const setup *s) { s->y[0] = b->greatest(s->x, s->n); }
static void run_exp_below(const slm2_backend *b, const setup *s) { b->exp_below(s->y, s->u, 8.0f, s->n); }
static void run_add(const slm2_backend *b, const setup *s) { b->add(s->y, s->x, s->n); }
static void run_finite(const slm2_backend *b, const setup *s) {
  if (!b->finite(s->x, s->n)) exit(1);
}

static void measure(const task *t, const setup *s) {
  double best[17];
  const slm2_backend *backends[17] = {&slm2_backend_oracle};
  uint32_t n = 1;
  for (; n <= kc_n_twins; n++) backends[n] = kc_twins[n - 1];
  for (uint32_t i = 0; i < n; i++) best[i] = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    for (uint32_t i = 0; i < n; i++) {
      if (i == 0 && round >= 2) continue;
      uint64_t start = slm2_clock_ns(), runs = 0, spent;
      do {
        t->run(backends[i], s);
        runs++;
        spent = slm2_clock_ns() - start;
      } while (spent < 2000000);
      double each = (double)spent / (double)runs;
      if (each < best[i]) best[i] = each;
    }
  }
  printf("%-22s %-8s", t->name, t->unit);
  for (uint32_t i = 0; i < n; i++) printf(" %s %.2f", backends[i]->name, t->amount * 1e9 / best[i]);
  printf("\n");
  fflush(stdout);
}

static size_t matrix_bytes(uint32_t rows, uint32_t cols) { return (size_t)rows * cols / 32 * 34; }
static slm2_matrix matrix(uint32_t rows, uint32_t cols) {
  const size_t bytes = matrix_bytes(rows, cols);
  void *memory;
  slm2_error error;
  if (slm2_memory_reserve(bytes, &memory, &error) != SLM2_OK) exit(1);
  uint8_t *data = memory;
  for (size_t i = 0; i < bytes; i += 8) slm2_store_u64(data + i, kc_random());
  for (size_t p = 0; p < bytes; p += SLM2_PANEL_BYTES) /* scales: 0x2c00 .. 0x2fff */
    for (size_t i = 0; i < 64; i += 2) slm2_store_u16(data + p + i, (uint16_t)(0x2c00 | (kc_random() & 0x3ff)));
  return (slm2_matrix){data, rows, cols, SLM2_FORM_PANELS};
}

static void measure_products(setup *s) {
  const double bytes = (double)s->w.rows * s->w.cols / 32 * 34 / 1e9, flops = 2.0 * s->w.rows * s->w.cols / 1e9;
  s->n = 1;
  measure(&(task){"matmul_q8 1 token", "GB/s", bytes, run_q8}, s);
  measure(&(task){"matmul_f32 1 token", "GB/s", bytes, run_f32}, s);
  slm2_memory_release((void *)(uintptr_t)s->w.data, matrix_bytes(151936, 1024));
  s->w = matrix(3072, 1024);
  const uint32_t tokens[] = {4, 16, 60, 128};
  for (size_t i = 0; i < 4; i++) {
    char name[32];
    s->n = tokens[i];
    const double share = flops / 151936 * 3072 * s->n;
    snprintf(name, sizeof name, "matmul_q8 %u tokens", (unsigned)s->n);
    measure(&(task){name, "GFLOP/s", share, run_q8}, s);
    snprintf(name, sizeof name, "matmul_f32 %u tokens", (unsigned)s->n);
    measure(&(task){name, "GFLOP/s", share, run_f32}, s);
  }
  slm2_memory_release((void *)(uintptr_t)s->w.data, matrix_bytes(3072, 1024));
}

static void measure_attention(setup *s, void *kv) {
  const uint32_t contexts[] = {64, 512, 4096}, tokens[] = {1, 4, 16};
  for (size_t i = 0; i < 3; i++) {
    for (size_t rows = 0; rows < 3; rows++) {
      for (int f16 = 0; f16 < 2; f16++) {
        char name[48];
        s->n = contexts[i];
        s->tokens = tokens[rows];
        s->k = (slm2_kv_view){kv, f16};
        s->v = (slm2_kv_view){(uint8_t *)kv + 4096 * 128 * 4, f16};
        snprintf(name, sizeof name, "attention %u x %u %s", (unsigned)s->n, 2 * (unsigned)s->tokens, f16 ? "f16" : "f32");
        measure(&(task){name, "GFLOP/s", 4.0 * 128 * s->n * 2 * s->tokens / 1e9, run_attention}, s);
      }
    }
  }
}

void kc_bench(void) {
  enum { TOKENS = 128, COLS = 3072 };
  float *x = malloc(TOKENS * COLS * sizeof *x), *u = malloc(TOKENS * COLS * sizeof *u), *kv = malloc(2 * 4096 * 128 * sizeof *kv);
  float *y = malloc(160000 * 4 * sizeof *y), *scale = malloc(TOKENS * COLS);
  float *scores = malloc(slm2_attention_scratch(SLM2_ATTENTION_ROWS, 4096, 128) * sizeof *scores);
  int8_t *xq = malloc(TOKENS * COLS), *out = malloc(TOKENS * COLS);
  if (!x || !u || !kv || !y || !scores || !scale || !xq || !out) exit(1);
  kc_fill(x, TOKENS * COLS, KC_RANDOM);
  kc_fill(u, TOKENS * COLS, KC_RANDOM);
  kc_fill(scale, TOKENS * COLS / 4, KC_RANDOM);
  for (size_t i = 0; i < TOKENS * COLS; i++) xq[i] = (int8_t)((int)kc_below(255) - 127);
  for (size_t i = 0; i < 4 * 4096 * 128; i++) ((uint16_t *)kv)[i] = (uint16_t)(0x3000 + kc_below(0x800));
  setup s = {.w = matrix(151936, 1024), .x = x, .u = u, .scale = scale, .xq = xq, .norm = (const uint8_t *)u, .y = y,
             .scores = scores, .out = out};
  measure_products(&s);
  measure_attention(&s, kv);
  s.n = 3072;
  memcpy(y, x, 3072 * sizeof *y);
  const task small[] = {
      {"swiglu", "Gvalue/s", 3072e-9, run_swiglu}, {"quantize", "Gvalue/s", 3072e-9, run_quantize},
      {"rmsnorm", "Gvalue/s", 3072e-9, run_rmsnorm}, {"rope", "Gvalue/s", 3072e-9, run_rope},
      {"kv_store f16", "Gvalue/s", 3072e-9, run_kv16}, {"add", "Gvalue/s", 3072e-9, run_add},
      {"finite", "Gvalue/s", 3072e-9, run_finite}, {"greatest", "Gvalue/s", 3072e-9, run_greatest},
      {"exp_below", "Gvalue/s", 3072e-9, run_exp_below},
  };
  for (size_t i = 0; i < sizeof small / sizeof *small; i++) measure(&small[i], &s);
  free(x), free(u), free(kv), free(y), free(scores), free(scale), free(xq), free(out);
}
