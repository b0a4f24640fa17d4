/* kernel/avx2/avx2.c: the backend for x86-64 with AVX2 and F16C (2013 on): 32-byte vectors, int16 pair products. FMA exists
 * on these processors and is never used [D1]. Compiled with -mavx2 -mf16c. */
#if defined(__AVX2__) && defined(__F16C__) && defined(__x86_64__)
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

#define BACKEND slm2_backend_avx2
#define BACKEND_NAME "avx2"
#include "kernel/vector/table.h"
#endif
