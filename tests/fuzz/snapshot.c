/* tests/fuzz/snapshot.c: a session's snapshot with edits. A refused one leaves the session as it was; a restored one
 * computes on. Input: u8 (bit 0: make the hashes right again), u16 bytes to cut off, then edits: u16 place, u8 value. */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/snapshot_file.h"

static slm2_status quiet_read(void *user, uint64_t offset, void *out, size_t n, slm2_error *e) {
  const blob *b = user;
  (void)e;
  MUST(n >= 1 && n <= 4096 && offset <= b->n && n <= b->n - offset);
  memcpy(out, b->bytes + offset, n);
  return SLM2_OK;
}

static slm2_session *session;
static blob original; /* five tokens */
static const uint32_t ids[] = {7, 1, 63, 2, 9};

static void make_original(void) {
  tiny_model m = tiny_load(tiny_build(&tiny_specs[0], SLM2_FORM_ROWS, NULL, 0, SLM2_NO_TOKEN));
  slm2_session_params params = {.context = 8, .tile = 4, .profile = SLM2_PROFILE_F32, .kv = SLM2_KV_F32};
  slm2_snapshot_extras extras = {.attachment = "[{}]", .attachment_bytes = 4};
  session = tiny_session(m.model, &params);
  MUST(slm2_session_append(session, ids, 5, NULL, NULL) == SLM2_OK);
  original = blob_of(session, &extras);
}

static void edit(blob *b, const uint8_t *data, size_t n) {
  size_t cut = slm2_load_u16(data + 1);
  b->n -= cut < b->n ? cut : b->n;
  for (size_t at = 3; at + 3 <= n; at += 3) {
    size_t place = slm2_load_u16(data + at);
    if (place < b->n) b->bytes[place] = data[at + 2];
  }
  if ((data[0] & 1) == 0 || b->n < HEAD_BYTES) return;
  size_t front = front_bytes(b);
  if (front <= b->n && b->n - front >= 32) blob_seal(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (session == NULL) make_original();
  if (n < 3) return 0;
  slm2_error e = {0};
  slm2_snapshot p;
  blob b = blob_copy(&original);
  edit(&b, data, n);
  slm2_snapshot_source source = {&b, b.n, quiet_read};
  MUST(slm2_session_rewind(session, 0, &e) == SLM2_OK && slm2_session_append(session, ids, 3, NULL, &e) == SLM2_OK);
  slm2_status status = slm2_snapshot_open(&p, &source, &e);
  if (status == SLM2_OK) status = slm2_snapshot_restore(&p, session, &e);
  if (status != SLM2_OK) {
    fuzz_refusal(status, &e);
    MUST(slm2_session_length(session) == 3 && memcmp(slm2_session_ids(session), ids, 3 * sizeof *ids) == 0);
    MUST(slm2_session_logits(session) != NULL);
  } else if (slm2_session_length(session) < 8) {
    status = slm2_session_append(session, ids, 1, NULL, &e);
    MUST(status == SLM2_OK || status == SLM2_E_NUMERICAL);
  }
  free(b.bytes);
  return 0;
}
