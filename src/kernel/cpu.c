/* kernel/cpu.c: CPUID, and XGETBV for what the operating system saves when it switches tasks: without that, a register
 * the processor has is one a program may not use. Bits: Intel SDM volume 2, CPUID leaves 1 and 7; AMD APM volume 3. */
#include "kernel/cpu.h"

#if defined(__x86_64__)

typedef struct leaf { uint32_t a, b, c, d; } leaf;

static leaf cpuid(uint32_t number) {
  leaf l;
  __asm__ volatile("cpuid" : "=a"(l.a), "=b"(l.b), "=c"(l.c), "=d"(l.d) : "a"(number), "c"(0));
  return l;
}

static uint32_t saved_registers(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static uint32_t has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

uint32_t slm2_cpu_features(void) {
  const uint32_t ssse3_sse41 = 1u << 9 | 1u << 19, osxsave_avx_f16c = 1u << 27 | 1u << 28 | 1u << 29;
  const uint32_t avx2 = 1u << 5, avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, vnni = 1u << 11;
  const uint32_t ymm = 0x6, zmm = 0xe6; /* XCR0: SSE and AVX state; masks and both parts of the zmm registers */
  const uint32_t top = cpuid(0).a;
  const leaf one = cpuid(1);
  if (!has(one.c, ssse3_sse41)) return 0;
  if (top < 7 || !has(one.c, osxsave_avx_f16c) || !has(saved_registers(), ymm)) return SLM2_CPU_SSE41;
  const leaf seven = cpuid(7);
  if (!has(seven.b, avx2)) return SLM2_CPU_SSE41;
  if (!has(seven.b, avx512) || !has(saved_registers(), zmm)) return SLM2_CPU_SSE41 | SLM2_CPU_AVX2;
  return SLM2_CPU_SSE41 | SLM2_CPU_AVX2 | SLM2_CPU_AVX512 | (has(seven.c, vnni) ? SLM2_CPU_AVX512_VNNI : 0u);
}

#else

uint32_t slm2_cpu_features(void) { return 0; }

#endif
