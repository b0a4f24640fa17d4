/* convert/revision.c: is this source a published revision? Everything the header then claims rests on hashes alone [R4]. */
#include "convert/hf.h"
#include "convert/output.h"
#include "base/error.h"

static bool text_is(const slm2_source *s, slm2_source_file file, const char *digits) {
  uint8_t sha256[32];
  if (s->text[file] == NULL) return false;
  slm2_sha256_of(s->text[file], s->text_bytes[file], sha256);
  return slm2_known_hash_is(digits, sha256);
}

/* The shard of a revision that has this size. */
static const slm2_known_shard *shard_of(const slm2_known_revision *r, uint64_t bytes) {
  for (uint32_t i = 0; i < r->n_shards; i++) {
    if (r->shards[i].bytes == bytes) return &r->shards[i];
  }
  return NULL;
}

/* A revision has its template in tokenizer_config.json: one in a file of its own would replace it. */
static bool is_candidate(const slm2_known_revision *r, const slm2_source *s) {
  if (s->n_shards != r->n_shards || s->text[SLM2_SOURCE_CHAT_TEMPLATE] != NULL) return false;
  for (uint32_t i = 0; i < s->n_shards; i++) {
    if (shard_of(r, s->shard_bytes[i]) == NULL) return false;
  }
  return text_is(s, SLM2_SOURCE_CONFIG, r->config) && text_is(s, SLM2_SOURCE_GENERATION, r->generation) &&
         text_is(s, SLM2_SOURCE_TOKENIZER, r->tokenizer) && text_is(s, SLM2_SOURCE_TOKENIZER_CONFIG, r->tokenizer_config);
}

/* Hashes every shard; *same: all are those of the revision. */
static slm2_status check_shards(const slm2_known_revision *r, const slm2_source *s, const slm2_sink *sink, uint8_t *buffer,
                                size_t n_buffer, bool *same, slm2_error *error) {
  uint64_t total = 0, done = 0, reported = 0;
  for (uint32_t i = 0; i < s->n_shards; i++) total += s->shard_bytes[i];
  *same = true;
  for (uint32_t i = 0; i < s->n_shards && *same; i++) {
    slm2_sha256 hash;
    uint8_t sha256[32];
    slm2_sha256_init(&hash);
    for (uint64_t at = 0; at < s->shard_bytes[i];) {
      size_t n = s->shard_bytes[i] - at < n_buffer ? (size_t)(s->shard_bytes[i] - at) : n_buffer;
      SLM2_TRY(s->read(s->user, i, at, buffer, n, error));
      slm2_sha256_update(&hash, buffer, n);
      at += n;
      done += n;
      slm2_report(sink, "hash", done, total, &reported);
    }
    slm2_sha256_final(&hash, sha256);
    *same = slm2_known_hash_is(shard_of(r, s->shard_bytes[i])->sha256, sha256);
  }
  return SLM2_OK;
}

slm2_status slm2_known_match(const slm2_known_revision *table, uint32_t n, const slm2_source *source, const slm2_sink *sink,
                             uint8_t *buffer, size_t n_buffer, const slm2_known_revision **out, slm2_error *error) {
  *out = NULL;
  for (uint32_t i = 0; i < n; i++) {
    bool same;
    if (!is_candidate(&table[i], source)) continue;
    SLM2_TRY(check_shards(&table[i], source, sink, buffer, n_buffer, &same, error));
    if (same) *out = &table[i];
    return SLM2_OK;
  }
  return SLM2_OK;
}
