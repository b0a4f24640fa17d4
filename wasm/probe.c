/* wasm/probe.c: what this module was compiled with (R115). An engine that has compiled the module supports all of it; which
 * module to load the page finds out beforehand, by WebAssembly.validate. */
#include "wasm/web.h"

enum {
  THREADS = 1,
  BULK_MEMORY = 2,
  SIMD128 = 4,
  RELAXED_SIMD = 8,
  SATURATING_CONVERSION = 16,
  SIGN_EXTENSION = 32,
  MUTABLE_GLOBALS = 64,
};

uint32_t probe_features(void) {
  uint32_t features = 0;
#ifdef __wasm_atomics__
  features |= THREADS;
#endif
#ifdef __wasm_bulk_memory__
  features |= BULK_MEMORY;
#endif
#ifdef __wasm_simd128__
  features |= SIMD128;
#endif
#ifdef __wasm_relaxed_simd__
  features |= RELAXED_SIMD;
#endif
#ifdef __wasm_nontrapping_fptoint__
  features |= SATURATING_CONVERSION;
#endif
#ifdef __wasm_sign_ext__
  features |= SIGN_EXTENSION;
#endif
#ifdef __wasm_mutable_globals__
  features |= MUTABLE_GLOBALS;
#endif
  return features;
}
