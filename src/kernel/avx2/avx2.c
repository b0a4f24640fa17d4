/* kernel/avx2/avx2.c: the backend for x86-64 with AVX2 and F16C (2013 on). Compiled with -mavx2 -mf16c. */
#if defined(__AVX2__) && defined(__F16C__) && defined(__x86_64__)
#include "kernel/avx2/isa.h"
#define BACKEND slm2_backend_avx2
#define BACKEND_NAME "avx2"
#include "kernel/vector/table.h"
#endif
