/* num/chacha8.h: ChaCha8 block function and the seed expansion of rand_core [D20] (FACTS: djb layout, 64-bit
 * counter in words 12, 13, stream 0 in words 14, 15). */
#ifndef SLM2_NUM_CHACHA8_H
#define SLM2_NUM_CHACHA8_H

#include <stdint.h>

/* PCG32 expansion of a u64 to the 256-bit key, as rand_core's default seed_from_u64. */
void slm2_chacha8_key(uint64_t seed, uint32_t key[8]);
void slm2_chacha8_block(const uint32_t key[8], uint64_t counter, uint32_t out[16]);

#endif
