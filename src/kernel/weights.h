/* kernel/weights.h: where a weight lies in either form, in one place. */
#ifndef SLM2_KERNEL_WEIGHTS_H
#define SLM2_KERNEL_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>
#include "slm2/format.h"

#define SLM2_BLOCK 32u         /* columns that share a scale */
#define SLM2_BLOCK_BYTES 34u
#define SLM2_PANEL_ROWS 32u
#define SLM2_PANEL_BYTES 1088u /* 32 rows x 32 columns: 64 bytes of scales, 1,024 of weights */

/* Byte offset of the f16 scale of (row, block b), in a matrix of cols columns. */
static inline size_t slm2_scale_at(slm2_weight_form form, uint32_t cols, uint32_t row, uint32_t b) {
  size_t blocks = cols / SLM2_BLOCK;
  if (form == SLM2_FORM_ROWS) return (row * blocks + b) * SLM2_BLOCK_BYTES;
  size_t panel = ((row / SLM2_PANEL_ROWS) * blocks + b) * SLM2_PANEL_BYTES;
  uint32_t r = row % SLM2_PANEL_ROWS;
  return panel + 4 * (r % 16) + 2 * (r / 16);
}
/* Byte offset of weight (row, 32 b + k), k < 32. */
static inline size_t slm2_weight_at(slm2_weight_form form, uint32_t cols, uint32_t row, uint32_t b, uint32_t k) {
  size_t blocks = cols / SLM2_BLOCK;
  if (form == SLM2_FORM_ROWS) return (row * blocks + b) * SLM2_BLOCK_BYTES + 2 + k;
  size_t panel = ((row / SLM2_PANEL_ROWS) * blocks + b) * SLM2_PANEL_BYTES;
  return panel + 64 + (size_t)(k / 4) * 128 + (size_t)(row % SLM2_PANEL_ROWS) * 4 + k % 4;
}

#endif
