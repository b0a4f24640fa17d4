/* wasm/gate.c: platform/threads.h, and the little of platform.h that platform/pool.c needs, on WebAssembly's atomics. A thread
 * does not start here: its body is left in a slot, until a worker comes for it. Every sleep is slm2_web_wait's: it ends after a
 * quarter of a second and looks again. Long ones are at the bells of the control block, where the page can end them: it stores
 * quit, then raises a bell; whoever reads a bell, then looks for quit, then sleeps misses neither. Only workers may sleep: in a
 * page's main thread the instruction traps.
 */
#include "wasm/gate.h"

#include "base/bytes.h"
#include "base/error.h"
#include "wasm/host.h"

/* --- gates ------------------------------------------------------------------------ */

enum { OPEN, LOCKED, CONTENDED };

struct slm2_gate {
  _Atomic(bool) taken;
  slm2_web_atomic lock; /* CONTENDED: somebody may sleep at it */
};
static slm2_gate gates[2]; /* a pool's: where its workers wait for a round, and its caller for the end of one */

static uint32_t bell_of(const slm2_gate *gate) { return SLM2_WORD_START_BELL + (uint32_t)(gate - gates); }

slm2_gate *slm2_gate_create(void) {
  for (uint32_t i = 0; i < 2; i++)
    if (!atomic_exchange(&gates[i].taken, true)) return &gates[i];
  return NULL;
}
void slm2_gate_destroy(slm2_gate *gate) {
  if (gate != NULL) atomic_store(&gate->taken, false);
}

void slm2_gate_lock(slm2_gate *gate) {
  uint32_t found = OPEN;
  if (atomic_compare_exchange_strong(&gate->lock, &found, LOCKED)) return;
  while (atomic_exchange(&gate->lock, CONTENDED) != OPEN) slm2_web_wait(&gate->lock, CONTENDED);
}
void slm2_gate_unlock(slm2_gate *gate) {
  if (atomic_exchange(&gate->lock, OPEN) == CONTENDED) slm2_web_wake(&gate->lock);
}
void slm2_gate_wait(slm2_gate *gate) {
  slm2_web_atomic *bell = slm2_web_word(bell_of(gate));
  uint32_t seen = atomic_load(bell);
  slm2_gate_unlock(gate);
  slm2_web_heed_quit();
  slm2_web_wait(bell, seen);
  slm2_gate_lock(gate);
}
void slm2_gate_wake(slm2_gate *gate) { slm2_web_ring_bell(bell_of(gate)); }

/* --- threads ------------------------------------------------------------------------ */

enum { FREE, OFFERED, ENTERED, LEFT };

struct slm2_thread {
  slm2_web_atomic state;
  void (*body)(void *);
  void *argument;
};
static slm2_thread threads[SLM2_WEB_THREADS_MAX - 1];

slm2_thread *slm2_thread_start(void (*body)(void *), void *argument) {
  for (uint32_t i = 0; i < SLM2_WEB_THREADS_MAX - 1; i++) {
    slm2_thread *t = &threads[i];
    if (atomic_load(&t->state) != FREE) continue;
    t->body = body;
    t->argument = argument;
    atomic_store(&t->state, OFFERED);
    slm2_web_ring_bell(SLM2_WORD_START_BELL);
    return t;
  }
  return NULL;
}

void slm2_gate_enter(uint32_t index) {
  slm2_thread *t = &threads[index - 1];
  uint32_t state = OFFERED, seen = atomic_load(slm2_web_word(SLM2_WORD_START_BELL));
  if (!atomic_compare_exchange_strong(&t->state, &state, ENTERED)) {
    if (!slm2_web_quits()) slm2_web_wait(slm2_web_word(SLM2_WORD_START_BELL), seen);
    return;
  }
  t->body(t->argument);
  atomic_store(&t->state, LEFT);
  slm2_web_wake(&t->state);
}

/* Nobody can enter any more, or has entered and left. */
void slm2_thread_join(slm2_thread *t) {
  uint32_t state = OFFERED;
  if (!atomic_compare_exchange_strong(&t->state, &state, FREE))
    while (atomic_load(&t->state) != LEFT) slm2_web_wait(&t->state, ENTERED);
  atomic_store(&t->state, FREE);
}

/* --- memory and processors -------------------------------------------------------------- */

/* Of platform/pool.c's one block: a lane of 64 bytes per thread and what they share. */
static _Alignas(64) uint8_t block[64 * SLM2_WEB_THREADS_MAX + 512];
static bool block_taken;

slm2_status slm2_memory_reserve(uint64_t bytes, void **out, slm2_error *error) {
  if (block_taken || bytes > sizeof block)
    return slm2_fail(error, SLM2_E_MEMORY, "threads", NULL, SLM2_NO_OFFSET, "a pool of %u bytes; %u are there", bytes,
                     (uint64_t)(block_taken ? 0 : sizeof block));
  block_taken = true;
  memset(block, 0, sizeof block);
  *out = block;
  return SLM2_OK;
}
void slm2_memory_release(void *mem, uint64_t bytes) {
  (void)mem, (void)bytes;
  block_taken = false;
}

/* The page asks for no more threads than it has processors: all of them may spin. */
slm2_cpus slm2_count_cpus(void) { return (slm2_cpus){SLM2_WEB_THREADS_MAX, SLM2_WEB_THREADS_MAX}; }
