/* bench/distance.c: how far profile q8 and KV type f16 are from profile f32 with KV f32, the authority [D25]. Measured,
 * never asserted. Usage: distance CORPUS FILE.slm2...
 *
 * The corpus is tokenised and cut into windows of WINDOW ids, each computed from an empty timeline. Per combination: the
 * mean and the worst 1 - cosine of the logits of a position against the authority's, the share of positions with the same
 * best id, and the perplexity of the corpus (of each window's ids after its first) with its difference in per cent. All
 * in binary64 with the C library's exp and log: this is a measurement of the model, not a part of it.
 */
#include <math.h>
#include "platform/platform.h"
#include "slm2/session.h"
#include "tests/test.h"

enum { WINDOW = 256 };

typedef struct measure {
  slm2_session *session;
  void *memory;
  uint64_t bytes;
  double *reference; /* [WINDOW, vocab] logits of the authority; owned by the first measure */
  double cosine_sum, worst, nll;
  uint64_t positions, same_best, predicted;
} measure;

typedef struct step { /* one position under way */
  measure *m;
  const uint32_t *ids;
  uint32_t n, vocab;
  bool authority;
} step;

static void require(slm2_status status, const slm2_error *error) {
  if (status == SLM2_OK) return;
  fprintf(stderr, "distance: %s: %s\n", error->operation, error->message);
  exit(1);
}

static uint32_t best_id(const double *z, uint32_t n) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < n; i++) best = z[i] > z[best] ? i : best;
  return best;
}

static void compare(measure *m, const double *a, const double *b, uint32_t n) {
  double aa = 0, bb = 0, ab = 0;
  for (uint32_t i = 0; i < n; i++) aa += a[i] * a[i], bb += b[i] * b[i], ab += a[i] * b[i];
  double distance = 1 - ab / sqrt(aa * bb);
  m->cosine_sum += distance;
  if (distance > m->worst) m->worst = distance;
  m->positions++;
  m->same_best += best_id(a, n) == best_id(b, n);
}

static slm2_status take(void *user, uint32_t position, const float *logits) {
  step *s = user;
  static double own[SLM2_MAX_VOCAB];
  double max = (double)logits[0], sum = 0, *reference = s->m->reference + (size_t)position * s->vocab;
  for (uint32_t i = 0; i < s->vocab; i++) {
    own[i] = (double)logits[i];
    if (own[i] > max) max = own[i];
    if (s->authority) reference[i] = own[i];
  }
  compare(s->m, reference, own, s->vocab);
  if (position + 1 == s->n) return SLM2_OK;
  for (uint32_t i = 0; i < s->vocab; i++) sum += exp(own[i] - max);
  s->m->nll += log(sum) - (own[s->ids[position + 1]] - max);
  s->m->predicted++;
  return SLM2_OK;
}

static void open_session(measure *m, const slm2_model *model, slm2_profile profile, slm2_kv_type kv) {
  slm2_error error;
  slm2_plan plan;
  slm2_session_params params = {.context = WINDOW, .tile = 64, .profile = profile, .kv = kv};
  require(slm2_session_plan(slm2_model_header(model), &params, &plan, &error), &error);
  m->bytes = plan.total;
  require(slm2_memory_reserve(m->bytes, &m->memory, &error), &error);
  require(slm2_session_init(m->memory, m->bytes, model, &params, &m->session, &error), &error);
}

static uint32_t *tokenise(const slm2_tokenizer *t, const char *text, size_t n, size_t *n_ids) {
  slm2_error error;
  size_t scratch_bytes;
  require(slm2_tokenize_scratch_bytes(n, &scratch_bytes), &error);
  uint32_t *ids = malloc((3 * n + 1) * sizeof *ids);
  void *scratch = malloc(scratch_bytes);
  if (ids == NULL || scratch == NULL) exit(1);
  require(slm2_tokenize(t, (const uint8_t *)text, n, SLM2_SPECIALS_OFF, NULL, scratch, scratch_bytes, ids, 3 * n + 1, n_ids, &error),
          &error);
  free(scratch);
  return ids;
}

static void print_rows(const char *path, const measure *m, const char *const *names, size_t n_ids) {
  double authority = exp(m[0].nll / (double)m[0].predicted);
  for (int i = 0; i < 4; i++) {
    double perplexity = exp(m[i].nll / (double)m[i].predicted), n = (double)m[i].positions;
    printf("%-28s %-12s %6zu  %9.2e  %9.2e  %7.2f %%  %10.4f  %+8.3f %%\n", i == 0 ? path : "", names[i], n_ids,
           m[i].cosine_sum / n, m[i].worst, 100 * (double)m[i].same_best / n, perplexity, 100 * (perplexity / authority - 1));
  }
}

static void measure_model(const char *path, const char *text, size_t n) {
  static const char *const names[] = {"f32, KV f32", "f32, KV f16", "q8, KV f32", "q8, KV f16"};
  slm2_error error;
  slm2_mapping file;
  size_t model_bytes, n_ids;
  void *memory;
  slm2_model *model;
  require(slm2_map(path, &file, &error), &error);
  require(slm2_model_bytes(file.bytes, file.n, &model_bytes, &error), &error);
  require(slm2_memory_reserve(model_bytes, &memory, &error), &error);
  require(slm2_model_init(memory, model_bytes, file.bytes, file.n, &model, &error), &error);
  uint32_t *ids = tokenise(slm2_model_tokenizer(model), text, n, &n_ids), vocab = slm2_model_header(model)->config.vocab;
  double *reference = malloc(sizeof(double) * WINDOW * vocab);
  if (reference == NULL) exit(1);
  measure m[4] = {{0}};
  for (unsigned i = 0; i < 4; i++) {
    open_session(&m[i], model, (slm2_profile)(i / 2), (slm2_kv_type)(i % 2));
    m[i].reference = reference;
  }
  for (size_t at = 0; at + 1 < n_ids; at += WINDOW) {
    uint32_t count = (uint32_t)(n_ids - at < WINDOW ? n_ids - at : WINDOW);
    for (unsigned i = 0; i < 4; i++) {
      step s = {&m[i], ids + at, count, vocab, i == 0};
      require(slm2_session_rewind(m[i].session, 0, &error), &error);
      require(slm2_session_append(m[i].session, ids + at, count, &(slm2_run){.each_logits = take, .user = &s}, &error), &error);
    }
  }
  print_rows(path, m, names, n_ids);
  for (int i = 0; i < 4; i++) slm2_memory_release(m[i].memory, m[i].bytes);
  free(reference);
  free(ids);
  slm2_memory_release(memory, model_bytes);
  slm2_unmap(&file);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: distance CORPUS FILE.slm2...\n");
    return 2;
  }
  size_t n;
  char *text = test_read_file(argv[1], &n);
  printf("%-28s %-12s %6s  %9s  %9s  %9s  %10s  %10s\n", "model", "computes", "ids", "1-cosine", "worst", "same best", "perplexity",
         "difference");
  for (int i = 2; i < argc; i++) measure_model(argv[i], text, n);
  free(text);
  return 0;
}
