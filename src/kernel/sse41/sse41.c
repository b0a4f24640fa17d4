/* kernel/sse41/sse41.c: the backend for every x86-64 since 2008. Compiled with -msse4.1. */
#if defined(__SSE4_1__) && defined(__x86_64__)
#include "kernel/sse41/isa.h"
#define BACKEND slm2_backend_sse41
#define BACKEND_NAME "sse41"
#include "kernel/vector/table.h"
#endif
