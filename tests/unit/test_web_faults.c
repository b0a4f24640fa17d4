/* tests/unit/test_web_faults.c: the engine when something is wrong: requests it refuses by name, cancels at any moment, values
 * that are not finite, plans and files that do not fit, memory that somebody else wrote. After a refusal the next answer has
 * the bits of a fresh one; after what cannot be, there is no next answer. */
#include <stddef.h>

#include "session/session.h"
#include "tests/unit/web_engine.h"
#include "wasm/engine.h"

static tiny_model text_model, plain_model; /* with and without a tokenizer */
static web_answer got, want;

static const uint32_t prompt_ids[] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 62, 7, 6, 5, 4, 3, 2, 1};
#define N_PROMPT 17u
static uint8_t prompt[4 * N_PROMPT];
static web_question question = {.kind = 2, .p = {.max_tokens = 20}, .text = prompt, .n = sizeof prompt};

static void open_plain(void) { web_open(plain_model.file.bytes, plain_model.file.n, &web_plain); }

/* The next answer has the bits of a fresh one. */
static void check_fresh(const char *label) {
  web_expect(&plain_model, &web_plain, &question, prompt_ids, N_PROMPT, &want);
  web_answer_to(&question, &got);
  CHECK_CASE(web_same(&got, &want), label);
}

static int failed_with(slm2_status status, const char *name) {
  const uint8_t *at = event.payload + 16;
  CHECK(event.op == SLM2_EVENT_FAILED && slm2_load_u32(event.payload + 4) == 0);
  at += 4 + slm2_load_u32(at); /* operation */
  return slm2_load_u32(event.payload) == status && slm2_load_u32(at) == strlen(name) && memcmp(at + 4, name, strlen(name)) == 0;
}

/* --- refusals ---------------------------------------------------------------------------- */

typedef struct bad_word {
  const char *name;
  uint32_t word, value; /* of GENERATE's head */
  slm2_status status;
} bad_word;

static void test_bad_words(void) {
  static const bad_word cases[] = {
      {"kind", 0, 3, SLM2_E_ARGUMENT},          {"kind", 0, 0, SLM2_E_UNSUPPORTED},       {"flags", 1, 8, SLM2_E_ARGUMENT},
      {"temperature", 2, 0xbf800000, SLM2_E_ARGUMENT}, {"temperature", 2, 0x7fc00000, SLM2_E_ARGUMENT},
      {"temperature", 2, 0x7f800000, SLM2_E_ARGUMENT}, {"top_p", 4, 0x40000000, SLM2_E_ARGUMENT},
      {"top_p", 4, 0xffc00000, SLM2_E_ARGUMENT}, {"min_p", 5, 0xbf000000, SLM2_E_ARGUMENT},
      {"repeat_penalty", 6, 0, SLM2_E_ARGUMENT}, {"max_tokens", 7, 0, SLM2_E_ARGUMENT},  {"speculate", 10, 9, SLM2_E_ARGUMENT},
      {"speculate", 10, 0xfffffffe, SLM2_E_ARGUMENT}, {"stop", 11, 17, SLM2_E_ARGUMENT}, {"stop", 11, 0xffffffff,
                                                                                          SLM2_E_ARGUMENT},
      {"stop", 11, 1, SLM2_E_ARGUMENT},         {"stop", 12, 4, SLM2_E_ARGUMENT},         {"stop", 12, 1000, SLM2_E_ARGUMENT},
      {"head", 13, 1, SLM2_E_ARGUMENT},         {"head", 23, 0x80000000, SLM2_E_ARGUMENT}};
  open_plain();
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t n;
    uint8_t *payload = web_generate_payload(&question, &n);
    slm2_store_u32(payload + 4 * cases[i].word, cases[i].value);
    uint32_t request = web_send(SLM2_COMMAND_GENERATE, payload, n);
    CHECK_CASE(web_next() && event.request == request && failed_with(cases[i].status, cases[i].name), cases[i].name);
    CHECK(web_word(SLM2_WORD_STATE) == 2);
    free(payload);
  }
  check_fresh("after refusals");
}

static void refused(const web_question *q, slm2_status status, const char *name) {
  web_answer_to(q, &got);
  CHECK_CASE(got.last_op == SLM2_EVENT_FAILED && got.n_tokens == 0 && failed_with(status, name), name);
}

static void test_bad_prompts(void) {
  uint8_t ids[4 * 48];
  web_question q = question;
  open_plain();
  for (uint32_t i = 0; i < 48; i++) slm2_store_u32(ids + 4 * i, i);
  q.text = ids;
  q.n = 4 * 48;
  refused(&q, SLM2_E_CONTEXT_OVERFLOW, "prompt");
  q.n = 4 * 47; /* and one token of an answer */
  web_answer_to(&q, &got);
  CHECK(got.last_op == SLM2_EVENT_DONE && got.finish == SLM2_FINISH_LENGTH && got.completion == 1);
  q.n = 0;
  refused(&q, SLM2_E_ARGUMENT, "prompt");
  q.n = 7;
  refused(&q, SLM2_E_ARGUMENT, "ids");
  slm2_store_u32(ids + 4, 64);
  q.n = 8;
  refused(&q, SLM2_E_TOKEN, "prompt");
  slm2_store_u32(ids + 4, UINT32_MAX);
  refused(&q, SLM2_E_TOKEN, "prompt");
  web_question stops = question;
  stops.p.n_stop = 1;
  stops.p.stop[0] = "x";
  stops.p.stop_bytes[0] = 1;
  refused(&stops, SLM2_E_ARGUMENT, "stop"); /* no tokenizer, no text */
  check_fresh("after prompts");
  web_open(text_model.file.bytes, text_model.file.n, &web_plain);
  static const char long_stop[257];
  stops.p.stop[0] = long_stop;
  static const size_t sizes[] = {0, 257};
  for (uint32_t i = 0; i < 2; i++) {
    stops.p.stop_bytes[0] = sizes[i];
    refused(&stops, SLM2_E_ARGUMENT, "stop");
  }
  stops.p.stop[0] = "\xff";
  stops.p.stop_bytes[0] = 1;
  refused(&stops, SLM2_E_ARGUMENT, "stop");
  q = question;
  q.kind = 0; /* no known template */
  refused(&q, SLM2_E_UNSUPPORTED, "chat_format");
}

typedef struct bad_command {
  const char *name;
  uint32_t op, n, words[4];
  slm2_status status;
} bad_command;

static void test_bad_commands(void) {
  static const bad_command cases[] = {
      {"bytes", SLM2_COMMAND_GENERATE, 95, {2}, SLM2_E_ARGUMENT},
      {"bytes", SLM2_COMMAND_GENERATE, 0, {0}, SLM2_E_ARGUMENT},
      {"bytes", SLM2_COMMAND_COUNT, 7, {2}, SLM2_E_ARGUMENT},
      {"flags", SLM2_COMMAND_COUNT, 8, {2, 4}, SLM2_E_ARGUMENT},
      {"kind", SLM2_COMMAND_COUNT, 8, {4}, SLM2_E_ARGUMENT},
      {"bytes", SLM2_COMMAND_DIGEST, 4, {0}, SLM2_E_ARGUMENT},
      {"ids", SLM2_COMMAND_DIGEST, 8, {0, 0}, SLM2_E_ARGUMENT},
      {"ids", SLM2_COMMAND_DIGEST, 12, {0, 2, 1}, SLM2_E_ARGUMENT},
      {"ids", SLM2_COMMAND_DIGEST, 12, {0, 0x40000001, 1}, SLM2_E_ARGUMENT},
      {"", SLM2_COMMAND_DIGEST, 12, {0, 1, 64}, SLM2_E_TOKEN},
      {"", SLM2_COMMAND_OPEN, 8, {0, 0}, SLM2_E_ARGUMENT},
  };
  open_plain();
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t payload[128] = {0};
    for (uint32_t k = 0; k < 4; k++) slm2_store_u32(payload + 4 * k, cases[i].words[k]);
    web_send(cases[i].op, payload, cases[i].n);
    CHECK_CASE(web_next() && failed_with(cases[i].status, cases[i].name), cases[i].name);
  }
  uint8_t many[8 + 4 * 49] = {0};
  slm2_store_u32(many + 4, 49);
  web_send(SLM2_COMMAND_DIGEST, many, sizeof many);
  CHECK(web_next() && failed_with(SLM2_E_CONTEXT_OVERFLOW, "ids"));
  check_fresh("after commands");
  web_place(plain_model.file.bytes, plain_model.file.n, &web_plain); /* nothing is open */
  CHECK(slm2_web_start() == SLM2_OK);
  for (uint32_t op = SLM2_COMMAND_GENERATE; op <= SLM2_COMMAND_RESET; op++) {
    web_send(op, NULL, 0);
    CHECK(web_next() && failed_with(SLM2_E_ARGUMENT, "") && web_word(SLM2_WORD_STATE) == 0);
  }
  static const uint8_t verify_2[8] = {2}, zero_1[8] = {1, 0, 0, 0, 1};
  web_send(SLM2_COMMAND_OPEN, verify_2, 8);
  CHECK(web_next() && failed_with(SLM2_E_ARGUMENT, "verify"));
  web_send(SLM2_COMMAND_OPEN, zero_1, 8);
  CHECK(web_next() && failed_with(SLM2_E_ARGUMENT, "zero"));
  web_send(SLM2_COMMAND_OPEN, zero_1, 7);
  CHECK(web_next() && failed_with(SLM2_E_ARGUMENT, "bytes") && web_open_with(1));
}

/* Exactly input_max is taken, one byte more is not, nor a thousand times as much. */
static void test_long_commands(void) {
  const size_t huge = 4 * SLM2_WEB_RING_BYTES;
  uint8_t *payload = calloc(1, huge);
  web_open(text_model.file.bytes, text_model.file.n, &web_plain);
  const size_t most = (size_t)web_plan_terms.input_max;
  CHECK(most == SLM2_WEB_INPUT_MIN + 16 * 48);
  payload[0] = 1; /* COUNT of text */
  memset(payload + 8, 'x', huge - 8);
  web_send(SLM2_COMMAND_COUNT, payload, most);
  CHECK(web_next() && event.op == SLM2_EVENT_COUNTED && slm2_load_u32(event.payload) == most - 8);
  web_send(SLM2_COMMAND_COUNT, payload, most + 1);
  CHECK(web_next() && failed_with(SLM2_E_ARGUMENT, "command"));
  web_send(SLM2_COMMAND_COUNT, payload, huge);
  CHECK(web_next() && failed_with(SLM2_E_ARGUMENT, "command"));
  memset(payload + 8, 0xff, most - 8); /* each byte becomes U+FFFD: three bytes, three ids */
  web_send(SLM2_COMMAND_COUNT, payload, most);
  CHECK(web_next() && (event.op == SLM2_EVENT_COUNTED || failed_with(SLM2_E_MEMORY, "ids")));
  free(payload);
}

/* --- cancel -------------------------------------------------------------------------------- */

static uint64_t runs_left; /* until the page cancels, in runs of the pool */
static uint32_t cancel_value;
static void cancelling_run(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain) {
  if (runs_left > 0 && --runs_left == 0) web_set(SLM2_WORD_CANCEL, cancel_value);
  web_pool_run(self, job, context, units, grain);
}

/* How many runs of the pool the answer takes. */
static uint32_t count_runs(void) {
  runs_left = UINT64_MAX;
  web_answer_to(&question, &got);
  CHECK(web_same(&got, &want));
  const uint64_t runs = UINT64_MAX - runs_left;
  runs_left = 0;
  return (uint32_t)runs;
}

/* A hundred stops at random moments: each request ends with DONE, and the next has the bits of a fresh one. */
static void test_cancel(void) {
  uint64_t random = 3;
  uint32_t in_prefill = 0, in_decode = 0, too_late = 0;
  open_plain();
  web_expect(&plain_model, &web_plain, &question, prompt_ids, N_PROMPT, &want);
  web_pool.run = cancelling_run;
  const uint32_t all = count_runs();
  for (uint32_t i = 0; i < 100; i++) {
    web_send(SLM2_COMMAND_RESET, NULL, 0);
    CHECK(web_next());
    cancel_value = page.request + 1;
    runs_left = 1 + test_random(&random) % (all + all / 4);
    web_answer_to(&question, &got);
    CHECK(got.last_op == SLM2_EVENT_DONE);
    if (got.finish != SLM2_FINISH_CANCELLED) {
      CHECK(web_same(&got, &want) && ++too_late);
      web_set(SLM2_WORD_CANCEL, cancel_value); /* stops nothing */
    } else if (got.completion == 0) {
      CHECK(got.n_tokens == 0 && ++in_prefill);
    } else {
      CHECK(got.n_tokens < want.n_tokens && memcmp(got.tokens, want.tokens, got.n_tokens) == 0 && ++in_decode);
    }
    runs_left = 0;
    web_answer_to(&question, &got);
    CHECK(web_same(&got, &want));
  }
  web_pool.run = web_pool_run;
  CHECK(in_prefill > 5 && in_decode > 5 && too_late > 0);
}

/* Before the engine has seen the request; and a number that is another request's. */
static void test_early_cancel(void) {
  open_plain();
  uint32_t request = web_ask(&question);
  web_set(SLM2_WORD_CANCEL, request);
  web_answer_of(request, &got);
  CHECK(got.last_op == SLM2_EVENT_DONE && got.finish == SLM2_FINISH_CANCELLED && got.completion == 0 && got.prompt == N_PROMPT);
  check_fresh("after an early cancel");
  web_set(SLM2_WORD_CANCEL, page.request); /* the last one, which is over */
  check_fresh("after a late cancel");
  uint8_t digest[8 + sizeof prompt] = {1, 0, 0, 0, N_PROMPT};
  memcpy(digest + 8, prompt, sizeof prompt);
  request = web_send(SLM2_COMMAND_DIGEST, digest, sizeof digest);
  web_set(SLM2_WORD_CANCEL, request);
  CHECK(web_next() && failed_with(SLM2_E_CANCELLED, ""));
  check_fresh("after a cancelled digest");
  web_place(plain_model.file.bytes, plain_model.file.n, &web_plain);
  CHECK(slm2_web_start() == SLM2_OK);
  for (uint32_t verify = 0; verify < 2; verify++) {
    uint8_t payload[8] = {(uint8_t)verify};
    web_set(SLM2_WORD_CANCEL, web_send(SLM2_COMMAND_OPEN, payload, 8));
    CHECK(web_next() && failed_with(SLM2_E_CANCELLED, "") && web_word(SLM2_WORD_STATE) == 0);
  }
  CHECK(web_open_with(1));
}

/* Numbers of other requests, stored while this one runs: they stop nothing, whenever they come. All ones stops whatever runs. */
static void test_others_cancel(void) {
  open_plain();
  web_expect(&plain_model, &web_plain, &question, prompt_ids, N_PROMPT, &want);
  web_pool.run = cancelling_run;
  const uint32_t all = count_runs(), step = 1 + all / 30;
  for (uint32_t runs = 0; runs < all; runs += step)
    for (uint32_t k = 0; k < 3; k++) {
      web_send(SLM2_COMMAND_RESET, NULL, 0);
      CHECK(web_next());
      const uint32_t own = page.request + 1, others[] = {own - 1, own + 1, 1};
      cancel_value = others[k];
      runs_left = 1 + runs;
      web_answer_to(&question, &got);
      CHECK(web_same(&got, &want));
      CHECK(runs_left == 0); /* it was stored while the answer was made */
    }
  web_send(SLM2_COMMAND_RESET, NULL, 0);
  CHECK(web_next());
  cancel_value = UINT32_MAX;
  runs_left = 30;
  web_answer_to(&question, &got);
  CHECK(got.last_op == SLM2_EVENT_DONE && got.finish == SLM2_FINISH_CANCELLED);
  web_pool.run = web_pool_run;
  uint8_t digest[8 + sizeof prompt] = {1, 0, 0, 0, N_PROMPT};
  memcpy(digest + 8, prompt, sizeof prompt);
  web_set(SLM2_WORD_CANCEL, web_send(SLM2_COMMAND_DIGEST, digest, sizeof digest) + 1);
  CHECK(web_next() && (event.op == SLM2_EVENT_PROGRESS || event.op == SLM2_EVENT_DIGESTED));
  web_place(plain_model.file.bytes, plain_model.file.n, &web_plain);
  CHECK(slm2_web_start() == SLM2_OK);
  web_set(SLM2_WORD_CANCEL, 2);
  CHECK(web_open_with(1)); /* request 1 */
  web_set(SLM2_WORD_CANCEL, 1);
  check_fresh("after the number of the load");
}

/* The event ring is full and nobody reads: a cancel still ends the request, in the room kept for it. */
static void test_cancel_full(void) {
  web_question q = question;
  q.p.max_tokens = 1;
  open_plain();
  uint32_t turn, request = 0;
  do { /* fill the ring with short answers */
    request = web_ask(&q);
    while ((turn = web_step()) == SLM2_TURN_MORE)
      ;
  } while (turn == SLM2_TURN_IDLE);
  CHECK(turn == SLM2_TURN_FULL && web_step() == SLM2_TURN_FULL);
  web_set(SLM2_WORD_CANCEL, request);
  while ((turn = web_step()) == SLM2_TURN_MORE)
    ;
  CHECK(turn == SLM2_TURN_FULL || turn == SLM2_TURN_IDLE);
  uint32_t done = 0;
  for (; web_next(); done = event.op == SLM2_EVENT_DONE ? event.request : done)
    CHECK(event.op == SLM2_EVENT_BEGUN || event.op == SLM2_EVENT_PROGRESS || event.op == SLM2_EVENT_TOKEN ||
          event.op == SLM2_EVENT_DONE);
  CHECK(done == request);
  check_fresh("after a cancel with a full ring");
}

/* --- numbers --------------------------------------------------------------------------------- */

/* A row of the embedding that nobody verified is not finite: the request fails, the session does not. */
static void test_not_finite(void) {
  slm2_section s;
  web_place(plain_model.file.bytes, plain_model.file.n, &web_plain);
  uint8_t *w = tiny_section(&plain_model.file, "model.embed_tokens.weight", &s);
  uint64_t at = (uint64_t)(w - plain_model.file.bytes) + slm2_scale_at(SLM2_FORM_PANELS, (uint32_t)s.dims[1], 50, 0);
  slm2_store_u16(slm2_web_at((uint32_t)(web_plan_terms.at_file + at)), 0x7e00);
  CHECK(slm2_web_start() == SLM2_OK && web_open_with(0));
  check_fresh("before");
  uint8_t ids[4 * N_PROMPT];
  memcpy(ids, prompt, sizeof ids);
  slm2_store_u32(ids + 4 * 12, 50);
  web_question q = question;
  q.text = ids;
  web_answer_to(&q, &got);
  CHECK(got.last_op == SLM2_EVENT_FAILED && got.status == SLM2_E_NUMERICAL && web_word(SLM2_WORD_STATE) == 2);
  check_fresh("after a value that is not finite");
}

/* --- plans and files --------------------------------------------------------------------------- */

/* Each word of the plan, changed: refused by start or by OPEN, never used. */
static void test_plan(void) {
  const web_setup s = {48, SLM2_PROFILE_Q8, SLM2_KV_F32, 16, 2};
  for (uint32_t i = 0; i < SLM2_WEB_PLAN_WORDS; i++)
    for (uint32_t k = 0; k < 4; k++) {
      web_place(plain_model.file.bytes, plain_model.file.n, &s);
      uint8_t *word = slm2_web_at(SLM2_WEB_CONTROL + 4 * SLM2_WORD_PLAN) + 8 * i;
      const uint64_t old = slm2_load_u64(word), values[] = {old + 1, old - 1, old | UINT64_C(1) << 63, old + (UINT64_C(1) << 32)};
      slm2_store_u64(word, values[k]);
      slm2_status status = slm2_web_start();
      if (i == 29 && k < 2) { /* the limit: another one gives the same plan */
        CHECK(status == SLM2_OK && web_open_with(0));
        continue;
      }
      if (status == SLM2_OK) CHECK(!web_open_with(0) && event.op == SLM2_EVENT_FAILED);
      else CHECK(status == SLM2_E_ARGUMENT || status == SLM2_E_MEMORY);
      CHECK(web_word(SLM2_WORD_STATE) == 0);
    }
}

static void test_start(void) {
  static const struct { uint32_t word, value; slm2_status status; } cases[] = {
      {SLM2_WORD_MAGIC, 0, SLM2_E_FORMAT},        {SLM2_WORD_VERSION, 2, SLM2_E_VERSION},     {SLM2_WORD_STATE, 2,
                                                                                               SLM2_E_ARGUMENT},
      {SLM2_WORD_COMMAND_TAIL, 16, SLM2_E_ARGUMENT}, {SLM2_WORD_EVENT_HEAD, 16, SLM2_E_ARGUMENT}, {SLM2_WORD_EVENT_TAIL, 16,
                                                                                                   SLM2_E_ARGUMENT}};
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    web_place(plain_model.file.bytes, plain_model.file.n, &web_plain);
    web_set(cases[i].word, cases[i].value);
    CHECK(slm2_web_start() == cases[i].status && slm2_web_step(0) == SLM2_TURN_POISONED);
  }
  web_place(plain_model.file.bytes, plain_model.file.n, &web_plain);
  slm2_web_native_host.n--;
  CHECK(slm2_web_start() == SLM2_E_MEMORY && slm2_web_trial(1) == -1.0);
  slm2_web_native_host.n = SLM2_WEB_CONTROL;
  CHECK(slm2_web_start() == SLM2_E_MEMORY);
}

/* A byte of the data changed: OPEN with verification refuses it and leaves none of the file; without, it is believed. */
static void test_damage(void) {
  uint64_t random = 9;
  for (uint32_t i = 0; i < 8; i++) {
    web_place(plain_model.file.bytes, plain_model.file.n, &web_plain);
    uint64_t data = 8 + plain_model.file.header.header_bytes, left = plain_model.file.n - data;
    uint8_t *file = slm2_web_at((uint32_t)web_plan_terms.at_file);
    file[data + test_random(&random) % left] ^= (uint8_t)(1u << i);
    CHECK(slm2_web_start() == SLM2_OK && !web_open_with(1) && slm2_load_u32(event.payload) == SLM2_E_INTEGRITY);
    uint32_t any = 0;
    for (uint64_t k = 0; k < plain_model.file.n; k++) any |= file[k];
    CHECK(any == 0 && web_word(SLM2_WORD_STATE) == 0 && !web_open_with(1) && event.op == SLM2_EVENT_FAILED);
  }
  web_place(plain_model.file.bytes, plain_model.file.n, &web_plain); /* another file of the same size */
  memset(slm2_web_at((uint32_t)web_plan_terms.at_file), 0x7b, (size_t)plain_model.file.n);
  CHECK(slm2_web_start() == SLM2_OK && !web_open_with(0) && event.op == SLM2_EVENT_FAILED);
}

/* --- what cannot be ------------------------------------------------------------------------------ */

static void check_poisoned(const char *label, const char *name) {
  CHECK_CASE(web_step() == SLM2_TURN_POISONED && web_word(SLM2_WORD_STATE) == SLM2_STATE_POISONED, label);
  CHECK_CASE(strcmp(slm2_web_failure()->name, name) == 0 && slm2_web_failure()->code == SLM2_E_INTERNAL_INVARIANT, label);
  CHECK_CASE(web_step() == SLM2_TURN_POISONED && web_step() == SLM2_TURN_POISONED, label);
}
static void check_told(const char *label) {
  int told = 0;
  while (web_take(&page,
                  &event)) told = event.op == SLM2_EVENT_FAILED && slm2_load_u32(event.payload) == SLM2_E_INTERNAL_INVARIANT;
  CHECK_CASE(told, label);
}

static void test_poison(void) {
  open_plain(); /* a record that cannot be */
  web_put(&page, 9, 0, 2, NULL, 0);
  check_poisoned("op 9", "command op");
  check_told("op 9");
  web_send(SLM2_COMMAND_RESET, NULL, 0);
  CHECK(web_step() == SLM2_TURN_POISONED && !web_take(&page, &event));
  open_plain(); /* a request's number comes again */
  web_put(&page, SLM2_COMMAND_RESET, 0, page.request, NULL, 0);
  check_poisoned("request", "command order");
  check_told("request");
  open_plain(); /* something between two parts */
  web_put(&page, SLM2_COMMAND_COUNT, SLM2_FLAG_MORE, 7, prompt, 8);
  CHECK(web_step() == SLM2_TURN_IDLE);
  web_put(&page, SLM2_COMMAND_RESET, 0, 8, NULL, 0);
  check_poisoned("between parts", "command order");
  open_plain(); /* the tail of the events */
  web_set(SLM2_WORD_EVENT_TAIL, 0x12345670);
  check_poisoned("event tail", "event tail");
  open_plain(); /* a compute worker's stack */
  web_ask(&question);
  CHECK(web_step() == SLM2_TURN_MORE);
  web_broken_stack = 3;
  check_poisoned("stack", "");
  check_told("stack");
  web_broken_stack = 0;
}

/* What is kept of the model and of the session's making, written by somebody else: whatever fails of it, or seems to succeed,
 * the engine broke. */
static void test_overwritten(void) {
  static const struct { const char *what, *name; uint32_t op, max_tokens, value; size_t at; } cases[] = {
      {"values that are not finite", "model", SLM2_COMMAND_GENERATE, 20, 0x7fc00000, offsetof(slm2_model, header.config.rms_eps)},
      {"ids that are none", "model", SLM2_COMMAND_GENERATE, 20, 2, offsetof(slm2_model, header.config.vocab)},
      {"an answer", "model", SLM2_COMMAND_GENERATE, 20, 0, offsetof(slm2_model, header.config.layers)},
      {"a digest", "model", SLM2_COMMAND_DIGEST, 0, 0, offsetof(slm2_model, header.config.layers)},
      {"no room", "session", SLM2_COMMAND_GENERATE, 20, 4, offsetof(slm2_session, params.context)},
      {"a refusal", "session", SLM2_COMMAND_GENERATE, 0, 4, offsetof(slm2_session, forward.kv.context)}};
  uint8_t digest[8 + sizeof prompt] = {0, 0, 0, 0, N_PROMPT};
  memcpy(digest + 8, prompt, sizeof prompt);
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    web_question q = question;
    uint32_t turn;
    open_plain();
    check_fresh("before");
    const uint64_t from = strcmp(cases[i].name, "model") == 0 ? web_plan_terms.at_index : web_plan_terms.at_session;
    slm2_store_u32(slm2_web_at((uint32_t)(from + cases[i].at)), cases[i].value);
    q.p.max_tokens = cases[i].max_tokens;
    if (cases[i].op == SLM2_COMMAND_DIGEST) web_send(SLM2_COMMAND_DIGEST, digest, sizeof digest);
    else web_ask(&q);
    while ((turn = web_step()) == SLM2_TURN_MORE)
      ;
    CHECK_CASE(turn == SLM2_TURN_POISONED, cases[i].what);
    check_poisoned(cases[i].what, cases[i].name);
    check_told(cases[i].what);
  }
}

/* Whatever stands in the words of the control block after a start: nothing but refusals and poison, and no access outside the
 * memory (the sanitizers look). */
static void test_noise(void) {
  uint64_t random = 21;
  for (uint32_t i = 0; i < 300; i++) {
    open_plain();
    web_ask(&question);
    for (uint32_t k = 0; k < 4; k++) {
      if (test_random(&random) % 2 == 0) web_step();
      uint32_t word = (uint32_t)(test_random(&random) % 256), value = (uint32_t)test_random(&random);
      if (test_random(&random) % 2 == 0) value = value % 64 * 16;
      web_set(word, value);
      if (test_random(&random) % 4 == 0)
        for (uint32_t b = 0; b < 64; b++) slm2_web_at(SLM2_WEB_COMMANDS)[b] = (uint8_t)test_random(&random);
    }
    uint32_t turn = SLM2_TURN_MORE;
    for (uint32_t k = 0; k < 100 && turn == SLM2_TURN_MORE; k++) turn = web_step();
    CHECK(turn <= SLM2_TURN_POISONED);
  }
}

int main(void) {
  for (uint32_t i = 0; i < N_PROMPT; i++) slm2_store_u32(prompt + 4 * i, prompt_ids[i]);
  question.p.sampler = web_sampled;
  text_model = tiny_load(web_text_model());
  plain_model = tiny_load(tiny_build(&tiny_specs[1], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  test_bad_words();
  test_bad_prompts();
  test_bad_commands();
  test_long_commands();
  test_cancel();
  test_early_cancel();
  test_others_cancel();
  test_cancel_full();
  test_not_finite();
  test_plan();
  test_start();
  test_damage();
  test_poison();
  test_overwritten();
  test_noise();
  web_return();
  tiny_free(&text_model);
  tiny_free(&plain_model);
  return test_end("web_faults");
}
