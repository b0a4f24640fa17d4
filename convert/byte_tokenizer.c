/* convert/byte_tokenizer.c: a tokenizer section without merges, for synthetic models. */
#include "convert/byte_tokenizer.h"
#include "convert/convert.h"
#include "convert/text.h"
#include "base/error.h"
#include "tokenizer/section.h"

#define N_SPECIAL 14u
static const char *const added[] = {
    /* special */
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
    "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
    /* shown in answers */
    "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
    "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>",
};
#define N_ADDED (sizeof added / sizeof added[0])
_Static_assert(256 + N_ADDED == SLM2_BYTE_TOKENIZER_TOKENS, "the header states how many");

/* GPT-2's order: the bytes that are their own symbols first, the others behind. */
static bool own_symbol(uint32_t byte) { return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad); }

size_t slm2_byte_tokenizer(uint8_t section[SLM2_BYTE_TOKENIZER_MAX]) {
  uint8_t *ends = section + SLM2_TOKENIZER_HEAD_BYTES, *list = ends + 4 * SLM2_BYTE_TOKENIZER_TOKENS, *blob = list + 8 * N_ADDED;
  uint32_t id = 0, at = 0;
  for (int own = 1; own >= 0; own--) {
    for (uint32_t byte = 0; byte < 256; byte++) {
      if (own_symbol(byte) != (own == 1)) continue;
      blob[at++] = (uint8_t)byte;
      slm2_store_u32(ends + 4 * id++, at);
    }
  }
  for (size_t i = 0; i < N_ADDED; i++) {
    size_t n = text_length(added[i]);
    memcpy(blob + at, added[i], n);
    at += (uint32_t)n;
    slm2_store_u32(list + 8 * i, id);
    slm2_store_u32(list + 8 * i + 4, i < N_SPECIAL ? SLM2_ADDED_SPECIAL : 0);
    slm2_store_u32(ends + 4 * id++, at);
  }
  const uint32_t head[8] = {SLM2_TOKENIZER_MAGIC, SLM2_PRETOKENIZER_QWEN2, id, 0, N_ADDED, at, 0, 0};
  for (size_t i = 0; i < 8; i++) slm2_store_u32(section + 4 * i, head[i]);
  return (size_t)(blob - section) + at;
}

slm2_status slm2_tokenizer_section_tokens(const uint8_t *section, size_t n, uint32_t *n_tokens, slm2_error *error) {
  if (n >= SLM2_TOKENIZER_HEAD_BYTES && slm2_load_u32(section) == SLM2_TOKENIZER_MAGIC) {
    uint64_t tokens = slm2_load_u32(section + 8), merges = slm2_load_u32(section + 12), n_added = slm2_load_u32(section + 16);
    if (SLM2_TOKENIZER_HEAD_BYTES + 4 * tokens + 12 * merges + 8 * n_added + slm2_load_u32(section + 20) == n) {
      *n_tokens = (uint32_t)tokens;
      return SLM2_OK;
    }
  }
  return slm2_fail(error, SLM2_E_FORMAT, "tokenizer", NULL, SLM2_NO_OFFSET, "%u bytes are no tokenizer section", (uint64_t)n);
}

uint32_t slm2_section_added_id(const uint8_t *section, const char *text, size_t n, bool *special) {
  uint32_t n_tokens = slm2_load_u32(section + 8), n_added = slm2_load_u32(section + 16), n_blob = slm2_load_u32(section + 20);
  const uint8_t *ends = section + SLM2_TOKENIZER_HEAD_BYTES;
  const uint8_t *list = ends + 4 * (size_t)n_tokens + 12 * (size_t)slm2_load_u32(section + 12),
                *blob = list + 8 * (size_t)n_added;
  for (uint32_t i = 0; i < n_added; i++) {
    uint32_t id = slm2_load_u32(list + 8 * (size_t)i);
    if (id >= n_tokens) continue;
    uint32_t begin = id == 0 ? 0 : slm2_load_u32(ends + 4 * (size_t)(id - 1)), end = slm2_load_u32(ends + 4 * (size_t)id);
    if (begin > end || end > n_blob || end - begin != n || memcmp(blob + begin, text, n) != 0) continue;
    if (special != NULL) *special = (slm2_load_u32(list + 8 * (size_t)i + 4) & SLM2_ADDED_SPECIAL) != 0;
    return id;
  }
  return UINT32_MAX;
}
