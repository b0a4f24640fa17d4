/* wasm/events.c: payloads of events. Layouts: docs/PROTOCOL.md, "Events". */
#include "base/bytes.h"
#include "base/error.h"
#include "wasm/engine.h"

/* A payload in the making; all of them fit the buffer: the longest is a token's text. */
typedef struct payload {
  uint8_t *bytes;
  uint32_t n;
} payload;

static void put_bytes(payload *p, const void *from, size_t n) {
  memcpy(p->bytes + p->n, from, n);
  p->n += (uint32_t)n;
}
static void put_u32(payload *p, uint32_t x) {
  slm2_store_u32(p->bytes + p->n, x);
  p->n += 4;
}
static void put_u64(payload *p, uint64_t x) {
  slm2_store_u64(p->bytes + p->n, x);
  p->n += 8;
}
static void put_f32(payload *p, float x) { put_u32(p, slm2_float_bits(x)); }
static void put_f64(payload *p, double x) { put_u64(p, slm2_double_bits(x)); }
static void put_text(payload *p, const char *text) {
  uint32_t n = 0;
  while (text[n] != '\0') n++;
  put_u32(p, n);
  put_bytes(p, text, n);
}

static slm2_status send(slm2_web_engine *e, uint32_t op, const payload *p) {
  slm2_status status = slm2_web_writer_put(&e->events, op, e->request, p->bytes, p->n, e->error);
  if (status == SLM2_NEED_MORE)
    return slm2_fail(e->error, SLM2_E_INTERNAL_INVARIANT, "engine", NULL, SLM2_NO_OFFSET,
                     "no room was left for event %u of %u bytes",
                     (uint64_t)op, (uint64_t)p->n);
  return status;
}

slm2_status slm2_web_event_words(slm2_web_engine *e, uint32_t op, const uint32_t *words, uint32_t n) {
  payload p = {e->payload, 0};
  for (uint32_t i = 0; i < n; i++) put_u32(&p, words[i]);
  return send(e, op, &p);
}

void slm2_web_event_progress(slm2_web_engine *e, uint32_t phase, uint32_t done, uint32_t total) {
  uint32_t room;
  const uint32_t words[] = {phase, done, total, 0};
  if (slm2_web_writer_room(&e->events, &room, NULL) == SLM2_OK && room >= SLM2_WEB_EVENT_ROOM)
    (void)!slm2_web_event_words(e, SLM2_EVENT_PROGRESS, words, 4);
}

slm2_status slm2_web_event_ready(slm2_web_engine *e) {
  payload p = {e->payload, 0};
  const slm2_header *h = slm2_model_header(e->model);
  const slm2_config *c = &h->config;
  const slm2_generation *g = &h->generation;
  const slm2_tokenizer *t = slm2_model_tokenizer(e->model);
  uint8_t identity[32];
  slm2_model_identity(e->model, identity);
  put_bytes(&p, identity, sizeof identity);
  const uint32_t words[] = {c->vocab, c->layers, c->heads, c->kv_heads, c->head_dim, c->hidden, c->intermediate, c->max_positions,
                            (uint32_t)e->plan.context, (uint32_t)e->plan.profile, (uint32_t)e->plan.kv_type,
                            (uint32_t)e->plan.threads, h->chat_format, t == NULL ? 0 : slm2_tokenizer_size(t), g->do_sample,
                            g->top_k};
  for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) put_u32(&p, words[i]);
  put_f32(&p, g->temperature);
  put_f32(&p, g->top_p);
  put_f32(&p, g->repeat_penalty);
  put_u32(&p, e->verified);
  put_text(&p, h->license);
  put_text(&p, h->source);
  put_text(&p, slm2_backend_name(slm2_backend_default()));
  return send(e, SLM2_EVENT_READY, &p);
}

slm2_status slm2_web_event_token(slm2_web_engine *e, const slm2_token_event *token) {
  payload p = {e->payload, 0};
  put_u32(&p, token->id);
  put_u32(&p, token->position);
  put_f32(&p, token->logprob);
  put_u32(&p, token->channel);
  put_u32(&p, token->finish);
  put_u32(&p, (uint32_t)token->n_text);
  put_bytes(&p, token->text, token->n_text);
  return send(e, SLM2_EVENT_TOKEN, &p);
}

slm2_status slm2_web_event_done(slm2_web_engine *e) {
  payload p = {e->payload, 0};
  slm2_web_answer *a = &e->answer;
  uint8_t digest[32];
  slm2_sha256_final(&a->digest, digest);
  put_u32(&p, a->finish);
  put_u32(&p, a->n_prompt);
  put_u32(&p, a->reused);
  put_u32(&p, a->generator == NULL ? 0 : slm2_generator_count(a->generator));
  put_f64(&p, a->prefill_ms);
  put_f64(&p, a->decode_ms);
  put_u32(&p, a->generator == NULL ? 0 : slm2_generator_drafted(a->generator));
  put_u32(&p, a->generator == NULL ? 0 : slm2_generator_accepted(a->generator));
  put_bytes(&p, digest, sizeof digest);
  return send(e, SLM2_EVENT_DONE, &p);
}

slm2_status slm2_web_event_failed(slm2_web_engine *e) {
  payload p = {e->payload, 0};
  const slm2_error *error = e->error;
  put_u32(&p, error->code);
  put_u32(&p, 0);
  put_u64(&p, error->offset);
  put_text(&p, error->operation);
  put_text(&p, error->name);
  put_text(&p, error->message);
  return send(e, SLM2_EVENT_FAILED, &p);
}

slm2_status slm2_web_event_digested(slm2_web_engine *e, const uint8_t sha256[32]) {
  payload p = {e->payload, 0};
  put_u32(&p, e->n_ids);
  put_bytes(&p, sha256, 32);
  return send(e, SLM2_EVENT_DIGESTED, &p);
}
