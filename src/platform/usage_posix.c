/* platform/usage_posix.c: usage.h by getrusage, and where there is Linux by perf_event_open, posix_fadvise
 * and mincore. */
#define _DEFAULT_SOURCE  /* syscall on glibc */
#define _DARWIN_C_SOURCE

#include "platform/usage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/perf_event.h>
#include <sys/syscall.h>
#endif

#ifdef __APPLE__
#define MAXRSS_UNIT 1u /* bytes; elsewhere KiB */
#else
#define MAXRSS_UNIT 1024u
#endif

slm2_usage slm2_usage_now(void) {
  struct rusage u;
  if (getrusage(RUSAGE_SELF, &u) != 0) return (slm2_usage){0};
  return (slm2_usage){
    .peak_rss = (uint64_t)u.ru_maxrss * MAXRSS_UNIT,
    .minor_faults = (uint64_t)u.ru_minflt,
    .major_faults = (uint64_t)u.ru_majflt,
  };
}

struct slm2_tlb_counter {
  int fd;
};

#ifdef __linux__
slm2_tlb_counter *slm2_tlb_open(void) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HW_CACHE;
  attr.config = PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.inherit = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return NULL;
  slm2_tlb_counter *counter = malloc(sizeof *counter);
  if (counter == NULL) close((int)fd);
  else counter->fd = (int)fd;
  return counter;
}

/* A counter that shares its hardware with others ran for a part of the time, and is scaled to all of it. */
bool slm2_tlb_read(const slm2_tlb_counter *counter, uint64_t *misses) {
  uint64_t v[3]; /* count, time enabled, time running */
  if (read(counter->fd, v, sizeof v) != (ssize_t)sizeof v || v[2] == 0) return false;
  *misses = v[1] == v[2] ? v[0] : (uint64_t)((double)v[0] * (double)v[1] / (double)v[2]);
  return true;
}
#else
slm2_tlb_counter *slm2_tlb_open(void) { return NULL; }

bool slm2_tlb_read(const slm2_tlb_counter *counter, uint64_t *misses) {
  (void)counter;
  (void)misses;
  return false;
}
#endif

void slm2_tlb_close(slm2_tlb_counter *counter) {
  if (counter == NULL) return;
  close(counter->fd);
  free(counter);
}

#ifdef __linux__
#define WINDOW_PAGES 4096u

/* Pages of the file in memory. */
static uint64_t resident_pages(int fd, uint64_t bytes, uint64_t page) {
  unsigned char in_memory[WINDOW_PAGES];
  uint64_t n = 0;
  for (uint64_t at = 0; at < bytes; at += WINDOW_PAGES * page) {
    const size_t length = (size_t)(bytes - at < WINDOW_PAGES * page ? bytes - at : WINDOW_PAGES * page);
    void *map = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, (off_t)at);
    if (map == MAP_FAILED) return bytes;
    if (mincore(map, length, in_memory) != 0) memset(in_memory, 1, sizeof in_memory);
    munmap(map, length);
    for (uint64_t i = 0; i * page < length; i++) n += in_memory[i] & 1;
  }
  return n;
}

bool slm2_forget_file(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat st;
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  bool done = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fsync(fd) == 0; /* pages not yet written cannot be dropped */
  done = done && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  done = done && resident_pages(fd, (uint64_t)st.st_size, page) <= (uint64_t)st.st_size / page / 64;
  close(fd);
  return done;
}
#else
bool slm2_forget_file(const char *path) {
  (void)path;
  return false;
}
#endif
