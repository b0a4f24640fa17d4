/* session/generate.c: one answer, token by token: sampler, end tokens, stop strings, decoder, channel. Each step first
 * appends the token of the step before, then samples: so the last token of an answer is never computed in vain and is
 * not on the timeline; slm2_session_sync adds it when a conversation goes on. What is held of text follows from the tokens:
 * so seed, words used and two numbers are all that an answer under way needs to go on elsewhere. */
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "num/fp_env.h"
#include "sampler/logprob.h"
#include "session/speculate.h"
#include "session/stop.h"
#include "tokenizer/section.h"

struct slm2_generator {
  slm2_session *session;
  uint32_t length; /* of the session after the last step: somebody else's changes are noticed */
  slm2_sampler_params sampler;
  slm2_rng rng;
  slm2_speculation speculation;
  uint32_t max_tokens, count;
  uint32_t pending; /* sampled, not yet appended; or SLM2_NO_TOKEN */
  bool ignore_eos, ended;
  slm2_channel channel; /* of the next text */
  slm2_decoder decoder;
  slm2_stop_matcher stop;
  uint32_t n_held;      /* text that may turn out to begin a stop string */
  char held[SLM2_MAX_STOP_BYTES];
};

_Static_assert(SLM2_MAX_STOP_BYTES + SLM2_DECODE_MAX(SLM2_MAX_TOKEN_BYTES) + SLM2_DECODE_MAX(0) <= SLM2_TEXT_MAX,
               "a step's text fits its event");

const char *slm2_finish_name(slm2_finish finish) {
  static const char *const names[] = {"none", "stop", "length", "cancelled", "error"};
  return (unsigned)finish < sizeof names / sizeof names[0] ? names[finish] : "unknown";
}

size_t slm2_generator_bytes(void) { return sizeof(slm2_generator); }
uint32_t slm2_generator_count(const slm2_generator *g) { return g->count; }
uint64_t slm2_generator_words_used(const slm2_generator *g) { return g->rng.words_used; }
uint32_t slm2_generator_drafted(const slm2_generator *g) { return g->speculation.drafted; }
uint32_t slm2_generator_accepted(const slm2_generator *g) { return g->speculation.accepted; }

/* --- starting ---------------------------------------------------------------- */

static bool is_end_token(const slm2_session *s, uint32_t id) {
  const slm2_generation *generation = &s->forward.model->header.generation;
  for (uint32_t i = 0; i < generation->n_eos; i++)
    if (generation->eos[i] == id) return true;
  return false;
}

/* Whether the prompt ends inside an open <think>: looking back, it comes before any </think> or end of a turn. */
static slm2_channel channel_at_start(const slm2_session *s, uint32_t n_prompt) {
  const slm2_model *m = s->forward.model;
  for (uint32_t i = n_prompt; i-- > 0;) {
    uint32_t id = s->ids[i];
    if (id == m->think_open) return SLM2_CHANNEL_REASONING;
    if (id == m->think_close || is_end_token(s, id)) return SLM2_CHANNEL_ANSWER;
  }
  return SLM2_CHANNEL_ANSWER;
}

static slm2_status check_stop_strings(const slm2_session *s, const slm2_generate_params *params, slm2_error *error) {
  if (params->n_stop > SLM2_MAX_STOP_STRINGS)
    return slm2_fail(error, SLM2_E_ARGUMENT, "generate", "stop", SLM2_NO_OFFSET, "%u stop strings, at most %u are possible",
                     (uint64_t)params->n_stop, (uint64_t)SLM2_MAX_STOP_STRINGS);
  if (params->n_stop > 0 && slm2_model_tokenizer(s->forward.model) == NULL)
    return slm2_fail(error, SLM2_E_ARGUMENT, "generate", "stop", SLM2_NO_OFFSET,
                     "a model without a tokenizer gives no text to stop at");
  for (uint32_t i = 0; i < params->n_stop; i++) {
    size_t n = params->stop_bytes[i];
    if (n == 0 || n > SLM2_MAX_STOP_BYTES)
      return slm2_fail(error, SLM2_E_ARGUMENT, "generate", "stop", SLM2_NO_OFFSET, "stop string %u has %u bytes, outside 1 .. %u",
                       (uint64_t)i, (uint64_t)n, (uint64_t)SLM2_MAX_STOP_BYTES);
    if (!slm2_utf8_valid((const uint8_t *)params->stop[i], n))
      return slm2_fail(error, SLM2_E_ARGUMENT, "generate", "stop", SLM2_NO_OFFSET, "stop string %u is not UTF-8", (uint64_t)i);
  }
  return SLM2_OK;
}

static slm2_status check_start(const slm2_session *s, const slm2_generate_params *params, slm2_error *error) {
  SLM2_TRY(slm2_sampler_check(&params->sampler, error));
  SLM2_TRY(check_stop_strings(s, params, error));
  if (params->max_tokens == 0)
    return slm2_fail(error, SLM2_E_ARGUMENT, "generate", "max_tokens", SLM2_NO_OFFSET, "at least one token must be allowed");
  if (params->speculate != SLM2_SPECULATE_AUTO && params->speculate > s->params.draft)
    return slm2_fail(error, SLM2_E_ARGUMENT, "generate", "speculate", SLM2_NO_OFFSET,
                     "drafts of %u are asked for, and the session has memory for drafts of %u", (uint64_t)params->speculate,
                     (uint64_t)s->params.draft);
  if (!s->has_logits)
    return slm2_fail(error, SLM2_E_ARGUMENT, "generate", NULL, SLM2_NO_OFFSET,
                     "the session has no logits: append a prompt first");
  if (s->length >= s->params.context)
    return slm2_fail(error, SLM2_E_CONTEXT_OVERFLOW, "generate", NULL, SLM2_NO_OFFSET,
                     "%u tokens fill the context of %u: there is no room for an answer", (uint64_t)s->length,
                     (uint64_t)s->params.context);
  return SLM2_OK;
}

/* The answer began behind the first n_prompt tokens of the timeline. */
static slm2_status start(void *mem, size_t mem_bytes, slm2_session *s, const slm2_generate_params *params, uint32_t n_prompt,
                         slm2_generator **out, slm2_error *error) {
  if (mem_bytes < sizeof(slm2_generator))
    return slm2_fail(error, SLM2_E_MEMORY, "generate", "mem", SLM2_NO_OFFSET, "%u bytes needed, %u lent",
                     (uint64_t)sizeof(slm2_generator), (uint64_t)mem_bytes);
  if ((uintptr_t)mem % 16 != 0)
    return slm2_fail(error, SLM2_E_ARGUMENT, "generate", "mem", SLM2_NO_OFFSET, "the lent memory must be 16-byte aligned");
  SLM2_TRY(check_start(s, params, error));
  slm2_generator *g = mem;
  memset(g, 0, sizeof *g);
  g->session = s;
  g->length = s->length;
  g->sampler = params->sampler;
  slm2_rng_init(&g->rng, params->sampler.seed);
  slm2_speculation_init(&g->speculation, s, params->speculate);
  g->max_tokens = params->max_tokens;
  g->pending = SLM2_NO_TOKEN;
  g->ignore_eos = params->ignore_eos;
  g->channel = channel_at_start(s, n_prompt);
  slm2_decoder_init(&g->decoder);
  slm2_stop_init(&g->stop);
  for (uint32_t i = 0; i < params->n_stop; i++) slm2_stop_add(&g->stop, params->stop[i], params->stop_bytes[i]);
  *out = g;
  return SLM2_OK;
}

slm2_status slm2_generator_init(void *mem, size_t mem_bytes, slm2_session *s, const slm2_generate_params *params,
                                slm2_generator **out, slm2_error *error) {
  return start(mem, mem_bytes, s, params, s->length, out, error);
}

/* --- text ---------------------------------------------------------------------- */

/* The n bytes just written behind the event's text join it; at the first stop string the text ends before it and the
 * answer is over. Text still held is at the front of the event, so a stop string that began there is whole. */
static void accept_text(slm2_generator *g, slm2_token_event *e, size_t n) {
  for (size_t i = 0; i < n; i++) {
    size_t matched = slm2_stop_push(&g->stop, (uint8_t)e->text[e->n_text++]);
    if (matched == 0) continue;
    e->n_text -= matched;
    e->finish = SLM2_FINISH_STOP;
    return;
  }
}

/* What the decoder holds comes out as U+FFFD: no byte that could complete it will follow. */
static void flush_decoder(slm2_generator *g, slm2_token_event *e) {
  accept_text(g, e, slm2_decoder_flush(&g->decoder, (uint8_t *)e->text + e->n_text));
}

/* The last event shows everything; another keeps back what may begin a stop string. */
static void release_text(slm2_generator *g, slm2_token_event *e) {
  g->n_held = e->finish == SLM2_FINISH_NONE ? (uint32_t)slm2_stop_pending(&g->stop) : 0;
  e->n_text -= g->n_held;
  memcpy(g->held, e->text + e->n_text, g->n_held);
}

static void add_token_text(slm2_generator *g, slm2_token_event *e, uint32_t id) {
  const slm2_model *m = g->session->forward.model;
  if (id == m->think_open || id == m->think_close) { /* nothing is decoded or matched across the border */
    flush_decoder(g, e);
    slm2_stop_reset(&g->stop);
    g->channel = id == m->think_open ? SLM2_CHANNEL_REASONING : SLM2_CHANNEL_ANSWER;
  } else if (m->tokenizer != NULL && !slm2_token_is_special(m->tokenizer, id)) {
    size_t n;
    const uint8_t *bytes = slm2_token_bytes(m->tokenizer, id, &n);
    accept_text(g, e, slm2_decoder_push(&g->decoder, bytes, n, (uint8_t *)e->text + e->n_text));
  }
}

/* --- one step -------------------------------------------------------------------- */

static void begin_event(slm2_generator *g, slm2_token_event *e) {
  e->id = SLM2_NO_TOKEN;
  e->position = g->session->length;
  e->logprob = 0.0f;
  e->channel = g->channel;
  e->finish = SLM2_FINISH_NONE;
  e->n_text = g->n_held;
  memcpy(e->text, g->held, g->n_held);
}

/* Whatever ended the answer, its text comes out whole. */
static void end(slm2_generator *g, slm2_token_event *e, slm2_finish finish) {
  flush_decoder(g, e); /* may complete a stop string */
  if (e->finish == SLM2_FINISH_NONE || finish >= SLM2_FINISH_CANCELLED) e->finish = finish;
  release_text(g, e);
  g->ended = true;
}

/* Appends the token of the step before, samples the next one and its log-probability. */
static slm2_status sample(slm2_generator *g, const slm2_cancel *cancel, slm2_token_event *e, slm2_error *error) {
  slm2_session *s = g->session;
  const uint32_t vocab = s->forward.model->header.config.vocab;
  if (cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed) != 0)
    return slm2_fail(error, SLM2_E_CANCELLED, "generate", NULL, SLM2_NO_OFFSET, "cancelled after %u tokens", (uint64_t)g->count);
  if (g->pending != SLM2_NO_TOKEN) {
    const uint32_t room = g->max_tokens - g->count - 1; /* tokens that can be appended after this one */
    SLM2_TRY(slm2_speculation_append(&g->speculation, s, g->pending, room, cancel, error));
    g->pending = SLM2_NO_TOKEN;
    g->length = e->position = s->length;
  }
  uint32_t id;
  slm2_logprob_base base;
  float *exps = (float *)(void *)s->candidates; /* [vocab] until the sampler fills it */
  SLM2_TRY(slm2_logprob_prepare_on(s->forward.pool, exps, s->forward.kernels, s->logits, vocab, &base, error));
  SLM2_TRY(slm2_sampler_next(&g->sampler, s->logits, vocab, slm2_model_token_mask(s->forward.model), s->ids, s->length, s->seen,
                             s->candidates, &g->rng, &id, error));
  e->id = id;
  e->logprob = slm2_logprob(&base, s->logits[id]);
  g->count++;
  return SLM2_OK;
}

SLM2_NOINLINE static slm2_status step(slm2_generator *g, const slm2_cancel *cancel, slm2_token_event *e, slm2_error *error) {
  begin_event(g, e);
  slm2_status status = sample(g, cancel, e, error);
  if (status != SLM2_OK) {
    end(g, e, status == SLM2_E_CANCELLED ? SLM2_FINISH_CANCELLED : SLM2_FINISH_ERROR);
    return status == SLM2_E_CANCELLED ? SLM2_OK : status;
  }
  if (!g->ignore_eos && is_end_token(g->session, e->id)) {
    end(g, e, SLM2_FINISH_STOP);
    return SLM2_OK;
  }
  add_token_text(g, e, e->id);
  if (e->finish == SLM2_FINISH_STOP) {
    release_text(g, e);
    g->ended = true;
  } else if (g->count == g->max_tokens || e->position + 1 == g->session->params.context) {
    end(g, e, SLM2_FINISH_LENGTH);
  } else {
    release_text(g, e);
    g->pending = e->id;
  }
  return SLM2_OK;
}

slm2_status slm2_generator_next(slm2_generator *g, const slm2_cancel *cancel, slm2_token_event *event, slm2_error *error) {
  if (g->ended) return slm2_fail(error, SLM2_E_ARGUMENT, "generate", NULL, SLM2_NO_OFFSET,
                                 "the answer has ended after %u tokens", (uint64_t)g->count);
  if (g->session->length != g->length || !g->session->has_logits)
    return slm2_fail(error, SLM2_E_ARGUMENT, "generate", NULL, SLM2_NO_OFFSET,
                     "the session changed under the answer: %u tokens expected on its timeline, %u found", (uint64_t)g->length,
                     (uint64_t)g->session->length);
  slm2_fp_state fp = slm2_fp_enter(); /* [D2] */
  slm2_status status = step(g, cancel, event, error);
  slm2_fp_leave(fp);
  return status;
}

/* --- stopping and going on ---------------------------------------------------------- */

slm2_status slm2_generator_save(const slm2_generator *g, const slm2_session *s, slm2_generator_state *state, slm2_error *error) {
  if (g->ended || g->session != s || g->length != s->length || !s->has_logits)
    return slm2_fail(error, SLM2_E_ARGUMENT, "snapshot", "answer", SLM2_NO_OFFSET, "%s",
                     g->ended           ? "it has ended: there is nothing to go on with"
                     : g->session != s ? "it belongs to another session"
                                       : "the session changed under it");
  *state = (slm2_generator_state){g->sampler.seed, g->rng.words_used, g->count, g->pending};
  return SLM2_OK;
}

static slm2_status check_state(const slm2_session *s, const slm2_generate_params *params, const slm2_generator_state *state,
                               slm2_error *error) {
  const bool begun = state->count > 0;
  if (state->seed != params->sampler.seed)
    return slm2_fail(error, SLM2_E_ARGUMENT, "resume", "seed", SLM2_NO_OFFSET, "the answer began with seed %u, not %u",
                     state->seed, params->sampler.seed);
  if (state->count > s->length || state->words_used > state->count || begun != (state->last != SLM2_NO_TOKEN) ||
      (begun && state->last >= s->forward.model->header.config.vocab))
    return slm2_fail(error, SLM2_E_ARGUMENT, "resume", "state", SLM2_NO_OFFSET,
                     "%u tokens with %u random words do not fit a timeline of %u", (uint64_t)state->count, state->words_used,
                     (uint64_t)s->length);
  if (state->count >= params->max_tokens)
    return slm2_fail(error, SLM2_E_ARGUMENT, "resume", "max_tokens", SLM2_NO_OFFSET,
                     "the answer has %u tokens, and %u are allowed", (uint64_t)state->count, (uint64_t)params->max_tokens);
  if (begun && s->length + 1 >= s->params.context)
    return slm2_fail(error, SLM2_E_CONTEXT_OVERFLOW, "resume", NULL, SLM2_NO_OFFSET,
                     "%u tokens and the one sampled last fill the context of %u", (uint64_t)s->length,
                     (uint64_t)s->params.context);
  return SLM2_OK;
}

slm2_status slm2_generator_resume(void *mem, size_t mem_bytes, slm2_session *s, const slm2_generate_params *params,
                                  const slm2_generator_state *state, slm2_generator **out, slm2_error *error) {
  SLM2_TRY(check_state(s, params, state, error));
  slm2_generator *g;
  slm2_token_event e; /* its text came out before */
  const uint32_t n_prompt = s->length - (state->count > 0 ? state->count - 1 : 0);
  SLM2_TRY(start(mem, mem_bytes, s, params, n_prompt, &g, error));
  for (uint32_t i = 0; i < state->count; i++) {
    uint32_t id = n_prompt + i < s->length ? s->ids[n_prompt + i] : state->last;
    bool end_token = !params->ignore_eos && is_end_token(s, id);
    begin_event(g, &e);
    if (!end_token) add_token_text(g, &e, id);
    if (end_token || e.finish != SLM2_FINISH_NONE)
      return slm2_fail(error, SLM2_E_ARGUMENT, "resume", "params", SLM2_NO_OFFSET,
                       "with these parameters the answer had ended with token %u of %u", (uint64_t)i + 1, (uint64_t)state->count);
    release_text(g, &e);
  }
  slm2_rng_seek(&g->rng, state->words_used);
  g->count = state->count;
  g->pending = state->last;
  *out = g;
  return SLM2_OK;
}
