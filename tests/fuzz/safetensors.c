/* tests/fuzz/safetensors.c: a safetensors file. The tensors of what is accepted cover the data exactly and are found by
 * name. */
#include "convert/safetensors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  slm2_error e = {0};
  slm2_safetensors st;
  size_t n_header;
  slm2_status status = slm2_st_header_length("f", data, n, &n_header, &e);
  if (status != SLM2_OK) {
    fuzz_refusal(status, &e);
    return 0;
  }
  MUST(n >= 8 && n_header <= n - 8);
  char *header = fuzz_copy(data + 8, n_header);
  size_t bytes = slm2_st_bytes(n_header);
  MUST(bytes <= 1048576 + 64);
  void *mem = fuzz_memory(bytes);
  status = slm2_st_open("f", header, n_header, n, mem, bytes, &st, &e);
  if (status != SLM2_OK) fuzz_refusal(status, &e);
  uint64_t covered = 0;
  for (uint32_t i = 0; status == SLM2_OK && i < st.n_tensors; i++) {
    slm2_st_tensor t;
    slm2_st_get(&st, i, &t);
    MUST(t.offset >= 8 + n_header && t.bytes <= n && t.offset <= n - t.bytes);
    MUST(slm2_st_find(&st, t.name, t.n_name) == i);
    covered += t.bytes;
  }
  if (status == SLM2_OK) MUST(covered == n - 8 - n_header && covered == st.data_bytes);
  free(mem);
  free(header);
  return 0;
}
