/* num/math.h: the elementary functions [D4] and half precision [D18]. Each returns the correctly rounded
 * f32 result (round to nearest even) over the stated range, which tests check exhaustively against MPFR. */
#ifndef SLM2_NUM_MATH_H
#define SLM2_NUM_MATH_H

#include <stdbool.h>
#include <stdint.h>

/* x <= 0, or -infinity (gives +0); NaN and x > 0 are outside the contract of the model, but x in (0, 88.72] is right too. */
float slm2_expf(float x);
/* x > 0 and finite, subnormals included. */
float slm2_logf(float x);
/* 0 <= x <= SLM2_ANGLE_MAX. */
#define SLM2_ANGLE_MAX 131072.0f
void slm2_sincosf(float x, float *sin_out, float *cos_out);
/* Correctly rounded square roots: one instruction where the target has it. x >= 0. */
static inline float slm2_sqrtf(float x) { return __builtin_sqrtf(x); }
static inline double slm2_sqrt(double x) { return __builtin_sqrt(x); }

/* f16 bits to f32: exact, subnormals, infinities and NaN (payload kept) included. */
float slm2_f16_to_f32(uint16_t h);
/* f32 to f16: nearest even, gradual underflow; overflow gives infinity (0x7c00), NaN gives 0x7e00 | sign. */
uint16_t slm2_f32_to_f16(float x);

/* RoPE frequencies [D14]: out[i] = fl32(1 / fl32(theta^fl32(2i/head_dim))) for i < head_dim / 2; the power is
 * correctly rounded. theta in 2 .. 2^31; false when it is not. */
bool slm2_inv_freq(uint32_t theta, uint32_t head_dim, float *out);

#endif
