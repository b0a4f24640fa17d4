/* wasm/engine_generate.c: GENERATE: check and tokenise, prefill, one token a slice, then DONE. The session keeps what is common
 * with the request before. */
#include "base/bytes.h"
#include "base/error.h"
#include "wasm/engine.h"

static const char operation[] = "generate";

/* --- what is asked ------------------------------------------------------------------ */

static slm2_status read_head(slm2_web_engine *e, const uint8_t *h, slm2_generate_params *p, uint32_t *kind, uint32_t *flags) {
  *kind = slm2_load_u32(h);
  *flags = slm2_load_u32(h + 4);
  *p = (slm2_generate_params){
      .sampler = {.temperature = slm2_load_f32(h + 8), .top_k = slm2_load_u32(h + 12), .top_p = slm2_load_f32(h + 16),
                  .min_p = slm2_load_f32(h + 20), .repeat_penalty = slm2_load_f32(h + 24), .seed = slm2_load_u64(h + 32)},
      .max_tokens = slm2_load_u32(h + 28), .ignore_eos = (*flags & SLM2_PROMPT_IGNORE_END) != 0,
      .speculate = slm2_load_u32(h + 40), .n_stop = slm2_load_u32(h + 44)};
  for (uint32_t i = 52; i < SLM2_WEB_GENERATE_HEAD; i++)
    if (h[i] != 0) return slm2_web_refuse(e, "head", h[i], "stands where the head has zeros");
  if (*flags > 7) return slm2_web_refuse(e, "flags", *flags, "has bits that are none");
  if (p->max_tokens == 0) return slm2_web_refuse(e, "max_tokens", 0, "tokens are no answer: at least 1");
  if (p->speculate != SLM2_SPECULATE_AUTO && p->speculate > e->plan.draft)
    return slm2_fail(e->error, SLM2_E_ARGUMENT, operation, "speculate", SLM2_NO_OFFSET,
                     "%u is above %u, the plan's longest draft",
                     (uint64_t)p->speculate, e->plan.draft);
  if (p->n_stop > SLM2_MAX_STOP_STRINGS)
    return slm2_fail(e->error, SLM2_E_ARGUMENT, operation, "stop", SLM2_NO_OFFSET, "%u stop texts, at most %u are possible",
                     (uint64_t)p->n_stop, (uint64_t)SLM2_MAX_STOP_STRINGS);
  return slm2_sampler_check(&p->sampler, e->error);
}

/* Copies the stop texts: the prompt's way to ids goes over them. What they contain slm2_generator_init checks. */
static slm2_status read_stops(slm2_web_engine *e, const uint8_t *texts, size_t n) {
  slm2_generate_params *p = &e->answer.params;
  slm2_cursor c = slm2_cursor_of(texts, n);
  for (uint32_t i = 0; i < p->n_stop; i++) {
    char *to = e->answer.stop_texts + i * SLM2_MAX_STOP_BYTES;
    const uint8_t *text;
    uint32_t bytes;
    if (!slm2_take_u32(&c, &bytes) || bytes > slm2_cursor_left(&c))
      return slm2_web_refuse(e, "stop", i, "is a stop text that exceeds the stop texts");
    if (bytes == 0 || bytes > SLM2_MAX_STOP_BYTES)
      return slm2_fail(e->error, SLM2_E_ARGUMENT, operation, "stop", SLM2_NO_OFFSET, "stop text %u has %u bytes, outside 1 .. %u",
                       (uint64_t)i, (uint64_t)bytes, (uint64_t)SLM2_MAX_STOP_BYTES);
    (void)slm2_take(&c, bytes, &text);
    memcpy(to, text, bytes);
    p->stop[i] = to;
    p->stop_bytes[i] = bytes;
  }
  if (slm2_cursor_left(&c) != 0) return slm2_web_refuse(e, "stop", slm2_cursor_left(&c), "bytes follow the last stop text");
  return SLM2_OK;
}

static slm2_status check_room(slm2_web_engine *e) {
  if (e->n_ids == 0)
    return slm2_fail(e->error, SLM2_E_ARGUMENT, operation, "prompt", SLM2_NO_OFFSET, "it is empty: there is nothing to continue");
  if (e->n_ids >= e->plan.context)
    return slm2_fail(e->error, SLM2_E_CONTEXT_OVERFLOW, operation, "prompt", SLM2_NO_OFFSET,
                     "%u tokens and one of an answer do not fit the context of %u", (uint64_t)e->n_ids, e->plan.context);
  for (uint32_t i = 0, vocab = slm2_model_header(e->model)->config.vocab; i < e->n_ids; i++)
    if (e->ids[i] >= vocab)
      return slm2_fail(e->error, SLM2_E_TOKEN, operation, "prompt", SLM2_NO_OFFSET,
                       "token %u has id %u, but the vocabulary ends at %u",
                       (uint64_t)i, (uint64_t)e->ids[i], (uint64_t)vocab - 1);
  return SLM2_OK;
}

/* What slm2_session_sync is going to keep. */
static uint32_t common_prefix(const slm2_web_engine *e) {
  const uint32_t *old = slm2_session_ids(e->session);
  const uint32_t length = slm2_session_length(e->session);
  uint32_t n = 0;
  while (n < length && n < e->n_ids - 1 && old[n] == e->ids[n]) n++;
  return n;
}

/* --- the tasks ---------------------------------------------------------------------- */

static slm2_status finish(slm2_web_engine *e, double now_ms) {
  slm2_web_answer *a = &e->answer;
  if (a->prefilled) a->decode_ms = now_ms - a->begun_ms;
  else a->prefill_ms = now_ms - a->begun_ms;
  if (a->finish != SLM2_FINISH_CANCELLED) SLM2_TRY(slm2_web_check_seals(e)); /* a stop has no time for it, and claims less */
  SLM2_TRY(slm2_web_event_done(e));
  return slm2_web_done(e);
}

static slm2_status next_token(slm2_web_engine *e) {
  slm2_web_answer *a = &e->answer;
  slm2_token_event *token = (slm2_token_event *)(void *)slm2_web_work_at(e, e->work.event);
  slm2_status status = slm2_generator_next(a->generator, &e->halt, token, e->error);
  if (status == SLM2_E_ARGUMENT) return status; /* the event is unwritten */
  if (token->id != SLM2_NO_TOKEN) {
    uint8_t row[8];
    slm2_store_u32(row, token->id);
    slm2_store_f32(row + 4, token->logprob);
    slm2_sha256_update(&a->digest, row, sizeof row);
  }
  if (token->id != SLM2_NO_TOKEN || token->n_text != 0) SLM2_TRY(slm2_web_event_token(e, token));
  a->finish = token->finish;
  if (token->finish != SLM2_FINISH_NONE) e->task = finish;
  return status;
}

static slm2_status decode(slm2_web_engine *e, double now_ms) {
  slm2_web_answer *a = &e->answer;
  if (!a->prefilled) { /* the first slice after the prefill */
    a->prefilled = true;
    a->prefill_ms = now_ms - a->begun_ms;
    a->begun_ms = now_ms;
  }
  return next_token(e);
}

static slm2_status prefill(slm2_web_engine *e, double now_ms) {
  slm2_web_answer *a = &e->answer;
  const slm2_run run = {.cancel = &e->halt, .progress = slm2_web_prefill_progress, .user = e};
  const size_t bytes = slm2_generator_bytes();
  a->begun_ms = now_ms;
  slm2_status status = slm2_session_sync(e->session, e->ids, e->n_ids, &run, &a->reused, e->error);
  if (status == SLM2_E_CANCELLED) {
    a->finish = SLM2_FINISH_CANCELLED;
    e->task = finish;
    return SLM2_OK;
  }
  if (status != SLM2_OK) return status;
  e->task = decode;
  return slm2_generator_init(slm2_web_work_at(e, e->work.generator), bytes, e->session, &a->params, &a->generator, e->error);
}

slm2_status slm2_web_generate(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  const uint8_t *payload = slm2_web_command_payload(e);
  slm2_web_answer *a = &e->answer;
  uint32_t kind, flags;
  size_t n_text;
  if (e->n_payload < SLM2_WEB_GENERATE_HEAD) return slm2_web_refuse(e, "bytes", e->n_payload, "bytes are no head: it has 96");
  memset(a, 0, sizeof *a);
  slm2_sha256_init(&a->digest);
  SLM2_TRY(read_head(e, payload, &a->params, &kind, &flags));
  const uint64_t stops = slm2_load_u32(payload + 48), left = e->n_payload - SLM2_WEB_GENERATE_HEAD;
  if (stops > left) return slm2_web_refuse(e, "stop", stops, "bytes of stop texts exceed the command");
  SLM2_TRY(read_stops(e, payload + SLM2_WEB_GENERATE_HEAD, (size_t)stops));
  SLM2_TRY(slm2_web_prompt(e, kind, flags, payload + SLM2_WEB_GENERATE_HEAD + stops, (size_t)(left - stops), &n_text));
  SLM2_TRY(check_room(e));
  a->n_prompt = e->n_ids;
  a->reused = common_prefix(e);
  e->task = prefill;
  return slm2_web_event_words(e, SLM2_EVENT_BEGUN, (const uint32_t[]){a->n_prompt, a->reused}, 2);
}
