/* wasm/trial.c: slm2_web_trial: the product that generating consists of, on made-up weights in the work region, so that a page
 * can time this module against another one before a model is there. */
#include "base/bytes.h"
#include "kernel/kernel.h"
#include "wasm/engine.h"

#define ROWS 1024u
#define COLS 1024u
#define MATRIX (ROWS * COLS / 32 * 34)

typedef struct trial {
  slm2_matrix w;
  int8_t xq[COLS];
  float scale[COLS / 32], y[ROWS];
} trial;

/* Scales of 1/256 and every weight that there can be. */
static void fill(trial *t, uint8_t *bytes) {
  for (uint32_t at = 0; at < MATRIX; at += 1088) {
    for (uint32_t i = 0; i < 64; i += 2) slm2_store_u16(bytes + at + i, 0x1c00);
    for (uint32_t i = 64; i < 1088; i++) bytes[at + i] = (uint8_t)((at + 37 * i) % 255 - 127);
  }
  for (uint32_t i = 0; i < COLS; i++) t->xq[i] = (int8_t)(91 * i % 255 - 127);
  for (uint32_t i = 0; i < COLS / 32; i++) t->scale[i] = 0.0078125f;
  t->w = (slm2_matrix){bytes, ROWS, COLS, SLM2_FORM_PANELS};
}

double slm2_web_trial(uint32_t rounds) {
  const slm2_web_engine *e = slm2_web_started();
  trial t;
  if (e == NULL || e->state != SLM2_STATE_EMPTY || e->task != NULL || e->collecting || e->work.zone_bytes < MATRIX) return -1.0;
  fill(&t, slm2_web_work_at(e, e->work.zone));
  const slm2_backend *backend = slm2_backend_default();
  double sum = 0.0;
  for (uint32_t i = 0; i < rounds; i++) {
    slm2_web_beat();
    t.xq[i % COLS] = (int8_t)(i % 127);
    for (uint32_t r = 0; r < ROWS; r += 64) {
      backend->matmul_q8(t.y, ROWS, &t.w, t.xq, t.scale, 1, r, r + 64);
      for (uint32_t k = 0; k < 64; k++) sum += (double)(t.y[r + k] < 0.0f ? -t.y[r + k] : t.y[r + k]);
    }
  }
  return sum;
}
