/* num/chacha8.c: ChaCha with 8 rounds in Bernstein's original layout, and rand_core's seed_from_u64 [D20]. */
#include "num/chacha8.h"

static uint32_t rotate_left(uint32_t x, unsigned n) { return x << n | x >> (32 - n); }

static void quarter_round(uint32_t s[16], int a, int b, int c, int d) {
  s[a] += s[b];
  s[d] = rotate_left(s[d] ^ s[a], 16);
  s[c] += s[d];
  s[b] = rotate_left(s[b] ^ s[c], 12);
  s[a] += s[b];
  s[d] = rotate_left(s[d] ^ s[a], 8);
  s[c] += s[d];
  s[b] = rotate_left(s[b] ^ s[c], 7);
}

void slm2_chacha8_key(uint64_t seed, uint32_t key[8]) {
  for (int i = 0; i < 8; i++) {
    seed = seed * 6364136223846793005u + 11634580027462260723u;
    uint32_t x = (uint32_t)((seed >> 18 ^ seed) >> 27), right = (uint32_t)(seed >> 59);
    key[i] = x >> right | x << (-right & 31);
  }
}

void slm2_chacha8_block(const uint32_t key[8], uint64_t counter, uint32_t out[16]) {
  const uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, /* "expand 32-byte k" */
                              key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
                              (uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  uint32_t s[16];
  for (int i = 0; i < 16; i++) s[i] = start[i];
  for (int round = 0; round < 8; round += 2) {
    for (int i = 0; i < 4; i++) quarter_round(s, i, 4 + i, 8 + i, 12 + i);
    for (int i = 0; i < 4; i++) quarter_round(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (int i = 0; i < 16; i++) out[i] = s[i] + start[i];
}
