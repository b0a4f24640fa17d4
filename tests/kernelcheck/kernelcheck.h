/* tests/kernelcheck/kernelcheck.h: what the parts of kernelcheck share: guarded memory, patterns, comparison. */
#ifndef SLM2_TESTS_KERNELCHECK_H
#define SLM2_TESTS_KERNELCHECK_H

#include "base/bytes.h"
#include "kernel/kernel.h"
#include "kernel/weights.h"
#include "num/math.h"
#include "tests/test.h"

/* --- random numbers: SplitMix64 of a printed seed ---------------------------- */

extern uint64_t kc_state;
static inline uint64_t kc_random(void) { return test_random(&kc_state); }
static inline uint32_t kc_below(uint32_t n) { return (uint32_t)(kc_random() >> 33) % n; }

/* --- memory -------------------------------------------------------------------- */

/* Exactly `bytes` from malloc, at an address that is a multiple of `align` and not of 2 * align, so that a sanitizer sees one
 * byte too many; until kc_release. */
void *kc_input(size_t bytes, size_t align);
/* Output memory of `bytes`, full of NaN, between guards that kc_guards_hold looks at. */
void *kc_output(size_t bytes, size_t align);
bool kc_guards_hold(const void *output, size_t bytes);
void kc_release(void);

/* --- what goes in --------------------------------------------------------------- */

typedef enum kc_pattern {
  KC_ZERO, KC_ONE, KC_RANDOM, KC_EXTREME, KC_ALTERNATING, KC_SUBNORMAL, KC_NEGATIVE_ZERO, KC_CANCEL, KC_HUGE, KC_BITS,
  KC_NOT_FINITE,
  KC_PATTERNS
} kc_pattern;
extern const char *const kc_pattern_names[KC_PATTERNS];
void kc_fill(float *x, size_t n, kc_pattern pattern);
/* As a weight matrix: scales of every kind of f16 for the pattern, weights down to kc_least. rows, cols: multiples of 32. */
slm2_matrix kc_matrix(uint32_t rows, uint32_t cols, slm2_weight_form form, kc_pattern pattern);

/* --- what comes out --------------------------------------------------------------- */

/* The bits are equal, or both are NaN: which NaN comes out of two is no part of the contract [D5]. */
bool kc_same(const float *a, const float *b, size_t n);

/* Every usable backend but the oracle. */
extern const slm2_backend *kc_twins[16];
extern uint32_t kc_n_twins;
/* -128, which no file has [D9]; -127 when a twin relies on that. */
extern int kc_least;

/* Each part prints its line and returns 1 when a check failed. */
int kc_check_matrices(void);
int kc_check_vectors(void);
int kc_check_attention(void);
/* Runs the model with the oracle and gives every vector that a kernel meets to the twins as well: 2,000 at least (R75). */
int kc_replay(const char *path);
void kc_bench(void);

#endif
