/* slm2/chat.h: conversations to prompt text, exactly as Qwen3's chat template renders
 * them in Hugging Face transformers (revision c1899de; docs/MODEL.md, "chat").
 *
 * Input is JSON: an array of OpenAI-shaped messages, or an object
 *   {"messages": [...], "tools": [...], "add_generation_prompt": bool, "enable_thinking": bool}.
 * Each byte of the result is marked as template or content, so that
 * slm2_tokenize(..., SLM2_SPECIALS_MASKED, mask) lets control tokens come from the
 * template only: a user cannot forge a turn.
 */
#ifndef SLM2_CHAT_H
#define SLM2_CHAT_H

#include <stdbool.h>
#include "slm2/format.h"
#include "slm2/status.h"

SLM2_C_BEGIN

typedef struct slm2_chat_options {
  bool generation_prompt; /* end with "<|im_start|>assistant\n" (default true) */
  bool thinking;          /* false: append an empty think block, so that the model answers at once */
} slm2_chat_options;

/* Scratch (16-byte aligned) for a conversation of n JSON bytes; SLM2_E_ARGUMENT when n is too large. */
SLM2_NODISCARD slm2_status slm2_chat_scratch_bytes(size_t n, size_t *bytes);
/* Renders into text and mask (capacity bytes each; mask[i] = 1 template, 0 content) and sets
 * *n_text. When the result is longer than capacity: SLM2_E_MEMORY, with the length needed
 * in error->offset, so that a first call with capacity 0 measures.
 * Keys add_generation_prompt / enable_thinking inside the JSON override the options (NULL: both true).
 * SLM2_E_JSON: not strict JSON (offset given); SLM2_E_CHAT: not a conversation this
 * template can render (message index and reason given); SLM2_E_UNSUPPORTED: format is SLM2_CHAT_NONE. */
SLM2_NODISCARD slm2_status slm2_chat_render(slm2_chat_format format, const char *json, size_t n, const slm2_chat_options *options,
                                            void *scratch, size_t scratch_bytes, char *text, uint8_t *mask, size_t capacity,
                                            size_t *n_text, slm2_error *error);

SLM2_C_END

#endif
