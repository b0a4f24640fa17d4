/* tests/unit/test_web_engine.c: requests that succeed: what the page gets is what the library gives, to the bit; what is
 * common with the request before is kept; nothing is lost when the page reads slowly. */
#include "session/session.h"
#include "slm2/chat.h"
#include "tests/unit/web_engine.h"

static tiny_model text_model, plain_model; /* with and without a tokenizer */
static web_answer got, want;

static void ids_bytes(uint8_t *out, const uint32_t *ids, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) slm2_store_u32(out + 4 * i, ids[i]);
}

/* --- OPEN ------------------------------------------------------------------------------ */

static void test_open(void) {
  static const uint32_t words[] = {320, 2, 4, 2, 32, 64, 96, 256, 48, 1, 0, 1, 0, 303, 1, 20};
  const tiny_file *f = &text_model.file;
  uint8_t identity[32];
  web_place(f->bytes, f->n, &web_plain);
  CHECK(slm2_web_start() == SLM2_OK && web_word(SLM2_WORD_STATE) == 0);
  CHECK(web_step() == SLM2_TURN_IDLE);
  uint32_t bell = web_word(SLM2_WORD_EVENT_BELL), beat = web_word(SLM2_WORD_HEARTBEAT);
  uint32_t request = page.request + 1;
  CHECK(web_open_with(1) && event.request == request && web_word(SLM2_WORD_STATE) == 2);
  CHECK(web_word(SLM2_WORD_EVENT_BELL) != bell && web_word(SLM2_WORD_HEARTBEAT) > beat + 2);
  slm2_model_identity(text_model.model, identity);
  CHECK(memcmp(event.payload, identity, 32) == 0);
  for (uint32_t i = 0; i < 16; i++) CHECK(slm2_load_u32(event.payload + 32 + 4 * i) == words[i]);
  CHECK(slm2_load_f32(event.payload + 96) == 0.6f && slm2_load_f32(event.payload + 100) == 0.95f);
  CHECK(slm2_load_f32(event.payload + 104) == 1.0f && slm2_load_u32(event.payload + 108) == 1);
  const uint8_t *at = event.payload + 112;
  static const char *const texts[] = {"unknown", "unknown", NULL};
  for (uint32_t i = 0; i < 3; i++) {
    const char *text = texts[i] != NULL ? texts[i] : slm2_backend_name(slm2_backend_default());
    CHECK(slm2_load_u32(at) == strlen(text) && memcmp(at + 4, text, strlen(text)) == 0);
    at += 4 + strlen(text);
  }
  CHECK(at == event.payload + event.n);
  web_open(f->bytes, f->n, &web_plain);
  CHECK(slm2_load_u32(event.payload + 108) == 0); /* not verified */
}

/* --- GENERATE ---------------------------------------------------------------------------- */

static const uint32_t prompt_ids[] = {104, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 33, 256, 256, 302};
#define N_PROMPT 15u

static void test_answers(void) {
  static const web_setup setups[] = {{48, SLM2_PROFILE_Q8, SLM2_KV_F32, 8, 1},  {48, SLM2_PROFILE_F32, SLM2_KV_F32, 1, 1},
                                     {40, SLM2_PROFILE_Q8, SLM2_KV_F16, 128, 3}, {64, SLM2_PROFILE_F32, SLM2_KV_F16, 3, 2}};
  uint8_t ids[4 * N_PROMPT];
  ids_bytes(ids, prompt_ids, N_PROMPT);
  for (uint32_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
    web_open(text_model.file.bytes, text_model.file.n, &setups[i]);
    for (uint32_t k = 0; k < 8; k++) {
      web_question q = {.kind = 2, .p = {.sampler = k & 1 ? web_sampled : web_greedy, .max_tokens = 20,
                                         .ignore_eos = (k & 2) != 0},
                        .text = ids, .n = sizeof ids};
      q.flags = q.p.ignore_eos ? 4 : 0;
      if (k & 4) q.p.speculate = k == 4 ? SLM2_SPECULATE_AUTO : k;
      web_expect(&text_model, &setups[i], &q, prompt_ids, N_PROMPT, &want);
      web_answer_to(&q, &got);
      CHECK(web_same(&got, &want) && got.completion >= 1);
      CHECK(got.reused == (k == 0 ? 0 : N_PROMPT - 1)); /* at least the last one is computed */
      CHECK(web_word(SLM2_WORD_STATE) == 2);
    }
  }
}

/* Without a tokenizer there are ids and no text. */
static void test_no_tokenizer(void) {
  static const uint32_t prompt[] = {1, 2, 63};
  uint8_t ids[12];
  ids_bytes(ids, prompt, 3);
  web_question q = {.kind = 2, .p = {.sampler = web_sampled, .max_tokens = 30}, .text = ids, .n = 12};
  web_open(plain_model.file.bytes, plain_model.file.n, &web_plain);
  web_expect(&plain_model, &web_plain, &q, prompt, 3, &want);
  web_answer_to(&q, &got);
  CHECK(web_same(&got, &want) && got.completion == 30 && got.n_tokens == 30 * 24);
  q.kind = 1;
  web_answer_to(&q, &got);
  CHECK(got.last_op == SLM2_EVENT_FAILED && got.status == SLM2_E_UNSUPPORTED);
}

static void tokenize(const char *text, slm2_specials specials, uint32_t *ids, uint32_t *n) {
  const size_t length = strlen(text);
  size_t bytes, n_ids;
  slm2_error error;
  CHECK(slm2_tokenize_scratch_bytes(length, &bytes) == SLM2_OK);
  void *scratch = tiny_memory(bytes);
  CHECK(slm2_tokenize(slm2_model_tokenizer(text_model.model), (const uint8_t *)text, length, specials, NULL, scratch, bytes, ids,
                      256,
                      &n_ids, &error) == SLM2_OK);
  *n = (uint32_t)n_ids;
  free(scratch);
}

static void test_text(void) {
  static const char text[] = "abc <think>caf\xc3\xa9<|end|>";
  uint32_t ids[256], n;
  const web_setup s = {160, SLM2_PROFILE_Q8, SLM2_KV_F32, 16, 1};
  web_open(text_model.file.bytes, text_model.file.n, &s);
  for (uint32_t flags = 0; flags <= 2; flags += 2) {
    web_question q = {.kind = 1, .flags = flags, .p = {.sampler = web_sampled, .max_tokens = 60}, .text = text,
                      .n = sizeof text - 1};
    tokenize(text, flags == 2 ? SLM2_SPECIALS_ON : SLM2_SPECIALS_OFF, ids, &n);
    web_expect(&text_model, &s, &q, ids, n, &want);
    web_answer_to(&q, &got);
    CHECK(web_same(&got, &want));
    uint8_t payload[8 + sizeof text] = {1, 0, 0, 0, (uint8_t)flags};
    memcpy(payload + 8, text, sizeof text - 1);
    web_send(SLM2_COMMAND_COUNT, payload, 8 + sizeof text - 1);
    CHECK(web_next() && event.op == SLM2_EVENT_COUNTED && event.n == 8 && slm2_load_u32(event.payload) == n);
    CHECK(slm2_load_u32(event.payload + 4) == sizeof text - 1);
  }
  uint8_t empty[8] = {1};
  web_send(SLM2_COMMAND_COUNT, empty, 8);
  CHECK(web_next() && event.op == SLM2_EVENT_COUNTED && slm2_load_u32(event.payload) == 0);
}

/* Stop texts end an answer as they do without an engine, and the largest are taken. */
static void test_stops(void) {
  static char longest[SLM2_MAX_STOP_BYTES];
  memset(longest, 'q', sizeof longest);
  web_question q = {.kind = 1, .p = {.sampler = web_sampled, .max_tokens = 120, .n_stop = SLM2_MAX_STOP_STRINGS}, .text = "ab",
                    .n = 2};
  const web_setup s = {160, SLM2_PROFILE_Q8, SLM2_KV_F32, 16, 1};
  uint32_t ids[256], n, stopped = 0;
  tokenize("ab", SLM2_SPECIALS_OFF, ids, &n);
  web_open(text_model.file.bytes, text_model.file.n, &s);
  static const char *const stops[] = {"ab", "one END", "e", "\xef\xbf\xbd"};
  for (uint32_t i = 0; i < 8; i++) {
    for (uint32_t k = 0; k < SLM2_MAX_STOP_STRINGS; k++) {
      q.p.stop[k] = k == 0 ? stops[i % 4] : longest;
      q.p.stop_bytes[k] = k == 0 ? strlen(stops[i % 4]) : sizeof longest;
    }
    q.p.sampler.seed = i;
    web_expect(&text_model, &s, &q, ids, n, &want);
    web_answer_to(&q, &got);
    CHECK(web_same(&got, &want));
    stopped += got.finish == SLM2_FINISH_STOP;
  }
  CHECK(stopped > 0);
}

/* A conversation with the demo model: the template, the mask, the whole way. */
static void test_conversation(void) {
  static const char json[] = "[{\"role\":\"user\",\"content\":\"Hello <|im_end|> there\"}]";
  tiny_model demo = {0};
  size_t n_file;
  char *file = test_read_file("models/demo.slm2", &n_file);
  demo.file.n = n_file;
  demo.file.bytes = tiny_memory(n_file);
  memcpy(demo.file.bytes, file, n_file);
  free(file);
  demo = tiny_load(demo.file);
  const web_setup s = {256, SLM2_PROFILE_Q8, SLM2_KV_F32, 64, 1};
  web_open(demo.file.bytes, demo.file.n, &s);
  char text[1024];
  uint8_t mask[1024];
  uint32_t ids[1024];
  size_t bytes, n_text, n_ids;
  slm2_error error;
  for (uint32_t flags = 0; flags < 4; flags += 3) {
    const slm2_chat_options options = {true, (flags & 1) == 0};
    CHECK(slm2_chat_scratch_bytes(sizeof json - 1, &bytes) == SLM2_OK);
    void *scratch = tiny_memory(bytes);
    CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, sizeof json - 1, &options, scratch, bytes, text, mask, 1024, &n_text,
                           &error) == SLM2_OK);
    free(scratch);
    CHECK(slm2_tokenize_scratch_bytes(n_text, &bytes) == SLM2_OK);
    scratch = tiny_memory(bytes);
    CHECK(slm2_tokenize(slm2_model_tokenizer(demo.model), (uint8_t *)text, n_text,
                        flags & 2 ? SLM2_SPECIALS_ON : SLM2_SPECIALS_MASKED,
                        flags & 2 ? NULL : mask, scratch, bytes, ids, 1024, &n_ids, &error) == SLM2_OK);
    free(scratch);
    web_question q = {.kind = 0, .flags = flags, .p = {.sampler = web_sampled, .max_tokens = 5}, .text = json,
                      .n = sizeof json - 1};
    web_expect(&demo, &s, &q, ids, (uint32_t)n_ids, &want);
    web_answer_to(&q, &got);
    CHECK(web_same(&got, &want));
  }
  tiny_free(&demo);
}

/* --- the timeline ------------------------------------------------------------------------ */

/* An answer, then a prompt that goes on with it: the common part is kept, and nothing else changes. */
static void test_reuse(void) {
  uint8_t ids[4 * 40];
  uint32_t longer[40];
  ids_bytes(ids, prompt_ids, N_PROMPT);
  web_question q = {.kind = 2, .flags = 4, .p = {.sampler = web_sampled, .max_tokens = 10, .ignore_eos = true}, .text = ids,
                    .n = 4 * N_PROMPT};
  web_open(text_model.file.bytes, text_model.file.n, &web_plain);
  web_answer_to(&q, &got);
  memcpy(longer, prompt_ids, sizeof prompt_ids);
  for (size_t i = 0, at = 0; at < got.n_tokens; i++) {
    longer[N_PROMPT + i] = slm2_load_u32(got.tokens + at);
    at += 24 + slm2_load_u32(got.tokens + at + 20);
  }
  longer[N_PROMPT + 10] = 97;
  ids_bytes(ids, longer, N_PROMPT + 11);
  q.n = 4 * (N_PROMPT + 11);
  web_expect(&text_model, &web_plain, &q, longer, N_PROMPT + 11, &want);
  web_answer_to(&q, &got);
  CHECK(web_same(&got, &want) && got.reused == N_PROMPT + 9); /* the last token of the answer was never computed */
  web_send(SLM2_COMMAND_RESET, NULL, 0);
  CHECK(web_next() && event.op == SLM2_EVENT_RESET && event.n == 0);
  web_answer_to(&q, &got);
  CHECK(web_same(&got, &want) && got.reused == 0);
}

static slm2_status hash_row(void *user, uint32_t position, const float *logits) {
  (void)position;
  for (uint32_t i = 0; i < 320; i++) {
    uint8_t bytes[4];
    slm2_store_f32(bytes, logits[i]);
    slm2_sha256_update(user, bytes, 4);
  }
  return SLM2_OK;
}

static void test_digest(void) {
  uint8_t payload[8 + 4 * N_PROMPT], sum[32];
  slm2_sha256 sha;
  slm2_error error;
  slm2_session_params params = {.context = 48, .tile = 4, .profile = SLM2_PROFILE_Q8};
  slm2_session *s = tiny_session(text_model.model, &params);
  slm2_sha256_init(&sha);
  CHECK(slm2_session_append(s, prompt_ids, N_PROMPT, &(slm2_run){.each_logits = hash_row, .user = &sha}, &error) == SLM2_OK);
  slm2_sha256_final(&sha, sum);
  free(s);
  ids_bytes(payload + 8, prompt_ids, N_PROMPT);
  slm2_store_u32(payload + 4, N_PROMPT);
  web_open(text_model.file.bytes, text_model.file.n, &web_plain);
  static const uint32_t chunks[] = {0, 1, 7, 1000};
  for (uint32_t i = 0; i < 4; i++) {
    slm2_store_u32(payload, chunks[i]);
    web_send(SLM2_COMMAND_DIGEST, payload, sizeof payload);
    do CHECK(web_next());
    while (event.op == SLM2_EVENT_PROGRESS);
    CHECK(event.op == SLM2_EVENT_DIGESTED && event.n == 36 && slm2_load_u32(event.payload) == N_PROMPT);
    CHECK(memcmp(event.payload + 4, sum, 32) == 0);
  }
  web_question q = {.kind = 2, .p = {.sampler = web_greedy, .max_tokens = 1}, .text = payload + 8, .n = 4 * N_PROMPT};
  web_answer_to(&q, &got);
  CHECK(got.last_op == SLM2_EVENT_DONE && got.reused == 0); /* the timeline was left empty */
}

/* --- rings and clocks ---------------------------------------------------------------------- */

#define REQUESTS 6u
#define ANSWER 100u

/* The ring is filled with refusals, then the page asks for answers and reads a few events at a time, so that the engine has to
 * wait again and again. Every answer has the same tokens, whatever it had to wait for. */
static void test_full(void) {
  const web_setup s = {128, SLM2_PROFILE_Q8, SLM2_KV_F16, 8, 1};
  static uint8_t first[24 * ANSWER];
  const uint8_t ids[4] = {3};
  web_question q = {.kind = 2, .p = {.sampler = web_sampled, .max_tokens = ANSWER}, .text = ids, .n = 4};
  uint32_t turn, waits = 0, n = 0, done = 0, refused = 0;
  uint64_t random = 5;
  web_open(plain_model.file.bytes, plain_model.file.n, &s);
  for (turn = SLM2_TURN_IDLE; turn == SLM2_TURN_IDLE; refused++) {
    web_send(SLM2_COMMAND_GENERATE, NULL, 0);
    while ((turn = web_step()) == SLM2_TURN_MORE)
      ;
  }
  const uint32_t begin = page.request;
  for (uint32_t i = 0; i < REQUESTS; i++) web_ask(&q);
  CHECK(turn == SLM2_TURN_FULL);
  while (done < REQUESTS && turn == SLM2_TURN_FULL) {
    while ((turn = web_step()) == SLM2_TURN_MORE)
      ;
    waits += turn == SLM2_TURN_FULL;
    CHECK(turn != SLM2_TURN_FULL || web_step() == SLM2_TURN_FULL);
    for (uint64_t k = test_random(&random) % 8; (turn == SLM2_TURN_IDLE || k > 0) && web_take(&page, &event); k--) {
      refused -= event.op == SLM2_EVENT_FAILED;
      if (event.op == SLM2_EVENT_TOKEN && done == 0) memcpy(first + 24 * (size_t)n, event.payload, 24);
      if (event.op == SLM2_EVENT_TOKEN && n < ANSWER) CHECK(memcmp(first + 24 * (size_t)n, event.payload, 24) == 0);
      n += event.op == SLM2_EVENT_TOKEN;
      if (event.op != SLM2_EVENT_DONE) continue;
      CHECK(event.request == begin + ++done && n == ANSWER);
      n = 0;
    }
  }
  CHECK(done == REQUESTS && refused == 0 && waits > 30);
}

static void test_clock(void) {
  uint8_t ids[4 * N_PROMPT];
  ids_bytes(ids, prompt_ids, N_PROMPT);
  web_question q = {.kind = 2, .flags = 4, .p = {.sampler = web_greedy, .max_tokens = 7, .ignore_eos = true}, .text = ids,
                    .n = sizeof ids};
  web_open(text_model.file.bytes, text_model.file.n, &web_plain);
  web_answer_to(&q, &got); /* a step takes 1 ms here: one prefills, seven decode */
  CHECK(got.last_op == SLM2_EVENT_DONE && slm2_double_from_bits(slm2_load_u64(event.payload + 16)) == 1.0);
  CHECK(slm2_double_from_bits(slm2_load_u64(event.payload + 24)) == 7.0);
}

static void test_close(void) {
  web_open(text_model.file.bytes, text_model.file.n, &web_plain);
  web_send(SLM2_COMMAND_CLOSE, NULL, 0);
  CHECK(web_next() && event.op == SLM2_EVENT_CLOSED && web_word(SLM2_WORD_STATE) == 5);
  web_send(SLM2_COMMAND_RESET, NULL, 0);
  CHECK(web_step() == SLM2_TURN_CLOSED && web_step() == SLM2_TURN_CLOSED && !web_take(&page, &event));
}

static void test_trial(void) {
  web_place(text_model.file.bytes, text_model.file.n, &web_plain);
  CHECK(slm2_web_start() == SLM2_OK);
  const double sum = 500387540.0 / 32768; /* exact: integers times 2^-15; the same sum in Python */
  CHECK(slm2_web_trial(3) == sum && slm2_web_trial(3) == sum && slm2_web_trial(4) > sum && slm2_web_trial(0) == 0.0);
  CHECK(web_open_with(0));
  CHECK(slm2_web_trial(3) == -1.0); /* the region is in use */
}

int main(void) {
  text_model = tiny_load(web_text_model());
  plain_model = tiny_load(tiny_build(&tiny_specs[1], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  test_open();
  test_answers();
  test_no_tokenizer();
  test_text();
  test_stops();
  test_conversation();
  test_reuse();
  test_digest();
  test_full();
  test_clock();
  test_close();
  test_trial();
  web_return();
  tiny_free(&text_model);
  tiny_free(&plain_model);
  return test_end("web_engine");
}
