/* num/round.h: the one rounding of every elementary function [D4]. */
#ifndef SLM2_NUM_ROUND_H
#define SLM2_NUM_ROUND_H

#include "base/bytes.h"

/* hi + lo, where hi = fl64(hi + lo), forced into binary64 by rounding to odd: of the two binary64 around an
 * inexact sum the one whose last bit is 1. Rounding that to binary32, subnormals included, then gives what
 * rounding the exact sum once would give (Boldo and Melquiond: 53 >= 24 + 2). hi is 0 only when lo is. */
static inline double slm2_round_to_odd(double hi, double lo) {
  uint64_t bits = slm2_double_bits(hi);
  uint64_t move = ~bits & (uint64_t)(lo != 0.0), towards_zero = (uint64_t)((lo < 0.0) != (hi < 0.0));
  return slm2_double_from_bits(bits + move - 2 * (move & towards_zero));
}

#endif
