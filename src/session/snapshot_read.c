/* session/snapshot_read.c: a snapshot to a session. The source is untrusted: nothing it says is believed before its hash
 * is right and its rules are checked, and the session is written only by a second pass, when nothing is left to refuse.
 * Memory is one piece on the stack. Format: session/snapshot.h. */
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "session/session.h"
#include "session/snapshot.h"

/* A part of the snapshot under one hash, read in order. */
typedef struct reader {
  const slm2_snapshot_source *source;
  uint64_t at;
  slm2_sha256 hash;
  slm2_status verdict; /* the first broken rule; told once the hash shows that the bytes were meant so */
  slm2_error why;
  uint8_t piece[SLM2_SNAPSHOT_PIECE];
} reader;

static void begin(reader *r, const slm2_snapshot_source *source, uint64_t at) {
  r->source = source;
  r->at = at;
  r->verdict = SLM2_OK;
  slm2_sha256_init(&r->hash);
}

/* The next n bytes, at most a piece. */
static slm2_status take(reader *r, size_t n, slm2_error *error) {
  SLM2_TRY(r->source->read(r->source->user, r->at, r->piece, n, error));
  slm2_sha256_update(&r->hash, r->piece, n);
  r->at += n;
  return SLM2_OK;
}

static slm2_status end(reader *r, const char *part, const uint8_t expected[32], slm2_error *error) {
  uint8_t sum[32];
  char got[65], wanted[65];
  slm2_sha256_final(&r->hash, sum);
  slm2_hex(sum, 32, got);
  slm2_hex(expected, 32, wanted);
  if (memcmp(sum, expected, 32) != 0)
    return slm2_fail(error, SLM2_E_INTEGRITY, "snapshot", part, SLM2_NO_OFFSET, "damaged: SHA-256 is %s, %s was written", got,
                     wanted);
  if (r->verdict != SLM2_OK && error != NULL) *error = r->why;
  return r->verdict;
}

static size_t part_of(uint64_t left, size_t max) { return left < max ? (size_t)left : max; }

/* --- the front ------------------------------------------------------------------- */

static slm2_status refuse(slm2_error *error, const char *name, uint64_t offset, uint64_t value, uint64_t low, uint64_t high) {
  return slm2_fail(error, SLM2_E_FORMAT, "snapshot", name, offset, "%u is outside %u .. %u", value, low, high);
}

/* What decides about sizes, within limits that keep them far from 2^64. */
static slm2_status load_sizes(const uint8_t head[SLM2_SNAPSHOT_HEAD_BYTES], slm2_snapshot *p, slm2_error *error) {
  uint32_t kv, flags;
  const struct {
    const char *name;
    uint32_t at, low, high, *out;
  } fields[] = {
    {"kv", SLM2_SNAPSHOT_AT_KV, 0, 1, &kv},
    {"layers", SLM2_SNAPSHOT_AT_LAYERS, 1, SLM2_MAX_LAYERS, &p->layers},
    {"kv_heads", SLM2_SNAPSHOT_AT_KV_HEADS, 1, SLM2_MAX_HEADS, &p->kv_heads},
    {"head_dim", SLM2_SNAPSHOT_AT_HEAD_DIM, 1, SLM2_MAX_HEAD_DIM, &p->head_dim},
    {"vocab", SLM2_SNAPSHOT_AT_VOCAB, 1, SLM2_MAX_VOCAB, &p->vocab},
    {"length", SLM2_SNAPSHOT_AT_LENGTH, 0, SLM2_MAX_POSITIONS, &p->length},
    {"flags", SLM2_SNAPSHOT_AT_FLAGS, 0, SLM2_SNAPSHOT_HAS_LOGITS | SLM2_SNAPSHOT_HAS_ANSWER, &flags},
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    *fields[i].out = slm2_load_u32(head + fields[i].at);
    if (*fields[i].out < fields[i].low || *fields[i].out > fields[i].high)
      return refuse(error, fields[i].name, fields[i].at, *fields[i].out, fields[i].low, fields[i].high);
  }
  p->kv = (slm2_kv_type)kv;
  p->has_logits = (flags & SLM2_SNAPSHOT_HAS_LOGITS) != 0;
  p->has_answer = (flags & SLM2_SNAPSHOT_HAS_ANSWER) != 0;
  p->attachment_bytes = slm2_load_u64(head + SLM2_SNAPSHOT_AT_ATTACHMENT);
  if (p->attachment_bytes > SLM2_SNAPSHOT_MAX_ATTACHMENT)
    return refuse(error, "attachment", SLM2_SNAPSHOT_AT_ATTACHMENT, p->attachment_bytes, 0, SLM2_SNAPSHOT_MAX_ATTACHMENT);
  uint64_t total = slm2_snapshot_total_bytes(p);
  if (total != p->source.bytes)
    return slm2_fail(error, SLM2_E_FORMAT, "snapshot", "size", SLM2_NO_OFFSET,
                     "%u bytes, but its head demands %u (%u tokens, attachment of %u)", p->source.bytes, total,
                     (uint64_t)p->length, p->attachment_bytes);
  return SLM2_OK;
}

static void load_rest(const uint8_t head[SLM2_SNAPSHOT_HEAD_BYTES], slm2_snapshot *p) {
  p->profile = slm2_load_u32(head + SLM2_SNAPSHOT_AT_PROFILE) == 0 ? SLM2_PROFILE_F32 : SLM2_PROFILE_Q8;
  p->answer.seed = slm2_load_u64(head + SLM2_SNAPSHOT_AT_SEED);
  p->answer.words_used = slm2_load_u64(head + SLM2_SNAPSHOT_AT_WORDS);
  p->answer.count = slm2_load_u32(head + SLM2_SNAPSHOT_AT_COUNT);
  p->answer.last = slm2_load_u32(head + SLM2_SNAPSHOT_AT_LAST);
  memcpy(p->model, head + SLM2_SNAPSHOT_AT_MODEL, 32);
  memcpy(p->tokenizer, head + SLM2_SNAPSHOT_AT_TOKENIZER, 32);
  memcpy(p->kv_sha256, head + SLM2_SNAPSHOT_AT_KV_SHA256, 32);
}

/* Fields that contradict each other. Without an answer its fields are those of one that has not begun, seed 0. */
static slm2_status check_fields(const slm2_snapshot *p, uint32_t profile, slm2_error *error) {
  const slm2_generator_state *a = &p->answer;
  if (profile > SLM2_PROFILE_Q8) return refuse(error, "profile", SLM2_SNAPSHOT_AT_PROFILE, profile, 0, SLM2_PROFILE_Q8);
  if ((p->has_logits && p->length == 0) || (p->has_answer && !p->has_logits))
    return slm2_fail(error, SLM2_E_FORMAT, "snapshot", "flags", SLM2_SNAPSHOT_AT_FLAGS, "%s", p->length == 0
                     ? "logits without a token" : "an answer under way without logits");
  bool begun = a->last != SLM2_NO_TOKEN;
  if ((a->count > 0) != begun || (begun && a->last >= p->vocab) || a->count > p->length || a->words_used > a->count ||
      (!p->has_answer && (begun || a->seed != 0)))
    return slm2_fail(error, SLM2_E_FORMAT, "snapshot", "answer", SLM2_SNAPSHOT_AT_COUNT,
                     "%u tokens, %u random words and last token %u do not belong together", (uint64_t)a->count, a->words_used,
                     (uint64_t)a->last);
  return SLM2_OK;
}

static slm2_status read_ids(reader *r, const slm2_snapshot *p, uint32_t *into, slm2_error *error) {
  for (uint32_t done = 0; done < p->length;) {
    uint64_t offset = r->at;
    size_t n = part_of(p->length - done, sizeof r->piece / 4);
    SLM2_TRY(take(r, 4 * n, error));
    for (uint32_t i = 0; i < n; i++) {
      uint32_t id = slm2_load_u32(r->piece + 4 * i);
      if (id >= p->vocab && r->verdict == SLM2_OK)
        r->verdict = slm2_fail(&r->why, SLM2_E_TOKEN, "snapshot", "ids", offset + 4 * i,
                               "token %u has id %u, but the vocabulary ends at %u", (uint64_t)done + i, (uint64_t)id,
                               (uint64_t)p->vocab - 1);
      if (into != NULL) into[done + i] = id;
    }
    done += (uint32_t)n;
  }
  return SLM2_OK;
}

static slm2_status read_logits(reader *r, const slm2_snapshot *p, float *into, slm2_error *error) {
  for (uint32_t done = 0; p->has_logits && done < p->vocab;) {
    uint64_t offset = r->at;
    size_t n = part_of(p->vocab - done, sizeof r->piece / 4);
    SLM2_TRY(take(r, 4 * n, error));
    for (uint32_t i = 0; i < n; i++) {
      uint32_t bits = slm2_load_u32(r->piece + 4 * i);
      if ((bits & 0x7fffffffu) >= 0x7f800000u && r->verdict == SLM2_OK) /* [D5] */
        r->verdict = slm2_fail(&r->why, SLM2_E_NUMERICAL, "snapshot", "logits", offset + 4 * i, "logit %u is not finite",
                               (uint64_t)done + i);
      if (into != NULL) into[done + i] = slm2_float_from_bits(bits);
    }
    done += (uint32_t)n;
  }
  return SLM2_OK;
}

/* Everything up to the first hash. into and attachment may be NULL. */
static slm2_status read_front(const slm2_snapshot *p, slm2_session *into, uint8_t *attachment, slm2_error *error) {
  reader r;
  begin(&r, &p->source, 0);
  SLM2_TRY(take(&r, SLM2_SNAPSHOT_HEAD_BYTES, error));
  SLM2_TRY(read_ids(&r, p, into != NULL ? into->ids : NULL, error));
  SLM2_TRY(read_logits(&r, p, into != NULL ? into->logits : NULL, error));
  for (uint64_t done = 0; done < p->attachment_bytes;) {
    size_t n = part_of(p->attachment_bytes - done, sizeof r.piece);
    SLM2_TRY(take(&r, n, error));
    if (attachment != NULL) memcpy(attachment + (size_t)done, r.piece, n);
    done += n;
  }
  return end(&r, "front", p->front_sha256, error);
}

slm2_status slm2_snapshot_open(slm2_snapshot *snapshot, const slm2_snapshot_source *source, slm2_error *error) {
  uint8_t head[SLM2_SNAPSHOT_HEAD_BYTES];
  slm2_snapshot p = {.source = *source};
  if (source->bytes < sizeof head + 32)
    return slm2_fail(error, SLM2_E_FORMAT, "snapshot", "size", SLM2_NO_OFFSET, "%u bytes are too few for a snapshot, at least %u",
                     source->bytes, (uint64_t)sizeof head + 32);
  SLM2_TRY(source->read(source->user, 0, head, sizeof head, error));
  if (memcmp(head + SLM2_SNAPSHOT_AT_MAGIC, SLM2_SNAPSHOT_MAGIC, 8) != 0)
    return slm2_fail(error, SLM2_E_FORMAT, "snapshot", "magic", SLM2_SNAPSHOT_AT_MAGIC,
                     "not a snapshot: it does not begin with " SLM2_SNAPSHOT_MAGIC);
  uint32_t version = slm2_load_u32(head + SLM2_SNAPSHOT_AT_VERSION);
  if (version != SLM2_SNAPSHOT_VERSION)
    return slm2_fail(error, SLM2_E_VERSION, "snapshot", "version", SLM2_SNAPSHOT_AT_VERSION,
                     "version %u, and this build reads version %u", (uint64_t)version, (uint64_t)SLM2_SNAPSHOT_VERSION);
  SLM2_TRY(load_sizes(head, &p, error));
  load_rest(head, &p);
  SLM2_TRY(source->read(source->user, slm2_snapshot_front_bytes(&p), p.front_sha256, 32, error));
  SLM2_TRY(read_front(&p, NULL, NULL, error));
  SLM2_TRY(check_fields(&p, slm2_load_u32(head + SLM2_SNAPSHOT_AT_PROFILE), error));
  *snapshot = p;
  return SLM2_OK;
}

slm2_status slm2_snapshot_attachment(const slm2_snapshot *p, void *out, uint64_t capacity, slm2_error *error) {
  if (capacity < p->attachment_bytes)
    return slm2_fail(error, SLM2_E_MEMORY, "snapshot", "attachment", SLM2_NO_OFFSET, "%u bytes, and %u are lent",
                     p->attachment_bytes, capacity);
  return read_front(p, NULL, out, error);
}

/* --- keys and values -------------------------------------------------------------- */

/* One head's keys or values. into: where its first position lies, or NULL. */
static slm2_status read_run(reader *r, const slm2_snapshot *p, bool values, uint32_t layer, uint32_t head, uint8_t *into,
                            slm2_error *error) {
  const bool f16 = p->kv == SLM2_KV_F16;
  const size_t size = f16 ? 2 : 4;
  const uint64_t total = (uint64_t)p->length * p->head_dim;
  for (uint64_t done = 0; done < total;) {
    uint64_t offset = r->at;
    size_t n = part_of(total - done, sizeof r->piece / size);
    SLM2_TRY(take(r, n * size, error));
    for (size_t i = 0; i < n; i++) {
      uint32_t bits = f16 ? slm2_load_u16(r->piece + 2 * i) : slm2_load_u32(r->piece + 4 * i);
      bool finite = f16 ? (bits & 0x7fffu) < 0x7c00u : (bits & 0x7fffffffu) < 0x7f800000u; /* [D5] [D18] */
      if (!finite && r->verdict == SLM2_OK)
        r->verdict = slm2_fail(&r->why, SLM2_E_NUMERICAL, "snapshot", values ? "values" : "keys", offset + i * size,
                               "not finite in layer %u, head %u, position %u", (uint64_t)layer, (uint64_t)head,
                               (done + i) / p->head_dim);
      if (into == NULL) continue;
      if (f16) ((uint16_t *)(void *)into)[(size_t)done + i] = (uint16_t)bits;
      else ((float *)(void *)into)[(size_t)done + i] = slm2_float_from_bits(bits);
    }
    done += n;
  }
  return SLM2_OK;
}

static slm2_status read_kv(const slm2_snapshot *p, slm2_session *into, slm2_error *error) {
  reader r;
  begin(&r, &p->source, slm2_snapshot_front_bytes(p) + 32);
  for (int values = 0; values < 2; values++)
    for (uint32_t layer = 0; layer < p->layers; layer++)
      for (uint32_t head = 0; head < p->kv_heads; head++) {
        const slm2_kv_cache *kv = into != NULL ? &into->forward.kv : NULL;
        uint8_t *run = kv != NULL ? (values ? kv->values : kv->keys) + slm2_kv_at(kv, layer, head, 0) : NULL;
        SLM2_TRY(read_run(&r, p, values, layer, head, run, error));
      }
  return end(&r, "keys and values", p->kv_sha256, error);
}

/* --- restoring ---------------------------------------------------------------------- */

static slm2_status check_hash(const char *name, const uint8_t saved[32], const uint8_t here[32], slm2_error *error) {
  char a[65], b[65];
  if (memcmp(saved, here, 32) == 0) return SLM2_OK;
  slm2_hex(saved, 32, a);
  slm2_hex(here, 32, b);
  return slm2_fail(error, SLM2_E_ARGUMENT, "snapshot", name, SLM2_NO_OFFSET, "made with %s, but the session has %s", a, b);
}

static slm2_status check_session(const slm2_snapshot *p, const slm2_session *s, slm2_error *error) {
  uint8_t hash[32];
  const slm2_config *c = &s->forward.model->header.config;
  slm2_model_identity(s->forward.model, hash);
  SLM2_TRY(check_hash("model", p->model, hash, error));
  slm2_model_tokenizer_sha256(s->forward.model, hash);
  SLM2_TRY(check_hash("tokenizer", p->tokenizer, hash, error));
  if (p->profile != s->params.profile)
    return slm2_fail(error, SLM2_E_ARGUMENT, "snapshot", "profile", SLM2_NO_OFFSET, "made with %s, but the session has %s",
                     slm2_profile_name(p->profile), slm2_profile_name(s->params.profile));
  if (p->kv != s->params.kv)
    return slm2_fail(error, SLM2_E_ARGUMENT, "snapshot", "kv", SLM2_NO_OFFSET, "made with %s, but the session has %s",
                     slm2_kv_name(p->kv), slm2_kv_name(s->params.kv));
  if (p->layers != c->layers || p->kv_heads != c->kv_heads || p->head_dim != c->head_dim || p->vocab != c->vocab)
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, "snapshot", "geometry", SLM2_NO_OFFSET,
                     "%u layers, %u kv heads of %u, vocabulary %u; its model has %u, %u, %u, %u", (uint64_t)p->layers,
                     (uint64_t)p->kv_heads, (uint64_t)p->head_dim, (uint64_t)p->vocab, (uint64_t)c->layers,
                     (uint64_t)c->kv_heads, (uint64_t)c->head_dim, (uint64_t)c->vocab);
  if (p->length > s->params.context)
    return slm2_fail(error, SLM2_E_CONTEXT_OVERFLOW, "snapshot", NULL, SLM2_NO_OFFSET,
                     "%u tokens do not fit the context of %u", (uint64_t)p->length, (uint64_t)s->params.context);
  return SLM2_OK;
}

slm2_status slm2_snapshot_restore(const slm2_snapshot *p, slm2_session *s, slm2_error *error) {
  SLM2_TRY(check_session(p, s, error));
  SLM2_TRY(read_front(p, NULL, NULL, error));
  SLM2_TRY(read_kv(p, NULL, error));
  s->length = 0; /* until all of it is there */
  s->has_logits = false;
  slm2_session_drop_ahead(s);
  SLM2_TRY(read_front(p, s, NULL, error));
  SLM2_TRY(read_kv(p, s, error));
  s->length = p->length;
  s->has_logits = p->has_logits;
  return SLM2_OK;
}
