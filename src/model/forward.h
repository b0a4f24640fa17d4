/* model/forward.h: token ids to logits, one tile of tokens at a time. forward.c is the main path of the whole project. */
#ifndef SLM2_MODEL_FORWARD_H
#define SLM2_MODEL_FORWARD_H

#include <stdatomic.h>
#include "base/arena.h"
#include "kernel/kernel.h"
#include "model/kv.h"
#include "model/model.h"
#include "slm2/pool.h"
#include "slm2/trace.h"

/* The unit of a matrix product is half a panel; a thread takes up to so many together, between two looks at the cancel
 * word [K14]: kernels are at their best with 64 rows of a tile, and of a single token, which memory bounds, with streams of
 * some 100 KB. */
#define SLM2_UNIT_ROWS 16u
#define SLM2_UNITS_TOGETHER 4u
#define SLM2_UNITS_OF_ONE 32u

/* Activations of one tile, one row per token. */
typedef struct slm2_scratch {
  float *x;          /* [tile, hidden] the residual stream */
  float *h;          /* [tile, hidden] normalised x */
  float *q;          /* [tile, heads * head_dim] */
  float *k, *v;      /* [tile, kv_heads * head_dim] */
  float *attended;   /* [tile, heads * head_dim] */
  float *gate, *up;  /* [tile, intermediate] */
  float *delta;      /* [tile, hidden] what a block adds to x */
  float *cos, *sin;  /* [tile, head_dim / 2] */
  float *scores;     /* [threads, scores_stride] each thread's scratch of one call of attention */
  size_t scores_stride;
  int8_t *xq;        /* [tile, widest input] quantised input of a product; profile q8 only */
  float *xq_scale;   /* [tile, widest input / 32] */
} slm2_scratch;

/* Takes the scratch from the arena and returns its bytes, alignment excluded. */
uint64_t slm2_scratch_place(slm2_arena *arena, const slm2_config *c, slm2_profile profile, uint32_t tile, uint32_t context,
                            uint32_t threads, slm2_scratch *out);

/* Everything a pass works with. The caller keeps positions below kv.context, ids below the vocabulary and tiles within
 * the scratch. */
typedef struct slm2_forward {
  const slm2_model *model;
  const slm2_backend *kernels;
  const slm2_pool *pool; /* NULL: the calling thread alone */
  slm2_profile profile;
  slm2_kv_cache kv;
  slm2_scratch scratch;
} slm2_forward;

/* The cancel word (may be NULL): non-zero stops with SLM2_E_CANCELLED. Every thread reads it before every piece of work
 * that it takes: at most 64 rows of a product (512 for a single token), SLM2_ATTENTION_ROWS rows of attention, one token
 * of anything else. */
typedef const _Atomic(uint32_t) slm2_stop_word;

/* Who watches a pass under way. Both may be NULL. The tap is called by the thread that called the pass. */
typedef struct slm2_watch {
  slm2_stop_word *stop;
  slm2_tap_fn *tap; /* sees every stage of every token */
  void *user;       /* of the tap */
} slm2_watch;

/* Computes tokens ids[0..n) at positions position .. position + n - 1 through all layers: their keys and values are
 * stored, their residuals stay in the scratch. SLM2_E_NUMERICAL names stage, layer and position [D5]. */
SLM2_NODISCARD slm2_status slm2_forward_tile(const slm2_forward *f, const uint32_t *ids, uint32_t n, uint32_t position,
                                             const slm2_watch *watch, slm2_error *error);
/* Logits [n, vocab] of tokens t .. t + n - 1 of the last tile, which began at position. */
SLM2_NODISCARD slm2_status slm2_forward_logits(const slm2_forward *f, uint32_t t, uint32_t n, uint32_t position, float *logits,
                                               const slm2_watch *watch, slm2_error *error);

#endif
