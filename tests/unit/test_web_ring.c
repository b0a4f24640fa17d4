/* tests/unit/test_web_ring.c: the two rings of docs/PROTOCOL.md: everything arrives once and in order across many turns of
 * the ring; a writer that waits loses nothing; what the other side may not write is refused before it is followed. */
#include "tests/unit/web_host.h"

#define RING SLM2_WEB_RING_BYTES

static web_page page;
static web_event event;

static void fresh(void) {
  web_lend(SLM2_WEB_STACKS);
  page = (web_page){0};
}

/* --- events ----------------------------------------------------------------------- */

static void test_events(void) {
  uint64_t random = 11;
  slm2_web_writer w = {0};
  slm2_error error;
  static uint8_t payload[SLM2_WEB_PAYLOAD_MAX];
  uint32_t written = 0, read = 0, full = 0;
  fresh();
  for (uint32_t round = 0; round < 3000; round++) {
    uint32_t n = (uint32_t)(test_random(&random) % (round % 7 == 0 ? SLM2_WEB_PAYLOAD_MAX + 1 : 300));
    for (uint32_t i = 0; i < n; i++) payload[i] = (uint8_t)(written + i);
    slm2_status status = slm2_web_writer_put(&w, 1 + written % 10, written, payload, n, &error);
    CHECK(status == SLM2_OK || status == SLM2_NEED_MORE);
    written += status == SLM2_OK;
    full += status == SLM2_NEED_MORE;
    if (status == SLM2_OK && test_random(&random) % 3 != 0) continue;
    for (uint64_t k = test_random(&random) % 6; k > 0 && web_take(&page, &event); k--) {
      CHECK(event.request == read && event.op == 1 + read % 10);
      for (uint32_t i = 0; i < event.n; i++)
        if (event.payload[i] != (uint8_t)(read + i)) CHECK(event.payload[i] == (uint8_t)(read + i));
      read++;
    }
  }
  while (web_take(&page, &event)) CHECK(event.request == read++);
  CHECK(read == written && full > 20 && page.tail > 20 * RING);
  CHECK(web_word(SLM2_WORD_EVENT_BELL) == written);
  CHECK(slm2_web_writer_put(&w, 1, 0, payload, SLM2_WEB_PAYLOAD_MAX + 1, &error) == SLM2_E_INTERNAL_INVARIANT);
}

/* Indices pass 2^32: the ring does not notice. */
static void test_wrap(void) {
  slm2_error error;
  fresh();
  const uint32_t begin = 0u - 2 * RING;
  slm2_web_writer w = {.head = begin, .tail = begin};
  page.tail = begin;
  web_set(SLM2_WORD_EVENT_HEAD, begin);
  web_set(SLM2_WORD_EVENT_TAIL, begin);
  static const uint8_t payload[1000] = {1};
  for (uint32_t i = 0; i < 2000; i++) {
    CHECK(slm2_web_writer_put(&w, 1, i, payload, 1000, &error) == SLM2_OK);
    CHECK(web_take(&page, &event) && event.request == i);
  }
  CHECK(w.head < RING * 3);
}

static void test_bad_tail(void) {
  slm2_error error;
  static const uint32_t bad[] = {8, 32, RING, 0xfffffff0u, 0u - RING, 0x80000000u};
  for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    fresh();
    slm2_web_writer w = {0};
    CHECK(slm2_web_writer_put(&w, 1, 0, NULL, 0, &error) == SLM2_OK); /* head is 16 */
    web_set(SLM2_WORD_EVENT_TAIL, bad[i]);
    CHECK(slm2_web_writer_put(&w, 1, 0, NULL, 0, &error) == SLM2_E_INTERNAL_INVARIANT);
    CHECK(strcmp(error.name, "event tail") == 0 && w.head == 16);
  }
  fresh();
  slm2_web_writer w = {0};
  uint32_t room;
  CHECK(slm2_web_writer_put(&w, 1, 0, NULL, 0, &error) == SLM2_OK);
  web_set(SLM2_WORD_EVENT_TAIL, 16);
  CHECK(slm2_web_writer_room(&w, &room, &error) == SLM2_OK && room == RING);
  web_set(SLM2_WORD_EVENT_TAIL, 0); /* it never goes back */
  CHECK(slm2_web_writer_room(&w, &room, &error) == SLM2_E_INTERNAL_INVARIANT);
}

/* --- commands --------------------------------------------------------------------- */

static void test_commands(void) {
  uint64_t random = 12;
  slm2_web_reader r = {0};
  slm2_web_record c;
  slm2_error error;
  static uint8_t payload[SLM2_WEB_PAYLOAD_MAX];
  uint32_t written = 0, read = 0;
  fresh();
  for (uint32_t round = 0; round < 3000; round++) {
    uint32_t n = (uint32_t)(test_random(&random) % (round % 5 == 0 ? SLM2_WEB_PAYLOAD_MAX + 1 : 300));
    memset(payload, (int)(written & 255), n);
    int put = web_put(&page, 1 + written % 6, written & 1, written + 1, payload, n);
    written += (uint32_t)put;
    if (put && test_random(&random) % 3 != 0) continue;
    for (uint64_t k = test_random(&random) % 6; k > 0 && slm2_web_reader_peek(&r, &c, &error) == SLM2_OK; k--, read++) {
      CHECK(c.op == 1 + read % 6 && c.flags == (read & 1) && c.request == read + 1);
      CHECK(c.n == 0 || (*slm2_web_at(c.at) == (read & 255) && *slm2_web_at(c.at + c.n - 1) == (read & 255)));
      slm2_web_reader_take(&r, &c);
    }
  }
  for (; slm2_web_reader_peek(&r, &c, &error) == SLM2_OK; read++) slm2_web_reader_take(&r, &c);
  CHECK(read == written && page.head > 20 * RING && web_word(SLM2_WORD_COMMAND_TAIL) == page.head);
}

typedef struct bad_record {
  const char *label, *name;
  uint32_t n, op, flags, request, sequence, head;
} bad_record;

static void test_bad_commands(void) {
  static const bad_record cases[] = {
      {"sequence", "command sequence", 0, 1, 0, 1, 7, 16},
      {"sequence -1", "command sequence", 0, 1, 0, 1, UINT32_MAX, 16},
      {"op 7", "command op", 0, 7, 0, 1, 0, 16},
      {"op 65535", "command op", 0, 65535, 0, 1, 0, 16},
      {"flags 2", "command flags", 0, 1, 2, 1, 0, 16},
      {"flags 65535", "command flags", 0, 1, 65535, 1, 0, 16},
      {"longer than what was written", "command length", 17, 1, 0, 1, 0, 32},
      {"longer than a payload", "command length", SLM2_WEB_PAYLOAD_MAX + 1, 1, 0, 1, 0, RING},
      {"longest", "command length", UINT32_MAX, 1, 0, 1, 0, RING},
      {"wraps to 0", "command length", UINT32_MAX - 14, 1, 0, 1, 0, RING},
      {"filler that fills nothing", "command filler", 16, 0, 0, 0, 0, 32},
      {"head not a multiple", "command head", 0, 1, 0, 1, 0, 24},
      {"head beyond the ring", "command head", 0, 1, 0, 1, 0, RING + 16},
      {"head before the tail", "command head", 0, 1, 0, 1, 0, 0xfffffff0u},
  };
  slm2_error error;
  slm2_web_record c;
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const bad_record *b = &cases[i];
    slm2_web_reader r = {0};
    fresh();
    web_raw_record(0, b->n, b->op, b->flags, b->request, b->sequence);
    web_set(SLM2_WORD_COMMAND_HEAD, b->head);
    CHECK_CASE(slm2_web_reader_peek(&r, &c, &error) == SLM2_E_INTERNAL_INVARIANT, b->label);
    CHECK_CASE(strcmp(error.name, b->name) == 0 && r.tail == 0 && web_word(SLM2_WORD_COMMAND_TAIL) == 0, b->label);
  }
  slm2_web_reader r = {.tail = RING - 32, .head = RING - 32}; /* across the end, and a filler with a request */
  fresh();
  web_raw_record(RING - 32, 17, 1, 0, 1, 0);
  web_set(SLM2_WORD_COMMAND_HEAD, RING + 64);
  CHECK(slm2_web_reader_peek(&r, &c, &error) == SLM2_E_INTERNAL_INVARIANT && strcmp(error.name, "command length") == 0);
  web_raw_record(RING - 32, 16, 0, 0, 9, 0);
  CHECK(slm2_web_reader_peek(&r, &c, &error) == SLM2_E_INTERNAL_INVARIANT && strcmp(error.name, "command filler") == 0);
  web_raw_record(RING - 32, 16, 0, 0, 0, 0);
  web_raw_record(0, 0, 5, 0, 3, 1);
  CHECK(slm2_web_reader_peek(&r, &c, &error) == SLM2_OK && c.op == 5 && c.request == 3);
  web_set(SLM2_WORD_COMMAND_HEAD, RING); /* it never goes back, not even to what is unread */
  CHECK(slm2_web_reader_peek(&r, &c, &error) == SLM2_E_INTERNAL_INVARIANT && strcmp(error.name, "command head") == 0);
}

int main(void) {
  test_events();
  test_wrap();
  test_bad_tail();
  test_commands();
  test_bad_commands();
  web_return();
  return test_end("web_ring");
}
