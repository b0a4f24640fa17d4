/* kernel/oracle/oracle.h: the scalar authority, one file per operation. Contracts: kernel/kernel.h. */
#ifndef SLM2_KERNEL_ORACLE_H
#define SLM2_KERNEL_ORACLE_H

#include "kernel/kernel.h"

void slm2_oracle_embed(float *y, const slm2_matrix *w, uint32_t row);
void slm2_oracle_matmul_f32(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1);
bool slm2_oracle_quantize(int8_t *xq, float *a, const float *x, uint32_t n);
void slm2_oracle_matmul_q8(float *y, size_t y_stride, const slm2_matrix *w, const int8_t *xq, const float *a, uint32_t n, uint32_t r0, uint32_t r1);
void slm2_oracle_rmsnorm(float *y, const float *x, const uint8_t *w, uint32_t n, float eps);
void slm2_oracle_rope_table(float *c, float *s, uint32_t position, const uint8_t *inv_freq, uint32_t half);
void slm2_oracle_rope(float *x, const float *c, const float *s, uint32_t half);
bool slm2_oracle_kv_store(void *dst, const float *x, uint32_t n, bool f16);
bool slm2_oracle_attention(float *out, const float *q, slm2_kv_view k, slm2_kv_view v, uint32_t n, uint32_t head_dim, float *scores);
void slm2_oracle_swiglu(float *y, const float *g, const float *u, uint32_t n);
void slm2_oracle_add(float *x, const float *y, uint32_t n);
bool slm2_oracle_finite(const float *x, size_t n);

#endif
