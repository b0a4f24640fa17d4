/* tests/unit/snapshot_file.h: snapshots in memory, sinks and sources that can be made to fail, and the layout of
 * docs/FORMAT.md written out once more, so that the code's own offsets are not the judge of themselves. */
#ifndef SLM2_SNAPSHOT_FILE_H
#define SLM2_SNAPSHOT_FILE_H

#include "session/session.h"
#include "slm2/snapshot.h"
#include "tests/unit/tiny_model.h"

/* Offsets of the head. */
enum { AT_VERSION = 8, AT_PROFILE = 12, AT_KV = 16, AT_LAYERS = 20, AT_KV_HEADS = 24, AT_HEAD_DIM = 28, AT_VOCAB = 32,
       AT_LENGTH = 36, AT_FLAGS = 40, AT_COUNT = 44, AT_LAST = 48, AT_SEED = 52, AT_WORDS = 60, AT_ATTACHMENT = 68,
       AT_MODEL = 76, AT_TOKENIZER = 108, AT_KV_SHA256 = 140, HEAD_BYTES = 172 };

typedef struct blob {
  uint8_t *bytes;
  uint64_t n, capacity;
  /* The call with this number fails with SLM2_E_IO; from the read with number swap_read on, `other` is read. -1: never */
  long calls, fail_call, swap_call;
  const uint8_t *other;
} blob;
#define NO_BLOB ((blob){.fail_call = -1, .swap_call = -1})

static inline slm2_status blob_fail(slm2_error *error) {
  if (error != NULL) *error = (slm2_error){.code = SLM2_E_IO, .message = "as asked"};
  return SLM2_E_IO;
}

static inline slm2_status blob_write(void *user, const void *bytes, size_t n, slm2_error *error) {
  blob *b = user;
  CHECK(n >= 1 && n <= 4096);
  if (b->calls++ == b->fail_call) return blob_fail(error);
  if (b->n + n > b->capacity) b->bytes = realloc(b->bytes, (size_t)(b->capacity = 2 * (b->n + n)));
  memcpy(b->bytes + b->n, bytes, n);
  b->n += n;
  return SLM2_OK;
}

static inline slm2_status blob_read(void *user, uint64_t offset, void *out, size_t n, slm2_error *error) {
  blob *b = user;
  CHECK(n >= 1 && n <= 4096 && offset <= b->n && n <= b->n - offset);
  long call = b->calls++;
  if (call == b->fail_call) return blob_fail(error);
  memcpy(out, (b->swap_call >= 0 && call >= b->swap_call ? b->other : b->bytes) + offset, n);
  return SLM2_OK;
}

static inline slm2_snapshot_source blob_source(blob *b) {
  b->calls = 0;
  return (slm2_snapshot_source){b, b->n, blob_read};
}

/* The snapshot of a session; its announced size is checked. */
static inline blob blob_of(const slm2_session *s, const slm2_snapshot_extras *extras) {
  blob b = NO_BLOB;
  slm2_error error = {0};
  slm2_snapshot_sink sink = {&b, blob_write};
  CHECK_CASE(slm2_snapshot_write(s, extras, &sink, &error) == SLM2_OK, error.message);
  CHECK(b.n == slm2_snapshot_bytes(s, extras));
  return b;
}

/* open and restore: what /load does. */
static inline slm2_status blob_restore(blob *b, slm2_session *s, slm2_snapshot *p, slm2_error *error) {
  slm2_snapshot_source source = blob_source(b);
  slm2_status status = slm2_snapshot_open(p, &source, error);
  return status == SLM2_OK ? slm2_snapshot_restore(p, s, error) : status;
}

/* Bytes in front of the first hash, by the numbers in the head. */
static inline size_t front_bytes(const blob *b) {
  const uint8_t *h = b->bytes;
  return HEAD_BYTES + 4 * (size_t)slm2_load_u32(h + AT_LENGTH) +
         ((slm2_load_u32(h + AT_FLAGS) & 1) != 0 ? 4 * (size_t)slm2_load_u32(h + AT_VOCAB) : 0) +
         (size_t)slm2_load_u64(h + AT_ATTACHMENT);
}

/* Makes both hashes right again after a change. */
static inline void blob_seal(blob *b) {
  size_t front = front_bytes(b);
  slm2_sha256_of(b->bytes + front + 32, (size_t)b->n - front - 32, b->bytes + AT_KV_SHA256);
  slm2_sha256_of(b->bytes, front, b->bytes + front);
}

static inline blob blob_copy(const blob *b) {
  blob copy = NO_BLOB;
  copy.bytes = malloc((size_t)b->n + 1);
  memcpy(copy.bytes, b->bytes, (size_t)b->n);
  copy.n = b->n;
  return copy;
}

/* The whole memory of a session, to see that nothing in it changed. */
typedef struct memory {
  uint8_t *bytes;
  size_t n;
} memory;
static inline memory memory_of(const slm2_session *s) {
  slm2_plan plan;
  CHECK(slm2_session_plan(slm2_model_header(slm2_session_model(s)), &s->params, &plan, NULL) == SLM2_OK);
  memory m = {malloc((size_t)plan.total), (size_t)plan.total};
  memcpy(m.bytes, s, m.n);
  return m;
}
static inline bool memory_same(const memory *m, const slm2_session *s) { return memcmp(m->bytes, s, m->n) == 0; }

#endif
