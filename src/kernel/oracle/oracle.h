/* kernel/oracle/oracle.h: the scalar authority, one file per operation. It is read as the specification:
 * the shortest code that obeys docs/NUMERICS.md, no tricks. Contracts: kernel/kernel.h.
 */
#ifndef SLM2_KERNEL_ORACLE_H
#define SLM2_KERNEL_ORACLE_H

#include "base/bytes.h"
#include "kernel/kernel.h"
#include "kernel/weights.h"
#include "num/math.h"

void slm2_oracle_embed(float *y, const slm2_matrix *w, uint32_t row);
void slm2_oracle_matmul_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0,
                            uint32_t r1);
bool slm2_oracle_quantize(int8_t *xq, float *a, const float *x, uint32_t n);
void slm2_oracle_matmul_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n,
                           uint32_t r0, uint32_t r1);
void slm2_oracle_rmsnorm(float *y, const float *x, const uint8_t *w, uint32_t n, float eps);
void slm2_oracle_rope_table(float *c, float *s, uint32_t position, const uint8_t *inv_freq, uint32_t half);
void slm2_oracle_rope(float *x, const float *c, const float *s, uint32_t half);
bool slm2_oracle_kv_store(void *dst, const float *x, uint32_t n, bool f16);
bool slm2_oracle_attention(const slm2_attention *a);
void slm2_oracle_swiglu(float *y, const float *g, const float *u, uint32_t n);
void slm2_oracle_add(float *x, const float *y, uint32_t n);
bool slm2_oracle_finite(const float *x, size_t n);
float slm2_oracle_greatest(const float *x, size_t n);
void slm2_oracle_exp_below(float *y, const float *x, float max, size_t n);

/* [D9] Scale d of (row, block b). */
static inline float slm2_oracle_scale(const slm2_matrix *w, uint32_t row, uint32_t b) {
  return slm2_f16_to_f32(slm2_load_u16(w->data + slm2_scale_at(w->form, w->cols, row, b)));
}
/* Weight q of (row, 32 b + k). */
static inline int8_t slm2_oracle_weight(const slm2_matrix *w, uint32_t row, uint32_t b, uint32_t k) {
  return (int8_t)w->data[slm2_weight_at(w->form, w->cols, row, b, k)];
}
/* [D5] |x| as an integer: ordered like the magnitudes; infinity and every NaN are >= SLM2_INFINITY_BITS. */
#define SLM2_INFINITY_BITS 0x7f800000u
static inline uint32_t slm2_oracle_magnitude(float x) { return slm2_float_bits(x) & 0x7fffffffu; }

#endif
