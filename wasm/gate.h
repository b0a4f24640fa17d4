/* wasm/gate.h: what wasm/gate.c and wasm/pool.c share beside platform/threads.h. */
#ifndef SLM2_WASM_GATE_H
#define SLM2_WASM_GATE_H

#include "platform/threads.h"

/* Runs the body that slm2_thread_start left for the index-th thread, 1 .. SLM2_WEB_THREADS_MAX - 1, or waits for a moment
 * when there is none. */
void slm2_gate_enter(uint32_t index);
/* Whether the page has told all threads to leave. */
bool slm2_web_quits(void);
/* Called by everyone who is about to sleep, without a lock: tells the pool to end when the page has told so. */
void slm2_web_heed_quit(void);

#endif
