#ifndef SLM2_HOSTED_STDLIB_H
#define SLM2_HOSTED_STDLIB_H

#include <stddef.h>

void *malloc(size_t n);
void free(void *p);
_Noreturn void exit(int code);
unsigned long long strtoull(const char *text, char **end, int base);

#endif
