/* sampler/logprob.c: log-probabilities of a position, before any sampling rule [D26]. */
#include "base/bytes.h"
#include "base/error.h"
#include "kernel/kernel.h"
#include "num/fp_env.h"
#include "num/math.h"
#include "slm2/sampler.h"

SLM2_NOINLINE static slm2_status prepare(const slm2_backend *backend, const float *logits, uint32_t n, slm2_logprob_base *out,
                                         slm2_error *error) {
  if (n == 0) return slm2_fail(error, SLM2_E_ARGUMENT, "log-probabilities", "logits", SLM2_NO_OFFSET, "there are no logits");
  if (!backend->finite(logits, n)) {
    uint32_t i = 0;
    while ((slm2_float_bits(logits[i]) & 0x7fffffff) < 0x7f800000) i++;
    return slm2_fail(error, SLM2_E_NUMERICAL, "log-probabilities", "logits", SLM2_NO_OFFSET, "the logit of id %u is not finite",
                     (uint64_t)i);
  }
  const float sum = backend->exp_sum(&out->max, logits, n);
  out->log_sum = slm2_logf(sum);
  return SLM2_OK;
}

SLM2_NOINLINE static float logprob(const slm2_logprob_base *base, float logit) { return (logit - base->max) - base->log_sum; }

slm2_status slm2_logprob_prepare(const slm2_backend *backend, const float *logits, uint32_t n, slm2_logprob_base *out,
                                 slm2_error *error) {
  slm2_fp_state state = slm2_fp_enter();
  slm2_status status = prepare(backend == NULL ? slm2_backend_default() : backend, logits, n, out, error);
  slm2_fp_leave(state);
  return status;
}

float slm2_logprob(const slm2_logprob_base *base, float logit) {
  slm2_fp_state state = slm2_fp_enter();
  float value = logprob(base, logit);
  slm2_fp_leave(state);
  return value;
}
