/* convert/hf.h: the small files of a Hugging Face folder, each as strict JSON. Internal to convert/. What changes the
 * model's numbers and is not implemented is refused by name; what does not is ignored. */
#ifndef SLM2_CONVERT_HF_H
#define SLM2_CONVERT_HF_H

#include "convert/convert.h"
#include "base/json.h"

/* config.json of a dense Qwen3. Its special ids go to *ids (bos, pad, eos), defaults of generation_config.json. */
SLM2_NODISCARD slm2_status slm2_hf_config(const char *json, size_t n, slm2_config *config, slm2_generation *ids,
                                          slm2_error *error);
/* A token id or null (UINT32_MAX), and the one or more ids that end an answer, from the value t just read. */
SLM2_NODISCARD slm2_status slm2_hf_token_id(const slm2_json *j, const slm2_json_token *t, const char *key, uint32_t *id,
                                            slm2_error *error);
SLM2_NODISCARD slm2_status slm2_hf_eos_ids(slm2_json *j, const slm2_json_token *t, slm2_generation *out, slm2_error *error);
/* generation_config.json over the ids of config.json; json NULL: the file is absent. Ids lie below vocab. */
SLM2_NODISCARD slm2_status slm2_hf_generation(const char *json, size_t n, const slm2_generation *ids, uint32_t vocab,
                                              slm2_generation *out, slm2_error *error);
/* SHA-256 of the chat template: chat_template.jinja (jinja, may be NULL) wins over tokenizer_config.json (json, may be
 * NULL; the template may be a string or a list of named ones, of which "default" counts). *found: there is one.
 * scratch: n_json bytes. */
SLM2_NODISCARD slm2_status slm2_hf_chat_template(const char *jinja, size_t n_jinja, const char *json, size_t n_json,
                                                 char *scratch, bool *found, uint8_t sha256[32], slm2_error *error);
/* transformers adds what tokenizer_config.json lists under added_tokens_decoder to the tokenizer: every one must be an
 * added token of the section already, with the same id and kind. scratch: n bytes. */
SLM2_NODISCARD slm2_status slm2_hf_check_added(const char *json, size_t n, const uint8_t *section, char *scratch,
                                               slm2_error *error);
/* The chat format whose template has this hash; SLM2_CHAT_NONE when it is unknown [K13]. */
slm2_chat_format slm2_known_chat_format(const uint8_t sha256[32]);

/* A published revision by the SHA-256 of its files [R4]. */
#define SLM2_KNOWN_MAX_SHARDS 5u
typedef struct slm2_known_shard {
  uint64_t bytes;
  const char *sha256; /* 64 hexadecimal digits */
} slm2_known_shard;
typedef struct slm2_known_revision {
  const char *source, *revision, *license;
  const char *config, *generation, *tokenizer, *tokenizer_config; /* SHA-256, 64 hexadecimal digits */
  uint32_t n_shards;
  slm2_known_shard shards[SLM2_KNOWN_MAX_SHARDS]; /* their sizes differ */
} slm2_known_revision;
extern const slm2_known_revision slm2_known_revisions[];
extern const uint32_t slm2_n_known_revisions;
/* Which of n revisions this source is, NULL for none: its small files and shards are exactly those. The weights are read
 * (through the n_buffer bytes) only when everything else fits. */
SLM2_NODISCARD slm2_status slm2_known_match(const slm2_known_revision *table, uint32_t n, const slm2_source *source,
                                            const slm2_sink *sink, uint8_t *buffer, size_t n_buffer,
                                            const slm2_known_revision **out, slm2_error *error);
/* Whether digits spell this hash. */
bool slm2_known_hash_is(const char *digits, const uint8_t sha256[32]);

#endif
