/* kernel/dispatch.c: which backends this build has and which one computes. The choice is made by name or once, by what
 * the CPU can do; it never changes a bit, only the time [K11]. */
#include "base/bytes.h"
#include "base/error.h"
#include "kernel/cpu.h"
#include "kernel/twins.h"

typedef struct entry {
  const slm2_backend *backend;
  uint32_t needs;  /* of kernel/cpu.h */
  bool by_default; /* its kernelcheck passed on real hardware: tests/kernelcheck/hardware.txt */
} entry;

/* In rising order of preference. */
static const entry entries[] = {
    {&slm2_backend_oracle, 0, true},
#ifdef SLM2_TWINS_X86
    {&slm2_backend_sse41, SLM2_CPU_SSE41, true},
    {&slm2_backend_avx2, SLM2_CPU_AVX2, true},
    {&slm2_backend_avx512, SLM2_CPU_AVX512, true},
    {&slm2_backend_avx512vnni, SLM2_CPU_AVX512_VNNI, true},
#endif
#ifdef SLM2_TWINS_ARM
    {&slm2_backend_neon, 0, true},
#endif
#ifdef SLM2_TWINS_WASM /* an engine that has loaded the module has the instructions */
    {&slm2_backend_wasm128, 0, true},
#endif
#ifdef SLM2_TWINS_WASM_RELAXED
    {&slm2_backend_wasm128relaxed, 0, true},
#endif
};
#define N_ENTRIES ((uint32_t)(sizeof entries / sizeof entries[0]))

static bool usable(const entry *e) { return (slm2_cpu_features() & e->needs) == e->needs; }

const slm2_backend *slm2_backend_at(uint32_t i) {
  for (uint32_t k = 0; k < N_ENTRIES; k++) {
    if (!usable(&entries[k])) continue;
    if (i == 0) return entries[k].backend;
    i--;
  }
  return NULL;
}

const slm2_backend *slm2_backend_default(void) {
  uint32_t best = N_ENTRIES - 1;
  while (best > 0 && !(entries[best].by_default && usable(&entries[best]))) best--;
  return entries[best].backend;
}

const char *slm2_backend_name(const slm2_backend *backend) { return backend->name; }

static bool same(const char *a, const char *b) {
  while (*a != 0 && *a == *b) a++, b++;
  return *a == *b;
}

/* ", oracle, sse41, ..." */
static void list_usable(char *list, size_t size) {
  size_t n = 0;
  const slm2_backend *b;
  for (uint32_t i = 0; (b = slm2_backend_at(i)) != NULL; i++) {
    for (const char *p = ", "; *p != 0 && n + 1 < size; p++) list[n++] = *p;
    for (const char *p = b->name; *p != 0 && n + 1 < size; p++) list[n++] = *p;
  }
  list[n] = 0;
}

slm2_status slm2_backend_find(const char *name, const slm2_backend **out, slm2_error *error) {
  if (same(name, "auto")) {
    *out = slm2_backend_default();
    return SLM2_OK;
  }
  const char *reason = "no such backend in this build";
  for (uint32_t i = 0; i < N_ENTRIES; i++) {
    if (!same(name, entries[i].backend->name)) continue;
    if (usable(&entries[i])) {
      *out = entries[i].backend;
      return SLM2_OK;
    }
    reason = "this processor or its operating system lacks the instructions";
  }
  char list[128];
  list_usable(list, sizeof list);
  return slm2_fail(error, SLM2_E_ARGUMENT, "backend", name, SLM2_NO_OFFSET, "%s; there are: auto%s", reason, list);
}
