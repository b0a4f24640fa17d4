/* tests/unit/test_halt.c: a kernel that fails halts the step (R77, R78). A backend whose every slot is counted computes by each
 * usable backend in turn; each of its calls fails once. The step ends typed and named, no slot is called after the one that
 * said so, not a byte of keys, values, activations or logits changes any more (so nobody computed it instead), and the session
 * goes on from where it was with the right bits. And what is misaligned is refused before anything computes. */
#include "session/session.h"
#include "tests/unit/tiny_model.h"

#define N_IDS 5u
#define BEFORE 2u /* of them are in the session when a kernel fails */
static const uint32_t ids[N_IDS] = {7, 1, 63, 0, 20};

typedef enum slot { EMBED, MATMUL, RMSNORM, ROPE_TABLE, ROPE, SWIGLU, ADD, QUANTIZE, KV_STORE, ATTENTION, FINITE } slot;
#define NEVER UINT32_MAX
#define MAX_CALLS 2000u

static struct {
  const slm2_backend *by; /* what computes */
  uint32_t calls, at;     /* call number `at` fails */
  slot trace[MAX_CALLS];
  const slm2_session *session;
  uint64_t bytes;
  uint8_t *then; /* the session's block when a slot said false */
} halt;

static bool fails_now(slot s) {
  if (halt.calls == MAX_CALLS) exit(1);
  halt.trace[halt.calls] = s;
  return halt.calls++ == halt.at;
}
static void spoil(slot s, float *y) {
  if (fails_now(s)) *y = slm2_float_from_bits(0x7fc00000);
}
static bool said(bool fine) {
  if (!fine) memcpy(halt.then, halt.session, halt.bytes);
  return fine;
}

static void embed(float *y, const slm2_matrix *w, uint32_t row) {
  halt.by->embed(y, w, row);
  spoil(EMBED, y);
}
static void matmul_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1) {
  halt.by->matmul_f32(y, y_stride, w, x, n, r0, r1);
  spoil(MATMUL, y + r0);
}
static void matmul_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n, uint32_t r0,
                      uint32_t r1) {
  halt.by->matmul_q8(y, y_stride, w, xq, a, n, r0, r1);
  spoil(MATMUL, y + r0);
}
static void rmsnorm(float *y, const float *x, const uint8_t *w, uint32_t n, float eps) {
  halt.by->rmsnorm(y, x, w, n, eps);
  spoil(RMSNORM, y);
}
static void rope_table(float *c, float *s, uint32_t position, const uint8_t *inv_freq, uint32_t half) {
  halt.by->rope_table(c, s, position, inv_freq, half);
  spoil(ROPE_TABLE, c);
}
static void rope(float *x, const float *c, const float *s, uint32_t half) {
  halt.by->rope(x, c, s, half);
  spoil(ROPE, x);
}
static void swiglu(float *y, const float *g, const float *u, uint32_t n) {
  halt.by->swiglu(y, g, u, n);
  spoil(SWIGLU, y);
}
static void add(float *x, const float *y, uint32_t n) {
  halt.by->add(x, y, n);
  spoil(ADD, x);
}
/* These can say that they failed. */
static bool quantize(int8_t *xq, float *a, const float *x, uint32_t n) {
  return said(!fails_now(QUANTIZE) && halt.by->quantize(xq, a, x, n));
}
static bool kv_store(void *dst, const float *x, uint32_t n, bool f16) {
  return said(!fails_now(KV_STORE) && halt.by->kv_store(dst, x, n, f16));
}
static bool attention(const slm2_attention *a) { return said(!fails_now(ATTENTION) && halt.by->attention(a)); }
static bool finite(const float *x, size_t n) { return said(!fails_now(FINITE) && halt.by->finite(x, n)); }

static const slm2_backend counted = {
    .name = "counted", .embed = embed, .matmul_f32 = matmul_f32, .quantize = quantize, .matmul_q8 = matmul_q8,
    .rmsnorm = rmsnorm, .rope_table = rope_table, .rope = rope, .kv_store = kv_store, .attention = attention,
    .swiglu = swiglu, .add = add, .finite = finite, /* log-probabilities are no part of a step */
};

/* The ids behind BEFORE, while call number `at` fails. */
static slm2_status step(slm2_session *s, uint32_t at, slm2_error *error) {
  halt.calls = 0;
  halt.at = at;
  slm2_status status = slm2_session_append(s, ids + BEFORE, N_IDS - BEFORE, NULL, error);
  halt.at = NEVER;
  return status;
}

static void check_call(slm2_session *s, uint32_t at, const slot *clean, const float *logits, size_t vocab, const char *label) {
  slm2_error error = {0};
  CHECK_CASE(slm2_session_rewind(s, 0, &error) == SLM2_OK, label);
  CHECK_CASE(slm2_session_append(s, ids, BEFORE, NULL, &error) == SLM2_OK, label);
  slm2_status status = step(s, at, &error);
  const uint32_t calls = halt.calls;
  CHECK_CASE(status == SLM2_E_NUMERICAL && error.name[0] != 0, label);
  CHECK_CASE(strstr(error.message, "position") && strstr(error.message, "layer") && strstr(error.message, "backend counted"),
             label);
  /* Up to the slot that said false every call is that of a run without a fault; it is the last. */
  if (!CHECK_CASE(calls > at && memcmp(halt.trace, clean, calls * sizeof *clean) == 0, label)) return;
  CHECK_CASE(halt.trace[calls - 1] >= QUANTIZE && (halt.trace[at] < QUANTIZE || calls == at + 1), label);
  const size_t state = sizeof *s; /* the struct may forget; the rest of the block may not change */
  CHECK_CASE(memcmp((const uint8_t *)s + state, halt.then + state, halt.bytes - state) == 0, label);
  CHECK_CASE(slm2_session_length(s) == BEFORE && s->forward.kernels == &counted, label);
  CHECK_CASE(step(s, NEVER, &error) == SLM2_OK && slm2_session_length(s) == N_IDS, label);
  CHECK_CASE(memcmp(slm2_session_logits(s), logits, vocab * sizeof *logits) == 0, label);
}

static void test_failing_calls(const tiny_model *m, const slm2_backend *by, slm2_profile profile, slm2_kv_type kv) {
  const slm2_session_params params = {.context = 8, .tile = 2, .profile = profile, .kv = kv, .backend = &counted};
  const size_t vocab = m->file.header.config.vocab;
  slm2_plan plan;
  slm2_error error;
  CHECK(slm2_session_plan(slm2_model_header(m->model), &params, &plan, &error) == SLM2_OK);
  slm2_session *s = tiny_session(m->model, &params);
  halt.by = by;
  halt.at = NEVER;
  halt.calls = 0;
  halt.session = s;
  halt.bytes = plan.total;
  halt.then = malloc((size_t)plan.total);
  slot *clean = malloc(sizeof halt.trace);
  float *logits = malloc(vocab * sizeof *logits);
  if (halt.then == NULL || clean == NULL || logits == NULL) exit(1);
  CHECK(slm2_session_append(s, ids, BEFORE, NULL, &error) == SLM2_OK);
  CHECK(step(s, NEVER, &error) == SLM2_OK);
  const uint32_t n = halt.calls;
  memcpy(clean, halt.trace, sizeof halt.trace);
  memcpy(logits, slm2_session_logits(s), vocab * sizeof *logits);
  for (uint32_t at = 0; at < n; at++) {
    char label[120];
    snprintf(label, sizeof label, "by %s, %s %s, call %u of %u, slot %d", slm2_backend_name(by), slm2_profile_name(profile),
             slm2_kv_name(kv), (unsigned)at, (unsigned)n, (int)clean[at]);
    check_call(s, at, clean, logits, vocab, label);
  }
  for (int kind = 0; kind <= FINITE; kind++) { /* every slot of the table is among them */
    uint32_t times = 0;
    for (uint32_t i = 0; i < n; i++) times += clean[i] == (slot)kind;
    CHECK(times > 0 || (kind == QUANTIZE && profile == SLM2_PROFILE_F32));
  }
  free(s), free(halt.then), free(clean), free(logits);
}

/* The lent file, the memory of the model and of the session, and a section of the file. */
static void test_misaligned(const tiny_model *m) {
  const slm2_session_params params = {.context = 8, .tile = 2};
  const uint64_t n = m->file.n;
  uint8_t *file = tiny_memory(n + 64), *memory = tiny_memory(1 << 20);
  slm2_error error;
  slm2_model *model = NULL;
  slm2_session *session = NULL;
  const uint8_t *tokenizer;
  for (size_t by = 1; by < 64; by++) {
    memcpy(file + by, m->file.bytes, (size_t)n);
    CHECK(slm2_model_init(memory, 1 << 20, file + by, n, &model, &error) == SLM2_E_ARGUMENT && strcmp(error.name, "file") == 0);
    CHECK(slm2_model_init(memory + by, (1 << 20) - 64, m->file.bytes, n, &model, &error) == SLM2_E_ARGUMENT);
    CHECK(strcmp(error.name, "mem") == 0 && model == NULL);
    CHECK(slm2_session_init(memory + by, (1 << 20) - 64, m->model, &params, &session, &error) == SLM2_E_ARGUMENT);
    CHECK(strcmp(error.name, "mem") == 0 && session == NULL);

    slm2_model bound = *m->model;
    memcpy(file + by, tiny_data(&m->file), (size_t)m->file.header.data_bytes);
    CHECK(slm2_model_bind(&bound, file + by, &tokenizer, &error) == SLM2_E_INTERNAL_INVARIANT);
    slm2_section first;
    CHECK(slm2_section_get(&m->file.header, 0, &first) == SLM2_OK);
    CHECK(strcmp(error.name, first.name) == 0 && error.offset == first.offset && strstr(error.message, "64") != NULL);
  }
  free(file), free(memory);
}

int main(void) {
  static const int models[] = {0, 2};
  for (int i = 0; i < 2; i++) {
    tiny_model m = tiny_load(tiny_build(&tiny_specs[models[i]], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
    for (uint32_t b = 0; slm2_backend_at(b) != NULL; b++)
      for (int profile = 0; profile < 2; profile++)
        for (int kv = 0; kv < 2; kv++)
          test_failing_calls(&m, slm2_backend_at(b), profile ? SLM2_PROFILE_Q8 : SLM2_PROFILE_F32,
                             kv ? SLM2_KV_F16 : SLM2_KV_F32);
    test_misaligned(&m);
    tiny_free(&m);
  }
  return test_end("halt");
}
