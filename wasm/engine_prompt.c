/* wasm/engine_prompt.c: a request's text to ids, in the work region [wasm/plan.h]. A conversation is rendered to text and mask,
 * another text is moved there; then the zone is free for the ids and the tokenizer's scratch. */
#include "base/bytes.h"
#include "base/error.h"
#include "slm2/chat.h"
#include "wasm/engine.h"

static const char operation[] = "prompt";

static slm2_status too_long(slm2_web_engine *e, const char *what, uint64_t n, uint64_t room) {
  return slm2_fail(e->error, SLM2_E_MEMORY, operation, what, SLM2_NO_OFFSET,
                   "it has %u bytes; this plan has room for %u", n, room);
}

/* The scratch lies behind the command. */
static slm2_status render(slm2_web_engine *e, uint32_t flags, const uint8_t *json, size_t n, size_t *n_text) {
  const slm2_chat_options options = {.generation_prompt = true, .thinking = (flags & SLM2_PROMPT_NO_THINKING) == 0};
  const uint64_t at = (e->n_payload + 63) & ~(uint64_t)63;
  size_t scratch;
  if (slm2_chat_scratch_bytes(n, &scratch) != SLM2_OK || at + scratch > e->work.zone_bytes)
    return too_long(e, "conversation", n, e->plan.input_max);
  slm2_status status = slm2_chat_render(slm2_model_header(e->model)->chat_format, (const char *)json, n, &options,
                                        slm2_web_work_at(e, e->work.zone + at), scratch,
                                        (char *)slm2_web_work_at(e, e->work.text), slm2_web_work_at(e, e->work.mask),
                                        (size_t)e->work.text_max, n_text, e->error);
  if (status == SLM2_E_MEMORY && e->error->offset != SLM2_NO_OFFSET)
    return too_long(e, "rendered conversation", e->error->offset, e->work.text_max);
  return status;
}

static slm2_status tokenize(slm2_web_engine *e, slm2_specials specials, size_t n_text) {
  const uint8_t *mask = specials == SLM2_SPECIALS_MASKED ? slm2_web_work_at(e, e->work.mask) : NULL;
  size_t scratch, n_ids;
  if (slm2_tokenize_scratch_bytes(n_text, &scratch) != SLM2_OK || scratch + 64 > e->work.zone_bytes)
    return too_long(e, "text", n_text, e->work.text_max);
  const size_t room = (size_t)((e->work.zone_bytes - scratch - 64) / 64 * 16), most = 3 * n_text + 1;
  const size_t capacity = most < room ? most : room;
  e->ids = (uint32_t *)(void *)slm2_web_work_at(e, e->work.zone);
  slm2_status status = slm2_tokenize(slm2_model_tokenizer(e->model), slm2_web_work_at(e, e->work.text), n_text, specials, mask,
                                     slm2_web_work_at(e, e->work.zone + room * 4), scratch, e->ids, capacity, &n_ids, e->error);
  if (status == SLM2_E_MEMORY)
    return slm2_fail(e->error, status, operation, "ids", SLM2_NO_OFFSET,
                     "%u bytes of text become more than the %u ids there is room for",
                     (uint64_t)n_text, (uint64_t)capacity);
  if (status == SLM2_OK) e->n_ids = (uint32_t)n_ids;
  return status;
}

static slm2_status take_ids(slm2_web_engine *e, const uint8_t *bytes, size_t n) {
  if (n % 4 != 0) return slm2_web_refuse(e, "ids", n, "bytes are no whole number of ids");
  uint8_t *zone = slm2_web_work_at(e, e->work.zone);
  memmove(zone, bytes, n);
  e->ids = (uint32_t *)(void *)zone;
  e->n_ids = (uint32_t)(n / 4);
  for (uint32_t i = 0; i < e->n_ids; i++) e->ids[i] = slm2_load_u32(zone + 4 * (size_t)i);
  return SLM2_OK;
}

slm2_status slm2_web_prompt(slm2_web_engine *e, uint32_t kind, uint32_t flags, const uint8_t *text, size_t n, size_t *n_text) {
  const bool specials = (flags & SLM2_PROMPT_SPECIALS) != 0;
  *n_text = n;
  if (kind == SLM2_KIND_IDS) return take_ids(e, text, n);
  if (kind > SLM2_KIND_IDS) return slm2_web_refuse(e, "kind", kind, "is none of 0, 1, 2");
  if (slm2_model_tokenizer(e->model) == NULL)
    return slm2_fail(e->error, SLM2_E_UNSUPPORTED, operation, "kind", SLM2_NO_OFFSET,
                     "the model has no tokenizer: it takes ids only");
  if (kind == SLM2_KIND_MESSAGES) {
    SLM2_TRY(render(e, flags, text, n, n_text));
    return tokenize(e, specials ? SLM2_SPECIALS_ON : SLM2_SPECIALS_MASKED, *n_text);
  }
  memmove(slm2_web_work_at(e, e->work.text), text, n); /* n <= input_max < text_max */
  return tokenize(e, specials ? SLM2_SPECIALS_ON : SLM2_SPECIALS_OFF, n);
}
