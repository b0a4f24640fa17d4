/* kernel/vector/f16.h: A_LANES values of f16 to f32 and back: by kernel/<isa> where the hardware converts (HAVE_F16), or here. */
#ifndef SLM2_KERNEL_VECTOR_F16_H
#define SLM2_KERNEL_VECTOR_F16_H

#include "kernel/vector/vector.h"

#define A_BYTES (SLM2_VB > 32 ? 32 : SLM2_VB) /* attention's vectors: eight lanes at most [D7] */
#define A_LANES (A_BYTES / 4)
typedef float va __attribute__((vector_size(A_BYTES)));
typedef va va_at __attribute__((aligned(4), may_alias));

#ifndef HAVE_F16
typedef int16_t v4h __attribute__((vector_size(8)));
typedef v4h v4h_at __attribute__((aligned(2), may_alias));
_Static_assert(A_LANES == 4, "instruction sets with wider vectors convert f16 in hardware");
/* As half_high, of finite values: what a cache holds. Extended by its sign, a value has it in bit 31 after the shift too. */
INLINE va load_f16(const uint16_t *p) {
  const vi wide = __builtin_convertvector(*(const v4h_at *)p, vi);
  return (vf)((vi)((vu)wide << 13) & (int32_t)0x8fffe000) * 0x1p112f;
}
/* To nearest even, of magnitudes below 65520. Half of the dropped bits' unit less one, and one more where the kept part is odd,
 * carries as rounding does; what becomes subnormal is rounded to a multiple of 2^-24, the unit of 1/2, by an addition to it. */
INLINE void store_f16(uint16_t *p, va v) {
  const vi size = (vi)v & 0x7fffffff;
  const vi normal = (vi)(((vu)size + 0xfff + (((vu)size >> 13) & 1)) >> 13) - (112 << 10);
  const vi tiny = (vi)((vf)size + 0.5f) - 0x3f000000;
  const vi small = size < 0x38800000;
  const vi half = (small & tiny) | (~small & normal) | ((vi)((vu)v >> 16) & 0x8000);
  *(v4h_at *)p = __builtin_convertvector(half, v4h);
}
#endif
#if SLM2_VB <= 32
INLINE vf load_f16_wide(const uint16_t *p) { return (vf)load_f16(p); }
#endif

#endif
