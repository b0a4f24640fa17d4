/* kernel/sse41/sse41.c: the backend for every x86-64 since 2008: 16-byte vectors, int16 pair products. Compiled with -msse4.1. */
#if defined(__SSE4_1__) && defined(__x86_64__)
#include <immintrin.h>

#define SLM2_VB 16
#define TILE_TOKENS 4
#define TILE_VECTORS 2
#include "kernel/vector/vector.h"

#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) { return acc + (vi)_mm_madd_epi16((__m128i)w, (__m128i)a); }

#define BACKEND slm2_backend_sse41
#define BACKEND_NAME "sse41"
#include "kernel/vector/table.h"
#endif
