/* convert/section.h: makes a tokenizer section (src/tokenizer/section.h) from tokens and merges written in GPT-2's byte
 * symbols, whatever file they come from. Linear: tokens are looked up in a hash table whose key is derived from the
 * source's own SHA-256, so nobody can prepare a file of colliding tokens. Internal to convert/.
 *
 *   place, begin, every id in order (token), tokens_end, every merge in order, end
 */
#ifndef SLM2_CONVERT_SECTION_H
#define SLM2_CONVERT_SECTION_H

#include <stdbool.h>
#include "slm2/status.h"
#include "base/arena.h"

typedef struct slm2_section_builder {
  const char *what; /* the file, for messages */
  uint32_t n_tokens, n_merges, n_added;
  uint32_t id, rank, i_added; /* how many of them are there already */
  /* scratch */
  uint32_t *slots; /* by hash of a token's bytes: id + 1, with the top bit set for added tokens */
  uint32_t *pairs; /* by hash of a merge's pair: rank + 1 */
  uint32_t slot_mask, pair_mask;
  uint64_t key[2];
  /* the section */
  uint8_t *section, *ends, *merges, *added, *blob;
  uint32_t blob_bytes;
} slm2_section_builder;

/* GPT-2's symbol of a byte, a code point. */
uint32_t slm2_byte_symbol(uint8_t byte);

/* How a token counts: absent is an id without a token, whose text is not looked at. */
typedef enum slm2_token_kind { SLM2_TOKEN_NORMAL, SLM2_TOKEN_ADDED, SLM2_TOKEN_SPECIAL, SLM2_TOKEN_ABSENT } slm2_token_kind;

/* Text as its file has it, without escapes; name and n_name show it in messages, at is its place in the file. */
typedef struct slm2_section_text {
  const char *text, *name;
  size_t n, n_name;
  uint64_t at;
} slm2_section_text;

/* Refuses counts beyond the limits of the section. */
SLM2_NODISCARD slm2_status slm2_section_check(const char *what, uint64_t n_tokens, uint64_t n_merges, uint64_t n_added,
                                              slm2_error *error);
/* Places the scratch for at most this many. */
void slm2_section_place(slm2_section_builder *b, uint32_t n_tokens, uint32_t n_merges, slm2_arena *arena);
/* Bytes that a section of these takes at most; text_bytes: all texts together. */
uint64_t slm2_section_capacity(uint64_t n_tokens, uint64_t n_merges, uint64_t n_added, uint64_t text_bytes);
/* section: slm2_section_capacity bytes for exactly these counts, at most those that were placed. */
void slm2_section_begin(slm2_section_builder *b, const char *what, const uint8_t sha256[32], uint32_t n_tokens,
                        uint32_t n_merges, uint32_t n_added, uint8_t *section);
/* The next id. */
SLM2_NODISCARD slm2_status slm2_section_token(slm2_section_builder *b, slm2_token_kind kind, const slm2_section_text *t,
                                              slm2_error *error);
/* After the last id: each of the 256 bytes must be a token. */
SLM2_NODISCARD slm2_status slm2_section_tokens_end(slm2_section_builder *b, slm2_error *error);
/* The next merge, of two texts of byte symbols. at: its place in the file. */
SLM2_NODISCARD slm2_status slm2_section_merge(slm2_section_builder *b, const char *left, size_t n_left, const char *right,
                                              size_t n_right, uint64_t at, slm2_error *error);
/* The same as one line "left right": the symbols hold no space. */
SLM2_NODISCARD slm2_status slm2_section_merge_line(slm2_section_builder *b, const char *line, size_t n, uint64_t at,
                                                   slm2_error *error);
/* Writes the head; returns the size of the section. */
size_t slm2_section_end(slm2_section_builder *b);

#endif
