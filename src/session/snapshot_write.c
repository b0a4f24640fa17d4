/* session/snapshot_write.c: a session to a stream of bytes. Keys and values are read twice, once for their hash, which
 * the head holds, and once to be written; nothing of the session changes. Format: session/snapshot.h. */
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "session/session.h"
#include "session/snapshot.h"

typedef struct writer {
  const slm2_snapshot_sink *sink; /* NULL: hashing only */
  slm2_sha256 *hash;              /* NULL: writing only */
  size_t n;
  uint8_t piece[SLM2_SNAPSHOT_PIECE];
} writer;

static slm2_status flush(writer *w, slm2_error *error) {
  size_t n = w->n;
  w->n = 0;
  if (n == 0) return SLM2_OK;
  if (w->hash != NULL) slm2_sha256_update(w->hash, w->piece, n);
  return w->sink != NULL ? w->sink->write(w->sink->user, w->piece, n, error) : SLM2_OK;
}

/* Room for a number of at most 4 bytes: PIECE is a multiple of 4, and numbers of 2 bytes come in a part of their own. */
static slm2_status reserve(writer *w, slm2_error *error) { return w->n + 4 <= sizeof w->piece ? SLM2_OK : flush(w, error); }

static slm2_status put_u32(writer *w, uint32_t value, slm2_error *error) {
  SLM2_TRY(reserve(w, error));
  slm2_store_u32(w->piece + w->n, value);
  w->n += 4;
  return SLM2_OK;
}

static slm2_status put_u16(writer *w, uint16_t value, slm2_error *error) {
  SLM2_TRY(reserve(w, error));
  slm2_store_u16(w->piece + w->n, value);
  w->n += 2;
  return SLM2_OK;
}

static slm2_status put_bytes(writer *w, const uint8_t *bytes, uint64_t n, slm2_error *error) {
  while (n > 0) {
    if (w->n == sizeof w->piece) SLM2_TRY(flush(w, error));
    size_t take = sizeof w->piece - w->n;
    if (take > n) take = (size_t)n;
    memcpy(w->piece + w->n, bytes, take);
    w->n += take;
    bytes += take;
    n -= take;
  }
  return SLM2_OK;
}

/* Keys or values of one head: n numbers, contiguous over the positions. */
static slm2_status put_run(writer *w, const uint8_t *run, size_t n, bool f16, slm2_error *error) {
  for (size_t i = 0; i < n; i++)
    SLM2_TRY(f16 ? put_u16(w, ((const uint16_t *)(const void *)run)[i], error)
                 : put_u32(w, slm2_float_bits(((const float *)(const void *)run)[i]), error));
  return SLM2_OK;
}

static slm2_status put_kv(writer *w, const slm2_session *s, slm2_error *error) {
  const slm2_kv_cache *kv = &s->forward.kv;
  const uint8_t *const halves[] = {kv->keys, kv->values};
  for (int half = 0; half < 2; half++)
    for (uint32_t layer = 0; layer < s->forward.model->header.config.layers; layer++)
      for (uint32_t head = 0; head < kv->heads; head++)
        SLM2_TRY(put_run(w, halves[half] + slm2_kv_at(kv, layer, head, 0), (size_t)s->length * kv->head_dim, kv->f16, error));
  return flush(w, error);
}

/* Sizes and flags; hashes and answer are the caller's matter. */
static slm2_snapshot describe(const slm2_session *s, const slm2_snapshot_extras *extras) {
  const slm2_config *c = &s->forward.model->header.config;
  return (slm2_snapshot){
    .profile = s->params.profile,
    .kv = s->params.kv,
    .layers = c->layers,
    .kv_heads = c->kv_heads,
    .head_dim = c->head_dim,
    .vocab = c->vocab,
    .length = s->length,
    .has_logits = s->has_logits,
    .has_answer = extras->answer != NULL,
    .answer.last = SLM2_NO_TOKEN,
    .attachment_bytes = extras->attachment_bytes,
  };
}

static void store_head(const slm2_snapshot *p, uint8_t head[SLM2_SNAPSHOT_HEAD_BYTES]) {
  memcpy(head + SLM2_SNAPSHOT_AT_MAGIC, SLM2_SNAPSHOT_MAGIC, 8);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_VERSION, SLM2_SNAPSHOT_VERSION);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_PROFILE, p->profile);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_KV, p->kv);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_LAYERS, p->layers);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_KV_HEADS, p->kv_heads);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_HEAD_DIM, p->head_dim);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_VOCAB, p->vocab);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_LENGTH, p->length);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_FLAGS,
                 (p->has_logits ? SLM2_SNAPSHOT_HAS_LOGITS : 0) | (p->has_answer ? SLM2_SNAPSHOT_HAS_ANSWER : 0));
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_COUNT, p->answer.count);
  slm2_store_u32(head + SLM2_SNAPSHOT_AT_LAST, p->answer.last);
  slm2_store_u64(head + SLM2_SNAPSHOT_AT_SEED, p->answer.seed);
  slm2_store_u64(head + SLM2_SNAPSHOT_AT_WORDS, p->answer.words_used);
  slm2_store_u64(head + SLM2_SNAPSHOT_AT_ATTACHMENT, p->attachment_bytes);
  memcpy(head + SLM2_SNAPSHOT_AT_MODEL, p->model, 32);
  memcpy(head + SLM2_SNAPSHOT_AT_TOKENIZER, p->tokenizer, 32);
  memcpy(head + SLM2_SNAPSHOT_AT_KV_SHA256, p->kv_sha256, 32);
}

static slm2_status put_front(writer *w, const slm2_session *s, const slm2_snapshot *p, const slm2_snapshot_extras *extras,
                             slm2_error *error) {
  uint8_t head[SLM2_SNAPSHOT_HEAD_BYTES];
  store_head(p, head);
  SLM2_TRY(put_bytes(w, head, sizeof head, error));
  for (uint32_t i = 0; i < s->length; i++) SLM2_TRY(put_u32(w, s->ids[i], error));
  for (uint32_t i = 0; p->has_logits && i < p->vocab; i++) SLM2_TRY(put_u32(w, slm2_float_bits(s->logits[i]), error));
  SLM2_TRY(put_bytes(w, extras->attachment, extras->attachment_bytes, error));
  return flush(w, error);
}

static const slm2_snapshot_extras none = {0};

uint64_t slm2_snapshot_bytes(const slm2_session *s, const slm2_snapshot_extras *extras) {
  slm2_snapshot p = describe(s, extras != NULL ? extras : &none);
  return slm2_snapshot_total_bytes(&p);
}

slm2_status slm2_snapshot_write(const slm2_session *s, const slm2_snapshot_extras *extras, const slm2_snapshot_sink *sink,
                                slm2_error *error) {
  if (extras == NULL) extras = &none;
  slm2_snapshot p = describe(s, extras);
  if (p.attachment_bytes > SLM2_SNAPSHOT_MAX_ATTACHMENT)
    return slm2_fail(error, SLM2_E_ARGUMENT, "snapshot", "attachment", SLM2_NO_OFFSET, "%u bytes are more than the %u possible",
                     p.attachment_bytes, (uint64_t)SLM2_SNAPSHOT_MAX_ATTACHMENT);
  if (extras->answer != NULL) SLM2_TRY(slm2_generator_save(extras->answer, s, &p.answer, error));
  slm2_model_identity(s->forward.model, p.model);
  slm2_model_tokenizer_sha256(s->forward.model, p.tokenizer);

  slm2_sha256 hash;
  writer w = {.hash = &hash};
  slm2_sha256_init(&hash);
  SLM2_TRY(put_kv(&w, s, error));
  slm2_sha256_final(&hash, p.kv_sha256);

  slm2_sha256_init(&hash);
  w.sink = sink;
  SLM2_TRY(put_front(&w, s, &p, extras, error));
  slm2_sha256_final(&hash, p.front_sha256);
  w.hash = NULL;
  SLM2_TRY(put_bytes(&w, p.front_sha256, 32, error));
  return put_kv(&w, s, error);
}
