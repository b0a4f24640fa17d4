/* tests/unit/test_forward.c: whole passes. The bits of tests/golden/tiny_forward.txt, which an independent numpy program
 * computed token by token, must come out of every storage form, tile, chunking, reuse, cancel, backend, number of threads
 * and order of work [D8] [D22]; and nothing that is not finite may pass a stage border [D5]. */
#include "platform/threads.h"
#include "session/session.h"
#include "tests/unit/tiny_model.h"

#define N_IDS 10
static const uint32_t ids[N_IDS] = {7, 1, 63, 0, 7, 7, 20, 9, 33, 2}; /* forward_reference.py, IDS */
static const slm2_profile profiles[] = {SLM2_PROFILE_F32, SLM2_PROFILE_Q8};
static const slm2_kv_type kv_types[] = {SLM2_KV_F32, SLM2_KV_F16};

/* --- goldens ------------------------------------------------------------------- */

static char golden[N_TINY][2][2][N_IDS][65];

static void read_goldens(void) {
  char *text = test_read_file("tests/golden/tiny_forward.txt", NULL);
  int n = 0;
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    char name[16], profile[8], kv[8], digest[80];
    int position;
    if (line[0] == '#' || sscanf(line, "%15s %7s %7s %d %79s", name, profile, kv, &position, digest) != 5) continue;
    for (int i = 0; i < N_TINY; i++)
      if (strcmp(name, tiny_specs[i].name) == 0) {
        memcpy(golden[i][strcmp(profile, "q8") == 0][strcmp(kv, "f16") == 0][position], digest, 65);
        n++;
      }
  }
  CHECK(n == N_TINY * 2 * 2 * N_IDS);
  free(text);
}

typedef struct digests {
  char hex[N_IDS][65];
  uint32_t vocab, n;
} digests;

static void digest(const float *logits, uint32_t vocab, char hex[65]) {
  uint8_t bytes[4 * 320], hash[32];
  for (uint32_t i = 0; i < vocab; i++) slm2_store_f32(bytes + 4 * (size_t)i, logits[i]);
  slm2_sha256_of(bytes, 4 * (size_t)vocab, hash);
  slm2_hex(hash, 32, hex);
}
static slm2_status collect(void *user, uint32_t position, const float *logits) {
  digests *d = user;
  d->n++;
  digest(logits, d->vocab, d->hex[position]);
  return SLM2_OK;
}

/* One way through all ids. */
typedef struct way {
  int model;
  slm2_profile profile;
  slm2_kv_type kv;
  char label[80];
} way;

static way way_of(int model, slm2_profile profile, slm2_kv_type kv, const char *what, uint32_t number) {
  way w = {model, profile, kv, ""};
  snprintf(w.label, sizeof w.label, "%s %s %s, %s %u", tiny_specs[model].name, slm2_profile_name(profile), slm2_kv_name(kv),
           what, number);
  return w;
}
static const char *expected(const way *w, uint32_t position) { return golden[w->model][w->profile][w->kv][position]; }

/* Appends ids[from .. n) in chunks; every position's logits are compared. */
static void check_append(slm2_session *s, const way *w, uint32_t chunk) {
  digests d = {.vocab = tiny_specs[w->model].config.vocab};
  slm2_error error;
  uint32_t from = slm2_session_length(s);
  for (uint32_t at = from; at < N_IDS; at += chunk) {
    uint32_t n = N_IDS - at < chunk ? N_IDS - at : chunk;
    slm2_run run = {.each_logits = collect, .user = &d};
    CHECK_CASE(slm2_session_append(s, ids + at, n, &run, &error) == SLM2_OK, w->label);
    CHECK_CASE(slm2_session_length(s) == at + n, w->label);
  }
  CHECK_CASE(d.n == N_IDS - from, w->label);
  for (uint32_t i = from; i < N_IDS; i++) CHECK_CASE(strcmp(d.hex[i], expected(w, i)) == 0, w->label);
}
/* The logits in the session are those of its last position. */
static void check_last(slm2_session *s, const way *w) {
  char hex[65];
  if (!CHECK_CASE(slm2_session_logits(s) != NULL, w->label)) return;
  digest(slm2_session_logits(s), tiny_specs[w->model].config.vocab, hex);
  CHECK_CASE(strcmp(hex, expected(w, slm2_session_length(s) - 1)) == 0, w->label);
}

/* --- pools ---------------------------------------------------------------------- */

/* Pools without threads that hand out pieces in the worst orders, with other numbers of threads than one would guess. */
static void run_backwards(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain) {
  (void)self;
  for (uint32_t end = units; end > 0;) {
    uint32_t n = end < grain ? end : grain;
    end -= n;
    job(context, end % 3, end, end + n);
  }
}
static void run_by_ones(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain) {
  (void)self, (void)grain;
  const uint32_t step = units % 7 != 0 ? 7 : units % 5 != 0 ? 5 : 1;
  for (uint32_t i = 0, at = 3 % units; i < units; i++, at = (at + step) % units) job(context, i % 5, at, at + 1);
}
static const slm2_pool backwards = {.n_threads = 3, .run = run_backwards}, by_ones = {.n_threads = 5, .run = run_by_ones};

#define N_POOLS 6
static const slm2_pool *pools[N_POOLS] = {NULL, &backwards, &by_ones}; /* then 2, 3 and 8 threads */
static slm2_threads *threads[3];
static const slm2_pool *pool; /* of the sessions to come */

static void open_pools(void) {
  static const uint32_t counts[] = {2, 3, 8};
  slm2_error error;
  for (int i = 0; i < 3; i++) {
    if (slm2_threads_create(counts[i], &threads[i], &error) != SLM2_OK) exit(1);
    pools[3 + i] = slm2_threads_pool(threads[i]);
  }
}

/* --- every way gives the same bits ------------------------------------------------ */

static slm2_session *session(const tiny_model *m, const way *w, uint32_t tile, const slm2_backend *backend) {
  slm2_session_params params = {
      .context = 12, .tile = tile, .profile = w->profile, .kv = w->kv, .backend = backend, .pool = pool};
  return tiny_session(m->model, &params);
}

static void test_chunks(const tiny_model *m, int model, slm2_profile profile, slm2_kv_type kv, const slm2_backend *backend) {
  static const uint32_t tiles[] = {1, 3, 128}, chunks[] = {1, 2, 7, N_IDS};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 4; k++) {
      way w = way_of(model, profile, kv, "chunk", chunks[k]);
      slm2_session *s = session(m, &w, tiles[i], backend);
      check_append(s, &w, chunks[k]);
      check_last(s, &w);
      free(s);
    }
}

static void test_pools(const tiny_model *m, int model, slm2_profile profile, slm2_kv_type kv, const slm2_backend *backend) {
  for (uint32_t i = 1; i < N_POOLS; i++) {
    pool = pools[i];
    way w = way_of(model, profile, kv, "pool", i);
    slm2_session *s = session(m, &w, i % 2 == 0 ? 128 : 4, backend);
    check_append(s, &w, i % 2 == 0 ? 1 : 7);
    check_last(s, &w);
    free(s);
  }
  pool = NULL;
}

/* NaN in all keys and values beyond the length, and in all scratch [R43] [R44] [DET-6]. */
static void poison(slm2_session *s) {
  const slm2_config *c = &s->forward.model->header.config;
  const slm2_kv_cache *kv = &s->forward.kv;
  for (uint32_t layer = 0; layer < c->layers; layer++)
    for (uint32_t h = 0; h < c->kv_heads; h++) {
      size_t from = slm2_kv_at(kv, layer, h, s->length), to = slm2_kv_at(kv, layer, h, 0) + slm2_kv_at(kv, 0, 0, kv->context);
      memset(kv->keys + from, 0xff, to - from);
      memset(kv->values + from, 0xff, to - from);
    }
  const slm2_scratch *x = &s->forward.scratch;
  memset(x->x, 0xff, (size_t)((uint8_t *)x->scores - (uint8_t *)x->x)); /* the arrays before scores follow each other */
  memset(x->scores, 0xff, x->scores_stride * sizeof *x->scores);
}

static void test_reuse(const tiny_model *m, int model, slm2_profile profile, slm2_kv_type kv) {
  static const uint32_t other[N_IDS + 2] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
  slm2_error error;
  for (uint32_t keep = 0; keep < N_IDS; keep++) {
    way w = way_of(model, profile, kv, "reused", keep);
    slm2_session *s = session(m, &w, 3, NULL);
    if (keep > 0) CHECK_CASE(slm2_session_append(s, ids, keep, NULL, &error) == SLM2_OK, w.label);
    CHECK_CASE(slm2_session_append(s, other, N_IDS + 2 - keep, NULL, &error) == SLM2_OK, w.label); /* to the end of the context */
    CHECK_CASE(slm2_session_rewind(s, keep, &error) == SLM2_OK && slm2_session_logits(s) == NULL, w.label);
    if (keep % 2 == 0) poison(s);
    check_append(s, &w, 4);
    uint32_t reused;
    CHECK_CASE(slm2_session_sync(s, ids, keep + 1, NULL, &reused, &error) == SLM2_OK && reused == keep, w.label);
    CHECK_CASE(slm2_session_length(s) == keep + 1, w.label);
    check_last(s, &w);
    free(s);
  }
}

/* More tokens than a tile may hold: full tiles, a rest, and single tokens agree. */
static void test_long(const tiny_model *m) {
  uint32_t many[150];
  float first[64];
  for (uint32_t i = 0; i < 150; i++) many[i] = (i * i + 5) % 64;
  for (int p = 0; p < 2; p++)
    for (uint32_t tile = 1; tile <= 128; tile += 127) {
      slm2_session_params params = {.context = 150, .tile = tile, .profile = profiles[p], .kv = kv_types[p]};
      slm2_session *s = tiny_session(m->model, &params);
      if (!CHECK(slm2_session_append(s, many, 150, NULL, NULL) == SLM2_OK)) continue;
      if (tile == 1) memcpy(first, slm2_session_logits(s), sizeof first);
      else CHECK(memcmp(first, slm2_session_logits(s), sizeof first) == 0);
      free(s);
    }
}

/* [D2] A host thread that rounds upward and flushes subnormals computes the same bits, and keeps its settings. */
static void test_host_control(const tiny_model *m, int model) {
#if defined(__SSE2__)
  const unsigned host = 0x1f80u | 0x4000u | 0x8000u | 0x0040u; /* masked; round up, flush to zero, denormals are zero */
  for (int p = 0; p < 2; p++) {
    way w = way_of(model, profiles[p], SLM2_KV_F16, "host control", host);
    slm2_session *s = session(m, &w, 3, NULL);
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(host);
    check_append(s, &w, 4);
    unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    CHECK_CASE((after & ~0x3fu) == host, w.label); /* but for the sticky exception flags */
    free(s);
  }
#else
  (void)m, (void)model;
#endif
}

/* --- cancel at every row block ------------------------------------------------------ */

static struct {
  slm2_cancel word;
  uint32_t calls, at; /* the word is set by call number `at` of a matrix product */
} canceller;

static void count_call(void) {
  if (canceller.calls++ == canceller.at) atomic_store(&canceller.word, 1);
}
static void counting_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1) {
  count_call();
  CHECK(r0 % 16 == 0 && r0 < r1 && r1 - r0 <= 64); /* whole half panels; at most four between two polls [K14] */
  slm2_backend_oracle.matmul_f32(y, y_stride, w, x, n, r0, r1);
}
static void counting_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n,
                        uint32_t r0, uint32_t r1) {
  count_call();
  CHECK(r0 % 16 == 0 && r0 < r1 && r1 - r0 <= 64);
  slm2_backend_oracle.matmul_q8(y, y_stride, w, xq, a, n, r0, r1);
}

static bool counting_attention(const slm2_attention *a) {
  count_call();
  CHECK(a->tokens * a->heads <= SLM2_ATTENTION_ROWS);
  return slm2_backend_oracle.attention(a);
}

/* A long context makes attention the slow part: it is left at the next kv head. */
static void test_cancel_attention(const tiny_model *m, int model) {
  slm2_backend counting = slm2_backend_oracle;
  counting.attention = counting_attention;
  way w = way_of(model, SLM2_PROFILE_Q8, SLM2_KV_F16, "cancelled at kv head", 0);
  slm2_session *s = session(m, &w, 3, &counting);
  for (uint32_t at = 0; at < 1 * 2; at++) { /* kv heads, layers: twelve rows fit one call */
    slm2_error error;
    canceller.calls = 0;
    canceller.at = at;
    atomic_store(&canceller.word, 0);
    CHECK_CASE(slm2_session_append(s, ids, 3, &(slm2_run){.cancel = &canceller.word}, &error) == SLM2_E_CANCELLED, w.label);
    CHECK_CASE(canceller.calls == at + 1 && slm2_session_length(s) == 0, w.label);
  }
  atomic_store(&canceller.word, 0);
  canceller.at = UINT32_MAX;
  check_append(s, &w, 3);
  free(s);
}

/* Blocks of the append of ids[2..), cancelled by block number `at`. */
static uint32_t cancelled_append(slm2_session *s, uint32_t at, slm2_status *status) {
  slm2_error error;
  slm2_run run = {.cancel = &canceller.word};
  canceller.calls = 0;
  canceller.at = at;
  *status = slm2_session_append(s, ids + 2, N_IDS - 2, &run, &error);
  return canceller.calls;
}

static void test_cancel(const tiny_model *m, int model, slm2_profile profile) {
  slm2_backend counting = slm2_backend_oracle;
  counting.matmul_f32 = counting_f32;
  counting.matmul_q8 = counting_q8;
  slm2_error error;
  slm2_status status;
  way w = way_of(model, profile, SLM2_KV_F32, "cancelled at block", 0);
  slm2_session *s = session(m, &w, 3, &counting);
  canceller.at = UINT32_MAX;
  atomic_store(&canceller.word, 0);
  CHECK(slm2_session_append(s, ids, 2, NULL, &error) == SLM2_OK);
  const uint32_t total = cancelled_append(s, UINT32_MAX, &status);
  CHECK(status == SLM2_OK && total > 60);
  for (uint32_t at = 0; at < total; at++) {
    w = way_of(model, profile, SLM2_KV_F32, "cancelled at block", at);
    CHECK_CASE(slm2_session_rewind(s, 2, &error) == SLM2_OK, w.label);
    uint32_t calls = cancelled_append(s, at, &status);
    CHECK_CASE(calls == at + 1, w.label); /* no block after the one that set the word */
    bool too_late = at + 1 == total;
    CHECK_CASE(status == (too_late ? SLM2_OK : SLM2_E_CANCELLED), w.label);
    CHECK_CASE(slm2_session_length(s) == (too_late ? N_IDS : 2), w.label);
    CHECK_CASE(slm2_session_rewind(s, 2, &error) == SLM2_OK, w.label);
    CHECK_CASE(cancelled_append(s, UINT32_MAX, &status) == 0 && status == SLM2_E_CANCELLED, w.label); /* the word is still set */
    atomic_store(&canceller.word, 0);
    if (at % 8 == 0) check_append(s, &w, 3);
  }
  free(s);
}

/* A word that is set at any moment, by a thread that knows nothing of the pass: the pass is whole or it never was. */
static struct {
  slm2_cancel word;
  _Atomic(uint32_t) asked, quit; /* asked: spin for so long, then set the word */
} stopper;

static void stop_when_asked(void *unused) {
  (void)unused;
  while (atomic_load(&stopper.quit) == 0) {
    uint32_t spins = atomic_exchange(&stopper.asked, 0);
    if (spins == 0) continue;
    for (volatile uint32_t i = 0; i < spins; i++) {
    }
    atomic_store(&stopper.word, 1);
  }
}

static void test_cancel_anytime(const tiny_model *m, int model) {
  slm2_thread *thread = slm2_thread_start(stop_when_asked, NULL);
  if (!CHECK(thread != NULL)) return;
  slm2_error error;
  uint64_t random = 1;
  for (uint32_t i = 0; i < 200; i++) {
    way w = way_of(model, profiles[i % 2], kv_types[i / 2 % 2], "cancelled in run", i);
    pool = pools[i % N_POOLS];
    slm2_session *s = session(m, &w, 4, NULL);
    CHECK_CASE(slm2_session_append(s, ids, 2, NULL, &error) == SLM2_OK, w.label);
    atomic_store(&stopper.word, 0);
    atomic_store(&stopper.asked, 1 + (uint32_t)(test_random(&random) % 100000));
    slm2_status status = slm2_session_append(s, ids + 2, N_IDS - 2, &(slm2_run){.cancel = &stopper.word}, &error);
    CHECK_CASE(status == SLM2_OK || status == SLM2_E_CANCELLED, w.label);
    CHECK_CASE(slm2_session_length(s) == (status == SLM2_OK ? N_IDS : 2), w.label);
    while (atomic_load(&stopper.word) == 0) continue;
    if (status == SLM2_OK) check_last(s, &w);
    else check_append(s, &w, 5);
    free(s);
  }
  atomic_store(&stopper.quit, 1);
  slm2_thread_join(thread);
  pool = NULL;
}

/* --- what is not finite ---------------------------------------------------------------- */

/* Corrupts one element of the output of call number `at` of one operation. */
static struct {
  int op; /* 0 embed, 1 matmul, 2 rmsnorm, 3 rope, 4 attention, 5 swiglu, 6 add */
  uint32_t calls, at, bits;
} fault;

static void corrupt(int op, float *y) {
  if (op == fault.op && fault.calls++ == fault.at) *y = slm2_float_from_bits(fault.bits);
}
static void faulty_embed(float *y, const slm2_matrix *w, uint32_t row) {
  slm2_backend_oracle.embed(y, w, row);
  corrupt(0, y + 3);
}
static void faulty_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1) {
  slm2_backend_oracle.matmul_f32(y, y_stride, w, x, n, r0, r1);
  corrupt(1, y + (n - 1) * y_stride + r0 + 5);
}
static void faulty_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n,
                      uint32_t r0, uint32_t r1) {
  slm2_backend_oracle.matmul_q8(y, y_stride, w, xq, a, n, r0, r1);
  corrupt(1, y + (n - 1) * y_stride + r1 - 1);
}
static void faulty_rmsnorm(float *y, const float *x, const uint8_t *w, uint32_t n, float eps) {
  slm2_backend_oracle.rmsnorm(y, x, w, n, eps);
  corrupt(2, y + n - 1);
}
static void faulty_rope(float *x, const float *c, const float *s, uint32_t half) {
  slm2_backend_oracle.rope(x, c, s, half);
  corrupt(3, x + half);
}
static bool faulty_attention(const slm2_attention *a) {
  bool fine = slm2_backend_oracle.attention(a);
  corrupt(4, a->out + (a->tokens - 1) * a->stride + 7);
  return fine;
}
static void faulty_swiglu(float *y, const float *g, const float *u, uint32_t n) {
  slm2_backend_oracle.swiglu(y, g, u, n);
  corrupt(5, y);
}
static void faulty_add(float *x, const float *y, uint32_t n) {
  slm2_backend_oracle.add(x, y, n);
  corrupt(6, x + n / 2);
}

/* Whatever operation produces it: it stops the call, the timeline stays, and the session goes on with the right bits. */
static void test_faults(const tiny_model *m, int model, slm2_profile profile) {
  static const uint32_t bad[] = {0x7f800000u, 0xff800000u, 0x7fc00000u};
  slm2_backend faulty = slm2_backend_oracle;
  faulty.embed = faulty_embed, faulty.matmul_f32 = faulty_f32, faulty.matmul_q8 = faulty_q8, faulty.rmsnorm = faulty_rmsnorm;
  faulty.rope = faulty_rope, faulty.attention = faulty_attention, faulty.swiglu = faulty_swiglu, faulty.add = faulty_add;
  slm2_error error;
  way w = way_of(model, profile, SLM2_KV_F32, "fault", 0);
  slm2_session *s = session(m, &w, 2, &faulty);
  for (fault.op = 0; fault.op < 7; fault.op++)
    for (fault.at = 0;; fault.at++) {
      fault.bits = bad[fault.at % 3];
      fault.calls = 0;
      CHECK_CASE(slm2_session_rewind(s, 0, &error) == SLM2_OK, w.label);
      slm2_status status = slm2_session_append(s, ids, 3, NULL, &error);
      if (fault.calls <= fault.at) { /* no such call: all of this operation are done */
        CHECK_CASE(status == SLM2_OK && fault.at > 0, w.label);
        check_last(s, &w);
        break;
      }
      snprintf(w.label, sizeof w.label, "op %d call %u: %.40s", fault.op, fault.at, error.message);
      CHECK_CASE(status == SLM2_E_NUMERICAL && slm2_session_length(s) == 0, w.label);
      CHECK_CASE(strstr(error.message, "position") != NULL && strstr(error.message, "layer") != NULL && error.name[0] != 0,
                 w.label);
    }
  free(s);
}

/* Weights that overflow, and the stage that says so. */
static void test_stages(const slm2_pool *with) {
  pool = with;
  static const struct {
    const char *section, *stage;
    slm2_profile profile;
    uint32_t bits; /* of the first norm weight; or of the first f16 scale when < 65536 */
    const char *where;
  } cases[] = {
      {"model.layers.0.input_layernorm.weight", "attention input", SLM2_PROFILE_Q8, 0x7f800000, "position 0, layer 0 of 1"},
      {"model.layers.0.input_layernorm.weight", "keys", SLM2_PROFILE_F32, 0x7f800000, "position 0, layer 0 of 1"},
      {"model.layers.0.self_attn.v_proj.weight", "values", SLM2_PROFILE_F32, 0x7c00, "position 0, layer 0 of 1"},
      {"model.layers.0.self_attn.q_norm.weight", "attention scores", SLM2_PROFILE_Q8, 0x7fc00000, "position 0, layer 0 of 1"},
      {"model.layers.0.self_attn.o_proj.weight", "residual", SLM2_PROFILE_F32, 0xfc00, "position 0, layer 0 of 1"},
      {"model.layers.0.post_attention_layernorm.weight", "MLP input", SLM2_PROFILE_Q8, 0xff800000, "position 0, layer 0 of 1"},
      {"model.layers.0.mlp.up_proj.weight", "MLP activation", SLM2_PROFILE_Q8, 0x7c00, "position 0, layer 0 of 1"},
      {"model.layers.0.mlp.down_proj.weight", "residual", SLM2_PROFILE_Q8, 0x7e00, "position 0, layer 0 of 1"},
      {"model.norm.weight", "logits input", SLM2_PROFILE_Q8, 0x7f800000, "position 1, layer 1 of 1"},
      {"lm_head.weight", "logits", SLM2_PROFILE_F32, 0x7c00, "position 1, layer 1 of 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tiny_file file = tiny_build(&tiny_specs[1], SLM2_FORM_ROWS, NULL, 0, SLM2_NO_TOKEN);
    slm2_section section;
    uint8_t *at = tiny_section(&file, cases[i].section, &section);
    if (section.dtype == SLM2_DTYPE_F32) slm2_store_u32(at, cases[i].bits);
    else slm2_store_u16(at, (uint16_t)cases[i].bits);
    tiny_model m = tiny_load(file);
    way w = way_of(1, cases[i].profile, SLM2_KV_F32, cases[i].section, 0);
    slm2_session *s = session(&m, &w, 2, NULL);
    slm2_error error;
    CHECK_CASE(slm2_session_append(s, ids, 2, NULL, &error) == SLM2_E_NUMERICAL, w.label);
    CHECK_CASE(strcmp(error.name, cases[i].stage) == 0 && strstr(error.message, cases[i].where) != NULL, error.message);
    CHECK_CASE(slm2_session_length(s) == 0 && slm2_session_logits(s) == NULL, w.label);
    bool logits = cases[i].where[9] == '1';
    CHECK_CASE((slm2_session_append(s, ids, 2, &(slm2_run){.no_logits = true}, &error) == SLM2_OK) == logits, w.label);
    CHECK_CASE(slm2_session_logits(s) == NULL, w.label);
    free(s);
    tiny_free(&m);
  }
  pool = NULL;
}

/* Two tokens with bad rows: the status is the same however the text is cut and whichever thread is first to meet one, and
 * the position is that of the first [D5b]. */
static void test_status_and_chunks(void) {
  tiny_file file = tiny_build(&tiny_specs[1], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN);
  slm2_section section;
  uint8_t *embedding = tiny_section(&file, "model.embed_tokens.weight", &section);
  slm2_store_u16(embedding + slm2_scale_at(SLM2_FORM_PANELS, 64, 20, 1), 0x7c00); /* ids[6] */
  slm2_store_u16(embedding + slm2_scale_at(SLM2_FORM_PANELS, 64, 9, 0), 0x7c00);  /* ids[7] */
  tiny_model m = tiny_load(file);
  for (uint32_t tile = 1; tile < 9; tile++)
    for (uint32_t chunk = 1; chunk <= N_IDS; chunk++) {
      way w = way_of(1, tile % 2 == 0 ? SLM2_PROFILE_F32 : SLM2_PROFILE_Q8, SLM2_KV_F16, "bad row, chunk", chunk);
      pool = pools[(tile + chunk) % N_POOLS];
      slm2_session *s = session(&m, &w, tile, NULL);
      slm2_error error;
      slm2_status status = SLM2_OK;
      for (uint32_t at = 0; at < N_IDS && status == SLM2_OK; at += chunk) {
        uint32_t n = N_IDS - at < chunk ? N_IDS - at : chunk;
        status = slm2_session_append(s, ids + at, n, NULL, &error);
      }
      CHECK_CASE(status == SLM2_E_NUMERICAL && slm2_session_length(s) == 6 / chunk * chunk, w.label);
      CHECK_CASE(strstr(error.message, "position 6, layer 0") != NULL, error.message);
      free(s);
    }
  pool = NULL;
  tiny_free(&m);
}

/* --- R61: query heads read their own kv head ------------------------------------------------ */

static uint32_t stored_heads, attended_heads, wrong_heads;
static const float *first_query;
static bool marking_store(void *dst, const float *x, uint32_t n, bool f16) {
  (void)x, (void)f16; /* keys of both heads, then values of both; every head's values are its number */
  for (uint32_t i = 0; i < n; i++) ((float *)dst)[i] = (float)(stored_heads % 2);
  stored_heads++;
  return true;
}
static bool marking_attention(const slm2_attention *a) {
  const float *keys = a->k.data, *values = a->v.data;
  if (attended_heads == 0) first_query = a->q;
  wrong_heads += a->q != first_query + (size_t)attended_heads * a->head_dim || a->tokens != 1;
  for (uint32_t h = 0; h < a->heads; h++) {
    const float wanted = (float)(attended_heads++ / 2); /* 4 query heads over 2 kv heads */
    for (size_t i = 0; i < (size_t)a->n * a->head_dim; i++) wrong_heads += keys[i] != wanted || values[i] != wanted;
  }
  memset(a->out, 0, a->heads * a->head_dim * sizeof *a->out);
  return true;
}
static void test_gqa(void) {
  tiny_spec spec = tiny_specs[0];
  spec.config.layers = 1;
  tiny_model m = tiny_load(tiny_build(&spec, SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  slm2_backend marking = slm2_backend_oracle;
  marking.kv_store = marking_store;
  marking.attention = marking_attention;
  way w = way_of(0, SLM2_PROFILE_F32, SLM2_KV_F32, "routing", 0);
  slm2_session *s = session(&m, &w, 1, &marking);
  slm2_error error;
  for (uint32_t i = 0; i < 5; i++) {
    stored_heads = attended_heads = 0;
    CHECK(slm2_session_append(s, ids + i, 1, NULL, &error) == SLM2_OK);
    CHECK(stored_heads == 4 && attended_heads == 4 && wrong_heads == 0);
  }
  free(s);
  tiny_free(&m);
}

int main(void) {
  read_goldens();
  open_pools();
  for (int model = 0; model < N_TINY; model++)
    for (int form = 0; form < 2; form++) {
      tiny_model m = tiny_load(tiny_build(&tiny_specs[model], (slm2_weight_form)form, NULL, 0, SLM2_NO_TOKEN));
      for (int p = 0; p < 2; p++)
        for (int kv = 0; kv < 2; kv++) {
          for (uint32_t i = 0; slm2_backend_at(i) != NULL; i++) {
            test_chunks(&m, model, profiles[p], kv_types[kv], slm2_backend_at(i));
            if (form == 1) test_pools(&m, model, profiles[p], kv_types[kv], slm2_backend_at(i));
          }
          if (form == 1) test_reuse(&m, model, profiles[p], kv_types[kv]);
        }
      if (model == 2) test_cancel_attention(&m, model);
      if (model == 2) test_long(&m);
      if (model == 2 && form == 1) test_cancel_anytime(&m, model);
      test_host_control(&m, model);
      if (model == 2 && form == 1)
        for (int p = 0; p < 2; p++) {
          test_cancel(&m, model, profiles[p]);
          test_faults(&m, model, profiles[p]);
        }
      tiny_free(&m);
    }
  for (int i = 0; i < N_POOLS; i++) test_stages(pools[i]);
  test_status_and_chunks();
  test_gqa();
  for (int i = 0; i < 3; i++) slm2_threads_destroy(threads[i]);
  return test_end("forward");
}
