/* format/header_write.c: the canonical header, emitted from its fields alone; and what follows from where it lies. */
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "format/layout.h"

static void emit_section(slm2_header_sink *sink, const slm2_header *header, const slm2_section *s) {
  slm2_sink_text(sink, ",\"");
  slm2_sink_text(sink, s->name);
  slm2_sink_text(sink, "\":{\"dtype\":\"");
  slm2_sink_text(sink, slm2_dtype_name(s->dtype, header->form));
  slm2_sink_text(sink, "\",\"shape\":[");
  slm2_sink_u64(sink, s->dims[0]);
  if (s->n_dims == 2) {
    slm2_sink_text(sink, ",");
    slm2_sink_u64(sink, s->dims[1]);
  }
  slm2_sink_text(sink, "],\"data_offsets\":[");
  slm2_sink_u64(sink, s->offset);
  slm2_sink_text(sink, ",");
  slm2_sink_u64(sink, s->offset + s->padded_bytes);
  slm2_sink_text(sink, "]}");
}

void slm2_emit_header(slm2_header_sink *sink, const slm2_header *header, const uint8_t *hashes) {
  slm2_emit_metadata(sink, header, hashes);
  slm2_section s;
  for (uint32_t i = 0; slm2_section_get(header, i, &s) == SLM2_OK; i++) emit_section(sink, header, &s);
  slm2_sink_text(sink, "}");
  while ((8 + sink->at) % SLM2_SECTION_ALIGN != 0) slm2_sink_text(sink, " ");
}

slm2_status slm2_header_layout(slm2_header *header, slm2_error *error) {
  SLM2_TRY(slm2_config_check(&header->config, error));
  SLM2_TRY(slm2_metadata_check(header, error));
  slm2_header h = *header;
  slm2_section last;
  SLM2_TRY(slm2_section_get(&h, slm2_section_count(&h.config) - 1, &last));
  h.data_bytes = last.offset + last.padded_bytes;
  h.n_chunks = (h.data_bytes + (SLM2_CHUNK_BYTES - 1)) / SLM2_CHUNK_BYTES;
  slm2_header_sink counter = {.difference = UINT64_MAX};
  slm2_emit_header(&counter, &h, NULL);
  h.header_bytes = counter.at;
  if (h.header_bytes > SLM2_HEADER_MAX) {
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "slm2 header", NULL, SLM2_NO_OFFSET,
                     "the model has %u bytes of data; its header would take %u bytes, more than %u", h.data_bytes, h.header_bytes,
                     (uint64_t)SLM2_HEADER_MAX);
  }
  *header = h;
  return SLM2_OK;
}

slm2_status slm2_header_write(const slm2_header *header, const uint8_t *hashes, uint8_t *out, size_t capacity,
                              slm2_error *error) {
  slm2_header laid = *header;
  SLM2_TRY(slm2_header_layout(&laid, error));
  if (laid.header_bytes != header->header_bytes || laid.data_bytes != header->data_bytes || laid.n_chunks != header->n_chunks) {
    return slm2_fail(error, SLM2_E_ARGUMENT, "slm2 header", NULL, SLM2_NO_OFFSET, "the fields changed after slm2_header_layout");
  }
  if (capacity < header->header_bytes) {
    return slm2_fail(error, SLM2_E_MEMORY, "slm2 header", NULL, SLM2_NO_OFFSET,
                     "the header takes %u bytes, but the buffer has %u", header->header_bytes, (uint64_t)capacity);
  }
  slm2_header_sink sink = {.out = out, .capacity = capacity, .difference = UINT64_MAX};
  slm2_emit_header(&sink, header, hashes);
  return SLM2_OK;
}

static uint32_t nibble(uint8_t c) { return c <= '9' ? (uint32_t)c - '0' : (uint32_t)c - 'a' + 10; }

slm2_status slm2_header_chunk_hash(const uint8_t *json, size_t n, const slm2_header *header, uint64_t i, uint8_t out[32]) {
  if (n != header->header_bytes || i >= header->n_chunks) return SLM2_E_ARGUMENT;
  slm2_header_sink counter = {.difference = UINT64_MAX};
  slm2_emit_metadata(&counter, header, NULL);
  const uint8_t *hex = json + counter.hashes_at + 64 * i;
  for (int k = 0; k < 32; k++) out[k] = (uint8_t)(nibble(hex[2 * k]) << 4 | nibble(hex[2 * k + 1]));
  return SLM2_OK;
}

void slm2_header_identity(const uint8_t *json, size_t n, uint8_t out[32]) { slm2_sha256_of(json, n, out); }
