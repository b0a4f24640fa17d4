/* tests/wasm/hosted/hosted.c: tests/kernelcheck as a WebAssembly module: what it calls of a C library and of platform.h.
 * Imports: write shows bytes, now is a clock in milliseconds. tests/wasm/kernelcheck.mjs and a browser test drive it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/platform.h"
#include "wasm/host.h"

void host_write(const char *text, size_t n) __attribute__((import_module("env"), import_name("write")));
double host_now(void) __attribute__((import_module("env"), import_name("now")));
int main(int argc, char **argv);

/* --- memory: a pile; what is freed goes when everything above it has -------------------------- */

typedef struct block {
  _Alignas(16) struct block *below;
  uint8_t *end;
  bool freed;
} block;
static block *top;

void *malloc(size_t n) {
  uint8_t *at = top != NULL ? top->end : slm2_web_at(slm2_web_heap_base());
  if (n > slm2_web_memory_bytes() - sizeof(block) - 16 - slm2_web_address(at)) return NULL;
  block *b = (block *)(void *)at;
  *b = (block){.below = top, .end = at + (sizeof *b + n + 15) / 16 * 16};
  top = b;
  return b + 1;
}
void free(void *p) {
  if (p == NULL) return;
  ((block *)p - 1)->freed = true;
  while (top != NULL && top->freed) top = top->below;
}
_Noreturn void exit(int code) {
  (void)code;
  __builtin_trap();
}

/* --- text -------------------------------------------------------------------------------------- */

size_t strlen(const char *text) {
  size_t n = 0;
  while (text[n] != 0) n++;
  return n;
}
int strcmp(const char *a, const char *b) {
  while (*a != 0 && *a == *b) a++, b++;
  return (uint8_t)*a - (uint8_t)*b;
}
unsigned long long strtoull(const char *text, char **end, int base) {
  unsigned long long value = 0;
  (void)end, (void)base;
  for (; *text >= '0' && *text <= '9'; text++) value = 10 * value + (unsigned long long)(*text - '0');
  return value;
}

typedef struct writer {
  char *to;
  size_t n, at;
} writer;
static void put(writer *w, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++, w->at++)
    if (w->at + 1 < w->n) w->to[w->at] = text[i];
}
static size_t digits(char out[24], uint64_t value) {
  char backwards[24];
  size_t n = 0, i = 0;
  do backwards[n++] = (char)('0' + value % 10);
  while ((value /= 10) != 0);
  while (n > 0) out[i++] = backwards[--n];
  return i;
}

/* %[-][width]s, %d, %u with l or ll, %.2f. */
static void format_into(writer *w, const char *f, va_list args) {
  for (; *f != 0; f++) {
    if (*f != '%') {
      put(w, f, 1);
      continue;
    }
    size_t width = 0, longs = 0, n = 0;
    char number[48];
    const char *text = number;
    f += f[1] == '-' ? 2 : 1;
    for (; *f >= '0' && *f <= '9'; f++) width = 10 * width + (size_t)(*f - '0');
    if (*f == '.') f += 2; /* two digits are all that is asked for */
    for (; *f == 'l'; f++) longs++;
    if (*f == 's') {
      text = va_arg(args, const char *);
      n = strlen(text);
    } else if (*f == 'f') {
      uint64_t hundredths = (uint64_t)(va_arg(args, double) * 100.0 + 0.5);
      n = digits(number, hundredths / 100);
      number[n++] = '.';
      number[n++] = (char)('0' + hundredths / 10 % 10);
      number[n++] = (char)('0' + hundredths % 10);
    } else if (*f == 'u' || *f == 'd') {
      uint64_t value = longs == 2 ? va_arg(args, uint64_t) : va_arg(args, uint32_t);
      if (*f == 'd' && (int32_t)value < 0) value = (uint64_t)0 - (uint64_t)(int32_t)value, number[n++] = '-';
      n += digits(number + n, value);
    } else {
      __builtin_trap();
    }
    put(w, text, n);
    for (; n < width; n++) put(w, " ", 1);
  }
  if (w->n > 0) w->to[w->at < w->n ? w->at : w->n - 1] = 0;
}

int snprintf(char *to, size_t n, const char *format, ...) {
  writer w = {to, n, 0};
  va_list args;
  va_start(args, format);
  format_into(&w, format, args);
  va_end(args);
  return (int)w.at;
}
int printf(const char *format, ...) {
  char text[1024];
  writer w = {text, sizeof text, 0};
  va_list args;
  va_start(args, format);
  format_into(&w, format, args);
  va_end(args);
  host_write(text, strlen(text));
  return (int)w.at;
}
int fflush(FILE *file) {
  (void)file;
  return 0;
}

/* --- platform.h -------------------------------------------------------------------------------- */

uint64_t slm2_clock_ns(void) { return (uint64_t)(host_now() * 1e6); }

slm2_status slm2_memory_reserve(uint64_t bytes, void **out, slm2_error *error) {
  (void)error;
  uint8_t *p = malloc((size_t)bytes + 64);
  if (p == NULL) return SLM2_E_MEMORY;
  *out = p + (64 - slm2_web_address(p) % 64) % 64;
  memset(*out, 0, (size_t)bytes);
  return SLM2_OK;
}
void slm2_memory_release(void *mem, uint64_t bytes) { (void)mem, (void)bytes; } /* at most a few, and then all is over */

static slm2_mapping model; /* the only file */
uint32_t SLM2_EXPORT(lend_model)(uint32_t n);
uint32_t lend_model(uint32_t n) {
  slm2_error error;
  void *bytes;
  if (slm2_memory_reserve(n, &bytes, &error) != SLM2_OK) return 0;
  model = (slm2_mapping){.bytes = bytes, .n = n};
  return slm2_web_address(bytes);
}
slm2_status slm2_map(const char *path, slm2_mapping *out, slm2_error *error) {
  (void)path, (void)error;
  *out = model;
  return SLM2_OK;
}
void slm2_unmap(slm2_mapping *mapping) { (void)mapping; }

/* kernelcheck's exit code: with --bench, or with the model when one was lent. */
int SLM2_EXPORT(kernelcheck)(bool bench);
int kernelcheck(bool bench) {
  static char name[] = "kernelcheck", option[] = "--bench", file[] = "models/demo.slm2";
  char *argv[] = {name, bench ? option : file, NULL};
  return main(bench || model.n != 0 ? 2 : 1, argv);
}
