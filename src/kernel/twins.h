/* kernel/twins.h: the backends beside the oracle, each in its folder, compiled with its own instruction set. */
#ifndef SLM2_KERNEL_TWINS_H
#define SLM2_KERNEL_TWINS_H

#include "kernel/kernel.h"

#if defined(__x86_64__)
#define SLM2_TWINS_X86
extern const slm2_backend slm2_backend_sse41, slm2_backend_avx2, slm2_backend_avx512, slm2_backend_avx512vnni;
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define SLM2_TWINS_ARM
extern const slm2_backend slm2_backend_neon;
#elif defined(__wasm_simd128__)
#define SLM2_TWINS_WASM
extern const slm2_backend slm2_backend_wasm128;
#ifdef __wasm_relaxed_simd__
#define SLM2_TWINS_WASM_RELAXED
extern const slm2_backend slm2_backend_wasm128relaxed;
#endif
#endif

#endif
