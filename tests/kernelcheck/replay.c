/* tests/kernelcheck/replay.c: the vectors of a real run (R75). A session computes with a backend whose slots are the oracle's
 * and then, with the same inputs and the model's own weights, every twin's; both must agree before the run goes on. */
#include "platform/platform.h"
#include "slm2/session.h"
#include "tests/kernelcheck/kernelcheck.h"

#define POSITIONS 40u
#define VECTORS 2000u

static uint32_t vectors; /* inputs seen: activations of a product, of a norm, queries, ... */

static void expect(const void *got, const void *expected, size_t bytes, const slm2_backend *b, const char *slot) {
  char label[80];
  snprintf(label, sizeof label, "%s %s, recorded vector %u", b->name, slot, (unsigned)vectors);
  CHECK_CASE(memcmp(got, expected, bytes) == 0, label);
}

/* One product's rows of n tokens, gathered so that rows nobody asked for are not looked at. */
static void expect_rows(const float *got, const float *expected, size_t y_stride, uint32_t n, uint32_t r0, uint32_t r1,
                        const slm2_backend *b, const char *slot) {
  for (uint32_t t = 0; t < n; t++)
    expect(got + t * y_stride + r0, expected + t * y_stride + r0, (r1 - r0) * sizeof(float), b, slot);
}

#define EACH_TWIN(b) for (uint32_t i_ = 0; i_ < kc_n_twins; i_++) for (const slm2_backend *b = kc_twins[i_]; b; b = NULL)

static void matmul_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1) {
  slm2_backend_oracle.matmul_f32(y, y_stride, w, x, n, r0, r1);
  if (r0 == 0) vectors += n;
  float *own = kc_output(n * y_stride * sizeof(float), 4);
  EACH_TWIN(b) {
    b->matmul_f32(own, y_stride, w, x, n, r0, r1);
    expect_rows(own, y, y_stride, n, r0, r1, b, "matmul_f32");
  }
  kc_release();
}

static void matmul_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n, uint32_t r0,
                      uint32_t r1) {
  slm2_backend_oracle.matmul_q8(y, y_stride, w, xq, a, n, r0, r1);
  if (r0 == 0) vectors += n;
  float *own = kc_output(n * y_stride * sizeof(float), 4);
  EACH_TWIN(b) {
    b->matmul_q8(own, y_stride, w, xq, a, n, r0, r1);
    expect_rows(own, y, y_stride, n, r0, r1, b, "matmul_q8");
  }
  kc_release();
}

static bool quantize(int8_t *xq, float *a, const float *x, uint32_t n) {
  bool fine = slm2_backend_oracle.quantize(xq, a, x, n);
  vectors++;
  int8_t *own = kc_output(n, 4);
  float *scales = kc_output(n / 32 * sizeof(float), 4);
  EACH_TWIN(b) {
    CHECK_CASE(b->quantize(own, scales, x, n) == fine, b->name);
    expect(own, xq, n, b, "quantize");
    expect(scales, a, n / 32 * sizeof(float), b, "quantize");
  }
  kc_release();
  return fine;
}

static void rmsnorm(float *y, const float *x, const uint8_t *w, uint32_t n, float eps) {
  float *in = kc_output(n * sizeof(float), 4), *own = kc_output(n * sizeof(float), 4);
  memcpy(in, x, n * sizeof(float)); /* y may be x */
  slm2_backend_oracle.rmsnorm(y, in, w, n, eps);
  vectors++;
  EACH_TWIN(b) {
    b->rmsnorm(own, in, w, n, eps);
    expect(own, y, n * sizeof(float), b, "rmsnorm");
  }
  kc_release();
}

static void rope(float *x, const float *c, const float *s, uint32_t half) {
  float *in = kc_output(2 * half * sizeof(float), 4), *own = kc_output(2 * half * sizeof(float), 4);
  memcpy(in, x, 2 * half * sizeof(float));
  slm2_backend_oracle.rope(x, c, s, half);
  vectors++;
  EACH_TWIN(b) {
    memcpy(own, in, 2 * half * sizeof(float));
    b->rope(own, c, s, half);
    expect(own, x, 2 * half * sizeof(float), b, "rope");
  }
  kc_release();
}

static bool kv_store(void *dst, const float *x, uint32_t n, bool f16) {
  bool fine = slm2_backend_oracle.kv_store(dst, x, n, f16);
  vectors++;
  void *own = kc_output(n * sizeof(float), 4);
  EACH_TWIN(b) {
    CHECK_CASE(b->kv_store(own, x, n, f16) == fine, b->name);
    expect(own, dst, n * (f16 ? 2u : 4u), b, "kv_store");
  }
  kc_release();
  return fine;
}

static bool attention(const slm2_attention *a) {
  const uint32_t rows = a->tokens * a->heads, positions = a->n + a->tokens - 1, width = a->heads * a->head_dim;
  bool fine = slm2_backend_oracle.attention(a);
  vectors += rows;
  slm2_attention own = *a;
  own.out = kc_output(((a->tokens - 1) * a->stride + width) * sizeof(float), 4);
  own.scratch = kc_output(slm2_attention_scratch(rows, positions, a->head_dim) * sizeof(float), 4);
  EACH_TWIN(b) {
    CHECK_CASE(b->attention(&own) == fine, b->name);
    expect_rows(own.out, a->out, a->stride, a->tokens, 0, width, b, "attention");
  }
  kc_release();
  return fine;
}

static void swiglu(float *y, const float *g, const float *u, uint32_t n) {
  float *in = kc_output(n * sizeof(float), 4), *own = kc_output(n * sizeof(float), 4);
  memcpy(in, g, n * sizeof(float)); /* y may be g */
  slm2_backend_oracle.swiglu(y, in, u, n);
  vectors++;
  EACH_TWIN(b) {
    b->swiglu(own, in, u, n);
    expect(own, y, n * sizeof(float), b, "swiglu");
  }
  kc_release();
}

static void add(float *x, const float *y, uint32_t n) {
  float *in = kc_output(n * sizeof(float), 4), *own = kc_output(n * sizeof(float), 4);
  memcpy(in, x, n * sizeof(float));
  slm2_backend_oracle.add(x, y, n);
  vectors++;
  EACH_TWIN(b) {
    memcpy(own, in, n * sizeof(float));
    b->add(own, y, n);
    expect(own, x, n * sizeof(float), b, "add");
  }
  kc_release();
}

static void run(const slm2_model *model, slm2_profile profile, slm2_kv_type kv) {
  slm2_backend recording = slm2_backend_oracle;
  recording.name = "recording";
  recording.matmul_f32 = matmul_f32;
  recording.quantize = quantize;
  recording.matmul_q8 = matmul_q8;
  recording.rmsnorm = rmsnorm;
  recording.rope = rope;
  recording.kv_store = kv_store;
  recording.attention = attention;
  recording.swiglu = swiglu;
  recording.add = add;
  const slm2_session_params params = {.context = POSITIONS, .tile = 16, .profile = profile, .kv = kv, .backend = &recording};
  slm2_plan plan;
  slm2_session *session = NULL;
  slm2_error error = {0};
  void *memory = NULL;
  uint32_t ids[POSITIONS];
  for (uint32_t i = 0; i < POSITIONS; i++) ids[i] = (i * i * 7 + 13 * i + 5) % 280;
  CHECK_CASE(slm2_session_plan(slm2_model_header(model), &params, &plan, &error) == SLM2_OK, error.message);
  CHECK_CASE(slm2_memory_reserve(plan.total, &memory, &error) == SLM2_OK, error.message);
  CHECK_CASE(slm2_session_init(memory, plan.total, model, &params, &session, &error) == SLM2_OK, error.message);
  if (session != NULL) CHECK_CASE(slm2_session_append(session, ids, POSITIONS, NULL, &error) == SLM2_OK, error.message);
  slm2_memory_release(memory, plan.total);
}

int kc_replay(const char *path) {
  slm2_mapping file = {0};
  slm2_error error = {0};
  size_t bytes = 0;
  void *memory = NULL;
  slm2_model *model = NULL;
  slm2_status status = slm2_map(path, &file, &error);
  if (status == SLM2_OK) status = slm2_model_bytes(file.bytes, file.n, &bytes, &error);
  if (status == SLM2_OK) status = slm2_memory_reserve(bytes, &memory, &error);
  if (status == SLM2_OK) status = slm2_model_init(memory, bytes, file.bytes, file.n, &model, &error);
  CHECK_CASE(status == SLM2_OK, error.message);
  if (status == SLM2_OK) {
    vectors = 0;
    run(model, SLM2_PROFILE_F32, SLM2_KV_F32);
    run(model, SLM2_PROFILE_Q8, SLM2_KV_F16);
    CHECK_CASE(vectors >= VECTORS, path);
    printf("kernelcheck: %u vectors of %s\n", (unsigned)vectors, path);
  }
  slm2_memory_release(memory, bytes);
  slm2_unmap(&file);
  return test_end("kernelcheck replay");
}
