/* session/snapshot.h: the head of a snapshot, as its writer and its reader see it. docs/FORMAT.md, "Snapshot".
 *
 *   head      SLM2_SNAPSHOT_HEAD_BYTES at the offsets below
 *   ids       [length] u32
 *   logits    [vocab] f32, when the flag says so
 *   attachment
 *   SHA-256   of everything before it
 *   keys      [layer][kv head][position < length][dim] f32, or f16 bits
 *   values    the same
 *
 * The head holds the SHA-256 of keys and values, so that every byte is hashed once, and a reader that has seen the front
 * knows whether the rest concerns it.
 */
#ifndef SLM2_SESSION_SNAPSHOT_H
#define SLM2_SESSION_SNAPSHOT_H

#include "model/kv.h"
#include "slm2/snapshot.h"

#define SLM2_SNAPSHOT_MAGIC "SLM2SNAP"
enum {
  SLM2_SNAPSHOT_AT_MAGIC = 0,        /* 8 bytes */
  SLM2_SNAPSHOT_AT_VERSION = 8,      /* u32, as all numbers that are not said to be u64 */
  SLM2_SNAPSHOT_AT_PROFILE = 12,
  SLM2_SNAPSHOT_AT_KV = 16,
  SLM2_SNAPSHOT_AT_LAYERS = 20,
  SLM2_SNAPSHOT_AT_KV_HEADS = 24,
  SLM2_SNAPSHOT_AT_HEAD_DIM = 28,
  SLM2_SNAPSHOT_AT_VOCAB = 32,
  SLM2_SNAPSHOT_AT_LENGTH = 36,
  SLM2_SNAPSHOT_AT_FLAGS = 40,
  SLM2_SNAPSHOT_AT_COUNT = 44,       /* of the answer under way */
  SLM2_SNAPSHOT_AT_LAST = 48,
  SLM2_SNAPSHOT_AT_SEED = 52,        /* u64 */
  SLM2_SNAPSHOT_AT_WORDS = 60,       /* u64 */
  SLM2_SNAPSHOT_AT_ATTACHMENT = 68,  /* u64, bytes */
  SLM2_SNAPSHOT_AT_MODEL = 76,       /* 32 bytes, as the two below */
  SLM2_SNAPSHOT_AT_TOKENIZER = 108,
  SLM2_SNAPSHOT_AT_KV_SHA256 = 140,
  SLM2_SNAPSHOT_HEAD_BYTES = 172,
  SLM2_SNAPSHOT_PIECE = 4096,        /* at most so many bytes are read or written at a time */
};
#define SLM2_SNAPSHOT_HAS_LOGITS 1u
#define SLM2_SNAPSHOT_HAS_ANSWER 2u

/* Sizes are those of snapshots within the limits, which keep them below 2^56. */
static inline uint64_t slm2_snapshot_front_bytes(const slm2_snapshot *p) {
  return SLM2_SNAPSHOT_HEAD_BYTES + 4 * (uint64_t)p->length + (p->has_logits ? 4 * (uint64_t)p->vocab : 0) + p->attachment_bytes;
}
static inline uint64_t slm2_snapshot_kv_bytes(const slm2_snapshot *p) {
  const slm2_config c = {.layers = p->layers, .kv_heads = p->kv_heads, .head_dim = p->head_dim};
  return slm2_kv_bytes(&c, p->kv, p->length);
}
static inline uint64_t slm2_snapshot_total_bytes(const slm2_snapshot *p) {
  return slm2_snapshot_front_bytes(p) + 32 + slm2_snapshot_kv_bytes(p);
}

#endif
