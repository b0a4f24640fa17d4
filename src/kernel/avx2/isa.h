/* kernel/avx2/isa.h: 32-byte vectors, int16 pair products, f16 conversion in hardware. FMA exists on these CPUs and is
 * never used [D1]. */
#ifndef SLM2_KERNEL_AVX2_ISA_H
#define SLM2_KERNEL_AVX2_ISA_H

#include <immintrin.h>

#define SLM2_VB 32
#define TILE_TOKENS 6 /* 12 accumulators, 2 columns, an activation, a product: 16 registers */
#define TILE_VECTORS 2
#include "kernel/vector/vector.h"

#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) { return acc + (vi)_mm256_madd_epi16((__m256i)w, (__m256i)a); }

#define HAVE_F16
INLINE vf load_f16(const uint16_t *p) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE void store_f16(uint16_t *p, vf v) {
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

#endif
