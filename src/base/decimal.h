/* base/decimal.h: decimal text and binary64, both ways, correctly rounded, without libc. */
#ifndef SLM2_BASE_DECIMAL_H
#define SLM2_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [-]digits[.digits][(e|E)[+-]digits] (a JSON number; leading zeros and a leading or trailing '.' are refused
 * as in JSON). Nearest even f64 of text of any length. false: not such a text. Overflow gives +-infinity,
 * underflow subnormals or zero: the caller decides. */
bool slm2_decimal_to_f64(const char *text, size_t n, double *out);
/* Nearest f32 of the nearest f64, as [D19] demands of parameters. */
bool slm2_decimal_to_f32(const char *text, size_t n, float *out);

#define SLM2_DECIMAL_MAX 32u
/* Shortest decimal that reads back to x, laid out like Python's repr (1.0, 0.1, 1e-07, 1e+16). x finite.
 * Returns the length, at most SLM2_DECIMAL_MAX - 1; NUL-terminated. */
size_t slm2_f64_to_decimal(double x, char out[SLM2_DECIMAL_MAX]);
/* Shortest decimal that reads back to the f32 x (through f64 and one rounding). x finite. */
size_t slm2_f32_to_decimal(float x, char out[SLM2_DECIMAL_MAX]);
/* Unsigned integer; returns the length; NUL-terminated. */
size_t slm2_u64_to_decimal(uint64_t x, char out[SLM2_DECIMAL_MAX]);

#endif
