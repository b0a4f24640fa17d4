/* wasm/plan.h: the memory map: every region from a file's header and the page's wishes. docs/PROTOCOL.md, "The memory".
 */
#ifndef SLM2_WASM_PLAN_H
#define SLM2_WASM_PLAN_H

#include "wasm/host.h"

#define SLM2_WEB_DRAFT 8u         /* longest draft of speculation: costs a row of logits each */
#define SLM2_WEB_CONTEXT 4096u    /* when the page asks for none */
#define SLM2_WEB_INPUT_MIN 65536u /* bytes of a command: these, and 16 for each position */
#define SLM2_WEB_PLAN_WORDS 32u

typedef struct slm2_web_wishes {
  uint32_t context; /* 0: the model's own, at most SLM2_WEB_CONTEXT, or less when only that fits */
  uint32_t profile, kv, tile, threads, pages;
} slm2_web_wishes;

/* SLM2_E_MEMORY, *out written all the same, when the plan needs more than pages, or its scratch is too large. file: what
 * slm2_web_header_need says of it, 64-byte aligned. */
SLM2_NODISCARD slm2_status slm2_web_plan_make(const uint8_t *file, uint64_t file_bytes, const slm2_web_wishes *wishes,
                                              slm2_web_plan_terms *out, slm2_error *error);
/* The offsets, total and pages that follow from the other terms; false when they exceed what a memory can have. */
bool slm2_web_plan_place(slm2_web_plan_terms *terms);

/* As 32 little-endian u64. */
void slm2_web_plan_store(uint8_t *to, const slm2_web_plan_terms *terms);
void slm2_web_plan_load(slm2_web_plan_terms *terms, const uint8_t *from);
/* Name of the first word in which they differ; NULL: none. */
const char *slm2_web_plan_difference(const slm2_web_plan_terms *a, const slm2_web_plan_terms *b);

/* The work region, by offsets from its begin. A command is collected in zone, and with it lies the scratch of the chat
 * template; what that renders goes to text and mask; then zone holds the ids, and behind them the tokenizer's scratch. */
typedef struct slm2_web_work {
  uint64_t generator, event, text, mask, zone, zone_bytes;
  uint64_t text_max; /* bytes of text and of mask */
  uint64_t bytes;    /* of the region */
} slm2_web_work;
/* input_max: 1 .. SLM2_WEB_SCRATCH_MAX. */
slm2_web_work slm2_web_work_place(uint32_t input_max);

#endif
