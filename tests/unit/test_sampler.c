/* sampler/: every case of tests/data/sampler (d19_sequences.json from numpy, cases.json from tests/gen/sampler_cases.py),
 * the hand cases of docs and peers' bugs, neutrality [D21], refusals, and the host's floating-point state [D2]. */
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/json.h"
#include "num/chacha8.h"
#include "num/fp_env.h"
#include "num/math.h"
#include "num/reduce.h"
#include "sampler/logprob.h"
#include "tests/test.h"

#define MAX_N 512u

typedef struct example {
  char name[64];
  slm2_sampler_params params;
  float logits[MAX_N];
  uint8_t valid[MAX_N / 8 + 1];
  uint32_t n, context[64], n_context, survivors[MAX_N], n_survivors, p[MAX_N], draws[64], n_draws, logprobs[MAX_N], n_logprobs;
} example;

static uint8_t seen[200000 / 8 + 1];
static slm2_candidate candidates[200000];

static bool same(float a, float b) { return slm2_float_bits(a) == slm2_float_bits(b); }

static slm2_sampler_params plain(void) {
  return (slm2_sampler_params){.temperature = 1.0f, .top_p = 1.0f, .repeat_penalty = 1.0f, .seed = 42};
}

static slm2_json_token next(slm2_json *j) {
  slm2_json_token t = {0};
  slm2_error e;
  if (slm2_json_next(j, &t, &e) != SLM2_OK) {
    printf("FAIL %s\n", e.message);
    exit(1);
  }
  return t;
}

static float number(const slm2_json_token *t) {
  float x = 0;
  if (!slm2_decimal_to_f32(t->raw, t->n_raw, &x)) exit(1);
  return x;
}

static uint64_t integer(const slm2_json_token *t) { return strtoull(t->raw, NULL, 10); }

static void read_member(slm2_json *j, const slm2_json_token *key, example *x) {
  slm2_json_token t = next(j);
  if (slm2_json_is(key, "name")) x->name[slm2_json_decode(&t, x->name)] = 0;
  if (slm2_json_is(key, "temperature")) x->params.temperature = number(&t);
  if (slm2_json_is(key, "top_p")) x->params.top_p = number(&t);
  if (slm2_json_is(key, "min_p")) x->params.min_p = number(&t);
  if (slm2_json_is(key, "repeat_penalty")) x->params.repeat_penalty = number(&t);
  if (slm2_json_is(key, "top_k")) x->params.top_k = (uint32_t)integer(&t);
  if (slm2_json_is(key, "seed")) x->params.seed = integer(&t);
  if (t.type != SLM2_JSON_ARRAY) return;
  uint32_t *list = NULL, *n = NULL, i = 0;
  if (slm2_json_is(key, "context")) list = x->context, n = &x->n_context;
  if (slm2_json_is(key, "survivors")) list = x->survivors, n = &x->n_survivors;
  if (slm2_json_is(key, "probabilities_bits")) list = x->p, n = &x->n_survivors;
  if (slm2_json_is(key, "draws_same_distribution")) list = x->draws, n = &x->n_draws;
  if (slm2_json_is(key, "logprob_bits")) list = x->logprobs, n = &x->n_logprobs;
  for (t = next(j); t.type != SLM2_JSON_ARRAY_END; t = next(j), i++) {
    if (t.type == SLM2_JSON_TRUE) x->valid[i / 8] = (uint8_t)(x->valid[i / 8] | 1u << (i & 7));
    if (t.type == SLM2_JSON_STRING) list[i] = (uint32_t)strtoul(t.raw, NULL, 16);
    if (t.type == SLM2_JSON_NUMBER && list != NULL) list[i] = (uint32_t)integer(&t);
    if (t.type == SLM2_JSON_NUMBER && list == NULL) x->logits[i] = number(&t), n = &x->n;
  }
  if (n != NULL) *n = i;
}

static void check_example(const example *x) {
  slm2_error e;
  uint32_t n = 0, id = 0;
  slm2_status status = slm2_sampler_distribution(&x->params, x->logits, x->n, x->valid, x->context, x->n_context,
                                                 seen, candidates, &n, &e);
  if (!CHECK_CASE(status == SLM2_OK && n == x->n_survivors, x->name)) return;
  for (uint32_t i = 0; i < n; i++)
    CHECK_CASE(candidates[i].id == x->survivors[i] && slm2_float_bits(candidates[i].p) == x->p[i], x->name);
  slm2_rng rng, again;
  slm2_rng_init(&rng, x->params.seed);
  slm2_rng_init(&again, x->params.seed);
  CHECK_CASE((x->params.temperature == 0.0f) == (x->n_draws == 0), x->name);
  for (uint32_t i = 0; i < x->n_draws; i++) {
    CHECK_CASE(slm2_sampler_draw(candidates, n, &rng) == x->draws[i], x->name);
    CHECK_CASE(rng.words_used == i + 1, x->name);
    status = slm2_sampler_next(&x->params, x->logits, x->n, x->valid, x->context, x->n_context, seen, candidates, &again,
                               &id, &e);
    CHECK_CASE(status == SLM2_OK && id == x->draws[i] && again.words_used == i + 1, x->name);
  }
  slm2_logprob_base base;
  CHECK_CASE(slm2_logprob_prepare(NULL, x->logits, x->n, &base, &e) == SLM2_OK && x->n_logprobs == x->n, x->name);
  for (uint32_t i = 0; i < x->n; i++) CHECK_CASE(slm2_float_bits(slm2_logprob(&base, x->logits[i])) == x->logprobs[i], x->name);
}

static void data_file(const char *path, unsigned least) {
  size_t n;
  unsigned count = 0;
  char *text = test_read_file(path, &n);
  slm2_json j;
  slm2_json_init(&j, text, n, path);
  for (slm2_json_token t = next(&j); t.type != SLM2_JSON_END; t = next(&j)) {
    if (t.type != SLM2_JSON_OBJECT) continue;
    static example x;
    memset(&x, 0, sizeof x);
    for (t = next(&j); t.type != SLM2_JSON_OBJECT_END; t = next(&j)) read_member(&j, &t, &x);
    check_example(&x);
    count++;
  }
  CHECK_CASE(count >= least, path);
  free(text);
}

/* Distribution of n logits without mask and context. */
static uint32_t survivors(slm2_sampler_params p, const float *logits, uint32_t n) {
  uint32_t kept = 0;
  CHECK(slm2_sampler_distribution(&p, logits, n, NULL, NULL, 0, seen, candidates, &kept, NULL) == SLM2_OK);
  return kept;
}

/* --- the cases S01..S19 of peers' bugs ----------------------------------------- */

static void cuts(void) {
  const float probs[] = {-2.3025851f, -1.6094379f, -1.2039728f, -0.91629076f}; /* log of 0.1 0.2 0.3 0.4 */
  slm2_sampler_params p = plain();
  p.top_p = 0.0f;
  CHECK(survivors(p, probs, 4) == 1 && candidates[0].id == 3 && same(candidates[0].p, 1.0f));
  p.top_p = 0.69f;
  CHECK(survivors(p, probs, 4) == 2 && candidates[1].id == 2 && candidates[0].p > 0.571428f && candidates[0].p < 0.571430f);
  p.top_p = 0.8f;
  CHECK(survivors(p, probs, 4) == 3 && candidates[2].id == 1 && candidates[2].p > 0.22222f && candidates[2].p < 0.22223f);
  p.top_p = 1.0f;
  CHECK(survivors(p, probs, 4) == 4);
  p = plain();
  static const uint32_t all[] = {0, 4, 1000000000, UINT32_MAX};
  for (size_t i = 0; i < 4; i++) {
    slm2_candidate off[4];
    CHECK(survivors(plain(), probs, 4) == 4);
    memcpy(off, candidates, sizeof off);
    p.top_k = all[i];
    CHECK(survivors(p, probs, 4) == 4 && memcmp(off, candidates, sizeof off) == 0);
  }
  static const struct { float min_p; uint32_t kept; } min_ps[] = {{0.24f, 4}, {0.26f, 3}, {0.51f, 2}, {0.76f, 1}, {1.0f, 1}};
  for (size_t i = 0; i < 5; i++) {
    p = plain();
    p.min_p = min_ps[i].min_p;
    CHECK(survivors(p, probs, 4) == min_ps[i].kept);
  }
}

static void strict_top_p(void) { /* the sum must exceed P: equality takes one more */
  const float halves[] = {1.0f, 1.0f};
  slm2_sampler_params p = plain();
  p.top_p = 0.5f;
  CHECK(survivors(p, halves, 2) == 2);
  p.top_p = slm2_float_from_bits(slm2_float_bits(0.5f) - 1);
  CHECK(survivors(p, halves, 2) == 1 && candidates[0].id == 0);
}

static void ties_and_temperature(void) {
  const float tied[] = {3, 7, 7, 7}, two[] = {10, 9}, wide[] = {3.0e38f, -3.0e38f, 0.0f};
  slm2_sampler_params p = plain();
  p.top_k = 1;
  for (uint64_t seed = 0; seed < 1000; seed++) {
    slm2_rng rng;
    uint32_t id = 0;
    slm2_rng_init(&rng, seed);
    CHECK(slm2_sampler_next(&p, tied, 4, NULL, NULL, 0, seen, candidates, &rng, &id, NULL) == SLM2_OK && id == 1);
  }
  p = plain();
  static const float cold[] = {1e-30f, 0x1p-149f};
  for (size_t i = 0; i < 2; i++) {
    p.temperature = cold[i];
    CHECK(survivors(p, two, 2) == 2 && same(candidates[0].p, 1.0f) && same(candidates[1].p, 0.0f));
    CHECK(survivors(p, tied, 4) == 4 && same(candidates[0].p, 0x1.555556p-2f) && same(candidates[3].p, 0.0f));
  }
  p.temperature = 3.4e38f;
  CHECK(survivors(p, two, 2) == 2 && same(candidates[0].p, 0.5f) && same(candidates[1].p, 0.5f));
  p.temperature = 1.0f; /* the difference overflows: probability 0, not NaN */
  CHECK(survivors(p, wide, 3) == 3 && candidates[2].id == 1 && same(candidates[2].p, 0.0f) && same(candidates[0].p, 1.0f));
}

/* Two logits above the others, wherever they stand: nothing is passed over, however ids are looked through. A value that is
 * not finite is found there too, and a token that the penalty lifts. */
static void anywhere(void) {
  enum { N = 139 };
  float z[N];
  for (uint32_t i = 0; i < N; i++) z[i] = -(float)(i % 5);
  for (uint32_t at = 0; at < N; at++) {
    const uint32_t other = (at * 31 + 7) % N, better = at != other;
    const float before = z[at], other_before = z[other];
    slm2_sampler_params p = plain();
    p.top_k = 2;
    z[other] = 1.0f;
    z[at] = 2.0f;
    CHECK(survivors(p, z, N) == 2 && candidates[0].id == at && (!better || candidates[1].id == other));
    p.temperature = 0.0f;
    CHECK(survivors(p, z, N) == 1 && candidates[0].id == at);
    p = plain();
    p.top_k = 1;
    p.repeat_penalty = 0.25f; /* 1 becomes 4 */
    uint32_t kept = 0;
    slm2_error e;
    CHECK(slm2_sampler_distribution(&p, z, N, NULL, &other, 1, seen, candidates, &kept, &e) == SLM2_OK && kept == 1);
    CHECK(candidates[0].id == other);
    z[at] = slm2_float_from_bits(0xff800000);
    CHECK(slm2_sampler_distribution(&p, z, N, NULL, NULL, 0, seen, candidates, &kept, &e) == SLM2_E_NUMERICAL);
    char id[40];
    snprintf(id, sizeof id, "the logit of id %u is", (unsigned)at);
    CHECK(strstr(e.message, id) != NULL);
    z[other] = other_before;
    z[at] = before;
  }
}

static void penalties(void) {
  const float z[] = {2, -2, 1};
  const uint32_t context[] = {0, 1, 1, 1};
  slm2_sampler_params p = plain();
  uint32_t n = 0;
  p.repeat_penalty = 1.5f;
  CHECK(slm2_sampler_distribution(&p, z, 3, NULL, context, 4, seen, candidates, &n, NULL) == SLM2_OK && n == 3);
  CHECK(candidates[0].id == 0 && same(candidates[0].logit, 1.3333334f) );
  CHECK(same(candidates[2].logit, -3.0f) && same(candidates[1].logit, 1.0f));
  /* a penalty below 1 raises, and may overflow: refused; masked ids are not looked at */
  const float large[] = {3e38f, 1.0f, -3e38f};
  const uint8_t mask[] = {6};
  const uint32_t zero = 0, two = 2, three = 3;
  slm2_rng rng, before;
  slm2_error e;
  uint32_t id = 77;
  slm2_rng_init(&rng, 5);
  before = rng;
  p.repeat_penalty = 0.5f;
  CHECK(slm2_sampler_next(&p, large, 3, NULL, &zero, 1, seen, candidates, &rng, &id, &e) == SLM2_E_NUMERICAL);
  CHECK(strstr(e.message, "id 0") != NULL);
  p.repeat_penalty = 2.0f;
  CHECK(slm2_sampler_next(&p, large, 3, NULL, &two, 1, seen, candidates, &rng, &id, &e) == SLM2_E_NUMERICAL);
  CHECK(slm2_sampler_next(&p, large, 3, NULL, &three, 1, seen, candidates, &rng, &id, &e) == SLM2_E_TOKEN);
  CHECK(strstr(e.message, "3") != NULL);
  CHECK(id == 77 && memcmp(&rng, &before, sizeof rng) == 0);
  p.repeat_penalty = 0.5f;
  CHECK(slm2_sampler_next(&p, large, 3, mask, &zero, 1, seen, candidates, &rng, &id, &e) == SLM2_OK && id == 1);
}

static void refused_logits(void) {
  static const uint32_t bad[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7f800000, 0xff800000};
  static const float temperatures[] = {0.0f, 0.7f};
  float z[9] = {0};
  const uint8_t mask[] = {0x0f, 0};
  for (size_t b = 0; b < 5; b++)
    for (size_t at = 0; at < 9; at++)
      for (size_t t = 0; t < 2; t++) {
        slm2_sampler_params p = plain();
        slm2_rng rng, before;
        slm2_error e;
        slm2_logprob_base base = {1, 2};
        uint32_t id = 99;
        char label[32];
        p.temperature = temperatures[t];
        p.top_p = 0.8f;
        slm2_rng_init(&rng, 1);
        before = rng;
        z[at] = slm2_float_from_bits(bad[b]);
        snprintf(label, sizeof label, "id %zu", at);
        const uint8_t *has_token = at > 3 ? mask : NULL; /* masked ids are checked too */
        slm2_status status = slm2_sampler_next(&p, z, 9, has_token, NULL, 0, seen, candidates, &rng, &id, &e);
        CHECK_CASE(status == SLM2_E_NUMERICAL, label);
        CHECK_CASE(id == 99 && memcmp(&rng, &before, sizeof rng) == 0 && strstr(e.message, label) != NULL, label);
        CHECK_CASE(slm2_logprob_prepare(NULL, z, 9, &base, &e) == SLM2_E_NUMERICAL && same(base.max, 1.0f), label);
        CHECK_CASE(strstr(e.message, label) != NULL, label);
        z[at] = 0.0f;
        status = slm2_sampler_next(&p, z, 9, NULL, NULL, 0, seen, candidates, &rng, &id, &e);
        CHECK_CASE(status == SLM2_OK, label); /* still usable */
      }
}

static void refused_parameters(void) {
  const float nan = slm2_float_from_bits(0x7fc00000), inf = slm2_float_from_bits(0x7f800000), tiny = 0x1p-149f;
  const struct { const char *name; float t, p, m, r; } rows[] = {
    {"temperature", -1, 1, 0, 1}, {"temperature", nan, 1, 0, 1}, {"temperature", inf, 1, 0, 1}, {"temperature", -tiny, 1, 0, 1},
    {"top_p", 1, nan, 0, 1}, {"top_p", 1, inf, 0, 1}, {"top_p", 1, -inf, 0, 1},
    {"top_p", 1, -0.1f, 0, 1}, {"top_p", 1, 1.1f, 0, 1},
    {"min_p", 1, 1, nan, 1}, {"min_p", 1, 1, -0.1f, 1}, {"min_p", 1, 1, 1.1f, 1}, {"min_p", 1, 1, inf, 1},
    {"min_p", 1, 1, -tiny, 1},
    {"repeat_penalty", 1, 1, 0, 0}, {"repeat_penalty", 1, 1, 0, -0.0f}, {"repeat_penalty", 1, 1, 0, -1},
    {"repeat_penalty", 1, 1, 0, nan}, {"repeat_penalty", 1, 1, 0, inf},
    {NULL, 0, 1, 0, 1}, {NULL, -0.0f, 1, -0.0f, 1}, {NULL, tiny, -0.0f, 1, tiny}, {NULL, 3e38f, 0, tiny, 3e38f}};
  const float z[] = {1, 2};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    slm2_sampler_params p = {rows[i].t, 0, rows[i].p, rows[i].m, rows[i].r, 0};
    slm2_error e = {.code = SLM2_OK};
    uint32_t kept = 5;
    slm2_status want = rows[i].name == NULL ? SLM2_OK : SLM2_E_ARGUMENT;
    CHECK(slm2_sampler_check(&p, &e) == want && (rows[i].name == NULL || strcmp(e.name, rows[i].name) == 0));
    CHECK(slm2_sampler_distribution(&p, z, 2, NULL, NULL, 0, seen, candidates, &kept, &e) == want);
    CHECK((want == SLM2_OK) == (kept != 5));
  }
}

static void masks(void) {
  const float z[] = {9, 1, 9, 1};
  const uint8_t none[] = {0}, last[] = {8};
  slm2_sampler_params p = plain();
  slm2_error e;
  uint32_t n = 0;
  CHECK(slm2_sampler_distribution(&p, z, 4, none, NULL, 0, seen, candidates, &n, &e) == SLM2_E_ARGUMENT);
  CHECK(strstr(e.message, "4") != NULL);
  CHECK(slm2_sampler_distribution(&p, z, 0, NULL, NULL, 0, seen, candidates, &n, &e) == SLM2_E_ARGUMENT && n == 0);
  CHECK(slm2_sampler_distribution(&p, z, 4, last, NULL, 0, seen, candidates, &n, &e) == SLM2_OK);
  CHECK(n == 1 && candidates[0].id == 3);
  slm2_logprob_base base = {1, 2};
  CHECK(slm2_logprob_prepare(NULL, z, 0, &base, &e) == SLM2_E_ARGUMENT && same(base.max, 1.0f));
  /* Qwen3's padding rows */
  enum { V = 151936, TOKENS = 151669 };
  static float big[V];
  static uint8_t mask[V / 8];
  for (uint32_t i = 0; i < TOKENS; i++) mask[i / 8] = (uint8_t)(mask[i / 8] | 1u << (i & 7));
  for (uint32_t i = TOKENS; i < V; i++) big[i] = 100.0f;
  static const struct { float t; uint32_t k; uint32_t kept; } ways[] = {{0, 0, 1}, {1, 20, 20}, {1, 0, TOKENS}};
  for (size_t i = 0; i < 3; i++) {
    p = plain();
    p.temperature = ways[i].t;
    p.top_k = ways[i].k;
    CHECK(slm2_sampler_distribution(&p, big, V, mask, NULL, 0, seen, candidates, &n, &e) == SLM2_OK && n == ways[i].kept);
    for (uint32_t j = 0; j < n; j++)
      if (candidates[j].id != j) CHECK(candidates[j].id == j); /* equal logits: by id */
  }
  p = plain(); /* the sum of equal probabilities may stay below P: all are kept, nothing is read beyond */
  p.top_p = 0.9999999f;
  CHECK(slm2_sampler_distribution(&p, big, V, NULL, NULL, 0, seen, candidates, &n, &e) == SLM2_OK && n > 0 && n <= V);
}

/* [D21] Every "off" value, alone and together, gives the bits of the plain softmax, and greedy gives the argmax. */
static void neutrality(void) {
  uint64_t state = 21;
  for (int round = 0; round < 200; round++) {
    float z[97];
    uint32_t n = 1 + (uint32_t)(test_random(&state) % 97), context[30], kept = 0, best = 0;
    for (uint32_t i = 0; i < n; i++) {
      z[i] = (float)(int32_t)(test_random(&state) % 64) / 4.0f - 8.0f;
      if (z[i] > z[best]) best = i;
    }
    for (int i = 0; i < 30; i++) context[i] = (uint32_t)(test_random(&state) % n);
    slm2_sampler_params p = plain();
    static slm2_candidate off[97];
    kept = survivors(p, z, n);
    CHECK(kept == n);
    memcpy(off, candidates, n * sizeof off[0]);
    p.top_k = n + (uint32_t)(round % 3);
    CHECK(slm2_sampler_distribution(&p, z, n, NULL, context, 30, seen, candidates, &kept, NULL) == SLM2_OK && kept == n);
    CHECK(memcmp(off, candidates, n * sizeof off[0]) == 0);
    /* top-k is the head of the sorted whole: heap and full sort agree */
    p.top_k = 1 + (uint32_t)(test_random(&state) % n);
    kept = survivors(p, z, n);
    CHECK(kept == p.top_k);
    for (uint32_t i = 0; i < kept; i++) CHECK(candidates[i].id == off[i].id && same(candidates[i].logit, off[i].logit));
    p.temperature = 0.0f;
    slm2_rng rng, before;
    uint32_t id = n;
    slm2_rng_init(&rng, 3);
    before = rng;
    CHECK(slm2_sampler_next(&p, z, n, NULL, NULL, 0, seen, candidates, &rng, &id, NULL) == SLM2_OK && id == best);
    CHECK(memcmp(&rng, &before, sizeof rng) == 0);
  }
}

static void random_words(void) {
  static const uint64_t seeds[] = {0, 1, 4294967295u, 4294967296u, 18446744073709551615u};
  uint32_t first[5];
  for (size_t i = 0; i < 5; i++) {
    slm2_rng a, b;
    uint32_t words[50], key[8], block[16];
    slm2_rng_init(&a, seeds[i]);
    for (int j = 0; j < 50; j++) words[j] = slm2_rng_next(&a);
    first[i] = words[0];
    slm2_chacha8_key(seeds[i], key);
    slm2_chacha8_block(key, 2, block);
    CHECK(memcmp(block, words + 32, sizeof block) == 0);
    for (uint64_t used = 0; used < 50; used++) { /* (seed, words_used) restores the stream */
      slm2_rng_init(&b, seeds[i]);
      slm2_rng_seek(&b, used);
      CHECK(slm2_rng_next(&b) == words[used] && b.words_used == used + 1);
    }
    for (size_t j = 0; j < i; j++) CHECK(first[j] != first[i]);
  }
}

/* A word at the very end of the range never runs past the distribution, nor onto an id of probability 0. */
static void draw_border(void) {
  slm2_candidate c[3] = {{0, 0.75f, 4}, {0, 0.25f, 5}, {0, 0.0f, 6}};
  slm2_rng rng = {.words_used = 1};
  static const struct { uint32_t word, id; } rows[] = {
    {0, 4}, {0xffffffffu, 5}, {0xbfffffffu, 4}, {0xc0000000u, 5}, {0xc00000ffu, 5}};
  for (size_t i = 0; i < 5; i++) {
    rng.words_used = 1;
    rng.block[1] = rows[i].word;
    CHECK(slm2_sampler_draw(c, 3, &rng) == rows[i].id && rng.words_used == 2);
  }
}

/* Sets the floating-point control state and returns the one before; elsewhere a number that changes nothing. */
#define HOSTILE 0xdfc0u /* flush to zero, denormals are zero, round up */
static uint32_t set_environment(uint32_t next) {
#if defined(__x86_64__) || defined(__i386__)
  uint32_t old;
  __asm__ volatile("stmxcsr %0" : "=m"(old) : : "memory");
  __asm__ volatile("ldmxcsr %0" : : "m"(next) : "memory");
#else
  static uint32_t control;
  const uint32_t old = control;
  control = next;
#endif
  return old;
}

static void hostile_environment(void) {
  const float z[] = {0.0f, -90.0f, -95.0f, -1.0f};
  uint32_t n = 0;
  slm2_sampler_params p = plain();
  slm2_candidate want[4];
  slm2_logprob_base base, hostile_base;
  CHECK(survivors(p, z, 4) == 4 && slm2_logprob_prepare(NULL, z, 4, &base, NULL) == SLM2_OK);
  CHECK(slm2_float_bits(candidates[3].p) != 0 && slm2_float_bits(candidates[3].p) < 0x00800000); /* a subnormal */
  memcpy(want, candidates, sizeof want);
  const uint32_t old = set_environment(HOSTILE);
  slm2_status status = slm2_sampler_distribution(&p, z, 4, NULL, NULL, 0, seen, candidates, &n, NULL);
  slm2_status base_status = slm2_logprob_prepare(NULL, z, 4, &hostile_base, NULL);
  float logprob = slm2_logprob(&base, z[3]);
  const uint32_t after = set_environment(old);
  CHECK(status == SLM2_OK && base_status == SLM2_OK && n == 4 && after == HOSTILE);
  CHECK(memcmp(want, candidates, sizeof want) == 0 && memcmp(&base, &hostile_base, sizeof base) == 0);
  CHECK(same(logprob, slm2_logprob(&base, z[3])));
}

/* Threads that take pieces from the back, each in an environment that rounds up and flushes. */
static uint32_t pieces;
static void backwards(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain) {
  (void)self;
  for (uint32_t end = units; end > 0; pieces++) {
    const uint32_t begin = end < grain ? 0 : end - grain;
    const uint32_t old = set_environment(HOSTILE);
    job(context, pieces % 3, begin, end);
    (void)set_environment(old);
    end = begin;
  }
}

/* [D26] with and without threads, at lengths around blocks: the sum as [D7] has it. */
static void logprob_lengths(void) {
  static const uint32_t lengths[] = {1, 7, 8, 9, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 20011};
  static float z[20011], exps[20012];
  const slm2_pool pool = {.n_threads = 3, .run = backwards};
  uint64_t random = 5;
  for (uint32_t i = 0; i < 20011; i++) z[i] = (float)(test_random(&random) % 1200) / -10.0f; /* some exponentials are subnormal */
  for (uint32_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    const uint32_t n = lengths[i];
    slm2_lanes8 sum = {{0}};
    float max = z[0];
    for (uint32_t k = 0; k < n; k++) max = z[k] > max ? z[k] : max;
    for (uint32_t k = 0; k < n; k++) sum.s[k & 7] += slm2_expf(z[k] - max);
    const float log_sum = slm2_logf(slm2_lanes8_sum(&sum));
    slm2_logprob_base alone, together;
    exps[n] = 7.0f;
    pieces = 0;
    CHECK(slm2_logprob_prepare(NULL, z, n, &alone, NULL) == SLM2_OK && same(alone.max, max) && same(alone.log_sum, log_sum));
    CHECK(slm2_logprob_prepare_on(&pool, exps, NULL, z, n, &together, NULL) == SLM2_OK);
    CHECK(same(together.max, max) && same(together.log_sum, log_sum) && exps[n] == 7.0f);
    CHECK(pieces == (n + 1023) / 1024);
    uint32_t right = 0;
    for (uint32_t k = 0; k < n; k++) right += same(exps[k], slm2_expf(z[k] - max));
    CHECK(right == n);
  }
}

int main(void) {
  logprob_lengths();
  data_file("tests/data/sampler/d19_sequences.json", 17);
  data_file("tests/data/sampler/cases.json", 160);
  cuts();
  strict_top_p();
  ties_and_temperature();
  anywhere();
  penalties();
  refused_logits();
  refused_parameters();
  masks();
  neutrality();
  random_words();
  draw_border();
  hostile_environment();
  return test_end("sampler");
}
