/* kernel/avx512/avx512.c: the backend for x86-64 with AVX-512 F, BW, DQ and VL. Compiled with -mavx512f -mavx512bw
 * -mavx512dq -mavx512vl. */
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__x86_64__)
#include "kernel/avx512/isa.h"
#define BACKEND slm2_backend_avx512
#define BACKEND_NAME "avx512"
#include "kernel/vector/table.h"
#endif
