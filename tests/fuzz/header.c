/* tests/fuzz/header.c: the header of an SLM2 file. What is accepted is canonical: written again it gives the same bytes. */
#include "slm2/format.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  slm2_header h;
  slm2_error e = {0};
  slm2_status status = slm2_header_parse(data, n, UINT64_MAX, &h, &e);
  if (status != SLM2_OK) {
    fuzz_refusal(status, &e);
    return 0;
  }
  MUST(h.header_bytes == n && slm2_config_check(&h.config, &e) == SLM2_OK);
  uint8_t *hashes = fuzz_memory((size_t)h.n_chunks * 32), *again = fuzz_memory(n);
  for (uint64_t i = 0; i < h.n_chunks; i++) MUST(slm2_header_chunk_hash(data, n, &h, i, hashes + 32 * i) == SLM2_OK);
  MUST(slm2_header_write(&h, hashes, again, n, &e) == SLM2_OK && memcmp(again, data, n) == 0);
  slm2_header same = h;
  MUST(slm2_header_layout(&same, &e) == SLM2_OK && same.data_bytes == h.data_bytes && same.n_chunks == h.n_chunks);
  uint64_t end = 0;
  slm2_section s;
  for (uint32_t i = 0; i < slm2_section_count(&h.config); i++) {
    MUST(slm2_section_get(&h, i, &s) == SLM2_OK && s.offset == end && s.bytes <= s.padded_bytes);
    end += s.padded_bytes;
  }
  MUST(end == h.data_bytes);
  free(hashes);
  free(again);
  return 0;
}
