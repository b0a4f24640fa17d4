/* model/forward.c: THE MAIN PATH. Token ids go in at the top, logits come out at the bottom; everything else in this
 * project prepares for these few pages or shows what they return.
 *
 * The order of operations is that of Hugging Face transformers' modeling_qwen3.py (docs/MODEL.md); what each operation
 * computes, to the bit, is docs/NUMERICS.md, executed by the kernel table. This file only decides what follows what.
 * A tile of n tokens passes each layer side by side, but every token's numbers are its own: no result depends on n,
 * on the backend or on how a text was cut into tiles [D8].
 */
#include "model/forward.h"
#include "base/error.h"

/* One pass under way. */
typedef struct pass {
  const slm2_forward *f;
  const slm2_config *c;
  const slm2_backend *kernels;
  const slm2_scratch *s;
  uint32_t n, position; /* tokens of the tile, position of the first */
  uint32_t layer;       /* == c->layers after the last one */
  const float *input;   /* of the next products: n vectors */
  const slm2_watch *watch;
  slm2_error *error;
} pass;

static pass begin(const slm2_forward *f, uint32_t n, uint32_t position, const slm2_watch *watch, slm2_error *error) {
  return (pass){f, &f->model->header.config, f->kernels, &f->scratch, n, position, 0, NULL, watch, error};
}

static slm2_status poll(const pass *p) {
  if (p->watch->stop == NULL || atomic_load_explicit(p->watch->stop, memory_order_relaxed) == 0) return SLM2_OK;
  return slm2_fail(p->error, SLM2_E_CANCELLED, "forward", NULL, SLM2_NO_OFFSET, "cancelled at position %u, layer %u of %u",
                   (uint64_t)p->position, (uint64_t)p->layer, (uint64_t)p->c->layers);
}

static slm2_status not_finite(const pass *p, const char *stage, uint32_t t) {
  return slm2_fail(p->error, SLM2_E_NUMERICAL, "forward", stage, SLM2_NO_OFFSET,
                   "a value that is not finite at position %u, layer %u of %u", (uint64_t)p->position + t,
                   (uint64_t)p->layer, (uint64_t)p->c->layers);
}

/* Shows what a stage computed, x [n, width], to whoever traces this pass. Every operation below ends with it. */
static void show(const pass *p, slm2_stage stage, const float *x, uint32_t width) {
  if (p->watch->tap == NULL) return;
  for (uint32_t t = 0; t < p->n; t++)
    p->watch->tap(p->watch->user, stage, p->layer, p->position + t, x + (size_t)t * width, width);
}

/* --- matrix products ------------------------------------------------------ */

/* Names x [n, width] as the input of the products that follow. Profile q8 quantises it here, once for all of them,
 * and refuses what is not finite [D11] [D5]. */
static slm2_status set_input(pass *p, const float *x, uint32_t width, const char *stage) {
  p->input = x;
  if (p->f->profile == SLM2_PROFILE_F32) return SLM2_OK;
  for (uint32_t t = 0; t < p->n; t++) {
    size_t at = (size_t)t * width;
    if (!p->kernels->quantize(p->s->xq + at, p->s->xq_scale + at / 32, x + at, width)) return not_finite(p, stage, t);
  }
  return SLM2_OK;
}

/* y [n, rows] = input times w, in row blocks [D10] [D11]. */
static slm2_status product(const pass *p, slm2_stage stage, float *y, const slm2_matrix *w) {
  for (uint32_t r = 0; r < w->rows; r += SLM2_ROW_BLOCK) {
    SLM2_TRY(poll(p));
    if (p->f->profile == SLM2_PROFILE_F32)
      p->kernels->matmul_f32(y, w->rows, w, p->input, p->n, r, r + SLM2_ROW_BLOCK);
    else
      p->kernels->matmul_q8(y, w->rows, w, p->s->xq, p->s->xq_scale, p->n, r, r + SLM2_ROW_BLOCK);
  }
  show(p, stage, y, w->rows);
  return SLM2_OK;
}

/* --- the two blocks of a layer -------------------------------------------- */

/* h = RMSNorm(x), token by token [D13]. */
static void normalise(const pass *p, slm2_stage stage, const uint8_t *weight) {
  for (uint32_t t = 0; t < p->n; t++) {
    size_t at = (size_t)t * p->c->hidden;
    p->kernels->rmsnorm(p->s->h + at, p->s->x + at, weight, p->c->hidden, p->c->rms_eps);
  }
  show(p, stage, p->s->h, p->c->hidden);
}

/* Per head of x [n, heads, head_dim]: RMSNorm [D13], then the rotation of the token's position [D14]. */
static void normalise_and_rotate(const pass *p, slm2_stage stage, float *x, uint32_t heads, const uint8_t *weight) {
  const uint32_t dim = p->c->head_dim, half = dim / 2;
  for (uint32_t t = 0; t < p->n; t++) {
    for (uint32_t h = 0; h < heads; h++) {
      float *head = x + ((size_t)t * heads + h) * dim;
      p->kernels->rmsnorm(head, head, weight, dim, p->c->rms_eps);
      p->kernels->rope(head, p->s->cos + (size_t)t * half, p->s->sin + (size_t)t * half, half);
    }
  }
  show(p, stage, x, heads * dim);
}

/* Keys (normalised and rotated) and values (as they are) of the tile into the cache [D18]. */
static slm2_status store_keys_and_values(const pass *p) {
  const slm2_kv_cache *kv = &p->f->kv;
  for (uint32_t t = 0; t < p->n; t++) {
    for (uint32_t h = 0; h < kv->heads; h++) {
      size_t from = ((size_t)t * kv->heads + h) * kv->head_dim;
      size_t to = slm2_kv_at(kv, p->layer, h, p->position + t);
      if (!p->kernels->kv_store(kv->keys + to, p->s->k + from, kv->head_dim, kv->f16)) return not_finite(p, "keys", t);
      if (!p->kernels->kv_store(kv->values + to, p->s->v + from, kv->head_dim, kv->f16)) return not_finite(p, "values", t);
    }
  }
  return SLM2_OK;
}

/* Each query head of each token over all positions up to its own; query heads share kv heads in equal groups [D15]. */
static slm2_status attend(const pass *p) {
  const slm2_kv_cache *kv = &p->f->kv;
  const uint32_t heads = p->c->heads, group = heads / kv->heads;
  for (uint32_t t = 0; t < p->n; t++) {
    for (uint32_t h = 0; h < heads; h++) {
      SLM2_TRY(poll(p));
      size_t at = ((size_t)t * heads + h) * kv->head_dim, first = slm2_kv_at(kv, p->layer, h / group, 0);
      slm2_kv_view keys = {kv->keys + first, kv->f16}, values = {kv->values + first, kv->f16};
      if (!p->kernels->attention(p->s->attended + at, p->s->q + at, keys, values, p->position + t + 1, kv->head_dim,
                                 p->s->scores))
        return not_finite(p, "attention scores", t);
    }
  }
  show(p, SLM2_STAGE_ATTENTION, p->s->attended, heads * kv->head_dim);
  return SLM2_OK;
}

/* x += delta [D17]. */
static void add_to_residual(const pass *p, slm2_stage stage) {
  for (uint32_t t = 0; t < p->n; t++) {
    size_t at = (size_t)t * p->c->hidden;
    p->kernels->add(p->s->x + at, p->s->delta + at, p->c->hidden);
  }
  show(p, stage, p->s->x, p->c->hidden);
}

static slm2_status attention_block(pass *p, const slm2_layer *w) {
  const slm2_scratch *s = p->s;
  normalise(p, SLM2_STAGE_ATTENTION_NORM, w->attention_norm);
  SLM2_TRY(set_input(p, s->h, p->c->hidden, "attention input"));
  SLM2_TRY(product(p, SLM2_STAGE_Q_PROJ, s->q, &w->q));
  SLM2_TRY(product(p, SLM2_STAGE_K_PROJ, s->k, &w->k));
  SLM2_TRY(product(p, SLM2_STAGE_V_PROJ, s->v, &w->v));
  normalise_and_rotate(p, SLM2_STAGE_Q_ROPE, s->q, p->c->heads, w->q_norm);
  normalise_and_rotate(p, SLM2_STAGE_K_ROPE, s->k, p->c->kv_heads, w->k_norm);
  SLM2_TRY(store_keys_and_values(p));
  SLM2_TRY(attend(p));
  SLM2_TRY(set_input(p, s->attended, p->c->heads * p->c->head_dim, "attention output"));
  SLM2_TRY(product(p, SLM2_STAGE_O_PROJ, s->delta, &w->o));
  add_to_residual(p, SLM2_STAGE_ATTENTION_RESIDUAL);
  return SLM2_OK;
}

static slm2_status mlp_block(pass *p, const slm2_layer *w) {
  const slm2_scratch *s = p->s;
  normalise(p, SLM2_STAGE_MLP_NORM, w->mlp_norm);
  SLM2_TRY(set_input(p, s->h, p->c->hidden, "MLP input"));
  SLM2_TRY(product(p, SLM2_STAGE_GATE_PROJ, s->gate, &w->gate));
  SLM2_TRY(product(p, SLM2_STAGE_UP_PROJ, s->up, &w->up));
  for (uint32_t t = 0; t < p->n; t++) {
    size_t at = (size_t)t * p->c->intermediate;
    p->kernels->swiglu(s->gate + at, s->gate + at, s->up + at, p->c->intermediate);
  }
  show(p, SLM2_STAGE_SWIGLU, s->gate, p->c->intermediate);
  SLM2_TRY(set_input(p, s->gate, p->c->intermediate, "MLP activation"));
  SLM2_TRY(product(p, SLM2_STAGE_DOWN_PROJ, s->delta, &w->down));
  add_to_residual(p, SLM2_STAGE_RESIDUAL);
  return SLM2_OK;
}

/* [D5] after every layer. */
static slm2_status check_residual(const pass *p) {
  for (uint32_t t = 0; t < p->n; t++)
    if (!p->kernels->finite(p->s->x + (size_t)t * p->c->hidden, p->c->hidden)) return not_finite(p, "residual", t);
  return SLM2_OK;
}

/* --- the whole ------------------------------------------------------------- */

slm2_status slm2_forward_tile(const slm2_forward *f, const uint32_t *ids, uint32_t n, uint32_t position, const slm2_watch *watch,
                              slm2_error *error) {
  pass p = begin(f, n, position, watch, error);
  const uint32_t half = p.c->head_dim / 2;
  for (uint32_t t = 0; t < n; t++) {
    p.kernels->embed(p.s->x + (size_t)t * p.c->hidden, &f->model->embedding, ids[t]);
    p.kernels->rope_table(p.s->cos + (size_t)t * half, p.s->sin + (size_t)t * half, position + t, f->model->inv_freq, half);
  }
  show(&p, SLM2_STAGE_EMBED, p.s->x, p.c->hidden);
  for (; p.layer < p.c->layers; p.layer++) {
    SLM2_TRY(attention_block(&p, &f->model->layers[p.layer]));
    SLM2_TRY(mlp_block(&p, &f->model->layers[p.layer]));
    SLM2_TRY(check_residual(&p));
  }
  return SLM2_OK;
}

slm2_status slm2_forward_logits(const slm2_forward *f, uint32_t t, uint32_t position, float *logits, const slm2_watch *watch,
                                slm2_error *error) {
  pass p = begin(f, 1, position + t, watch, error);
  p.layer = p.c->layers;
  p.kernels->rmsnorm(p.s->h, p.s->x + (size_t)t * p.c->hidden, f->model->final_norm, p.c->hidden, p.c->rms_eps);
  show(&p, SLM2_STAGE_FINAL_NORM, p.s->h, p.c->hidden);
  SLM2_TRY(set_input(&p, p.s->h, p.c->hidden, "logits input"));
  SLM2_TRY(product(&p, SLM2_STAGE_LOGITS, logits, &f->model->logits));
  return p.kernels->finite(logits, p.c->vocab) ? SLM2_OK : not_finite(&p, "logits", 0);
}
