/* kernel/vector/attention.h: [D15] for rows that share keys and values. What is read and converted from f16 serves several of
 * them; the order inside a row stays its own [D8].
 *
 * Many rows: a block of positions is converted once and stays in the nearest cache. A lane of the scores is a row: s[0] .. s[7]
 * of [D7] are vectors, and no lane meets another.
 * Few rows: the eight lanes of [D7] are one vector of 32 bytes or two of 16; several positions and two rows go side by side.
 * Values: a lane is an element of the output, rows and vectors go side by side. */
#ifndef SLM2_KERNEL_VECTOR_ATTENTION_H
#define SLM2_KERNEL_VECTOR_ATTENTION_H

#include "kernel/vector/exp.h"
#include "kernel/vector/f16.h"
#include "kernel/vector/finite.h"
#include "num/reduce.h"

#define A_PARTS (8 / A_LANES) /* vectors that make the eight lanes */
#define A_SIDE (TILE_TOKENS * TILE_VECTORS >= 16 ? 8 : 4) /* scores: positions by two rows, or by two vectors of rows */
#define A_ROWS 4                                          /* values: rows by vectors of the output */
#define A_VECTORS (TILE_TOKENS * TILE_VECTORS >= 16 ? 4 : 2)
#define A_VECTORS_OF_ROWS ((int)SLM2_ATTENTION_ROWS / LANES)
typedef float v4 __attribute__((vector_size(16)));
typedef v4 v4_at __attribute__((aligned(4), may_alias));

/* The scratch of a call, and where row r's probability of position t is: p[r * row + t * position]. */
typedef struct attending {
  const slm2_attention *a;
  float *block; /* [SLM2_ATTENTION_BLOCK, head_dim] */
  float *p;
  size_t row, position;
  uint32_t rows, n; /* all of them; the longest one's positions */
  float scale;
} attending;

INLINE size_t row_at(const slm2_attention *a, uint32_t r) {
  return (r / a->heads) * a->stride + (size_t)(r % a->heads) * a->head_dim;
}

/* Few rows read keys and values at the pace of memory, which is asked for them this many bytes ahead: 32 f16 positions
 * of 128. Measured on keys and values in memory: 1.5 (f32) to 2 times (f16, avx2) the speed. */
#define A_AHEAD 8192
INLINE void ask_for(slm2_kv_view kv, size_t at, const bool f16) {
  __builtin_prefetch((const char *)kv.data + at * (f16 ? sizeof(uint16_t) : sizeof(float)) + A_AHEAD, 0, 3);
}
/* WebAssembly has no such request: there positions are read once in the order of their lines, just before they are used. */
INLINE void read_lines(slm2_kv_view kv, uint32_t t, uint32_t positions, uint32_t head_dim) {
#ifdef __wasm__
  const size_t bytes = head_dim * (kv.f16 ? sizeof(uint16_t) : sizeof(float));
  const char *p = (const char *)kv.data + t * bytes;
  for (size_t i = 0; i < positions * bytes; i += 64) __asm__ volatile("" : : "r"(p[i]));
#else
  (void)kv, (void)t, (void)positions, (void)head_dim;
#endif
}

INLINE va load_kv(slm2_kv_view kv, size_t at, const bool f16) {
  if (f16) return load_f16((const uint16_t *)kv.data + at);
  return *(const va_at *)((const float *)kv.data + at);
}
INLINE vf load_wide(slm2_kv_view kv, size_t at, const bool f16) {
  if (f16) return load_f16_wide((const uint16_t *)kv.data + at);
  return load((const float *)kv.data + at);
}

/* `positions` of them from t on as f32: where they lie, or converted. */
INLINE const float *widened(const attending *w, slm2_kv_view kv, uint32_t t, uint32_t positions) {
  const size_t at = (size_t)t * w->a->head_dim, n = (size_t)positions * w->a->head_dim;
  if (!kv.f16) return (const float *)kv.data + at;
  const uint16_t *half = (const uint16_t *)kv.data + at;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(w->block + i, load_f16_wide(half + i));
  for (; i < n; i += A_LANES) *(va_at *)(w->block + i) = load_f16(half + i);
  return w->block;
}

/* --- scores of many rows ------------------------------------------------------ */

typedef vf tile_sums[A_SIDE][2];
/* Queries [head_dim, stride] and keys [positions, head_dim] of a tile: positions by vectors of rows. */
typedef struct tile {
  const float *q, *k;
  size_t stride;
  uint32_t head_dim;
} tile;

INLINE void lane_sum(tile_sums s, const tile *x, uint32_t j, const int positions, const int vectors) {
  vf acc[A_SIDE][2];
  UNROLL for (int i = 0; i < positions; i++) UNROLL for (int v = 0; v < vectors; v++) acc[i][v] = (vf){0};
  for (uint32_t d = j; d < x->head_dim; d += 8) {
    vf q[2];
    UNROLL for (int v = 0; v < vectors; v++) q[v] = load(x->q + d * x->stride + (size_t)(v * LANES));
    UNROLL for (int i = 0; i < positions; i++) {
      const float key = x->k[(size_t)i * x->head_dim + d];
      UNROLL for (int v = 0; v < vectors; v++) acc[i][v] = acc[i][v] + q[v] * key;
    }
  }
  UNROLL for (int i = 0; i < positions; i++) UNROLL for (int v = 0; v < vectors; v++) s[i][v] = acc[i][v];
}
INLINE void plus_sums(tile_sums s, tile_sums u, const int positions, const int vectors) {
  UNROLL for (int i = 0; i < positions; i++) UNROLL for (int v = 0; v < vectors; v++) s[i][v] = s[i][v] + u[i][v];
}
/* [D7]'s tree: s[j] + s[j+4]; (s[j] + s[j+4]) + (s[j+2] + s[j+6]); all. */
INLINE void pair_sum(tile_sums s, const tile *x, uint32_t j, const int positions, const int vectors) {
  tile_sums u;
  lane_sum(s, x, j, positions, vectors);
  lane_sum(u, x, j + 4, positions, vectors);
  plus_sums(s, u, positions, vectors);
}
INLINE void four_sum(tile_sums s, const tile *x, uint32_t j, const int positions, const int vectors) {
  tile_sums u;
  pair_sum(s, x, j, positions, vectors);
  pair_sum(u, x, j + 2, positions, vectors);
  plus_sums(s, u, positions, vectors);
}
INLINE void eight_sum(tile_sums s, const tile *x, const int positions, const int vectors) {
  tile_sums u;
  four_sum(s, x, 0, positions, vectors);
  four_sum(u, x, 1, positions, vectors);
  plus_sums(s, u, positions, vectors);
}

/* What a vector of rows has come to: how many positions each row sees; the largest score; whether one is not finite. */
typedef struct rows_seen {
  vi length[A_VECTORS_OF_ROWS], bad[A_VECTORS_OF_ROWS];
  vf most[A_VECTORS_OF_ROWS];
} rows_seen;

/* Scores of positions t .. into w->p. A position that a row does not see gets -inf: its exp is +0, which changes neither the
 * denominator, a sum of no negative terms, nor a value's sum: that begins as +0, so is never -0, and v is finite. */
INLINE void tile_scores(const attending *w, rows_seen *seen, const float *q, const float *k, uint32_t t, uint32_t v0,
                        const int positions, const int vectors) {
  const tile x = {q + (size_t)v0 * LANES, k, w->position, w->a->head_dim};
  tile_sums s;
  eight_sum(s, &x, positions, vectors);
  UNROLL for (int i = 0; i < positions; i++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      const uint32_t at = v0 + (uint32_t)v;
      const vf score = s[i][v] * w->scale;
      const vi sees = seen->length[at] > (int32_t)t + i, size = (vi)score & 0x7fffffff;
      seen->bad[at] |= sees & (size >= 0x7f800000);
      const vf kept = pick(sees, score, (vf){0} - __builtin_inff());
      seen->most[at] = pick(kept > seen->most[at], kept, seen->most[at]);
      store(w->p + (t + (uint32_t)i) * w->position + at * LANES, kept);
    }
  }
}

INLINE void scores_of_positions(const attending *w, rows_seen *seen, const float *q, const float *k, uint32_t t,
                                const int positions) {
  const uint32_t vectors = (w->rows + LANES - 1) / LANES;
  uint32_t v = 0;
  for (; v + 2 <= vectors; v += 2) tile_scores(w, seen, q, k, t, v, positions, 2);
  for (; v < vectors; v++) tile_scores(w, seen, q, k, t, v, positions, 1);
}

/* Scores of half a vector of rows, from row r, to probabilities. */
INLINE void softmax_of_rows(const attending *w, vh most, uint32_t r) {
  float *p = w->p + r;
  vh s[8];
  UNROLL for (int j = 0; j < 8; j++) s[j] = (vh){0};
  uint32_t t = 0;
  for (; t + 8 <= w->n; t += 8) {
    UNROLL for (uint32_t j = 0; j < 8; j++) {
      const vh e = exp_of(load_half(p + (t + j) * w->position) - most);
      store_half(p + (t + j) * w->position, e);
      s[j] = s[j] + e;
    }
  }
  for (uint32_t j = 0; t + j < w->n; j++) {
    const vh e = exp_of(load_half(p + (t + j) * w->position) - most);
    store_half(p + (t + j) * w->position, e);
    s[j] = s[j] + e;
  }
  const vh sum = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
  for (t = 0; t < w->n; t++) store_half(p + t * w->position, load_half(p + t * w->position) / sum);
}

INLINE bool many_rows(attending *w, float *q) {
  const slm2_attention *a = w->a;
  const uint32_t vectors = (w->rows + LANES - 1) / LANES;
  rows_seen seen = {0};
  w->row = 1, w->position = (size_t)vectors * LANES;
  for (uint32_t r = 0; r < vectors * LANES; r++) { /* the last row stands for those that fill its vector */
    const uint32_t row = r < w->rows ? r : w->rows - 1;
    const float *from = a->q + row_at(a, row);
    for (uint32_t d = 0; d < a->head_dim; d++) q[d * w->position + r] = from[d];
    seen.length[r / LANES][r % LANES] = (int32_t)(a->n + row / a->heads);
  }
  for (uint32_t v = 0; v < vectors; v++) seen.most[v] = (vf){0} - __builtin_inff();
  uint32_t t = 0;
  for (; t + A_SIDE <= w->n; t += A_SIDE) scores_of_positions(w, &seen, q, widened(w, a->k, t, A_SIDE), t, A_SIDE);
  for (; t < w->n; t++) scores_of_positions(w, &seen, q, widened(w, a->k, t, 1), t, 1);
  for (uint32_t v = 0; v < vectors; v++) {
    if (any(seen.bad[v])) return false;
    const float *most = (const float *)&seen.most[v];
    softmax_of_rows(w, load_half(most), v * LANES);
    softmax_of_rows(w, load_half(most + HALF_LANES), v * LANES + HALF_LANES);
  }
  return true;
}

/* --- scores of few rows -------------------------------------------------------- */

/* The tree of [D7] down to its last two levels: lanes s0+s4, s1+s5, s2+s6, s3+s7. */
INLINE v4 fold(const va acc[A_PARTS]) {
#if A_BYTES == 32
  return __builtin_shufflevector(acc[0], acc[0], 0, 1, 2, 3) + __builtin_shufflevector(acc[0], acc[0], 4, 5, 6, 7);
#else
  return acc[0] + acc[1];
#endif
}
/* Of four tile_sums at once: a = (s0+s4)+(s2+s6) and b = (s1+s5)+(s3+s7) of each, then a + b. */
INLINE v4 finish(v4 t0, v4 t1, v4 t2, v4 t3) {
  v4 ab01 = __builtin_shufflevector(t0, t1, 0, 1, 4, 5) + __builtin_shufflevector(t0, t1, 2, 3, 6, 7);
  v4 ab23 = __builtin_shufflevector(t2, t3, 0, 1, 4, 5) + __builtin_shufflevector(t2, t3, 2, 3, 6, 7);
  return __builtin_shufflevector(ab01, ab23, 0, 2, 4, 6) + __builtin_shufflevector(ab01, ab23, 1, 3, 5, 7);
}

/* Scores of `side` positions (4, 8, or 1) from t and `rows` rows from r into w->p. */
INLINE void some_scores(const attending *w, uint32_t t, uint32_t r, const int side, const int rows, const bool f16) {
  const slm2_attention *a = w->a;
  va acc[2][A_SIDE][A_PARTS];
  UNROLL for (int p = 0; p < A_PARTS; p++) {
    va sum[2][A_SIDE];
    const float *q[2];
    UNROLL for (int k = 0; k < rows; k++) q[k] = a->q + row_at(a, r + (uint32_t)k) + p * A_LANES;
    UNROLL for (int k = 0; k < rows; k++) UNROLL for (int i = 0; i < side; i++) sum[k][i] = (va){0};
    for (uint32_t d = 0; d < a->head_dim; d += 8) {
      va query[2];
      UNROLL for (int k = 0; k < rows; k++) query[k] = *(const va_at *)(q[k] + d);
      UNROLL for (int i = 0; i < side; i++) {
        const size_t at = (size_t)(t + (uint32_t)i) * a->head_dim + d + (size_t)(p * A_LANES);
        const va key = load_kv(a->k, at, f16);
        ask_for(a->k, at, f16);
        UNROLL for (int k = 0; k < rows; k++) sum[k][i] = sum[k][i] + query[k] * key;
      }
    }
    UNROLL for (int k = 0; k < rows; k++) UNROLL for (int i = 0; i < side; i++) acc[k][i][p] = sum[k][i];
  }
  UNROLL for (int k = 0; k < rows; k++) {
    float *score = w->p + (r + (uint32_t)k) * w->row + t;
    if (side == 1) {
      v4 t4 = fold(acc[k][0]);
      *score = ((t4[0] + t4[2]) + (t4[1] + t4[3])) * w->scale;
    }
    UNROLL for (int i = 0; i + 4 <= side; i += 4)
      *(v4_at *)(score + i) = finish(fold(acc[k][i]), fold(acc[k][i + 1]), fold(acc[k][i + 2]), fold(acc[k][i + 3])) * w->scale;
  }
}

INLINE void scores_of_rows(const attending *w, uint32_t r, const int rows, const bool f16) {
  uint32_t t = 0;
  for (; t + A_SIDE <= w->n; t += A_SIDE) {
    const uint32_t left = w->n - t, block = left < SLM2_ATTENTION_BLOCK ? left : SLM2_ATTENTION_BLOCK;
    if (t % SLM2_ATTENTION_BLOCK == 0) read_lines(w->a->k, t, block, w->a->head_dim);
    some_scores(w, t, r, A_SIDE, rows, f16);
  }
  for (; t < w->n; t++) some_scores(w, t, r, 1, rows, f16);
}

/* Scores of one row to probabilities. */
INLINE void softmax(float *score, uint32_t n) {
  const float max = most_of(score, n);
  uint32_t t;
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

INLINE bool few_rows(attending *w, const bool f16) {
  const slm2_attention *a = w->a;
  w->row = w->n, w->position = 1;
  uint32_t first = 0;
  for (; first + 2 <= w->rows; first += 2) scores_of_rows(w, first, 2, f16);
  for (; first < w->rows; first++) scores_of_rows(w, first, 1, f16);
  for (uint32_t r = 0; r < w->rows; r++) {
    float *score = w->p + r * w->row;
    const uint32_t n = a->n + r / a->heads;
    if (!finite(score, n)) return false;
    softmax(score, n);
    for (uint32_t t = n; t < w->n; t++) score[t] = 0.0f; /* as in tile_scores */
  }
  return true;
}

/* --- values ----------------------------------------------------------------------- */

/* Positions t0 .. t1 of some values: position t begins at (t - first) * head_dim of v. */
typedef struct values {
  slm2_kv_view v;
  uint32_t first, t0, t1;
} values;

/* out += p v, for `rows` rows from r and `vectors` vectors from element d. */
INLINE void tile_values(const attending *w, const values *x, uint32_t r, uint32_t d, const int rows, const int vectors,
                        const bool f16) {
  const slm2_attention *a = w->a;
  vf acc[A_ROWS][2 * A_VECTORS];
  UNROLL for (int i = 0; i < rows; i++)
    UNROLL for (int k = 0; k < vectors; k++)
      acc[i][k] = x->t0 == 0 ? (vf){0} : load(a->out + row_at(a, r + (uint32_t)i) + d + k * LANES);
  const float *p = w->p + r * w->row + x->t0 * w->position;
  for (uint32_t t = x->t0; t < x->t1; t++, p += w->position) {
    vf value[2 * A_VECTORS];
    UNROLL for (int k = 0; k < vectors; k++) {
      const size_t at = (size_t)(t - x->first) * a->head_dim + d + (size_t)(k * LANES);
      value[k] = load_wide(x->v, at, f16);
      if (rows < A_ROWS) ask_for(x->v, at, f16);
    }
    UNROLL for (int i = 0; i < rows; i++) {
      const float weight = p[(size_t)i * w->row];
      UNROLL for (int k = 0; k < vectors; k++) acc[i][k] = acc[i][k] + weight * value[k];
    }
  }
  UNROLL for (int i = 0; i < rows; i++)
    UNROLL for (int k = 0; k < vectors; k++) store(a->out + row_at(a, r + (uint32_t)i) + d + k * LANES, acc[i][k]);
}

INLINE void rows_values(const attending *w, const values *x, uint32_t r, const int rows, const bool f16) {
  const uint32_t head_dim = w->a->head_dim;
  uint32_t d = 0;
  if (rows < A_ROWS) /* their accumulators leave room */
    for (; d + 2 * A_VECTORS * LANES <= head_dim; d += 2 * A_VECTORS * LANES) tile_values(w, x, r, d, rows, 2 * A_VECTORS, f16);
  for (; d + A_VECTORS * LANES <= head_dim; d += A_VECTORS * LANES) tile_values(w, x, r, d, rows, A_VECTORS, f16);
  for (; d + LANES <= head_dim; d += LANES) tile_values(w, x, r, d, rows, 1, f16);
  for (; d < head_dim; d += A_LANES) { /* eight elements of a vector of sixteen */
    for (uint32_t i = r; i < r + (uint32_t)rows; i++) {
      va_at *out = (va_at *)(w->a->out + row_at(w->a, i) + d);
      va acc = {0};
      if (x->t0 != 0) acc = *out;
      for (uint32_t t = x->t0; t < x->t1; t++)
        acc = acc + w->p[i * w->row + t * w->position] * load_kv(x->v, (size_t)(t - x->first) * head_dim + d, f16);
      *out = acc;
    }
  }
}

INLINE void all_rows_values(const attending *w, const values *x, const bool f16) {
  uint32_t r = 0;
  for (; r + A_ROWS <= w->rows; r += A_ROWS) rows_values(w, x, r, A_ROWS, f16);
  for (; r + 2 <= w->rows; r += 2) rows_values(w, x, r, 2, f16);
  for (; r < w->rows; r++) rows_values(w, x, r, 1, f16);
}

/* The whole, block by block: once converted, or as they lie. */
INLINE void all_values(const attending *w, const bool widen, const bool f16) {
  for (uint32_t t0 = 0; t0 < w->n; t0 += SLM2_ATTENTION_BLOCK) {
    values x = {w->a->v, 0, t0, t0 + SLM2_ATTENTION_BLOCK < w->n ? t0 + SLM2_ATTENTION_BLOCK : w->n};
    if (!widen) read_lines(x.v, t0, x.t1 - t0, w->a->head_dim);
    if (widen) x.v = (slm2_kv_view){widened(w, w->a->v, t0, x.t1 - t0), false}, x.first = t0;
    all_rows_values(w, &x, f16);
  }
}

static inline bool attention(const slm2_attention *a) {
  attending w = {.a = a, .rows = a->tokens * a->heads, .n = a->n + a->tokens - 1};
  w.scale = (float)(1.0 / slm2_sqrt((double)a->head_dim));
  w.block = a->scratch;
  float *q = w.block + (size_t)SLM2_ATTENTION_BLOCK * a->head_dim;
  w.p = q + (size_t)(w.rows + 15) / 16 * 16 * a->head_dim;
  if (w.rows > LANES / 2) {
    if (!many_rows(&w, q)) return false;
    all_values(&w, true, false);
  } else if (a->k.f16) {
    if (!few_rows(&w, true)) return false;
    all_values(&w, false, true);
  } else {
    if (!few_rows(&w, false)) return false;
    all_values(&w, false, false);
  }
  return true;
}

#endif
