/* tests/unit/web_engine.h: an engine with a tiny model in a lent memory, requests to it, and what the same request gives
 * without any engine. */
#ifndef SLM2_WEB_TEST_ENGINE_H
#define SLM2_WEB_TEST_ENGINE_H

#include "tests/unit/tiny_model.h"
#include "tests/unit/web_host.h"

enum { WEB_AB = 256, WEB_LONG, WEB_EOS = 300, WEB_THINK, WEB_UNTHINK };
static const tiny_token web_tokens[] = {{WEB_AB, "ab", 0}, {WEB_LONG, "one END two", 0}, {WEB_EOS, "<|end|>", 2},
                                        {WEB_THINK, "<think>", 1}, {WEB_UNTHINK, "</think>", 1}};

/* With the bytes as tokens and a few more (vocab 320). */
static inline tiny_file web_text_model(void) {
  size_t n;
  uint8_t *tokenizer = tiny_tokenizer(web_tokens, 5, &n);
  tiny_file f = tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, tokenizer, n, WEB_EOS);
  free(tokenizer);
  return f;
}

typedef struct web_setup {
  uint32_t context, profile, kv, tile, threads;
} web_setup;
static const web_setup web_plain = {48, SLM2_PROFILE_Q8, SLM2_KV_F32, 8, 1};

static web_page page;
static web_event event;
static double now_ms;
static slm2_web_plan_terms web_plan_terms;

/* The plan as the store would make it, from the prefix alone, on a memory of its own. */
static inline slm2_status web_make_plan(const uint8_t *file, uint64_t n, const web_setup *s, uint32_t pages) {
  const uint32_t heap = slm2_web_heap();
  uint64_t need;
  web_lend(SLM2_WEB_CONTROL);
  memcpy(slm2_web_at(heap + 1024), file, 8);
  CHECK(slm2_web_header_need(heap + 1024, 8, n, heap) == SLM2_OK);
  need = slm2_load_u64(slm2_web_at(heap));
  memcpy(slm2_web_at(heap + 1024), file, (size_t)need);
  slm2_status status = slm2_web_plan(heap + 1024, (uint32_t)need, n, s->context, s->profile, s->kv, s->tile, s->threads, pages,
                                     heap);
  slm2_web_plan_load(&web_plan_terms, slm2_web_at(heap));
  return status;
}

/* A fresh memory of exactly the plan's bytes with the file in place, started. */
static inline void web_place(const uint8_t *file, uint64_t n, const web_setup *s) {
  CHECK_CASE(web_make_plan(file, n, s, 4096) == SLM2_OK, slm2_web_failure()->message);
  web_lend(web_plan_terms.total);
  memset(slm2_web_at((uint32_t)web_plan_terms.at_work), 0xff, (size_t)(web_plan_terms.total - web_plan_terms.at_work));
  memcpy(slm2_web_at((uint32_t)web_plan_terms.at_file), file, (size_t)n);
  web_set(SLM2_WORD_MAGIC, SLM2_WEB_MAGIC);
  web_set(SLM2_WORD_VERSION, SLM2_WEB_VERSION);
  slm2_web_plan_store(slm2_web_at(SLM2_WEB_CONTROL + 4 * SLM2_WORD_PLAN), &web_plan_terms);
  page = (web_page){0};
  now_ms = 0;
}

static inline uint32_t web_step(void) { return slm2_web_step(now_ms += 1.0); }

/* Steps until an event comes (true) or there is nothing to do. */
static inline int web_next(void) {
  for (uint32_t turn = SLM2_TURN_MORE;;) {
    if (web_take(&page, &event)) return 1;
    if (turn != SLM2_TURN_MORE) return 0;
    turn = web_step();
  }
}

/* A whole command, in parts; steps between them. Returns its number. */
static inline uint32_t web_send(uint32_t op, const uint8_t *payload, size_t n) {
  const uint32_t request = ++page.request;
  for (size_t at = 0; at == 0 || at < n; at += SLM2_WEB_PAYLOAD_MAX) {
    uint32_t piece = (uint32_t)(n - at < SLM2_WEB_PAYLOAD_MAX ? n - at : SLM2_WEB_PAYLOAD_MAX);
    while (!web_put(&page, op, at + piece < n, request, payload == NULL ? NULL : payload + at, piece))
      if (!CHECK(web_step() <= SLM2_TURN_MORE)) return request;
  }
  return request;
}

static inline int web_open_with(uint32_t verify) {
  uint8_t payload[8] = {(uint8_t)verify};
  web_send(SLM2_COMMAND_OPEN, payload, sizeof payload);
  while (web_next())
    if (event.op != SLM2_EVENT_PROGRESS) return event.op == SLM2_EVENT_READY;
  return 0;
}
static inline void web_open(const uint8_t *file, uint64_t n, const web_setup *s) {
  web_place(file, n, s);
  CHECK_CASE(slm2_web_start() == SLM2_OK, slm2_web_failure()->message);
  CHECK_CASE(web_open_with(0), slm2_web_failure()->message);
}

/* --- GENERATE ------------------------------------------------------------------------- */

typedef struct web_question {
  uint32_t kind, flags;
  slm2_generate_params p;
  const void *text;
  size_t n;
} web_question;

static const slm2_sampler_params web_greedy = {0.0f, 0, 1.0f, 0.0f, 1.0f, 0};
static const slm2_sampler_params web_sampled = {1.5f, 40, 0.98f, 0.01f, 1.1f, 77};

/* malloc'ed. */
static inline uint8_t *web_generate_payload(const web_question *q, size_t *n) {
  size_t stops = 0;
  for (uint32_t i = 0; i < q->p.n_stop && i < SLM2_MAX_STOP_STRINGS; i++) stops += 4 + q->p.stop_bytes[i];
  *n = 96 + stops + q->n;
  uint8_t *out = calloc(1, *n), *at = out + 96;
  const uint32_t words[] = {q->kind, q->flags, slm2_float_bits(q->p.sampler.temperature), q->p.sampler.top_k,
                            slm2_float_bits(q->p.sampler.top_p), slm2_float_bits(q->p.sampler.min_p),
                            slm2_float_bits(q->p.sampler.repeat_penalty), q->p.max_tokens, (uint32_t)q->p.sampler.seed,
                            (uint32_t)(q->p.sampler.seed >> 32), q->p.speculate, q->p.n_stop, (uint32_t)stops};
  for (uint32_t i = 0; i < 13; i++) slm2_store_u32(out + 4 * i, words[i]);
  for (uint32_t i = 0; i < q->p.n_stop && i < SLM2_MAX_STOP_STRINGS; i++) {
    slm2_store_u32(at, (uint32_t)q->p.stop_bytes[i]);
    memcpy(at + 4, q->p.stop[i], q->p.stop_bytes[i]);
    at += 4 + q->p.stop_bytes[i];
  }
  if (q->n > 0) memcpy(at, q->text, q->n);
  return out;
}

static inline uint32_t web_ask(const web_question *q) {
  size_t n;
  uint8_t *payload = web_generate_payload(q, &n);
  uint32_t request = web_send(SLM2_COMMAND_GENERATE, payload, n);
  free(payload);
  return request;
}

/* What came of an answer: the TOKEN payloads one after the other, and the last event. */
typedef struct web_answer {
  uint8_t tokens[1 << 16];
  size_t n_tokens;
  uint32_t last_op, finish, status, prompt, reused, completion, drafted;
  uint8_t digest[32];
} web_answer;

static inline void web_answer_event(web_answer *a) {
  if (event.op == SLM2_EVENT_BEGUN) {
    CHECK(event.n == 8 && a->n_tokens == 0);
    a->prompt = slm2_load_u32(event.payload);
    a->reused = slm2_load_u32(event.payload + 4);
  } else if (event.op == SLM2_EVENT_TOKEN) {
    CHECK(event.n == 24 + slm2_load_u32(event.payload + 20) && a->n_tokens + event.n <= sizeof a->tokens);
    memcpy(a->tokens + a->n_tokens, event.payload, event.n);
    a->n_tokens += event.n;
  } else if (event.op == SLM2_EVENT_DONE) {
    CHECK(event.n == 72 && a->prompt == slm2_load_u32(event.payload + 4) && a->reused == slm2_load_u32(event.payload + 8));
    a->finish = slm2_load_u32(event.payload);
    a->completion = slm2_load_u32(event.payload + 12);
    a->drafted = slm2_load_u32(event.payload + 32);
    memcpy(a->digest, event.payload + 40, 32);
  } else if (event.op == SLM2_EVENT_FAILED) {
    a->status = slm2_load_u32(event.payload);
  }
  a->last_op = event.op;
}

/* Everything up to the last event. */
static inline void web_answer_of(uint32_t request, web_answer *a) {
  memset(a, 0, sizeof *a);
  while (a->last_op != SLM2_EVENT_DONE && a->last_op != SLM2_EVENT_FAILED && web_next()) {
    CHECK(event.request == request);
    web_answer_event(a);
  }
}
static inline void web_answer_to(const web_question *q, web_answer *a) { web_answer_of(web_ask(q), a); }

/* The same in the same layout, from a session of its own. */
static inline void web_expect(const tiny_model *m, const web_setup *s, const web_question *q, const uint32_t *ids, uint32_t n_ids,
                              web_answer *a) {
  slm2_session_params params = {.context = s->context, .tile = 1, .profile = (slm2_profile)s->profile, .kv = (slm2_kv_type)s->kv};
  slm2_session *session = tiny_session(m->model, &params);
  slm2_generate_params p = q->p;
  slm2_generator *g;
  slm2_error error;
  slm2_sha256 sha;
  p.speculate = 0;
  memset(a, 0, sizeof *a);
  slm2_sha256_init(&sha);
  CHECK(slm2_session_append(session, ids, n_ids, NULL, &error) == SLM2_OK);
  void *memory = tiny_memory(slm2_generator_bytes());
  CHECK_CASE(slm2_generator_init(memory, slm2_generator_bytes(), session, &p, &g, &error) == SLM2_OK, error.message);
  for (slm2_token_event e = {0}; e.finish == SLM2_FINISH_NONE;) {
    CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_OK);
    uint8_t *to = a->tokens + a->n_tokens;
    const uint32_t words[] = {e.id, e.position, slm2_float_bits(e.logprob), e.channel, e.finish, (uint32_t)e.n_text};
    for (uint32_t i = 0; i < 6; i++) slm2_store_u32(to + 4 * i, words[i]);
    memcpy(to + 24, e.text, e.n_text);
    a->n_tokens += 24 + e.n_text;
    a->finish = e.finish;
    slm2_sha256_update(&sha, to, 4);
    slm2_sha256_update(&sha, to + 8, 4);
  }
  a->last_op = SLM2_EVENT_DONE;
  a->prompt = n_ids;
  a->completion = slm2_generator_count(g);
  slm2_sha256_final(&sha, a->digest);
  free(memory);
  free(session);
}

static inline int web_same(const web_answer *a, const web_answer *b) {
  return a->last_op == b->last_op && a->finish == b->finish && a->prompt == b->prompt && a->completion == b->completion &&
         a->n_tokens == b->n_tokens && memcmp(a->tokens, b->tokens, a->n_tokens) == 0 && memcmp(a->digest, b->digest, 32) == 0;
}

#endif
