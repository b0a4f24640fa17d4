/* platform/threads_posix.c: threads.h for Linux, macOS and the BSDs: POSIX threads, and how many processors there are.
 * Linux tells by its scheduler and the text files of /proc and /sys (cgroups(7), proc(5)); others by sysctl or sysconf.
 */
#define _GNU_SOURCE         /* sched_getaffinity */
#define _DARWIN_C_SOURCE

#include "platform/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#define STACK_BYTES ((size_t)1 << 20)

/* --- threads ------------------------------------------------------------------ */

struct slm2_thread {
  pthread_t id;
  void (*body)(void *);
  void *argument;
};

static void *enter(void *argument) {
  slm2_thread *t = argument;
  t->body(t->argument);
  return NULL;
}

/* Signals from outside go to the program's own thread; faults stay with whoever causes them. */
static void block_signals(sigset_t *before) {
  sigset_t set;
  sigfillset(&set);
  sigdelset(&set, SIGBUS);
  sigdelset(&set, SIGSEGV);
  sigdelset(&set, SIGFPE);
  sigdelset(&set, SIGILL);
  pthread_sigmask(SIG_BLOCK, &set, before);
}

slm2_thread *slm2_thread_start(void (*body)(void *), void *argument) {
  slm2_thread *t = malloc(sizeof *t);
  pthread_attr_t attributes;
  if (t == NULL || pthread_attr_init(&attributes) != 0) {
    free(t);
    return NULL;
  }
  *t = (slm2_thread){.body = body, .argument = argument};
  pthread_attr_setstacksize(&attributes, STACK_BYTES); /* refused: the system's own size */
  sigset_t before;
  block_signals(&before);
  int code = pthread_create(&t->id, &attributes, enter, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (code == 0) return t;
  free(t);
  return NULL;
}

void slm2_thread_join(slm2_thread *t) {
  pthread_join(t->id, NULL);
  free(t);
}

struct slm2_gate {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
};

slm2_gate *slm2_gate_create(void) {
  slm2_gate *g = malloc(sizeof *g);
  if (g == NULL) return NULL;
  if (pthread_mutex_init(&g->mutex, NULL) == 0) {
    if (pthread_cond_init(&g->condition, NULL) == 0) return g;
    pthread_mutex_destroy(&g->mutex);
  }
  free(g);
  return NULL;
}
void slm2_gate_destroy(slm2_gate *g) {
  if (g == NULL) return;
  pthread_cond_destroy(&g->condition);
  pthread_mutex_destroy(&g->mutex);
  free(g);
}
void slm2_gate_lock(slm2_gate *g) { pthread_mutex_lock(&g->mutex); }
void slm2_gate_unlock(slm2_gate *g) { pthread_mutex_unlock(&g->mutex); }
void slm2_gate_wait(slm2_gate *g) { pthread_cond_wait(&g->condition, &g->mutex); }
void slm2_gate_wake(slm2_gate *g) { pthread_cond_broadcast(&g->condition); }

/* --- processors, by Linux's files -------------------------------------------------- */

#define TEXT_MAX 4096u /* of such a file; of a path */

/* The beginning of a file as a string; false when there is none. */
static bool read_text(const char *path, char text[TEXT_MAX]) {
  FILE *f = fopen(path, "re");
  if (f == NULL) return false;
  size_t n = fread(text, 1, TEXT_MAX - 1, f);
  text[n] = 0;
  fclose(f);
  return n > 0;
}

/* Whether processor i shares its core with an allowed one of a lower number. The list is like "0,4" or "0-1". */
static bool is_second_sibling(const char *root, const uint8_t *allowed, uint32_t i) {
  char path[TEXT_MAX], text[TEXT_MAX];
  int n = snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", root, i);
  if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text)) return false;
  for (char *at = text; *at >= '0' && *at <= '9';) {
    unsigned long first = strtoul(at, &at, 10), last = first;
    if (*at == '-') last = strtoul(at + 1, &at, 10);
    for (; first <= last && first < i; first++)
      if (allowed[first] != 0) return true;
    if (*at == ',') at++;
  }
  return false;
}

/* Whole processors of a quota per period, both in microseconds; no quota gives limit. */
static uint32_t whole(long long quota, long long period, uint32_t limit) {
  if (quota <= 0 || period <= 0 || quota / period >= (long long)limit) return limit;
  return quota / period > 0 ? (uint32_t)(quota / period) : 1;
}

/* The quota of one group: cpu.max of version 2 ("max 100000", "150000 100000"), two files of version 1. */
static uint32_t group_quota(const char *folder, bool second, uint32_t limit) {
  char path[TEXT_MAX], text[TEXT_MAX];
  long long quota, period;
  int n = snprintf(path, sizeof path, "%s/%s", folder, second ? "cpu.max" : "cpu.cfs_quota_us");
  if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text)) return limit;
  if (second) return sscanf(text, "%lld %lld", &quota, &period) == 2 ? whole(quota, period, limit) : limit;
  if (sscanf(text, "%lld", &quota) != 1) return limit;
  n = snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
  if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text) || sscanf(text, "%lld", &period) != 1) return limit;
  return whole(quota, period, limit);
}

/* The least quota of the group at base/group and all above it. In a container the upper ones are not to be seen. */
static uint32_t quota_upwards(const char *base, const char *group, bool second, uint32_t limit) {
  char folder[TEXT_MAX];
  int n = snprintf(folder, sizeof folder, "%s%s", base, group);
  if (n < 0 || (size_t)n >= sizeof folder) return limit;
  for (const size_t shortest = strlen(base);;) {
    limit = group_quota(folder, second, limit);
    char *slash = strrchr(folder, '/');
    if (slash == NULL || (size_t)(slash - folder) < shortest) return limit;
    *slash = 0;
  }
}

static bool names_controller(const char *list, const char *end, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = list; at < end;) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    const char *stop = comma != NULL ? comma : end;
    if ((size_t)(stop - at) == n && memcmp(at, name, n) == 0) return true;
    at = stop + 1;
  }
  return false;
}

/* /proc/self/cgroup: lines NUMBER:CONTROLLERS:GROUP; version 2 is "0::GROUP". */
static uint32_t quota(const char *root, uint32_t limit) {
  char path[TEXT_MAX], text[TEXT_MAX], base[TEXT_MAX];
  int n = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text)) return limit;
  for (char *line = text, *next; line != NULL && *line != 0; line = next) {
    next = strchr(line, '\n');
    if (next != NULL) *next++ = 0;
    char *list = strchr(line, ':');
    char *group = list == NULL ? NULL : strchr(list + 1, ':');
    if (group == NULL) continue;
    const bool second = group == list + 1;
    if (!second && !names_controller(list + 1, group, "cpu")) continue;
    n = snprintf(base, sizeof base, "%s/sys/fs/cgroup%s", root, second ? "" : "/cpu");
    if (n >= 0 && (size_t)n < sizeof base) limit = quota_upwards(base, group + 1, second, limit);
  }
  return limit;
}

slm2_cpus slm2_count_cpus_under(const char *root, const uint8_t *allowed, uint32_t n) {
  slm2_cpus cpus = {0, 0};
  for (uint32_t i = 0; i < n; i++) {
    if (allowed[i] == 0) continue;
    cpus.processors++;
    cpus.cores += !is_second_sibling(root, allowed, i);
  }
  const uint32_t limit = quota(root, SLM2_THREADS_MAX);
  if (cpus.processors > limit) cpus.processors = limit;
  if (cpus.cores > limit) cpus.cores = limit;
  if (cpus.processors == 0) cpus.processors = 1;
  if (cpus.cores == 0) cpus.cores = 1;
  return cpus;
}

/* --- processors -------------------------------------------------------------------- */

#if defined(__linux__)

#define PROCESSORS_MAX 8192u

slm2_cpus slm2_count_cpus(void) {
  uint8_t allowed[PROCESSORS_MAX] = {0};
  cpu_set_t *set = CPU_ALLOC(PROCESSORS_MAX);
  const size_t bytes = CPU_ALLOC_SIZE(PROCESSORS_MAX);
  const bool known = set != NULL && sched_getaffinity(0, bytes, set) == 0;
  for (uint32_t i = 0; i < PROCESSORS_MAX; i++) allowed[i] = known ? CPU_ISSET_S(i, bytes, set) != 0 : i == 0;
  if (set != NULL) CPU_FREE(set);
  return slm2_count_cpus_under("", allowed, PROCESSORS_MAX);
}

#else

static uint32_t within(long n) { return n < 1 ? 1 : n > (long)SLM2_THREADS_MAX ? SLM2_THREADS_MAX : (uint32_t)n; }

slm2_cpus slm2_count_cpus(void) {
  slm2_cpus cpus;
  cpus.processors = cpus.cores = within(sysconf(_SC_NPROCESSORS_ONLN));
#if defined(__APPLE__)
  int n = 0;
  size_t size = sizeof n;
  if (sysctlbyname("hw.physicalcpu", &n, &size, NULL, 0) == 0) cpus.cores = within(n);
#endif
  return cpus;
}

#endif
