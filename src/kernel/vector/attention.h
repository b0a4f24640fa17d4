/* kernel/vector/attention.h: [D15]. The eight lanes of a score's sum [D7] are one vector of 32 bytes or two of 16; several
 * positions go side by side, because each of their sums is one chain. Values: a lane is an element of the output. */
#ifndef SLM2_KERNEL_VECTOR_ATTENTION_H
#define SLM2_KERNEL_VECTOR_ATTENTION_H

#include "kernel/vector/exp.h"
#include "kernel/vector/f16.h"
#include "kernel/vector/finite.h"
#include "num/reduce.h"

#define A_PARTS (8 / A_LANES) /* vectors that make the eight lanes */
#define A_SIDE (16 / A_PARTS < 8 ? 4 : 8) /* positions side by side */
#define A_CHUNK 8                         /* vectors of the output that are summed at once */
typedef float v4 __attribute__((vector_size(16)));
typedef v4 v4_at __attribute__((aligned(4), may_alias));

INLINE va load_kv(slm2_kv_view kv, size_t at, const bool f16) {
  if (f16) return load_f16((const uint16_t *)kv.data + at);
  return *(const va_at *)((const float *)kv.data + at);
}

INLINE vf load_wide(slm2_kv_view kv, size_t at, const bool f16) {
  if (f16) return load_f16_wide((const uint16_t *)kv.data + at);
  return load((const float *)kv.data + at);
}

/* The tree of [D7] down to its last two levels: lanes s0+s4, s1+s5, s2+s6, s3+s7. */
INLINE v4 fold(const va acc[A_PARTS]) {
#if A_BYTES == 32
  return __builtin_shufflevector(acc[0], acc[0], 0, 1, 2, 3) + __builtin_shufflevector(acc[0], acc[0], 4, 5, 6, 7);
#else
  return acc[0] + acc[1];
#endif
}
/* Of four sums at once: a = (s0+s4)+(s2+s6) and b = (s1+s5)+(s3+s7) of each, then a + b. */
INLINE v4 finish(v4 t0, v4 t1, v4 t2, v4 t3) {
  v4 ab01 = __builtin_shufflevector(t0, t1, 0, 1, 4, 5) + __builtin_shufflevector(t0, t1, 2, 3, 6, 7);
  v4 ab23 = __builtin_shufflevector(t2, t3, 0, 1, 4, 5) + __builtin_shufflevector(t2, t3, 2, 3, 6, 7);
  return __builtin_shufflevector(ab01, ab23, 0, 2, 4, 6) + __builtin_shufflevector(ab01, ab23, 1, 3, 5, 7);
}

/* score[i] of `side` positions from position t: 4, 8, or 1. */
INLINE void some_scores(float *score, const float *q, slm2_kv_view k, size_t t, uint32_t head_dim, float scale, const int side,
                        const bool f16) {
  va acc[A_SIDE][A_PARTS];
  UNROLL for (int i = 0; i < side; i++) UNROLL for (int p = 0; p < A_PARTS; p++) acc[i][p] = (va){0};
  for (uint32_t d = 0; d < head_dim; d += 8) {
    UNROLL for (int p = 0; p < A_PARTS; p++) {
      va query = *(const va_at *)(q + d + p * A_LANES);
      UNROLL for (int i = 0; i < side; i++)
        acc[i][p] = acc[i][p] + query * load_kv(k, (t + (size_t)i) * head_dim + d + (size_t)(p * A_LANES), f16);
    }
  }
  if (side == 1) {
    v4 t4 = fold(acc[0]);
    *score = ((t4[0] + t4[2]) + (t4[1] + t4[3])) * scale;
    return;
  }
  UNROLL for (int i = 0; i + 4 <= side; i += 4)
    *(v4_at *)(score + i) = finish(fold(acc[i]), fold(acc[i + 1]), fold(acc[i + 2]), fold(acc[i + 3])) * scale;
}

INLINE void all_scores(float *score, const float *q, slm2_kv_view k, uint32_t n, uint32_t head_dim, float scale, const bool f16) {
  uint32_t t = 0;
  for (; t + A_SIDE <= n; t += A_SIDE) some_scores(score + t, q, k, t, head_dim, scale, A_SIDE, f16);
  for (; t < n; t++) some_scores(score + t, q, k, t, head_dim, scale, 1, f16);
}

/* scores to probabilities. */
INLINE void softmax(float *score, uint32_t n) {
  float max = score[0];
  uint32_t t = 0;
  if (n >= LANES) {
    vf most = load(score);
    for (; t + LANES <= n; t += LANES) most = pick(load(score + t) > most, load(score + t), most);
    UNROLL for (int i = 0; i < LANES; i++) max = most[i] > max ? most[i] : max;
  }
  for (; t < n; t++) max = score[t] > max ? score[t] : max;
  for (t = 0; t + HALF_LANES <= n; t += HALF_LANES) store_half(score + t, exp_of(load_half(score + t) - max));
  for (; t < n; t++) score[t] = slm2_expf(score[t] - max);
  va acc[A_PARTS];
  UNROLL for (int p = 0; p < A_PARTS; p++) acc[p] = (va){0};
  for (t = 0; t + 8 <= n; t += 8)
    UNROLL for (int p = 0; p < A_PARTS; p++) acc[p] = acc[p] + *(const va_at *)(score + t + p * A_LANES);
  slm2_lanes8 lanes;
  UNROLL for (int p = 0; p < A_PARTS; p++) *(va_at *)(lanes.s + p * A_LANES) = acc[p];
  for (; t < n; t++) lanes.s[t & 7] += score[t];
  const float sum = slm2_lanes8_sum(&lanes);
  for (t = 0; t + LANES <= n; t += LANES) store(score + t, load(score + t) / sum);
  for (; t < n; t++) score[t] = score[t] / sum;
}

/* out[d] of `chunk` vectors from element d; wide: of the whole width, which may be twice that of the scores' vectors. */
#define SOME_VALUES(name, vector, lanes, load_values)                                                                     \
  INLINE void name(float *out, const float *p, slm2_kv_view v, uint32_t n, uint32_t head_dim, uint32_t d, const int chunk, \
                   const bool f16) {                                                                                       \
    vector acc[A_CHUNK];                                                                                                   \
    UNROLL for (int i = 0; i < chunk; i++) acc[i] = (vector){0};                                                           \
    for (uint32_t t = 0; t < n; t++) {                                                                                     \
      float weight = p[t];                                                                                                 \
      UNROLL for (int i = 0; i < chunk; i++)                                                                               \
        acc[i] = acc[i] + weight * load_values(v, (size_t)t * head_dim + d + (size_t)(i * lanes), f16);                    \
    }                                                                                                                      \
    UNROLL for (int i = 0; i < chunk; i++) *(vector##_at *)(out + d + i * lanes) = acc[i];                                 \
  }
SOME_VALUES(some_values, va, A_LANES, load_kv)
SOME_VALUES(wide_values, vf, LANES, load_wide)

INLINE bool attend(float *out, const float *q, slm2_kv_view k, slm2_kv_view v, uint32_t n, uint32_t head_dim, float *score,
                   const bool f16) {
  all_scores(score, q, k, n, head_dim, (float)(1.0 / slm2_sqrt((double)head_dim)), f16);
  if (!finite(score, n)) return false;
  softmax(score, n);
  uint32_t d = 0;
  for (; d + A_CHUNK * LANES <= head_dim; d += A_CHUNK * LANES) wide_values(out, score, v, n, head_dim, d, A_CHUNK, f16);
  for (; d + A_CHUNK * A_LANES <= head_dim; d += A_CHUNK * A_LANES) some_values(out, score, v, n, head_dim, d, A_CHUNK, f16);
  for (; d < head_dim; d += 8) some_values(out, score, v, n, head_dim, d, A_PARTS, f16);
  return true;
}

static inline bool attention(float *out, const float *q, slm2_kv_view k, slm2_kv_view v, uint32_t n, uint32_t head_dim,
                             float *scores) {
  if (k.f16) return attend(out, q, k, v, n, head_dim, scores, true);
  return attend(out, q, k, v, n, head_dim, scores, false);
}

#endif
