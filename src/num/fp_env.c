/* num/fp_env.c: saving, setting and restoring the floating-point control state [D2]. WebAssembly has none: it
 * always rounds to nearest even with gradual underflow. Elsewhere FLT_EVAL_METHOD == 0 (asserted in the header)
 * rules out x87 arithmetic, so MXCSR is all of it on x86. */
#include "num/fp_env.h"

#if defined(__x86_64__) || defined(__i386__)

#define MXCSR_DEFAULT 0x1f80u /* nearest even, FTZ and DAZ off, every exception masked, no flag raised */

slm2_fp_state slm2_fp_enter(void) {
  uint32_t old, set = MXCSR_DEFAULT;
  __asm__ volatile("stmxcsr %0" : "=m"(old) : : "memory");
  __asm__ volatile("ldmxcsr %0" : : "m"(set) : "memory");
  return (slm2_fp_state){old};
}

void slm2_fp_leave(slm2_fp_state state) {
  uint32_t old = (uint32_t)state.control;
  __asm__ volatile("ldmxcsr %0" : : "m"(old) : "memory");
}

#elif defined(__aarch64__)

/* FPCR 0: nearest even, no flush to zero (FZ, FZ16, FIZ), no default NaN, no trap. */
slm2_fp_state slm2_fp_enter(void) {
  uint64_t old;
  __asm__ volatile("mrs %0, fpcr" : "=r"(old) : : "memory");
  __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
  return (slm2_fp_state){old};
}

void slm2_fp_leave(slm2_fp_state state) { __asm__ volatile("msr fpcr, %0" : : "r"(state.control) : "memory"); }

#elif defined(__arm__) && defined(__ARM_FP)

/* FPSCR 0, as FPCR 0 above. */
slm2_fp_state slm2_fp_enter(void) {
  uint32_t old;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(old) : : "memory");
  __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)0) : "memory");
  return (slm2_fp_state){old};
}

void slm2_fp_leave(slm2_fp_state state) { __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)state.control) : "memory"); }

#else

slm2_fp_state slm2_fp_enter(void) { return (slm2_fp_state){0}; }
void slm2_fp_leave(slm2_fp_state state) { (void)state; }

#endif
