/* tests/fuzz/section.c: a tokenizer section, and text for it when it is accepted. Input: section, text, u8 length of text. */
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  slm2_error e = {0};
  slm2_tokenizer *t;
  size_t n_text = n == 0 ? 0 : data[n - 1], bytes;
  if (n == 0 || n_text > n - 1) return 0;
  size_t n_section = n - 1 - n_text;
  uint8_t *section = fuzz_copy(data, n_section);
  slm2_status status = slm2_tokenizer_bytes(section, n_section, &bytes, &e);
  void *mem = NULL;
  if (status == SLM2_OK) {
    mem = fuzz_memory(bytes);
    status = slm2_tokenizer_init(mem, bytes, section, n_section, &t, &e);
  }
  if (status == SLM2_OK) fuzz_text(t, data + n_section, n_text);
  else fuzz_refusal(status, &e);
  free(mem);
  free(section);
  return 0;
}
