/* tests/wasm/hosted: as much of a C library as tests/kernelcheck calls, over two imports (hosted.c). */
#ifndef SLM2_HOSTED_STDIO_H
#define SLM2_HOSTED_STDIO_H

#include <stddef.h>

typedef struct hosted_file FILE;
#define stdout ((FILE *)0)
#define SEEK_END 2
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int snprintf(char *to, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));
int fflush(FILE *file);

/* Declared for tests/test.h, and never called. */
FILE *fopen(const char *path, const char *mode);
int fseek(FILE *file, long offset, int whence);
long ftell(FILE *file);
void rewind(FILE *file);
size_t fread(void *to, size_t size, size_t n, FILE *file);
int fclose(FILE *file);

#endif
