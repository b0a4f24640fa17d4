/* tokenizer/added.c: the added tokens: which ids they are, and where they stand in a text.
 *
 * Their texts are kept in byte order. A match walks the text and narrows the range of tokens that agree so far
 * by binary search, so a position costs at most (longest token) x log(tokens), however many share a beginning.
 */
#include "base/error.h"
#include "tokenizer/internal.h"

static uint32_t added_id(const slm2_tokenizer *t, uint32_t i) { return slm2_load_u32(t->added + 8 * (size_t)i); }

/* Text of the i-th added token in byte order. */
static const uint8_t *sorted_text(const slm2_tokenizer *t, uint32_t i, size_t *n) {
  return slm2_token_bytes(t, added_id(t, t->added_by_text[i]), n);
}

static int compare(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b) {
  int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
  return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

/* First place in the sorted order whose text is not below the given one. */
static uint32_t lower_bound(const slm2_tokenizer *t, uint32_t count, const uint8_t *text, size_t n) {
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    size_t n_mid;
    const uint8_t *p = sorted_text(t, mid, &n_mid);
    if (compare(p, n_mid, text, n) < 0) low = mid + 1;
    else high = mid;
  }
  return low;
}

slm2_status slm2_added_index(slm2_tokenizer *t, uint16_t *order, slm2_error *error) {
  memset(t->added_first, 0, sizeof t->added_first);
  for (uint32_t i = 0; i < t->n_added; i++) {
    size_t n, n_at;
    const uint8_t *text = slm2_token_bytes(t, added_id(t, i), &n);
    uint32_t at = lower_bound(t, i, text, n);
    if (at < i) {
      const uint8_t *other = sorted_text(t, at, &n_at);
      if (compare(text, n, other, n_at) == 0)
        return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", (const char *)text, n, SLM2_NO_OFFSET,
                           "added tokens %u and %u have the same text", (uint64_t)added_id(t, order[at]),
                           (uint64_t)added_id(t, i));
    }
    memmove(order + at + 1, order + at, (i - at) * sizeof *order);
    order[at] = (uint16_t)i;
    t->added_first[text[0] >> 5] |= UINT32_C(1) << (text[0] & 31);
  }
  return SLM2_OK;
}

/* Narrows [low, *high) to the tokens whose byte at depth is `byte`; all agree before it. A token that ends at
 * depth sorts first and counts as below every byte. */
static uint32_t narrow(const slm2_tokenizer *t, uint32_t low, uint32_t *high, size_t depth, uint8_t byte) {
  uint32_t bounds[2];
  for (int upper = 0; upper < 2; upper++) {
    uint32_t a = low, b = *high;
    while (a < b) {
      uint32_t mid = (a + b) / 2;
      size_t n;
      const uint8_t *p = sorted_text(t, mid, &n);
      if (n <= depth || p[depth] < byte || (upper && p[depth] == byte)) a = mid + 1;
      else b = mid;
    }
    bounds[upper] = a;
  }
  *high = bounds[1];
  return bounds[0];
}

uint32_t slm2_added_match(const slm2_tokenizer *t, const uint8_t *text, const uint8_t *mask, size_t n, size_t *length) {
  uint32_t low = 0, high = t->n_added, best = SLM2_NO_TOKEN;
  if ((t->added_first[text[0] >> 5] >> (text[0] & 31) & 1) == 0) return SLM2_NO_TOKEN;
  for (size_t depth = 0; depth < n && (mask == NULL || mask[depth] != 0); depth++) {
    low = narrow(t, low, &high, depth, text[depth]);
    if (low == high) break;
    size_t n_first;
    (void)sorted_text(t, low, &n_first);
    if (n_first != depth + 1) continue;
    best = added_id(t, t->added_by_text[low]);
    *length = n_first;
  }
  return best;
}

uint32_t slm2_token_find_added(const slm2_tokenizer *t, const char *text, size_t n) {
  uint32_t at = lower_bound(t, t->n_added, (const uint8_t *)text, n);
  if (at == t->n_added) return SLM2_NO_TOKEN;
  size_t n_at;
  const uint8_t *p = sorted_text(t, at, &n_at);
  return compare(p, n_at, (const uint8_t *)text, n) == 0 ? added_id(t, t->added_by_text[at]) : SLM2_NO_TOKEN;
}

/* Entry of an added id, or NULL. */
static const uint8_t *entry_of(const slm2_tokenizer *t, uint32_t id) {
  uint32_t low = 0, high = t->n_added;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    if (added_id(t, mid) < id) low = mid + 1;
    else high = mid;
  }
  return low < t->n_added && added_id(t, low) == id ? t->added + 8 * (size_t)low : NULL;
}

bool slm2_token_is_added(const slm2_tokenizer *t, uint32_t id) { return entry_of(t, id) != NULL; }

bool slm2_token_is_special(const slm2_tokenizer *t, uint32_t id) {
  const uint8_t *entry = entry_of(t, id);
  return entry != NULL && (slm2_load_u32(entry + 4) & SLM2_ADDED_SPECIAL) != 0;
}
