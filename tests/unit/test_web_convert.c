/* tests/unit/test_web_convert.c: a GGUF converted through the mailbox gives the bytes of slm2_convert_gguf; the store is only
 * given addresses of its own part of the memory; failures, cancels and noise in the mailbox end the conversion by name. */
#include "tests/unit/gguf_file.h"
#include "tests/unit/web_host.h"

#define TIED "tests/data/gguf/tied-q8_0.gguf"
enum { ASKED = 1, ANSWERED = 2, FAILED = 3 };

/* The store: answers when the core waits. */
static struct {
  const uint8_t *gguf;
  size_t n_gguf, n_out;
  uint8_t out[1 << 20];
  uint32_t asked, fault_at, fault_state; /* question number fault_at is answered with this state */
  uint32_t cancel_at, idle, reads, writes, phases[5];
} store;

static uint64_t mail_u64(uint32_t word) { return web_word(word) | (uint64_t)web_word(word + 1) << 32; }

static void answer(slm2_web_atomic *word, uint32_t value) {
  CHECK(word == slm2_web_word(SLM2_WORD_MAIL_STATE) && value == ASKED && atomic_load(word) == ASKED);
  if (store.idle++ % 3 == 0) return; /* the store is slow: a wait ends without an answer */
  const uint32_t op = web_word(SLM2_WORD_MAIL_OP), at = web_word(SLM2_WORD_MAIL_ADDRESS), n = web_word(SLM2_WORD_MAIL_BYTES);
  const uint64_t offset = mail_u64(SLM2_WORD_MAIL_OFFSET);
  if (store.asked == store.cancel_at) web_set(SLM2_WORD_CANCEL, 1);
  if (store.asked++ == store.fault_at) {
    atomic_store(word, store.fault_state);
    return;
  }
  if (op == 3) {
    CHECK(mail_u64(SLM2_WORD_MAIL_DONE) <= mail_u64(SLM2_WORD_MAIL_TOTAL) && web_word(SLM2_WORD_MAIL_PHASE) <= 4);
    store.phases[web_word(SLM2_WORD_MAIL_PHASE)]++;
  } else {
    CHECK(at >= SLM2_WEB_COMMANDS && (uint64_t)at + n <= slm2_web_native_host.n);
    if (op == 1) {
      CHECK(offset <= store.n_gguf && n <= store.n_gguf - offset && ++store.reads);
      memcpy(slm2_web_at(at), store.gguf + offset, n);
    } else {
      CHECK(op == 2 && offset + n <= sizeof store.out && ++store.writes);
      memcpy(store.out + offset, slm2_web_at(at), n);
      if (offset + n > store.n_out) store.n_out = (size_t)offset + n;
    }
  }
  atomic_store(word, ANSWERED);
}

static slm2_status run(uint64_t memory) {
  uint32_t fault_at = store.fault_at, fault_state = store.fault_state, cancel_at = store.cancel_at;
  const uint8_t *gguf = store.gguf;
  size_t n = store.n_gguf;
  memset(&store, 0, sizeof store);
  store.gguf = gguf, store.n_gguf = n;
  store.fault_at = fault_at, store.fault_state = fault_state, store.cancel_at = cancel_at;
  web_lend(memory);
  slm2_web_native_host.wait = answer;
  return slm2_web_convert(n);
}

#define MEMORY (16u << 20)

static void test_same_bytes(void) {
  memory_file m;
  static memory_sink made;
  slm2_convert_report report;
  slm2_error error;
  const slm2_convert_options options = {.form = SLM2_FORM_PANELS};
  store.fault_at = store.cancel_at = UINT32_MAX;
  CHECK_CASE(run(MEMORY) == SLM2_OK, slm2_web_failure()->message);
  uint8_t *copy = malloc(store.n_gguf);
  memcpy(copy, store.gguf, store.n_gguf);
  CHECK(gguf_convert(memory_input(&m, copy, store.n_gguf), &made, &options, &report, &error) == SLM2_OK);
  CHECK(store.n_out == made.n && memcmp(store.out, made.bytes, made.n) == 0 && store.reads > 0 && store.writes > 0);
  CHECK(store.phases[3] > 0 && store.phases[0] == 0);
  const uint8_t *result = slm2_web_at(slm2_web_result());
  CHECK(memcmp(result, report.identity, 32) == 0 && slm2_load_u64(result + 32) == made.n);
  CHECK(slm2_load_u64(result + 40) == report.zero_blocks && slm2_load_u32(result + 48) == report.chat_template_unknown);
  CHECK(web_word(SLM2_WORD_HEARTBEAT) >= store.asked);
  free(copy);
  free(made.bytes);
}

/* Every question fails once, or is the moment of a cancel, or is answered with what is no state. */
static void test_faults(void) {
  store.fault_at = store.cancel_at = UINT32_MAX;
  CHECK(run(MEMORY) == SLM2_OK);
  const uint32_t questions = store.asked;
  for (uint32_t i = 0; i < questions; i++) {
    store.fault_at = i;
    store.fault_state = FAILED;
    slm2_status status = run(MEMORY); /* nobody minds a progress that was not taken */
    CHECK(status == SLM2_E_IO || (status == SLM2_OK && store.asked == questions));
    store.fault_state = 77;
    status = run(MEMORY);
    CHECK(status == SLM2_E_INTERNAL_INVARIANT || (status == SLM2_OK && store.asked == questions));
    store.fault_at = UINT32_MAX;
    store.cancel_at = i;
    status = run(MEMORY);
    CHECK(status == SLM2_E_CANCELLED || (status == SLM2_OK && i == questions - 1));
    store.cancel_at = UINT32_MAX;
  }
}

static void test_memory(void) {
  store.fault_at = store.cancel_at = UINT32_MAX;
  CHECK(run(SLM2_WEB_CONTROL) == SLM2_E_MEMORY && run(SLM2_WEB_COMMANDS + 131071) == SLM2_E_MEMORY);
  CHECK(run(SLM2_WEB_COMMANDS + 131072) == SLM2_E_MEMORY && store.writes == 0);
  const uint64_t need = slm2_web_failure()->offset; /* and in the message */
  char text[32];
  snprintf(text, sizeof text, "%llu bytes", (unsigned long long)need);
  CHECK(strncmp(slm2_web_failure()->message, text, strlen(text)) == 0);
  CHECK(run(need - 1) == SLM2_E_MEMORY && run(need) == SLM2_OK);
  store.n_gguf -= 100; /* a file that ends too early */
  CHECK(run(MEMORY) == SLM2_E_FORMAT && store.writes == 0);
  store.n_gguf = 3;
  CHECK(run(MEMORY) == SLM2_E_FORMAT);
}

int main(void) {
  store.gguf = (const uint8_t *)test_read_file(TIED, &store.n_gguf);
  test_same_bytes();
  test_faults();
  test_memory();
  free((void *)(uintptr_t)store.gguf);
  web_return();
  return test_end("web_convert");
}
