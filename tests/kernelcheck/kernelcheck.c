/* tests/kernelcheck/kernelcheck.c: every slot of every backend this processor may use against the oracle, to the bit [D22]:
 * patterns, tails, strides, ranges, odd addresses, both KV types, and the vectors of a real run (R75).
 * Usage: kernelcheck [--seed N] [--bench | MODEL.slm2 ...] */
#include "tests/kernelcheck/kernelcheck.h"

uint64_t kc_state;
const slm2_backend *kc_twins[16];
uint32_t kc_n_twins;
int kc_least = -128;

/* --- memory ------------------------------------------------------------------------ */

#define GUARD 256
#define GUARD_BYTE 0x5a
static void *lent[64];
static size_t n_lent;

static void *lend(size_t bytes) {
  void *p = malloc(bytes);
  if (p == NULL || n_lent == sizeof lent / sizeof *lent) exit(1);
  return lent[n_lent++] = p;
}

/* The first place in p that is a multiple of align and not of 2 * align. */
static uint8_t *place(uint8_t *p, size_t align) {
  while ((uintptr_t)p % (2 * align) != align) p++;
  return p;
}

void *kc_input(size_t bytes, size_t align) {
  if (align >= 16) return place(lend(bytes + 3 * align), align); /* ends where it may; small ones end with the allocation */
  return (uint8_t *)lend(bytes + align) + align;
}

void *kc_output(size_t bytes, size_t align) {
  uint8_t *p = lend(bytes + 2 * GUARD + 2 * align);
  memset(p, GUARD_BYTE, bytes + 2 * GUARD + 2 * align);
  p = place(p + GUARD, align);
  memset(p, 0xff, bytes);
  return p;
}

bool kc_guards_hold(const void *output, size_t bytes) {
  const uint8_t *p = output;
  for (size_t i = 1; i <= GUARD; i++)
    if (p[-(ptrdiff_t)i] != GUARD_BYTE || p[bytes + i - 1] != GUARD_BYTE) return false;
  return true;
}

void kc_release(void) {
  while (n_lent > 0) free(lent[--n_lent]);
}

/* --- patterns ------------------------------------------------------------------------ */

const char *const kc_pattern_names[KC_PATTERNS] = {"zero",          "one",    "random", "extreme", "alternating", "subnormal",
                                                   "negative zero", "cancel", "huge",   "bits",    "not finite"};

static float random_float(void) { return (float)((double)(kc_random() >> 40) * 0x1p-23 - 1.0) * 4.0f; }
static float with_sign(float x) { return kc_random() & 1 ? -x : x; }

static float value_of(kc_pattern pattern, size_t i) {
  switch (pattern) {
  case KC_ZERO: return 0.0f;
  case KC_ONE: return 1.0f;
  case KC_EXTREME: return with_sign(127.0f);
  case KC_ALTERNATING: return i % 2 == 0 ? 1.0f + (float)(i % 7) : -1.0f - (float)(i % 5);
  case KC_SUBNORMAL: return with_sign(slm2_float_from_bits((uint32_t)kc_random() & 0x7fffffu));
  case KC_NEGATIVE_ZERO: return kc_below(4) == 0 ? random_float() : -0.0f;
  case KC_CANCEL: return i % 3 == 0 ? 0x1p24f : i % 3 == 1 ? random_float() : -0x1p24f;
  case KC_HUGE: return with_sign(0x1.8p120f) * (float)(1 + kc_below(3));
  case KC_BITS: { /* any finite number */
    uint32_t u = (uint32_t)kc_random();
    return slm2_float_from_bits((u & 0x7f800000u) == 0x7f800000u ? u & 0x807fffffu : u);
  }
  case KC_NOT_FINITE:
    if (kc_below(20) != 0) return random_float();
    return kc_below(3) == 0 ? slm2_float_from_bits(0x7fc00000u | (uint32_t)(kc_random() & 1) << 31)
                            : slm2_float_from_bits(0x7f800000u | (uint32_t)(kc_random() & 1) << 31);
  default: return random_float();
  }
}

void kc_fill(float *x, size_t n, kc_pattern pattern) {
  for (size_t i = 0; i < n; i++) x[i] = value_of(pattern, i);
}

static uint16_t scale_bits(kc_pattern pattern) {
  switch (pattern) {
  case KC_SUBNORMAL: return (uint16_t)(kc_random() & 0x83ff);
  case KC_HUGE: return (uint16_t)(0x7bff | (kc_random() & 1) << 15);
  case KC_NEGATIVE_ZERO: return kc_below(2) == 0 ? 0x8000 : 0x2e66;
  case KC_BITS: { /* any finite one */
    uint16_t h = (uint16_t)kc_random();
    return (h & 0x7c00) == 0x7c00 ? (uint16_t)(h & 0x83ff) : h;
  }
  case KC_NOT_FINITE: return kc_below(9) == 0 ? (uint16_t)(0x7c00 | kc_below(2) << 15 | (kc_below(2) << 9)) : 0x2e66;
  default: return (uint16_t)(0x1000 + kc_below(0x1800));
  }
}

static int8_t weight_value(kc_pattern pattern, uint32_t i) {
  switch (pattern) {
  case KC_ZERO: return 0;
  case KC_ONE: return 1;
  case KC_EXTREME: return kc_random() & 1 ? 127 : -127;
  case KC_ALTERNATING: return i % 2 == 0 ? 127 : -127;
  case KC_HUGE: return (int8_t)(kc_random() & 1 ? 127 : kc_least);
  default: {
    int8_t weight = (int8_t)kc_random();
    return weight < kc_least ? (int8_t)kc_least : weight;
  }
  }
}

slm2_matrix kc_matrix(uint32_t rows, uint32_t cols, slm2_weight_form form, kc_pattern pattern) {
  uint8_t *data = kc_input((size_t)rows * cols / SLM2_BLOCK * SLM2_BLOCK_BYTES, 2);
  for (uint32_t r = 0; r < rows; r++) {
    for (uint32_t b = 0; b < cols / SLM2_BLOCK; b++) {
      slm2_store_u16(data + slm2_scale_at(form, cols, r, b), scale_bits(pattern));
      for (uint32_t k = 0; k < SLM2_BLOCK; k++)
        data[slm2_weight_at(form, cols, r, b, k)] = (uint8_t)weight_value(pattern, r + b + k);
    }
  }
  return (slm2_matrix){data, rows, cols, form};
}

bool kc_same(const float *a, const float *b, size_t n) {
  if (memcmp(a, b, n * sizeof *a) == 0) return true;
  for (size_t i = 0; i < n; i++)
    if (slm2_float_bits(a[i]) != slm2_float_bits(b[i]) && !(a[i] != a[i] && b[i] != b[i])) return false;
  return true;
}

/* --- the whole -------------------------------------------------------------------------- */

static void list_twins(void) {
  const slm2_backend *b;
#ifdef __wasm_relaxed_simd__
  kc_least = -127; /* kernel/wasm128/relaxed.c */
#endif
  for (uint32_t i = 0; (b = slm2_backend_at(i)) != NULL && kc_n_twins < 16; i++)
    if (b != &slm2_backend_oracle) kc_twins[kc_n_twins++] = b;
}

int main(int argc, char **argv) {
  uint64_t seed = 20261130;
  bool bench = false;
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; first++) {
    if (strcmp(argv[first], "--bench") == 0) bench = true;
    else if (strcmp(argv[first], "--seed") == 0 && first + 1 < argc) seed = strtoull(argv[++first], NULL, 10);
    else return printf("usage: kernelcheck [--seed N] [--bench | MODEL.slm2 ...]\n"), 2;
  }
  list_twins();
  if (bench) return kc_bench(), 0;
  kc_state = seed;
  printf("kernelcheck: seed %llu, backends", (unsigned long long)seed);
  for (uint32_t i = 0; i < kc_n_twins; i++) printf(" %s", kc_twins[i]->name);
  printf("%s\n", kc_n_twins == 0 ? " none but the oracle" : "");
  if (kc_n_twins == 0) return 0;
  int failed = kc_check_matrices() | kc_check_vectors() | kc_check_attention();
  for (int i = first; i < argc; i++) failed |= kc_replay(argv[i]);
  return failed;
}
