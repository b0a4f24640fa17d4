/* kernel/vector/vector.h: vectors of the width that a backend chose, in the compiler's vector extension. Lanes are output
 * elements and never meet inside a sum, so an operation here is the oracle's, done to several outputs at once [D8]; the
 * two that need an order of their own (lanes8, exp) state it.
 *
 * kernel/<isa> defines SLM2_VB, the bytes of a vector, and what only intrinsics can say, before including this.
 * Loads and stores take any address: a file maps where it maps.
 */
#ifndef SLM2_KERNEL_VECTOR_VECTOR_H
#define SLM2_KERNEL_VECTOR_VECTOR_H

#include "kernel/oracle/oracle.h"

#ifndef SLM2_VB
#define SLM2_VB 16
#endif
#define LANES (SLM2_VB / 4)
/* Register tiles: tokens times vectors of rows, accumulators for the most part of the register file. */
#ifndef TILE_TOKENS
#define TILE_TOKENS 4
#define TILE_VECTORS 2
#endif
#define INLINE static inline __attribute__((always_inline))
#define PRAGMA(x) _Pragma(#x)
/* Complete unrolling of a loop over a constant, so that small arrays of vectors become registers. */
#define UNROLL PRAGMA(GCC unroll 16)
/* Loops that walk the weights. For WebAssembly LLVM regroups a body that it has unrolled by its sums, so that lines of memory are
 * touched out of their order and again later, and each sum is one long chain: half the speed, from cache and from memory. */
#ifdef __wasm__
#define ROLLED PRAGMA(clang loop unroll(disable))
#define IN_ORDER ROLLED
/* Loads from p have their distance in the instruction: LLVM keeps sums of its own making instead, one addition for each. */
#define ONE_ADDRESS(p) __asm__("" : "+r"(p))
#else
#define ROLLED
#define ONE_ADDRESS(p) (void)(p)
#define IN_ORDER UNROLL
#endif
/* How far ahead of its use a weight is asked for, in bytes: the largest single gain in decoding, where memory is the bound. */
#define PREFETCH_AHEAD 4096
#define PREFETCH(p) __builtin_prefetch((const char *)(p) + PREFETCH_AHEAD, 0, 3)

typedef float vf __attribute__((vector_size(SLM2_VB)));
typedef int32_t vi __attribute__((vector_size(SLM2_VB)));
typedef uint32_t vu __attribute__((vector_size(SLM2_VB)));
typedef int16_t vs __attribute__((vector_size(SLM2_VB)));
typedef int8_t vc __attribute__((vector_size(SLM2_VB)));
typedef vf vf_at __attribute__((aligned(1), may_alias));
typedef vi vi_at __attribute__((aligned(1), may_alias));
typedef int32_t int32_at __attribute__((aligned(1), may_alias));

INLINE vf load(const void *p) { return *(const vf_at *)p; }
INLINE vi load_bits(const void *p) { return *(const vi_at *)p; }
INLINE void store(void *p, vf v) { *(vf_at *)p = v; }
INLINE void store_bits(void *p, vi v) { *(vi_at *)p = v; }
INLINE vi splat_bits(int32_t x) { return (vi){0} + x; }
INLINE vf to_float(vi v) { return __builtin_convertvector(v, vf); }
/* a where mask is all ones, b where it is zero. */
INLINE vf pick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
INLINE bool any(vi mask) {
  int32_t all = 0;
  UNROLL for (int i = 0; i < LANES; i++) all |= mask[i];
  return all != 0;
}

/* The greatest of x, n > 0; of zeros, any. */
INLINE float most_of(const float *x, size_t n) {
  float max = x[0];
  size_t i = 0;
  if (n >= LANES) {
    vf most = load(x);
    for (; i + LANES <= n; i += LANES) most = pick(load(x + i) > most, load(x + i), most);
    UNROLL for (int k = 0; k < LANES; k++) max = most[k] > max ? most[k] : max;
  }
  for (; i < n; i++) max = x[i] > max ? x[i] : max;
  return max;
}

/* f16 in the high halves of h to f32, all values, the low halves ignored: sign, exponent and mantissa move to their places
 * and 2^112 mends the exponent, exactly, subnormals too; infinity and NaN get the top exponent. */
INLINE vf half_high(vi h) {
  vi bits = (h >> 3) & (int32_t)0x8fffe000;
  vi special = (h & 0x7c000000) == 0x7c000000;
  return (vf)((vi)((vf)bits * 0x1p112f) | (special & 0x7f800000));
}
INLINE vf half_low(vi h) { return half_high((vi)((vu)h << 16)); }

#endif
