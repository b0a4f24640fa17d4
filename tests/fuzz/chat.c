/* tests/fuzz/chat.c: conversations. Measuring and rendering agree, whatever is too small is refused unwritten, and nothing
 * of a message's content is ever marked as template. Input: u8 options, JSON. */
#include "base/utf8.h"
#include "slm2/chat.h"
#include "tests/fuzz/fuzz.h"

static void render_all(const char *json, size_t n, const slm2_chat_options *options, size_t need, void *scratch, size_t bytes) {
  slm2_error e = {0};
  size_t n_text = 77;
  char *text = fuzz_memory(need);
  uint8_t *mask = fuzz_memory(need);
  MUST(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, options, scratch, bytes, text, mask, need - 1, &n_text, &e) == SLM2_E_MEMORY);
  MUST(e.offset == need && n_text == 77);
  MUST(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, options, scratch, bytes, text, mask, need, &n_text, &e) == SLM2_OK);
  MUST(n_text == need && slm2_utf8_valid((const uint8_t *)text, n_text));
  for (size_t i = 0; i < n_text; i++) MUST(mask[i] <= 1);
  free(text);
  free(mask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (n == 0) return 0;
  slm2_chat_options options = {.generation_prompt = data[0] & 1, .thinking = data[0] >> 1 & 1};
  const char *json = (const char *)data + 1;
  slm2_error e = {0};
  size_t bytes, need;
  n--;
  MUST(slm2_chat_scratch_bytes(n, &bytes) == SLM2_OK);
  void *scratch = fuzz_memory(bytes);
  slm2_status status = slm2_chat_render(SLM2_CHAT_QWEN3, json, n, &options, scratch, bytes, NULL, NULL, 0, &need, &e);
  if (status == SLM2_E_MEMORY) {
    MUST(e.offset > 0 && e.offset <= SIZE_MAX);
    render_all(json, n, &options, (size_t)e.offset, scratch, bytes);
  } else if (status != SLM2_OK) {
    fuzz_refusal(status, &e);
    MUST(status == SLM2_E_JSON || status == SLM2_E_CHAT);
  }
  free(scratch);
  return 0;
}
