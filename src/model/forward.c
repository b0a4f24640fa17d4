/* model/forward.c: THE MAIN PATH. Token ids go in at the top, logits come out at the bottom; everything else in this
 * project prepares for these few pages or shows what they return.
 *
 * The order of operations is that of Hugging Face transformers' modeling_qwen3.py (docs/MODEL.md); what each operation
 * computes, to the bit, is docs/NUMERICS.md, executed by the kernel table. This file only decides what follows what.
 * A tile of n tokens passes each layer side by side, but every token's numbers are its own: no result depends on n,
 * on the backend, on the threads or on how a text was cut into tiles [D8].
 */
#include "model/forward.h"
#include "base/error.h"
#include "num/fp_env.h"

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

static slm2_status cancelled(const pass *p) {
  return slm2_fail(p->error, SLM2_E_CANCELLED, "forward", NULL, SLM2_NO_OFFSET, "cancelled at position %u, layer %u of %u",
                   (uint64_t)p->position, (uint64_t)p->layer, (uint64_t)p->c->layers);
}

static slm2_status not_finite(const pass *p, const char *stage, uint32_t t) {
  return slm2_fail(p->error, SLM2_E_NUMERICAL, "forward", stage, SLM2_NO_OFFSET,
                   "a value that is not finite at position %u, layer %u of %u, backend %s", (uint64_t)p->position + t,
                   (uint64_t)p->layer, (uint64_t)p->c->layers, p->kernels->name);
}

/* Shows what a stage computed, x [n, width], to whoever traces this pass. Every operation below ends with it. */
static void show(const pass *p, slm2_stage stage, const float *x, uint32_t width) {
  if (p->watch->tap == NULL) return;
  for (uint32_t t = 0; t < p->n; t++)
    p->watch->tap(p->watch->user, stage, p->layer, p->position + t, x + (size_t)t * width, width);
}

/* --- work for all threads -------------------------------------------------- */

/* What a thread takes at a time: units begin .. end - 1. */
typedef struct span {
  uint32_t thread, begin, end;
} span;

/* One operation as a list of units. Each writes output elements of its own, from inputs that nobody writes meanwhile: so
 * threads take them in any order, and neither their order nor the number of threads is in a result [D8]. */
typedef struct work work;
struct work {
  const pass *p;
  bool (*unit)(const work *w, span s); /* false: a value is not finite */
  uint32_t units, together;            /* how many there are; how many a thread takes at a time */
  const char *stage;                   /* the name of a failure */
  uint32_t per_token;                  /* units of a token, or of the tokens that a unit takes together: */
  uint32_t tokens;                     /* of a unit, 0 for one; a failure names the first of them */
  /* Operands, as the operation needs them. */
  float *x;
  uint32_t width;
  const uint8_t *weight;
  const struct products *products;
  uint8_t *cache;
  _Atomic(uint32_t) failed;  /* the lowest span with a false, or NONE */
  _Atomic(uint32_t) skipped; /* non-zero: the cancel word was seen, and a span left out */
};
#define NONE UINT32_MAX

static void take_span(void *context, uint32_t thread, uint32_t first, uint32_t end) {
  work *w = context;
  if (w->p->watch->stop != NULL && atomic_load_explicit(w->p->watch->stop, memory_order_relaxed) != 0)
    atomic_store_explicit(&w->skipped, 1, memory_order_relaxed);
  uint32_t failed = atomic_load_explicit(&w->failed, memory_order_relaxed);
  if (first > failed || atomic_load_explicit(&w->skipped, memory_order_relaxed) != 0) return;
  slm2_fp_state fp = slm2_fp_enter(); /* [D2] */
  bool fine = w->unit(w, (span){thread, first, end});
  slm2_fp_leave(fp);
  while (!fine && first < failed &&
         !atomic_compare_exchange_weak_explicit(&w->failed, &failed, first, memory_order_relaxed, memory_order_relaxed)) {
  }
}

/* All units done, or the first failure in their order, whoever met it first. */
static slm2_status run(work *w) {
  const slm2_pool *pool = w->p->f->pool;
  atomic_init(&w->failed, NONE);
  atomic_init(&w->skipped, 0);
  if (pool != NULL && w->units > w->together) {
    pool->run(pool->self, take_span, w, w->units, w->together);
  } else {
    for (uint32_t at = 0; at < w->units; at += w->together)
      take_span(w, 0, at, w->units - at < w->together ? w->units : at + w->together);
  }
  if (atomic_load_explicit(&w->skipped, memory_order_relaxed) != 0) return cancelled(w->p);
  uint32_t failed = atomic_load_explicit(&w->failed, memory_order_relaxed);
  return failed == NONE ? SLM2_OK : not_finite(w->p, w->stage, failed / w->per_token * (w->tokens == 0 ? 1 : w->tokens));
}

/* --- matrix products ------------------------------------------------------ */

static bool quantise_token(const work *w, span s) {
  const size_t at = (size_t)s.begin * w->width;
  return w->p->kernels->quantize(w->p->s->xq + at, w->p->s->xq_scale + at / 32, w->x + at, w->width);
}

/* Names x [n, width] as the input of the products that follow. Profile q8 quantises it here, once for all of them,
 * and refuses what is not finite [D11] [D5]. */
static slm2_status set_input(pass *p, float *x, uint32_t width, const char *stage) {
  p->input = x;
  if (p->f->profile == SLM2_PROFILE_F32) return SLM2_OK;
  return run(&(work){.p = p, .unit = quantise_token, .units = p->n, .together = 1, .stage = stage, .per_token = 1, .x = x,
                     .width = width});
}

/* Up to three products of one input, y [n, rows] each: one list of half panels, so that a small matrix leaves no thread
 * without work. */
typedef struct products {
  uint32_t count;
  struct {
    slm2_stage stage;
    float *y;
    const slm2_matrix *w;
  } of[3];
} products;

/* y [n, rows] = input times w, in those rows of the list that the span is about [D10] [D11]. */
static bool multiply_rows(const work *w, span s) {
  const pass *p = w->p;
  for (uint32_t i = 0, first = 0; i < w->products->count; i++) {
    const slm2_matrix *m = w->products->of[i].w;
    const uint32_t units = m->rows / SLM2_UNIT_ROWS, from = s.begin > first ? s.begin - first : 0;
    const uint32_t to = s.end < first ? 0 : s.end - first < units ? s.end - first : units;
    const uint32_t r0 = from * SLM2_UNIT_ROWS, r1 = to * SLM2_UNIT_ROWS;
    if (from < to && p->f->profile == SLM2_PROFILE_F32)
      p->kernels->matmul_f32(w->products->of[i].y, m->rows, m, p->input, p->n, r0, r1);
    else if (from < to)
      p->kernels->matmul_q8(w->products->of[i].y, m->rows, m, p->s->xq, p->s->xq_scale, p->n, r0, r1);
    first += units;
  }
  return true;
}

/* How many units a thread takes at a time: of one token's product up to its share. */
static uint32_t units_together(const pass *p, uint32_t units) {
  const uint32_t share = p->f->pool == NULL ? units : units / p->f->pool->n_threads;
  if (p->n > 1 || share < SLM2_UNITS_TOGETHER) return SLM2_UNITS_TOGETHER;
  return share < SLM2_UNITS_OF_ONE ? share : SLM2_UNITS_OF_ONE;
}

static slm2_status multiply(const pass *p, const products *list) {
  work w = {.p = p, .unit = multiply_rows, .products = list};
  for (uint32_t i = 0; i < list->count; i++) w.units += list->of[i].w->rows / SLM2_UNIT_ROWS;
  w.together = units_together(p, w.units);
  SLM2_TRY(run(&w));
  for (uint32_t i = 0; i < list->count; i++) show(p, list->of[i].stage, list->of[i].y, list->of[i].w->rows);
  return SLM2_OK;
}

/* --- the two blocks of a layer -------------------------------------------- */

static bool normalise_token(const work *w, span s) {
  const slm2_config *c = w->p->c;
  const size_t at = (size_t)s.begin * c->hidden;
  w->p->kernels->rmsnorm(w->p->s->h + at, w->p->s->x + at, w->weight, c->hidden, c->rms_eps);
  return true;
}

/* h = RMSNorm(x), token by token [D13]. */
static slm2_status normalise(const pass *p, slm2_stage stage, const uint8_t *weight) {
  SLM2_TRY(run(&(work){.p = p, .unit = normalise_token, .units = p->n, .together = 1, .weight = weight}));
  show(p, stage, p->s->h, p->c->hidden);
  return SLM2_OK;
}

static bool rotate_token(const work *w, span s) {
  const pass *p = w->p;
  const uint32_t dim = p->c->head_dim, half = dim / 2;
  const size_t angles = (size_t)s.begin * half;
  for (uint32_t h = 0; h < w->width / dim; h++) {
    float *head = w->x + (size_t)s.begin * w->width + (size_t)h * dim;
    p->kernels->rmsnorm(head, head, w->weight, dim, p->c->rms_eps);
    p->kernels->rope(head, p->s->cos + angles, p->s->sin + angles, half);
  }
  return true;
}

/* Per head of x [n, heads, head_dim]: RMSNorm [D13], then the rotation of the token's position [D14]. */
static slm2_status normalise_and_rotate(const pass *p, slm2_stage stage, float *x, uint32_t heads, const uint8_t *weight) {
  const uint32_t width = heads * p->c->head_dim;
  SLM2_TRY(run(&(work){.p = p, .unit = rotate_token, .units = p->n, .together = 1, .x = x, .width = width, .weight = weight}));
  show(p, stage, x, width);
  return SLM2_OK;
}

static bool store_token(const work *w, span s) {
  const slm2_kv_cache *kv = &w->p->f->kv;
  for (uint32_t h = 0; h < kv->heads; h++) {
    const size_t from = ((size_t)s.begin * kv->heads + h) * kv->head_dim;
    const size_t to = slm2_kv_at(kv, w->p->layer, h, w->p->position + s.begin);
    if (!w->p->kernels->kv_store(w->cache + to, w->x + from, kv->head_dim, kv->f16)) return false;
  }
  return true;
}

/* Keys (normalised and rotated) or values (as they are) of the tile into the cache [D18]. */
static slm2_status store(const pass *p, const char *stage, uint8_t *cache, float *x) {
  return run(&(work){.p = p, .unit = store_token, .units = p->n, .together = 1, .stage = stage, .per_token = 1, .x = x,
                     .cache = cache});
}

/* How the query rows of a tile are cut into calls: heads of a group by tokens, so that rows which share keys and values read
 * them together; fewer heads where threads would have no work. */
typedef struct rows {
  uint32_t heads, tokens; /* of a call */
  uint32_t parts;         /* calls that a group needs */
} rows;

static rows rows_of_call(const pass *p) {
  const uint32_t group = p->c->heads / p->c->kv_heads, threads = p->f->pool == NULL ? 1 : p->f->pool->n_threads;
  rows r = {.heads = group < SLM2_ATTENTION_ROWS ? group : SLM2_ATTENTION_ROWS};
  r.tokens = SLM2_ATTENTION_ROWS / r.heads;
  const uint32_t together = p->c->kv_heads * ((p->n + r.tokens - 1) / r.tokens);
  while (r.heads > 1 && together * ((group + r.heads - 1) / r.heads) < threads) r.heads--;
  r.parts = (group + r.heads - 1) / r.heads;
  return r;
}

/* The rows of one call over all positions up to their own. Units: calls of a kv head, kv heads, tokens. */
static bool attend_rows(const work *w, span s) {
  const pass *p = w->p;
  const slm2_kv_cache *kv = &p->f->kv;
  const rows r = rows_of_call(p);
  const uint32_t group = p->c->heads / kv->heads, from = s.begin % r.parts * r.heads;
  const uint32_t kv_head = s.begin / r.parts % kv->heads, t = s.begin / w->per_token * r.tokens;
  const size_t stride = (size_t)p->c->heads * kv->head_dim;
  const size_t at = t * stride + (size_t)(kv_head * group + from) * kv->head_dim, first = slm2_kv_at(kv, p->layer, kv_head, 0);
  return p->kernels->attention(&(slm2_attention){
      .out = p->s->attended + at,
      .q = p->s->q + at,
      .stride = stride,
      .k = {kv->keys + first, kv->f16},
      .v = {kv->values + first, kv->f16},
      .tokens = p->n - t < r.tokens ? p->n - t : r.tokens,
      .heads = group - from < r.heads ? group - from : r.heads,
      .head_dim = kv->head_dim,
      .n = p->position + t + 1,
      .scratch = p->s->scores + s.thread * p->s->scores_stride,
  });
}

/* Every query head of every token; query heads share kv heads in equal groups [D15]. */
static slm2_status attend(const pass *p) {
  const rows r = rows_of_call(p);
  const uint32_t per_tokens = p->c->kv_heads * r.parts;
  SLM2_TRY(run(&(work){.p = p, .unit = attend_rows, .units = (p->n + r.tokens - 1) / r.tokens * per_tokens, .together = 1,
                       .stage = "attention scores", .per_token = per_tokens, .tokens = r.tokens}));
  show(p, SLM2_STAGE_ATTENTION, p->s->attended, p->c->heads * p->c->head_dim);
  return SLM2_OK;
}

static bool add_token(const work *w, span s) {
  const size_t at = (size_t)s.begin * w->p->c->hidden;
  w->p->kernels->add(w->p->s->x + at, w->p->s->delta + at, w->p->c->hidden);
  return true;
}

/* x += delta [D17]. */
static slm2_status add_to_residual(const pass *p, slm2_stage stage) {
  SLM2_TRY(run(&(work){.p = p, .unit = add_token, .units = p->n, .together = 1}));
  show(p, stage, p->s->x, p->c->hidden);
  return SLM2_OK;
}

static slm2_status attention_block(pass *p, const slm2_layer *w) {
  const slm2_scratch *s = p->s;
  const slm2_kv_cache *kv = &p->f->kv;
  SLM2_TRY(normalise(p, SLM2_STAGE_ATTENTION_NORM, w->attention_norm));
  SLM2_TRY(set_input(p, s->h, p->c->hidden, "attention input"));
  SLM2_TRY(multiply(p, &(products){3, {{SLM2_STAGE_Q_PROJ, s->q, &w->q},
                                       {SLM2_STAGE_K_PROJ, s->k, &w->k},
                                       {SLM2_STAGE_V_PROJ, s->v, &w->v}}}));
  SLM2_TRY(normalise_and_rotate(p, SLM2_STAGE_Q_ROPE, s->q, p->c->heads, w->q_norm));
  SLM2_TRY(normalise_and_rotate(p, SLM2_STAGE_K_ROPE, s->k, p->c->kv_heads, w->k_norm));
  SLM2_TRY(store(p, "keys", kv->keys, s->k));
  SLM2_TRY(store(p, "values", kv->values, s->v));
  SLM2_TRY(attend(p));
  SLM2_TRY(set_input(p, s->attended, p->c->heads * p->c->head_dim, "attention output"));
  SLM2_TRY(multiply(p, &(products){1, {{SLM2_STAGE_O_PROJ, s->delta, &w->o}}}));
  return add_to_residual(p, SLM2_STAGE_ATTENTION_RESIDUAL);
}

/* Element by element: the cut takes no notice of tokens. */
#define SWIGLU_TOGETHER 256u
static bool swiglu_elements(const work *w, span s) {
  w->p->kernels->swiglu(w->p->s->gate + s.begin, w->p->s->gate + s.begin, w->p->s->up + s.begin, s.end - s.begin);
  return true;
}

static slm2_status mlp_block(pass *p, const slm2_layer *w) {
  const slm2_scratch *s = p->s;
  SLM2_TRY(normalise(p, SLM2_STAGE_MLP_NORM, w->mlp_norm));
  SLM2_TRY(set_input(p, s->h, p->c->hidden, "MLP input"));
  SLM2_TRY(multiply(p, &(products){2, {{SLM2_STAGE_GATE_PROJ, s->gate, &w->gate}, {SLM2_STAGE_UP_PROJ, s->up, &w->up}}}));
  SLM2_TRY(run(&(work){.p = p, .unit = swiglu_elements, .units = p->n * p->c->intermediate, .together = SWIGLU_TOGETHER}));
  show(p, SLM2_STAGE_SWIGLU, s->gate, p->c->intermediate);
  SLM2_TRY(set_input(p, s->gate, p->c->intermediate, "MLP activation"));
  SLM2_TRY(multiply(p, &(products){1, {{SLM2_STAGE_DOWN_PROJ, s->delta, &w->down}}}));
  return add_to_residual(p, SLM2_STAGE_RESIDUAL);
}

static bool finite_token(const work *w, span s) {
  return w->p->kernels->finite(w->p->s->x + (size_t)s.begin * w->p->c->hidden, w->p->c->hidden);
}

/* [D5] after every layer. */
static slm2_status check_residual(const pass *p) {
  return run(&(work){.p = p, .unit = finite_token, .units = p->n, .together = 1, .stage = "residual", .per_token = 1});
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

slm2_status slm2_forward_logits(const slm2_forward *f, uint32_t t, uint32_t n, uint32_t position, float *logits,
                                const slm2_watch *watch, slm2_error *error) {
  pass p = begin(f, n, position + t, watch, error);
  const size_t hidden = p.c->hidden, vocab = p.c->vocab;
  p.layer = p.c->layers;
  for (uint32_t i = 0; i < n; i++)
    p.kernels->rmsnorm(p.s->h + i * hidden, p.s->x + (t + i) * hidden, f->model->final_norm, p.c->hidden, p.c->rms_eps);
  show(&p, SLM2_STAGE_FINAL_NORM, p.s->h, p.c->hidden);
  SLM2_TRY(set_input(&p, p.s->h, p.c->hidden, "logits input"));
  SLM2_TRY(multiply(&p, &(products){1, {{SLM2_STAGE_LOGITS, logits, &f->model->logits}}}));
  for (uint32_t i = 0; i < n; i++)
    if (!p.kernels->finite(logits + i * vocab, p.c->vocab)) return not_finite(&p, "logits", i);
  return SLM2_OK;
}
