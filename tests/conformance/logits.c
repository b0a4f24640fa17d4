/* tests/conformance/logits.c: logits of profile f32 against PyTorch's at eight positions of each checkpoint [D24].
 *
 * models.txt has a line per checkpoint: NAME IDENTITY DELTA STRIDE POSITIONS IDS. NAME.f32 holds, for each of the eight
 * positions, PyTorch's logits of the ids 0, stride, 2 stride ..., then max |logit| and the Euclidean norm over all ids:
 * f32, little endian. ULP: |difference| in units in the last place of max |logit|; for the norm, of the norm.
 */
#include <math.h>
#include "base/bytes.h"
#include "base/sha256.h"
#include "tests/conformance/conformance.h"

static void require(slm2_status status, const slm2_error *error) {
  if (status == SLM2_OK) return;
  printf("FAIL %s\n", error->message);
  exit(1);
}

void machine_open(machine *m, const char *path, uint32_t context) {
  slm2_error error;
  slm2_model *model;
  slm2_plan plan;
  size_t n;
  require(slm2_map(path, &m->file, &error), &error);
  require(slm2_model_bytes(m->file.bytes, m->file.n, &n, &error), &error);
  require(slm2_memory_reserve(n, &m->model_memory, &error), &error);
  require(slm2_model_init(m->model_memory, n, m->file.bytes, m->file.n, &model, &error), &error);
  m->model = model;
  uint8_t identity[32];
  slm2_model_identity(model, identity);
  slm2_hex(identity, 32, m->identity);
  slm2_session_params params = {.context = context, .tile = 32, .profile = SLM2_PROFILE_F32, .kv = SLM2_KV_F32};
  require(slm2_session_plan(slm2_model_header(model), &params, &plan, &error), &error);
  require(slm2_memory_reserve(plan.total, &m->session_memory, &error), &error);
  require(slm2_session_init(m->session_memory, plan.total, model, &params, &m->session, &error), &error);
  m->session_bytes = plan.total;
}

void machine_close(machine *m) {
  slm2_error error;
  size_t n;
  require(slm2_model_bytes(m->file.bytes, m->file.n, &n, &error), &error);
  slm2_memory_release(m->session_memory, m->session_bytes);
  slm2_memory_release(m->model_memory, n);
  slm2_unmap(&m->file);
}

/* "1,2,3" to numbers; exits when there are more than capacity. */
static uint32_t read_list(const char *text, uint32_t *out, uint32_t capacity) {
  uint32_t n = 0;
  for (char *end; *text >= '0' && *text <= '9'; text = *end == ',' ? end + 1 : end) {
    if (n == capacity) exit(1);
    out[n++] = (uint32_t)strtoul(text, &end, 10);
  }
  return n;
}

bool golden_next(const char **text, golden *g) {
  static char positions[128], ids[8 * 4096];
  unsigned stride;
  int used;
  if (sscanf(*text, "%31s %64s %lf %u %127s %32767s\n%n", g->name, g->identity, &g->delta, &stride, positions, ids, &used) != 6)
    return false;
  *text += used;
  g->stride = stride;
  g->n_ids = read_list(ids, g->ids, 4096);
  if (read_list(positions, g->positions, 8) != 8 || stride == 0 || g->positions[7] + 1 != g->n_ids) {
    printf("FAIL broken line of models.txt: %s\n", g->name);
    exit(1);
  }
  return true;
}

/* Size of the last place of an f32 near x > 0. */
static double ulp_of(double x) {
  int exponent;
  frexp(x, &exponent);
  return ldexp(1.0, exponent - 24);
}

typedef struct distance {
  double one_minus_cosine, worst, *ulps;
  size_t n;
} distance;

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* One position: want holds n values, max |logit| and norm. */
static void compare(const float *logits, uint32_t vocab, uint32_t stride, const uint8_t *want, size_t n, distance *d) {
  double max = 0, squares = 0, own = 0, golden_squares = 0, apart = 0;
  for (uint32_t i = 0; i < vocab; i++) {
    max = fmax(max, fabs((double)logits[i]));
    squares += (double)logits[i] * (double)logits[i];
  }
  double golden_max = (double)slm2_load_f32(want + 4 * n), norm = (double)slm2_load_f32(want + 4 * n + 4);
  for (size_t i = 0; i < n; i++) {
    double a = (double)logits[i * stride], b = (double)slm2_load_f32(want + 4 * i), ulp = fabs(a - b) / ulp_of(golden_max);
    d->ulps[d->n++] = ulp;
    d->worst = fmax(d->worst, ulp);
    own += a * a;
    golden_squares += b * b;
  }
  for (size_t i = 0; i < n; i++) { /* 1 - cosine = |a/|a| - b/|b||^2 / 2: no cancellation */
    double a = (double)logits[i * stride] / sqrt(own), b = (double)slm2_load_f32(want + 4 * i) / sqrt(golden_squares);
    apart += (a - b) * (a - b);
  }
  d->one_minus_cosine = fmax(d->one_minus_cosine, apart / 2);
  d->worst = fmax(d->worst, fmax(fabs(max - golden_max) / ulp_of(golden_max), fabs(sqrt(squares) - norm) / ulp_of(norm)));
}

static void check_model(const char *folder, const char *models, const golden *g) {
  char path[512];
  machine m = {0};
  slm2_error error;
  snprintf(path, sizeof path, "%s/%s.slm2", models, g->name);
  machine_open(&m, path, g->n_ids);
  if (strcmp(m.identity, g->identity) != 0) {
    snprintf(path, sizeof path, "%s: another model than was compared with PyTorch; make conformance-refresh", g->name);
    expect(false, path);
    machine_close(&m);
    return;
  }
  uint32_t vocab = slm2_model_header(m.model)->config.vocab;
  size_t n = (vocab - 1) / g->stride + 1, n_file;
  snprintf(path, sizeof path, "%s/%s.f32", folder, g->name);
  uint8_t *want = (uint8_t *)test_read_file(path, &n_file);
  distance d = {.ulps = malloc(8 * n * sizeof(double))};
  if (expect(n_file == 8 * 4 * (n + 2) && d.ulps != NULL, path)) {
    for (uint32_t i = 0, at = 0; i < 8; i++) {
      require(slm2_session_append(m.session, g->ids + at, g->positions[i] + 1 - at, NULL, &error), &error);
      at = g->positions[i] + 1;
      compare(slm2_session_logits(m.session), vocab, g->stride, want + i * 4 * (n + 2), n, &d);
    }
    qsort(d.ulps, d.n, sizeof(double), ascending);
    printf("%-24s %10u %10zu %12.2e %10.1f %10.1f\n", g->name, 8u, d.n, d.one_minus_cosine, d.ulps[d.n / 2], d.worst);
    snprintf(path, sizeof path, "%s: the limits are %g and %.0f ULP", g->name, LIMIT_ONE_MINUS_COSINE, LIMIT_ULP);
    expect(d.one_minus_cosine <= LIMIT_ONE_MINUS_COSINE && d.worst <= LIMIT_ULP, path);
    if (d.worst > EXPLAIN_ULP && d.worst <= LIMIT_ULP)
      printf("  above %.0f ULP: docs/CONFORMANCE.md must explain why\n", EXPLAIN_ULP);
  }
  free(d.ulps), free(want);
  machine_close(&m);
}

void check_logits(const char *folder, const char *models) {
  static golden g;
  char path[512];
  unsigned n = 0;
  snprintf(path, sizeof path, "%s/models.txt", folder);
  char *file = test_read_file(path, NULL);
  printf("%-24s %10s %10s %12s %10s %10s\n", "against PyTorch", "positions", "logits", "1 - cosine", "ULP median", "ULP max");
  for (const char *at = file; golden_next(&at, &g); n++) check_model(folder, models, &g);
  expect(n == 7, "models.txt has 7 models");
  free(file);
}
