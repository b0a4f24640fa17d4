#ifndef SLM2_HOSTED_STRING_H
#define SLM2_HOSTED_STRING_H

#include "base/bytes.h"

size_t strlen(const char *text);
int strcmp(const char *a, const char *b);

#endif
