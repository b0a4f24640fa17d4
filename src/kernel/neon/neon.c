/* kernel/neon/neon.c: the backend for every little-endian aarch64. */
#if defined(__aarch64__) && defined(__ARM_NEON) && defined(__AARCH64EL__)
#include "kernel/neon/isa.h"
#define BACKEND slm2_backend_neon
#define BACKEND_NAME "neon"
#include "kernel/vector/table.h"
#endif
