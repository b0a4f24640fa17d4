/* kernel/neon/neon.c: the backend for every little-endian aarch64: 16-byte vectors and 32 registers; byte products where the
 * compiler may assume them (-march=armv8.2-a+dotprod and later), else int16 pairs. Compilers for AArch64 fuse multiply and
 * add unless -ffp-contract=off forbids it [D1]. */
#if defined(__aarch64__) && defined(__ARM_NEON) && defined(__AARCH64EL__)
#include <arm_neon.h>

#define SLM2_VB 16
#define TILE_TOKENS 6
#define TILE_VECTORS 4
#include "kernel/vector/vector.h"

#ifdef __ARM_FEATURE_DOTPROD
#define PARTS 1
INLINE vi dot(vi acc, vi w, vi a) { return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)w, (int8x16_t)a); }
#else
#define PARTS 2
INLINE vi dot(vi acc, vi w, vi a) {
  int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)w), vget_low_s16((int16x8_t)a));
  return acc + (vi)vpaddq_s32(low, vmull_high_s16((int16x8_t)w, (int16x8_t)a));
}
#endif

#define HAVE_F16
INLINE vf load_f16(const uint16_t *p) { return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
INLINE void store_f16(uint16_t *p, vf v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v))); }

#define BACKEND slm2_backend_neon
#define BACKEND_NAME "neon"
#include "kernel/vector/table.h"
#endif
