/* kernel/wasm128/wasm128.c: the backend for WebAssembly with SIMD128: 16-byte vectors, int16 pair products. The modules are
 * compiled with -msimd128 as a whole: an engine without it compiles none of them, so there is nothing to ask at run time. */
#if defined(__wasm_simd128__)
#include <wasm_simd128.h>

#define SLM2_VB 16
#define TILE_TOKENS 4
#define TILE_VECTORS 2
#define STREAMS 2 /* there is no instruction to ask for memory ahead */
#include "kernel/vector/vector.h"

#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) { return acc + (vi)wasm_i32x4_dot_i16x8((v128_t)w, (v128_t)a); }

#define BACKEND slm2_backend_wasm128
#define BACKEND_NAME "wasm128"
#include "kernel/vector/table.h"
#endif
