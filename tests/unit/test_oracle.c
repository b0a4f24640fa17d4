/* tests/unit/test_oracle.c: every operation of every backend against bits computed elsewhere: tests/data/oracle.txt
 * (numpy float32 and mpmath, tests/gen/oracle_reference.py) and the hand vectors R60, R62, R64 of the mission table. */
#include "base/bytes.h"
#include "kernel/kernel.h"
#include "kernel/weights.h"
#include "num/math.h"
#include "num/reduce.h"
#include "tests/test.h"

/* --- memory: exact sizes for the sanitizers, released after every case ----------- */

static void *lent[256];
static size_t n_lent;
static void *memory(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
  if (p == NULL || n_lent == sizeof lent / sizeof *lent) exit(1);
  return lent[n_lent++] = p;
}
static void release_memory(void) {
  while (n_lent > 0) free(lent[--n_lent]);
}
/* Output memory full of NaN, so that an element nobody wrote is noticed. */
static float *fresh(size_t n) {
  float *y = memory(n * sizeof *y);
  memset(y, 0xff, n * sizeof *y);
  return y;
}

/* --- the case file ----------------------------------------------------------- */

#define MAX_ARRAYS 6
typedef struct array {
  char name[8];
  size_t digits;
  const char *hex;
} array;
typedef struct test_case {
  char label[96], op[16], *numbers;
  array arrays[MAX_ARRAYS];
  int n_arrays;
} test_case;

static uint32_t number(const test_case *c, const char *key) {
  char pattern[24];
  snprintf(pattern, sizeof pattern, " %s=", key);
  const char *p = strstr(c->label, pattern);
  if (p == NULL) {
    printf("FAIL no %s in %s\n", key, c->label);
    exit(1);
  }
  return (uint32_t)strtoul(p + strlen(pattern), NULL, 10);
}

/* Array `name` as words of `size` bytes. */
static void *values(const test_case *c, const char *name, size_t size, size_t *n) {
  for (int i = 0; i < c->n_arrays; i++) {
    if (strcmp(c->arrays[i].name, name) != 0) continue;
    *n = c->arrays[i].digits / (2 * size);
    uint8_t *out = memory(*n * size);
    for (size_t k = 0; k < *n; k++) {
      char word[9] = {0};
      memcpy(word, c->arrays[i].hex + 2 * size * k, 2 * size);
      uint32_t u = (uint32_t)strtoul(word, NULL, 16);
      uint16_t h = (uint16_t)u;
      uint8_t b = (uint8_t)u;
      memcpy(out + size * k, size == 4 ? (void *)&u : size == 2 ? (void *)&h : (void *)&b, size);
    }
    return out;
  }
  printf("FAIL no array %s in %s\n", name, c->label);
  exit(1);
}
static float *floats(const test_case *c, const char *name, size_t *n) { return values(c, name, 4, n); }

/* As the file stores it. */
static uint8_t *little_endian(const float *x, size_t n) {
  uint8_t *out = memory(4 * n);
  for (size_t i = 0; i < n; i++) slm2_store_f32(out + 4 * i, x[i]);
  return out;
}
static int same_bits(const void *a, const void *b, size_t bytes) { return memcmp(a, b, bytes) == 0; }

/* --- one check per operation ---------------------------------------------------- */

/* The case's matrix in both storage forms. */
static void matrices(const test_case *c, slm2_matrix out[2]) {
  size_t n;
  uint8_t *rows = values(c, "w", 1, &n), *panels = memory(n);
  uint32_t n_rows = number(c, "rows"), cols = number(c, "cols"), blocks = cols / 32;
  for (uint32_t r = 0; r < n_rows; r++)
    for (uint32_t b = 0; b < blocks; b++) {
      const uint8_t *block = rows + (r * blocks + b) * 34;
      memcpy(panels + slm2_scale_at(SLM2_FORM_PANELS, cols, r, b), block, 2);
      for (uint32_t k = 0; k < 32; k++) panels[slm2_weight_at(SLM2_FORM_PANELS, cols, r, b, k)] = block[2 + k];
    }
  out[0] = (slm2_matrix){rows, n_rows, cols, SLM2_FORM_ROWS};
  out[1] = (slm2_matrix){panels, n_rows, cols, SLM2_FORM_PANELS};
}

/* [D12] */
static void check_embed(const slm2_backend *be, const test_case *c) {
  slm2_matrix w[2];
  size_t n;
  const float *y = floats(c, "y", &n);
  matrices(c, w);
  for (int form = 0; form < 2; form++)
    for (uint32_t row = 0; row < w[0].rows; row++) {
      float *got = fresh(w[0].cols);
      be->embed(got, &w[form], row);
      CHECK_CASE(same_bits(got, y + (size_t)row * w[0].cols, 4 * (size_t)w[0].cols), c->label);
    }
}

/* [D10] [D11], whose sums are seq [D6]: every split of tokens and rows gives the same bits [D8]; the stride's gap is left
 * alone. */
static void check_matmul(const slm2_backend *be, const test_case *c) {
  slm2_matrix w[2];
  size_t n_y, n_x, n_a;
  const float *y = floats(c, "y", &n_y);
  int q8 = strcmp(c->op, "matmul_q8") == 0;
  const float *x = q8 ? NULL : floats(c, "x", &n_x), *a = q8 ? floats(c, "a", &n_a) : NULL;
  const int8_t *xq = q8 ? values(c, "xq", 1, &n_x) : NULL;
  matrices(c, w);
  const uint32_t rows = w[0].rows, cols = w[0].cols, n = number(c, "n"), stride = rows + 5;
  for (int form = 0; form < 2; form++)
    for (uint32_t step = 1; step <= n; step++)
      for (uint32_t block = 32; block <= rows; block += 32) {
        float *got = fresh((size_t)n * stride);
        for (uint32_t t = 0; t < n; t += step)
          for (uint32_t r = 0; r < rows; r += block) {
            uint32_t tokens = n - t < step ? n - t : step, end = r + block < rows ? r + block : rows;
            if (q8)
              be->matmul_q8(got + (size_t)t * stride, stride, &w[form], xq + (size_t)t * cols, a + (size_t)t * cols / 32,
                            tokens, r, end);
            else
              be->matmul_f32(got + (size_t)t * stride, stride, &w[form], x + (size_t)t * cols, tokens, r, end);
          }
        for (uint32_t t = 0; t < n; t++) {
          CHECK_CASE(same_bits(got + (size_t)t * stride, y + (size_t)t * rows, 4 * (size_t)rows), c->label);
          for (uint32_t i = rows; i < stride; i++) CHECK_CASE(slm2_float_bits(got[(size_t)t * stride + i]) == 0xffffffffu,
                                                              c->label);
        }
      }
}

/* [D11] */
static void check_quantize(const slm2_backend *be, const test_case *c) {
  size_t n, n_a;
  const float *x = floats(c, "x", &n), *a = floats(c, "a", &n_a);
  const int8_t *xq = values(c, "xq", 1, &n);
  float *scales = fresh(n_a);
  int8_t *got = memory(n);
  CHECK_CASE(be->quantize(got, scales, x, (uint32_t)n), c->label);
  for (size_t i = 0; i < n; i++) {
    char label[64];
    snprintf(label, sizeof label, "element %zu: %d, not %d", i, got[i], xq[i]);
    CHECK_CASE(got[i] == xq[i], label);
  }
  CHECK_CASE(same_bits(scales, a, 4 * n_a), c->label);
}

/* [D13] */
static void check_rmsnorm(const slm2_backend *be, const test_case *c) {
  size_t n;
  float *x = floats(c, "x", &n), *got = fresh(n);
  const float *y = floats(c, "y", &n);
  uint8_t *w = little_endian(floats(c, "w", &n), n);
  be->rmsnorm(got, x, w, (uint32_t)n, 1e-6f);
  CHECK_CASE(same_bits(got, y, 4 * n), c->label);
  be->rmsnorm(x, x, w, (uint32_t)n, 1e-6f); /* in place */
  CHECK_CASE(same_bits(x, y, 4 * n), c->label);
}

/* [D14] */
static void check_rope(const slm2_backend *be, const test_case *c) {
  size_t n, half = number(c, "half");
  float *x = floats(c, "x", &n), *cosines = fresh(half), *sines = fresh(half);
  uint8_t *freq = little_endian(floats(c, "freq", &n), half);
  be->rope_table(cosines, sines, number(c, "position"), freq, (uint32_t)half);
  CHECK_CASE(same_bits(cosines, floats(c, "c", &n), 4 * half), c->label);
  CHECK_CASE(same_bits(sines, floats(c, "s", &n), 4 * half), c->label);
  be->rope(x, cosines, sines, (uint32_t)half);
  CHECK_CASE(same_bits(x, floats(c, "y", &n), 8 * half), c->label);
}

/* [D18] */
static void check_kv_store(const slm2_backend *be, const test_case *c) {
  size_t n;
  const float *x = floats(c, "x", &n);
  const uint16_t *y = values(c, "y", 2, &n);
  uint16_t *halves = memory(2 * n);
  float *copy = fresh(n);
  CHECK_CASE(be->kv_store(copy, x, (uint32_t)n, false) && same_bits(copy, x, 4 * n), c->label);
  CHECK_CASE(be->kv_store(halves, x, (uint32_t)n, true) && same_bits(halves, y, 2 * n), c->label);
  static const float overflow[] = {65520.0f, -65520.0f, 1e30f, 3.4028235e38f};
  for (size_t i = 0; i < 4; i++) {
    CHECK(!be->kv_store(halves, &overflow[i], 1, true));
    CHECK(be->kv_store(copy, &overflow[i], 1, false));
  }
}

/* One row of [D15]. */
static bool attend(const slm2_backend *be, float *out, const float *q, slm2_kv_view k, slm2_kv_view v, uint32_t n, uint32_t dim) {
  float *scratch = malloc(slm2_attention_scratch(1, n, dim) * sizeof *scratch);
  if (scratch == NULL) exit(1);
  bool fine = be->attention(&(slm2_attention){.out = out, .q = q, .stride = dim, .k = k, .v = v, .tokens = 1, .heads = 1,
                                              .head_dim = dim, .n = n, .scratch = scratch});
  free(scratch);
  return fine;
}

/* [D15], whose scores and denominator are lanes8 [D7]: counts below, at and above multiples of eight. */
static void check_attention(const slm2_backend *be, const test_case *c) {
  const uint32_t dim = number(c, "dim"), n = number(c, "n"), f16 = number(c, "f16");
  size_t count, element = f16 ? 2 : 4;
  const float *q = floats(c, "q", &count), *y = floats(c, "y", &count);
  uint8_t *k = values(c, "k", element, &count), *v = values(c, "v", element, &count);
  float *got = fresh(dim);
  CHECK_CASE(attend(be, got, q, (slm2_kv_view){k, f16}, (slm2_kv_view){v, f16}, n, dim), c->label);
  CHECK_CASE(same_bits(got, y, 4 * (size_t)dim), c->label);
}

/* [D16] [D17] */
static void check_elementwise(const slm2_backend *be, const test_case *c) {
  size_t n;
  if (strcmp(c->op, "add") == 0) {
    float *x = floats(c, "x", &n);
    be->add(x, floats(c, "y", &n), (uint32_t)n);
    CHECK_CASE(same_bits(x, floats(c, "z", &n), 4 * n), c->label);
  } else {
    float *g = floats(c, "g", &n), *got = fresh(n);
    const float *u = floats(c, "u", &n), *y = floats(c, "y", &n);
    be->swiglu(got, g, u, (uint32_t)n);
    CHECK_CASE(same_bits(got, y, 4 * n), c->label);
    be->swiglu(g, g, u, (uint32_t)n); /* in place */
    CHECK_CASE(same_bits(g, y, 4 * n), c->label);
  }
}

/* [D15] s is the f32 nearest to 1/sqrt(head_dim), for every legal head_dim: scores 0 and factor * s, values 0 and 1. */
static void check_scale(const slm2_backend *be, const test_case *c) {
  size_t n;
  const float *s = floats(c, "s", &n);
  CHECK(n == SLM2_MAX_HEAD_DIM / 8);
  for (uint32_t dim = 8; dim <= SLM2_MAX_HEAD_DIM; dim += 8)
    for (int factor = 1; factor < 100; factor += 7) {
      float q[SLM2_MAX_HEAD_DIM] = {(float)factor}, k[2 * SLM2_MAX_HEAD_DIM] = {1.0f}, v[2 * SLM2_MAX_HEAD_DIM] = {0};
      float out[SLM2_MAX_HEAD_DIM];
      v[dim] = 1.0f;
      CHECK(attend(be, out, q, (slm2_kv_view){k, false}, (slm2_kv_view){v, false}, 2, dim));
      float e = slm2_expf(-((float)factor * s[dim / 8 - 1]));
      CHECK_CASE(out[0] == e / (1.0f + e), c->label);
    }
}

static void check_case(const slm2_backend *be, const test_case *c) {
  if (strcmp(c->op, "embed") == 0) check_embed(be, c);
  else if (strncmp(c->op, "matmul_", 7) == 0) check_matmul(be, c);
  else if (strcmp(c->op, "quantize") == 0) check_quantize(be, c);
  else if (strcmp(c->op, "rmsnorm") == 0) check_rmsnorm(be, c);
  else if (strcmp(c->op, "rope") == 0) check_rope(be, c);
  else if (strcmp(c->op, "kv_store") == 0) check_kv_store(be, c);
  else if (strcmp(c->op, "attention") == 0) check_attention(be, c);
  else if (strcmp(c->op, "scale") == 0) check_scale(be, c);
  else check_elementwise(be, c);
  release_memory();
}

static void test_cases(const slm2_backend *be) {
  char *text = test_read_file("tests/data/oracle.txt", NULL);
  test_case c = {0};
  int n_cases = 0;
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    if (line[0] == '#') continue;
    char *space = strchr(line, ' ');
    if (strncmp(line, "case ", 5) != 0) {
      array *a = &c.arrays[c.n_arrays++];
      snprintf(a->name, sizeof a->name, "%.*s", (int)(space - line), line);
      a->hex = space + 1;
      a->digits = strlen(a->hex);
      continue;
    }
    if (n_cases++ > 0) check_case(be, &c);
    c.n_arrays = 0;
    snprintf(c.label, sizeof c.label, "%s", line + 5);
    sscanf(c.label, "%15s", c.op);
  }
  check_case(be, &c);
  CHECK(n_cases > 50);
  free(text);
}

/* --- hand vectors ------------------------------------------------------------------ */

/* R60: x = [1, 0, 1, 0, ...]: pairs (i, i + 64) are (1, 1) for even i; inv_freq's frozen bits. */
static void test_rope_extremes(const slm2_backend *be) {
  float freq[64], c[64], s[64], x[128];
  CHECK(slm2_inv_freq(1000000, 128, freq));
  CHECK(slm2_float_bits(freq[1]) == 0x3f4e4badu && slm2_float_bits(freq[2]) == 0x3f263de0u &&
        slm2_float_bits(freq[63]) == 0x35a68e4cu);
  uint8_t *table = little_endian(freq, 64);
  static const struct {
    uint32_t position;
    float y0, y64;
  } cases[] = {{1, -0.30116868f, 1.3817732f}, {8191, 0.11661631f, -1.4093974f}};
  for (size_t i = 0; i < 2; i++) {
    for (int k = 0; k < 128; k++) x[k] = k % 2 == 0 ? 1.0f : 0.0f;
    be->rope_table(c, s, cases[i].position, table, 64);
    be->rope(x, c, s, 64);
    CHECK(x[0] == cases[i].y0 && x[64] == cases[i].y64 && x[1] == 0.0f && x[65] == 0.0f);
  }
  be->rope_table(c, s, 40959, table, 64); /* the angle is an f32: 33006.4921875 */
  float sine, cosine;
  slm2_sincosf(33006.4921875f, &sine, &cosine);
  CHECK(c[1] == cosine && s[1] == sine);
}

/* R62: subnormal results, not zeros and not overflows of exp(-g). */
static void test_swiglu_tails(const slm2_backend *be) {
  static const struct {
    float gate;
    double about;
  } cases[] = {{-20, -4.12e-8}, {-88, -5.33e-37}, {-89, -1.98e-37}, {-100, -3.72e-42}};
  for (size_t i = 0; i < 4; i++) {
    float y, one = 1.0f;
    be->swiglu(&y, &cases[i].gate, &one, 1);
    CHECK(y < 0.0f && y > cases[i].about * 1.02 && y < cases[i].about * 0.98);
  }
}

/* R64: all weights +-127, scales 2^-14 (smallest normal f16) and 2^-24 (smallest subnormal): exact sums. */
static void test_q8_extremes(const slm2_backend *be) {
  static const struct {
    uint16_t d;
    float value;
  } cases[] = {{0x0400, 0x1p-14f}, {0x0001, 0x1p-24f}, {0x8001, -0x1p-24f}, {0x7bff, 65504.0f}};
  for (size_t i = 0; i < 4; i++) {
    uint8_t *rows = memory(SLM2_PANEL_BYTES);
    float x[32], y[32], a;
    int8_t xq[32];
    for (int r = 0; r < 32; r++) {
      slm2_store_u16(rows + r * 34, cases[i].d);
      for (int k = 0; k < 32; k++) rows[r * 34 + 2 + k] = (uint8_t)(int8_t)(k % 2 == 0 ? 127 : -127);
    }
    for (int k = 0; k < 32; k++) x[k] = k % 2 == 0 ? 127.0f : -127.0f;
    slm2_matrix w = {rows, 32, 32, SLM2_FORM_ROWS};
    be->matmul_f32(y, 32, &w, x, 1, 0, 32);
    CHECK(y[0] == 516128.0f * cases[i].value && y[31] == y[0]);
    CHECK(be->quantize(xq, &a, x, 32) && a == 1.0f && xq[0] == 127 && xq[1] == -127);
    be->matmul_q8(y, 32, &w, xq, &a, 1, 0, 32);
    CHECK(y[0] == 516128.0f * cases[i].value && y[31] == y[0]);
  }
}

/* Ties with a = 1 go to the even neighbour [D11]: .5 -> 0, 1.5 -> 2, 2.5 -> 2. */
static void test_ties(const slm2_backend *be) {
  float x[32] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, 125.5f}, a;
  static const int8_t expected[32] = {127, 0, 2, 2, 0, -2, -2, 126, 126};
  int8_t xq[32];
  CHECK(be->quantize(xq, &a, x, 32) && same_bits(xq, expected, 32));
}

/* [D5] One bad element anywhere is seen, by every operation that is a stage border. */
static void test_not_finite(const slm2_backend *be) {
  static const uint32_t bad[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu};
  float x[64], a[2], out[32], copy[64];
  int8_t xq[64];
  uint16_t halves[64];
  for (size_t i = 0; i < 6; i++)
    for (size_t at = 0; at < 64; at++) {
      for (int k = 0; k < 64; k++) x[k] = 3.4028235e38f; /* finite, however large */
      CHECK(be->finite(x, 64) && be->quantize(xq, a, x, 64));
      x[at] = slm2_float_from_bits(bad[i]);
      CHECK(!be->finite(x, 64) && be->finite(x, at));
      CHECK(!be->quantize(xq, a, x, 64));
      CHECK(!be->kv_store(copy, x, 64, false));
      CHECK(!be->kv_store(halves, x, 64, true));
      float q[32], kv[64] = {0};
      for (int k = 0; k < 32; k++) q[k] = x[32 + k] == 3.4028235e38f ? 1.0f : x[32 + k];
      bool fine = at < 32;
      CHECK(attend(be, out, q, (slm2_kv_view){kv, false}, (slm2_kv_view){kv, false}, 2, 32) == fine);
    }
  for (int k = 0; k < 64; k++) x[k] = 3.4028235e38f; /* q k overflows */
  CHECK(!attend(be, out, x, (slm2_kv_view){x, false}, (slm2_kv_view){x, false}, 2, 32));
  CHECK(be->finite(x, 0));
}

/* Scores as far apart as f32 goes: the difference overflows to -inf, whose exp is +0. */
static void test_attention_far_scores(const slm2_backend *be) {
  float q[8] = {1.5e19f}, k[16] = {1.5e19f}, v[16], out[8];
  k[8] = -1.5e19f;
  for (int i = 0; i < 16; i++) v[i] = i < 8 ? 2.0f : 3.0f;
  CHECK(attend(be, out, q, (slm2_kv_view){k, false}, (slm2_kv_view){v, false}, 2, 8));
  for (int i = 0; i < 8; i++) CHECK(out[i] == 2.0f);
}

static void test_backends(void) {
  const slm2_backend *be = NULL;
  slm2_error error;
  CHECK(slm2_backend_at(0) == &slm2_backend_oracle);
  CHECK(slm2_backend_at(1000) == NULL && slm2_backend_default() != NULL);
  CHECK(slm2_backend_find("oracle", &be, &error) == SLM2_OK && be == &slm2_backend_oracle);
  CHECK(strcmp(slm2_backend_name(be), "oracle") == 0);
  CHECK(slm2_backend_find("auto", &be, &error) == SLM2_OK && be == slm2_backend_default());
  for (uint32_t i = 0; slm2_backend_at(i) != NULL; i++) { /* what may be used is found by its name */
    const char *name = slm2_backend_name(slm2_backend_at(i));
    CHECK_CASE(slm2_backend_find(name, &be, &error) == SLM2_OK && be == slm2_backend_at(i), name);
  }
  static const char *const unknown[] = {"", "oracl", "oracle2", "AUTO", "cuda"};
  be = NULL;
  for (size_t i = 0; i < 5; i++) {
    CHECK_CASE(slm2_backend_find(unknown[i], &be, &error) == SLM2_E_ARGUMENT && be == NULL, unknown[i]);
    CHECK_CASE(strstr(error.message, "auto, oracle") != NULL && strcmp(error.name, unknown[i]) == 0, unknown[i]);
  }
}

int main(void) {
  for (uint32_t i = 0; slm2_backend_at(i) != NULL; i++) {
    const slm2_backend *be = slm2_backend_at(i);
    test_cases(be);
    test_rope_extremes(be);
    test_swiglu_tails(be);
    test_q8_extremes(be);
    test_ties(be);
    test_not_finite(be);
    test_attention_far_scores(be);
    release_memory();
  }
  test_backends();
  return test_end("oracle");
}
