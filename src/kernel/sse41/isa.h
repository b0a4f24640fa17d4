/* kernel/sse41/isa.h: 16-byte vectors, int16 pair products. */
#ifndef SLM2_KERNEL_SSE41_ISA_H
#define SLM2_KERNEL_SSE41_ISA_H

#include <immintrin.h>

#define SLM2_VB 16
#define TILE_TOKENS 4
#define TILE_VECTORS 2
#include "kernel/vector/vector.h"

#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) { return acc + (vi)_mm_madd_epi16((__m128i)w, (__m128i)a); }

#endif
