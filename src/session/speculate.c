/* session/speculate.c: drafts, and what was computed ahead. Contract: session/speculate.h. */
#include "session/speculate.h"
#include "base/bytes.h"
#include "base/error.h"

/* --- drafts ------------------------------------------------------------------ */

#define BLOCK 64u
static bool block_has(const uint32_t *ids, uint32_t id) {
  uint32_t any = 0;
  for (uint32_t i = 0; i < BLOCK; i++) any |= ids[i] == id;
  return any != 0;
}

/* How many of the last ids of ids[0..n) are also the last of ids[0..end), at most MATCH_MAX. */
static uint32_t match_at(const uint32_t *ids, uint32_t n, uint32_t end) {
  uint32_t m = 0;
  while (m < SLM2_DRAFT_MATCH_MAX && m < end && ids[end - 1 - m] == ids[n - 1 - m]) m++;
  return m;
}

/* Backwards, a block at a time: one without the last id is left out whole. At most LOOKBACK * MATCH_MAX comparisons. */
uint32_t slm2_draft_find(const uint32_t *ids, uint32_t n, uint32_t *matched) {
  const uint32_t last = ids[n - 1], stop = n - 1 > SLM2_DRAFT_LOOKBACK ? n - 1 - SLM2_DRAFT_LOOKBACK : 0;
  uint32_t best = 0;
  *matched = SLM2_DRAFT_MATCH_MIN - 1;
  for (uint32_t end = n - 1; end > stop;) {
    const uint32_t size = end - stop < BLOCK ? end - stop : BLOCK, next = end - size;
    for (bool look = size < BLOCK || block_has(ids + next, last); look && end > next; end--) {
      const uint32_t m = ids[end - 1] == last ? match_at(ids, n, end) : 0;
      if (m <= *matched) continue;
      *matched = m;
      best = end;
      if (m == SLM2_DRAFT_MATCH_MAX) return best;
    }
    end = next;
  }
  return best;
}

/* --- what drafts may cost ----------------------------------------------------- */

/* In units of 1/64 of a token's time. A batch of k drafts takes about per_batch + k * per_draft more than one token alone.
 * Weights that memory has to bring are the larger part of a token's time, and a batch reads them once; weights that stay in
 * a cache are not: measured shares, rounded up (docs/DECISIONS.md). What drafts save is earned; each token adds ALLOWANCE,
 * and HINT when a look at the timeline would have guessed it: so text that begins to repeat itself is found out soon. Beyond
 * what it saved, speculation takes at most that sum, and at the start the price of one. Counts decide, never a clock. */
#define UNIT 64
#define ALLOWANCE 1
#define HINT 2
#define BUDGET_MAX (10 * UNIT) /* more is not saved up from good times */
#define CACHED_PARAMETERS 64000000u

void slm2_speculation_init(slm2_speculation *p, slm2_session *s, uint32_t speculate) {
  const bool cached = slm2_parameter_count(&s->forward.model->header.config) < CACHED_PARAMETERS;
  const bool adaptive = speculate == SLM2_SPECULATE_AUTO;
  *p = (slm2_speculation){
    .longest = adaptive ? s->params.draft : speculate,
    .adaptive = adaptive,
    .budget = cached ? 0 : UNIT / 2,
    .per_draft = cached ? UNIT * 3 / 4 : UNIT * 3 / 8,
    .per_batch = cached ? UNIT / 4 : UNIT / 8,
    .guess = SLM2_NO_TOKEN,
  };
  slm2_session_drop_ahead(s);
}

static void earn(slm2_speculation *p, int32_t units) {
  p->budget = p->budget + units < BUDGET_MAX ? p->budget + units : BUDGET_MAX;
}

/* The longest draft that the budget pays, with nothing known about it. */
static uint32_t affordable(const slm2_speculation *p) {
  if (!p->adaptive) return p->longest;
  if (p->budget < p->per_batch + p->per_draft) return 0;
  const uint32_t n = (uint32_t)((p->budget - p->per_batch) / p->per_draft);
  return n < p->longest ? n : p->longest;
}

/* Writes a draft behind the id at the session's length and returns how long it is. The source may run into the draft
 * itself: what repeats goes on repeating. */
static uint32_t write_draft(slm2_speculation *p, slm2_session *s, uint32_t room) {
  const uint32_t n = s->length + 1, positions = s->params.context - 1 - n; /* the last one is never computed */
  uint32_t k = affordable(p), matched;
  k = k < room ? k : room;
  k = k < positions ? k : positions;
  const uint32_t from = slm2_draft_find(s->ids, n, &matched);
  if (from == 0) return 0;
  p->guess = s->ids[from];
  if (p->adaptive && k > 2 * matched) k = 2 * matched; /* a longer match promises more */
  for (uint32_t i = 0; i < k; i++) s->ids[n + i] = s->ids[from + i];
  return k;
}

/* --- ahead ---------------------------------------------------------------------- */

/* Takes the next position over from what was computed ahead, when its id is this one. */
static bool take_ahead(slm2_session *s, uint32_t id) {
  const size_t vocab = s->forward.model->header.config.vocab;
  if (s->ahead_next == s->ahead_end || s->ids[s->length] != id) return false;
  memcpy(s->logits, s->logits + s->ahead_next * vocab, vocab * sizeof *s->logits);
  s->ahead_next++;
  s->length++;
  return true;
}

/* ids[length] and the n - 1 behind it in one pass: the first one joins the timeline, the others are ahead. */
static slm2_status compute(slm2_session *s, uint32_t n, const slm2_cancel *cancel, slm2_error *error) {
  const slm2_watch watch = {.stop = cancel};
  SLM2_TRY(slm2_forward_tile(&s->forward, s->ids + s->length, n, s->length, &watch, error));
  s->has_logits = false; /* overwritten from here on */
  SLM2_TRY(slm2_forward_logits(&s->forward, 0, n, s->length, s->logits, &watch, error));
  s->has_logits = true;
  s->length++;
  s->ahead_next = 1;
  s->ahead_end = n;
  return SLM2_OK;
}

slm2_status slm2_speculation_append(slm2_speculation *p, slm2_session *s, uint32_t id, uint32_t room, const slm2_cancel *cancel,
                                    slm2_error *error) {
  const slm2_run alone = {.cancel = cancel};
  earn(p, id == p->guess ? ALLOWANCE + HINT : ALLOWANCE);
  p->guess = SLM2_NO_TOKEN;
  if (p->longest > 0 && take_ahead(s, id)) {
    p->accepted++;
    earn(p, UNIT);
    return SLM2_OK;
  }
  slm2_session_drop_ahead(s);
  s->ids[s->length] = id;
  const uint32_t k = p->longest > 0 ? write_draft(p, s, room) : 0;
  if (k == 0) return slm2_session_append(s, &id, 1, &alone, error);
  slm2_error why = {0};
  slm2_status status = compute(s, k + 1, cancel, &why);
  p->drafted += k;
  p->budget -= p->per_batch + (int32_t)k * p->per_draft;
  if (status == SLM2_E_NUMERICAL) { /* of a draft, perhaps, which alone must not end anything: what counts is this id's [D5b] */
    p->budget -= UNIT;
    return slm2_session_append(s, &id, 1, &alone, error);
  }
  if (status != SLM2_OK && error != NULL) *error = why;
  return status;
}
