/* kernel/wasm128/relaxed.c: the backend for relaxed SIMD: one token's byte products by i32x4.relaxed_dot_i8x16_i7x16_add_s.
 * With more tokens int16 pairs are faster, as each use of a weight costs its sign anew: there it is wasm128.c.
 *
 * Of that instruction an engine may choose two things: whether a byte of the second operand with its top bit set is read as
 * signed or unsigned, and whether the sums of two products saturate at 16 bits or wrap. Neither choice can be seen here:
 *  - the second operand is |a|, and a is in -127 .. 127 [D11]: its top bits are clear;
 *  - the first is w with a's sign, -w where a < 0: w is in -127 .. 127 [D9], which every reader of a file enforces, so this
 *    stays a byte, and a pair of products is at most 2 * 127 * 127 = 32,258 < 2^15 in magnitude.
 * The sum of four is then exact in 32 bits, whatever the processor. So is the block's: 32 * 127 * 127 < 2^31.
 */
#if defined(__wasm_relaxed_simd__)
#include <wasm_simd128.h>

#define SLM2_VB 16
#define TILE_TOKENS 4
#define TILE_VECTORS 2
#include "kernel/vector/vector.h"

#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) { return acc + (vi)wasm_i32x4_dot_i16x8((v128_t)w, (v128_t)a); }

#define HAVE_DOT4
/* What depends on a alone is the same for all rows; the compiler takes it out of their loop. */
INLINE vi dot4(vi acc, vi w, vi a) {
  v128_t negative = wasm_i8x16_lt((v128_t)a, wasm_i8x16_const_splat(0));
  v128_t signed_w = wasm_i8x16_sub(wasm_v128_xor((v128_t)w, negative), negative);
  return (vi)wasm_i32x4_relaxed_dot_i8x16_i7x16_add(signed_w, wasm_i8x16_abs((v128_t)a), (v128_t)acc);
}

#define BACKEND slm2_backend_wasm128relaxed
#define BACKEND_NAME "wasm128relaxed"
#include "kernel/vector/table.h"
#endif
