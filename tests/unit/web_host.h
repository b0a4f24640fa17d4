/* tests/unit/web_host.h: a browser without a browser: the memory of a map as a lent block, and the page's side of the two
 * rings. The engine's compute workers are played by the caller's thread.
 */
#ifndef SLM2_WEB_TEST_HOST_H
#define SLM2_WEB_TEST_HOST_H

#include "base/bytes.h"
#include "tests/test.h"
#include "wasm/plan.h"
#include "wasm/ring.h"

/* --- what pool.c does in wasm ------------------------------------------------------ */

slm2_web_host slm2_web_native_host;
static uint32_t web_broken_stack; /* what slm2_web_broken_stack finds */

static void web_pool_run(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain) {
  const slm2_pool *pool = self;
  for (uint32_t at = 0, n = 0; at < units; at += grain, n++)
    job(context, n % pool->n_threads, at, at + (units - at < grain ? units - at : grain));
}
static slm2_pool web_pool = {.self = &web_pool, .run = web_pool_run};
const slm2_pool *slm2_web_pool(uint32_t n_threads) {
  web_pool.n_threads = n_threads;
  return &web_pool;
}
uint32_t slm2_web_broken_stack(uint32_t n_threads) {
  (void)n_threads;
  return web_broken_stack;
}

/* --- memory -------------------------------------------------------------------------- */

/* A fresh memory of n bytes, exactly: a sanitizer sees what goes beyond. */
static inline void web_lend(uint64_t n) {
  free(slm2_web_native_host.bytes);
  slm2_web_native_host.bytes = aligned_alloc(SLM2_WEB_PAGE, ((size_t)n + SLM2_WEB_PAGE - 1) & ~(size_t)(SLM2_WEB_PAGE - 1));
  if (slm2_web_native_host.bytes == NULL) exit(1);
  memset(slm2_web_native_host.bytes, 0, (size_t)n);
  slm2_web_native_host.n = n;
}
static inline void web_return(void) {
  free(slm2_web_native_host.bytes);
  slm2_web_native_host.bytes = NULL;
}
static inline uint32_t web_word(uint32_t word) { return atomic_load(slm2_web_word(word)); }
static inline void web_set(uint32_t word, uint32_t value) { atomic_store(slm2_web_word(word), value); }

/* --- the page's side of the rings ---------------------------------------------------- */

typedef struct web_page {
  uint32_t head, sequence;           /* of commands */
  uint32_t tail, event_sequence;     /* of events */
  uint32_t request;
} web_page;

typedef struct web_event {
  uint32_t op, request, n;
  uint8_t payload[SLM2_WEB_PAYLOAD_MAX];
} web_event;

static inline void web_raw_record(uint32_t at, uint32_t n, uint32_t op, uint32_t flags, uint32_t request, uint32_t sequence) {
  uint8_t *to = slm2_web_at(SLM2_WEB_COMMANDS + at);
  slm2_store_u32(to, n);
  slm2_store_u16(to + 4, (uint16_t)op);
  slm2_store_u16(to + 6, (uint16_t)flags);
  slm2_store_u32(to + 8, request);
  slm2_store_u32(to + 12, sequence);
}

/* One record; false when it does not fit. */
static inline int web_put(web_page *page, uint32_t op, uint32_t flags, uint32_t request, const uint8_t *payload, uint32_t n) {
  uint32_t size = 16 + ((n + 15) & ~15u), at = page->head % SLM2_WEB_RING_BYTES;
  uint32_t skip = size > SLM2_WEB_RING_BYTES - at ? SLM2_WEB_RING_BYTES - at : 0;
  if (page->head + skip + size - web_word(SLM2_WORD_COMMAND_TAIL) > SLM2_WEB_RING_BYTES) return 0;
  if (skip > 0) {
    web_raw_record(at, skip - 16, 0, 0, 0, page->sequence++);
    page->head += skip;
    at = 0;
  }
  web_raw_record(at, n, op, flags, request, page->sequence++);
  if (payload != NULL) memcpy(slm2_web_at(SLM2_WEB_COMMANDS + at + 16), payload, n);
  memset(slm2_web_at(SLM2_WEB_COMMANDS + at + 16 + n), 0, size - 16 - n);
  page->head += size;
  web_set(SLM2_WORD_COMMAND_HEAD, page->head);
  return 1;
}

/* The next event; false when there is none. Whatever a page has to check of it is checked. */
static inline int web_take(web_page *page, web_event *e) {
  while (page->tail != web_word(SLM2_WORD_EVENT_HEAD)) {
    const uint32_t waiting = web_word(SLM2_WORD_EVENT_HEAD) - page->tail, at = page->tail % SLM2_WEB_RING_BYTES;
    const uint8_t *from = slm2_web_at(SLM2_WEB_EVENTS + at);
    const uint32_t n = slm2_load_u32(from), size = 16 + ((n + 15) & ~15u);
    e->op = slm2_load_u16(from + 4);
    e->request = slm2_load_u32(from + 8);
    e->n = n;
    CHECK(waiting <= SLM2_WEB_RING_BYTES && size <= waiting && n <= SLM2_WEB_PAYLOAD_MAX && at + size <= SLM2_WEB_RING_BYTES);
    CHECK(slm2_load_u32(from + 12) == page->event_sequence++ && slm2_load_u16(from + 6) == 0 && e->op <= SLM2_EVENT_CLOSED);
    CHECK(e->op != 0 || at + size == SLM2_WEB_RING_BYTES);
    memcpy(e->payload, from + 16, n);
    for (uint32_t i = n; e->op != 0 && i < size - 16; i++) CHECK(from[16 + i] == 0);
    page->tail += size;
    web_set(SLM2_WORD_EVENT_TAIL, page->tail);
    if (e->op != 0) return 1;
  }
  return 0;
}

#endif
