/* num/fp_env.h: the floating-point environment [D1] [D2]. The one place outside kernel/<isa> that
 * uses compiler extensions. */
#ifndef SLM2_NUM_FP_ENV_H
#define SLM2_NUM_FP_ENV_H

#include <float.h>
#include <stdint.h>

_Static_assert(FLT_EVAL_METHOD == 0, "every f32 operation must round to f32 [D1]");
_Static_assert(FLT_RADIX == 2 && FLT_MANT_DIG == 24 && DBL_MANT_DIG == 53, "IEEE-754 binary32 and binary64 [D1]");
#ifdef __FAST_MATH__
#error "slm2 must not be compiled with -ffast-math [D1]"
#endif

#define SLM2_NOINLINE __attribute__((noinline))

/* Control state of this thread. */
typedef struct slm2_fp_state { uint64_t control; } slm2_fp_state;

/* Saves the control state and sets round-to-nearest-even with gradual underflow (FTZ and DAZ off). Public entry
 * points call it, then a noinline body that does all the arithmetic, then slm2_fp_leave. */
slm2_fp_state slm2_fp_enter(void);
void slm2_fp_leave(slm2_fp_state state);

#endif
