/* kernel/wasm128/relaxed.c: the backend for relaxed SIMD: byte products by i32x4.relaxed_dot_i8x16_i7x16_add_s.
 *
 * Of that instruction an engine may choose two things: whether a byte of the second operand with its top bit set is read as
 * signed or unsigned, and whether the sums of two products saturate at 16 bits or wrap. Neither choice can be seen here:
 *  - the second operand is |a|, and a is in -127 .. 127 [D11]: its top bits are clear;
 *  - the first is w, or ~w where a < 0. w is in -127 .. 127 [D9], which every reader of a file enforces, so this is in
 *    -128 .. 127, and a pair of products is at most 2 * 128 * 127 = 32,512 < 2^15 in magnitude.
 * The sum of four is then exact in 32 bits, whatever the processor. So is the block's: 32 * 128 * 127 and where it starts,
 * 32 * 127, are far below 2^31.
 */
#if defined(__wasm_relaxed_simd__)
#include <wasm_simd128.h>

#define SLM2_VB 16
#define TILE_TOKENS 4
#define TILE_VECTORS 2
#define Q8_TOKENS 2 /* a weight's vector costs a load, an activation two: 8 sums, 4 columns, 3 more are the 15 registers */
#define Q8_VECTORS 4
#define STREAMS 2 /* there is no instruction to ask for memory ahead */
#include "kernel/vector/vector.h"

#define PARTS 1
#define SIGNED 1
INLINE vi dot(vi acc, vi w, vi a) { return (vi)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)w, (v128_t)a, (v128_t)acc); }

#define BACKEND slm2_backend_wasm128relaxed
#define BACKEND_NAME "wasm128relaxed"
#include "kernel/vector/table.h"
#endif
