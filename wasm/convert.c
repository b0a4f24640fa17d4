/* wasm/convert.c: slm2_web_convert: a GGUF to an SLM2 file, read and written by the store, which answers in the mailbox of the
 * control block [docs/PROTOCOL.md]. The store is only ever given addresses behind the control block: what lies elsewhere (on
 * the stack) goes through a small block there.
 */
#include "convert/convert.h"

#include "base/bytes.h"
#include "base/error.h"
#include "wasm/host.h"

enum { MAIL_FREE = 0, MAIL_ASKED = 1, MAIL_ANSWERED = 2, MAIL_FAILED = 3 };
enum { OP_READ = 1, OP_WRITE = 2, OP_PROGRESS = 3 };
enum { PHASE_COMPARE = 1, PHASE_HASH, PHASE_CONVERT, PHASE_VERIFY };

#define BLOCK SLM2_WEB_COMMANDS /* where the rings are on the memory of a map */
#define BLOCK_BYTES 65536u
#define ARENA (BLOCK + BLOCK_BYTES)
#define RESULT (SLM2_WEB_CONTROL + 128u) /* behind the mailbox */

static const char operation[] = "convert";

static void put(uint32_t word, uint32_t value) { atomic_store_explicit(slm2_web_word(word), value, memory_order_relaxed); }
static void put_u64(uint32_t word, uint64_t value) {
  put(word, (uint32_t)value);
  put(word + 1, (uint32_t)(value >> 32));
}
static bool cancelled(void) { return atomic_load_explicit(slm2_web_word(SLM2_WORD_CANCEL), memory_order_relaxed) != 0; }

/* Asks and waits; the words of the question are set. */
static slm2_status ask(uint32_t op, slm2_error *error) {
  slm2_web_atomic *state = slm2_web_word(SLM2_WORD_MAIL_STATE);
  uint32_t found;
  put(SLM2_WORD_MAIL_OP, op);
  atomic_store(state, MAIL_ASKED);
  slm2_web_wake(state);
  while ((found = atomic_load(state)) == MAIL_ASKED) {
    if (cancelled()) return slm2_fail(error, SLM2_E_CANCELLED, operation, NULL, SLM2_NO_OFFSET, "cancelled");
    atomic_fetch_add_explicit(slm2_web_word(SLM2_WORD_HEARTBEAT), 1, memory_order_relaxed);
    slm2_web_wait(state, MAIL_ASKED);
  }
  if (cancelled()) return slm2_fail(error, SLM2_E_CANCELLED, operation, NULL, SLM2_NO_OFFSET, "cancelled");
  if (found == MAIL_ANSWERED) return SLM2_OK;
  if (found == MAIL_FAILED)
    return slm2_fail(error, SLM2_E_IO, operation, NULL, SLM2_NO_OFFSET, op == OP_READ ? "the file cannot be read" :
                     "the new file cannot be written");
  return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, operation, "mailbox", SLM2_NO_OFFSET, "%u is no state", (uint64_t)found);
}

static slm2_status transfer(uint32_t op, uint64_t offset, uint32_t at, size_t n, slm2_error *error) {
  put_u64(SLM2_WORD_MAIL_OFFSET, offset);
  put(SLM2_WORD_MAIL_ADDRESS, at);
  put(SLM2_WORD_MAIL_BYTES, (uint32_t)n);
  return ask(op, error);
}

/* Whether the store may be given this address. */
static bool in_arena(const void *p) {
  uintptr_t low = (uintptr_t)slm2_web_at(ARENA);
  return (uintptr_t)p >= low && (uintptr_t)p - low < slm2_web_memory_bytes() - ARENA;
}

static slm2_status read(void *user, uint64_t offset, void *buffer, size_t n, slm2_error *error) {
  (void)user;
  if (in_arena(buffer)) return transfer(OP_READ, offset, slm2_web_address(buffer), n, error);
  for (size_t done = 0; done < n;) {
    size_t piece = n - done < BLOCK_BYTES ? n - done : BLOCK_BYTES;
    SLM2_TRY(transfer(OP_READ, offset + done, BLOCK, piece, error));
    memcpy((uint8_t *)buffer + done, slm2_web_at(BLOCK), piece);
    done += piece;
  }
  return SLM2_OK;
}

static slm2_status write(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *error) {
  (void)user;
  if (in_arena(bytes)) return transfer(OP_WRITE, offset, slm2_web_address(bytes), n, error);
  for (size_t done = 0; done < n;) {
    size_t piece = n - done < BLOCK_BYTES ? n - done : BLOCK_BYTES;
    memcpy(slm2_web_at(BLOCK), (const uint8_t *)bytes + done, piece);
    SLM2_TRY(transfer(OP_WRITE, offset + done, BLOCK, piece, error));
    done += piece;
  }
  return SLM2_OK;
}

static uint32_t phase_number(const char *phase) {
  switch (phase[0]) {
  case 'c': return phase[3] == 'p' ? PHASE_COMPARE : PHASE_CONVERT;
  case 'h': return PHASE_HASH;
  default: return PHASE_VERIFY;
  }
}

static void progress(void *user, const char *phase, uint64_t done, uint64_t total) {
  (void)user;
  put_u64(SLM2_WORD_MAIL_DONE, done);
  put_u64(SLM2_WORD_MAIL_TOTAL, total);
  put(SLM2_WORD_MAIL_PHASE, phase_number(phase));
  (void)!ask(OP_PROGRESS, NULL); /* a cancel is seen by the next read or write */
}

static void store_result(const slm2_convert_report *report) {
  uint8_t *to = slm2_web_at(RESULT);
  memcpy(to, report->identity, 32);
  slm2_store_u64(to + 32, 8 + report->header.header_bytes + report->header.data_bytes);
  slm2_store_u64(to + 40, report->zero_blocks);
  slm2_store_u32(to + 48, report->chat_template_unknown);
}

uint32_t slm2_web_result(void) { return RESULT; }

uint32_t slm2_web_convert(uint64_t gguf_bytes) {
  slm2_error *error = slm2_web_failure();
  const uint64_t end = slm2_web_memory_bytes();
  const slm2_input input = {.name = "the GGUF file", .bytes = gguf_bytes, .read = read};
  const slm2_sink sink = {.write = write, .progress = progress};
  const slm2_convert_options options = {.form = SLM2_FORM_PANELS};
  slm2_convert_report report;
  size_t need;
  if (slm2_web_heap_base() > SLM2_WEB_CONTROL || end < ARENA + BLOCK_BYTES)
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET, "memory has %u bytes; the mailbox alone ends at %u",
                     end, (uint64_t)ARENA + BLOCK_BYTES);
  SLM2_TRY(slm2_convert_gguf_bytes(&input, &need, error));
  if (need > end - ARENA)
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, need + ARENA, "%u bytes of memory are needed, %u are there",
                     (uint64_t)need + ARENA, end);
  SLM2_TRY(slm2_convert_gguf(&input, &sink, &options, slm2_web_at(ARENA), need, &report, error));
  store_result(&report);
  return SLM2_OK;
}
