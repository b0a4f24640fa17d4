/* tests/fuzz/reader.c: the push reader over a whole SLM2 file. The verdict and its words do not depend on how the bytes are
 * cut, and a model that binds to what it accepts computes or refuses, but never crashes. Before that, the hashes in the
 * header are made right, so that what the data means is reached.
 */
#include "base/bytes.h"
#include "base/sha256.h"
#include "slm2/session.h"
#include "tests/fuzz/fuzz.h"

static void mend_hashes(uint8_t *file, size_t n) {
  static const char key[] = "\"chunk_sha256\":\"";
  if (n < 8 || slm2_load_u64(file) > n - 8) return;
  size_t header = (size_t)slm2_load_u64(file), left = n - 8 - header;
  for (size_t at = 8; at + sizeof key - 1 < 8 + header; at++) {
    if (memcmp(file + at, key, sizeof key - 1) != 0) continue;
    at += sizeof key - 1;
    const uint8_t *data = file + 8 + header;
    for (; left > 0 && at + 64 <= 8 + header; at += 64) {
      size_t chunk = left < SLM2_CHUNK_BYTES ? left : SLM2_CHUNK_BYTES;
      uint8_t sum[32];
      char hex[65];
      slm2_sha256_of(data, chunk, sum);
      slm2_hex(sum, sizeof sum, hex);
      memcpy(file + at, hex, 64);
      data += chunk;
      left -= chunk;
    }
    return;
  }
}

/* Pieces of 1 .. step bytes; step 0: all at once. */
static slm2_status read_in_pieces(const uint8_t *file, size_t n, uint32_t step, slm2_error *e) {
  size_t capacity = n < SLM2_HEADER_MAX ? n : SLM2_HEADER_MAX;
  void *mem = fuzz_memory(slm2_reader_bytes()), *header = fuzz_memory(capacity);
  slm2_reader *reader = NULL;
  slm2_status status = slm2_reader_init(mem, slm2_reader_bytes(), header, capacity, n, &reader, e);
  uint32_t state = step;
  for (size_t at = 0; status == SLM2_OK || status == SLM2_NEED_MORE;) {
    size_t piece = n - at;
    state = state * 1664525u + 1013904223u;
    if (step != 0 && piece > 1 + (state >> 8) % step) piece = 1 + (state >> 8) % step;
    status = slm2_reader_push(reader, file + at, piece, e);
    at += piece;
    if (at == n) break;
  }
  MUST(status != SLM2_OK || slm2_reader_position(reader) == n);
  if (status != SLM2_OK && status != SLM2_NEED_MORE && reader == NULL) fuzz_refusal(status, e);
  else if (status != SLM2_OK && status != SLM2_NEED_MORE) fuzz_refusal(slm2_reader_push(reader, file, n < 1 ? n : 1, e), e);
  free(mem);
  free(header);
  return status;
}

/* Four tokens of each profile, in a model that must load. */
static void compute(const uint8_t *file, size_t n) {
  slm2_error e = {0};
  slm2_model *model;
  slm2_session *session;
  slm2_plan plan;
  size_t bytes;
  slm2_status status = slm2_model_bytes(file, n, &bytes, &e);
  if (status != SLM2_OK) {
    fuzz_refusal(status, &e); /* the tokenizer section is the tokenizer's matter */
    return;
  }
  void *mem = fuzz_memory(bytes);
  status = slm2_model_init(mem, bytes, file, n, &model, &e);
  if (status != SLM2_OK) fuzz_refusal(status, &e);
  for (uint32_t i = 0; status == SLM2_OK && i < 4; i++) {
    uint32_t ids[4] = {0, 1, 31, 7};
    slm2_session_params params = {.context = 4, .tile = 1 + i, .profile = (slm2_profile)(i & 1), .kv = (slm2_kv_type)(i >> 1)};
    if (slm2_model_header(model)->config.max_positions < 4) break;
    MUST(slm2_session_plan(slm2_model_header(model), &params, &plan, &e) == SLM2_OK);
    if (plan.total > 1 << 24) break;
    void *block = fuzz_memory((size_t)plan.total);
    MUST(slm2_session_init(block, plan.total, model, &params, &session, &e) == SLM2_OK);
    slm2_status computed = slm2_session_append(session, ids, 4, NULL, &e);
    MUST(computed == SLM2_OK || computed == SLM2_E_NUMERICAL);
    free(block);
  }
  free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  uint8_t *file = fuzz_copy(data, n);
  slm2_error whole = {0}, pieces = {0};
  mend_hashes(file, n);
  slm2_status status = read_in_pieces(file, n, 0, &whole);
  uint32_t step = n < 4096 ? 3 : 700;
  MUST(read_in_pieces(file, n, step, &pieces) == status);
  if (status != SLM2_OK && status != SLM2_NEED_MORE) {
    MUST(strcmp(whole.message, pieces.message) == 0 && strcmp(whole.name, pieces.name) == 0 && whole.offset == pieces.offset);
  }
  if (status == SLM2_OK) compute(file, n);
  free(file);
  return 0;
}
