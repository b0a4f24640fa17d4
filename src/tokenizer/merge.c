/* tokenizer/merge.c: byte pair encoding of one pre-token, exactly as a priority queue of (rank, position).
 *
 * Symbols live at the byte position where they start. symbol[p] is the token's id; the last byte of a symbol of
 * two bytes or more holds BACK | start, so both neighbours of a symbol are found without lists. rank[p] is the
 * rank of merging the symbol at p with the next one. Above the ranks lie minima over groups of 16, of 256 ...:
 * the lowest rank and its leftmost position are found by one descent, and a change costs one climb. So a word
 * of n bytes costs O(n log n), and a short one (the usual case) is a scan of at most 16 ranks.
 *
 * bytes(result) = bytes(left) + bytes(right) for every merge, so no stale pair can equal a live one and this
 * order is that of Hugging Face's queue.
 */
#include "tokenizer/internal.h"

enum { GROUP_BITS = 4, GROUP = 1 << GROUP_BITS, MAX_LEVELS = 8 };
#define BACK 0x80000000u
#ifndef COUNT_STEP /* tests count the groups read */
#define COUNT_STEP() ((void)0)
#endif

typedef struct word_state {
  const slm2_tokenizer *t;
  uint32_t *symbol;
  uint32_t *level[MAX_LEVELS]; /* level[0] = ranks, level[i + 1][k] = min of group k of level[i] */
  uint32_t size[MAX_LEVELS];
  uint32_t levels;
} word_state;

/* Offset of the leftmost minimum of group k of a level. */
static uint32_t group_min(const word_state *w, uint32_t level, uint32_t k) {
  COUNT_STEP();
  const uint32_t *values = w->level[level];
  uint32_t first = k << GROUP_BITS, end = first + GROUP < w->size[level] ? first + GROUP : w->size[level], best = first;
  for (uint32_t i = first + 1; i < end; i++) {
    if (values[i] < values[best]) best = i;
  }
  return best;
}

static void set_rank(word_state *w, uint32_t at, uint32_t rank) {
  w->level[0][at] = rank;
  for (uint32_t level = 0; level + 1 < w->levels; level++) {
    at >>= GROUP_BITS;
    uint32_t least = w->level[level][group_min(w, level, at)];
    if (w->level[level + 1][at] == least) return;
    w->level[level + 1][at] = least;
  }
}

static uint32_t lowest(const word_state *w) {
  uint32_t at = 0;
  for (uint32_t level = w->levels; level-- > 0;) at = group_min(w, level, at);
  return at;
}

static uint32_t symbol_end(const word_state *w, uint32_t at) { return at + slm2_token_length(w->t, w->symbol[at]); }

static void start(word_state *w, const uint8_t *word, uint32_t n, uint32_t *scratch) {
  w->symbol = scratch;
  w->level[0] = scratch + n;
  w->size[0] = n;
  for (uint32_t i = 0; i < n; i++) w->symbol[i] = w->t->byte_id[word[i]];
  for (uint32_t i = 0; i + 1 < n; i++) w->level[0][i] = slm2_merge_rank(w->t, w->symbol[i], w->symbol[i + 1]);
  w->level[0][n - 1] = SLM2_NO_RANK;
  w->levels = 1;
  while (w->size[w->levels - 1] > GROUP) {
    uint32_t below = w->levels - 1, size = (w->size[below] + GROUP - 1) >> GROUP_BITS;
    w->level[w->levels] = w->level[below] + w->size[below];
    w->size[w->levels] = size;
    for (uint32_t k = 0; k < size; k++) w->level[w->levels][k] = w->level[below][group_min(w, below, k)];
    w->levels++;
  }
}

/* Merges the symbol at `at` with the next one. */
static void merge(word_state *w, uint32_t at, uint32_t n) {
  uint32_t next = symbol_end(w, at), end = symbol_end(w, next), result = slm2_merge_result(w->t, w->level[0][at]);
  w->symbol[at] = result;
  w->symbol[end - 1] = BACK | at;
  set_rank(w, next, SLM2_NO_RANK);
  set_rank(w, at, end < n ? slm2_merge_rank(w->t, result, w->symbol[end]) : SLM2_NO_RANK);
  if (at != 0) {
    uint32_t before = w->symbol[at - 1] & BACK ? w->symbol[at - 1] & ~BACK : at - 1;
    set_rank(w, before, slm2_merge_rank(w->t, w->symbol[before], result));
  }
}

size_t slm2_merge_word(const slm2_tokenizer *t, const uint8_t *word, size_t n, uint32_t *scratch, uint32_t *ids,
                       size_t capacity) {
  word_state w = {.t = t};
  start(&w, word, (uint32_t)n, scratch);
  for (;;) {
    uint32_t at = lowest(&w);
    if (w.level[0][at] == SLM2_NO_RANK) break;
    merge(&w, at, (uint32_t)n);
  }
  size_t count = 0;
  for (uint32_t at = 0; at < n; at = symbol_end(&w, at)) {
    if (count < capacity) ids[count] = w.symbol[at];
    count++;
  }
  return count;
}
