/* kernel/vector/matmul_q8.h: [D11] on panels. A lane is a row; integer block sums are exact in any order, the f32 sum over
 * the blocks runs in order.
 *
 * kernel/<isa> defines how four int8 products are summed into a lane, dot(acc, w, a), in PARTS steps:
 *   PARTS 2 (pairs of 16 bits): even and odd bytes of the dwords in turn; weights are 256 times themselves, which costs one
 *     operation each, and so is the sum, at most 256 * 516,128 < 2^31: it is shifted back, exactly;
 *   PARTS 1 (byte products): all four at once.
 * Where the instruction wants one factor without a sign:
 *   BIASED: the activations carry +128, and a sum starts at -128 times the sum of the row's weights;
 *   SIGNED: the activations are magnitudes, and the weight takes the sign. -w is ~w + 1, and the 1s of a block are the same for
 *     every row: the sum starts at the magnitudes of the negative activations, and a weight costs one exclusive or.
 * All exact, for every weight and activation in -127 .. 127. */
#ifndef SLM2_KERNEL_VECTOR_MATMUL_Q8_H
#define SLM2_KERNEL_VECTOR_MATMUL_Q8_H

#include "kernel/vector/panel.h"

#ifndef PARTS
#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) {
  vi high = (w >> 16) * (a >> 16), low = ((vi)((vu)w << 16) >> 16) * ((vi)((vu)a << 16) >> 16);
  return acc + (high + low);
}
#endif
#ifndef BIASED
#define BIASED 0
#endif
#ifndef SIGNED
#define SIGNED 0
#endif
#ifndef Q8_TOKENS /* where this product wants another tile than the others */
#define Q8_TOKENS TILE_TOKENS
#define Q8_VECTORS TILE_VECTORS
#endif
#ifndef STREAMS /* that a single token's product reads at once: 1 or 2 */
#define STREAMS 1
#endif
#define Q8_VECTORS_OF(nv) ((nv) < Q8_VECTORS ? (nv) : Q8_VECTORS)
#define STEPS (GROUPS * PARTS)

/* SIGNED: all ones in the bytes of negative activations. */
INLINE vi sign_of(vi dwords) { return (vi)((vc)dwords < 0); }
/* Part p of dwords of int8, ready to be a factor. */
INLINE vi weight_part(vi dwords, int p) {
  if (PARTS == 1) return dwords;
  return p == 0 ? (vi)((vs)dwords << 8) : dwords & (int32_t)0xff00ff00;
}
INLINE vi activation_part(vi dwords, int p) {
  if (BIASED) return dwords ^ (int32_t)0x80808080;
  if (SIGNED) return (vi)((vc)(dwords ^ sign_of(dwords)) - (vc)sign_of(dwords));
  if (PARTS == 1) return dwords;
  return p == 0 ? (vi)((vs)((vs)dwords << 8) >> 8) : (vi)((vs)dwords >> 8);
}
INLINE vi signed_weight(vi w, vi sign) { return SIGNED ? w ^ sign : w; }
INLINE vf block_sum(vi sum) { return to_float(PARTS == 2 ? sum >> 8 : sum); }

/* Block sums start here: with BIASED they depend on the rows, with SIGNED on the token. */
INLINE void start_rows(vi start[MAX_NV], const uint8_t *q, const int nv) {
  UNROLL for (int v = 0; v < nv; v++) {
    start[v] = (vi){0};
    if (!BIASED) continue;
    UNROLL for (int g = 0; g < GROUPS; g++)
      start[v] = dot(start[v], load_bits(q + g * GROUP_BYTES + v * SLM2_VB), splat_bits((int32_t)0x80808080));
    start[v] = -start[v];
  }
}
INLINE int32_t start_token(const int8_t *xq) {
  vi sum = (vi){0};
  int32_t start = 0;
  if (!SIGNED) return start;
  UNROLL for (int g = 0; g < GROUPS; g += LANES) {
    vi dwords = load_bits(xq + 4 * g);
    sum = dot(sum, sign_of(dwords), activation_part(dwords, 0)); /* a sign is -1 */
  }
  UNROLL for (int i = 0; i < LANES; i++) start -= sum[i];
  return start;
}

/* One block for one token. The sums over the blocks stay in y, where registers are few. */
INLINE void block_of_vector_q8(float *y, const uint8_t *panel, const int8_t *xq, float a, vi start, uint32_t r, const int nv) {
  const uint8_t *q = weights_at(panel, r);
  vi sum[MAX_NV];
  PREFETCH(panel);
  start_rows(sum, q, nv);
  UNROLL for (int v = 0; v < nv; v++) sum[v] += start;
  IN_ORDER for (int g = 0; g < GROUPS; g++, q += GROUP_BYTES, xq += 4) {
    ONE_ADDRESS(q);
    prefetch_group(q, nv);
    vi act = splat_bits(*(const int32_at *)xq), sign = sign_of(act), parts[PARTS];
    UNROLL for (int p = 0; p < PARTS; p++) parts[p] = activation_part(act, p);
    UNROLL for (int v = 0; v < nv; v++) {
      vi dwords = signed_weight(load_bits(q + v * SLM2_VB), sign);
      UNROLL for (int p = 0; p < PARTS; p++) sum[v] = dot(sum[v], weight_part(dwords, p), parts[p]);
    }
  }
  vf scale[MAX_NV];
  scales_at(scale, panel, r, nv);
  UNROLL for (int v = 0; v < nv; v++)
    store(y + v * LANES, load(y + v * LANES) + block_sum(sum[v]) * (scale[v] * a));
}

/* One token: decoding. Two streams take the panels of rows r and r + apart block by block in turns: where weights cannot be
 * asked for ahead, a processor reads two long streams faster than one. */
INLINE void vector_q8(float *y, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t r, uint32_t apart, const int nv,
                      const int streams) {
  const uint32_t blocks = w->cols / SLM2_BLOCK;
  const uint8_t *panel[2] = {panel_at(w, r), panel_at(w, r + apart)};
  float *to[2] = {y + r, y + r + apart};
  UNROLL for (int s = 0; s < streams; s++)
    UNROLL for (int v = 0; v < nv; v++) store(to[s] + v * LANES, (vf){0});
  for (uint32_t b = 0; b < blocks; b++, xq += SLM2_BLOCK) {
    const vi start = splat_bits(start_token(xq));
    UNROLL for (int s = 0; s < streams; s++) {
      block_of_vector_q8(to[s], panel[s], xq, a[b], start, r, nv);
      panel[s] += SLM2_PANEL_BYTES;
    }
  }
}

/* How far apart two streams from row r would be; 0: there is one. */
INLINE uint32_t apart_of(uint32_t r, uint32_t end) {
  return STREAMS == 2 && r % PANEL == 0 ? (end - r) / (2 * PANEL) * PANEL : 0;
}
INLINE void panels_q8(float *y, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t r, uint32_t apart) {
  for (uint32_t i = 0; i < apart; i += PANEL) vector_q8(y, w, xq, a, r + i, apart, NV_PANEL, 2);
}

#define SIGNS (MAX_TOKENS * STEPS)
/* One block, made ready once for all tokens of a tile. */
typedef struct block_q8 {
  int32_t weight[PARTS == 1 ? 1 : STEPS * PANEL] ALIGNED; /* [step][row]; byte products take them from the panel */
  int32_t x[(1 + SIGNED) * SIGNS] ALIGNED;                /* [token][step]; then the signs, the same */
  int32_t first[SIGNED ? MAX_TOKENS : 1];
  vi start[MAX_NV];
  vf scale[MAX_NV];
} block_q8;

INLINE const uint8_t *prepare_weights(block_q8 *k, const uint8_t *panel, uint32_t r, const int nv) {
  const uint8_t *q = weights_at(panel, r);
  PREFETCH(panel);
  for (int g = 0; g < GROUPS; g++) prefetch_group(q + g * GROUP_BYTES, nv);
  scales_at(k->scale, panel, r, nv);
  start_rows(k->start, q, nv);
  if (PARTS == 1) return q;
  for (int g = 0; g < GROUPS; g++) {
    UNROLL for (int v = 0; v < nv; v++) {
      vi dwords = load_bits(q + g * GROUP_BYTES + v * SLM2_VB);
      UNROLL for (int p = 0; p < PARTS; p++) store_bits(k->weight + (p * GROUPS + g) * PANEL + v * LANES, weight_part(dwords, p));
    }
  }
  return (const uint8_t *)k->weight;
}

INLINE void prepare_activations(block_q8 *k, const int8_t *xq, uint32_t cols, uint32_t n) {
  for (uint32_t t = 0; t < n; t++) {
    int32_t *to = k->x + t * STEPS;
    const int8_t *from = xq + (size_t)t * cols;
#if LANES > GROUPS
    typedef int32_t narrow __attribute__((vector_size(32)));
    typedef narrow narrow_at __attribute__((aligned(1), may_alias));
    typedef int16_t pairs __attribute__((vector_size(32)));
    narrow dwords = *(const narrow_at *)from;
    if (BIASED) *(narrow_at *)to = dwords ^ (int32_t)0x80808080;
    else if (PARTS == 1) *(narrow_at *)to = dwords;
    else {
      *(narrow_at *)to = (narrow)((pairs)((pairs)dwords << 8) >> 8);
      *(narrow_at *)(to + GROUPS) = (narrow)((pairs)dwords >> 8);
    }
#else
    UNROLL for (int g = 0; g < GROUPS; g += LANES) {
      vi dwords = load_bits(from + 4 * g);
      if (SIGNED) store_bits(to + SIGNS + g, sign_of(dwords));
      UNROLL for (int p = 0; p < PARTS; p++) store_bits(to + p * GROUPS + g, activation_part(dwords, p));
    }
    if (SIGNED) k->first[t] = start_token(from);
#endif
  }
}

/* tt tokens times tv vectors of rows over one block: acc[t * PANEL + row] += (float)S * (d * a). */
INLINE void tile_q8(float *acc, const uint8_t *weight, const block_q8 *k, uint32_t t0, int v0, const float *a, uint32_t blocks,
                    const int tt, const int tv) {
  vi sum[Q8_TOKENS][Q8_VECTORS];
  UNROLL for (int t = 0; t < tt; t++)
    UNROLL for (int v = 0; v < tv; v++) sum[t][v] = SIGNED ? splat_bits(k->first[t0 + (uint32_t)t]) : k->start[v0 + v];
  const int32_t *x = k->x + t0 * STEPS;
  weight += v0 * SLM2_VB;
  ROLLED for (int s = 0; s < STEPS; s++, weight += GROUP_BYTES, x++) {
    ONE_ADDRESS(weight);
    ONE_ADDRESS(x);
    vi column[Q8_VECTORS];
    UNROLL for (int v = 0; v < tv; v++) column[v] = load_bits(weight + v * SLM2_VB);
    UNROLL for (int t = 0; t < tt; t++) {
      vi act = splat_bits(x[t * STEPS]), sign = SIGNED ? splat_bits(x[t * STEPS + (int)SIGNS]) : act;
      UNROLL for (int v = 0; v < tv; v++) sum[t][v] = dot(sum[t][v], signed_weight(column[v], sign), act);
    }
  }
  UNROLL for (int t = 0; t < tt; t++) {
    float scale = a[(size_t)(t0 + (uint32_t)t) * blocks];
    float *out = acc + (t0 + (uint32_t)t) * PANEL + v0 * LANES;
    UNROLL for (int v = 0; v < tv; v++)
      store(out + v * LANES, load(out + v * LANES) + block_sum(sum[t][v]) * (k->scale[v0 + v] * scale));
  }
}

/* n <= MAX_TOKENS tokens, nv vectors of rows from row r. */
INLINE void tokens_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n, uint32_t r,
                      const int nv) {
  const uint32_t blocks = w->cols / SLM2_BLOCK;
  const uint8_t *panel = panel_at(w, r);
  float acc[MAX_TOKENS * PANEL] ALIGNED;
  block_q8 k;
  for (uint32_t i = 0; i < n * PANEL; i++) acc[i] = 0.0f;
  for (uint32_t b = 0; b < blocks; b++, panel += SLM2_PANEL_BYTES, xq += SLM2_BLOCK, a++) {
    const uint8_t *weight = prepare_weights(&k, panel, r, nv);
    prepare_activations(&k, xq, w->cols, n);
    for (int v = 0; v < nv; v += Q8_VECTORS_OF(nv)) {
      uint32_t t = 0;
      for (; t + Q8_TOKENS <= n; t += Q8_TOKENS) tile_q8(acc, weight, &k, t, v, a, blocks, Q8_TOKENS, Q8_VECTORS_OF(nv));
      for (; t + 2 <= n; t += 2) tile_q8(acc, weight, &k, t, v, a, blocks, 2, Q8_VECTORS_OF(nv));
      for (; t < n; t++) tile_q8(acc, weight, &k, t, v, a, blocks, 1, Q8_VECTORS_OF(nv));
    }
  }
  copy_rows(y + r, y_stride, acc, n, nv);
}

static inline void matmul_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n,
                             uint32_t r0, uint32_t r1) {
  if (w->form != SLM2_FORM_PANELS) {
    slm2_oracle_matmul_q8(y, y_stride, w, xq, a, n, r0, r1);
    return;
  }
  for (uint32_t t = 0, tokens; t < n; t += tokens) {
    tokens = n - t < MAX_TOKENS ? n - t : MAX_TOKENS;
    float *out = y + t * y_stride;
    const int8_t *in = xq + (size_t)t * w->cols;
    const float *scale = a + (size_t)t * (w->cols / SLM2_BLOCK);
    for (uint32_t r = r0, rows; r < r1; r += rows) {
      const uint32_t apart = tokens == 1 ? apart_of(r, r1) : 0;
      rows = apart != 0 ? 2 * apart : rows_of_step(r, r1);
      if (apart != 0) panels_q8(out, w, in, scale, r, apart);
      else if (tokens == 1 && rows == 32) vector_q8(out, w, in, scale, r, 0, NV_PANEL, 1);
      else if (tokens == 1) vector_q8(out, w, in, scale, r, 0, NV_HALF, 1);
      else if (rows == 32) tokens_q8(out, y_stride, w, in, scale, tokens, r, NV_PANEL);
      else tokens_q8(out, y_stride, w, in, scale, tokens, r, NV_HALF);
    }
  }
}

#endif
