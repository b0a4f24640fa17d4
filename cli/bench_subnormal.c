/* cli/bench_subnormal.c: what subnormal numbers cost on this machine. */
#include "cli/bench.h"

#include "base/bytes.h"
#include "kernel/kernel.h"
#include "kernel/weights.h"

#define ROWS 512u
#define COLS 1024u
#define SAMPLE_NS 500000u /* shorter than what a scheduler gives to a program at a time */
#define SAMPLES 41u

typedef struct product {
  const slm2_backend *backend;
  slm2_profile profile;
  slm2_matrix w;
  float *x, *y, *scales;
  int8_t *xq;
} product;

/* Scales 1/16, or 0x0010: 2^-20, subnormal in f16 (the smallest of all scales that are not is 2^-14). */
static void set_weights(uint8_t *data, bool subnormal) {
  for (uint32_t row = 0; row < ROWS; row++)
    for (uint32_t b = 0; b < COLS / SLM2_BLOCK; b++) {
      slm2_store_u16(data + slm2_scale_at(SLM2_FORM_PANELS, COLS, row, b), subnormal ? 0x0010 : 0x2c00);
      for (uint32_t k = 0; k < SLM2_BLOCK; k++)
        data[slm2_weight_at(SLM2_FORM_PANELS, COLS, row, b, k)] = (uint8_t)((row * 31 + b * 17 + k * 7) % 127);
    }
}

/* Around 1, or around 2^-130: below the smallest normal f32, 2^-126. */
static void set_activations(float *x, bool subnormal) {
  const float unit = subnormal ? 0x1p-138f : 0x1p-8f;
  for (uint32_t i = 0; i < COLS; i++) x[i] = (float)(i * 37 % 251 + 130) * unit;
}

/* Nanoseconds of one product with one vector. false: it was refused. */
static bool time_product(const product *p, double *ns) {
  uint64_t start = slm2_clock_ns(), spent, runs = 0;
  do {
    if (p->profile == SLM2_PROFILE_F32) p->backend->matmul_f32(p->y, ROWS, &p->w, p->x, 1, 0, ROWS);
    else if (!p->backend->quantize(p->xq, p->scales, p->x, COLS)) return false;
    else p->backend->matmul_q8(p->y, ROWS, &p->w, p->xq, p->scales, 1, 0, ROWS);
    runs++;
    spent = slm2_clock_ns() - start;
  } while (spent < SAMPLE_NS);
  *ns = (double)spent / (double)runs;
  return true;
}

/* The four kinds take turns, so that a busy machine disturbs all of them alike. Kind: bit 0 weights, bit 1 activations. */
static bool time_kinds(product *p, uint8_t *data[2], float *x[2], double median[4]) {
  double ns[4][SAMPLES];
  for (uint32_t i = 0; i < SAMPLES; i++)
    for (uint32_t kind = 0; kind < 4; kind++) {
      p->w.data = data[kind & 1];
      p->x = x[kind >> 1];
      if (!time_product(p, &ns[kind][i])) return false;
    }
  for (uint32_t kind = 0; kind < 4; kind++) median[kind] = bench_median(ns[kind], SAMPLES);
  return true;
}

int bench_measure_subnormal(const bench_options *o, bench_result *r) {
  const uint64_t matrix = (uint64_t)ROWS * COLS / SLM2_BLOCK * SLM2_BLOCK_BYTES, vectors = 5 * sizeof(float) * COLS;
  _Static_assert(ROWS * COLS / SLM2_BLOCK * SLM2_BLOCK_BYTES % 64 == 0 && ROWS <= COLS, "parts stay aligned and fit");
  slm2_error error = {0};
  void *memory = NULL;
  if (slm2_memory_reserve(2 * matrix + vectors, &memory, &error) != SLM2_OK) return cli_fail(&error);
  uint8_t *data[2] = {memory, (uint8_t *)memory + matrix};
  float *f = (float *)(void *)(data[1] + matrix), *x[2] = {f, f + COLS};
  product p = {
    .backend = o->setup.backend,
    .profile = (slm2_profile)o->setup.profile,
    .w = {.rows = ROWS, .cols = COLS, .form = SLM2_FORM_PANELS},
    .y = f + 2 * COLS,
    .scales = f + 3 * COLS,
    .xq = (int8_t *)(void *)(f + 4 * COLS),
  };
  for (int i = 0; i < 2; i++) {
    set_weights(data[i], i == 1);
    set_activations(x[i], i == 1);
  }
  double median[4];
  bool done = time_kinds(&p, data, x, median);
  slm2_memory_release(memory, 2 * matrix + vectors);
  if (!done) return cli_complain(CLI_FAILED, "subnormal", "%s refuses finite activations", slm2_backend_name(o->setup.backend));
  r->subnormal = (bench_subnormal){median[1] / median[0], median[2] / median[0], median[3] / median[0]};
  return CLI_OK;
}
