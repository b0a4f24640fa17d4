/* convert/output.h: an SLM2 file on its way to a sink: data in order, chunk hashes on the fly, the header last. Used by
 * the converter and by synth. Internal to convert/. */
#ifndef SLM2_CONVERT_OUTPUT_H
#define SLM2_CONVERT_OUTPUT_H

#include "convert/convert.h"
#include "base/arena.h"
#include "base/sha256.h"

typedef struct slm2_output {
  const slm2_sink *sink;
  const slm2_header *header; /* laid out */
  const char *phase;         /* for progress */
  uint8_t *hashes;           /* [n_chunks][32] */
  uint8_t *text;             /* [text_capacity], the header */
  size_t text_capacity;
  slm2_sha256 chunk;         /* of the chunk being written */
  uint64_t at;               /* data bytes written */
  uint64_t reported;
} slm2_output;

/* Memory for an output whose tokenizer may still shrink and whose header texts may still change. */
static inline void slm2_output_place(slm2_output *out, const slm2_header *header, slm2_arena *arena) {
  out->text_capacity =
      8 + (size_t)header->header_bytes + sizeof header->source + sizeof header->source_revision + sizeof header->license + 64;
  out->hashes = slm2_arena_take(arena, header->n_chunks, 32);
  out->text = slm2_arena_take(arena, out->text_capacity, 1);
}
/* Starts writing; the memory was placed for a header at least this large. */
void slm2_output_begin(slm2_output *out, const slm2_sink *sink, const slm2_header *header, const char *phase);
/* The first two sections: the tokenizer (header->tokenizer_bytes of them) and the rotary frequencies [D14]. */
SLM2_NODISCARD slm2_status slm2_output_front(slm2_output *out, const uint8_t *tokenizer, slm2_error *error);
/* The next n data bytes. */
SLM2_NODISCARD slm2_status slm2_output_put(slm2_output *out, const uint8_t *bytes, size_t n, slm2_error *error);
/* Zeros up to a multiple of SLM2_SECTION_ALIGN. */
SLM2_NODISCARD slm2_status slm2_output_align(slm2_output *out, slm2_error *error);
/* The header, once all data is there; identity is its hash. */
SLM2_NODISCARD slm2_status slm2_output_end(slm2_output *out, uint8_t identity[32], slm2_error *error);

/* Progress of any phase: calls the sink when a mebibyte has passed since *reported, or done == total. */
static inline void slm2_report(const slm2_sink *sink, const char *phase, uint64_t done, uint64_t total, uint64_t *reported) {
  if (sink->progress == NULL || (done != total && done - *reported < 1048576)) return;
  *reported = done;
  sink->progress(sink->user, phase, done, total);
}

#endif
