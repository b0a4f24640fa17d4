/* kernel/vector/matmul_f32.h: [D10] on panels. A lane is a row; its sum runs over the columns in order. */
#ifndef SLM2_KERNEL_VECTOR_MATMUL_F32_H
#define SLM2_KERNEL_VECTOR_MATMUL_F32_H

#include "kernel/vector/panel.h"

/* Weight of column 4g + c, c < 4, from the dwords of group g. */
INLINE vf weight_at(vi dwords, int c, vf scale) { return to_float((vi)((vu)dwords << (24 - 8 * c)) >> 24) * scale; }

/* One token: decoding. nv vectors of rows from row r. */
INLINE void vector_f32(float *y, const slm2_matrix *w, const float *x, uint32_t r, const int nv) {
  const uint32_t blocks = w->cols / SLM2_BLOCK;
  const uint8_t *panel = panel_at(w, r);
  vf acc[MAX_NV], scale[MAX_NV];
  UNROLL for (int v = 0; v < nv; v++) acc[v] = (vf){0};
  for (uint32_t b = 0; b < blocks; b++, panel += SLM2_PANEL_BYTES, x += SLM2_BLOCK) {
    PREFETCH(panel);
    scales_at(scale, panel, r, nv);
    const uint8_t *q = weights_at(panel, r);
    for (int g = 0; g < GROUPS; g++, q += GROUP_BYTES) {
      prefetch_group(q, nv);
      const float *act = x + 4 * g;
      UNROLL for (int v = 0; v < nv; v++) {
        vi dwords = load_bits(q + v * SLM2_VB);
        UNROLL for (int c = 0; c < 4; c++) acc[v] = acc[v] + act[c] * weight_at(dwords, c, scale[v]);
      }
    }
  }
  UNROLL for (int v = 0; v < nv; v++) store(y + r + v * LANES, acc[v]);
}

/* tt tokens times tv vectors of rows over one block: acc[t * PANEL + row] += x[t][c] * weight[c][row]. */
INLINE void tile_f32(float *acc, const float *weight, const float *x, uint32_t cols, const int tt, const int tv) {
  vf a[TILE_TOKENS][TILE_VECTORS];
  UNROLL for (int t = 0; t < tt; t++) UNROLL for (int v = 0; v < tv; v++) a[t][v] = load(acc + t * PANEL + v * LANES);
  for (int c = 0; c < BLOCK; c++) {
    vf column[TILE_VECTORS];
    UNROLL for (int v = 0; v < tv; v++) column[v] = load(weight + c * PANEL + v * LANES);
    UNROLL for (int t = 0; t < tt; t++) {
      float act = x[(size_t)t * cols + (size_t)c];
      UNROLL for (int v = 0; v < tv; v++) a[t][v] = a[t][v] + act * column[v];
    }
  }
  UNROLL for (int t = 0; t < tt; t++) UNROLL for (int v = 0; v < tv; v++) store(acc + t * PANEL + v * LANES, a[t][v]);
}

/* The weights of one block, dequantised once for all tokens: weight[column][row]. */
INLINE void dequantise(float *weight, const uint8_t *panel, uint32_t r, const int nv) {
  vf scale[MAX_NV];
  scales_at(scale, panel, r, nv);
  const uint8_t *q = weights_at(panel, r);
  for (int g = 0; g < GROUPS; g++, q += GROUP_BYTES) {
    prefetch_group(q, nv);
    UNROLL for (int v = 0; v < nv; v++) {
      vi dwords = load_bits(q + v * SLM2_VB);
      UNROLL for (int c = 0; c < 4; c++) store(weight + (4 * g + c) * PANEL + v * LANES, weight_at(dwords, c, scale[v]));
    }
  }
}

/* n <= MAX_TOKENS tokens, nv vectors of rows from row r. */
INLINE void tokens_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r, const int nv) {
  const uint32_t blocks = w->cols / SLM2_BLOCK, cols = w->cols;
  const uint8_t *panel = panel_at(w, r);
  float acc[MAX_TOKENS * PANEL] ALIGNED, weight[BLOCK * PANEL] ALIGNED;
  for (uint32_t i = 0; i < n * PANEL; i++) acc[i] = 0.0f;
  for (uint32_t b = 0; b < blocks; b++, panel += SLM2_PANEL_BYTES, x += SLM2_BLOCK) {
    dequantise(weight, panel, r, nv);
    for (int v = 0; v < nv; v += TILE_VECTORS_OF(nv)) {
      uint32_t t = 0;
      float *sums = acc + v * LANES;
      const float *columns = weight + v * LANES;
      for (; t + TILE_TOKENS <= n; t += TILE_TOKENS)
        tile_f32(sums + t * PANEL, columns, x + (size_t)t * cols, cols, TILE_TOKENS, TILE_VECTORS_OF(nv));
      for (; t + 2 <= n; t += 2) tile_f32(sums + t * PANEL, columns, x + (size_t)t * cols, cols, 2, TILE_VECTORS_OF(nv));
      for (; t < n; t++) tile_f32(sums + t * PANEL, columns, x + (size_t)t * cols, cols, 1, TILE_VECTORS_OF(nv));
    }
  }
  copy_rows(y + r, y_stride, acc, n, nv);
}

static inline void matmul_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0,
                              uint32_t r1) {
  if (w->form != SLM2_FORM_PANELS) {
    slm2_oracle_matmul_f32(y, y_stride, w, x, n, r0, r1);
    return;
  }
  for (uint32_t t = 0, tokens; t < n; t += tokens) {
    tokens = n - t < MAX_TOKENS ? n - t : MAX_TOKENS;
    float *out = y + t * y_stride;
    const float *in = x + (size_t)t * w->cols;
    for (uint32_t r = r0, rows; r < r1; r += rows) {
      rows = rows_of_step(r, r1);
      if (tokens == 1 && rows == 32) vector_f32(out, w, in, r, NV_PANEL);
      else if (tokens == 1) vector_f32(out, w, in, r, NV_HALF);
      else if (rows == 32) tokens_f32(out, y_stride, w, in, tokens, r, NV_PANEL);
      else tokens_f32(out, y_stride, w, in, tokens, r, NV_HALF);
    }
  }
}

#endif
