/* tests/fuzz/fuzz.h: what the libFuzzer targets share. A target is one file; it takes any bytes, must not crash under the
 * sanitizers, and states what must hold of whatever is accepted. tests/fuzz/seeds.sh makes the first inputs;
 * tests/data/fuzz/TARGET/ holds what was found, which every `make check` replays.
 */
#ifndef SLM2_TEST_FUZZ_H
#define SLM2_TEST_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slm2/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A broken promise ends the run, and libFuzzer writes the input. */
#define MUST(cond)                                                \
  do {                                                            \
    if (!(cond)) {                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);  \
      abort();                                                    \
    }                                                             \
  } while (0)

/* Memory of exactly this size, so that AddressSanitizer sees every byte beyond. Aligned to 64. Filled with 0xa5. */
static inline void *fuzz_memory(size_t n) {
  void *p = NULL;
  MUST(posix_memalign(&p, 64, n == 0 ? 1 : n) == 0);
  memset(p, 0xa5, n);
  return p;
}
static inline void *fuzz_copy(const void *bytes, size_t n) {
  void *p = fuzz_memory(n);
  if (n != 0) memcpy(p, bytes, n);
  return p;
}

/* A refusal has a code, one line of text and whole strings. */
static inline void fuzz_refusal(slm2_status status, const slm2_error *e) {
  MUST(status != SLM2_OK && e->code == status && strcmp(slm2_status_name(status), "UNKNOWN") != 0);
  MUST(status != SLM2_E_INTERNAL_INVARIANT);
  MUST(memchr(e->message, 0, sizeof e->message) != NULL && memchr(e->name, 0, sizeof e->name) != NULL);
  MUST(e->message[0] != 0 && strchr(e->message, '\n') == NULL && strchr(e->name, '\n') == NULL);
}

#endif
