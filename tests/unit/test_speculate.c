/* tests/unit/test_speculate.c: an answer with speculation is the answer without it: two sessions in lock step, with every
 * event, the timeline, the logits' bits [D8] [D23] and the random words [D20] compared after each step. Texts that repeat
 * themselves, so that guesses come true; texts that lure into wrong ones; and guesses that cannot even be computed [D5b]. */
#include "platform/threads.h"
#include "session/speculate.h"
#include "tests/unit/snapshot_file.h"

enum { EOS = 300, THINK, UNTHINK };
static const tiny_token tokens[] = {{256, "ab", 0}, {257, "\xf0\x9f", 0}, {EOS, "<|end|>", 2}, {THINK, "<think>", 1},
                                    {UNTHINK, "</think>", 1}};
#define VOCAB 320u

/* --- two in lock step --------------------------------------------------------------- */

typedef struct side {
  slm2_session *session;
  slm2_generator *generator; /* NULL between answers */
} side;

typedef struct pair {
  side plain, ahead;
  slm2_generate_params params; /* of ahead's generator; plain's has speculate 0 */
  const char *label;
} pair;

static unsigned long steps, accepted, drafted; /* of all pairs together */

static pair pair_open(const slm2_model *model, slm2_session_params sp, uint32_t draft, const char *label) {
  pair p = {.label = label};
  p.plain.session = tiny_session(model, &sp);
  sp.draft = draft;
  p.ahead.session = tiny_session(model, &sp);
  return p;
}

static void answer_end(pair *p) {
  if (p->ahead.generator == NULL) return;
  CHECK_CASE(slm2_generator_drafted(p->plain.generator) == 0 && slm2_generator_accepted(p->plain.generator) == 0, p->label);
  CHECK_CASE(slm2_generator_accepted(p->ahead.generator) <= slm2_generator_drafted(p->ahead.generator), p->label);
  accepted += slm2_generator_accepted(p->ahead.generator);
  drafted += slm2_generator_drafted(p->ahead.generator);
  free(p->plain.generator), free(p->ahead.generator);
  p->plain.generator = p->ahead.generator = NULL;
}

static void pair_free(pair *p) {
  answer_end(p);
  free(p->plain.session), free(p->ahead.session);
}

static void check_same(const pair *p) {
  const slm2_session *a = p->plain.session, *b = p->ahead.session;
  const uint32_t n = slm2_session_length(a), vocab = slm2_model_header(slm2_session_model(a))->config.vocab;
  const float *x = slm2_session_logits(a), *y = slm2_session_logits(b);
  if (!CHECK_CASE(slm2_session_length(b) == n, p->label)) exit(test_end("speculate"));
  CHECK_CASE(memcmp(slm2_session_ids(a), slm2_session_ids(b), n * sizeof(uint32_t)) == 0, p->label);
  CHECK_CASE((x == NULL) == (y == NULL) && (x == NULL || memcmp(x, y, vocab * sizeof *x) == 0), p->label);
  if (p->plain.generator == NULL) return;
  CHECK_CASE(slm2_generator_count(p->plain.generator) == slm2_generator_count(p->ahead.generator), p->label);
  CHECK_CASE(slm2_generator_words_used(p->plain.generator) == slm2_generator_words_used(p->ahead.generator), p->label);
}

/* The same length, ids and logits on both, by the same call. */
static void sync(pair *p, const uint32_t *ids, uint32_t n) {
  uint32_t a, b;
  CHECK_CASE(slm2_session_sync(p->plain.session, ids, n, NULL, &a, NULL) == SLM2_OK, p->label);
  CHECK_CASE(slm2_session_sync(p->ahead.session, ids, n, NULL, &b, NULL) == SLM2_OK && a == b, p->label);
  check_same(p);
}

static slm2_generator *generator(slm2_session *s, const slm2_generate_params *params, const slm2_generator_state *state) {
  slm2_generator *g = NULL;
  slm2_error error;
  void *mem = tiny_memory(slm2_generator_bytes());
  slm2_status status = state == NULL ? slm2_generator_init(mem, slm2_generator_bytes(), s, params, &g, &error)
                                     : slm2_generator_resume(mem, slm2_generator_bytes(), s, params, state, &g, &error);
  if (status != SLM2_OK) {
    printf("FAIL generator: %s: %s\n", error.name, error.message);
    exit(1);
  }
  return g;
}

static void answer_begin(pair *p, const slm2_generate_params *params) {
  slm2_generate_params plain = p->params = *params;
  plain.speculate = 0;
  p->plain.generator = generator(p->plain.session, &plain, NULL);
  p->ahead.generator = generator(p->ahead.session, params, NULL);
}

/* One step of both; how it ended. */
static slm2_finish step(pair *p, const slm2_cancel *cancel) {
  static slm2_token_event e, f;
  slm2_error a = {0}, b = {0};
  memset(&e, 0xff, sizeof e), memset(&f, 0xff, sizeof f);
  slm2_status status = slm2_generator_next(p->plain.generator, cancel, &e, &a);
  CHECK_CASE(slm2_generator_next(p->ahead.generator, cancel, &f, &b) == status, p->label);
  CHECK_CASE(strcmp(a.message, b.message) == 0 && strcmp(a.name, b.name) == 0, p->label);
  CHECK_CASE(e.id == f.id && e.position == f.position && slm2_float_bits(e.logprob) == slm2_float_bits(f.logprob), p->label);
  CHECK_CASE(e.channel == f.channel && e.finish == f.finish && e.n_text == f.n_text, p->label);
  CHECK_CASE(e.n_text > SLM2_TEXT_MAX || memcmp(e.text, f.text, e.n_text) == 0, p->label);
  check_same(p);
  steps++;
  return e.finish;
}

/* --- what happens between steps -------------------------------------------------------- */

/* Both are saved: the same file; and what speculated goes on in another session, or with another draft. */
static void save_and_restore(pair *p, uint64_t random) {
  slm2_snapshot_extras a = {.answer = p->plain.generator}, b = {.answer = p->ahead.generator};
  blob plain = blob_of(p->plain.session, &a), ahead = blob_of(p->ahead.session, &b);
  CHECK_CASE(plain.n == ahead.n && memcmp(plain.bytes, ahead.bytes, (size_t)plain.n) == 0, p->label);
  slm2_session *s = p->ahead.session;
  slm2_snapshot snapshot;
  if (random % 2 == 0) { /* over a session that has something ahead, too */
    slm2_session_params sp = s->params;
    sp.tile = 1 + (uint32_t)(random >> 8) % 5;
    s = tiny_session(s->forward.model, &sp);
    CHECK_CASE(blob_restore(&ahead, s, &snapshot, NULL) == SLM2_OK, p->label);
  }
  slm2_generator_state state;
  CHECK_CASE(slm2_generator_save(p->ahead.generator, p->ahead.session, &state, NULL) == SLM2_OK, p->label);
  slm2_generator *moved = generator(s, &p->params, &state);
  accepted += slm2_generator_accepted(p->ahead.generator);
  drafted += slm2_generator_drafted(p->ahead.generator);
  free(p->ahead.generator);
  if (s != p->ahead.session) free(p->ahead.session);
  p->ahead = (side){s, moved};
  free(plain.bytes), free(ahead.bytes);
}

/* Somebody else rewinds: the answer must notice. Then the timeline goes on from there. */
static void rewind_both(pair *p, uint64_t random) {
  const uint32_t to = 1 + (uint32_t)(random % (slm2_session_length(p->plain.session) - 1));
  slm2_token_event e;
  CHECK_CASE(slm2_session_rewind(p->plain.session, to, NULL) == SLM2_OK, p->label);
  CHECK_CASE(slm2_session_rewind(p->ahead.session, to, NULL) == SLM2_OK, p->label);
  if (p->ahead.generator != NULL) {
    CHECK_CASE(slm2_generator_next(p->plain.generator, NULL, &e, NULL) == SLM2_E_ARGUMENT, p->label);
    CHECK_CASE(slm2_generator_next(p->ahead.generator, NULL, &e, NULL) == SLM2_E_ARGUMENT, p->label);
  }
  check_same(p);
  answer_end(p);
}

/* Another turn: what is there, without the last ids now and then, and a few new ones. */
static void next_turn(pair *p, uint64_t random) {
  uint32_t ids[256], vocab = slm2_model_header(slm2_session_model(p->plain.session))->config.vocab;
  uint32_t n = slm2_session_length(p->plain.session), context = slm2_session_context(p->plain.session);
  answer_end(p);
  if (n > 8 && (n + 8 > context || random % 8 == 0)) n = 2 + (uint32_t)(random >> 8) % 6;
  memcpy(ids, slm2_session_ids(p->plain.session), n * sizeof *ids);
  for (uint32_t i = 0; i < 1 + (random >> 16) % 3; i++) ids[n++] = (uint32_t)(random >> (20 + 8 * i)) % vocab;
  sync(p, ids, n);
}

/* Answers one after the other until n steps were made, with everything that can come between. */
static void run_answers(pair *p, slm2_generate_params gp, unsigned long n, uint64_t seed) {
  const unsigned long end = steps + n;
  char stops[2][3];
  while (steps < end) {
    const uint64_t r = test_random(&seed);
    gp.sampler.seed = r;
    gp.max_tokens = r % 4 == 0 ? 1 + (uint32_t)(r >> 8) % 12 : 200;
    gp.ignore_eos = r % 3 == 0;
    gp.n_stop = slm2_model_tokenizer(slm2_session_model(p->plain.session)) != NULL && r % 5 == 0 ? 2 : 0;
    for (uint32_t i = 0; i < gp.n_stop; i++) {
      for (uint32_t k = 0; k < 2; k++) stops[i][k] = (char)((r >> (8 * (2 * i + k)) & 63) + 32);
      gp.stop[i] = stops[i];
      gp.stop_bytes[i] = 1 + i;
    }
    next_turn(p, test_random(&seed));
    answer_begin(p, &gp);
    slm2_cancel cancel;
    atomic_init(&cancel, 0);
    for (slm2_finish finish = SLM2_FINISH_NONE; finish == SLM2_FINISH_NONE;) {
      const uint64_t event = test_random(&seed);
      if (event % 37 == 0) save_and_restore(p, event >> 8);
      if (event % 41 == 0) {
        rewind_both(p, event >> 8);
        break;
      }
      if (event % 43 == 0) atomic_store(&cancel, 1);
      finish = step(p, &cancel);
      if (atomic_load(&cancel) != 0) CHECK_CASE(finish == SLM2_FINISH_CANCELLED, p->label);
    }
  }
  answer_end(p);
}

/* --- real models ----------------------------------------------------------------------------- */

static const uint32_t drafts[] = {1, 2, 3, 7, SLM2_DRAFT_MAX, SLM2_SPECULATE_AUTO};
#define N_DRAFTS 6
static const struct {
  const char *label;
  slm2_sampler_params sampler;
} samplers[] = {
    {"greedy", {.temperature = 0, .top_p = 1, .repeat_penalty = 1}},
    {"greedy, penalty", {.temperature = 0, .top_p = 1, .repeat_penalty = 1.2f}},
    {"sampled low", {.temperature = 0.3f, .top_k = 3, .top_p = 0.9f, .min_p = 0.05f, .repeat_penalty = 1}},
    {"sampled, penalty", {.temperature = 0.9f, .top_k = 40, .top_p = 0.95f, .repeat_penalty = 1.1f}},
    {"sampled high", {.temperature = 5, .top_p = 1, .repeat_penalty = 1}},
};
#define N_SAMPLERS 5

static void test_model(const slm2_model *model, const slm2_session_params *sp, unsigned long n, uint64_t seed) {
  static const uint32_t prompt[] = {5, 9, 33, 7, 5, 9};
  for (uint32_t d = 0; d < N_DRAFTS; d++)
    for (uint32_t k = 0; k < N_SAMPLERS; k++) {
      char label[64];
      snprintf(label, sizeof label, "%s, %s %s, draft %d", samplers[k].label, slm2_profile_name(sp->profile),
               slm2_kv_name(sp->kv), (int)drafts[d]);
      pair p = pair_open(model, *sp, drafts[d] == SLM2_SPECULATE_AUTO ? SLM2_DRAFT_MAX : drafts[d], label);
      slm2_generate_params gp = {.sampler = samplers[k].sampler, .speculate = drafts[d]};
      const unsigned long before = accepted;
      sync(&p, prompt, 6);
      run_answers(&p, gp, n, seed++);
      if (k == 0 && n > 30 && drafts[d] != SLM2_SPECULATE_AUTO) /* greedy answers of small models run in circles */
        CHECK_CASE(accepted > before, label);
      pair_free(&p);
    }
}

static void test_models(const tiny_model models[N_TINY]) {
  slm2_threads *threads;
  if (slm2_threads_create(3, &threads, NULL) != SLM2_OK) exit(1);
  for (int i = 0; i < N_TINY; i++)
    for (int profile = 0; profile < 2; profile++)
      for (int kv = 0; kv < 2; kv++) {
        const slm2_session_params sp = {.context = 60 + 20 * (uint32_t)i, .tile = 1 + 5 * (uint32_t)kv,
                                        .profile = (slm2_profile)profile, .kv = (slm2_kv_type)kv,
                                        .backend = i == 0 && kv == 0 ? &slm2_backend_oracle : NULL,
                                        .pool = i == 2 ? slm2_threads_pool(threads) : NULL};
        test_model(models[i].model, &sp, 34, 1000 * (uint64_t)i + 100 * (uint64_t)profile + 50 * (uint64_t)kv);
      }
  slm2_threads_destroy(threads);
}

/* The model of the repository, and a text that it repeats. */
static void test_demo(void) {
  size_t n, bytes;
  char *file = test_read_file("models/demo.slm2", &n);
  tiny_model m = {.file = {.bytes = tiny_memory(n), .n = n}};
  slm2_error error;
  memcpy(m.file.bytes, file, n);
  free(file);
  if (slm2_model_bytes(m.file.bytes, n, &bytes, &error) != SLM2_OK ||
      slm2_model_init(m.memory = tiny_memory(bytes), bytes, m.file.bytes, n, &m.model, &error) != SLM2_OK) {
    printf("FAIL demo: %s\n", error.message);
    exit(1);
  }
  for (int i = 0; i < 4; i++) {
    const slm2_session_params sp = {.context = 160, .tile = 128, .profile = (slm2_profile)(i % 2), .kv = (slm2_kv_type)(i / 2)};
    const unsigned long before = accepted;
    test_model(m.model, &sp, 16, 7000 + 100 * (uint64_t)i);
    CHECK(accepted > before + 20);
  }
  tiny_free(&m);
}

/* --- scripted texts ----------------------------------------------------------------------------- */

/* What is sampled at each position is given, so that every draft is known to come true or not. The logits are the model's
 * own, but for the one that wins; a token that cannot be computed, and logits that overflow, can be had as well. */
static struct {
  uint32_t ids[512]; /* [position]: sampled behind the position before it */
  uint32_t last_position;
  uint32_t poison;             /* computing this id gives NaN; SLM2_NO_TOKEN: none */
  uint32_t overflow;           /* logits behind this position are infinite; SLM2_NO_TOKEN: none */
  uint32_t passes, batches;    /* products of logits; those of more than one token */
  uint32_t poisoned;           /* how often the id was met */
  slm2_cancel *cancel;         /* set at the product with this number from now on, of all products; NULL: never */
  uint32_t cancel_in;
} script;

static void scripted_rope_table(float *c, float *s, uint32_t position, const uint8_t *inv_freq, uint32_t half) {
  script.last_position = position;
  slm2_backend_default()->rope_table(c, s, position, inv_freq, half);
}
static void scripted_embed(float *y, const slm2_matrix *w, uint32_t row) {
  slm2_backend_default()->embed(y, w, row);
  if (row != script.poison) return;
  y[3] = slm2_float_from_bits(0x7fc00000);
  script.poisoned++;
}
static void scripted(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1) {
  slm2_backend_default()->matmul_f32(y, y_stride, w, x, n, r0, r1);
  if (script.cancel != NULL && script.cancel_in-- == 0) atomic_store(script.cancel, 1);
  if (w->rows != VOCAB) return;
  for (uint32_t t = 0; t < n; t++) {
    const uint32_t position = script.last_position + 1 - n + t, id = script.ids[position + 1];
    if (id >= r0 && id < r1) y[t * y_stride + id] = 1e6f;
    if (r0 == 0 && position == script.overflow) y[t * y_stride] = slm2_float_from_bits(0x7f800000);
  }
  if (r0 != 0) return;
  script.passes++;
  script.batches += n > 1;
}
static slm2_backend scripted_backend;

static pair scripted_pair(const tiny_model *m, uint32_t context, uint32_t speculate, const char *label) {
  const slm2_session_params sp = {.context = context, .tile = 16, .backend = &scripted_backend};
  script.poison = script.overflow = SLM2_NO_TOKEN;
  script.cancel = NULL;
  pair p = pair_open(m->model, sp, speculate == SLM2_SPECULATE_AUTO ? SLM2_DRAFT_MAX : speculate, label);
  const slm2_generate_params gp = {.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 400, .ignore_eos = true,
                                   .speculate = speculate};
  sync(&p, script.ids, 4);
  answer_begin(&p, &gp);
  return p;
}

static slm2_finish scripted_run(pair *p, uint32_t n) {
  slm2_finish finish = SLM2_FINISH_NONE;
  while (n-- > 0 && finish == SLM2_FINISH_NONE) finish = step(p, NULL);
  return finish;
}

/* One period over and over: nearly everything comes true, and so many passes are saved. Up to the last position. */
static void test_periodic(const tiny_model *m) {
  for (uint32_t period = 1; period <= 9; period += 4)
    for (uint32_t d = 0; d < N_DRAFTS; d++) {
      for (uint32_t i = 0; i < 512; i++) script.ids[i] = 10 + i % period;
      pair p = scripted_pair(m, 203, drafts[d], "periodic");
      const uint32_t before = script.passes;
      CHECK(scripted_run(&p, 400) == SLM2_FINISH_LENGTH && slm2_session_length(p.ahead.session) == 202);
      const uint32_t got = slm2_generator_accepted(p.ahead.generator), guessed = slm2_generator_drafted(p.ahead.generator);
      const uint32_t longest = drafts[d] == SLM2_SPECULATE_AUTO ? SLM2_DRAFT_MAX : drafts[d];
      CHECK(got == guessed); /* none behind the last position that is computed */
      CHECK(script.passes - before == 2 * 198 - got);
      CHECK(got >= (drafts[d] == SLM2_SPECULATE_AUTO ? 100 : (198 - 2 * period - 2) * longest / (longest + 1)));
      pair_free(&p);
      answer_end(&p);
    }
}

/* x y n x y m x y k ...: what followed x y is never what follows now. AUTO soon stops, and what it spends stays in its bounds;
 * fixed drafts go on. Then the text repeats after all, and AUTO finds out. */
static void test_hostile(const tiny_model *m) {
  for (uint32_t d = 0; d < N_DRAFTS; d++) {
    for (uint32_t i = 0; i < 512; i++) script.ids[i] = i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 3 + i % 311;
    for (uint32_t i = 123; i < 512; i++) script.ids[i] = script.ids[i - 60]; /* from here on a period of 60 */
    pair p = scripted_pair(m, 256, drafts[d], "hostile");
    uint32_t batches = script.batches;
    CHECK(scripted_run(&p, 118) == SLM2_FINISH_NONE && slm2_session_length(p.ahead.session) == 121);
    const uint32_t got = slm2_generator_accepted(p.ahead.generator), guessed = slm2_generator_drafted(p.ahead.generator);
    batches = script.batches - batches;
    if (drafts[d] == SLM2_SPECULATE_AUTO) {
      CHECK(guessed > 0 && got == 0 && 16 * batches + 48 * guessed <= 118); /* the prices and incomes of speculate.c */
    } else {
      CHECK(batches >= 38 && guessed == batches * drafts[d] && got == 0);
    }
    CHECK(scripted_run(&p, 300) == SLM2_FINISH_LENGTH);
    CHECK(slm2_generator_accepted(p.ahead.generator) > 60);
    pair_free(&p);
  }
}

/* A draft holds an id that cannot be computed, and it is not what is sampled: no answer ends because of it. When it is
 * sampled, both end, and equally; likewise where the logits of a position overflow. */
static void test_numerical(const tiny_model *m) {
  for (uint32_t d = 0; d < N_DRAFTS; d++)
    for (uint32_t round = 0; round < 3; round++) {
      for (uint32_t i = 0; i < 512; i++) script.ids[i] = 10 + i % 7;
      for (uint32_t i = 0; i < 20; i++) script.ids[4 + 7 * i] = 100 + i % 2; /* 14 0 15 16 10 11 12 13: each time one differs */
      pair p = scripted_pair(m, 120, drafts[d], round == 0 ? "poison" : round == 1 ? "poison at last" : "overflow");
      /* At 4 and 11 both are on the timeline. One step more and drafts of one meet the other one. */
      CHECK(scripted_run(&p, drafts[d] == 1 ? 13 : 12) == SLM2_FINISH_NONE);
      script.poison = round < 2 ? 101 : SLM2_NO_TOKEN;
      script.overflow = round == 2 ? 60 : SLM2_NO_TOKEN;
      for (uint32_t i = 16; i < 512; i++) {
        if (script.ids[i] == 101) script.ids[i] = 100;
        if (round == 0 && i % 21 == 4) script.ids[i] = 99;
      }
      if (round == 1) script.ids[60] = 101;
      script.poisoned = 0;
      const uint32_t length = slm2_session_length(p.ahead.session);
      const slm2_finish finish = scripted_run(&p, 400);
      CHECK(finish == (round == 0 ? SLM2_FINISH_LENGTH : SLM2_FINISH_ERROR));
      CHECK(slm2_session_length(p.ahead.session) == (round == 0 ? 119 : 60) && length < 20);
      if (round == 0 && drafts[d] != SLM2_SPECULATE_AUTO) CHECK_CASE(script.poisoned > 0, "no draft was poisoned");
      if (round == 1) CHECK(script.poisoned >= 2);
      script.poison = script.overflow = SLM2_NO_TOKEN; /* and the timeline goes on */
      answer_end(&p);
      sync(&p, script.ids, slm2_session_length(p.plain.session));
      pair_free(&p);
    }
}

/* Cancelled in the middle of a pass: the token before stays the last, and nothing of the pass comes back. */
static void test_cancel_inside(const tiny_model *m) {
  for (uint32_t in = 0; in < 60; in++) {
    for (uint32_t i = 0; i < 512; i++) script.ids[i] = 10 + i % 6;
    pair p = scripted_pair(m, 100, 7, "cancel inside");
    CHECK(scripted_run(&p, 9 + in % 11) == SLM2_FINISH_NONE);
    slm2_cancel word;
    atomic_init(&word, 0);
    const uint32_t length = slm2_session_length(p.ahead.session);
    slm2_token_event e;
    bool computed = true;
    script.cancel = &word;
    script.cancel_in = in % 15;
    const uint32_t before = slm2_generator_accepted(p.ahead.generator);
    CHECK(slm2_generator_next(p.ahead.generator, &word, &e, NULL) == SLM2_OK);
    script.cancel = NULL;
    if (e.finish == SLM2_FINISH_CANCELLED) {
      CHECK(e.position == length && slm2_session_length(p.ahead.session) == length && e.id == SLM2_NO_TOKEN);
      computed = slm2_session_logits(p.ahead.session) != NULL;
    } else {
      CHECK(slm2_generator_accepted(p.ahead.generator) == before + 1 || slm2_session_length(p.ahead.session) == length + 1);
      CHECK(slm2_generator_next(p.plain.generator, NULL, &e, NULL) == SLM2_OK);
    }
    if (computed) check_same(&(pair){.plain = {p.plain.session, NULL}, .ahead = {p.ahead.session, NULL}, .label = p.label});
    answer_end(&p);
    for (uint32_t i = length; i < 60; i++) script.ids[i] = 20 + i % 3; /* another text now */
    sync(&p, script.ids, length + 3);
    answer_begin(&p, &(slm2_generate_params){.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 30, .speculate = 7});
    CHECK(scripted_run(&p, 400) == SLM2_FINISH_LENGTH);
    pair_free(&p);
  }
}

/* Every way to touch a timeline forgets what is ahead of it: the same length again, with other ids before it. */
static void test_forgets(const tiny_model *m) {
  for (int way = 0; way < 3; way++) {
    for (uint32_t i = 0; i < 512; i++) script.ids[i] = 10 + i % 4;
    pair p = scripted_pair(m, 100, 7, "forgets");
    CHECK(scripted_run(&p, 20) == SLM2_FINISH_NONE);
    while (p.ahead.session->ahead_next == p.ahead.session->ahead_end) CHECK(scripted_run(&p, 1) == SLM2_FINISH_NONE);
    slm2_session *s = p.ahead.session;
    const uint32_t n = slm2_session_length(s);
    CHECK(s->ahead_end - s->ahead_next > 0 && s->ahead_end <= 8);
    blob b = blob_of(s, NULL);
    slm2_snapshot snapshot;
    slm2_cancel stop;
    atomic_init(&stop, 1);
    slm2_run fails = {.cancel = &stop};
    if (way == 0) CHECK(slm2_session_rewind(s, n - 1, NULL) == SLM2_OK);
    if (way == 1) CHECK(slm2_session_append(s, script.ids, 1, &fails, NULL) == SLM2_E_CANCELLED && slm2_session_length(s) == n);
    if (way == 2) CHECK(blob_restore(&b, s, &snapshot, NULL) == SLM2_OK);
    CHECK(s->ahead_next == s->ahead_end);
    free(b.bytes);
    answer_end(&p);
    pair_free(&p);
  }
}

/* --- finding drafts --------------------------------------------------------------------------------- */

/* The rule, read directly. */
static uint32_t find_directly(const uint32_t *ids, uint32_t n, uint32_t *matched) {
  uint32_t best = 0;
  *matched = 1;
  for (uint32_t end = 1; end < n; end++) {
    uint32_t k = 0;
    if (n - 1 - end >= SLM2_DRAFT_LOOKBACK) continue;
    while (k < 8 && k < end && ids[end - 1 - k] == ids[n - 1 - k]) k++;
    if (k >= 2 && k >= *matched) *matched = k, best = end;
  }
  return best;
}

static void test_find(void) {
  static uint32_t ids[40000];
  uint64_t state = 5;
  uint32_t a, b, found = 0;
  for (uint32_t round = 0; round < 4000; round++) {
    const uint32_t n = 1 + (uint32_t)test_random(&state) % 300;
    const uint32_t letters = 1 + (uint32_t)test_random(&state) % (round % 2 ? 4 : 60);
    for (uint32_t i = 0; i < n; i++) ids[i] = (uint32_t)test_random(&state) % letters;
    const uint32_t from = slm2_draft_find(ids, n, &a), expected = find_directly(ids, n, &b);
    CHECK(from == expected && (from == 0 || a == b));
    found += from != 0;
  }
  CHECK(found > 1000 && found < 3900);
  for (uint32_t n = SLM2_DRAFT_LOOKBACK; n < SLM2_DRAFT_LOOKBACK + 200; n++) { /* one match, at the edge of what is looked at */
    for (uint32_t i = 0; i < n; i++) ids[i] = i;
    ids[n - 2] = 60, ids[n - 1] = 61;
    const uint32_t from = slm2_draft_find(ids, n, &a);
    CHECK(from == find_directly(ids, n, &b) && from == (n - 1 - 62 < SLM2_DRAFT_LOOKBACK ? 62 : 0));
    if (from != 0) CHECK(a == 2);
  }
}

/* --- refusals and memory ---------------------------------------------------------------------------------- */

static void test_plan(const tiny_model *m) {
  slm2_session_params sp = {.context = 50, .tile = 16, .profile = SLM2_PROFILE_Q8};
  slm2_plan without, with, tile_of_8;
  slm2_error error = {0};
  const slm2_header *h = slm2_model_header(m->model);
  CHECK(slm2_session_plan(h, &sp, &without, NULL) == SLM2_OK && without.drafts == 0);
  sp.draft = 7;
  CHECK(slm2_session_plan(h, &sp, &with, NULL) == SLM2_OK && with.drafts == 7 * 4 * VOCAB && with.scratch == without.scratch);
  CHECK(with.total == with.kv + with.scratch + with.logits + with.drafts + with.sampler + with.tokens + with.state);
  CHECK(with.total == without.total + with.drafts && with.logits == 4 * VOCAB);
  sp.draft = 0, sp.tile = 8;
  CHECK(slm2_session_plan(h, &sp, &tile_of_8, NULL) == SLM2_OK);
  sp.draft = 7, sp.tile = 1; /* a token and its draft are a tile */
  CHECK(slm2_session_plan(h, &sp, &with, NULL) == SLM2_OK && with.scratch == tile_of_8.scratch);
  sp.draft = SLM2_DRAFT_MAX + 1;
  CHECK(slm2_session_plan(h, &sp, &with, &error) == SLM2_E_ARGUMENT && strcmp(error.name, "draft") == 0);
  CHECK(strstr(error.message, "16 is outside 0 .. 15") != NULL);
}

static void test_refusals(const tiny_model *m) {
  slm2_session *s = tiny_session(m->model, &(slm2_session_params){.context = 50, .tile = 4, .draft = 3});
  slm2_session *none = tiny_session(m->model, &(slm2_session_params){.context = 50, .tile = 4});
  slm2_generate_params gp = {.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 9, .speculate = 4};
  slm2_generator *g = NULL;
  slm2_error error = {0};
  void *mem = tiny_memory(slm2_generator_bytes());
  CHECK(slm2_session_append(s, (const uint32_t[]){5, 9, 5}, 3, NULL, NULL) == SLM2_OK);
  CHECK(slm2_generator_init(mem, slm2_generator_bytes(), s, &gp, &g, &error) == SLM2_E_ARGUMENT && g == NULL);
  CHECK(strcmp(error.name, "speculate") == 0 && strstr(error.message, "drafts of 4") != NULL && strstr(error.message, "of 3"));
  gp.speculate = SLM2_SPECULATE_AUTO; /* as much as there is memory for: here nothing */
  CHECK(slm2_session_append(none, (const uint32_t[]){5, 9, 5}, 3, NULL, NULL) == SLM2_OK);
  CHECK(slm2_generator_init(mem, slm2_generator_bytes(), none, &gp, &g, &error) == SLM2_OK);
  for (slm2_token_event e = {0}; e.finish == SLM2_FINISH_NONE;) CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_OK);
  CHECK(slm2_generator_drafted(g) == 0 && slm2_generator_accepted(g) == 0);
  free(mem), free(s), free(none);
}

int main(void) {
  size_t n;
  uint8_t *section = tiny_tokenizer(tokens, sizeof tokens / sizeof *tokens, &n);
  tiny_model models[N_TINY];
  for (int i = 0; i < N_TINY; i++)
    models[i] = tiny_load(tiny_build(&tiny_specs[i], SLM2_FORM_PANELS, i == 0 ? section : NULL, i == 0 ? n : 0,
                                     i == 0 ? EOS : SLM2_NO_TOKEN));
  scripted_backend = *slm2_backend_default();
  scripted_backend.matmul_f32 = scripted;
  scripted_backend.rope_table = scripted_rope_table;
  scripted_backend.embed = scripted_embed;
  test_find();
  test_plan(&models[0]);
  test_refusals(&models[0]);
  test_periodic(&models[0]);
  test_hostile(&models[0]);
  test_numerical(&models[0]);
  test_cancel_inside(&models[0]);
  test_forgets(&models[0]);
  test_models(models);
  test_demo();
  CHECK(steps >= 10000 && accepted >= 3000 && drafted >= accepted + 3000);
  printf("speculate: %lu steps compared, %lu ids drafted, %lu of them accepted\n", steps, drafted, accepted);
  for (int i = 0; i < N_TINY; i++) tiny_free(&models[i]);
  free(section);
  return test_end("speculate");
}
