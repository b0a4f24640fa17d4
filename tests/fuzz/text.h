/* tests/fuzz/text.h: what must hold of any text under any tokenizer. */
#ifndef SLM2_TEST_FUZZ_TEXT_H
#define SLM2_TEST_FUZZ_TEXT_H

#include "base/utf8.h"
#include "slm2/tokenizer.h"
#include "tests/fuzz/fuzz.h"

/* malloc'ed ids. */
static inline uint32_t *fuzz_ids(const slm2_tokenizer *t, const uint8_t *text, size_t n, slm2_specials specials,
                                 const uint8_t *mask, size_t *n_ids) {
  slm2_error e = {0};
  size_t bytes;
  MUST(slm2_tokenize_scratch_bytes(n, &bytes) == SLM2_OK);
  void *scratch = fuzz_memory(bytes);
  uint32_t *ids = fuzz_memory((3 * n + 1) * sizeof *ids);
  MUST(slm2_tokenize(t, text, n, specials, mask, scratch, bytes, ids, 3 * n + 1, n_ids, &e) == SLM2_OK);
  for (size_t i = 0; i < *n_ids; i++) MUST(slm2_token_exists(t, ids[i]));
  if (*n_ids > 0) { /* one id too few is refused, and nothing is written behind */
    size_t none = 77;
    uint32_t *few = fuzz_memory((*n_ids - 1) * sizeof *few);
    MUST(slm2_tokenize(t, text, n, specials, mask, scratch, bytes, few, *n_ids - 1, &none, &e) == SLM2_E_MEMORY && none == 77);
    free(few);
  }
  free(scratch);
  return ids;
}

/* malloc'ed text of ids, piece by piece as an answer is shown. */
static inline uint8_t *fuzz_decode(const slm2_tokenizer *t, const uint32_t *ids, size_t n_ids, size_t *n_text) {
  size_t capacity = 16;
  for (size_t i = 0, n; i < n_ids; i++) {
    (void)slm2_token_bytes(t, ids[i], &n);
    capacity += SLM2_DECODE_MAX(n);
  }
  uint8_t *text = fuzz_memory(capacity);
  slm2_decoder d;
  slm2_decoder_init(&d);
  *n_text = 0;
  for (size_t i = 0; i < n_ids; i++) {
    size_t n;
    const uint8_t *bytes = slm2_token_bytes(t, ids[i], &n);
    *n_text += slm2_decoder_push(&d, bytes, n, text + *n_text);
    MUST(slm2_utf8_valid(text, *n_text));
  }
  *n_text += slm2_decoder_flush(&d, text + *n_text);
  MUST(slm2_utf8_valid(text, *n_text) && *n_text <= capacity);
  return text;
}

static inline void fuzz_text(const slm2_tokenizer *t, const uint8_t *text, size_t n) {
  size_t n_ids, n_again, n_text;
  uint32_t *ids = fuzz_ids(t, text, n, SLM2_SPECIALS_OFF, NULL, &n_ids);
  for (size_t i = 0; i < n_ids; i++) MUST(!slm2_token_is_added(t, ids[i]));
  /* The text of ids is normal and whole: its ids are the same. */
  uint8_t *back = fuzz_decode(t, ids, n_ids, &n_text);
  uint32_t *again = fuzz_ids(t, back, n_text, SLM2_SPECIALS_OFF, NULL, &n_again);
  MUST(n_again == n_ids && memcmp(ids, again, n_ids * sizeof *ids) == 0);
  free(again);
  /* A mask of zeros is OFF, a mask of ones ON. */
  uint8_t *mask = fuzz_memory(n);
  memset(mask, 0, n);
  again = fuzz_ids(t, text, n, SLM2_SPECIALS_MASKED, mask, &n_again);
  MUST(n_again == n_ids && memcmp(ids, again, n_ids * sizeof *ids) == 0);
  free(again);
  free(ids);
  memset(mask, 1, n);
  ids = fuzz_ids(t, text, n, SLM2_SPECIALS_ON, NULL, &n_ids);
  again = fuzz_ids(t, text, n, SLM2_SPECIALS_MASKED, mask, &n_again);
  MUST(n_again == n_ids && memcmp(ids, again, n_ids * sizeof *ids) == 0);
  free(again);
  free(ids);
  for (size_t i = 0; i < n; i++) mask[i] = text[i] & 1;
  free(fuzz_ids(t, text, n, SLM2_SPECIALS_MASKED, mask, &n_ids));
  free(mask);
  free(back);
}

#endif
