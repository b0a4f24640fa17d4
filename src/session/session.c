/* session/session.c: one timeline in one lent block: memory plan, append, rewind, sync. The arithmetic is
 * model/forward.c's; this file decides what is computed and what stays when something fails. A failed or cancelled
 * call leaves the length as it was: keys and values beyond it are garbage that nothing reads [D5b]. */
#include "session/session.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"
#include "num/fp_env.h"
#include "num/math.h"

/* --- memory ---------------------------------------------------------------- */

/* Carves the block; with arena->bytes == NULL only measures. */
static slm2_session *place(slm2_arena *a, const slm2_header *header, const slm2_session_params *params, slm2_session *parts,
                           slm2_plan *plan) {
  const slm2_config *c = &header->config;
  slm2_session *s = slm2_arena_take(a, 1, sizeof *s);
  plan->tokens = (uint64_t)params->context * sizeof *parts->ids;
  parts->ids = slm2_arena_take(a, plan->tokens, 1);
  plan->logits = (uint64_t)c->vocab * sizeof *parts->logits;
  plan->drafts = params->draft * plan->logits;
  parts->logits = slm2_arena_take(a, plan->logits + plan->drafts, 1);
  plan->sampler = (uint64_t)c->vocab * sizeof *parts->candidates + c->vocab / 8 + 1;
  parts->candidates = slm2_arena_take(a, c->vocab, sizeof *parts->candidates);
  parts->seen = slm2_arena_take(a, c->vocab / 8 + 1, 1);
  const uint32_t batch = params->draft + 1; /* a token and its draft */
  plan->scratch = slm2_scratch_place(a, c, params->profile, params->tile > batch ? params->tile : batch, params->context,
                                     params->pool == NULL ? 1 : params->pool->n_threads, &parts->forward.scratch);
  plan->kv = slm2_kv_bytes(c, params->kv, params->context);
  uint8_t *kv = slm2_arena_take(a, plan->kv, 1);
  if (kv != NULL) parts->forward.kv = slm2_kv_place(kv, c, params->kv, params->context);
  plan->total = a->used;
  plan->state = plan->total - plan->kv - plan->scratch - plan->logits - plan->drafts - plan->sampler - plan->tokens;
  return s;
}

static slm2_status bad_parameter(slm2_error *error, const char *name, uint64_t value, uint64_t max) {
  return slm2_fail(error, SLM2_E_ARGUMENT, "session", name, SLM2_NO_OFFSET, "%u is outside 1 .. %u", value, max);
}

static slm2_status check_params(const slm2_config *c, const slm2_session_params *params, slm2_error *error) {
  /* rope.inv_freq is at most 1, so angles reach at most the last position [D4] [D14]. */
  const uint32_t angle_limit = (uint32_t)SLM2_ANGLE_MAX + 1;
  uint32_t max = c->max_positions < angle_limit ? c->max_positions : angle_limit;
  if (params->context == 0 || params->context > max) return bad_parameter(error, "context", params->context, max);
  if (params->tile == 0 || params->tile > SLM2_TILE_MAX) return bad_parameter(error, "tile", params->tile, SLM2_TILE_MAX);
  if (params->draft > SLM2_DRAFT_MAX)
    return slm2_fail(error, SLM2_E_ARGUMENT, "session", "draft", SLM2_NO_OFFSET, "%u is outside 0 .. %u",
                     (uint64_t)params->draft, (uint64_t)SLM2_DRAFT_MAX);
  if (params->profile != SLM2_PROFILE_F32 && params->profile != SLM2_PROFILE_Q8)
    return slm2_fail(error, SLM2_E_ARGUMENT, "session", "profile", SLM2_NO_OFFSET, "%u is no profile", (uint64_t)params->profile);
  if (params->kv != SLM2_KV_F32 && params->kv != SLM2_KV_F16)
    return slm2_fail(error, SLM2_E_ARGUMENT, "session", "kv", SLM2_NO_OFFSET, "%u is no KV type", (uint64_t)params->kv);
  if (params->pool != NULL && (params->pool->n_threads == 0 || params->pool->n_threads > SLM2_THREADS_MAX))
    return bad_parameter(error, "threads", params->pool->n_threads, SLM2_THREADS_MAX);
  return SLM2_OK;
}

slm2_status slm2_session_plan(const slm2_header *header, const slm2_session_params *params, slm2_plan *plan, slm2_error *error) {
  SLM2_TRY(slm2_config_check(&header->config, error));
  SLM2_TRY(check_params(&header->config, params, error));
  slm2_arena a;
  slm2_session parts = {0};
  slm2_plan p;
  slm2_arena_init(&a, NULL, 0);
  (void)place(&a, header, params, &parts, &p);
  if (a.failed)
    return slm2_fail(error, SLM2_E_MEMORY, "session", NULL, SLM2_NO_OFFSET, "the plan exceeds 64-bit sizes");
  *plan = p;
  return SLM2_OK;
}

slm2_status slm2_session_init(void *mem, uint64_t mem_bytes, const slm2_model *model, const slm2_session_params *params,
                              slm2_session **out, slm2_error *error) {
  slm2_plan plan;
  slm2_session parts = {0};
  const slm2_header *header = slm2_model_header(model);
  SLM2_TRY(slm2_session_plan(header, params, &plan, error));
  if (mem_bytes < plan.total || plan.total > SIZE_MAX)
    return slm2_fail(error, SLM2_E_MEMORY, "session", NULL, SLM2_NO_OFFSET,
                     "%u bytes needed (%u of them for %u positions of keys and values), %u lent", plan.total, plan.kv,
                     (uint64_t)params->context, mem_bytes);
  if ((uintptr_t)mem % 64 != 0)
    return slm2_fail(error, SLM2_E_ARGUMENT, "session", "mem", SLM2_NO_OFFSET, "the lent memory must be 64-byte aligned");
  slm2_arena a;
  slm2_arena_init(&a, mem, mem_bytes);
  slm2_session *s = place(&a, header, params, &parts, &plan);
  *s = parts;
  s->params = *params;
  if (s->params.backend == NULL) s->params.backend = slm2_backend_default();
  s->forward.model = model;
  s->forward.kernels = s->params.backend;
  s->forward.pool = params->pool;
  s->forward.profile = params->profile;
  s->length = 0;
  s->has_logits = false;
  slm2_session_drop_ahead(s);
  *out = s;
  return SLM2_OK;
}

uint32_t slm2_session_length(const slm2_session *s) { return s->length; }
uint32_t slm2_session_context(const slm2_session *s) { return s->params.context; }
const uint32_t *slm2_session_ids(const slm2_session *s) { return s->ids; }
const slm2_model *slm2_session_model(const slm2_session *s) { return s->forward.model; }
const float *slm2_session_logits(const slm2_session *s) { return s->has_logits ? s->logits : NULL; }

/* --- the timeline ------------------------------------------------------------ */

/* Refusals before any work: n more tokens behind length. */
static slm2_status check_append(const slm2_session *s, uint32_t length, const uint32_t *ids, uint32_t n, slm2_error *error) {
  uint32_t vocab = s->forward.model->header.config.vocab;
  if (n == 0) return slm2_fail(error, SLM2_E_ARGUMENT, "append", "n", SLM2_NO_OFFSET, "at least one token is needed");
  if (n > s->params.context - length)
    return slm2_fail(error, SLM2_E_CONTEXT_OVERFLOW, "append", NULL, SLM2_NO_OFFSET,
                     "%u tokens are on the timeline and %u more do not fit the context of %u", (uint64_t)length, (uint64_t)n,
                     (uint64_t)s->params.context);
  for (uint32_t i = 0; i < n; i++)
    if (ids[i] >= vocab)
      return slm2_fail(error, SLM2_E_TOKEN, "append", NULL, SLM2_NO_OFFSET, "token %u has id %u, but the vocabulary ends at %u",
                       (uint64_t)i, (uint64_t)ids[i], (uint64_t)vocab - 1);
  return SLM2_OK;
}

/* Logits of the tile that began at position: of all its n tokens for each_logits, else of the last. */
static slm2_status tile_logits(slm2_session *s, uint32_t n, uint32_t position, const slm2_run *run, slm2_error *error) {
  const slm2_watch watch = {run->cancel, run->tap, run->tap_user};
  s->has_logits = false; /* overwritten from here on */
  for (uint32_t t = run->each_logits != NULL ? 0 : n - 1; t < n; t++) {
    SLM2_TRY(slm2_forward_logits(&s->forward, t, 1, position, s->logits, &watch, error));
    if (run->each_logits != NULL) SLM2_TRY(run->each_logits(run->user, position + t, s->logits));
  }
  return SLM2_OK;
}

SLM2_NOINLINE static slm2_status append(slm2_session *s, const uint32_t *ids, uint32_t n, const slm2_run *run,
                                        slm2_error *error) {
  const bool last_logits = !run->no_logits || run->each_logits != NULL;
  const slm2_watch watch = {run->cancel, run->tap, run->tap_user};
  slm2_session_drop_ahead(s);
  for (uint32_t done = 0; done < n;) {
    uint32_t tile = n - done < s->params.tile ? n - done : s->params.tile, position = s->length + done;
    SLM2_TRY(slm2_forward_tile(&s->forward, ids + done, tile, position, &watch, error));
    done += tile;
    if (run->each_logits != NULL || (done == n && last_logits)) SLM2_TRY(tile_logits(s, tile, position, run, error));
    if (run->progress != NULL) run->progress(run->user, s->length + done, s->length + n);
  }
  memmove(s->ids + s->length, ids, n * sizeof *ids); /* ids may be the session's own */
  s->length += n;
  s->has_logits = last_logits;
  return SLM2_OK;
}

slm2_status slm2_session_append(slm2_session *s, const uint32_t *ids, uint32_t n, const slm2_run *run, slm2_error *error) {
  static const slm2_run plain = {0};
  SLM2_TRY(check_append(s, s->length, ids, n, error));
  slm2_fp_state fp = slm2_fp_enter(); /* [D2] */
  slm2_status status = append(s, ids, n, run != NULL ? run : &plain, error);
  slm2_fp_leave(fp);
  return status;
}

slm2_status slm2_session_rewind(slm2_session *s, uint32_t length, slm2_error *error) {
  if (length > s->length)
    return slm2_fail(error, SLM2_E_ARGUMENT, "rewind", "length", SLM2_NO_OFFSET, "%u is beyond the %u tokens computed",
                     (uint64_t)length, (uint64_t)s->length);
  if (length < s->length) s->has_logits = false;
  slm2_session_drop_ahead(s);
  s->length = length;
  return SLM2_OK;
}

slm2_status slm2_session_sync(slm2_session *s, const uint32_t *ids, uint32_t n, const slm2_run *run, uint32_t *n_reused,
                              slm2_error *error) {
  SLM2_TRY(check_append(s, 0, ids, n, error));
  uint32_t common = 0;
  while (common < s->length && common < n - 1 && s->ids[common] == ids[common]) common++;
  SLM2_TRY(slm2_session_rewind(s, common, error));
  SLM2_TRY(slm2_session_append(s, ids + common, n - common, run, error));
  *n_reused = common;
  return SLM2_OK;
}
