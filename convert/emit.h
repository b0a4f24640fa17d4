/* convert/emit.h: a file written from its first byte to its last, in small pieces: text, numbers, bytes. Without a sink it
 * only counts, so that a length can be known before it is written. The first failure sticks; slm2_emit_end tells it.
 * Internal to convert/. */
#ifndef SLM2_CONVERT_EMIT_H
#define SLM2_CONVERT_EMIT_H

#include "convert/convert.h"

#define SLM2_EMIT_BUFFER 4096u

typedef struct slm2_emitter {
  const slm2_sink *sink; /* NULL: count */
  slm2_error *error;
  slm2_status status;
  uint64_t at;           /* bytes so far */
  uint64_t total, reported; /* for progress; total 0: none */
  const char *phase;
  size_t n;              /* in the buffer */
  uint8_t buffer[SLM2_EMIT_BUFFER];
} slm2_emitter;

void slm2_emit_begin(slm2_emitter *e, const slm2_sink *sink, slm2_error *error);
/* Writes what is left. */
SLM2_NODISCARD slm2_status slm2_emit_end(slm2_emitter *e);

void slm2_emit_bytes(slm2_emitter *e, const void *bytes, size_t n);
void slm2_emit_u32(slm2_emitter *e, uint32_t value); /* little-endian */
void slm2_emit_u64(slm2_emitter *e, uint64_t value);
void slm2_emit_fill(slm2_emitter *e, uint8_t byte, uint64_t align); /* up to a multiple of align */

void slm2_emit_text(slm2_emitter *e, const char *text);
void slm2_emit_decimal(slm2_emitter *e, uint64_t value);
void slm2_emit_float(slm2_emitter *e, float value); /* shortest decimal that reads back */
/* A JSON string, with its quotes; valid UTF-8. */
void slm2_emit_string(slm2_emitter *e, const void *text, size_t n);
/* Bytes as GPT-2's symbols, which are UTF-8; escaped as inside a JSON string when `json`. */
void slm2_emit_symbols(slm2_emitter *e, const uint8_t *bytes, size_t n, bool json);
/* UTF-8 bytes of the symbols of n bytes. */
size_t slm2_symbols_length(const uint8_t *bytes, size_t n);

#endif
