/* base/bytes.h: little-endian loads and stores, and the checked cursor that every untrusted
 * byte passes through. Memory helpers carry our own names so that the core needs no libc. */
#ifndef SLM2_BASE_BYTES_H
#define SLM2_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The four functions every C compiler demands of a freestanding program (it emits calls to them itself); declared
 * here because a target without a libc has no <string.h>. */
#ifndef memcpy
void *memcpy(void *restrict to, const void *restrict from, size_t n);
#endif
#ifndef memmove
void *memmove(void *to, const void *from, size_t n);
#endif
#ifndef memset
void *memset(void *to, int byte, size_t n);
#endif
#ifndef memcmp
int memcmp(const void *a, const void *b, size_t n);
#endif

static inline uint16_t slm2_load_u16(const uint8_t *p) { return (uint16_t)(p[0] | (unsigned)p[1] << 8); }
static inline uint32_t slm2_load_u32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t slm2_load_u64(const uint8_t *p) {
  return (uint64_t)slm2_load_u32(p) | (uint64_t)slm2_load_u32(p + 4) << 32;
}
static inline void slm2_store_u16(uint8_t *p, uint16_t v) {
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
}
static inline void slm2_store_u32(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (8 * i));
}
static inline void slm2_store_u64(uint8_t *p, uint64_t v) {
  for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> (8 * i));
}
/* Bits and numbers: unions, because a freestanding compiler makes every memcpy a call. */
static inline float slm2_float_from_bits(uint32_t u) { return (union { uint32_t u; float f; }){.u = u}.f; }
static inline uint32_t slm2_float_bits(float f) { return (union { uint32_t u; float f; }){.f = f}.u; }
static inline double slm2_double_from_bits(uint64_t u) { return (union { uint64_t u; double f; }){.u = u}.f; }
static inline uint64_t slm2_double_bits(double f) { return (union { uint64_t u; double f; }){.f = f}.u; }
/* f32 stored little-endian at p, on any host. */
static inline float slm2_load_f32(const uint8_t *p) { return slm2_float_from_bits(slm2_load_u32(p)); }
static inline void slm2_store_f32(uint8_t *p, float v) { slm2_store_u32(p, slm2_float_bits(v)); }

/* A read position in lent bytes. Every take checks; a refused take leaves the cursor alone. */
typedef struct slm2_cursor {
  const uint8_t *bytes;
  size_t n, at;
} slm2_cursor;
static inline slm2_cursor slm2_cursor_of(const uint8_t *bytes, size_t n) { return (slm2_cursor){bytes, n, 0}; }
static inline size_t slm2_cursor_left(const slm2_cursor *c) { return c->n - c->at; }
static inline bool slm2_take(slm2_cursor *c, size_t n, const uint8_t **out) {
  if (n > c->n - c->at) return false;
  *out = c->bytes + c->at;
  c->at += n;
  return true;
}
static inline bool slm2_take_u16(slm2_cursor *c, uint16_t *out) {
  const uint8_t *p;
  if (!slm2_take(c, 2, &p)) return false;
  *out = slm2_load_u16(p);
  return true;
}
static inline bool slm2_take_u32(slm2_cursor *c, uint32_t *out) {
  const uint8_t *p;
  if (!slm2_take(c, 4, &p)) return false;
  *out = slm2_load_u32(p);
  return true;
}
static inline bool slm2_take_u64(slm2_cursor *c, uint64_t *out) {
  const uint8_t *p;
  if (!slm2_take(c, 8, &p)) return false;
  *out = slm2_load_u64(p);
  return true;
}

#endif
