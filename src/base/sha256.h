/* base/sha256.h: SHA-256 (FIPS 180-4), incremental, on the stack. */
#ifndef SLM2_BASE_SHA256_H
#define SLM2_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct slm2_sha256 {
  uint32_t h[8];
  uint64_t n; /* bytes so far */
  uint8_t block[64];
} slm2_sha256;

void slm2_sha256_init(slm2_sha256 *s);
void slm2_sha256_update(slm2_sha256 *s, const void *bytes, size_t n);
void slm2_sha256_final(slm2_sha256 *s, uint8_t out[32]); /* s may be re-initialised afterwards */
void slm2_sha256_of(const void *bytes, size_t n, uint8_t out[32]);
void slm2_hex(const uint8_t *bytes, size_t n, char *out); /* 2n lower-case digits and a NUL */

#endif
