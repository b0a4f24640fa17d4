/* kernel/vector/panel.h: walking panels with vectors (kernel/weights.h has the layout). A panel's lanes are 32 rows, or
 * 16 of them when a range begins or ends inside one: the scales of rows 0 .. 15 are the low halves of its first 16
 * dwords, those of rows 16 .. 31 the high halves; then 8 groups of 4 columns, a dword per row. */
#ifndef SLM2_KERNEL_VECTOR_PANEL_H
#define SLM2_KERNEL_VECTOR_PANEL_H

#include "kernel/vector/vector.h"

#define PANEL 32
#define BLOCK 32
#define GROUPS 8
#define GROUP_BYTES 128
#define NV_PANEL (PANEL / LANES)
#define NV_HALF (PANEL / 2 / LANES)
#define MAX_NV NV_PANEL
#define ALIGNED __attribute__((aligned(64)))
/* Tokens that share one reading of the weights; their sums of a panel stay in the nearest cache. */
#define MAX_TOKENS 64u

#define TILE_VECTORS_OF(nv) ((nv) < TILE_VECTORS ? (nv) : TILE_VECTORS) /* of nv vectors of rows */

INLINE const uint8_t *panel_at(const slm2_matrix *w, uint32_t r) {
  return w->data + (size_t)(r / SLM2_PANEL_ROWS) * (w->cols / SLM2_BLOCK) * SLM2_PANEL_BYTES;
}
INLINE const uint8_t *weights_at(const uint8_t *panel, uint32_t r) { return panel + 64 + r % SLM2_PANEL_ROWS * 4; }
/* The scales of nv vectors of rows from row r: a whole panel or one of its halves. */
INLINE void scales_at(vf scale[MAX_NV], const uint8_t *panel, uint32_t r, const int nv) {
  UNROLL for (int v = 0; v < NV_HALF; v++) {
    vi halves = load_bits(panel + v * SLM2_VB);
    if (nv == NV_PANEL) {
      scale[v] = half_low(halves);
      scale[v + nv - NV_HALF] = half_high(halves);
    } else {
      scale[v] = r % SLM2_PANEL_ROWS == 0 ? half_low(halves) : half_high(halves);
    }
  }
}
INLINE void prefetch_group(const uint8_t *q, const int nv) {
  UNROLL for (int at = 0; at < nv * SLM2_VB; at += 64) PREFETCH(q + at);
}
/* Rows of the next step from row r: a panel where one fits, else half of one. */
INLINE uint32_t rows_of_step(uint32_t r, uint32_t end) {
  return r % SLM2_PANEL_ROWS == 0 && end - r >= SLM2_PANEL_ROWS ? 32 : 16;
}
/* The finished sums of n tokens to their places. */
INLINE void copy_rows(float *y, size_t y_stride, const float *acc, uint32_t n, const int nv) {
  for (uint32_t t = 0; t < n; t++)
    UNROLL for (int v = 0; v < nv; v++) store(y + t * y_stride + v * LANES, load(acc + t * PANEL + v * LANES));
}

#endif
