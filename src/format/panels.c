/* format/panels.c: the two storage forms of 32 rows [K7], by moving bytes; kernel/weights.h says where each lies. */
#include "base/bytes.h"
#include "kernel/weights.h"

/* Moves the scale and the eight groups of four weights of every block of 32 rows. */
static void move_rows(const uint8_t *from, uint8_t *to, slm2_weight_form from_form, slm2_weight_form to_form, uint32_t cols) {
  for (uint32_t row = 0; row < SLM2_PANEL_ROWS; row++) {
    for (uint32_t b = 0; b < cols / SLM2_BLOCK; b++) {
      memcpy(to + slm2_scale_at(to_form, cols, row, b), from + slm2_scale_at(from_form, cols, row, b), 2);
      for (uint32_t k = 0; k < SLM2_BLOCK; k += 4) {
        memcpy(to + slm2_weight_at(to_form, cols, row, b, k), from + slm2_weight_at(from_form, cols, row, b, k), 4);
      }
    }
  }
}

void slm2_panels_from_rows(const uint8_t *rows, uint32_t cols, uint8_t *panels) {
  move_rows(rows, panels, SLM2_FORM_ROWS, SLM2_FORM_PANELS, cols);
}

void slm2_rows_from_panels(const uint8_t *panels, uint32_t cols, uint8_t *rows) {
  move_rows(panels, rows, SLM2_FORM_PANELS, SLM2_FORM_ROWS, cols);
}
