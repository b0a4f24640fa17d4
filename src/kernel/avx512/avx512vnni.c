/* kernel/avx512/avx512vnni.c: avx512 with byte products. Compiled with its flags and -mavx512vnni. */
#define WITH_VNNI
#define BACKEND slm2_backend_avx512vnni
#define BACKEND_NAME "avx512vnni"
#include "kernel/avx512/avx512.h"
