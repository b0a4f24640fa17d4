/* sampler/sampler.c: logits to a distribution and a distribution to an id [D19] [D20] [D21]. Knows nothing of models
 * or sessions. Every public function sets the floating-point environment around a body of its own [D2]. */
#include "base/bytes.h"
#include "base/error.h"
#include "num/fp_env.h"
#include "num/math.h"
#include "slm2/sampler.h"

/* Everything one distribution is made from. */
typedef struct source {
  const float *logits;
  uint32_t n;
  const uint8_t *has_token; /* NULL: all */
  const uint8_t *penalised; /* NULL: none */
  float repeat_penalty;
} source;

static bool bit(const uint8_t *bits, uint32_t i) { return (bits[i >> 3] >> (i & 7) & 1) != 0; }
static bool eligible(const source *s, uint32_t i) { return s->has_token == NULL || bit(s->has_token, i); }
static bool finite(float x) { return (slm2_float_bits(x) & 0x7fffffff) < 0x7f800000; }

static float penalise(float z, float r) { return z > 0.0f ? z / r : z * r; }
static float logit_of(const source *s, uint32_t i) {
  return s->penalised != NULL && bit(s->penalised, i) ? penalise(s->logits[i], s->repeat_penalty) : s->logits[i];
}

/* The total order of D19: higher logit first, -0 equal to +0, then lower id. */
static bool before(const slm2_candidate *a, const slm2_candidate *b) {
  return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* --- parameters ------------------------------------------------------------ */

/* On bits, so that the caller's floating-point environment cannot change what is accepted. */
static bool in_range(float x, float lowest, float highest) {
  int64_t bits = slm2_float_bits(x), low = slm2_float_bits(lowest), high = slm2_float_bits(highest);
  return bits == 0x80000000 ? low == 0 : bits >= low && bits <= high; /* 0 <= lowest <= highest: no negative passes */
}

#define SMALLEST 0x1p-149f
#define LARGEST 0x1.fffffep127f

slm2_status slm2_sampler_check(const slm2_sampler_params *p, slm2_error *error) {
  const char *name = NULL, *why = "";
  if (!in_range(p->repeat_penalty, SMALLEST, LARGEST)) name = "repeat_penalty", why = "a finite number above 0";
  if (!in_range(p->min_p, 0.0f, 1.0f)) name = "min_p", why = "between 0 and 1";
  if (!in_range(p->top_p, 0.0f, 1.0f)) name = "top_p", why = "between 0 and 1";
  if (!in_range(p->temperature, 0.0f, LARGEST)) name = "temperature", why = "a finite number, 0 or above";
  if (name == NULL) return SLM2_OK;
  return slm2_fail(error, SLM2_E_ARGUMENT, "sampling", name, SLM2_NO_OFFSET, "%s must be %s", name, why);
}

/* --- selection -------------------------------------------------------------- */

/* Heap of n candidates with the last one in order at the root; sinks the element at i: down to a leaf along the later
 * children, then up to its place (Wegener's bottom-up heapsort, about half the comparisons). */
static void sink(slm2_candidate *heap, uint32_t n, uint32_t i) {
  const slm2_candidate moved = heap[i];
  uint32_t top = i;
  for (uint64_t child = 2 * (uint64_t)i + 1; child < n; child = 2 * (uint64_t)i + 1) {
    child += child + 1 < n && before(&heap[child], &heap[child + 1]);
    heap[i] = heap[child];
    i = (uint32_t)child;
  }
  while (i > top && before(&heap[(i - 1) / 2], &moved)) {
    heap[i] = heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  heap[i] = moved;
}

/* Whether one of SCAN logits is above z. Without branches, so that the compiler does several at once. */
#define SCAN 32u
static bool any_above(const float *logits, float z) {
  int above = 0;
  for (uint32_t i = 0; i < SCAN; i++) above |= logits[i] > z;
  return above != 0;
}

/* The best `limit` candidates in order (all of them when limit is 0 or more than there are). Returns their number. */
static uint32_t select_best(const source *s, uint32_t limit, slm2_candidate *out) {
  uint32_t n = 0, i = 0;
  if (limit == 0 || limit > s->n) limit = s->n;
  for (; i < s->n && n < limit; i++)
    if (eligible(s, i)) out[n++] = (slm2_candidate){.logit = logit_of(s, i), .id = i};
  for (uint32_t j = n / 2; j-- > 0;) sink(out, n, j);
  while (i < s->n) { /* a later id must be greater than the root to displace it */
    const uint32_t end = s->n - i < SCAN ? s->n : i + SCAN;
    if (end - i == SCAN && s->penalised == NULL && !any_above(s->logits + i, out[0].logit)) i = end;
    for (; i < end; i++) {
      const float z = logit_of(s, i);
      if (!(z > out[0].logit) || !eligible(s, i)) continue;
      out[0] = (slm2_candidate){.logit = z, .id = i};
      sink(out, n, 0);
    }
  }
  for (uint32_t left = n; left > 1;) { /* move the last in order to the end, again and again */
    slm2_candidate last = out[0];
    out[0] = out[--left];
    out[left] = last;
    sink(out, left, 0);
  }
  return n;
}

/* --- probabilities ---------------------------------------------------------- */

static void divide_all(slm2_candidate *c, uint32_t n, float by) {
  for (uint32_t j = 0; j < n; j++) c[j].p = c[j].p / by;
}

static float sum_seq(const slm2_candidate *c, uint32_t n) { /* [D6] */
  float acc = 0.0f;
  for (uint32_t j = 0; j < n; j++) acc = acc + c[j].p;
  return acc;
}

static void softmax(slm2_candidate *c, uint32_t n, float temperature) {
  for (uint32_t j = 0; j < n; j++) c[j].p = slm2_expf((c[j].logit - c[0].logit) / temperature);
  divide_all(c, n, sum_seq(c, n));
}

/* Keeps through the first cumulative sum above P; renormalises. */
static uint32_t cut_top_p(slm2_candidate *c, uint32_t n, float top_p) {
  float sum = 0.0f;
  uint32_t kept = 0;
  while (kept < n && !(sum > top_p && kept > 0)) sum = sum + c[kept++].p;
  divide_all(c, kept, sum);
  return kept;
}

static uint32_t cut_min_p(slm2_candidate *c, uint32_t n, float min_p) {
  float least = min_p * c[0].p;
  uint32_t kept = 0;
  while (kept < n && c[kept].p >= least) kept++; /* p falls with the rank */
  divide_all(c, kept, sum_seq(c, kept));
  return kept;
}

/* --- the pipeline ----------------------------------------------------------- */

static bool all_finite(const float *logits) { /* of SCAN */
  int32_t bad = 0;
  for (uint32_t i = 0; i < SCAN; i++) bad |= (int32_t)(slm2_float_bits(logits[i]) & 0x7fffffff) > 0x7f7fffff;
  return bad == 0;
}

static slm2_status check_finite(const float *logits, uint32_t n, slm2_error *error) { /* [D5] */
  uint32_t i = 0;
  while (i + SCAN <= n && all_finite(logits + i)) i += SCAN;
  while (i < n && finite(logits[i])) i++;
  if (i == n) return SLM2_OK;
  return slm2_fail(error, SLM2_E_NUMERICAL, "sampling", "logits", SLM2_NO_OFFSET,
                   "the logit of id %u is not finite", (uint64_t)i);
}

/* Marks the distinct ids of the context and checks what the penalty makes of them. */
static slm2_status mark_penalised(const source *s, const uint32_t *context, size_t n_context, uint8_t *seen, slm2_error *error) {
  memset(seen, 0, (size_t)s->n / 8 + 1);
  for (size_t i = 0; i < n_context; i++) {
    uint32_t id = context[i];
    if (id >= s->n)
      return slm2_fail(error, SLM2_E_TOKEN, "sampling", "context", SLM2_NO_OFFSET,
                       "token id %u at position %u, but there are %u logits", (uint64_t)id, (uint64_t)i, (uint64_t)s->n);
    if (bit(seen, id)) continue;
    seen[id >> 3] = (uint8_t)(seen[id >> 3] | 1u << (id & 7));
    if (eligible(s, id) && !finite(penalise(s->logits[id], s->repeat_penalty)))
      return slm2_fail(error, SLM2_E_NUMERICAL, "sampling", "repeat_penalty", SLM2_NO_OFFSET,
                       "the penalised logit of id %u is not finite", (uint64_t)id);
  }
  return SLM2_OK;
}

SLM2_NOINLINE static slm2_status distribution(const slm2_sampler_params *p, const float *logits, uint32_t n,
                                              const uint8_t *has_token, const uint32_t *context, size_t n_context,
                                              uint8_t *seen, slm2_candidate *c, uint32_t *n_out, slm2_error *error) {
  source s = {logits, n, has_token, NULL, p->repeat_penalty};
  SLM2_TRY(slm2_sampler_check(p, error));
  SLM2_TRY(check_finite(logits, n, error));
  if (p->repeat_penalty != 1.0f) {
    SLM2_TRY(mark_penalised(&s, context, n_context, seen, error));
    s.penalised = seen;
  }
  uint32_t kept = select_best(&s, p->temperature == 0.0f ? 1 : p->top_k, c);
  if (kept == 0)
    return slm2_fail(error, SLM2_E_ARGUMENT, "sampling", "has_token", SLM2_NO_OFFSET,
                     "none of the %u ids has a token", (uint64_t)n);
  if (p->temperature == 0.0f) {
    c[0].p = 1.0f;
  } else {
    softmax(c, kept, p->temperature);
    if (p->top_p < 1.0f) kept = cut_top_p(c, kept, p->top_p);
    if (p->min_p > 0.0f) kept = cut_min_p(c, kept, p->min_p);
  }
  *n_out = kept;
  return SLM2_OK;
}

slm2_status slm2_sampler_distribution(const slm2_sampler_params *params, const float *logits, uint32_t n,
                                      const uint8_t *has_token, const uint32_t *context, size_t n_context,
                                      uint8_t *seen, slm2_candidate *candidates, uint32_t *n_out, slm2_error *error) {
  slm2_fp_state state = slm2_fp_enter();
  slm2_status status = distribution(params, logits, n, has_token, context, n_context, seen, candidates, n_out, error);
  slm2_fp_leave(state);
  return status;
}

/* The first id whose prefix sum exceeds u times the whole. u <= 1 - 2^-24, so u * sum rounds below sum and one does. */
SLM2_NOINLINE static uint32_t pick(const slm2_candidate *c, uint32_t n, uint32_t word) {
  float bound = ((float)(word >> 8) * 0x1p-24f) * sum_seq(c, n), prefix = c[0].p;
  uint32_t j = 0;
  while (!(prefix > bound) && j + 1 < n) prefix = prefix + c[++j].p;
  return c[j].id;
}

uint32_t slm2_sampler_draw(const slm2_candidate *candidates, uint32_t n, slm2_rng *rng) {
  uint32_t word = slm2_rng_next(rng);
  slm2_fp_state state = slm2_fp_enter();
  uint32_t id = pick(candidates, n, word);
  slm2_fp_leave(state);
  return id;
}

slm2_status slm2_sampler_next(const slm2_sampler_params *params, const float *logits, uint32_t n, const uint8_t *has_token,
                              const uint32_t *context, size_t n_context, uint8_t *seen, slm2_candidate *candidates,
                              slm2_rng *rng, uint32_t *id, slm2_error *error) {
  uint32_t kept;
  SLM2_TRY(slm2_sampler_distribution(params, logits, n, has_token, context, n_context, seen, candidates, &kept, error));
  bool greedy = (slm2_float_bits(params->temperature) & 0x7fffffff) == 0;
  *id = greedy ? candidates[0].id : slm2_sampler_draw(candidates, kept, rng);
  return SLM2_OK;
}
