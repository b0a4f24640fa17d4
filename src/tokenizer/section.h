/* tokenizer/section.h: the bytes of the "tokenizer" section, written by convert, read by the tokenizer.
 *
 * All integers little-endian.
 *   u32 magic "SLT1" | u32 pretokenizer (1 = qwen2: NFC + Qwen's split) | u32 n_tokens | u32 n_merges | u32 n_added |
 *   u32 token_bytes total (T) | u32 reserved 0 | u32 reserved 0
 *   u32 ends[n_tokens]        end of token id's bytes in the blob; ends are non-decreasing, the last is T.
 *                             An empty token is an id without a token.
 *   u32 merges[n_merges][3]   left, right, result; row = rank. bytes(result) == bytes(left) + bytes(right).
 *   u32 added[n_added][2]     id, flags (bit 0 = special), ascending ids
 *   u8  blob[T]               raw bytes of every token (added tokens: their text)
 * n_tokens = largest id with a token + 1. Each of the 256 bytes is exactly one token that is not added. A merge
 * names tokens that are not added, and no pair twice. Added texts are distinct, valid UTF-8, without U+FFFD (which
 * stands for invalid input). Checked: all of it, every count, id and sum, and that the section ends with the blob.
 */
#ifndef SLM2_TOKENIZER_SECTION_H
#define SLM2_TOKENIZER_SECTION_H

#define SLM2_TOKENIZER_MAGIC 0x31544c53u /* "SLT1" */
#define SLM2_TOKENIZER_HEAD_BYTES 32u
#define SLM2_PRETOKENIZER_QWEN2 1u
#define SLM2_ADDED_SPECIAL 1u
#define SLM2_MAX_ADDED 1024u
#define SLM2_MAX_TOKEN_BYTES 1024u

#endif
