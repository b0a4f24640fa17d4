/* kernel/oracle/attention.c: softmax(q k^T / sqrt(head_dim)) v, row by row [D15]. Masking is a row's own n: positions
 * from n on are never read. */
#include "kernel/oracle/oracle.h"
#include "num/reduce.h"

static float load(slm2_kv_view kv, size_t i) {
  return kv.f16 ? slm2_f16_to_f32(((const uint16_t *)kv.data)[i]) : ((const float *)kv.data)[i];
}

static bool attend(float *out, const float *q, slm2_kv_view k, slm2_kv_view v, uint32_t n, uint32_t head_dim, float *scores) {
  /* The f32 nearest 1/sqrt(head_dim): two roundings in f64 and the cast agree with one for every head_dim up to
   * SLM2_MAX_HEAD_DIM (test_oracle.c compares them all with the exact value). */
  const float scale = (float)(1.0 / slm2_sqrt((double)head_dim));
  for (uint32_t t = 0; t < n; t++) {
    slm2_lanes8 dot = {{0}};
    for (uint32_t d = 0; d < head_dim; d++) dot.s[d & 7] += q[d] * load(k, (size_t)t * head_dim + d);
    scores[t] = slm2_lanes8_sum(&dot) * scale;
  }
  if (!slm2_oracle_finite(scores, n)) return false;

  float max = scores[0];
  for (uint32_t t = 1; t < n; t++) max = scores[t] > max ? scores[t] : max;
  for (uint32_t t = 0; t < n; t++) scores[t] = slm2_expf(scores[t] - max); /* the difference may be -inf: exp gives +0 */
  float sum = slm2_sum_lanes8(scores, n);

  for (uint32_t d = 0; d < head_dim; d++) out[d] = 0.0f;
  for (uint32_t t = 0; t < n; t++) {
    float p = scores[t] / sum;
    for (uint32_t d = 0; d < head_dim; d++) out[d] = out[d] + p * load(v, (size_t)t * head_dim + d);
  }
  return true;
}

bool slm2_oracle_attention(const slm2_attention *a) {
  for (uint32_t t = 0; t < a->tokens; t++) {
    for (uint32_t h = 0; h < a->heads; h++) {
      const size_t at = t * a->stride + (size_t)h * a->head_dim;
      if (!attend(a->out + at, a->q + at, a->k, a->v, a->n + t, a->head_dim, a->scratch)) return false;
    }
  }
  return true;
}
