/* wasm/ring.h: one side of each ring of docs/PROTOCOL.md. The other side is not trusted: its index is checked against all that
 * was seen of it, its records before anything in them is used; what cannot be is SLM2_E_INTERNAL_INVARIANT.
 */
#ifndef SLM2_WASM_RING_H
#define SLM2_WASM_RING_H

#include "wasm/host.h"

#define SLM2_WEB_RECORD_HEAD 16u

/* The commands, as the engine reads them. Indices count bytes, modulo 2^32. */
typedef struct slm2_web_reader {
  uint32_t tail, head; /* read; seen */
  uint32_t sequence;   /* due */
} slm2_web_reader;

typedef struct slm2_web_record {
  uint32_t op, flags, request;
  uint32_t at, n; /* its payload, which the page may still change: to be copied before it is looked at */
  uint32_t size;  /* in the ring */
} slm2_web_record;

/* The next record, still in the ring; SLM2_NEED_MORE when there is none. */
SLM2_NODISCARD slm2_status slm2_web_reader_peek(slm2_web_reader *r, slm2_web_record *record, slm2_error *error);
/* Gives its room back. */
void slm2_web_reader_take(slm2_web_reader *r, const slm2_web_record *record);

/* The events, as the engine writes them. */
typedef struct slm2_web_writer {
  uint32_t head, tail; /* written; seen */
  uint32_t sequence;
} slm2_web_writer;

SLM2_NODISCARD slm2_status slm2_web_writer_room(slm2_web_writer *w, uint32_t *bytes, slm2_error *error);
/* A whole record or none: SLM2_NEED_MORE when it does not fit. n <= SLM2_WEB_PAYLOAD_MAX. */
SLM2_NODISCARD slm2_status slm2_web_writer_put(slm2_web_writer *w, uint32_t op, uint32_t request, const uint8_t *payload,
                                               uint32_t n, slm2_error *error);

#endif
