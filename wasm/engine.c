/* wasm/engine.c: the engine's life: start, one slice a step, commands, failures. Contract: wasm/web.h. What is in the control
 * block and in the rings is another thread's to write: each word is read once and checked, or not looked at again.
 */
#include "wasm/engine.h"

#include "base/bytes.h"
#include "base/error.h"

static slm2_web_engine engine;

static void set_state(slm2_web_engine *e, slm2_web_state state) {
  e->state = state;
  atomic_store(slm2_web_word(SLM2_WORD_STATE), (uint32_t)state);
}

slm2_status slm2_web_refuse(slm2_web_engine *e, const char *field, uint64_t value, const char *why) {
  return slm2_fail(e->error, SLM2_E_ARGUMENT, "engine", field, SLM2_NO_OFFSET, "%u %s", value, why);
}

slm2_status slm2_web_cancelled_error(slm2_web_engine *e) {
  return slm2_fail(e->error, SLM2_E_CANCELLED, "engine", NULL, SLM2_NO_OFFSET, "request %u was cancelled", (uint64_t)e->request);
}

void slm2_web_prefill_progress(void *self, uint32_t done, uint32_t total) {
  slm2_web_event_progress(self, SLM2_PHASE_PREFILL, done, total);
}

/* --- start ----------------------------------------------------------------------- */

/* Whether the plan could be one: every offset follows from its sizes, and memory holds it. OPEN compares it with the file. */
static slm2_status check_plan(const slm2_web_plan_terms *given, slm2_error *error) {
  slm2_web_plan_terms t = *given;
  const uint64_t have = slm2_web_memory_bytes();
  bool good = t.version == SLM2_WEB_VERSION && t.threads >= 1 && t.threads <= SLM2_WEB_THREADS_MAX &&
              t.stacks == (t.threads - 1) * SLM2_WEB_STACK_BYTES && t.input_max >= SLM2_WEB_INPUT_MIN &&
              t.input_max <= SLM2_WEB_SCRATCH_MAX && t.work == slm2_web_work_place((uint32_t)t.input_max).bytes &&
              slm2_web_plan_place(&t) && slm2_web_plan_difference(&t, given) == NULL;
  if (!good) return slm2_fail(error, SLM2_E_ARGUMENT, "start", "plan", SLM2_NO_OFFSET, "the control block holds no plan");
  if (t.total > have)
    return slm2_fail(error, SLM2_E_MEMORY, "start", "plan", SLM2_NO_OFFSET,
                     "it needs %u bytes, and memory has %u", t.total, have);
  return SLM2_OK;
}

static slm2_status start(slm2_web_engine *e, slm2_error *error) {
  static const uint32_t fresh[] = {SLM2_WORD_STATE, SLM2_WORD_COMMAND_TAIL, SLM2_WORD_EVENT_HEAD, SLM2_WORD_EVENT_TAIL};
  const uint64_t have = slm2_web_memory_bytes();
  if (have < SLM2_WEB_STACKS)
    return slm2_fail(error, SLM2_E_MEMORY, "start", "memory", SLM2_NO_OFFSET,
                     "%u bytes; the control block and the rings end at %u",
                     have, (uint64_t)SLM2_WEB_STACKS);
  uint32_t magic = atomic_load(slm2_web_word(SLM2_WORD_MAGIC)), version = atomic_load(slm2_web_word(SLM2_WORD_VERSION));
  if (magic != SLM2_WEB_MAGIC)
    return slm2_fail(error, SLM2_E_FORMAT, "start", "magic", SLM2_NO_OFFSET, "%x is not %x", (uint64_t)magic,
                     (uint64_t)SLM2_WEB_MAGIC);
  if (version != SLM2_WEB_VERSION)
    return slm2_fail(error, SLM2_E_VERSION, "start", "version", SLM2_NO_OFFSET, "the page speaks version %u, this module %u",
                     (uint64_t)version, (uint64_t)SLM2_WEB_VERSION);
  for (uint32_t i = 0; i < sizeof fresh / sizeof fresh[0]; i++)
    if (atomic_load(slm2_web_word(fresh[i])) != 0)
      return slm2_fail(error, SLM2_E_ARGUMENT, "start", "memory", SLM2_NO_OFFSET, "word %u is not 0: an engine was here before",
                       (uint64_t)fresh[i]);
  slm2_web_plan_terms plan;
  slm2_web_plan_load(&plan, slm2_web_at(SLM2_WEB_CONTROL + 4 * SLM2_WORD_PLAN));
  SLM2_TRY(check_plan(&plan, error));
  memset(e, 0, sizeof *e);
  e->plan = plan;
  e->work = slm2_web_work_place((uint32_t)plan.input_max);
  e->error = error;
  e->started = true;
  set_state(e, SLM2_STATE_EMPTY);
  return SLM2_OK;
}

uint32_t slm2_web_start(void) {
  engine.started = false;
  return start(&engine, slm2_web_failure());
}

const slm2_web_engine *slm2_web_started(void) { return engine.started ? &engine : NULL; }

/* --- requests -------------------------------------------------------------------- */

slm2_status slm2_web_done(slm2_web_engine *e) {
  e->task = NULL;
  e->last_request = e->request;
  e->op = 0;
  if (e->state != SLM2_STATE_CLOSED) set_state(e, e->model != NULL ? SLM2_STATE_READY : SLM2_STATE_EMPTY);
  return SLM2_OK;
}

static slm2_status reset(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  SLM2_TRY(slm2_session_rewind(e->session, 0, e->error));
  SLM2_TRY(slm2_web_event_words(e, SLM2_EVENT_RESET, NULL, 0));
  return slm2_web_done(e);
}

static slm2_status close(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  set_state(e, SLM2_STATE_CLOSED); /* before the event: who has read it finds the state */
  SLM2_TRY(slm2_web_event_words(e, SLM2_EVENT_CLOSED, NULL, 0));
  return slm2_web_done(e);
}

/* What a task could not do. The session is as it was, or ends here: memory that somebody wrote into may show in any refusal. */
static slm2_status failed(slm2_web_engine *e, slm2_status status) {
  if (status == SLM2_E_INTERNAL_INVARIANT) return status;
  if (e->model != NULL) SLM2_TRY(slm2_web_check_seals(e));
  e->error->code = status;
  SLM2_TRY(slm2_web_event_failed(e));
  return slm2_web_done(e);
}

/* A complete command: its first task, if this is its time. */
static slm2_status begin(slm2_web_engine *e) {
  static slm2_web_task *const tasks[] = {
      [SLM2_COMMAND_OPEN] = slm2_web_open, [SLM2_COMMAND_GENERATE] = slm2_web_generate, [SLM2_COMMAND_COUNT] = slm2_web_count,
      [SLM2_COMMAND_DIGEST] = slm2_web_digest_begin, [SLM2_COMMAND_RESET] = reset, [SLM2_COMMAND_CLOSE] = close};
  atomic_store(&e->halt, 0);
  if (e->n_payload > e->plan.input_max)
    return failed(e, slm2_fail(e->error, SLM2_E_ARGUMENT, "engine", "command", SLM2_NO_OFFSET,
                               "%u bytes; this plan has room for %u", e->n_payload, e->plan.input_max));
  if (e->op == SLM2_COMMAND_OPEN && e->model != NULL)
    return failed(e, slm2_fail(e->error, SLM2_E_ARGUMENT, "open", NULL, SLM2_NO_OFFSET, "a model is open: another one takes "
                               "another memory"));
  if (e->op != SLM2_COMMAND_OPEN && e->op != SLM2_COMMAND_CLOSE && e->model == NULL)
    return failed(e, slm2_fail(e->error, SLM2_E_ARGUMENT, "engine", NULL, SLM2_NO_OFFSET, "no model is open"));
  e->task = tasks[e->op];
  set_state(e, e->op == SLM2_COMMAND_OPEN ? SLM2_STATE_OPENING : SLM2_STATE_BUSY);
  return SLM2_OK;
}

static slm2_status check_order(const slm2_web_engine *e, const slm2_web_record *c, slm2_error *error) {
  bool good = e->collecting ? c->op == e->op && c->request == e->request : c->request > e->last_request;
  if (good) return SLM2_OK;
  return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, "ring", "command order", SLM2_NO_OFFSET,
                   "op %u of request %u came after op %u of request %u", (uint64_t)c->op, (uint64_t)c->request, (uint64_t)e->op,
                   (uint64_t)(e->collecting ? e->request : e->last_request));
}

/* Joins the parts that are there. SLM2_NEED_MORE: no complete command. A part beyond input_max is counted and left. */
static slm2_status collect(slm2_web_engine *e) {
  slm2_status status;
  slm2_web_record c;
  bool read = false, complete = false;
  while (!complete && (status = slm2_web_reader_peek(&e->commands, &c, e->error)) == SLM2_OK) {
    SLM2_TRY(check_order(e, &c, e->error));
    if (!e->collecting) e->n_payload = 0;
    if (e->n_payload + c.n <= e->plan.input_max)
      memcpy(slm2_web_work_at(e, e->work.zone + e->n_payload), slm2_web_at(c.at), c.n);
    e->n_payload += c.n;
    e->op = c.op;
    e->request = c.request;
    e->collecting = (c.flags & SLM2_FLAG_MORE) != 0;
    complete = !e->collecting;
    slm2_web_reader_take(&e->commands, &c);
    read = true;
  }
  if (read) slm2_web_ring_bell(SLM2_WORD_EVENT_BELL); /* the page may wait for room */
  return complete ? SLM2_OK : status;
}

/* --- steps ----------------------------------------------------------------------- */

/* Whatever is wrong with the rings: nothing may be believed any more. The page is told if that is still possible. */
static slm2_web_turn poison(slm2_web_engine *e) {
  e->error->code = SLM2_E_INTERNAL_INVARIANT;
  set_state(e, SLM2_STATE_POISONED);
  slm2_error why = *e->error;
  (void)!slm2_web_event_failed(e);
  *e->error = why;
  slm2_web_ring_bell(SLM2_WORD_EVENT_BELL);
  return SLM2_TURN_POISONED;
}

/* SLM2_NEED_MORE: nothing to do. */
static slm2_status slice(slm2_web_engine *e, double now_ms) {
  if (e->task == NULL) {
    SLM2_TRY(collect(e));
    return begin(e);
  }
  slm2_status status = e->task(e, now_ms);
  uint32_t thread = slm2_web_broken_stack((uint32_t)e->plan.threads);
  if (thread != 0)
    return slm2_fail(e->error, SLM2_E_INTERNAL_INVARIANT, "stack", NULL, SLM2_NO_OFFSET,
                     "compute worker %u overflowed its stack of %u bytes", (uint64_t)thread, (uint64_t)SLM2_WEB_STACK_BYTES);
  return status == SLM2_OK ? SLM2_OK : failed(e, status);
}

uint32_t slm2_web_step(double now_ms) {
  slm2_web_engine *e = &engine;
  uint32_t room;
  if (!e->started || e->state == SLM2_STATE_POISONED) return SLM2_TURN_POISONED;
  if (e->state == SLM2_STATE_CLOSED) return SLM2_TURN_CLOSED;
  slm2_web_beat();
  *e->error = (slm2_error){.offset = SLM2_NO_OFFSET};
  if (slm2_web_writer_room(&e->events, &room, e->error) != SLM2_OK) return poison(e);
  if (!(e->task != NULL && slm2_web_cancelled(e)) && room < SLM2_WEB_EVENT_ROOM) return SLM2_TURN_FULL;
  slm2_status status = slice(e, now_ms);
  if (status == SLM2_NEED_MORE) return SLM2_TURN_IDLE;
  if (status != SLM2_OK) return poison(e);
  return e->state == SLM2_STATE_CLOSED ? SLM2_TURN_CLOSED : SLM2_TURN_MORE;
}
