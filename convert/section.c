/* convert/section.c: tokens and merges to the bytes of a tokenizer section. */
#include "convert/section.h"
#include "convert/text.h"
#include "base/error.h"
#include "base/utf8.h"
#include "slm2/format.h"
#include "tokenizer/section.h"

#define NO_TOKEN UINT32_MAX
#define ADDED (UINT32_C(1) << 31) /* in a slot */
#define MAX_MERGES (UINT32_C(1) << 24)

/* --- memory ----------------------------------------------------------------------------- */

slm2_status slm2_section_check(const char *what, uint64_t n_tokens, uint64_t n_merges, uint64_t n_added, slm2_error *error) {
  const struct {
    const char *key, *name;
    uint64_t n, limit;
  } counts[] = {{"vocab", "tokens", n_tokens, SLM2_MAX_VOCAB},
                {"added_tokens", "added tokens", n_added, SLM2_MAX_ADDED},
                {"merges", "merges", n_merges, MAX_MERGES}};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    if (counts[i].n <= counts[i].limit) continue;
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "tokenizer", counts[i].key, SLM2_NO_OFFSET,
                     "%s: %u %s; at most %u are possible", what, counts[i].n, counts[i].name, counts[i].limit);
  }
  return SLM2_OK;
}

/* Slots for n entries: a power of two, at most half full. */
static uint32_t slot_count(uint32_t n) {
  uint32_t slots = 16;
  while (slots < 2 * (uint64_t)n && slots < UINT32_C(1) << 31) slots *= 2;
  return slots;
}

void slm2_section_place(slm2_section_builder *b, uint32_t n_tokens, uint32_t n_merges, slm2_arena *arena) {
  b->slots = slm2_arena_take(arena, slot_count(n_tokens), sizeof *b->slots);
  b->pairs = slm2_arena_take(arena, slot_count(n_merges), sizeof *b->pairs);
  b->slot_mask = slot_count(n_tokens) - 1;
  b->pair_mask = slot_count(n_merges) - 1;
}

uint64_t slm2_section_capacity(uint64_t n_tokens, uint64_t n_merges, uint64_t n_added, uint64_t text_bytes) {
  return SLM2_TOKENIZER_HEAD_BYTES + 4 * n_tokens + 12 * n_merges + 8 * n_added + text_bytes;
}

void slm2_section_begin(slm2_section_builder *b, const char *what, const uint8_t sha256[32], uint32_t n_tokens,
                        uint32_t n_merges, uint32_t n_added, uint8_t *section) {
  b->what = what;
  b->n_tokens = n_tokens;
  b->n_merges = n_merges;
  b->n_added = n_added;
  b->id = b->rank = b->i_added = b->blob_bytes = 0;
  memset(b->slots, 0, ((size_t)b->slot_mask + 1) * sizeof *b->slots);
  memset(b->pairs, 0, ((size_t)b->pair_mask + 1) * sizeof *b->pairs);
  b->key[0] = slm2_load_u64(sha256);
  b->key[1] = slm2_load_u64(sha256 + 8);
  b->section = section;
  b->ends = section + SLM2_TOKENIZER_HEAD_BYTES;
  b->merges = b->ends + 4 * (size_t)n_tokens;
  b->added = b->merges + 12 * (size_t)n_merges;
  b->blob = b->added + 8 * (size_t)n_added;
}

/* --- hash tables ------------------------------------------------------------------------ */

/* The bijection of SplitMix64's output. */
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}
static uint64_t hash_bytes(const slm2_section_builder *b, const uint8_t *bytes, uint32_t n) {
  uint64_t h = b->key[0] + n;
  for (uint32_t i = 0; i < n; i += 8) {
    uint64_t word = 0;
    for (uint32_t k = 0; k < 8 && i + k < n; k++) word |= (uint64_t)bytes[i + k] << (8 * k);
    h = mix((h ^ word) + b->key[1]);
  }
  return h;
}

static const uint8_t *token_bytes(const slm2_section_builder *b, uint32_t id, uint32_t *n) {
  uint32_t begin = id == 0 ? 0 : slm2_load_u32(b->ends + 4 * (size_t)(id - 1));
  *n = slm2_load_u32(b->ends + 4 * (size_t)id) - begin;
  return b->blob + begin;
}
/* The slot where these bytes are, or would be. */
static uint32_t *token_slot(const slm2_section_builder *b, const uint8_t *bytes, uint32_t n) {
  uint32_t at = (uint32_t)hash_bytes(b, bytes, n) & b->slot_mask;
  for (; b->slots[at] != 0; at = (at + 1) & b->slot_mask) {
    uint32_t n_found;
    const uint8_t *found = token_bytes(b, (b->slots[at] & ~ADDED) - 1, &n_found);
    if (n_found == n && memcmp(found, bytes, n) == 0) break;
  }
  return &b->slots[at];
}
/* Added tokens do not count. */
static uint32_t find_token(const slm2_section_builder *b, const uint8_t *bytes, uint32_t n) {
  uint32_t slot = *token_slot(b, bytes, n);
  return slot == 0 || (slot & ADDED) != 0 ? NO_TOKEN : slot - 1;
}

/* Enters row `rank` of the merges; false when its pair is there already. */
static bool add_pair(const slm2_section_builder *b, uint32_t rank) {
  const uint8_t *row = b->merges + 12 * (size_t)rank;
  uint64_t pair = slm2_load_u64(row);
  uint32_t at = (uint32_t)mix((pair ^ b->key[0]) + b->key[1]) & b->pair_mask;
  for (; b->pairs[at] != 0; at = (at + 1) & b->pair_mask) {
    if (slm2_load_u64(b->merges + 12 * (size_t)(b->pairs[at] - 1)) == pair) return false;
  }
  b->pairs[at] = rank + 1;
  return true;
}

/* --- GPT-2's symbols ---------------------------------------------------------------------- */

/* The byte a symbol stands for, or -1: 21..7E, A1..AC, AE..FF are themselves, U+0100 + i is the i-th other byte. */
static int symbol_byte(uint32_t cp) {
  if ((cp >= 0x21 && cp <= 0x7e) || (cp >= 0xa1 && cp <= 0xff && cp != 0xad)) return (int)cp;
  if (cp < 0x100 || cp > 0x143) return -1;
  uint32_t i = cp - 0x100;
  return (int)(i <= 0x20 ? i : i <= 0x42 ? i - 0x21 + 0x7f : 0xad);
}
uint32_t slm2_byte_symbol(uint8_t byte) {
  if (symbol_byte(byte) == byte) return byte;
  return 0x100u + (byte <= 0x20u ? byte : byte == 0xadu ? 0x43u : byte - 0x7fu + 0x21u);
}
/* Bytes of symbols; false when one is no symbol or there are more than SLM2_MAX_TOKEN_BYTES. */
static bool symbols_to_bytes(const char *s, size_t n, uint8_t *out, uint32_t *n_out) {
  uint32_t count = 0;
  for (size_t i = 0; i < n;) {
    uint32_t cp = (uint8_t)s[i];
    bool valid = true;
    i += cp < 0x80 ? 1 : slm2_utf8_next((const uint8_t *)s + i, n - i, &cp, &valid);
    int byte = symbol_byte(cp);
    if (byte < 0 || count == SLM2_MAX_TOKEN_BYTES) return false;
    out[count++] = (uint8_t)byte;
  }
  *n_out = count;
  return true;
}

/* --- tokens --------------------------------------------------------------------------------- */

static slm2_status refuse_token(const slm2_section_builder *b, const slm2_section_text *t, const char *fmt, uint64_t i,
                                uint64_t k, slm2_error *error) {
  return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", t->name, t->n_name, t->at, fmt, b->what, i, k);
}

/* Valid UTF-8 without U+FFFD, which stands for invalid input. */
static bool good_added(const char *text, size_t n) {
  bool good = n > 0 && n <= SLM2_MAX_TOKEN_BYTES && slm2_utf8_valid((const uint8_t *)text, n);
  for (size_t i = 0; i + 3 <= n; i++) good = good && memcmp(text + i, "\xef\xbf\xbd", 3) != 0;
  return good;
}

slm2_status slm2_section_token(slm2_section_builder *b, slm2_token_kind kind, const slm2_section_text *t, slm2_error *error) {
  uint8_t *out = b->blob + b->blob_bytes;
  uint32_t id = b->id, n = 0;
  if (kind == SLM2_TOKEN_NORMAL && (!symbols_to_bytes(t->text, t->n, out, &n) || n == 0)) {
    return refuse_token(b, t, "%s: token %u is empty, longer than %u bytes, or no text of byte symbols", id,
                        SLM2_MAX_TOKEN_BYTES, error);
  }
  if (kind == SLM2_TOKEN_ADDED || kind == SLM2_TOKEN_SPECIAL) {
    if (!good_added(t->text, t->n)) {
      return refuse_token(b, t, "%s: added token %u is empty, longer than %u bytes, no UTF-8, or holds U+FFFD", id,
                          SLM2_MAX_TOKEN_BYTES, error);
    }
    memcpy(out, t->text, t->n);
    n = (uint32_t)t->n;
    slm2_store_u32(b->added + 8 * (size_t)b->i_added, id);
    slm2_store_u32(b->added + 8 * (size_t)b->i_added++ + 4, kind == SLM2_TOKEN_SPECIAL ? SLM2_ADDED_SPECIAL : 0);
  }
  b->blob_bytes += n;
  slm2_store_u32(b->ends + 4 * (size_t)id, b->blob_bytes);
  b->id++;
  if (kind == SLM2_TOKEN_ABSENT) return SLM2_OK;
  uint32_t *slot = token_slot(b, out, n);
  if (*slot != 0) return refuse_token(b, t, "%s: tokens %u and %u are the same bytes", (*slot & ~ADDED) - 1, id, error);
  *slot = (id + 1) | (kind == SLM2_TOKEN_NORMAL ? 0 : ADDED);
  return SLM2_OK;
}

slm2_status slm2_section_tokens_end(slm2_section_builder *b, slm2_error *error) {
  for (uint32_t value = 0; value < 256; value++) {
    uint8_t byte = (uint8_t)value;
    if (find_token(b, &byte, 1) != NO_TOKEN) continue;
    return slm2_fail(error, SLM2_E_FORMAT, "tokenizer", "vocab", SLM2_NO_OFFSET, "%s: no token is the byte 0x%x", b->what,
                     (uint64_t)value);
  }
  return SLM2_OK;
}

/* --- merges --------------------------------------------------------------------------------- */

static slm2_status refuse_merge(const slm2_section_builder *b, uint64_t at, const char *fmt, slm2_error *error) {
  return slm2_fail(error, SLM2_E_FORMAT, "tokenizer", "merges", at, fmt, b->what, (uint64_t)b->rank);
}

slm2_status slm2_section_merge(slm2_section_builder *b, const char *left, size_t n_left, const char *right, size_t n_right,
                               uint64_t at, slm2_error *error) {
  uint8_t bytes[2 * SLM2_MAX_TOKEN_BYTES], *row = b->merges + 12 * (size_t)b->rank;
  uint32_t n = 0;
  for (uint32_t side = 0; side < 2; side++) {
    const char *s = side == 0 ? left : right;
    size_t n_s = side == 0 ? n_left : n_right;
    uint32_t n_side = 0;
    if (n_s == 0 || !symbols_to_bytes(s, n_s, bytes + n, &n_side)) {
      return refuse_merge(b, at, "%s: merge %u is not two texts of byte symbols", error);
    }
    uint32_t id = find_token(b, bytes + n, n_side);
    if (id == NO_TOKEN) {
      return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", s, n_s, at, "%s: merge %u joins what is no token of the vocabulary",
                         b->what, (uint64_t)b->rank);
    }
    slm2_store_u32(row + 4 * (size_t)side, id);
    n += n_side;
  }
  uint32_t result = find_token(b, bytes, n);
  if (result == NO_TOKEN) return refuse_merge(b, at, "%s: the result of merge %u is no token of the vocabulary", error);
  slm2_store_u32(row + 8, result);
  if (!add_pair(b, b->rank)) return refuse_merge(b, at, "%s: merge %u joins a pair that an earlier one joins", error);
  b->rank++;
  return SLM2_OK;
}

slm2_status slm2_section_merge_line(slm2_section_builder *b, const char *line, size_t n, uint64_t at, slm2_error *error) {
  size_t space = 0;
  while (space < n && line[space] != ' ') space++;
  if (space == n) return refuse_merge(b, at, "%s: merge %u is not two texts of byte symbols", error);
  return slm2_section_merge(b, line, space, line + space + 1, n - space - 1, at, error);
}

size_t slm2_section_end(slm2_section_builder *b) {
  const uint32_t head[8] = {
      SLM2_TOKENIZER_MAGIC, SLM2_PRETOKENIZER_QWEN2, b->n_tokens, b->n_merges, b->n_added, b->blob_bytes, 0, 0};
  for (size_t i = 0; i < 8; i++) slm2_store_u32(b->section + 4 * i, head[i]);
  return (size_t)(b->blob - b->section) + b->blob_bytes;
}
