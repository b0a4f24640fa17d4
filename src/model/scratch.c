/* model/scratch.c: the activations of a tile, carved from the session's block. */
#include "model/forward.h"

static void *take(slm2_arena *a, uint64_t *total, uint64_t count, uint64_t size) {
  *total += count * size; /* below 2^42: every factor has a limit in slm2/format.h */
  return slm2_arena_take(a, count, size);
}

static uint32_t widest_input(const slm2_config *c) {
  uint32_t widest = c->hidden > c->intermediate ? c->hidden : c->intermediate;
  return c->heads * c->head_dim > widest ? c->heads * c->head_dim : widest;
}

/* Of a thread: a multiple of 16 f32, so that each thread writes cache lines of its own. */
static uint64_t scores_stride(const slm2_config *c, uint32_t tile, uint32_t context) {
  const uint32_t group = c->heads / c->kv_heads, rows = tile * group; /* below 2^32 by the limits of both */
  return slm2_attention_scratch(rows < SLM2_ATTENTION_ROWS ? rows : SLM2_ATTENTION_ROWS, context, c->head_dim);
}

uint64_t slm2_scratch_place(slm2_arena *a, const slm2_config *c, slm2_profile profile, uint32_t tile, uint32_t context,
                            uint32_t threads, slm2_scratch *s) {
  const uint64_t n = tile, f32 = sizeof(float), widest = profile == SLM2_PROFILE_Q8 ? widest_input(c) : 0;
  uint64_t total = 0;
  s->x = take(a, &total, n * c->hidden, f32);
  s->h = take(a, &total, n * c->hidden, f32);
  s->q = take(a, &total, n * c->heads * c->head_dim, f32);
  s->k = take(a, &total, n * c->kv_heads * c->head_dim, f32);
  s->v = take(a, &total, n * c->kv_heads * c->head_dim, f32);
  s->attended = take(a, &total, n * c->heads * c->head_dim, f32);
  s->gate = take(a, &total, n * c->intermediate, f32);
  s->up = take(a, &total, n * c->intermediate, f32);
  s->delta = take(a, &total, n * c->hidden, f32);
  s->cos = take(a, &total, n * (c->head_dim / 2), f32);
  s->sin = take(a, &total, n * (c->head_dim / 2), f32);
  s->scores_stride = (size_t)scores_stride(c, tile, context);
  s->scores = take(a, &total, (uint64_t)threads * s->scores_stride, f32);
  s->xq = take(a, &total, n * widest, 1);
  s->xq_scale = take(a, &total, n * (widest / 32), f32);
  return total;
}
