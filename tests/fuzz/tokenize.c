/* tests/fuzz/tokenize.c: any text under two tokenizers: the unit tests' small one with crossing added tokens, and the
 * byte-level one of synthetic models. */
#include "convert/byte_tokenizer.h"
#include "tests/fuzz/text.h"
#include "tests/tiny_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static slm2_tokenizer *tiny, *bytes;
  if (tiny == NULL) {
    static tiny_section section;
    static uint8_t own[SLM2_BYTE_TOKENIZER_MAX];
    slm2_error e = {0};
    tiny_init(&section);
    tiny = tiny_open(section.bytes, section.n, &e).t;
    bytes = tiny_open(own, slm2_byte_tokenizer(own), &e).t;
    MUST(tiny != NULL && bytes != NULL);
  }
  fuzz_text(tiny, data, n);
  fuzz_text(bytes, data, n);
  return 0;
}
