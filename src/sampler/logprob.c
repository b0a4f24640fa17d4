/* sampler/logprob.c: log-probabilities of a position, before any sampling rule [D26]. Most of the work is exponentials, one
 * of each logit: threads make them, in any order, and one adds them up in that of [D7]. */
#include "sampler/logprob.h"

#include "base/bytes.h"
#include "base/error.h"
#include "kernel/kernel.h"
#include "num/fp_env.h"
#include "num/math.h"
#include "num/reduce.h"

#define BLOCK 1024u /* logits that a thread takes at a time; a multiple of 8, so that a block begins with lane 0 */

static slm2_status check(const slm2_backend *backend, const float *logits, uint32_t n, slm2_error *error) {
  if (n == 0) return slm2_fail(error, SLM2_E_ARGUMENT, "log-probabilities", "logits", SLM2_NO_OFFSET, "there are no logits");
  if (backend->finite(logits, n)) return SLM2_OK;
  uint32_t i = 0;
  while ((slm2_float_bits(logits[i]) & 0x7fffffff) < 0x7f800000) i++;
  return slm2_fail(error, SLM2_E_NUMERICAL, "log-probabilities", "logits", SLM2_NO_OFFSET, "the logit of id %u is not finite",
                   (uint64_t)i);
}

/* --- the sum of exponentials ---------------------------------------------------- */

static uint32_t block_length(uint32_t n, uint32_t at) { return n - at < BLOCK ? n - at : BLOCK; }

static float sum_by_blocks(const slm2_backend *backend, const float *logits, uint32_t n, float max) {
  float exps[BLOCK];
  slm2_lanes8 sum = {{0}};
  for (uint32_t at = 0, length; at < n; at += length) {
    length = block_length(n, at);
    backend->exp_below(exps, logits + at, max, length);
    slm2_lanes8_add(&sum, exps, length);
  }
  return slm2_lanes8_sum(&sum);
}

typedef struct exponentials {
  const slm2_backend *backend;
  const float *logits;
  float *exps;
  uint32_t n;
  float max;
} exponentials;

static void take_blocks(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  const exponentials *e = context;
  slm2_fp_state fp = slm2_fp_enter(); /* [D2], of this thread */
  for (uint32_t at = begin * BLOCK; begin < end; begin++, at += BLOCK)
    e->backend->exp_below(e->exps + at, e->logits + at, e->max, block_length(e->n, at));
  slm2_fp_leave(fp);
}

static float sum_on(const slm2_pool *pool, exponentials *e) {
  pool->run(pool->self, take_blocks, e, e->n / BLOCK + (e->n % BLOCK != 0), 1);
  return slm2_sum_lanes8(e->exps, e->n);
}

/* --- both ways -------------------------------------------------------------------- */

SLM2_NOINLINE static slm2_status prepare(const slm2_pool *pool, float *exps, const slm2_backend *backend, const float *logits,
                                         uint32_t n, slm2_logprob_base *out, slm2_error *error) {
  SLM2_TRY(check(backend, logits, n, error));
  const float max = backend->greatest(logits, n);
  const float sum = pool == NULL ? sum_by_blocks(backend, logits, n, max)
                                 : sum_on(pool, &(exponentials){backend, logits, exps, n, max});
  *out = (slm2_logprob_base){max, slm2_logf(sum)};
  return SLM2_OK;
}

slm2_status slm2_logprob_prepare_on(const slm2_pool *pool, float *exps, const slm2_backend *backend, const float *logits,
                                    uint32_t n, slm2_logprob_base *out, slm2_error *error) {
  slm2_fp_state state = slm2_fp_enter();
  slm2_status status = prepare(pool, exps, backend == NULL ? slm2_backend_default() : backend, logits, n, out, error);
  slm2_fp_leave(state);
  return status;
}

slm2_status slm2_logprob_prepare(const slm2_backend *backend, const float *logits, uint32_t n, slm2_logprob_base *out,
                                 slm2_error *error) {
  return slm2_logprob_prepare_on(NULL, NULL, backend, logits, n, out, error);
}

SLM2_NOINLINE static float logprob(const slm2_logprob_base *base, float logit) { return (logit - base->max) - base->log_sum; }

float slm2_logprob(const slm2_logprob_base *base, float logit) {
  slm2_fp_state state = slm2_fp_enter();
  float value = logprob(base, logit);
  slm2_fp_leave(state);
  return value;
}
