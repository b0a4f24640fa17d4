/* wasm/pool.c: the pool over compute workers, and their stacks. Contract: wasm/web.h. The linker puts the stack of the first
 * instance at address 0, where an overflow traps; those of compute workers lie in the middle of memory, so the lowest bytes
 * of each are a canary that tells of an overflow after the fact.
 */
#include "base/bytes.h"
#include "wasm/gate.h"
#include "wasm/host.h"

#define CANARY_BYTES 4096u
#define CANARY 0xa5a5a5a5a5a5a5a5u

static _Atomic(slm2_threads *) pool;
static _Atomic(bool) arrived[SLM2_WEB_THREADS_MAX]; /* its canary is in place */

static uint64_t *canary_of(uint32_t thread) {
  return (uint64_t *)(void *)slm2_web_at(slm2_web_stack(thread) - SLM2_WEB_STACK_BYTES);
}

uint32_t slm2_web_stack(uint32_t thread) { return SLM2_WEB_STACKS + thread * SLM2_WEB_STACK_BYTES; }

uint32_t slm2_web_broken_stack(uint32_t n_threads) {
  for (uint32_t i = 1; i < n_threads && i < SLM2_WEB_THREADS_MAX; i++) {
    if (!atomic_load(&arrived[i])) continue;
    const uint64_t *words = canary_of(i);
    uint64_t different = 0;
    for (uint32_t k = 0; k < CANARY_BYTES / sizeof *words; k++) different |= words[k] ^ CANARY;
    if (different != 0) return i;
  }
  return 0;
}

const slm2_pool *slm2_web_pool(uint32_t n_threads) {
  slm2_threads *threads = atomic_load(&pool);
  if (threads == NULL) {
    if (n_threads > SLM2_WEB_THREADS_MAX || slm2_threads_create(n_threads, &threads, NULL) != SLM2_OK) return NULL;
    atomic_store(&pool, threads);
  }
  const slm2_pool *found = slm2_threads_pool(threads);
  return found->n_threads == n_threads ? found : NULL;
}

bool slm2_web_quits(void) { return atomic_load(slm2_web_word(SLM2_WORD_QUIT)) != 0; }

void slm2_web_heed_quit(void) {
  slm2_threads *threads = atomic_load(&pool); /* NULL: a worker has come before slm2_web_pool is through */
  if (threads != NULL && slm2_web_quits()) slm2_threads_quit(threads);
}

void slm2_web_thread(uint32_t thread) {
  if (thread == 0 || thread >= SLM2_WEB_THREADS_MAX) return;
  if (!atomic_load(&arrived[thread])) {
    uint64_t *words = canary_of(thread);
    for (uint32_t k = 0; k < CANARY_BYTES / sizeof *words; k++) words[k] = CANARY;
    atomic_store(&arrived[thread], true);
    atomic_fetch_add(slm2_web_word(SLM2_WORD_INSIDE), 1);
  }
  while (!slm2_web_quits()) slm2_gate_enter(thread);
}
