/* wasm/headers.c: what the store asks before a model runs: headers, chunk hashes, plans, verification. Contract: wasm/web.h. */
#include "base/bytes.h"
#include "base/error.h"
#include "tokenizer/section.h"
#include "wasm/plan.h"

static slm2_error failure;

slm2_error *slm2_web_failure(void) { return &failure; }

uint32_t slm2_web_version(void) { return SLM2_WEB_VERSION; }
uint32_t slm2_web_error(void) { return slm2_web_address(&failure); }
uint32_t slm2_web_heap(void) { return slm2_web_heap_base(); }

slm2_status slm2_web_check_range(const char *name, uint32_t at, uint64_t n, uint32_t align) {
  const uint64_t low = slm2_web_heap_base(), end = slm2_web_memory_bytes();
  if (at < low || at > end || n > end - at)
    return slm2_fail(&failure, SLM2_E_ARGUMENT, "address", name, SLM2_NO_OFFSET,
                     "%u bytes at %u are not all between the heap (%u) and the end of memory (%u)", n, (uint64_t)at, low, end);
  if (at % align != 0)
    return slm2_fail(&failure, SLM2_E_ARGUMENT, "address", name, SLM2_NO_OFFSET, "%u is not a multiple of %u", (uint64_t)at,
                     (uint64_t)align);
  return SLM2_OK;
}

/* --- headers --------------------------------------------------------------------- */

static slm2_status need(const uint8_t *file, uint32_t n, uint64_t file_bytes, uint64_t *header, uint64_t *out) {
  if (n < 8)
    return slm2_fail(&failure, SLM2_E_FORMAT, "slm2 header", NULL, 0, "%u bytes are too few for a header's length", (uint64_t)n);
  SLM2_TRY(slm2_header_length(file, file_bytes, header, &failure));
  *out = 8 + *header + SLM2_TOKENIZER_HEAD_BYTES;
  if (*out > file_bytes) *out = file_bytes;
  return SLM2_OK;
}

uint32_t slm2_web_header_need(uint32_t at, uint32_t n, uint64_t file_bytes, uint32_t out) {
  uint64_t header = 0, bytes = 0;
  SLM2_TRY(slm2_web_check_range("at", at, n, 1));
  SLM2_TRY(slm2_web_check_range("out", out, 8, 1));
  SLM2_TRY(need(slm2_web_at(at), n, file_bytes, &header, &bytes));
  slm2_store_u64(slm2_web_at(out), bytes);
  return SLM2_OK;
}

/* The header of a prefix that is long enough for everything here. */
static slm2_status parse(uint32_t at, uint32_t n, uint64_t file_bytes, slm2_header *out) {
  uint64_t header = 0, bytes = 0;
  SLM2_TRY(slm2_web_check_range("at", at, n, SLM2_SECTION_ALIGN));
  SLM2_TRY(need(slm2_web_at(at), n, file_bytes, &header, &bytes));
  if (n < bytes)
    return slm2_fail(&failure, SLM2_E_FORMAT, "slm2 header", NULL, SLM2_NO_OFFSET,
                     "%u bytes of the file are needed, %u are given",
                     bytes, (uint64_t)n);
  return slm2_header_parse(slm2_web_at(at) + 8, (size_t)header, file_bytes, out, &failure);
}

uint32_t slm2_web_header(uint32_t at, uint32_t n, uint64_t file_bytes, uint32_t out) {
  slm2_header h;
  uint8_t answer[256] = {0};
  SLM2_TRY(slm2_web_check_range("out", out, sizeof answer, 1));
  SLM2_TRY(parse(at, n, file_bytes, &h));
  slm2_header_identity(slm2_web_at(at) + 8, (size_t)h.header_bytes, answer);
  const uint64_t sizes[] = {h.header_bytes, h.data_bytes, h.n_chunks, slm2_tensor_bytes(&h), slm2_parameter_count(&h.config)};
  const uint32_t counts[] = {h.config.max_positions, h.config.layers, h.config.hidden, h.config.vocab};
  for (uint32_t i = 0; i < 5; i++) slm2_store_u64(answer + 32 + 8 * i, sizes[i]);
  for (uint32_t i = 0; i < 4; i++) slm2_store_u32(answer + 72 + 4 * i, counts[i]);
  memcpy(answer + 88, h.license, sizeof h.license);
  memcpy(answer + 152, h.source, sizeof h.source);
  memcpy(slm2_web_at(out), answer, sizeof answer);
  return SLM2_OK;
}

uint32_t slm2_web_chunk_hash(uint32_t at, uint32_t n, uint64_t file_bytes, uint64_t chunk, uint32_t out) {
  slm2_header h;
  uint8_t hash[32];
  SLM2_TRY(slm2_web_check_range("out", out, sizeof hash, 1));
  SLM2_TRY(parse(at, n, file_bytes, &h));
  if (chunk >= h.n_chunks)
    return slm2_fail(&failure, SLM2_E_ARGUMENT, "slm2 header", "chunk", SLM2_NO_OFFSET, "%u: the file has %u chunks", chunk,
                     h.n_chunks);
  if (slm2_header_chunk_hash(slm2_web_at(at) + 8, (size_t)h.header_bytes, &h, chunk, hash) != SLM2_OK)
    return slm2_fail(&failure, SLM2_E_INTERNAL_INVARIANT, "slm2 header", "chunk", SLM2_NO_OFFSET, "%u has no hash", chunk);
  memcpy(slm2_web_at(out), hash, sizeof hash);
  return SLM2_OK;
}

uint32_t slm2_web_plan(uint32_t at, uint32_t n, uint64_t file_bytes, uint32_t context, uint32_t profile, uint32_t kv,
                       uint32_t tile, uint32_t threads, uint32_t pages, uint32_t out) {
  const slm2_web_wishes wishes = {context, profile, kv, tile, threads, pages};
  slm2_header h;
  slm2_web_plan_terms terms = {0};
  SLM2_TRY(slm2_web_check_range("out", out, sizeof terms, 1));
  SLM2_TRY(parse(at, n, file_bytes, &h)); /* all of the prefix is there */
  slm2_status status = slm2_web_plan_make(slm2_web_at(at), file_bytes, &wishes, &terms, &failure);
  if (terms.version != 0) slm2_web_plan_store(slm2_web_at(out), &terms);
  return status;
}

/* --- verification ------------------------------------------------------------------ */

/* A lent block: this head, the reader, its copy of the header. */
#define READER_HEAD 64u
#define READER_MAGIC UINT64_C(0x5245414445523031)

static uint32_t reader_bytes(void) { return ((uint32_t)slm2_reader_bytes() + 63) & ~63u; }

uint32_t slm2_web_reader_bytes(void) { return READER_HEAD + reader_bytes() + SLM2_HEADER_MAX; }

uint32_t slm2_web_reader_start(uint32_t at, uint32_t n, uint64_t file_bytes) {
  slm2_reader *reader;
  SLM2_TRY(slm2_web_check_range("at", at, n, 64));
  if (n < slm2_web_reader_bytes())
    return slm2_fail(&failure, SLM2_E_MEMORY, "slm2 reader", NULL, SLM2_NO_OFFSET, "a reader takes %u bytes, but %u are given",
                     (uint64_t)slm2_web_reader_bytes(), (uint64_t)n);
  uint8_t *block = slm2_web_at(at);
  SLM2_TRY(slm2_reader_init(block + READER_HEAD, reader_bytes(), block + READER_HEAD + reader_bytes(), SLM2_HEADER_MAX,
                            file_bytes, &reader, &failure));
  slm2_store_u64(block, READER_MAGIC ^ at);
  return SLM2_OK;
}

uint32_t slm2_web_reader_push(uint32_t at, uint32_t bytes_at, uint32_t n) {
  SLM2_TRY(slm2_web_check_range("at", at, slm2_web_reader_bytes(), 64));
  SLM2_TRY(slm2_web_check_range("bytes", bytes_at, n, 1));
  uint8_t *block = slm2_web_at(at);
  if (slm2_load_u64(block) != (READER_MAGIC ^ at))
    return slm2_fail(&failure, SLM2_E_ARGUMENT, "slm2 reader", "at", SLM2_NO_OFFSET, "no reader was started at %u", (uint64_t)at);
  if (bytes_at < (uint64_t)at + slm2_web_reader_bytes() && at < (uint64_t)bytes_at + n)
    return slm2_fail(&failure, SLM2_E_ARGUMENT, "slm2 reader", "bytes", SLM2_NO_OFFSET, "they overlap the reader's own memory");
  return slm2_reader_push((slm2_reader *)(void *)(block + READER_HEAD), slm2_web_at(bytes_at), n, &failure);
}
