/* tests/test.h: what every unit test uses. A test program is one main() of tables and checks; it prints
 * one line "ok NAME: N checks" and exits 0, or prints each failure and exits 1. It is run from the
 * project's root. No clock, no network, no sleep; seeds are printed.
 */
#ifndef SLM2_TEST_H
#define SLM2_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long test_checks, test_failures;

/* Counts a check; on failure prints where and what. Returns whether it held. */
#define CHECK(cond) test_check((cond), __FILE__, __LINE__, #cond, "")
/* The same with a label of the table row. */
#define CHECK_CASE(cond, label) test_check((cond), __FILE__, __LINE__, #cond, (label))
static inline int test_check(int ok, const char *file, int line, const char *what, const char *label) {
  test_checks++;
  if (ok) return 1;
  if (++test_failures <= 50) printf("FAIL %s:%d: %s%s%s\n", file, line, what, *label ? " in " : "", label);
  return 0;
}

/* Whole file, NUL-terminated, malloc'ed; exits when it cannot be read. */
static inline char *test_read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
    printf("FAIL cannot read %s\n", path);
    exit(1);
  }
  long size = ftell(f);
  rewind(f);
  char *text = malloc((size_t)size + 1);
  if (text == NULL || fread(text, 1, (size_t)size, f) != (size_t)size) exit(1);
  fclose(f);
  text[size] = 0;
  if (n != NULL) *n = (size_t)size;
  return text;
}

/* SplitMix64: reproducible test inputs. */
static inline uint64_t test_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static inline int test_end(const char *name) {
  if (test_failures != 0) {
    printf("FAIL %s: %lu of %lu checks\n", name, test_failures, test_checks);
    return 1;
  }
  if (test_checks == 0) {
    printf("FAIL %s: no check ran\n", name);
    return 1;
  }
  printf("ok %s: %lu checks\n", name, test_checks);
  return 0;
}

#endif
