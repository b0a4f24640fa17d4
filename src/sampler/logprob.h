/* sampler/logprob.h: log-probabilities by all threads. Contract: include/slm2/sampler.h. */
#ifndef SLM2_SAMPLER_LOGPROB_H
#define SLM2_SAMPLER_LOGPROB_H

#include "slm2/pool.h"
#include "slm2/sampler.h"

/* As slm2_logprob_prepare, the exponentials by the pool's threads (NULL: the caller's alone); exps [n] is scratch. */
SLM2_NODISCARD slm2_status slm2_logprob_prepare_on(const slm2_pool *pool, float *exps, const slm2_backend *backend,
                                                   const float *logits, uint32_t n, slm2_logprob_base *out, slm2_error *error);

#endif
