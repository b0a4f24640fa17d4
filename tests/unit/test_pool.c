/* tests/unit/test_pool.c: the thread pool: every unit once, pieces within their limits, thread numbers never shared, what
 * jobs wrote is seen, any number of threads, ten thousand rounds, a thousand lives; and the counting of processors from
 * folders that look like Linux's. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "platform/threads.h"
#include "tests/test.h"

#define UNITS_MAX 4096u

/* --- rounds ----------------------------------------------------------------------- */

typedef struct round {
  uint32_t units, grain, n_threads, factor;
  uint32_t done[UNITS_MAX];                    /* written by whoever did the unit, not atomically */
  _Atomic(uint32_t) busy[SLM2_THREADS_MAX];    /* by thread number */
  _Atomic(uint32_t) faults, pieces;
} round;

static void job(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  round *r = context;
  bool fine = thread < r->n_threads && begin < end && end <= r->units && end - begin <= r->grain;
  if (fine) {
    if (atomic_exchange(&r->busy[thread], 1) != 0) fine = false;
    for (uint32_t i = begin; i < end; i++) r->done[i] += i * r->factor + 1;
    atomic_store(&r->busy[thread], 0);
  }
  if (!fine) atomic_fetch_add(&r->faults, 1);
  atomic_fetch_add(&r->pieces, 1);
}

static void check_round(const slm2_pool *pool, round *r, uint32_t units, uint32_t grain) {
  char label[64];
  snprintf(label, sizeof label, "%u threads, %u units, %u together", pool->n_threads, units, grain);
  memset(r->done, 0, sizeof r->done);
  atomic_store(&r->pieces, 0);
  r->units = units;
  r->grain = grain;
  r->n_threads = pool->n_threads;
  r->factor++;
  pool->run(pool->self, job, r, units, grain);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < UNITS_MAX; i++) wrong += r->done[i] != (i < units ? i * r->factor + 1 : 0);
  CHECK_CASE(wrong == 0 && atomic_load(&r->faults) == 0, label);
  CHECK_CASE(atomic_load(&r->pieces) >= (units + grain - 1) / grain, label);
}

static void test_rounds(void) {
  static const uint32_t counts[] = {1, 2, 3, 8, 33}, units[] = {0, 1, 2, 7, 64, 65, 1000, UNITS_MAX};
  static const uint32_t grains[] = {1, 4, 256, UINT32_MAX};
  round *r = calloc(1, sizeof *r);
  for (int i = 0; i < 5; i++) {
    slm2_error error;
    slm2_threads *t;
    if (!CHECK(slm2_threads_create(counts[i], &t, &error) == SLM2_OK)) continue;
    const slm2_pool *pool = slm2_threads_pool(t);
    CHECK(pool->n_threads == counts[i]);
    for (int u = 0; u < 8; u++)
      for (int g = 0; g < 4; g++) check_round(pool, r, units[u], grains[g]);
    slm2_threads_destroy(t);
  }
  free(r);
}

/* Many tiny rounds, back to back and with pauses long enough for workers to fall asleep. */
static void test_many(void) {
  static const uint32_t counts[] = {2, 5};
  round *r = calloc(1, sizeof *r);
  for (int i = 0; i < 2; i++) {
    slm2_error error;
    slm2_threads *t;
    if (!CHECK(slm2_threads_create(counts[i], &t, &error) == SLM2_OK)) continue;
    const slm2_pool *pool = slm2_threads_pool(t);
    r->n_threads = counts[i];
    r->grain = 1;
    r->factor = 0;
    memset(r->done, 0, sizeof r->done);
    for (uint32_t k = 0; k < 10000; k++) {
      r->units = 1 + k % 9;
      pool->run(pool->self, job, r, r->units, 1);
      if (k % 1000 == 0)
        for (uint64_t start = slm2_clock_ns(); slm2_clock_ns() - start < 300000;) continue;
    }
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 9; k++) sum += r->done[k];
    CHECK(sum == 49996 && atomic_load(&r->faults) == 0); /* 1,111 times 1 + 2 + .. + 9, and 1 */
    slm2_threads_destroy(t);
  }
  free(r);
}

static void test_lives(void) {
  round *r = calloc(1, sizeof *r);
  for (uint32_t i = 0; i < 1000; i++) {
    slm2_error error;
    slm2_threads *t;
    if (!CHECK(slm2_threads_create(1 + i % 5, &t, &error) == SLM2_OK)) break;
    if (i % 3 != 0) check_round(slm2_threads_pool(t), r, i % 17, 1); /* else it never ran */
    slm2_threads_destroy(t);
  }
  free(r);
}

static void test_refusals(void) {
  slm2_error error;
  slm2_threads *t = NULL;
  CHECK(slm2_threads_create(0, &t, &error) == SLM2_E_ARGUMENT && t == NULL);
  CHECK(slm2_threads_create(SLM2_THREADS_MAX + 1, &t, &error) == SLM2_E_ARGUMENT && strstr(error.message, "1025") != NULL);
  slm2_threads_destroy(NULL);
}

/* --- processors --------------------------------------------------------------------- */

static void test_this_machine(void) {
  slm2_cpus cpus = slm2_count_cpus();
  CHECK(cpus.cores >= 1 && cpus.cores <= cpus.processors && cpus.processors <= SLM2_THREADS_MAX);
}

#if defined(__linux__)

#define ROOT "test-cpus"
static void put(const char *path, const char *text) {
  char full[256];
  snprintf(full, sizeof full, ROOT "%s", path);
  for (char *slash = strchr(full, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(full, 0777);
    *slash = '/';
  }
  FILE *f = fopen(full, "w");
  if (f == NULL) exit(1);
  fputs(text, f);
  fclose(f);
}

static void check_cpus(const char *allowed, uint32_t cores, uint32_t processors, const char *label) {
  uint8_t mask[16];
  uint32_t n = 0;
  for (; allowed[n] != 0; n++) mask[n] = allowed[n] == '1';
  slm2_cpus cpus = slm2_count_cpus_under(ROOT, mask, n);
  if (!CHECK_CASE(cpus.cores == cores && cpus.processors == processors, label))
    printf("  %u cores, %u processors\n", cpus.cores, cpus.processors);
}

static void test_counting(void) {
  char path[128], text[32];
  CHECK(system("rm -rf " ROOT) == 0);
  check_cpus("1111", 4, 4, "nothing is told: each is a core");
  check_cpus("0000", 1, 1, "at least one");
  for (int i = 0; i < 8; i++) { /* four cores: 0 with 4, ... , 3 with 7 */
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
    snprintf(text, sizeof text, "%d,%d\n", i % 4, i % 4 + 4);
    put(path, text);
  }
  check_cpus("11111111", 4, 8, "siblings once");
  check_cpus("11001100", 2, 4, "two whole cores");
  check_cpus("10000111", 4, 4, "any one of two siblings");
  check_cpus("00001111", 4, 4, "second siblings alone");
  put("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1,4\n");
  check_cpus("11", 1, 2, "a range");
  put("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,5\n");

  put("/proc/self/cgroup", "0::/user/job\n");
  check_cpus("11111111", 4, 8, "no quota file");
  put("/sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  check_cpus("11111111", 4, 8, "no quota");
  put("/sys/fs/cgroup/user/job/cpu.max", "350000 100000\n");
  check_cpus("11111111", 3, 3, "3.5 processors");
  check_cpus("11000000", 2, 2, "fewer than the quota");
  put("/sys/fs/cgroup/user/cpu.max", "200000 100000\n");
  check_cpus("11111111", 2, 2, "less above");
  put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  check_cpus("11111111", 1, 1, "half a processor, at the root");
  put("/proc/self/cgroup", "");
  check_cpus("11111111", 4, 8, "no group");
  put("/proc/self/cgroup", "rubbish\n::\n7:cpu\n5:cpuset:/a\n4:cpuacct,cpu:/b/c\n");
  put("/sys/fs/cgroup/cpu/b/c/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu/b/c/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu.max", "max\n");
  check_cpus("11111111", 4, 8, "version 1, no quota");
  put("/sys/fs/cgroup/cpu/b/c/cpu.cfs_quota_us", "200000\n");
  check_cpus("11111111", 2, 2, "version 1");
  put("/sys/fs/cgroup/cpu/b/c/cpu.cfs_period_us", "0\n");
  check_cpus("11111111", 4, 8, "version 1, nonsense");
  CHECK(system("rm -rf " ROOT) == 0);
}

#endif

int main(void) {
  test_refusals();
  test_rounds();
  test_many();
  test_lives();
  test_this_machine();
#if defined(__linux__)
  test_counting();
#endif
  return test_end("pool");
}
