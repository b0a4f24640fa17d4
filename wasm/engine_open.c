/* wasm/engine_open.c: OPEN: the plan against the file, its bytes against their hashes when asked, then model and session. */
#include "base/bytes.h"
#include "base/error.h"
#include "session/session.h"
#include "wasm/engine.h"

static const char operation[] = "open";

static const uint8_t *file_of(const slm2_web_engine *e) { return slm2_web_at((uint32_t)e->plan.at_file); }

/* The plan that the page copied in must be the one that this file gives. */
static slm2_status check_plan(slm2_web_engine *e) {
  const slm2_web_plan_terms *p = &e->plan;
  const slm2_web_wishes wishes = {(uint32_t)p->context, (uint32_t)p->profile, (uint32_t)p->kv_type, (uint32_t)p->tile,
                                  (uint32_t)p->threads, (uint32_t)p->limit};
  slm2_web_plan_terms own;
  if (p->context > UINT32_MAX || p->profile > UINT32_MAX || p->kv_type > UINT32_MAX || p->tile > UINT32_MAX ||
      p->limit > UINT32_MAX || p->context == 0)
    return slm2_fail(e->error, SLM2_E_ARGUMENT, operation, "plan", SLM2_NO_OFFSET,
                     "a parameter exceeds 32 bits, or the context is 0");
  SLM2_TRY(slm2_web_plan_make(file_of(e), p->file, &wishes, &own, e->error));
  const char *different = slm2_web_plan_difference(p, &own);
  if (different == NULL) return SLM2_OK;
  return slm2_fail(e->error, SLM2_E_ARGUMENT, operation, different, SLM2_NO_OFFSET,
                   "it differs between the page's plan and the file's");
}

/* --- seals --------------------------------------------------------------------------- */

static void seal(const slm2_web_engine *e, uint8_t seals[2][32]) {
  const slm2_session *s = e->session;
  slm2_sha256 sha;
  slm2_sha256_of(slm2_web_at((uint32_t)e->plan.at_index), (size_t)e->plan.index, seals[0]);
  slm2_sha256_init(&sha);
  slm2_sha256_update(&sha, &s->params, sizeof s->params);
  slm2_sha256_update(&sha, &s->forward, sizeof s->forward);
  slm2_sha256_final(&sha, seals[1]);
}

slm2_status slm2_web_check_seals(slm2_web_engine *e) {
  static const char *const names[] = {"model", "session"};
  uint8_t now[2][32];
  seal(e, now);
  for (uint32_t i = 0; i < 2; i++)
    if (memcmp(now[i], e->seals[i], sizeof now[i]) != 0)
      return slm2_fail(e->error, SLM2_E_INTERNAL_INVARIANT, "engine", names[i], SLM2_NO_OFFSET,
                       "what is kept of it is not what was made when it was opened: this memory was overwritten");
  return SLM2_OK;
}

/* --- model and session ------------------------------------------------------------- */

/* A piece of a run, on any thread: the kernels see in e->halt what the page has said until now. */
static void take_piece(void *self, uint32_t thread, uint32_t begin, uint32_t end) {
  slm2_web_engine *e = self;
  (void)slm2_web_cancelled(e);
  e->job(e->job_context, thread, begin, end);
}

/* A slice may take minutes where a processor is slow and a prompt long: that it computes shows in the heartbeat. */
static void run_and_beat(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain) {
  slm2_web_engine *e = self;
  slm2_web_beat();
  e->job = job;
  e->job_context = context;
  e->workers->run(e->workers->self, take_piece, e, units, grain);
}

static slm2_status load(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  const slm2_web_plan_terms *p = &e->plan;
  const slm2_session_params params = {.context = (uint32_t)p->context, .tile = (uint32_t)p->tile, .draft = (uint32_t)p->draft,
                                      .profile = (slm2_profile)p->profile, .kv = (slm2_kv_type)p->kv_type, .pool = &e->pool};
  slm2_model *model;
  if (slm2_web_cancelled(e)) return slm2_web_cancelled_error(e);
  e->workers = slm2_web_pool((uint32_t)p->threads);
  if (e->workers == NULL)
    return slm2_fail(e->error, SLM2_E_MEMORY, operation, "threads", SLM2_NO_OFFSET,
                     "no pool of %u threads can be made", p->threads);
  e->pool = (slm2_pool){.n_threads = e->workers->n_threads, .self = e, .run = run_and_beat};
  SLM2_TRY(slm2_model_init(slm2_web_at((uint32_t)p->at_index), (size_t)p->index, file_of(e), p->file, &model, e->error));
  SLM2_TRY(slm2_session_init(slm2_web_at((uint32_t)p->at_session), p->session, model, &params, &e->session, e->error));
  e->model = model;
  seal(e, e->seals);
  SLM2_TRY(slm2_web_event_ready(e));
  return slm2_web_done(e);
}

/* --- verification -------------------------------------------------------------------- */

static slm2_status verify(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  const uint64_t at = slm2_reader_position(e->reader), left = e->plan.file - at;
  const size_t n = left < SLM2_CHUNK_BYTES ? (size_t)left : SLM2_CHUNK_BYTES;
  if (slm2_web_cancelled(e)) return slm2_web_cancelled_error(e);
  slm2_status status = slm2_reader_push(e->reader, file_of(e) + at, n, e->error);
  if (status != SLM2_OK && status != SLM2_NEED_MORE) {
    memset(slm2_web_at((uint32_t)e->plan.at_file), 0, (size_t)e->plan.file); /* what failed is gone [R104] */
    return status;
  }
  slm2_web_event_progress(e, SLM2_PHASE_VERIFY, (uint32_t)((at + n) / 1024), (uint32_t)(e->plan.file / 1024));
  if (status == SLM2_NEED_MORE && n == left)
    return slm2_fail(e->error, SLM2_E_INTERNAL_INVARIANT, operation, NULL, SLM2_NO_OFFSET,
                     "the verifier wants more than the file");
  if (status == SLM2_OK) {
    e->verified = true;
    e->task = load;
  }
  return SLM2_OK;
}

/* The reader and its copy of the header lie in the zone: nothing else is there yet. */
static slm2_status begin_verify(slm2_web_engine *e) {
  const uint64_t reader = (slm2_reader_bytes() + 63) & ~(uint64_t)63, header = slm2_load_u64(file_of(e));
  uint8_t *zone = slm2_web_work_at(e, e->work.zone);
  if (reader + header > e->work.zone_bytes)
    return slm2_fail(e->error, SLM2_E_INTERNAL_INVARIANT, operation, NULL, SLM2_NO_OFFSET,
                     "%u bytes of work cannot hold a verifier and a header of %u", e->work.zone_bytes, header);
  SLM2_TRY(slm2_reader_init(zone, (size_t)reader, zone + reader, (size_t)(e->work.zone_bytes - reader), e->plan.file, &e->reader,
                            e->error));
  e->task = verify;
  return SLM2_OK;
}

slm2_status slm2_web_open(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  const uint8_t *payload = slm2_web_command_payload(e);
  if (e->n_payload != 8) return slm2_web_refuse(e, "bytes", e->n_payload, "bytes; OPEN has 8");
  const uint32_t wish = slm2_load_u32(payload);
  if (wish > 1) return slm2_web_refuse(e, "verify", wish, "is neither 0 nor 1");
  if (slm2_load_u32(payload + 4) != 0) return slm2_web_refuse(e, "zero", slm2_load_u32(payload + 4), "is not 0");
  e->verified = false;
  SLM2_TRY(check_plan(e));
  if (wish == 1) return begin_verify(e);
  e->task = load;
  return SLM2_OK;
}
