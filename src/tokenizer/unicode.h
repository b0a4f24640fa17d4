/* tokenizer/unicode.h: what the tokenizer knows of Unicode: three character classes and NFC.
 *
 * The tables are those of Hugging Face's engine, not of one Unicode release: its \p{L}, \p{N}, \s are
 * Unicode 16, its normalisation stops at Unicode 9. tools/gen_unicode.py makes unicode_tables.c from
 * tests/data/tokenizer/hf_regex_classes.json and hf_nfc.json, which record the engine's answers.
 */
#ifndef SLM2_TOKENIZER_UNICODE_H
#define SLM2_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLM2_CLASS_OTHER = 0, SLM2_CLASS_LETTER = 1, SLM2_CLASS_NUMBER = 2, SLM2_CLASS_SPACE = 3 };

/* Two-stage table of one byte per code point, the "kind": its low two bits are the class; kinds 0..3 are
 * plain: combining class 0, NFC leaves the character alone, and nothing before it can compose with it. */
#define SLM2_UNICODE_BLOCK_BITS 7u
extern const uint8_t slm2_unicode_blocks[0x110000 >> SLM2_UNICODE_BLOCK_BITS];
extern const uint8_t slm2_unicode_kinds[];
/* By kind: bits 0..7 the canonical combining class, and: */
#define SLM2_NFC_BOUNDARY 0x100u /* text may be cut before it: normalising both parts is normalising the whole */
#define SLM2_NFC_SAME 0x200u     /* alone, NFC leaves it as it is */
extern const uint16_t slm2_unicode_nfc[];

/* Characters with a canonical decomposition (Hangul is arithmetic), ascending. Number i decomposes fully into
 * slm2_unicode_decomposed[at[i] .. at[i + 1]), in canonical order. */
extern const uint32_t slm2_unicode_n_decomposing;
extern const uint32_t slm2_unicode_decomposing[];
extern const uint16_t slm2_unicode_decomposed_at[];
extern const uint32_t slm2_unicode_decomposed[];

/* Primary composites, ascending by (first, second). */
typedef struct slm2_composition {
  uint32_t first, second, composite;
} slm2_composition;
extern const uint32_t slm2_unicode_n_compositions;
extern const slm2_composition slm2_unicode_compositions[];

/* cp < 0x110000 */
static inline uint8_t slm2_unicode_kind(uint32_t cp) {
  uint32_t block = slm2_unicode_blocks[cp >> SLM2_UNICODE_BLOCK_BITS];
  return slm2_unicode_kinds[(block << SLM2_UNICODE_BLOCK_BITS) + (cp & ((1u << SLM2_UNICODE_BLOCK_BITS) - 1))];
}

#endif
