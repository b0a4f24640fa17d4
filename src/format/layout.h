/* format/layout.h: what the files of format/ share: the canonical header as one emitter, which counts, stores or
 * compares. Writer and parser cannot disagree: both use the same table of keys and the same emitter.
 */
#ifndef SLM2_FORMAT_LAYOUT_H
#define SLM2_FORMAT_LAYOUT_H

#include <stdbool.h>
#include "base/json.h"
#include "slm2/format.h"

/* Where header text goes. Bytes beyond capacity are counted only. */
typedef struct slm2_header_sink {
  uint8_t *out;            /* stored here, or NULL */
  const uint8_t *expected; /* compared with these, or NULL */
  uint64_t capacity;       /* of out or expected */
  uint64_t at;             /* bytes emitted */
  uint64_t difference;     /* first position that differs from expected; UINT64_MAX: none */
  uint64_t hashes_at;      /* where the hexadecimal digits of chunk_sha256 begin; set when they are emitted */
} slm2_header_sink;

void slm2_sink_text(slm2_header_sink *sink, const char *text);
void slm2_sink_u64(slm2_header_sink *sink, uint64_t value);

/* Emits '{"__metadata__":{...}'. hashes: n_chunks x 32 bytes, or NULL: their digits are skipped over. */
void slm2_emit_metadata(slm2_header_sink *sink, const slm2_header *header, const uint8_t *hashes);
/* Emits the whole header with its padding. */
void slm2_emit_header(slm2_header_sink *sink, const slm2_header *header, const uint8_t *hashes);

/* The keys of __metadata__ in order; the last one is chunk_sha256, whose value slm2_metadata_read leaves alone. */
uint32_t slm2_metadata_count(void);
const char *slm2_metadata_key(uint32_t i);
/* Emits the value of key i, without quotes. */
void slm2_emit_metadata_value(slm2_header_sink *sink, uint32_t i, const slm2_header *header, const uint8_t *hashes);
/* Reads the value of key i (an unescaped string token) into *header. base: offset of the text in the file. */
SLM2_NODISCARD slm2_status slm2_metadata_read(uint32_t i, const slm2_json_token *value, uint64_t base, slm2_header *header,
                                              slm2_error *error);
/* Checks the strings, ids and sampling defaults of a header whose config is good. */
SLM2_NODISCARD slm2_status slm2_metadata_check(const slm2_header *header, slm2_error *error);

/* "U8", "F32", or the weight form's name. */
const char *slm2_dtype_name(slm2_dtype dtype, slm2_weight_form form);

/* Rules on n alone, before any byte of the header is looked at. file_bytes may be UINT64_MAX. */
SLM2_NODISCARD slm2_status slm2_header_length_check(uint64_t n, uint64_t file_bytes, slm2_error *error);

#endif
