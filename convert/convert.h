/* convert/convert.h: foreign model files to one SLM2 file. Freestanding and streaming: the same pipeline runs
 * natively and in wasm. It sees its inputs and its output only through these callbacks.
 */
#ifndef SLM2_CONVERT_H
#define SLM2_CONVERT_H

#include "slm2/format.h"
#include "slm2/status.h"

#define SLM2_MAX_SHARDS 256u

/* The files of an HF folder. Indexes: the fixed roles first, then weights shards. */
typedef enum slm2_source_file {
  SLM2_SOURCE_CONFIG = 0,            /* config.json, required */
  SLM2_SOURCE_GENERATION = 1,        /* generation_config.json, optional */
  SLM2_SOURCE_TOKENIZER = 2,         /* tokenizer.json, required unless allow_no_tokenizer */
  SLM2_SOURCE_TOKENIZER_CONFIG = 3,  /* tokenizer_config.json, optional (chat_template) */
  SLM2_SOURCE_CHAT_TEMPLATE = 4,     /* chat_template.jinja, optional, wins over tokenizer_config's */
  SLM2_SOURCE_SHARD0 = 5,            /* model.safetensors, or shard i at SHARD0 + i */
} slm2_source_file;

typedef struct slm2_source {
  void *user;
  uint32_t n_shards;
  const char *const *shard_names;  /* [n_shards] */
  const uint64_t *shard_bytes;     /* [n_shards] file sizes */
  /* Whole texts of the small files, NULL when absent. Lent for the whole conversion. */
  const char *text[5];
  size_t text_bytes[5];
  const char *index;               /* model.safetensors.index.json, or NULL for a single file */
  size_t index_bytes;
  /* Reads exactly n bytes at offset of a shard. */
  slm2_status (*read)(void *user, uint32_t shard, uint64_t offset, void *buffer, size_t n, slm2_error *error);
} slm2_source;

typedef struct slm2_sink {
  void *user;
  slm2_status (*write)(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *error);
  void (*progress)(void *user, const char *phase, uint64_t done, uint64_t total); /* may be NULL; bytes */
} slm2_sink;

typedef struct slm2_convert_options {
  slm2_weight_form form;            /* default panels */
  bool force_chat_qwen3;            /* --chat-format qwen3 */
} slm2_convert_options;

/* What happened, for the user. */
typedef struct slm2_convert_report {
  slm2_header header;
  uint8_t identity[32];
  uint64_t zero_blocks;             /* blocks whose scale rounded to zero [D9] */
  bool lm_head_duplicate;           /* a tied model stored lm_head.weight too, byte-equal [FIL-6] */
  bool chat_template_unknown;       /* chat commands will refuse; a warning is due */
  uint8_t chat_template_sha256[32];
} slm2_convert_report;

/* Lists the distinct shard names of an index file into names (each NUL-terminated, at most 128 bytes) in order of
 * first appearance. Refuses names that are not plain basenames [FIL-7], repeated keys, values that are not strings. */
SLM2_NODISCARD slm2_status slm2_index_shards(const char *json, size_t n, char (*names)[128], uint32_t capacity, uint32_t *n_names, slm2_error *error);

/* Memory for converting this source: depends on the texts' sizes, the header sizes of the shards and one row group. */
SLM2_NODISCARD slm2_status slm2_convert_bytes(const slm2_source *source, size_t *bytes, slm2_error *error);
/* Everything is checked (config, names, shapes, dtypes, ties, tokenizer) before the first byte is written. */
SLM2_NODISCARD slm2_status slm2_convert_hf(const slm2_source *source, const slm2_sink *sink, const slm2_convert_options *options,
                                           void *mem, size_t mem_bytes, slm2_convert_report *report, slm2_error *error);

/* tokenizer.json (+ the texts' sizes bound everything) to the bytes of a tokenizer section. The pipeline must be
 * Qwen's: NFC, the Split pattern, ByteLevel; anything else is refused by name [K13]. */
SLM2_NODISCARD slm2_status slm2_tokenizer_convert_bytes(size_t json_bytes, size_t *scratch_bytes, size_t *section_capacity, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_tokenizer_convert(const char *json, size_t n, void *scratch, size_t scratch_bytes,
                                                  uint8_t *section, size_t capacity, size_t *section_bytes, slm2_error *error);

/* Synthetic weights [D27]: an integer generator makes q and the bits of d; the same bytes on every machine. */
typedef struct slm2_synth_params {
  slm2_config config;
  slm2_weight_form form;
  uint64_t seed;
  const uint8_t *tokenizer; /* section bytes, or NULL */
  size_t tokenizer_bytes;
  slm2_generation generation;
  slm2_chat_format chat_format;
} slm2_synth_params;
SLM2_NODISCARD slm2_status slm2_synth(const slm2_synth_params *params, const slm2_sink *sink, void *mem, size_t mem_bytes,
                                      slm2_convert_report *report, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_synth_bytes(const slm2_synth_params *params, size_t *bytes, slm2_error *error);

#endif
