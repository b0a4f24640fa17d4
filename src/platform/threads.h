/* platform/threads.h: what pool.c needs of the operating system: threads, and a gate to sleep at. threads_posix.c and
 * threads_win32.c implement it, in a browser wasm/gate.c.
 */
#ifndef SLM2_PLATFORM_THREADS_H
#define SLM2_PLATFORM_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include "platform/platform.h"

typedef struct slm2_thread slm2_thread;
/* Runs body(argument) on a new thread; NULL when the system has none left. Ctrl-C and its like do not reach it. */
slm2_thread *slm2_thread_start(void (*body)(void *), void *argument);
void slm2_thread_join(slm2_thread *thread); /* waits for its end and frees it */

/* A mutex and a condition. */
typedef struct slm2_gate slm2_gate;
slm2_gate *slm2_gate_create(void); /* NULL: out of memory */
void slm2_gate_destroy(slm2_gate *gate);
void slm2_gate_lock(slm2_gate *gate);
void slm2_gate_unlock(slm2_gate *gate);
void slm2_gate_wait(slm2_gate *gate); /* locked: unlocks, sleeps, locks; it may wake for no reason */
void slm2_gate_wake(slm2_gate *gate); /* locked: wakes everyone who waits */

/* Tells the threads of a pool to end, without waiting for them: each leaves when it has nothing in hand. From any thread, at
 * any time; a run that is under way, and later ones, are done by those who are left. */
void slm2_threads_quit(slm2_threads *threads);

/* Linux: of the n processors with a non-zero byte in allowed, how many cores they are, and how many a CPU quota leaves;
 * told by the files of /proc and /sys under root ("" for the real ones). A quota is rounded down: a thread that is
 * stopped at the end of each period would make all others wait. */
slm2_cpus slm2_count_cpus_under(const char *root, const uint8_t *allowed, uint32_t n);

#endif
