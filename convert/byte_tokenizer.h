/* convert/byte_tokenizer.h: the smallest tokenizer every command works with, and a look into any tokenizer section.
 * Internal to convert/. */
#ifndef SLM2_CONVERT_BYTE_TOKENIZER_H
#define SLM2_CONVERT_BYTE_TOKENIZER_H

#include <stdbool.h>
#include "slm2/status.h"

#define SLM2_BYTE_TOKENIZER_TOKENS 282u /* 256 bytes in the order of Qwen3's ids, then Qwen3's 26 added tokens */
#define SLM2_BYTE_TOKENIZER_MAX 2048u   /* bytes of its section */

/* Writes the section; returns its size. */
size_t slm2_byte_tokenizer(uint8_t section[SLM2_BYTE_TOKENIZER_MAX]);
/* The id of the added token with this text of n bytes, or UINT32_MAX; special may be NULL. The section was checked by
 * slm2_tokenizer_section_tokens. */
uint32_t slm2_section_added_id(const uint8_t *section, const char *text, size_t n, bool *special);

#endif
