/* kernel/avx512/avx512vnni.c: avx512 with byte products. Compiled with avx512's flags and -mavx512vnni. */
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__x86_64__)
#define WITH_VNNI
#include "kernel/avx512/isa.h"
#define BACKEND slm2_backend_avx512vnni
#define BACKEND_NAME "avx512vnni"
#include "kernel/vector/table.h"
#endif
