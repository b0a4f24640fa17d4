/* cli/bench.h: what the parts of `slm2 bench` share: bench.c measures the model, bench_machine.c the machine,
 * bench_report.c says it. Every figure is the median of its repeats. */
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
  double bytes_per_second; /* what the machine reads meanwhile, between the repeats, with as many threads */
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
  double load_ms, first_fresh_ms, first_warm_ms;
  bench_list prefill, decode;
  double prefill_rate[BENCH_POINTS]; /* tokens a second */
  bench_decode decode_at[BENCH_POINTS];
  bench_bandwidth bandwidth[BENCH_POINTS];
  uint32_t n_bandwidth;
  uint64_t session_bytes;   /* planned */
  slm2_usage usage;         /* once the longest context was full; before any memory of bench's own */
  double faults_per_token;  /* while decoding */
  bool tlb_counted;
  double tlb_per_token;
  bench_subnormal subnormal;
} bench_result;

double bench_median(double *values, uint32_t n); /* sorts them */

/* --- bench_machine.c ----------------------------------------------------------- */

/* Memory larger than caches, and threads that read it. */
typedef struct bench_stream {
  uint64_t *words;
  uint64_t bytes;
  slm2_threads *threads;
  _Atomic(uint64_t) sum;
} bench_stream;
int bench_stream_open(bench_stream *s, uint64_t bytes, uint32_t threads);
double bench_stream_read(bench_stream *s); /* all of it once; bytes a second */
void bench_stream_close(bench_stream *s);
/* 1, 2, 4 .. up to threads and threads itself. */
int bench_measure_bandwidth(const bench_options *o, bench_result *r, uint64_t bytes);
int bench_measure_subnormal(const bench_options *o, bench_result *r);

/* --- bench_report.c ---------------------------------------------------------------- */

void bench_print_table(cli_text *t, const bench_options *o, const bench_result *r);
void bench_print_json(cli_text *t, const bench_options *o, const bench_result *r);

#endif
