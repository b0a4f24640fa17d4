/* sampler/logprob.c: log-probabilities of a position, before any sampling rule [D26]. */
#include "base/bytes.h"
#include "base/error.h"
#include "num/fp_env.h"
#include "num/math.h"
#include "num/reduce.h"
#include "slm2/sampler.h"

SLM2_NOINLINE static slm2_status prepare(const float *logits, uint32_t n, slm2_logprob_base *out, slm2_error *error) {
  if (n == 0) return slm2_fail(error, SLM2_E_ARGUMENT, "log-probabilities", "logits", SLM2_NO_OFFSET, "there are no logits");
  float max = logits[0];
  for (uint32_t i = 0; i < n; i++) {
    if ((slm2_float_bits(logits[i]) & 0x7fffffff) >= 0x7f800000)
      return slm2_fail(error, SLM2_E_NUMERICAL, "log-probabilities", "logits", SLM2_NO_OFFSET,
                       "the logit of id %u is not finite", (uint64_t)i);
    max = logits[i] > max ? logits[i] : max;
  }
  slm2_lanes8 w = {{0}};
  for (uint32_t i = 0; i < n; i++) w.s[i & 7] += slm2_expf(logits[i] - max);
  *out = (slm2_logprob_base){max, slm2_logf(slm2_lanes8_sum(&w))};
  return SLM2_OK;
}

SLM2_NOINLINE static float logprob(const slm2_logprob_base *base, float logit) { return (logit - base->max) - base->log_sum; }

slm2_status slm2_logprob_prepare(const float *logits, uint32_t n, slm2_logprob_base *out, slm2_error *error) {
  slm2_fp_state state = slm2_fp_enter();
  slm2_status status = prepare(logits, n, out, error);
  slm2_fp_leave(state);
  return status;
}

float slm2_logprob(const slm2_logprob_base *base, float logit) {
  slm2_fp_state state = slm2_fp_enter();
  float value = logprob(base, logit);
  slm2_fp_leave(state);
  return value;
}
