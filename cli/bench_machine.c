/* cli/bench_machine.c: what `slm2 bench` asks of the machine itself: how fast memory is read, and what subnormal numbers
 * cost. The reading is a plain loop, so it is what C can do here and no record. */
#include "cli/bench.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "kernel/kernel.h"
#include "kernel/weights.h"

double bench_median(double *values, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    double x = values[i];
    uint32_t k = i;
    for (; k > 0 && values[k - 1] > x; k--) values[k] = values[k - 1];
    values[k] = x;
  }
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* --- reading --------------------------------------------------------------------- */

#define UNIT_WORDS ((size_t)1 << 17) /* 1 MiB, what a thread takes at a time */
#define WAYS 8u                      /* sums side by side: the adds must not be what is waited for */

static void fill_units(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  bench_stream *s = context;
  (void)thread;
  for (size_t i = begin * UNIT_WORDS; i < end * UNIT_WORDS; i++) s->words[i] = i; /* untouched pages would all be one */
}

static void read_units(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  bench_stream *s = context;
  (void)thread;
  uint64_t sum[WAYS] = {0}, total = 0;
  for (const uint64_t *p = s->words + begin * UNIT_WORDS, *stop = s->words + end * UNIT_WORDS; p < stop; p += WAYS)
    for (uint32_t k = 0; k < WAYS; k++) sum[k] += p[k];
  for (uint32_t k = 0; k < WAYS; k++) total += sum[k];
  atomic_fetch_add(&s->sum, total);
}

static void run_units(bench_stream *s, slm2_job_fn *job) {
  const slm2_pool *pool = slm2_threads_pool(s->threads);
  pool->run(pool->self, job, s, (uint32_t)(s->bytes / (UNIT_WORDS * sizeof *s->words)), 1);
}

int bench_stream_open(bench_stream *s, uint64_t bytes, uint32_t threads) {
  slm2_error error = {0};
  void *memory = NULL;
  s->words = NULL;
  s->bytes = bytes;
  atomic_store(&s->sum, 0);
  if (slm2_threads_create(threads, &s->threads, &error) != SLM2_OK) return cli_fail(&error);
  if (slm2_memory_reserve(bytes, &memory, &error) != SLM2_OK) {
    slm2_threads_destroy(s->threads);
    return cli_fail(&error);
  }
  s->words = memory;
  run_units(s, fill_units);
  return CLI_OK;
}

double bench_stream_read(bench_stream *s) {
  uint64_t start = slm2_clock_ns();
  run_units(s, read_units);
  return (double)s->bytes * 1e9 / (double)(slm2_clock_ns() - start + 1);
}

void bench_stream_close(bench_stream *s) {
  slm2_memory_release(s->words, s->bytes);
  slm2_threads_destroy(s->threads);
}

int bench_measure_bandwidth(const bench_options *o, bench_result *r, uint64_t bytes) {
  double rates[BENCH_REPEATS];
  for (uint32_t threads = 1; threads != 0 && r->n_bandwidth < BENCH_POINTS;) {
    bench_stream s;
    int code = bench_stream_open(&s, bytes, threads);
    if (code != CLI_OK) return code;
    for (uint32_t i = 0; i < r->repeats; i++) rates[i] = bench_stream_read(&s);
    bench_stream_close(&s);
    r->bandwidth[r->n_bandwidth++] = (bench_bandwidth){threads, bench_median(rates, r->repeats)};
    if (cli_cancelled()) return CLI_CANCELLED;
    if (threads == o->setup.threads) threads = 0;
    else threads = threads * 2 < o->setup.threads ? threads * 2 : o->setup.threads;
  }
  return CLI_OK;
}

/* --- subnormal numbers ------------------------------------------------------------- */

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
