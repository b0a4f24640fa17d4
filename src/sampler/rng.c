/* sampler/rng.c: the stream of random words of one request [D20]: ChaCha8, key from the seed, counter from 0. */
#include "num/chacha8.h"
#include "slm2/sampler.h"

void slm2_rng_init(slm2_rng *rng, uint64_t seed) {
  *rng = (slm2_rng){.words_used = 0};
  slm2_chacha8_key(seed, rng->key);
}

void slm2_rng_seek(slm2_rng *rng, uint64_t words_used) {
  rng->words_used = words_used;
  if (words_used % 16 != 0) slm2_chacha8_block(rng->key, words_used / 16, rng->block);
}

uint32_t slm2_rng_next(slm2_rng *rng) {
  if (rng->words_used % 16 == 0) slm2_chacha8_block(rng->key, rng->words_used / 16, rng->block);
  return rng->block[rng->words_used++ % 16];
}
