/* wasm/engine.h: the engine from the inside: one model, one session, one request at a time, cut into slices. A request is a
 * chain of tasks; each task is one slice of work. docs/PROTOCOL.md.
 *
 *   engine.c           start, step, commands, failures
 *   engine_open.c      OPEN: plan, verification, model, session
 *   engine_prompt.c    texts to ids
 *   engine_generate.c  GENERATE
 *   engine_digest.c    COUNT, DIGEST
 *   events.c           what the page is told
 *   trial.c            a benchmark before anything is open
 */
#ifndef SLM2_WASM_ENGINE_H
#define SLM2_WASM_ENGINE_H

#include "base/sha256.h"
#include "wasm/plan.h"
#include "wasm/ring.h"

typedef enum slm2_web_state {
  SLM2_STATE_EMPTY = 0, SLM2_STATE_OPENING, SLM2_STATE_READY, SLM2_STATE_BUSY, SLM2_STATE_POISONED, SLM2_STATE_CLOSED,
} slm2_web_state;

/* A slice begins only with so much room for events, or when it is to stop. The largest slice writes a token's text and one
 * short event, each perhaps behind a filler; what is left when a token was written holds the last events of a stop. */
#define SLM2_WEB_EVENT_ROOM 16384u

typedef struct slm2_web_engine slm2_web_engine;
/* One slice. SLM2_OK: goes on with e->task; else the request has failed. */
typedef slm2_status slm2_web_task(slm2_web_engine *e, double now_ms);

#define SLM2_WEB_GENERATE_HEAD 96u

typedef struct slm2_web_answer {
  slm2_generate_params params;
  char stop_texts[SLM2_MAX_STOP_STRINGS * SLM2_MAX_STOP_BYTES];
  slm2_generator *generator; /* NULL: none yet */
  slm2_sha256 digest;        /* of its tokens */
  uint32_t n_prompt, reused;
  slm2_finish finish;
  bool prefilled;
  double begun_ms, prefill_ms, decode_ms;
} slm2_web_answer;

typedef struct slm2_web_digest {
  slm2_sha256 sha;
  uint32_t chunk, vocab;
} slm2_web_digest;

struct slm2_web_engine {
  bool started;
  slm2_web_state state;
  slm2_web_plan_terms plan; /* checked; that of the control block is not looked at again */
  slm2_web_work work;
  slm2_web_reader commands;
  slm2_web_writer events;
  slm2_error *error;
  /* the command that comes in, or runs: its payload is in the work region's zone */
  uint32_t op, request;
  uint32_t last_request; /* the one before */
  slm2_cancel halt;      /* the cancel word of the session: not 0 when the request that runs is to stop */
  bool collecting;
  uint64_t n_payload;
  slm2_web_task *task; /* NULL: none runs */
  /* what is open */
  slm2_model *model; /* NULL: nothing */
  slm2_session *session;
  slm2_pool pool; /* the workers', and with each run a beat, with each piece of work a look at the page's word to stop */
  const slm2_pool *workers;
  slm2_job_fn *job; /* of the run */
  void *job_context;
  bool verified;
  uint8_t seals[2][32]; /* of what an answer relies on and nothing changes: the model's index, the session's making */
  /* of the request that runs */
  slm2_reader *reader;
  uint32_t *ids; /* in the zone */
  uint32_t n_ids, done;
  slm2_web_answer answer;
  slm2_web_digest digest;
  uint8_t payload[24 + SLM2_TEXT_MAX]; /* the event being made */
};

/* Whether the request that runs is to stop. The page's word to stop holds a number: that of another request stops nothing, at
 * whatever time it comes. From any thread. */
static inline bool slm2_web_cancelled(slm2_web_engine *e) {
  const uint32_t number = atomic_load_explicit(slm2_web_word(SLM2_WORD_CANCEL), memory_order_relaxed);
  if (number == e->request || number == SLM2_WEB_CANCEL_ALL) atomic_store_explicit(&e->halt, 1, memory_order_relaxed);
  return atomic_load_explicit(&e->halt, memory_order_relaxed) != 0;
}
static inline void slm2_web_beat(void) { atomic_fetch_add_explicit(slm2_web_word(SLM2_WORD_HEARTBEAT), 1, memory_order_relaxed); }
static inline uint8_t *slm2_web_work_at(const slm2_web_engine *e, uint64_t offset) {
  return slm2_web_at((uint32_t)(e->plan.at_work + offset));
}
/* The payload of the command that runs. */
static inline const uint8_t *slm2_web_command_payload(const slm2_web_engine *e) { return slm2_web_work_at(e, e->work.zone); }

/* --- engine.c ------------------------------------------------------------------- */

/* NULL before slm2_web_start. */
const slm2_web_engine *slm2_web_started(void);

/* SLM2_E_ARGUMENT by the field's name. */
slm2_status slm2_web_refuse(slm2_web_engine *e, const char *field, uint64_t value, const char *why);
slm2_status slm2_web_cancelled_error(slm2_web_engine *e);
/* The request is over, its last event written. */
slm2_status slm2_web_done(slm2_web_engine *e);
/* A run's callback. */
void slm2_web_prefill_progress(void *engine, uint32_t done, uint32_t total);

/* --- the first tasks of the commands -------------------------------------------- */

slm2_web_task slm2_web_open, slm2_web_generate, slm2_web_count, slm2_web_digest_begin;

/* --- engine_open.c --------------------------------------------------------------- */

/* Whether model and session are those that were opened. SLM2_E_INTERNAL_INVARIANT: somebody wrote into them. It hashes the
 * model's index (2 MB of the 0.6B, 8 ms), so it is asked at the end of an answer and of a digest, and when a request fails. */
SLM2_NODISCARD slm2_status slm2_web_check_seals(slm2_web_engine *e);

/* --- engine_prompt.c -------------------------------------------------------------- */

enum { SLM2_KIND_MESSAGES = 0, SLM2_KIND_TEXT = 1, SLM2_KIND_IDS = 2 };
enum { SLM2_PROMPT_NO_THINKING = 1, SLM2_PROMPT_SPECIALS = 2, SLM2_PROMPT_IGNORE_END = 4 };
/* text [n] of the zone to e->ids, e->n_ids in the zone; *n_text: bytes of what was tokenised. */
SLM2_NODISCARD slm2_status slm2_web_prompt(slm2_web_engine *e, uint32_t kind, uint32_t flags, const uint8_t *text, size_t n,
                                           size_t *n_text);

/* --- events.c --------------------------------------------------------------------- */

enum { SLM2_PHASE_PREFILL = 1, SLM2_PHASE_VERIFY = 2 };
SLM2_NODISCARD slm2_status slm2_web_event_ready(slm2_web_engine *e);
SLM2_NODISCARD slm2_status slm2_web_event_token(slm2_web_engine *e, const slm2_token_event *token);
SLM2_NODISCARD slm2_status slm2_web_event_done(slm2_web_engine *e);
SLM2_NODISCARD slm2_status slm2_web_event_failed(slm2_web_engine *e);
/* Of n words. */
SLM2_NODISCARD slm2_status slm2_web_event_words(slm2_web_engine *e, uint32_t op, const uint32_t *words, uint32_t n);
SLM2_NODISCARD slm2_status slm2_web_event_digested(slm2_web_engine *e, const uint8_t sha256[32]);
/* Dropped when room is short. */
void slm2_web_event_progress(slm2_web_engine *e, uint32_t phase, uint32_t done, uint32_t total);

#endif
