/* platform/pool.c: slm2/pool.h on threads.h: the operating system's threads, or a browser's workers (wasm/gate.c). Knows
 * nothing of what it runs.
 *
 * A run is a round. Every thread has a lane: a range of consecutive units, so that it streams through its own part of the
 * weights in every round. It takes pieces from the front of its lane; when that is empty, from the back of the others'.
 * Workers enter an open round and leave it; the caller closes the round when no lane has units left, and waits for those
 * still inside. So a round ends when its work does, even if a worker never woke up for it: more threads than processors
 * cost time, and hang nothing.
 *
 * Everything a round needs is written before it opens and read inside it; entering acquires and leaving releases, which
 * orders the units' memory too.
 */
#include "platform/threads.h"

#include <stdatomic.h>

#include "base/error.h"

#define SPIN_NS 100000u /* longer than the steps between two products of a token, shorter than a token */
#define LOOKS 64u /* between two looks at the clock */

/* The state word: open, threads inside (the caller not counted), number of the round, which may wrap around. */
#define OPEN 1u
#define INSIDE 2u
#define INSIDE_MASK (0x7ffu * INSIDE)
#define ROUND 0x1000u
#define ROUND_MASK (~(ROUND - 1))
_Static_assert(SLM2_THREADS_MAX < 0x7ff, "the count of threads inside fits its field");

typedef struct lane {
  _Alignas(64) _Atomic(uint64_t) range; /* begin << 32 | end */
  slm2_threads *threads;
  slm2_thread *thread; /* NULL for lane 0, the caller's */
  uint32_t number;
} lane;

/* Where to sleep, and how many do. */
typedef struct bell {
  _Alignas(64) _Atomic(uint32_t) sleeping;
  slm2_gate *gate;
} bell;

struct slm2_threads {
  slm2_pool pool;
  uint64_t bytes;   /* of this block */
  uint64_t spin_ns; /* 0: at once to sleep */
  slm2_job_fn *job;
  void *context;
  uint32_t grain;
  _Atomic(bool) quit;
  _Alignas(64) _Atomic(uint32_t) state;
  bell start, end; /* workers wait for a round, the caller for its end */
  lane lanes[];
};

/* --- taking units ----------------------------------------------------------- */

static uint64_t pack(uint32_t begin, uint32_t end) { return (uint64_t)begin << 32 | end; }

/* Up to grain units from the front of a lane or from its back. */
static bool take(lane *l, uint32_t grain, bool back, uint32_t *begin, uint32_t *end) {
  uint64_t range = atomic_load_explicit(&l->range, memory_order_relaxed), rest;
  do {
    uint32_t first = (uint32_t)(range >> 32), last = (uint32_t)range;
    if (first == last) return false;
    uint32_t n = last - first < grain ? last - first : grain;
    *begin = back ? last - n : first;
    *end = *begin + n;
    rest = back ? pack(first, last - n) : pack(first + n, last);
  } while (!atomic_compare_exchange_weak_explicit(&l->range, &range, rest, memory_order_relaxed, memory_order_relaxed));
  return true;
}

/* All units that nobody else takes: until every lane is empty. */
static void work(slm2_threads *t, uint32_t number) {
  uint32_t begin, end, n = t->pool.n_threads;
  for (uint32_t i = 0; i < n; i++) {
    lane *l = &t->lanes[(number + i) % n];
    while (take(l, t->grain, i != 0, &begin, &end)) t->job(t->context, number, begin, end);
  }
}

/* --- waiting ------------------------------------------------------------------ */

static void pause_processor(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* The time that a wait counts from and to. WebAssembly has no clock: there the looks taken tell. One takes 0.25 ns in V8's
 * best code on a Zen 5, and 1.2 ns in its first, in which a worker's endless loop may stay. */
#ifdef __wasm__
static uint64_t now_ns(uint64_t looks) { return looks / 4; }
#else
static uint64_t now_ns(uint64_t looks) {
  (void)looks;
  return slm2_clock_ns();
}
#endif

/* A round that this worker has not seen, or the end. */
static bool has_news(slm2_threads *t, uint32_t seen) {
  uint32_t state = atomic_load(&t->state);
  return ((state & OPEN) != 0 && (state & ROUND_MASK) != seen) || atomic_load(&t->quit);
}
static bool is_empty(slm2_threads *t, uint32_t unused) {
  (void)unused;
  return (atomic_load(&t->state) & INSIDE_MASK) == 0;
}

/* Whoever changes what is waited for looks at `sleeping` afterwards; whoever sleeps looks at it after `sleeping` is
 * raised. One of the two sees the other: that is what the sequentially consistent order of these words is for. */
static void wait_at(bell *b, slm2_threads *t, bool (*ready)(slm2_threads *, uint32_t), uint32_t seen) {
  if (ready(t, seen)) return;
  uint64_t looks = 0;
  for (const uint64_t start = now_ns(0); t->spin_ns != 0 && now_ns(looks) - start < t->spin_ns; looks += LOOKS)
    for (uint32_t i = 0; i < LOOKS; i++) {
      if (ready(t, seen)) return;
      pause_processor();
    }
  slm2_gate_lock(b->gate);
  atomic_fetch_add(&b->sleeping, 1);
  while (!ready(t, seen)) slm2_gate_wait(b->gate);
  atomic_fetch_sub(&b->sleeping, 1);
  slm2_gate_unlock(b->gate);
}
static void ring(bell *b) {
  if (atomic_load(&b->sleeping) == 0) return;
  slm2_gate_lock(b->gate);
  slm2_gate_wake(b->gate);
  slm2_gate_unlock(b->gate);
}

/* --- rounds --------------------------------------------------------------------- */

static void worker(void *argument) {
  lane *own = argument;
  slm2_threads *t = own->threads;
  for (uint32_t seen = 0;;) {
    wait_at(&t->start, t, has_news, seen);
    if (atomic_load(&t->quit)) return;
    uint32_t state = atomic_load(&t->state);
    if ((state & OPEN) == 0 || !atomic_compare_exchange_strong(&t->state, &state, state + INSIDE)) continue;
    seen = state & ROUND_MASK;
    work(t, own->number);
    uint32_t before = atomic_fetch_sub(&t->state, INSIDE);
    if ((before & OPEN) == 0 && (before & INSIDE_MASK) == INSIDE) ring(&t->end);
  }
}

static void run(void *self, slm2_job_fn *job, void *context, uint32_t units, uint32_t grain) {
  slm2_threads *t = self;
  const uint32_t n = t->pool.n_threads;
  t->job = job;
  t->context = context;
  t->grain = grain;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t begin = (uint32_t)((uint64_t)units * i / n), end = (uint32_t)((uint64_t)units * (i + 1) / n);
    atomic_store_explicit(&t->lanes[i].range, pack(begin, end), memory_order_relaxed);
  }
  uint32_t round = (atomic_load(&t->state) & ROUND_MASK) + ROUND;
  atomic_store(&t->state, round | OPEN);
  ring(&t->start);
  work(t, 0);
  atomic_fetch_and(&t->state, ~OPEN);
  wait_at(&t->end, t, is_empty, 0);
}

/* --- life ------------------------------------------------------------------------- */

void slm2_threads_quit(slm2_threads *t) {
  atomic_store(&t->quit, true);
  ring(&t->start);
}

void slm2_threads_destroy(slm2_threads *t) {
  if (t == NULL) return;
  slm2_threads_quit(t);
  for (uint32_t i = 1; i < t->pool.n_threads; i++)
    if (t->lanes[i].thread != NULL) slm2_thread_join(t->lanes[i].thread);
  slm2_gate_destroy(t->start.gate);
  slm2_gate_destroy(t->end.gate);
  slm2_memory_release(t, t->bytes);
}

slm2_status slm2_threads_create(uint32_t n, slm2_threads **out, slm2_error *error) {
  if (n == 0 || n > SLM2_THREADS_MAX)
    return slm2_fail(error, SLM2_E_ARGUMENT, "threads", NULL, SLM2_NO_OFFSET, "%u is outside 1 .. %u", (uint64_t)n,
                     (uint64_t)SLM2_THREADS_MAX);
  void *block;
  const uint64_t bytes = sizeof(slm2_threads) + n * sizeof(lane);
  SLM2_TRY(slm2_memory_reserve(bytes, &block, error)); /* zeroed */
  slm2_threads *t = block;
  t->pool = (slm2_pool){.n_threads = n, .self = t, .run = run};
  t->bytes = bytes;
  t->spin_ns = n <= slm2_count_cpus().processors ? SPIN_NS : 0;
  t->start.gate = slm2_gate_create();
  t->end.gate = slm2_gate_create();
  const bool gates = t->start.gate != NULL && t->end.gate != NULL;
  uint32_t started = 1;
  for (; gates && started < n; started++) {
    lane *l = &t->lanes[started];
    l->threads = t;
    l->number = started;
    l->thread = slm2_thread_start(worker, l);
    if (l->thread == NULL) break;
  }
  if (started == n && gates) {
    *out = t;
    return SLM2_OK;
  }
  slm2_threads_destroy(t);
  return slm2_fail(error, SLM2_E_MEMORY, "threads", NULL, SLM2_NO_OFFSET, "the system started %u of %u threads",
                   (uint64_t)started, (uint64_t)n);
}

const slm2_pool *slm2_threads_pool(const slm2_threads *t) { return &t->pool; }
