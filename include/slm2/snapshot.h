/* slm2/snapshot.h: a session as a file, and back (docs/FORMAT.md, "Snapshot").
 *
 * A snapshot holds the timeline: ids, the keys and values of its positions, its logits; where the
 * answer under way stands, if one is; and an attachment of the caller's own (a conversation). It
 * names model, tokenizer, profile and KV type, and every byte is under a hash. It does not depend
 * on the context, tile, backend or machine that made it: a session restored from it goes on with
 * the bits of one that never stopped.
 */
#ifndef SLM2_SNAPSHOT_H
#define SLM2_SNAPSHOT_H

#include "slm2/session.h"

SLM2_C_BEGIN

#define SLM2_SNAPSHOT_VERSION 1u
#define SLM2_SNAPSHOT_MAX_ATTACHMENT 1073741824u /* 1 GiB */

/* --- writing ------------------------------------------------------------ */

/* Takes the bytes in order, without gaps. A status it returns ends the writing and is returned. */
typedef struct slm2_snapshot_sink {
  void *user;
  slm2_status (*write)(void *user, const void *bytes, size_t n, slm2_error *error);
} slm2_snapshot_sink;

/* What goes in besides the timeline. */
typedef struct slm2_snapshot_extras {
  const slm2_generator *answer; /* under way on this session, or NULL */
  const void *attachment;
  uint64_t attachment_bytes;
} slm2_snapshot_extras;

/* Exactly what slm2_snapshot_write will write. extras may be NULL. */
uint64_t slm2_snapshot_bytes(const slm2_session *s, const slm2_snapshot_extras *extras);
/* SLM2_E_ARGUMENT when the answer has ended, belongs to another session or was overtaken by it. */
SLM2_NODISCARD slm2_status slm2_snapshot_write(const slm2_session *s, const slm2_snapshot_extras *extras,
                                               const slm2_snapshot_sink *sink, slm2_error *error);

/* --- reading ------------------------------------------------------------ */

typedef struct slm2_snapshot_source {
  void *user;
  uint64_t bytes; /* size of the whole */
  /* Reads exactly n bytes at offset, within the size; at most 4,096 at a time. */
  slm2_status (*read)(void *user, uint64_t offset, void *out, size_t n, slm2_error *error);
} slm2_snapshot_source;

/* What a snapshot says of itself. Plain data, filled by slm2_snapshot_open. */
typedef struct slm2_snapshot {
  slm2_snapshot_source source;
  uint8_t model[32];     /* the identity of the model it was made with */
  uint8_t tokenizer[32]; /* SHA-256 of its tokenizer section */
  slm2_profile profile;
  slm2_kv_type kv;
  uint32_t layers, kv_heads, head_dim, vocab;
  uint32_t length;       /* tokens on the timeline */
  bool has_logits;
  bool has_answer;       /* answer is set: for slm2_generator_resume once the session is restored */
  slm2_generator_state answer;
  uint64_t attachment_bytes;
  uint8_t kv_sha256[32];
  uint8_t front_sha256[32]; /* of everything but keys and values; kv_sha256 is part of it */
} slm2_snapshot;

/* Reads and checks everything but the keys and values, needing no model. SLM2_E_FORMAT: no snapshot, cut short, too
 * long, or against the rules; SLM2_E_VERSION; SLM2_E_INTEGRITY: damaged. */
SLM2_NODISCARD slm2_status slm2_snapshot_open(slm2_snapshot *snapshot, const slm2_snapshot_source *source, slm2_error *error);
/* The attachment: attachment_bytes into out (its content is worthless on an error). */
SLM2_NODISCARD slm2_status slm2_snapshot_attachment(const slm2_snapshot *snapshot, void *out, uint64_t capacity,
                                                    slm2_error *error);
/* Makes the session's timeline that of the snapshot. First a pass that only checks: model, tokenizer, profile and KV
 * type (SLM2_E_ARGUMENT, naming both), room (SLM2_E_CONTEXT_OVERFLOW), every hash, id and number; what it refuses
 * leaves the session as it was. Then a pass that copies, hashing again: only a source that fails or gives other bytes
 * the second time can stop it, and leaves an empty timeline. An answer under way on the session is over. */
SLM2_NODISCARD slm2_status slm2_snapshot_restore(const slm2_snapshot *snapshot, slm2_session *s, slm2_error *error);

SLM2_C_END

#endif
