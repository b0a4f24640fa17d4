/* slm2/pool.h: the threads that compute, supplied by the host: the operating system's, or workers of a browser.
 *
 * slm2 cuts work into units that write output elements of their own, so neither the number of threads nor who took
 * which unit is ever in a result [D8]. A pool only has to do every unit once.
 */
#ifndef SLM2_POOL_H
#define SLM2_POOL_H

#include "slm2/status.h"

SLM2_C_BEGIN

#define SLM2_THREADS_MAX 1024u

/* Does units begin .. end - 1. thread says who calls: no two calls at a time have the same number. */
typedef void slm2_job_fn(void *context, uint32_t thread, uint32_t begin, uint32_t end);

typedef struct slm2_pool {
  uint32_t n_threads; /* 1 .. SLM2_THREADS_MAX: thread numbers are below it. The caller of run is one of them */
  void *self;         /* given to run */
  /* Does units 0 .. units - 1, each exactly once, in pieces of at most grain consecutive ones; grain >= 1. Returns when
   * all are done, and the caller sees what they wrote: the only synchronisation there is. One run at a time. Jobs call
   * no run, and are short: they look at the cancel word themselves [K14]. */
  void (*run)(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain);
} slm2_pool;

SLM2_C_END

#endif
