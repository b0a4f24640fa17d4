/* base/arena.h: carving one lent block into aligned parts. Run it once with bytes == NULL to measure
 * and once to place: the two can never disagree. */
#ifndef SLM2_BASE_ARENA_H
#define SLM2_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct slm2_arena {
  uint8_t *bytes; /* NULL: measuring */
  uint64_t capacity, used;
  bool failed;    /* a request overflowed or did not fit; sticky */
} slm2_arena;

static inline void slm2_arena_init(slm2_arena *a, void *bytes, uint64_t capacity) {
  *a = (slm2_arena){bytes, capacity, 0, false};
}

/* count x size bytes, aligned to 64. NULL while measuring or once failed. */
static inline void *slm2_arena_take(slm2_arena *a, uint64_t count, uint64_t size) {
  if (a->failed || (size != 0 && count > (UINT64_MAX - 63) / size)) {
    a->failed = true;
    return NULL;
  }
  uint64_t n = (count * size + 63) & ~(uint64_t)63;
  if (n > UINT64_MAX - a->used || (a->bytes != NULL && a->used + n > a->capacity)) {
    a->failed = true;
    return NULL;
  }
  uint64_t at = a->used;
  a->used += n;
  return a->bytes == NULL ? NULL : a->bytes + at;
}

#endif
