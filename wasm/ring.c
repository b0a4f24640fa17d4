/* wasm/ring.c: reading commands, writing events. Contract: wasm/ring.h. */
#include "wasm/ring.h"

#include "base/bytes.h"
#include "base/error.h"

#define RING SLM2_WEB_RING_BYTES
#define HEAD SLM2_WEB_RECORD_HEAD
_Static_assert((RING & (RING - 1)) == 0, "indices wrap at 2^32");

static uint32_t record_size(uint32_t payload) { return HEAD + ((payload + 15) & ~15u); }

static slm2_status broken(slm2_error *error, const char *what, uint64_t value, uint64_t at) {
  return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, "ring", what, SLM2_NO_OFFSET, "%u at byte %u of the ring cannot be", value,
                   at);
}

/* --- reading -------------------------------------------------------------------- */

/* The head never goes back, and is never more than a ring ahead of what was read. */
static slm2_status look(slm2_web_reader *r, slm2_error *error) {
  uint32_t head = atomic_load_explicit(slm2_web_word(SLM2_WORD_COMMAND_HEAD), memory_order_acquire);
  uint32_t waiting = head - r->tail;
  if (waiting > RING || waiting % HEAD != 0 || waiting < r->head - r->tail) return broken(error, "command head", head, r->tail);
  r->head = head;
  return SLM2_OK;
}

static slm2_status check(const slm2_web_reader *r, const slm2_web_record *c, uint32_t sequence, slm2_error *error) {
  const uint32_t at = r->tail % RING, waiting = r->head - r->tail;
  if (sequence != r->sequence) return broken(error, "command sequence", sequence, at);
  if (c->n > SLM2_WEB_PAYLOAD_MAX || c->size > waiting || c->size > RING - at) return broken(error, "command length", c->n, at);
  if (c->op > SLM2_COMMAND_CLOSE) return broken(error, "command op", c->op, at);
  if (c->op == 0 && (c->size != RING - at || c->flags != 0 || c->request != 0)) return broken(error, "command filler", c->n, at);
  if ((c->flags & ~SLM2_FLAG_MORE) != 0) return broken(error, "command flags", c->flags, at);
  return SLM2_OK;
}

slm2_status slm2_web_reader_peek(slm2_web_reader *r, slm2_web_record *record, slm2_error *error) {
  SLM2_TRY(look(r, error));
  while (r->head != r->tail) {
    uint8_t head[HEAD];
    const uint32_t at = SLM2_WEB_COMMANDS + r->tail % RING;
    memcpy(head, slm2_web_at(at), sizeof head);
    slm2_web_record c = {.n = slm2_load_u32(head), .op = slm2_load_u16(head + 4), .flags = slm2_load_u16(head + 6),
                         .request = slm2_load_u32(head + 8), .at = at + HEAD};
    c.size = c.n <= SLM2_WEB_PAYLOAD_MAX ? record_size(c.n) : 0;
    SLM2_TRY(check(r, &c, slm2_load_u32(head + 12), error));
    if (c.op != 0) {
      *record = c;
      return SLM2_OK;
    }
    slm2_web_reader_take(r, &c);
  }
  return SLM2_NEED_MORE;
}

void slm2_web_reader_take(slm2_web_reader *r, const slm2_web_record *record) {
  r->tail += record->size;
  r->sequence++;
  atomic_store_explicit(slm2_web_word(SLM2_WORD_COMMAND_TAIL), r->tail, memory_order_release);
}

/* --- writing -------------------------------------------------------------------- */

slm2_status slm2_web_writer_room(slm2_web_writer *w, uint32_t *bytes, slm2_error *error) {
  uint32_t tail = atomic_load_explicit(slm2_web_word(SLM2_WORD_EVENT_TAIL), memory_order_acquire);
  if (w->head - tail > w->head - w->tail || tail % HEAD != 0) return broken(error, "event tail", tail, w->head);
  w->tail = tail;
  *bytes = RING - (w->head - tail);
  return SLM2_OK;
}

/* Leaves out the payload of a filler. */
static void put(slm2_web_writer *w, uint32_t op, uint32_t request, const uint8_t *payload, uint32_t n) {
  uint8_t *to = slm2_web_at(SLM2_WEB_EVENTS + w->head % RING);
  const uint32_t size = record_size(n);
  slm2_store_u32(to, n);
  slm2_store_u16(to + 4, (uint16_t)op);
  slm2_store_u16(to + 6, 0);
  slm2_store_u32(to + 8, request);
  slm2_store_u32(to + 12, w->sequence++);
  if (payload != NULL) {
    memcpy(to + HEAD, payload, n);
    memset(to + HEAD + n, 0, size - HEAD - n);
  }
  w->head += size;
}

slm2_status slm2_web_writer_put(slm2_web_writer *w, uint32_t op, uint32_t request, const uint8_t *payload, uint32_t n,
                                slm2_error *error) {
  uint32_t room = 0;
  SLM2_TRY(slm2_web_writer_room(w, &room, error));
  const uint32_t size = record_size(n), rest = RING - w->head % RING, skipped = size > rest ? rest : 0;
  if (n > SLM2_WEB_PAYLOAD_MAX) return broken(error, "event length", n, w->head % RING);
  if (skipped + size > room) return SLM2_NEED_MORE;
  if (skipped > 0) put(w, 0, 0, NULL, skipped - HEAD);
  put(w, op, request, payload, n);
  atomic_store_explicit(slm2_web_word(SLM2_WORD_EVENT_HEAD), w->head, memory_order_release);
  slm2_web_ring_bell(SLM2_WORD_EVENT_BELL);
  return SLM2_OK;
}
