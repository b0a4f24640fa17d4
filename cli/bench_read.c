/* cli/bench_read.c: how fast this machine reads memory: what decoding cannot exceed. The widest loads that the processor has,
 * one addition for what they bring, all threads at once, over the model's own file and over other memory, and of several
 * passes the best. Two streams a thread, because with one a processor waits: 36 to 40 GB/s with one, 41 with two on a Zen 5;
 * more of them and asking ahead gained nothing, loads of 16 bytes brought 35. */
#include "cli/bench.h"

#include "kernel/cpu.h"

#define UNIT_MOST ((uint64_t)1 << 20) /* what a thread takes at a time */
#define UNIT_LEAST ((uint64_t)1 << 12)
#define UNITS_PER_THREAD 8u /* of files too small for such units */
#define LINE 64u
#define TURN (2 * LINE)      /* bytes of one stream before it is the other's turn */
#define PASSES_NS 20000000u  /* passes go on for so long, and there are MIN_PASSES at least */
#define MIN_PASSES 2u

typedef uint64_t sum_fn(const uint8_t *p, uint64_t n);

/* The sum of n bytes as words, by vectors of `width` bytes; n is a multiple of 2 * TURN. */
#define SUM(name, width, target)                                                                                \
  typedef uint64_t name##_vector __attribute__((vector_size(width), aligned(8), may_alias));                    \
  target static uint64_t name(const uint8_t *p, uint64_t n) {                                                   \
    enum { WAYS = LINE / (width) };                                                                             \
    const name##_vector *a = (const void *)p, *b = (const void *)(p + n / 2);                                   \
    name##_vector sum_a[WAYS] = {{0}}, sum_b[WAYS] = {{0}};                                                     \
    for (uint64_t left = n / (2 * TURN); left > 0; left--) {                                                    \
      _Pragma("GCC unroll 8") for (uint32_t i = 0; i < TURN / (width); i++) sum_a[i % WAYS] += *a++;            \
      _Pragma("GCC unroll 8") for (uint32_t i = 0; i < TURN / (width); i++) sum_b[i % WAYS] += *b++;            \
    }                                                                                                           \
    uint64_t sum = 0;                                                                                           \
    for (uint32_t i = 0; i < WAYS; i++)                                                                         \
      for (uint32_t k = 0; k < (width) / 8; k++) sum += sum_a[i][k] + sum_b[i][k];                              \
    return sum;                                                                                                 \
  }
SUM(sum_any, 16, )
#ifdef __x86_64__
SUM(sum_avx2, 32, __attribute__((target("avx2"))))
SUM(sum_avx512, 64, __attribute__((target("avx512f"))))
#endif

static sum_fn *widest(void) {
#ifdef __x86_64__
  if ((slm2_cpu_features() & SLM2_CPU_AVX512) != 0) return sum_avx512;
  if ((slm2_cpu_features() & SLM2_CPU_AVX2) != 0) return sum_avx2;
#endif
  return sum_any;
}

/* One pass over one region. */
typedef struct pass {
  const uint8_t *bytes;
  uint64_t n, unit;
  sum_fn *sum;
  _Atomic(uint64_t) total; /* so that the reading has a purpose */
} pass;

static void sum_units(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  pass *p = context;
  (void)thread;
  for (uint64_t at = begin * p->unit, stop = end * p->unit; at < stop && at < p->n; at += p->unit) {
    uint64_t n = p->n - at < p->unit ? p->n - at : p->unit;
    atomic_fetch_add(&p->total, p->sum(p->bytes + at, n - n % (2 * TURN)));
  }
}

/* Bytes a second. */
static double time_pass(const slm2_pool *pool, pass *p) {
  uint64_t start = slm2_clock_ns();
  pool->run(pool->self, sum_units, p, (uint32_t)((p->n + p->unit - 1) / p->unit), 1);
  return (double)p->n * 1e9 / (double)(slm2_clock_ns() - start + 1);
}

static double best_pass(const slm2_pool *pool, const uint8_t *bytes, uint64_t n) {
  uint64_t unit = n / (UNITS_PER_THREAD * pool->n_threads) / UNIT_LEAST * UNIT_LEAST, start = slm2_clock_ns();
  pass p = {.bytes = bytes, .n = n, .sum = widest()};
  p.unit = unit < UNIT_LEAST ? UNIT_LEAST : unit < UNIT_MOST ? unit : UNIT_MOST;
  double best = 0;
  for (uint32_t i = 0; i < MIN_PASSES || slm2_clock_ns() - start < PASSES_NS; i++) {
    double rate = time_pass(pool, &p);
    if (rate > best) best = rate;
  }
  return best;
}

static void fill_units(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  bench_memory *m = context;
  (void)thread;
  const uint64_t words = UNIT_MOST / sizeof *m->words;
  for (uint64_t i = begin * words; i < end * words; i++) m->words[i] = i; /* pages never written would all be one */
}

int bench_memory_open(bench_memory *m, const slm2_mapping *file, uint64_t bytes, const slm2_threads *threads) {
  slm2_error error = {0};
  void *memory = NULL;
  if (slm2_memory_reserve(bytes, &memory, &error) != SLM2_OK) return cli_fail(&error);
  *m = (bench_memory){.file = file->bytes, .file_bytes = file->n, .words = memory, .bytes = bytes};
  const slm2_pool *pool = slm2_threads_pool(threads);
  pool->run(pool->self, fill_units, m, (uint32_t)(bytes / UNIT_MOST), 1);
  return CLI_OK;
}

double bench_memory_read(const bench_memory *m, const slm2_threads *threads) {
  const slm2_pool *pool = slm2_threads_pool(threads);
  double file = best_pass(pool, m->file, m->file_bytes), other = best_pass(pool, (const uint8_t *)m->words, m->bytes);
  return file > other ? file : other;
}

void bench_memory_close(bench_memory *m) { slm2_memory_release(m->words, m->bytes); }

int bench_measure_bandwidth(const bench_options *o, bench_result *r, const bench_memory *m) {
  for (uint32_t n = 1; n != 0 && r->n_bandwidth < BENCH_POINTS;) {
    slm2_threads *threads;
    slm2_error error = {0};
    if (slm2_threads_create(n, &threads, &error) != SLM2_OK) return cli_fail(&error);
    double best = 0;
    for (uint32_t i = 0; i < r->repeats; i++) {
      double rate = bench_memory_read(m, threads);
      if (rate > best) best = rate;
    }
    slm2_threads_destroy(threads);
    r->bandwidth[r->n_bandwidth++] = (bench_bandwidth){n, best};
    if (cli_cancelled()) return CLI_CANCELLED;
    if (n == o->setup.threads) n = 0;
    else n = n * 2 < o->setup.threads ? n * 2 : o->setup.threads;
  }
  return CLI_OK;
}
