/* slm2/sampler.h: logits to the next id, by rules [D19] [D20] [D21], and log-probabilities [D26].
 *
 * Order: ids without a token are removed -> finite check -> repetition penalty ->
 * finite check -> temperature 0: argmax, no draw; else stable sort (logit desc, id asc) ->
 * exactly top_k -> softmax with temperature -> top_p (first cumulative sum > P) -> min_p ->
 * one ChaCha8 word per sampled token.
 */
#ifndef SLM2_SAMPLER_H
#define SLM2_SAMPLER_H

#include <stdbool.h>
#include "slm2/backend.h"
#include "slm2/status.h"

SLM2_C_BEGIN

typedef struct slm2_sampler_params {
  float temperature;    /* >= 0, finite; 0 = greedy */
  uint32_t top_k;       /* 0 = off */
  float top_p;          /* 0 .. 1; 1 = off, 0 keeps the most likely token alone */
  float min_p;          /* 0 = off; 0 .. 1 */
  float repeat_penalty; /* > 0, finite; 1 = off */
  uint64_t seed;
} slm2_sampler_params;

/* ChaCha8 stream of a u64 seed [D20]. Plain data: (seed, words_used) restores it. */
typedef struct slm2_rng {
  uint32_t key[8];
  uint64_t words_used;
  uint32_t block[16];  /* current block of 16 words, valid when words_used % 16 != 0 */
} slm2_rng;
void slm2_rng_init(slm2_rng *rng, uint64_t seed);
void slm2_rng_seek(slm2_rng *rng, uint64_t words_used);
uint32_t slm2_rng_next(slm2_rng *rng);

/* Finite numbers in range, each refused by its name. */
SLM2_NODISCARD slm2_status slm2_sampler_check(const slm2_sampler_params *params, slm2_error *error);

/* Scratch for a vocabulary of n logits: one slm2_candidate per id. */
typedef struct slm2_candidate {
  float logit;
  float p;
  uint32_t id;
} slm2_candidate;

/* Applies penalty (each distinct id of context[0..n_context) once), masking, sort and cuts; leaves
 * the survivors with their probabilities in candidates[0..*n_out), best first. logits is not changed.
 * has_token: NULL (all have one), or one bit per id, LSB first; 0 = the id has no token and is
 * never chosen. seen: n / 8 + 1 bytes of scratch. candidates: n entries. */
SLM2_NODISCARD slm2_status slm2_sampler_distribution(const slm2_sampler_params *params, const float *logits, uint32_t n,
                                                     const uint8_t *has_token, const uint32_t *context, size_t n_context,
                                                     uint8_t *seen, slm2_candidate *candidates, uint32_t *n_out,
                                                     slm2_error *error);
/* Draws one id from a distribution (n >= 1) with exactly one word of rng, for n == 1 too. At temperature 0 there is
 * nothing to draw: take candidates[0].id. */
uint32_t slm2_sampler_draw(const slm2_candidate *candidates, uint32_t n, slm2_rng *rng);
/* distribution + draw. rng is untouched on error and at temperature 0. */
SLM2_NODISCARD slm2_status slm2_sampler_next(const slm2_sampler_params *params, const float *logits, uint32_t n,
                                             const uint8_t *has_token, const uint32_t *context, size_t n_context,
                                             uint8_t *seen, slm2_candidate *candidates, slm2_rng *rng,
                                             uint32_t *id, slm2_error *error);
/* The two terms all log-probabilities of a position share [D26]: logprob(i) = (z[i] - max) - log_sum. */
typedef struct slm2_logprob_base { float max, log_sum; } slm2_logprob_base;
/* backend: computes, NULL the default; never in a bit of the result. */
SLM2_NODISCARD slm2_status slm2_logprob_prepare(const slm2_backend *backend, const float *logits, uint32_t n,
                                                slm2_logprob_base *out, slm2_error *error);
float slm2_logprob(const slm2_logprob_base *base, float logit);

SLM2_C_END

#endif
