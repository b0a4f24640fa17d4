/* tokenizer/internal.h: the parts of the tokenizer, in the order text passes them. Each is one file:
 * tokenize.c drives; nfc.c, pretokenize.c and merge.c are its stages; tokenizer.c validates and indexes.
 */
#ifndef SLM2_TOKENIZER_INTERNAL_H
#define SLM2_TOKENIZER_INTERNAL_H

#include "base/bytes.h"
#include "slm2/tokenizer.h"
#include "tokenizer/section.h"

#define SLM2_NO_RANK UINT32_MAX
/* Positions and tagged positions of merge.c are 31 bits, and text may grow threefold before it gets there. */
#define SLM2_TEXT_MAX (UINT32_C(1) << 29)

/* Pointers into the section are to little-endian, unaligned integers. */
struct slm2_tokenizer {
  const uint8_t *ends;   /* u32[n_tokens] */
  const uint8_t *merges; /* u32[n_merges][3] */
  const uint8_t *added;  /* u32[n_added][2] */
  const uint8_t *blob;
  const uint32_t *slots; /* open addressing; 0 = free, else hash tag above row_bits, rank + 1 below */
  const uint16_t *added_by_text; /* indexes into added, ascending by bytes */
  uint32_t n_tokens, n_merges, n_added;
  uint32_t slot_bits, row_bits;
  uint32_t byte_id[256];
  uint32_t added_first[8]; /* bit per byte that begins some added token */
};

static inline uint32_t slm2_token_at(const slm2_tokenizer *t, uint32_t id) {
  return id == 0 ? 0 : slm2_load_u32(t->ends + 4 * ((size_t)id - 1));
}
static inline uint32_t slm2_token_length(const slm2_tokenizer *t, uint32_t id) {
  return slm2_load_u32(t->ends + 4 * (size_t)id) - slm2_token_at(t, id);
}

/* --- tokenizer.c: the merge table -------------------------------------------- */

static inline uint64_t slm2_pair_hash(uint32_t left, uint32_t right) {
  uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
  return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u; /* the top bits are used */
}
/* Rank of the merge of two tokens, or SLM2_NO_RANK. */
static inline uint32_t slm2_merge_rank(const slm2_tokenizer *t, uint32_t left, uint32_t right) {
  uint64_t hash = slm2_pair_hash(left, right);
  uint32_t tag = (uint32_t)hash >> t->row_bits, mask = (UINT32_C(1) << t->slot_bits) - 1;
  for (uint32_t at = (uint32_t)(hash >> (64 - t->slot_bits));; at = (at + 1) & mask) {
    uint32_t slot = t->slots[at];
    if (slot == 0) return SLM2_NO_RANK;
    if (slot >> t->row_bits != tag) continue;
    uint32_t rank = (slot & ((UINT32_C(1) << t->row_bits) - 1)) - 1;
    const uint8_t *row = t->merges + 12 * (size_t)rank;
    if (slm2_load_u32(row) == left && slm2_load_u32(row + 4) == right) return rank;
  }
}
static inline uint32_t slm2_merge_result(const slm2_tokenizer *t, uint32_t rank) {
  return slm2_load_u32(t->merges + 12 * (size_t)rank + 8);
}

/* --- added.c ----------------------------------------------------------------- */

/* Sorts the checked added tokens by text into order (t->added_by_text); refuses two of the same text. */
SLM2_NODISCARD slm2_status slm2_added_index(slm2_tokenizer *t, uint16_t *order, slm2_error *error);
/* Longest added token that text begins with (n >= 1; with a mask only over bytes that have
 * mask[i] != 0), or SLM2_NO_TOKEN. */
uint32_t slm2_added_match(const slm2_tokenizer *t, const uint8_t *text, const uint8_t *mask, size_t n, size_t *length);

/* --- nfc.c ------------------------------------------------------------------- */

/* u32 of scratch for n bytes: two arrays of the most characters that n bytes can decompose to. */
#define SLM2_NFC_SCRATCH(n) (3 * (n))
/* NFC of text, each maximal invalid part read as U+FFFD. Returns text itself when nothing changes, else out (capacity 3n). */
const uint8_t *slm2_nfc(const uint8_t *text, size_t n, uint8_t *out, uint32_t *scratch, size_t *n_out);

/* --- pretokenize.c ------------------------------------------------------------ */

/* End of the pre-token that starts at text[at], at < n. text is valid UTF-8. */
size_t slm2_pretoken_end(const uint8_t *text, size_t n, size_t at);

/* --- merge.c ----------------------------------------------------------------- */

/* u32 of scratch for a word of n bytes: symbols, ranks, and minima over groups of 16, 256 ... ranks. */
#define SLM2_MERGE_SCRATCH(n) (2 * (n) + (n) / 15 + 16)
/* BPE of one pre-token: merges of the lowest rank first, the leftmost of equals. Writes at most capacity ids
 * and returns how many there are. */
size_t slm2_merge_word(const slm2_tokenizer *t, const uint8_t *word, size_t n, uint32_t *scratch, uint32_t *ids, size_t capacity);

#endif
