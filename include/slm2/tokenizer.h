/* slm2/tokenizer.h: text to ids and back, exactly as Hugging Face's tokenizer of Qwen3.
 *
 * Order: split on added tokens (leftmost-longest, on the text as given) -> NFC per
 * piece -> Qwen's pre-tokeniser -> bytes -> BPE merges by rank. Nothing recurses,
 * nothing is quadratic: one pass, and a heap for the merges of a long run.
 * Text is UTF-8; each maximal invalid part becomes U+FFFD first, never an error.
 */
#ifndef SLM2_TOKENIZER_H
#define SLM2_TOKENIZER_H

#include <stdbool.h>
#include "slm2/status.h"

SLM2_C_BEGIN

typedef struct slm2_tokenizer slm2_tokenizer; /* immutable; may be shared by threads */

#define SLM2_NO_TOKEN UINT32_MAX

/* Bytes of index memory that a tokenizer section (docs/FORMAT.md, "tokenizer") needs. */
SLM2_NODISCARD slm2_status slm2_tokenizer_bytes(const uint8_t *section, size_t n, size_t *bytes, slm2_error *error);
/* Validates the section and builds the indexes in mem (16-byte aligned). mem and section are kept. */
SLM2_NODISCARD slm2_status slm2_tokenizer_init(void *mem, size_t mem_bytes, const uint8_t *section, size_t n,
                                               slm2_tokenizer **out, slm2_error *error);

uint32_t slm2_tokenizer_size(const slm2_tokenizer *t); /* ids 0 .. size-1 may have a token; larger ids have none */
/* Bytes of one token; added tokens give their text. *n = 0 and NULL for an id without a token. */
const uint8_t *slm2_token_bytes(const slm2_tokenizer *t, uint32_t id, size_t *n);
bool slm2_token_exists(const slm2_tokenizer *t, uint32_t id);
bool slm2_token_is_added(const slm2_tokenizer *t, uint32_t id);   /* all added tokens, e.g. <think> too */
bool slm2_token_is_special(const slm2_tokenizer *t, uint32_t id); /* added with "special": true */
/* The added token whose text is exactly this, or SLM2_NO_TOKEN. */
uint32_t slm2_token_find_added(const slm2_tokenizer *t, const char *text, size_t n);

/* How added tokens in the text are treated. */
typedef enum slm2_specials {
  SLM2_SPECIALS_OFF = 0,    /* content: no added token can come out, whatever the text */
  SLM2_SPECIALS_ON = 1,     /* Hugging Face's behaviour on the whole text */
  SLM2_SPECIALS_MASKED = 2, /* an added token counts only where every byte of it has mask[i] != 0 */
} slm2_specials;

/* Scratch that slm2_tokenize needs for text of n bytes; SLM2_E_ARGUMENT when n is too large for size_t. */
SLM2_NODISCARD slm2_status slm2_tokenize_scratch_bytes(size_t n, size_t *bytes);
/* ids: capacity entries; 3n + 1 always suffice. Writes the ids and *n_ids; SLM2_E_MEMORY when they do
 * not fit (*n_ids unwritten). mask is NULL unless SLM2_SPECIALS_MASKED. scratch: 16-byte aligned. */
SLM2_NODISCARD slm2_status slm2_tokenize(const slm2_tokenizer *t, const uint8_t *text, size_t n, slm2_specials specials,
                                         const uint8_t *mask, void *scratch, size_t scratch_bytes,
                                         uint32_t *ids, size_t capacity, size_t *n_ids, slm2_error *error);

/* Streaming decoder: bytes of tokens to complete UTF-8, as Hugging Face's byte-level decode
 * (lossy: invalid parts become U+FFFD). Holds back at most 3 bytes. Plain data. */
typedef struct slm2_decoder {
  uint8_t held[4];
  uint32_t n_held;
} slm2_decoder;
void slm2_decoder_init(slm2_decoder *d);
/* Largest output of one push of n token bytes, and of a flush. */
#define SLM2_DECODE_MAX(n) (3u * (size_t)(n) + 12u)
/* Appends the bytes of one token; writes the text that is complete now. Returns bytes written. */
size_t slm2_decoder_push(slm2_decoder *d, const uint8_t *bytes, size_t n, uint8_t *out);
size_t slm2_decoder_flush(slm2_decoder *d, uint8_t *out); /* end of stream: an incomplete tail becomes U+FFFD */

SLM2_C_END

#endif
