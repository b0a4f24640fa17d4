/* tokenizer/tokenizer.c: a tokenizer section (tokenizer/section.h) checked once, indexed, and looked up.
 *
 * Any bytes may come. After slm2_tokenizer_init every id, length and offset in the section is known to be in
 * range, and everything else of the tokenizer reads it without checks.
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/internal.h"

static const char operation[] = "tokenizer";

/* Longest probe the merge table accepts. At most half of it is filled, so honest vocabularies stay far below
 * (a longer run has a chance of less than 2^-200); a file made to collide is refused instead of being slow. */
enum { MAX_PROBES = 1024 };

static slm2_status refuse(slm2_error *error, slm2_status code, const char *name, uint64_t at, const char *fmt, uint64_t a,
                          uint64_t b, uint64_t c) {
  return slm2_fail(error, code, operation, name, at, fmt, a, b, c);
}

static slm2_status malformed(slm2_error *error, const char *array, uint64_t at, const char *fmt, uint64_t a, uint64_t b,
                             uint64_t c) {
  return refuse(error, SLM2_E_FORMAT, array, at, fmt, a, b, c);
}

/* Finds the arrays: head, counts and total size. */
static slm2_status read_layout(slm2_tokenizer *t, const uint8_t *section, size_t n, slm2_error *error) {
  slm2_cursor c = slm2_cursor_of(section, n);
  uint32_t head[SLM2_TOKENIZER_HEAD_BYTES / 4];
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
    if (!slm2_take_u32(&c, &head[i]))
      return malformed(error, "", n, "the section has %u bytes, its head alone needs %u", n,
                    SLM2_TOKENIZER_HEAD_BYTES, 0);
  }
  if (head[0] != SLM2_TOKENIZER_MAGIC)
    return malformed(error, "magic", 0, "magic is 0x%x, not 0x%x", head[0], SLM2_TOKENIZER_MAGIC, 0);
  if (head[1] != SLM2_PRETOKENIZER_QWEN2)
    return refuse(error, SLM2_E_UNSUPPORTED, "pretokenizer", 4, "pre-tokenizer %u is unknown; this build has %u (qwen2)", head[1],
                  SLM2_PRETOKENIZER_QWEN2, 0);
  if (head[6] != 0 || head[7] != 0)
    return malformed(error, "reserved", 24, "reserved words are %u and %u, not 0", head[6], head[7], 0);
  t->n_tokens = head[2];
  t->n_merges = head[3];
  t->n_added = head[4];
  if (t->n_tokens < 256)
    return malformed(error, "n_tokens", 8, "%u tokens cannot hold the 256 bytes", t->n_tokens, 0, 0);
  if (t->n_added > SLM2_MAX_ADDED)
    return malformed(error, "n_added", 16, "%u added tokens; at most %u are possible", t->n_added, SLM2_MAX_ADDED, 0);
  uint64_t need =
      SLM2_TOKENIZER_HEAD_BYTES + 4 * (uint64_t)t->n_tokens + 12 * (uint64_t)t->n_merges + 8 * (uint64_t)t->n_added + head[5];
  if (need != n) return malformed(error, "", n, "the section has %u bytes, its counts need %u", n, need, 0);
  if (!slm2_take(&c, 4 * (size_t)t->n_tokens, &t->ends) || !slm2_take(&c, 12 * (size_t)t->n_merges, &t->merges) ||
      !slm2_take(&c, 8 * (size_t)t->n_added, &t->added) || !slm2_take(&c, head[5], &t->blob))
    return refuse(error, SLM2_E_INTERNAL_INVARIANT, "", n, "sizes of %u bytes do not add up", n, 0, 0);
  while (t->row_bits < 32 && t->n_merges >> t->row_bits != 0) t->row_bits++;
  t->row_bits += t->row_bits == 0;
  t->slot_bits = t->row_bits + 1; /* filled to between a quarter and a half */
  return SLM2_OK;
}

static void place(slm2_arena *a, const slm2_tokenizer *t, slm2_tokenizer **object, uint32_t **slots, uint16_t **order) {
  *object = slm2_arena_take(a, 1, sizeof **object);
  *slots = slm2_arena_take(a, UINT64_C(1) << t->slot_bits, sizeof **slots);
  *order = slm2_arena_take(a, t->n_added, sizeof **order);
}

slm2_status slm2_tokenizer_bytes(const uint8_t *section, size_t n, size_t *bytes, slm2_error *error) {
  if ((section == NULL && n != 0) || bytes == NULL)
    return refuse(error, SLM2_E_ARGUMENT, "", SLM2_NO_OFFSET, "a required pointer is NULL", 0, 0, 0);
  slm2_tokenizer t = {0}, *object;
  SLM2_TRY(read_layout(&t, section, n, error));
  slm2_arena a;
  slm2_arena_init(&a, NULL, 0);
  uint32_t *slots;
  uint16_t *order;
  place(&a, &t, &object, &slots, &order);
  if (a.failed || a.used > SIZE_MAX)
    return refuse(error, SLM2_E_MEMORY, "", SLM2_NO_OFFSET, "an index of %u bytes is too large for this machine", a.used, 0, 0);
  *bytes = (size_t)a.used;
  return SLM2_OK;
}

/* --- checks -------------------------------------------------------------------- */

/* Offset of an array element, for messages. */
static uint64_t offset_of(const slm2_tokenizer *t, const uint8_t *element) {
  return (uint64_t)(element - t->ends) + SLM2_TOKENIZER_HEAD_BYTES;
}

static slm2_status check_tokens(const slm2_tokenizer *t, size_t blob_bytes, slm2_error *error) {
  uint32_t start = 0;
  for (uint32_t id = 0; id < t->n_tokens; id++) {
    const uint8_t *at = t->ends + 4 * (size_t)id;
    uint32_t end = slm2_load_u32(at);
    if (end < start)
      return malformed(error, "ends", offset_of(t, at), "token %u ends at byte %u, before it begins (%u)", id, end,
                    start);
    if (end > blob_bytes)
      return malformed(error, "ends", offset_of(t, at), "token %u ends at byte %u of %u", id, end, blob_bytes);
    if (end - start > SLM2_MAX_TOKEN_BYTES)
      return malformed(error, "ends", offset_of(t, at), "token %u has %u bytes; at most %u are possible", id,
                    end - start, SLM2_MAX_TOKEN_BYTES);
    if (id == t->n_tokens - 1 && (end != blob_bytes || end == start))
      return malformed(error, "ends", offset_of(t, at), "the last token %u ends at byte %u of %u or is empty", id,
                    end, blob_bytes);
    start = end;
  }
  return SLM2_OK;
}

static slm2_status check_added(slm2_tokenizer *t, slm2_error *error) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < t->n_added; i++) {
    const uint8_t *at = t->added + 8 * (size_t)i;
    uint32_t id = slm2_load_u32(at), flags = slm2_load_u32(at + 4);
    if (id < least)
      return malformed(error, "added", offset_of(t, at), "added token %u has id %u; ids must ascend from %u", i, id,
                    least);
    if (!slm2_token_exists(t, id))
      return malformed(error, "added", offset_of(t, at), "added token %u has id %u, which has no text", i, id, 0);
    if ((flags & ~SLM2_ADDED_SPECIAL) != 0)
      return malformed(error, "added", offset_of(t, at) + 4, "added token %u has unknown flags 0x%x", i, flags, 0);
    size_t n, replaced = 0;
    const uint8_t *text = slm2_token_bytes(t, id, &n);
    for (size_t j = 0; j + 3 <= n; j++) replaced |= memcmp(text + j, "\xef\xbf\xbd", 3) == 0;
    if (!slm2_utf8_valid(text, n) || replaced)
      return malformed(error, "added", offset_of(t, at), "added token %u (id %u) is not valid UTF-8 without U+FFFD",
                    i, id, 0);
    least = id + 1;
  }
  return SLM2_OK;
}

static slm2_status index_bytes(slm2_tokenizer *t, slm2_error *error) {
  for (uint32_t b = 0; b < 256; b++) t->byte_id[b] = SLM2_NO_TOKEN;
  for (uint32_t id = 0; id < t->n_tokens; id++) {
    size_t n;
    const uint8_t *text = slm2_token_bytes(t, id, &n);
    if (n != 1 || slm2_token_is_added(t, id)) continue;
    if (t->byte_id[*text] != SLM2_NO_TOKEN)
      return malformed(error, "blob", SLM2_NO_OFFSET, "tokens %u and %u are both the byte 0x%x", t->byte_id[*text],
                    id, *text);
    t->byte_id[*text] = id;
  }
  for (uint32_t b = 0; b < 256; b++) {
    if (t->byte_id[b] == SLM2_NO_TOKEN)
      return malformed(error, "blob", SLM2_NO_OFFSET, "no token is the byte 0x%x", b, 0, 0);
  }
  return SLM2_OK;
}

static slm2_status check_merge(const slm2_tokenizer *t, uint32_t rank, const uint8_t *row, slm2_error *error) {
  const uint8_t *text[3];
  size_t n[3];
  for (uint32_t i = 0; i < 3; i++) {
    uint32_t id = slm2_load_u32(row + 4 * i);
    text[i] = slm2_token_bytes(t, id, &n[i]);
    if (n[i] == 0)
      return malformed(error, "merges", offset_of(t, row) + 4 * i,
                    "merge %u names id %u, which has no token (%u ids)", rank, id, t->n_tokens);
    if (slm2_token_is_added(t, id))
      return malformed(error, "merges", offset_of(t, row) + 4 * i, "merge %u names id %u, an added token", rank, id,
                    0);
  }
  if (n[2] != n[0] + n[1] || memcmp(text[2], text[0], n[0]) != 0 || memcmp(text[2] + n[0], text[1], n[1]) != 0)
    return malformed(error, "merges", offset_of(t, row), "merge %u: token %u is not its two parts joined", rank,
                  slm2_load_u32(row + 8), 0);
  return SLM2_OK;
}

static slm2_status index_merges(const slm2_tokenizer *t, uint32_t *slots, slm2_error *error) {
  uint32_t mask = (UINT32_C(1) << t->slot_bits) - 1;
  memset(slots, 0, ((size_t)mask + 1) * sizeof *slots);
  for (uint32_t rank = 0; rank < t->n_merges; rank++) {
    const uint8_t *row = t->merges + 12 * (size_t)rank;
    SLM2_TRY(check_merge(t, rank, row, error));
    uint32_t left = slm2_load_u32(row), right = slm2_load_u32(row + 4), probes = 0;
    uint32_t earlier = slm2_merge_rank(t, left, right);
    if (earlier != SLM2_NO_RANK)
      return malformed(error, "merges", offset_of(t, row), "merges %u and %u are the same pair", earlier, rank, 0);
    uint64_t hash = slm2_pair_hash(left, right);
    uint32_t at = (uint32_t)(hash >> (64 - t->slot_bits));
    for (; slots[at] != 0; at = (at + 1) & mask) {
      if (++probes > MAX_PROBES)
        return malformed(error, "merges", offset_of(t, row), "merge %u collides with more than %u others", rank,
                      MAX_PROBES, 0);
    }
    slots[at] = ((uint32_t)hash >> t->row_bits) << t->row_bits | (rank + 1);
  }
  return SLM2_OK;
}

slm2_status slm2_tokenizer_init(void *mem, size_t mem_bytes, const uint8_t *section, size_t n, slm2_tokenizer **out,
                                slm2_error *error) {
  if (mem == NULL || (uintptr_t)mem % 16 != 0 || (section == NULL && n != 0) || out == NULL)
    return refuse(error, SLM2_E_ARGUMENT, "", SLM2_NO_OFFSET, "a required pointer is NULL or not 16-byte aligned", 0, 0, 0);
  slm2_tokenizer found = {0}, *t;
  size_t need;
  SLM2_TRY(slm2_tokenizer_bytes(section, n, &need, error));
  if (mem_bytes < need)
    return refuse(error, SLM2_E_MEMORY, "", SLM2_NO_OFFSET, "the index needs %u bytes, %u were lent", need, mem_bytes, 0);
  SLM2_TRY(read_layout(&found, section, n, error));
  slm2_arena a;
  slm2_arena_init(&a, mem, mem_bytes);
  uint32_t *slots;
  uint16_t *order;
  place(&a, &found, &t, &slots, &order);
  *t = found;
  t->slots = slots;
  t->added_by_text = order;
  SLM2_TRY(check_tokens(t, slm2_load_u32(section + 20), error));
  SLM2_TRY(check_added(t, error));
  SLM2_TRY(slm2_added_index(t, order, error));
  SLM2_TRY(index_bytes(t, error));
  SLM2_TRY(index_merges(t, slots, error));
  *out = t;
  return SLM2_OK;
}

/* --- look-ups ------------------------------------------------------------------ */

uint32_t slm2_tokenizer_size(const slm2_tokenizer *t) { return t->n_tokens; }

const uint8_t *slm2_token_bytes(const slm2_tokenizer *t, uint32_t id, size_t *n) {
  *n = id < t->n_tokens ? slm2_token_length(t, id) : 0;
  return *n == 0 ? NULL : t->blob + slm2_token_at(t, id);
}

bool slm2_token_exists(const slm2_tokenizer *t, uint32_t id) {
  size_t n;
  return slm2_token_bytes(t, id, &n) != NULL;
}
