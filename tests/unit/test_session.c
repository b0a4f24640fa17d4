/* tests/unit/test_session.c: loading a model, the memory plan, and the timeline's rules: what is refused, with which
 * numbers, and what stays. The bits are test_forward.c's matter. */
#include "session/session.h"
#include "tests/unit/tiny_model.h"

/* --- loading -------------------------------------------------------------------- */

static slm2_status load(const uint8_t *file, uint64_t n, slm2_error *error) {
  size_t bytes;
  slm2_model *m = NULL;
  slm2_status status = slm2_model_bytes(file, n, &bytes, error);
  if (status != SLM2_OK) return status;
  void *mem = tiny_memory(bytes);
  status = slm2_model_init(mem, bytes, file, n, &m, error);
  CHECK((status == SLM2_OK) == (m != NULL));
  free(mem);
  return status;
}

static void test_load(void) {
  slm2_error error;
  tiny_file f = tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN);
  size_t bytes;
  slm2_model *m = NULL;
  CHECK(slm2_model_bytes(f.bytes, f.n, &bytes, &error) == SLM2_OK);
  uint8_t *mem = tiny_memory(bytes + 64), *copy = tiny_memory(f.n + 64);
  CHECK(slm2_model_init(mem, bytes, f.bytes, f.n, &m, &error) == SLM2_OK);
  CHECK(slm2_model_header(m)->header_bytes == f.header.header_bytes && slm2_model_header(m)->config.vocab == 320);
  CHECK(slm2_model_tokenizer(m) == NULL);
  for (uint32_t i = 0; i < 320 / 8; i++) CHECK(slm2_model_token_mask(m)[i] == 0xff);
  uint8_t identity[32], expected[32];
  slm2_model_identity(m, identity);
  slm2_sha256_of(f.bytes + 8, (size_t)f.header.header_bytes, expected);
  CHECK(memcmp(identity, expected, 32) == 0);

  m = NULL;
  CHECK(slm2_model_init(mem, bytes - 1, f.bytes, f.n, &m, &error) == SLM2_E_MEMORY && m == NULL);
  CHECK(slm2_model_init(mem + 32, bytes, f.bytes, f.n, &m, &error) == SLM2_E_ARGUMENT && m == NULL);
  memcpy(copy + 8, f.bytes, (size_t)f.n);
  CHECK(load(copy + 8, f.n, &error) == SLM2_E_ARGUMENT && strstr(error.message, "64") != NULL);
  for (uint64_t n = 0; n < 8; n++) CHECK(load(f.bytes, n, &error) == SLM2_E_FORMAT);
  CHECK(load(f.bytes, f.n - 1, &error) != SLM2_OK && load(f.bytes, f.n + 1, &error) != SLM2_OK);
  CHECK(load(f.bytes, 8 + f.header.header_bytes, &error) != SLM2_OK);
  free(mem), free(copy), free(f.bytes);
}

/* What bind.c would say if the parser let a header through that does not fit its data. */
static void test_bind(void) {
  tiny_model m = tiny_load(tiny_build(&tiny_specs[1], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  slm2_model broken = *m.model;
  slm2_error error;
  const uint8_t *tokenizer;
  CHECK(slm2_model_bind(&broken, tiny_data(&m.file), &tokenizer, &error) == SLM2_OK);
  broken.header.data_bytes -= 64; /* the last section, lm_head.weight, ends beyond them */
  CHECK(slm2_model_bind(&broken, tiny_data(&m.file), &tokenizer, &error) == SLM2_E_INTERNAL_INVARIANT);
  CHECK(strcmp(error.name, "lm_head.weight") == 0);
  tiny_free(&m);
}

/* [D14] Only frequencies in (0, 1] keep every angle in the tested range. */
static void test_inv_freq(void) {
  static const struct {
    uint32_t bits;
    slm2_status status;
  } cases[] = {{0x3f800000, SLM2_OK}, {1, SLM2_OK}, {0, SLM2_E_WEIGHT}, {0x80000000, SLM2_E_WEIGHT}, {0x3f800001, SLM2_E_WEIGHT},
               {0xbf000000, SLM2_E_WEIGHT}, {0x7f800000, SLM2_E_WEIGHT}, {0x7fc00000, SLM2_E_WEIGHT}, {0xff800000,
                                                                                                       SLM2_E_WEIGHT}};
  tiny_file f = tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN);
  slm2_section s;
  uint8_t *table = tiny_section(&f, "rope.inv_freq", &s);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_error error;
    slm2_store_u32(table + 4 * 15, cases[i].bits); /* the last one */
    CHECK(load(f.bytes, f.n, &error) == cases[i].status);
    if (cases[i].status != SLM2_OK) CHECK(strcmp(error.name, "rope.inv_freq") == 0 && strstr(error.message, "15") != NULL);
  }
  free(f.bytes);
}

/* Ids without a token, in the middle and at the end, are masked [D19]; ids beyond the embedding are refused. */
static void test_tokenizer(void) {
  static const struct {
    uint32_t last;
    slm2_status status;
  } cases[] = {{300, SLM2_OK}, {319, SLM2_OK}, {320, SLM2_E_DIMENSION_MISMATCH}, {400, SLM2_E_DIMENSION_MISMATCH}};
  for (int i = 0; i < 4; i++) {
    const tiny_token tokens[] = {{256, "xy", 0}, {260, "yz", 0}, {cases[i].last, "<x>", 1}};
    size_t n;
    slm2_error error;
    uint8_t *section = tiny_tokenizer(tokens, 3, &n);
    tiny_file f = tiny_build(&tiny_specs[0], SLM2_FORM_ROWS, section, n, SLM2_NO_TOKEN);
    slm2_status status = load(f.bytes, f.n, &error);
    CHECK(status == cases[i].status);
    if (status != SLM2_OK) {
      char number[16];
      snprintf(number, sizeof number, "%u,", cases[i].last);
      CHECK_CASE(strstr(error.message, number) != NULL && strstr(error.message, "320 rows") != NULL, error.message);
    } else {
      tiny_model m = tiny_load(f);
      for (uint32_t id = 0; id < 320; id++) {
        bool has = id <= 256 || id == 260 || id == cases[i].last;
        CHECK((slm2_model_token_mask(m.model)[id / 8] >> (id % 8) & 1) == has);
      }
      CHECK(slm2_token_find_added(slm2_model_tokenizer(m.model), "<x>", 3) == cases[i].last);
      free(m.memory);
      slm2_store_u32(tiny_data(&f), 0); /* not a tokenizer */
      CHECK(load(f.bytes, f.n, &error) == SLM2_E_FORMAT);
    }
    free(f.bytes), free(section);
  }
}

/* --- the plan ----------------------------------------------------------------------- */

static const slm2_config qwen3_06b = {1024, 3072, 28, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true};

static void test_plan(void) {
  slm2_header h = {.config = qwen3_06b};
  slm2_session_params p = {.context = 8192, .tile = 1, .profile = SLM2_PROFILE_F32, .kv = SLM2_KV_F32};
  slm2_plan plan;
  slm2_error error;
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_OK);
  CHECK(plan.kv == 1879048192u && plan.logits == 607744u && plan.tokens == 32768u && plan.sampler == 151936u * 12 + 18993);
  /* x, h, delta: 3 * 1024; q, attended: 2 * 2048; k, v: 2 * 1024; gate, up: 2 * 3072; cos, sin: 128;
   * attention: 2 rows, to 16, of scores and queries; 32 keys or values */
  CHECK(plan.scratch == 4 * (3 * 1024 + 2 * 2048 + 2 * 1024 + 2 * 3072 + 128 + 16 * (8192 + 128) + 32 * 128));
  CHECK(plan.total == plan.kv + plan.scratch + plan.logits + plan.sampler + plan.tokens + plan.state);
  CHECK(plan.state < 4096 && plan.total % 64 == 0);
  p.profile = SLM2_PROFILE_Q8; /* the widest input, 3072 bytes and 96 scales */
  p.kv = SLM2_KV_F16;
  p.tile = 128;
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_OK);
  CHECK(plan.kv == 939524096u);
  CHECK(plan.scratch == 128 * (4 * (3 * 1024 + 2 * 2048 + 2 * 1024 + 2 * 3072 + 128) + 3072 + 4 * 96) +
                            4 * (32 * (8192 + 128) + 32 * 128));
  CHECK(plan.scratch < 64u << 20); /* R93 */
  const uint64_t alone = plan.scratch;
  p.pool = &(slm2_pool){.n_threads = 8};
  p.context = 8192 - 15;
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_OK &&
        plan.scratch == alone + 7 * 4 * (32 * (8192 + 128) + 32 * 128) - 8 * 4 * 32 * 15);
  p.pool = NULL;
  p.context = 1;
  p.tile = 1;
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_OK && plan.kv == 114688);
  /* The largest of everything still fits 64 bits. */
  h.config = (slm2_config){SLM2_MAX_HIDDEN, SLM2_MAX_INTERMEDIATE, SLM2_MAX_LAYERS, SLM2_MAX_HEADS, SLM2_MAX_HEADS,
                           SLM2_MAX_HEAD_DIM,
                           SLM2_MAX_VOCAB, SLM2_MAX_POSITIONS, 10000, 1e-6f, false};
  p = (slm2_session_params){.context = 131073, .tile = 128, .profile = SLM2_PROFILE_F32, .kv = SLM2_KV_F32};
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_OK);
  CHECK(plan.kv == 2ull * 256 * 1024 * 512 * 131073 * 4);
}

static void test_plan_refusals(void) {
  static const slm2_pool nobody = {.n_threads = 0}, crowd = {.n_threads = SLM2_THREADS_MAX + 1};
  static const struct {
    slm2_session_params p;
    const char *name, *numbers;
  } cases[] = {
      {{.context = 0, .tile = 1}, "context", "0 is outside 1 .. 40960"},
      {{.context = 40961, .tile = 1}, "context", "40961 is outside 1 .. 40960"},
      {{.context = UINT32_MAX, .tile = 1}, "context", "4294967295"},
      {{.context = 10, .tile = 0}, "tile", "0 is outside 1 .. 128"},
      {{.context = 10, .tile = 129}, "tile", "129 is outside 1 .. 128"},
      {{.context = 10, .tile = 1, .profile = (slm2_profile)2}, "profile", "2"},
      {{.context = 10, .tile = 1, .kv = (slm2_kv_type)7}, "kv", "7"},
      {{.context = 10, .tile = 1, .pool = &nobody}, "threads", "0 is outside 1 .. 1024"},
      {{.context = 10, .tile = 1, .pool = &crowd}, "threads", "1025 is outside 1 .. 1024"},
  };
  slm2_header h = {.config = qwen3_06b};
  slm2_plan plan = {.kv = 77}, untouched = plan;
  slm2_error error;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_CASE(slm2_session_plan(&h, &cases[i].p, &plan, &error) == SLM2_E_ARGUMENT, cases[i].numbers);
    CHECK_CASE(strcmp(error.name, cases[i].name) == 0 && strstr(error.message, cases[i].numbers) != NULL, error.message);
    CHECK(memcmp(&plan, &untouched, sizeof plan) == 0);
  }
  slm2_session_params p = {.context = 131074, .tile = 1};
  h.config.max_positions = 262144; /* a model that reaches beyond the tested angles */
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_E_ARGUMENT && strstr(error.message, "131073") != NULL);
  p.context = 131073;
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_OK);
  h.config.hidden = 33;
  CHECK(slm2_session_plan(&h, &p, &plan, &error) == SLM2_E_DIMENSION_MISMATCH);
}

static void test_init(const tiny_model *m) {
  slm2_session_params p = {.context = 9, .tile = 4, .profile = SLM2_PROFILE_Q8, .kv = SLM2_KV_F16};
  slm2_plan plan;
  slm2_session *s = NULL;
  slm2_error error;
  CHECK(slm2_session_plan(slm2_model_header(m->model), &p, &plan, &error) == SLM2_OK);
  uint8_t *mem = tiny_memory(plan.total + 64);
  CHECK(slm2_session_init(mem, plan.total - 1, m->model, &p, &s, &error) == SLM2_E_MEMORY && s == NULL);
  char number[24];
  snprintf(number, sizeof number, "%llu bytes needed", (unsigned long long)plan.total);
  CHECK(strstr(error.message, number) != NULL);
  CHECK(slm2_session_init(mem + 16, plan.total, m->model, &p, &s, &error) == SLM2_E_ARGUMENT && s == NULL);
  p.tile = 0;
  CHECK(slm2_session_init(mem, plan.total, m->model, &p, &s, &error) == SLM2_E_ARGUMENT && s == NULL);
  p.tile = 4;
  CHECK(slm2_session_init(mem, plan.total, m->model, &p, &s, &error) == SLM2_OK);
  CHECK(slm2_session_length(s) == 0 && slm2_session_context(s) == 9 && slm2_session_logits(s) == NULL &&
        slm2_session_model(s) == m->model);
  free(mem);
}

/* --- the timeline ---------------------------------------------------------------------- */

static uint32_t products;
static void counting_matmul(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0,
                            uint32_t r1) {
  products++;
  slm2_backend_oracle.matmul_f32(y, y_stride, w, x, n, r0, r1);
}

/* Refusals come before any work and change nothing. */
static void test_append_refusals(const tiny_model *m) {
  slm2_backend counting = slm2_backend_oracle;
  counting.matmul_f32 = counting_matmul;
  slm2_session_params p = {.context = 8, .tile = 4, .backend = &counting};
  slm2_session *s = tiny_session(m->model, &p);
  slm2_error error;
  uint32_t ids[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, reused = 99;
  CHECK(slm2_session_append(s, ids, 5, NULL, &error) == SLM2_OK);
  float before[320];
  memcpy(before, slm2_session_logits(s), sizeof before);
  products = 0;

  CHECK(slm2_session_append(s, ids, 0, NULL, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_session_append(s, ids, 4, NULL, &error) == SLM2_E_CONTEXT_OVERFLOW);
  CHECK(strstr(error.message, "5 tokens") != NULL && strstr(error.message, "4 more") != NULL &&
        strstr(error.message, "of 8") != NULL);
  CHECK(slm2_session_append(s, ids, UINT32_MAX, NULL, &error) == SLM2_E_CONTEXT_OVERFLOW);
  CHECK(slm2_session_sync(s, ids, 9, NULL, &reused, &error) == SLM2_E_CONTEXT_OVERFLOW && reused == 99);
  CHECK(slm2_session_sync(s, ids, 0, NULL, &reused, &error) == SLM2_E_ARGUMENT && reused == 99);
  ids[2] = 320;
  CHECK(slm2_session_append(s, ids, 3, NULL, &error) == SLM2_E_TOKEN);
  CHECK(strstr(error.message, "token 2") != NULL && strstr(error.message, "320") != NULL && strstr(error.message, "319") != NULL);
  ids[2] = UINT32_MAX;
  CHECK(slm2_session_sync(s, ids, 4, NULL, &reused, &error) == SLM2_E_TOKEN && reused == 99);
  CHECK(slm2_session_rewind(s, 6, &error) == SLM2_E_ARGUMENT && strstr(error.message, "6") != NULL &&
        strstr(error.message, "5") != NULL);

  CHECK(products == 0 && slm2_session_length(s) == 5);
  CHECK(memcmp(slm2_session_ids(s), (const uint32_t[]){1, 2, 3, 4, 5}, 20) == 0);
  CHECK(slm2_session_logits(s) != NULL && memcmp(before, slm2_session_logits(s), sizeof before) == 0);
  CHECK(slm2_session_rewind(s, 5, &error) == SLM2_OK && slm2_session_logits(s) != NULL); /* nothing to forget */
  CHECK(slm2_session_append(s, (const uint32_t[]){6, 7, 8}, 3, NULL, NULL) == SLM2_OK &&
        slm2_session_length(s) == 8); /* exactly full */
  CHECK(slm2_session_append(s, ids, 1, NULL, NULL) == SLM2_E_CONTEXT_OVERFLOW);
  CHECK(slm2_session_rewind(s, 0, &error) == SLM2_OK && slm2_session_logits(s) == NULL);
  free(s);
}

static void test_sync(const tiny_model *m) {
  static const struct {
    uint32_t n_old, old[6], n, ids[6], reused;
  } cases[] = {
      {0, {0}, 3, {1, 2, 3}, 0},                       /* cold */
      {3, {1, 2, 3}, 5, {1, 2, 3, 4, 5}, 3},           /* a turn longer */
      {3, {1, 2, 3}, 3, {1, 2, 3}, 2},                 /* the same: the last one is computed again, for its logits */
      {5, {1, 2, 3, 4, 5}, 3, {1, 2, 3}, 2},           /* shorter */
      {4, {1, 2, 9, 4}, 4, {1, 2, 3, 4}, 2},           /* differs in the middle */
      {4, {1, 2, 3, 4}, 4, {7, 2, 3, 4}, 0},           /* differs at once */
      {1, {1}, 1, {1}, 0},
  };
  slm2_session_params p = {.context = 6, .tile = 2};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_session *s = tiny_session(m->model, &p), *cold = tiny_session(m->model, &p);
    slm2_error error;
    uint32_t reused = 99;
    if (cases[i].n_old > 0) CHECK(slm2_session_append(s, cases[i].old, cases[i].n_old, NULL, &error) == SLM2_OK);
    products = 0;
    CHECK(slm2_session_sync(s, cases[i].ids, cases[i].n, NULL, &reused, &error) == SLM2_OK && reused == cases[i].reused);
    CHECK(slm2_session_length(s) == cases[i].n && memcmp(slm2_session_ids(s), cases[i].ids, 4 * cases[i].n) == 0);
    CHECK(slm2_session_append(cold, cases[i].ids, cases[i].n, NULL, &error) == SLM2_OK);
    CHECK(memcmp(slm2_session_logits(s), slm2_session_logits(cold), 320 * sizeof(float)) == 0);
    CHECK(slm2_session_sync(s, slm2_session_ids(s), cases[i].n, NULL, &reused, &error) == SLM2_OK && reused == cases[i].n - 1);
    CHECK(memcmp(slm2_session_logits(s), slm2_session_logits(cold), 320 * sizeof(float)) == 0);
    free(s), free(cold);
  }
  /* An error after work began: the common prefix is left. Two tiles, so the first is computed. */
  slm2_cancel stop;
  atomic_init(&stop, 1);
  slm2_session *s = tiny_session(m->model, &p);
  uint32_t reused = 99;
  CHECK(slm2_session_append(s, (const uint32_t[]){1, 2, 3, 4}, 4, NULL, NULL) == SLM2_OK);
  CHECK(slm2_session_sync(s, (const uint32_t[]){1, 2, 5}, 3, &(slm2_run){.cancel = &stop}, &reused, NULL) == SLM2_E_CANCELLED);
  CHECK(reused == 99 && slm2_session_length(s) == 2 && slm2_session_logits(s) == NULL);
  free(s);
}

/* --- callbacks ---------------------------------------------------------------------------- */

typedef struct trace {
  char text[128];
  uint32_t stop_at;
} trace;
static void on_progress(void *user, uint32_t done, uint32_t total) {
  char *text = ((trace *)user)->text;
  snprintf(text + strlen(text), 128 - strlen(text), "p%u/%u ", done, total);
}
static slm2_status on_logits(void *user, uint32_t position, const float *logits) {
  trace *t = user;
  CHECK(logits != NULL);
  snprintf(t->text + strlen(t->text), 128 - strlen(t->text), "l%u ", position);
  return position == t->stop_at ? SLM2_E_IO : SLM2_OK;
}

static void test_callbacks(const tiny_model *m) {
  slm2_session_params p = {.context = 8, .tile = 2};
  slm2_session *s = tiny_session(m->model, &p);
  slm2_error error;
  const uint32_t ids[] = {1, 2, 3, 4, 5, 6};
  trace t = {"", 99};
  CHECK(slm2_session_append(s, ids, 1, &(slm2_run){.progress = on_progress, .user = &t}, &error) == SLM2_OK);
  CHECK_CASE(strcmp(t.text, "p1/1 ") == 0, t.text);
  t.text[0] = 0;
  slm2_run run = {.progress = on_progress, .each_logits = on_logits, .user = &t};
  CHECK(slm2_session_append(s, ids, 3, &run, &error) == SLM2_OK);
  CHECK_CASE(strcmp(t.text, "l1 l2 p3/4 l3 p4/4 ") == 0, t.text);
  t = (trace){"", 5};
  CHECK(slm2_session_append(s, ids, 3, &run, &error) == SLM2_E_IO); /* its own status, passed through */
  CHECK_CASE(strcmp(t.text, "l4 l5 ") == 0, t.text);
  CHECK(slm2_session_length(s) == 4 && slm2_session_logits(s) == NULL);
  run = (slm2_run){.no_logits = true};
  CHECK(slm2_session_append(s, ids, 1, &run, &error) == SLM2_OK && slm2_session_length(s) == 5 && slm2_session_logits(s) == NULL);
  run.each_logits = on_logits, run.user = &t;
  t = (trace){"", 99};
  CHECK(slm2_session_append(s, ids, 1, &run, &error) == SLM2_OK && slm2_session_logits(s) != NULL);
  free(s);
}

static void test_names(void) {
  CHECK(strcmp(slm2_profile_name(SLM2_PROFILE_F32), "f32") == 0 && strcmp(slm2_profile_name(SLM2_PROFILE_Q8), "q8") == 0);
  CHECK(strcmp(slm2_kv_name(SLM2_KV_F32), "f32") == 0 && strcmp(slm2_kv_name(SLM2_KV_F16), "f16") == 0);
}

int main(void) {
  test_load();
  test_bind();
  test_inv_freq();
  test_tokenizer();
  test_plan();
  test_plan_refusals();
  tiny_model m = tiny_load(tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  test_init(&m);
  test_append_refusals(&m);
  test_sync(&m);
  test_callbacks(&m);
  test_names();
  tiny_free(&m);
  return test_end("session");
}
