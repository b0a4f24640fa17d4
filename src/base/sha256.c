/* base/sha256.c: SHA-256 after FIPS 180-4. Names of variables are the standard's. */
#include "base/sha256.h"
#include "base/bytes.h"

/* FIPS 180-4 §4.2.2: first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }
static uint32_t load_be(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static void store_be(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void compress(uint32_t H[8], const uint8_t *block) {
  uint32_t W[64];
  for (int t = 0; t < 16; t++) W[t] = load_be(block + 4 * t);
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotr(W[t - 15], 7) ^ rotr(W[t - 15], 18) ^ W[t - 15] >> 3;
    uint32_t s1 = rotr(W[t - 2], 17) ^ rotr(W[t - 2], 19) ^ W[t - 2] >> 10;
    W[t] = s1 + W[t - 7] + s0 + W[t - 16];
  }
  uint32_t a = H[0], b = H[1], c = H[2], d = H[3], e = H[4], f = H[5], g = H[6], h = H[7];
  for (int t = 0; t < 64; t++) {
    uint32_t T1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + W[t];
    uint32_t T2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + T1;
    d = c;
    c = b;
    b = a;
    a = T1 + T2;
  }
  const uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) H[i] += add[i];
}

void slm2_sha256_init(slm2_sha256 *s) {
  /* §5.3.3: fractional parts of the square roots of the first 8 primes. */
  *s = (slm2_sha256){{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, 0, {0}};
}

void slm2_sha256_update(slm2_sha256 *s, const void *bytes, size_t n) {
  const uint8_t *p = bytes;
  size_t held = (size_t)(s->n % 64);
  s->n += n;
  if (held != 0) {
    size_t take = n < 64 - held ? n : 64 - held;
    if (take != 0) memcpy(s->block + held, p, take);
    if (held + take < 64) return;
    compress(s->h, s->block);
    p += take;
    n -= take;
  }
  for (; n >= 64; p += 64, n -= 64) compress(s->h, p);
  if (n != 0) memcpy(s->block, p, n);
}

void slm2_sha256_final(slm2_sha256 *s, uint8_t out[32]) {
  size_t held = (size_t)(s->n % 64);
  s->block[held++] = 0x80;
  if (held > 56) {
    memset(s->block + held, 0, 64 - held);
    compress(s->h, s->block);
    held = 0;
  }
  memset(s->block + held, 0, 56 - held);
  store_be(s->block + 56, (uint32_t)(s->n >> 29)); /* length in bits */
  store_be(s->block + 60, (uint32_t)(s->n << 3));
  compress(s->h, s->block);
  for (int i = 0; i < 8; i++) store_be(out + 4 * i, s->h[i]);
}

void slm2_sha256_of(const void *bytes, size_t n, uint8_t out[32]) {
  slm2_sha256 s;
  slm2_sha256_init(&s);
  slm2_sha256_update(&s, bytes, n);
  slm2_sha256_final(&s, out);
}

void slm2_hex(const uint8_t *bytes, size_t n, char *out) {
  for (size_t i = 0; i < n; i++) {
    out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
    out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
  }
  out[2 * n] = 0;
}
