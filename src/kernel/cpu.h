/* kernel/cpu.h: which instruction sets this processor and its operating system let a program use. */
#ifndef SLM2_KERNEL_CPU_H
#define SLM2_KERNEL_CPU_H

#include <stdint.h>

enum { SLM2_CPU_SSE41 = 1, SLM2_CPU_AVX2 = 2 /* and F16C */, SLM2_CPU_AVX512 = 4 /* F, BW, DQ, VL */, SLM2_CPU_AVX512_VNNI = 8 };
/* A set of the above; each includes the ones before it. 0 where the processor is no x86-64: there the compiler's
 * flags decide, and a WebAssembly module that loads is proof of its own features. */
uint32_t slm2_cpu_features(void);

#endif
