/* kernel/avx512/avx512.c: the backend for x86-64 with AVX-512 F, BW, DQ and VL. Compiled with -mf16c -mavx512f
 * -mavx512bw -mavx512dq -mavx512vl. */
#define BACKEND slm2_backend_avx512
#define BACKEND_NAME "avx512"
#include "kernel/avx512/avx512.h"
