/* num/reduce.h: the two orders in which anything is ever summed: seq [D6] and lanes8 [D7]. */
#ifndef SLM2_NUM_REDUCE_H
#define SLM2_NUM_REDUCE_H

#include <stddef.h>

/* [D7] Eight accumulators, element i into lane i mod 8, then one fixed tree. */
typedef struct slm2_lanes8 { float s[8]; } slm2_lanes8;
static inline float slm2_lanes8_sum(const slm2_lanes8 *a) {
  return ((a->s[0] + a->s[4]) + (a->s[2] + a->s[6])) + ((a->s[1] + a->s[5]) + (a->s[3] + a->s[7]));
}
/* Elements x[n] that follow a multiple of 8 others. */
static inline void slm2_lanes8_add(slm2_lanes8 *a, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) a->s[i & 7] += x[i];
}
static inline float slm2_sum_lanes8(const float *x, size_t n) {
  slm2_lanes8 a = {{0}};
  slm2_lanes8_add(&a, x, n);
  return slm2_lanes8_sum(&a);
}
/* [D7] of the rounded products x[i] * y[i]. */
static inline float slm2_dot_lanes8(const float *x, const float *y, size_t n) {
  slm2_lanes8 a = {{0}};
  for (size_t i = 0; i < n; i++) a.s[i & 7] += x[i] * y[i];
  return slm2_lanes8_sum(&a);
}
/* [D6] */
static inline float slm2_sum_seq(const float *x, size_t n) {
  float acc = 0.0f;
  for (size_t i = 0; i < n; i++) acc += x[i];
  return acc;
}

#endif
