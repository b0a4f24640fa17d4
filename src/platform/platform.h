/* platform/platform.h: the only door to the operating system: files, mapping, threads, clock, randomness for the default
 * seed. Paths are UTF-8 everywhere. posix.c and win32.c implement it, threads by pool.c; wasm has neither.
 */
#ifndef SLM2_PLATFORM_H
#define SLM2_PLATFORM_H

#include <stdbool.h>
#include "slm2/pool.h"
#include "slm2/status.h"

/* Read-only mapping of a whole regular file. An empty file gives bytes == NULL, n == 0. */
typedef struct slm2_mapping {
  const uint8_t *bytes;
  uint64_t n;
  void *handle;
} slm2_mapping;
SLM2_NODISCARD slm2_status slm2_map(const char *path, slm2_mapping *out, slm2_error *error);
void slm2_unmap(slm2_mapping *mapping);

/* A file open for positioned reads (any size, 64-bit offsets). */
typedef struct slm2_file slm2_file;
SLM2_NODISCARD slm2_status slm2_file_open(const char *path, slm2_file **out, uint64_t *n_bytes, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_file_read(slm2_file *file, uint64_t offset, void *buffer, size_t n,
                                          slm2_error *error); /* exactly n */
void slm2_file_close(slm2_file *file);

/* A file being made: a temporary neighbour of path that replaces it on commit (write, fsync, rename, fsync of the
 * folder) or vanishes on abandon, on exit() and on process death by a signal we see. Nothing is ever left half
 * written under path. */
typedef struct slm2_output slm2_output;
SLM2_NODISCARD slm2_status slm2_output_create(const char *path, slm2_output **out, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_output_write(slm2_output *output, uint64_t offset, const void *bytes, size_t n,
                                             slm2_error *error);
SLM2_NODISCARD slm2_status slm2_output_commit(slm2_output *output, slm2_error *error); /* frees output, on failure too */
void slm2_output_abandon(slm2_output *output);

/* A folder of files being made: a temporary neighbour that takes the name path on commit, when all its files are committed,
 * or vanishes with them as an output does. path must not exist yet (a slash at its end does not count). */
#define SLM2_FOLDER_FILES 8u
typedef struct slm2_folder slm2_folder;
SLM2_NODISCARD slm2_status slm2_folder_create(const char *path, slm2_folder **out, slm2_error *error);
/* Makes a file in it, at most SLM2_FOLDER_FILES; the output is committed or abandoned before the folder is. */
SLM2_NODISCARD slm2_status slm2_folder_file(slm2_folder *folder, const char *name, slm2_output **out, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_folder_commit(slm2_folder *folder, slm2_error *error); /* frees folder, on failure too */
void slm2_folder_abandon(slm2_folder *folder);

bool slm2_is_directory(const char *path);
bool slm2_file_exists(const char *path); /* a regular file */
/* Whether path resolves to a file directly inside dir (no symlink leads out of it) [FIL-7]. */
bool slm2_is_inside(const char *dir, const char *name);
/* Whether both exist and are one file, through links too: an output must never replace the input it is made from. */
bool slm2_same_file(const char *a, const char *b);

/* Zero-filled memory that the OS commits page by page; 64-byte aligned (in fact page-aligned). */
SLM2_NODISCARD slm2_status slm2_memory_reserve(uint64_t bytes, void **out, slm2_error *error);
void slm2_memory_release(void *mem, uint64_t bytes);

/* n threads that compute, 1 .. SLM2_THREADS_MAX, whoever runs the pool among them. Between runs they spin for a moment,
 * then sleep; more of them than processors always sleep. A thread that comes late to a run is not waited for. */
typedef struct slm2_threads slm2_threads;
SLM2_NODISCARD slm2_status slm2_threads_create(uint32_t n, slm2_threads **out, slm2_error *error);
const slm2_pool *slm2_threads_pool(const slm2_threads *threads);
void slm2_threads_destroy(slm2_threads *threads); /* no run is under way. NULL is fine */

/* What this process may use: its affinity mask and its group's CPU quota respected; at least 1, at most
 * SLM2_THREADS_MAX. Hyperthreads of a core are one core and several processors. */
typedef struct slm2_cpus {
  uint32_t cores, processors;
} slm2_cpus;
slm2_cpus slm2_count_cpus(void);

uint64_t slm2_clock_ns(void);                    /* monotonic */
SLM2_NODISCARD slm2_status slm2_random_seed(uint64_t *seed, slm2_error *error); /* from the OS's generator */
bool slm2_is_terminal(int fd);
/* At the start of a program: argv and console in UTF-8 where the OS needs it; failed writes are reported and not
 * signalled, and a mapped file that is cut short ends the program with a line and exit code 1. */
void slm2_platform_start(int *argc, char ***argv);
/* Calls handler(SIGINT-like) once per Ctrl-C instead of ending the program; NULL restores the default. */
void slm2_on_interrupt(void (*handler)(void));

#endif
