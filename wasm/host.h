/* wasm/host.h: where the core meets its host: the memory it was lent, by address; the words of the control block; waiting.
 * Natively a unit test is the host and lends a block as that memory.
 */
#ifndef SLM2_WASM_HOST_H
#define SLM2_WASM_HOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include "wasm/web.h"

typedef _Atomic(uint32_t) slm2_web_atomic;

#define SLM2_WEB_SLEEP_NS 250000000ll /* no wait is longer: a host that ends a worker is not kept waiting */

#ifdef __wasm__
extern uint8_t __heap_base; /* where the module's own stack and data end */
static inline uint8_t *slm2_web_at(uint32_t address) { return (uint8_t *)(uintptr_t)address; }
static inline uint32_t slm2_web_address(const void *p) { return (uint32_t)(uintptr_t)p; }
static inline uint64_t slm2_web_memory_bytes(void) { return (uint64_t)__builtin_wasm_memory_size(0) * SLM2_WEB_PAGE; }
static inline uint32_t slm2_web_heap_base(void) { return (slm2_web_address(&__heap_base) + 63) & ~63u; }
static inline void slm2_web_wake(slm2_web_atomic *word) {
  __builtin_wasm_memory_atomic_notify((int *)(uintptr_t)word, UINT32_MAX);
}
/* Returns when word is not value, after a wake, or after a quarter of a second. A function of its own that reads no local after
 * the wait: the baseline compiler of V8 11.3 (node 20) loses those that it holds in registers. */
__attribute__((noinline)) static inline void slm2_web_wait(slm2_web_atomic *word, uint32_t value) {
  __builtin_wasm_memory_atomic_wait32((int *)(uintptr_t)word, (int)value, SLM2_WEB_SLEEP_NS);
}
#else
typedef struct slm2_web_host {
  uint8_t *bytes; /* address 0 */
  uint64_t n;
  void (*wait)(slm2_web_atomic *word, uint32_t value);
} slm2_web_host;
extern slm2_web_host slm2_web_native_host; /* the test's */
static inline uint8_t *slm2_web_at(uint32_t address) { return slm2_web_native_host.bytes + address; }
static inline uint32_t slm2_web_address(const void *p) {
  return (uint32_t)((uintptr_t)p - (uintptr_t)slm2_web_native_host.bytes);
}
static inline uint64_t slm2_web_memory_bytes(void) { return slm2_web_native_host.n; }
static inline uint32_t slm2_web_heap_base(void) { return SLM2_WEB_PAGE; }
static inline void slm2_web_wake(slm2_web_atomic *word) { (void)word; }
static inline void slm2_web_wait(slm2_web_atomic *word, uint32_t value) { slm2_web_native_host.wait(word, value); }
#endif

/* A word of the control block. */
static inline slm2_web_atomic *slm2_web_word(uint32_t index) {
  return (slm2_web_atomic *)(void *)slm2_web_at(SLM2_WEB_CONTROL + 4 * index);
}
static inline void slm2_web_ring_bell(uint32_t index) {
  atomic_fetch_add(slm2_web_word(index), 1);
  slm2_web_wake(slm2_web_word(index));
}

/* What slm2_web_error points to. */
slm2_error *slm2_web_failure(void);
/* SLM2_E_ARGUMENT by this name unless [at, at + n) lies between the heap and the end of memory, at a multiple of align. */
SLM2_NODISCARD slm2_status slm2_web_check_range(const char *name, uint32_t at, uint64_t n, uint32_t align);

#endif
