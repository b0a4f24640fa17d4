/* convert/output.c: writes an SLM2 file through a sink. */
#include "convert/output.h"
#include "base/bytes.h"
#include "base/error.h"
#include "num/math.h"

void slm2_output_begin(slm2_output *out, const slm2_sink *sink, const slm2_header *header, const char *phase) {
  out->sink = sink;
  out->header = header;
  out->phase = phase;
  out->at = 0;
  out->reported = 0;
  slm2_sha256_init(&out->chunk);
}

/* Bytes that may go into the current chunk. */
static uint64_t chunk_left(uint64_t at) { return SLM2_CHUNK_BYTES - at % SLM2_CHUNK_BYTES; }

slm2_status slm2_output_put(slm2_output *out, const uint8_t *bytes, size_t n, slm2_error *error) {
  const slm2_header *h = out->header;
  if (n > h->data_bytes - out->at) {
    return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, "convert", NULL, out->at, "more data than the header's %u bytes",
                     h->data_bytes);
  }
  if (n == 0) return SLM2_OK;
  SLM2_TRY(out->sink->write(out->sink->user, 8 + h->header_bytes + out->at, bytes, n, error));
  while (n > 0) {
    size_t part = n < chunk_left(out->at) ? n : (size_t)chunk_left(out->at);
    slm2_sha256_update(&out->chunk, bytes, part);
    out->at += part;
    bytes += part;
    n -= part;
    if (out->at % SLM2_CHUNK_BYTES != 0 && out->at != h->data_bytes) continue;
    slm2_sha256_final(&out->chunk, out->hashes + 32 * ((out->at - 1) / SLM2_CHUNK_BYTES));
    slm2_sha256_init(&out->chunk);
  }
  slm2_report(out->sink, out->phase, out->at, h->data_bytes, &out->reported);
  return SLM2_OK;
}

slm2_status slm2_output_align(slm2_output *out, slm2_error *error) {
  static const uint8_t zeros[SLM2_SECTION_ALIGN] = {0};
  return slm2_output_put(out, zeros, (size_t)((0 - out->at) % SLM2_SECTION_ALIGN), error);
}

slm2_status slm2_output_front(slm2_output *out, const uint8_t *tokenizer, slm2_error *error) {
  const slm2_header *h = out->header;
  float table[SLM2_MAX_HEAD_DIM / 2];
  uint8_t bytes[sizeof table];
  size_t n = h->config.head_dim / 2;
  SLM2_TRY(slm2_output_put(out, tokenizer, (size_t)h->tokenizer_bytes, error));
  SLM2_TRY(slm2_output_align(out, error));
  if (!slm2_inv_freq(h->config.rope_theta, h->config.head_dim, table)) {
    return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, "convert", "rope_theta", SLM2_NO_OFFSET,
                     "no frequencies for rope_theta %u", (uint64_t)h->config.rope_theta);
  }
  for (size_t i = 0; i < n; i++) slm2_store_f32(bytes + 4 * i, table[i]);
  SLM2_TRY(slm2_output_put(out, bytes, 4 * n, error));
  return slm2_output_align(out, error);
}

slm2_status slm2_output_end(slm2_output *out, uint8_t identity[32], slm2_error *error) {
  const slm2_header *h = out->header;
  if (out->at != h->data_bytes) {
    return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, "convert", NULL, out->at, "%u data bytes written, the header says %u",
                     out->at, h->data_bytes);
  }
  slm2_store_u64(out->text, h->header_bytes);
  SLM2_TRY(slm2_header_write(h, out->hashes, out->text + 8, out->text_capacity - 8, error));
  SLM2_TRY(out->sink->write(out->sink->user, 0, out->text, (size_t)(8 + h->header_bytes), error));
  slm2_header_identity(out->text + 8, (size_t)h->header_bytes, identity);
  return SLM2_OK;
}
