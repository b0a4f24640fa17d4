/* kernel/avx512/avx512.h: 64-byte vectors and 32 registers; int16 pair products, or byte products where the file that includes
 * this says WITH_VNNI. FMA is never used [D1]. Empty for a compiler that may not use AVX-512. */
#ifndef SLM2_KERNEL_AVX512_AVX512_H
#define SLM2_KERNEL_AVX512_AVX512_H

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__x86_64__)
#include <immintrin.h>

#define SLM2_VB 64
#define TILE_TOKENS 8
#define TILE_VECTORS 2
#include "kernel/vector/vector.h"

#ifdef WITH_VNNI
#define PARTS 1
#define BIASED 1 /* vpdpbusd: unsigned activations times signed weights, without saturation */
INLINE vi dot(vi acc, vi w, vi a) { return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)a, (__m512i)w); }
#else
#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) { return acc + (vi)_mm512_madd_epi16((__m512i)w, (__m512i)a); }
#endif

#define HAVE_F16
INLINE __m256 load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE vf load_f16_wide(const uint16_t *p) { return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE void store_f16(uint16_t *p, __m256 v) { _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }

#include "kernel/vector/table.h"
#endif

#endif
