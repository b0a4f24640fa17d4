/* tokenizer/tokenize.c: text to ids. The text is cut at added tokens; each piece between them is normalised,
 * split into pre-tokens and merged. One lent block holds the normalised piece and, one after the other, the
 * work of the two stages.
 */
#include "base/checked.h"
#include "base/error.h"
#include "tokenizer/internal.h"

typedef struct output {
  uint32_t *ids;
  size_t count, capacity;
} output;

/* n raw bytes may become 3n normalised ones; the words of one stage are those of the larger. */
static uint64_t stage_words(uint64_t n) {
  uint64_t nfc = SLM2_NFC_SCRATCH(n), merge = SLM2_MERGE_SCRATCH(3 * n);
  return nfc > merge ? nfc : merge;
}

static slm2_status scratch_bytes(size_t n, size_t *bytes, slm2_error *error) {
  if (n <= SLM2_TEXT_MAX && slm2_to_size(4 * stage_words(n) + 3 * (uint64_t)n, bytes)) return SLM2_OK;
  return slm2_fail(error, SLM2_E_ARGUMENT, "tokenize", "text", SLM2_NO_OFFSET, "a text of %u bytes is too long for this machine",
                   (uint64_t)n);
}

slm2_status slm2_tokenize_scratch_bytes(size_t n, size_t *bytes) {
  return bytes == NULL ? SLM2_E_ARGUMENT : scratch_bytes(n, bytes, NULL);
}

static void put_piece(const slm2_tokenizer *t, const uint8_t *piece, size_t n, uint32_t *words, uint8_t *normal, output *out) {
  size_t n_text;
  const uint8_t *text = slm2_nfc(piece, n, normal, words, &n_text);
  for (size_t at = 0; at < n_text;) {
    size_t end = slm2_pretoken_end(text, n_text, at), room = out->count < out->capacity ? out->capacity - out->count : 0;
    out->count += slm2_merge_word(t, text + at, end - at, words, room == 0 ? NULL : out->ids + out->count, room);
    at = end;
  }
}

slm2_status slm2_tokenize(const slm2_tokenizer *t, const uint8_t *text, size_t n, slm2_specials specials, const uint8_t *mask,
                          void *scratch, size_t lent_bytes, uint32_t *ids, size_t capacity, size_t *n_ids, slm2_error *error) {
  if (t == NULL || (text == NULL && n != 0) || (scratch == NULL && n != 0) || (uintptr_t)scratch % 16 != 0 ||
      (ids == NULL && capacity != 0) || n_ids == NULL)
    return slm2_fail(error, SLM2_E_ARGUMENT, "tokenize", NULL, SLM2_NO_OFFSET, "a required pointer is NULL or not aligned");
  if (specials != SLM2_SPECIALS_OFF && specials != SLM2_SPECIALS_ON && specials != SLM2_SPECIALS_MASKED)
    return slm2_fail(error, SLM2_E_ARGUMENT, "tokenize", "specials", SLM2_NO_OFFSET, "mode %u is none of 0, 1, 2",
                     (uint64_t)specials);
  if ((specials == SLM2_SPECIALS_MASKED) != (mask != NULL) && n != 0)
    return slm2_fail(error, SLM2_E_ARGUMENT, "tokenize", "mask", SLM2_NO_OFFSET,
                     "a mask belongs to masked mode, and masked mode needs one");
  if (n == 0) {
    *n_ids = 0;
    return SLM2_OK;
  }
  size_t need = 0;
  SLM2_TRY(scratch_bytes(n, &need, error));
  if (lent_bytes < need)
    return slm2_fail(error, SLM2_E_MEMORY, "tokenize", "scratch", SLM2_NO_OFFSET,
                     "%u bytes of text need %u of scratch, %u were lent", (uint64_t)n, (uint64_t)need, (uint64_t)lent_bytes);
  uint32_t *words = scratch;
  uint8_t *normal = (uint8_t *)scratch + 4 * (size_t)stage_words(n);
  output out = {ids, 0, capacity};
  size_t piece = 0, length = 0;
  for (size_t at = 0; at < n && specials != SLM2_SPECIALS_OFF;) {
    uint32_t id = slm2_added_match(t, text + at, mask == NULL ? NULL : mask + at, n - at, &length);
    if (id == SLM2_NO_TOKEN) {
      at++;
      continue;
    }
    put_piece(t, text + piece, at - piece, words, normal, &out);
    if (out.count < capacity) ids[out.count] = id;
    out.count++;
    at = piece = at + length;
  }
  put_piece(t, text + piece, n - piece, words, normal, &out);
  if (out.count > capacity)
    return slm2_fail(error, SLM2_E_MEMORY, "tokenize", "ids", SLM2_NO_OFFSET, "%u ids do not fit in %u", (uint64_t)out.count,
                     (uint64_t)capacity);
  *n_ids = out.count;
  return SLM2_OK;
}
