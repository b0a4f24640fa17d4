/* cli/bench.h: what the parts of `slm2 bench` share: bench.c measures the model, bench_read.c the machine's memory,
 * bench_subnormal.c what subnormal numbers cost, bench_report.c says it. Every figure is the median of its repeats,
 * but what memory gives is the best: it is a bound. */
#ifndef SLM2_CLI_BENCH_H
#define SLM2_CLI_BENCH_H

#include "cli/cli.h"
#include "platform/usage.h"

#define BENCH_POINTS 16u  /* lengths in a list */
#define BENCH_REPEATS 99u

typedef struct bench_options {
  const char *file, *prefill, *decode; /* lists as text, or NULL */
  cli_setup setup;
  uint32_t tokens, repeats; /* 0: the default */
  bool quick, json;
} bench_options;

typedef struct bench_list {
  uint32_t at[BENCH_POINTS];
  uint32_t n;
} bench_list;

typedef struct bench_decode {
  double tokens_per_second;
  double bytes_per_token;  /* weights once, and the keys and values in use */
  double bytes_per_second; /* what as many threads read at best, just before or after */
  double share;            /* of that */
} bench_decode;

typedef struct bench_bandwidth {
  uint32_t threads;
  double bytes_per_second;
} bench_bandwidth;

typedef struct bench_subnormal {
  double weights, activations, both; /* time of a matrix product, that of ordinary numbers being 1 */
} bench_subnormal;

typedef struct bench_result {
  char identity[65];
  uint32_t context, tokens, repeats; /* in effect */
  uint64_t file_bytes, weight_bytes; /* of the file; of the weights and norms that a token reads */
  double load_ms, first_warm_ms, first_again_ms; /* all with the file in memory */
  bool cold;                                     /* first_cold_ms: without it */
  double first_cold_ms;
  bench_list prefill, decode;
  double prefill_rate[BENCH_POINTS]; /* tokens a second */
  bench_decode decode_at[BENCH_POINTS];
  bench_bandwidth bandwidth[BENCH_POINTS];
  uint32_t n_bandwidth;
  uint64_t index_bytes, session_bytes; /* planned */
  slm2_usage usage;         /* once the longest context was full; before any memory of bench's own */
  double faults_per_token;  /* while decoding */
  bool tlb_counted;
  double tlb_per_token;
  bench_subnormal subnormal;
} bench_result;

double bench_median(double *values, uint32_t n); /* sorts them */

/* --- bench_read.c ------------------------------------------------------------- */

/* What is read: the file, mapped, and other memory of `bytes` bytes, whole MiB and more than caches hold. */
typedef struct bench_memory {
  const uint8_t *file;
  uint64_t *words;
  uint64_t file_bytes, bytes;
} bench_memory;
int bench_memory_open(bench_memory *m, const slm2_mapping *file, uint64_t bytes, const slm2_threads *threads);
double bench_memory_read(const bench_memory *m, const slm2_threads *threads); /* bytes a second, at best */
void bench_memory_close(bench_memory *m);
/* With 1, 2, 4 .. up to o's threads and with all of them. */
int bench_measure_bandwidth(const bench_options *o, bench_result *r, const bench_memory *m);

/* --- bench_subnormal.c -------------------------------------------------------- */

int bench_measure_subnormal(const bench_options *o, bench_result *r);

/* --- bench_report.c ---------------------------------------------------------------- */

void bench_print_table(cli_text *t, const bench_options *o, const bench_result *r);
void bench_print_json(cli_text *t, const bench_options *o, const bench_result *r);

#endif
