/* tests/fuzz/hf.c: the small files of a Hugging Face folder. Input: u8 which file, its text. */
#include "convert/hf.h"
#include "slm2/tokenizer.h"
#include "tests/fuzz/fuzz.h"

static slm2_status config(const char *json, size_t n, slm2_error *e) {
  slm2_config c;
  slm2_generation ids;
  slm2_status status = slm2_hf_config(json, n, &c, &ids, e);
  if (status == SLM2_OK) MUST(slm2_config_check(&c, e) == SLM2_OK && ids.n_eos <= SLM2_MAX_EOS);
  return status;
}

static slm2_status generation(const char *json, size_t n, slm2_error *e) {
  slm2_generation ids = {.bos = 1, .pad = UINT32_MAX, .n_eos = 1, .eos = {2}}, g;
  slm2_status status = slm2_hf_generation(json, n, &ids, 1000, &g, e);
  if (status == SLM2_OK) MUST(g.n_eos <= SLM2_MAX_EOS && g.temperature >= 0 && g.repeat_penalty > 0);
  return status;
}

static slm2_status template(const char *json, size_t n, slm2_error *e) {
  char *scratch = fuzz_memory(n);
  bool found;
  uint8_t hash[32];
  slm2_status status = slm2_hf_chat_template(NULL, 0, json, n, scratch, &found, hash, e);
  free(scratch);
  return status;
}

static slm2_status shards(const char *json, size_t n, slm2_error *e) {
  static char names[SLM2_MAX_SHARDS][SLM2_SHARD_NAME_MAX];
  uint32_t n_names = 0;
  size_t bytes = slm2_index_bytes(n);
  void *mem = fuzz_memory(bytes);
  slm2_status status = slm2_index_shards(json, n, mem, bytes, names, SLM2_MAX_SHARDS, &n_names, e);
  if (status == SLM2_OK) MUST(n_names > 0 && n_names <= SLM2_MAX_SHARDS && memchr(names[0], 0, SLM2_SHARD_NAME_MAX) != NULL);
  free(mem);
  return status;
}

/* A section that is made is one that the tokenizer takes. */
static slm2_status tokenizer(const char *json, size_t n, slm2_error *e) {
  size_t scratch_bytes, capacity, n_section, bytes;
  slm2_status status = slm2_tokenizer_convert_bytes(json, n, &scratch_bytes, &capacity, e);
  if (status != SLM2_OK) return status;
  void *scratch = fuzz_memory(scratch_bytes);
  uint8_t *section = fuzz_memory(capacity);
  status = slm2_tokenizer_convert(json, n, scratch, scratch_bytes, section, capacity, &n_section, e);
  if (status == SLM2_OK) {
    slm2_tokenizer *t;
    MUST(n_section <= capacity && slm2_tokenizer_bytes(section, n_section, &bytes, e) == SLM2_OK);
    void *mem = fuzz_memory(bytes);
    MUST(slm2_tokenizer_init(mem, bytes, section, n_section, &t, e) == SLM2_OK);
    free(mem);
  }
  free(scratch);
  free(section);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  typedef slm2_status reader(const char *json, size_t n, slm2_error *e);
  static reader *const readers[] = {config, generation, template, shards, tokenizer};
  if (n == 0) return 0;
  slm2_error e = {0};
  slm2_status status = readers[data[0] % 5]((const char *)data + 1, n - 1, &e);
  if (status != SLM2_OK) fuzz_refusal(status, &e);
  return 0;
}
