/* kernel/kernel.h: the table of operations. kernel/oracle fills it with the shortest correct code, which is
 * the executable form of docs/NUMERICS.md; a twin may overwrite a slot only when it gives the same bits.
 *
 * All arrays are f32 unless said otherwise and do not overlap unless said otherwise. Work is always cut by
 * output elements, never inside a sum [D8]: matvec takes a range of rows, attention the query rows of one kv head.
 * Functions that can meet a NaN or infinity at a stage border return false [D5].
 */
#ifndef SLM2_KERNEL_KERNEL_H
#define SLM2_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "slm2/backend.h"
#include "slm2/format.h"

/* A 2-D weight inside the file. rows and cols are multiples of 32. */
typedef struct slm2_matrix {
  const uint8_t *data; /* rows * cols / 32 * 34 bytes, 64-byte aligned */
  uint32_t rows, cols;
  slm2_weight_form form;
} slm2_matrix;

/* Keys or values of one kv head: positions 0 .. n-1, head_dim apart; f32 or f16 bits [D18]. */
typedef struct slm2_kv_view {
  const void *data;
  bool f16;
} slm2_kv_view;

/* Query rows that read the same keys and values: some neighbouring heads of a group, of some neighbouring tokens. */
typedef struct slm2_attention {
  float *out;
  const float *q; /* row (t, h) begins at t * stride + h * head_dim here and in out */
  size_t stride;
  slm2_kv_view k, v; /* of n + tokens - 1 positions, all finite */
  uint32_t tokens, heads, head_dim;
  uint32_t n; /* the rows of token t attend to positions 0 .. n + t - 1 */
  float *scratch; /* slm2_attention_scratch */
} slm2_attention;
#define SLM2_ATTENTION_ROWS 32u /* tokens * heads: at most */
#define SLM2_ATTENTION_BLOCK 32u /* positions that a twin converts from f16 at a time */

/* How many f32, for up to `rows` rows and n positions: scores and queries of 16, 32 ... rows; a block of keys or values. */
static inline size_t slm2_attention_scratch(uint32_t rows, uint32_t n, uint32_t head_dim) {
  return ((size_t)rows + 15) / 16 * 16 * ((size_t)n + head_dim) + (size_t)SLM2_ATTENTION_BLOCK * head_dim;
}

struct slm2_backend {
  const char *name;

  /* [D12] y[cols] = row of w, dequantised. row < w->rows. */
  void (*embed)(float *y, const slm2_matrix *w, uint32_t row);
  /* [D10] y[r] for r0 <= r < r1 (multiples of 16: half a panel is the unit of work; the more rows a call gets, the faster
   * each, up to 64), for n tokens: y[t * y_stride + r] from x[t * w->cols ..]. */
  void (*matmul_f32)(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1);
  /* [D11] One activation vector to int8 xq[n] and scales a[n / 32]; n % 32 == 0. false: x is not finite. */
  bool (*quantize)(int8_t *xq, float *a, const float *x, uint32_t n);
  /* [D11] As matmul_f32, from xq[t * w->cols ..] and a[t * w->cols / 32 ..]. */
  void (*matmul_q8)(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n, uint32_t r0,
                    uint32_t r1);
  /* [D13] y[n] = RMSNorm of x[n] with weight w[n] (little-endian f32 in the file). y may be x. */
  void (*rmsnorm)(float *y, const float *x, const uint8_t *w, uint32_t n, float eps);
  /* [D14] c[i], s[i] for i < half at one position, from the file's inv_freq (little-endian f32). */
  void (*rope_table)(float *c, float *s, uint32_t position, const uint8_t *inv_freq, uint32_t half);
  /* [D14] One head x[2 * half] in place. */
  void (*rope)(float *x, const float *c, const float *s, uint32_t half);
  /* [D18] n values into a KV cache of the given type. false: a value overflowed f16, or is not finite. */
  bool (*kv_store)(void *dst, const float *x, uint32_t n, bool f16);
  /* [D15] out[head_dim] of every row. false: a score is not finite. */
  bool (*attention)(const slm2_attention *a);
  /* [D16] y[i] = silu(g[i]) * u[i]. y may be g. */
  void (*swiglu)(float *y, const float *g, const float *u, uint32_t n);
  /* [D17] x[i] += y[i]. */
  void (*add)(float *x, const float *y, uint32_t n);
  /* [D5] Whether every element is finite. */
  bool (*finite)(const float *x, size_t n);
  /* [D26] The greatest of x (the first, if it is a zero); n > 0, all finite. */
  float (*greatest)(const float *x, size_t n);
  /* [D26] y[i] = exp(x[i] - max); no x[i] is above max, all are finite. */
  void (*exp_below)(float *y, const float *x, float max, size_t n);
};

/* The scalar authority. */
extern const slm2_backend slm2_backend_oracle;

#endif
