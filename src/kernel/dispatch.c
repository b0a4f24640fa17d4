/* kernel/dispatch.c: which backends this build has and which one computes. The choice is made by name or once, by what
 * the CPU can do; it never changes a bit, only the time [K11]. */
#include "slm2/backend.h"
#include "base/bytes.h"
#include "base/error.h"
#include "kernel/kernel.h"

/* In rising order of preference. */
static const slm2_backend *const backends[] = {&slm2_backend_oracle};
#define N_BACKENDS ((uint32_t)(sizeof backends / sizeof backends[0]))

const slm2_backend *slm2_backend_at(uint32_t i) { return i < N_BACKENDS ? backends[i] : NULL; }

const slm2_backend *slm2_backend_default(void) { return backends[N_BACKENDS - 1]; }

const char *slm2_backend_name(const slm2_backend *backend) { return backend->name; }

static bool same(const char *a, const char *b) {
  while (*a != 0 && *a == *b) a++, b++;
  return *a == *b;
}

slm2_status slm2_backend_find(const char *name, const slm2_backend **out, slm2_error *error) {
  if (same(name, "auto")) {
    *out = slm2_backend_default();
    return SLM2_OK;
  }
  for (uint32_t i = 0; i < N_BACKENDS; i++) {
    if (!same(name, backends[i]->name)) continue;
    *out = backends[i];
    return SLM2_OK;
  }
  char list[128];
  size_t n = 0;
  for (uint32_t i = 0; i < N_BACKENDS; i++) {
    for (const char *p = ", "; *p != 0 && n + 1 < sizeof list; p++) list[n++] = *p;
    for (const char *p = backends[i]->name; *p != 0 && n + 1 < sizeof list; p++) list[n++] = *p;
  }
  list[n] = 0;
  return slm2_fail(error, SLM2_E_ARGUMENT, "backend", name, SLM2_NO_OFFSET, "no such backend here; there are: auto%s", list);
}
