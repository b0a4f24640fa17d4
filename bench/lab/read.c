/* bench/lab/read.c: a module of the laboratory's own: how fast a browser's engine reads memory when it does nothing else, which is
 * what no kernel can exceed there: cli/bench_read.c in WebAssembly, whose widest loads are of 16 bytes. n is a multiple of 256. */
#include "wasm/web.h"

#define LINE 64u

typedef uint64_t words __attribute__((vector_size(16)));

/* Of all words of 8 bytes, modulo 2^32. */
static uint32_t total(const words *sum) {
  words all = sum[0] + sum[1] + sum[2] + sum[3];
  return (uint32_t)(all[0] + all[1]);
}

uint32_t SLM2_EXPORT(read_one)(const words *p, uint32_t n);
uint32_t read_one(const words *p, uint32_t n) {
  words sum[4] = {{0}};
  for (uint32_t left = n / LINE; left > 0; left--, p += 4)
    for (uint32_t i = 0; i < 4; i++) sum[i] += p[i];
  return total(sum);
}

/* From both halves in turns. */
uint32_t SLM2_EXPORT(read_two)(const words *p, uint32_t n);
uint32_t read_two(const words *p, uint32_t n) {
  const words *q = p + n / 2 / sizeof *p;
  words a[4] = {{0}}, b[4] = {{0}};
  for (uint32_t left = n / 2 / (2 * LINE); left > 0; left--, p += 8, q += 8) {
    for (uint32_t i = 0; i < 8; i++) a[i % 4] += p[i];
    for (uint32_t i = 0; i < 8; i++) b[i % 4] += q[i];
  }
  return total(a) + total(b);
}
