/* convert/convert.h: foreign model files to one SLM2 file. Freestanding and streaming: the same pipeline runs
 * natively and in wasm. It sees its inputs and its output only through these callbacks. Every lent block of memory
 * (mem, scratch) begins at a multiple of 16 bytes; another one is refused with SLM2_E_ARGUMENT.
 */
#ifndef SLM2_CONVERT_H
#define SLM2_CONVERT_H

#include "slm2/format.h"
#include "slm2/status.h"

#define SLM2_MAX_SHARDS 256u

/* The small files of an HF folder. The weights are shards: model.safetensors, or what the index lists. */
typedef enum slm2_source_file {
  SLM2_SOURCE_CONFIG = 0,            /* config.json, required */
  SLM2_SOURCE_GENERATION = 1,        /* generation_config.json, optional */
  SLM2_SOURCE_TOKENIZER = 2,         /* tokenizer.json, required */
  SLM2_SOURCE_TOKENIZER_CONFIG = 3,  /* tokenizer_config.json, optional (chat_template) */
  SLM2_SOURCE_CHAT_TEMPLATE = 4,     /* chat_template.jinja, optional, wins over tokenizer_config's */
  SLM2_SOURCE_TEXTS = 5,             /* how many */
} slm2_source_file;

typedef struct slm2_source {
  void *user;
  uint32_t n_shards;
  const char *const *shard_names;  /* [n_shards] */
  const uint64_t *shard_bytes;     /* [n_shards] file sizes */
  /* Whole texts of the small files, NULL when absent. Lent for the whole conversion. */
  const char *text[SLM2_SOURCE_TEXTS];
  size_t text_bytes[SLM2_SOURCE_TEXTS];
  const char *index;               /* model.safetensors.index.json, or NULL for a single file */
  size_t index_bytes;
  /* Reads exactly n bytes at offset of a shard. */
  slm2_status (*read)(void *user, uint32_t shard, uint64_t offset, void *buffer, size_t n, slm2_error *error);
} slm2_source;

typedef struct slm2_sink {
  void *user;
  slm2_status (*write)(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *error);
  /* May be NULL. Bytes done of a phase: "compare" (a duplicate lm_head), "hash" (weights of a known revision),
   * "convert" or "synth" (output). At most about one call a mebibyte. */
  void (*progress)(void *user, const char *phase, uint64_t done, uint64_t total);
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

/* Lists the distinct shard names of an index file into names (each NUL-terminated) in order of first appearance.
 * Refuses names that are not plain basenames [FIL-7], repeated keys, values that are not strings. mem: scratch of
 * slm2_index_bytes(n) bytes. */
#define SLM2_SHARD_NAME_MAX 128u
size_t slm2_index_bytes(size_t n);
SLM2_NODISCARD slm2_status slm2_index_shards(const char *json, size_t n, void *mem, size_t mem_bytes,
                                             char (*names)[SLM2_SHARD_NAME_MAX], uint32_t capacity, uint32_t *n_names,
                                             slm2_error *error);

/* Memory for converting this source: depends on the texts, the header sizes of the shards (their first 8 bytes are
 * read) and one row group of the widest matrix. Refuses what those alone show to be wrong. */
SLM2_NODISCARD slm2_status slm2_convert_bytes(const slm2_source *source, size_t *bytes, slm2_error *error);
/* Everything is checked (config, names, shapes, dtypes, ties, tokenizer) before the first byte is written. The data is
 * written in order from offset 8 + header_bytes, the header last, at offset 0: an interrupted output has no header.
 * On any failure, also of read or write, the output is worthless and *report unwritten. */
SLM2_NODISCARD slm2_status slm2_convert_hf(const slm2_source *source, const slm2_sink *sink, const slm2_convert_options *options,
                                           void *mem, size_t mem_bytes, slm2_convert_report *report, slm2_error *error);

/* tokenizer.json to the bytes of a tokenizer section (tokenizer/section.h). The pipeline must be Qwen's: NFC, the
 * Split pattern, ByteLevel; anything else is refused by name [K13]. Sizes are exact counts of this text. */
SLM2_NODISCARD slm2_status slm2_tokenizer_convert_bytes(const char *json, size_t n, size_t *scratch_bytes,
                                                        size_t *section_capacity, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_tokenizer_convert(const char *json, size_t n, void *scratch, size_t scratch_bytes,
                                                  uint8_t *section, size_t capacity, size_t *section_bytes, slm2_error *error);

/* A file that is read at any place. */
typedef struct slm2_input {
  void *user;
  const char *name; /* for messages */
  uint64_t bytes;
  slm2_status (*read)(void *user, uint64_t offset, void *buffer, size_t n, slm2_error *error); /* exactly n */
} slm2_input;

/* GGUF of a dense Qwen3 to SLM2 (docs/FORMAT.md, "GGUF"). Q8_0 blocks are taken over unchanged; F16, BF16 and F32 are
 * treated as those of an HF folder. As with slm2_convert_hf, everything but the values is checked before the first byte
 * is written, and the header is written last. */
SLM2_NODISCARD slm2_status slm2_convert_gguf_bytes(const slm2_input *gguf, size_t *bytes, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_convert_gguf(const slm2_input *gguf, const slm2_sink *sink, const slm2_convert_options *options,
                                             void *mem, size_t mem_bytes, slm2_convert_report *report, slm2_error *error);

/* --- exports: a whole .slm2 file in memory to other formats (docs/FORMAT.md, "GGUF" and "Hugging Face folders") --- */

typedef struct slm2_export slm2_export;
/* Memory for exporting this file (64-byte aligned, as slm2_model_init wants it; checks what that checks). */
SLM2_NODISCARD slm2_status slm2_export_bytes(const uint8_t *file, uint64_t file_bytes, size_t *bytes, slm2_error *error);
/* Verifies all of the file. mem (64-byte aligned) and file are kept. progress is a sink's, with phase "verify", or NULL. */
SLM2_NODISCARD slm2_status slm2_export_open(const uint8_t *file, uint64_t file_bytes, void *mem, size_t mem_bytes,
                                            void (*progress)(void *user, const char *phase, uint64_t done, uint64_t total),
                                            void *user, slm2_export **out, slm2_error *error);
const slm2_header *slm2_export_header(const slm2_export *e);
/* Blocks whose scale is not the one the quantiser would choose for their weights [D9]: a folder of f32 weights gives other
 * blocks when it is converted back. 0 for every model that came from floats; GGUF keeps all blocks as they are. */
uint64_t slm2_export_inexact_blocks(const slm2_export *e);

/* One GGUF file, written in order. */
SLM2_NODISCARD slm2_status slm2_export_gguf(slm2_export *e, const slm2_sink *sink, slm2_error *error);
/* A Hugging Face folder: files 0 .. n - 1, each written in order. Those of a tokenizer are missing when there is none. */
uint32_t slm2_export_files(const slm2_export *e);
const char *slm2_export_file_name(uint32_t i);
SLM2_NODISCARD slm2_status slm2_export_file(slm2_export *e, uint32_t i, const slm2_sink *sink, slm2_error *error);

/* Synthetic weights [D27]: an integer generator makes q and the bits of d; the same bytes on every machine
 * (docs/FORMAT.md, "Synthetic models"). */
typedef struct slm2_synth_params {
  slm2_config config;
  slm2_weight_form form;
  uint64_t seed;
  const uint8_t *tokenizer; /* section bytes; NULL: a byte-level one of 256 byte tokens and Qwen3's added tokens */
  size_t tokenizer_bytes;
} slm2_synth_params;

/* Geometry by name: qwen3-0.6b, qwen3-1.7b, qwen3-4b, qwen3-8b, qwen3-0.6b-4layer, small, tiny. The last two take a
 * vocabulary of n_tokens rounded up to 32 (0: that of the byte-level tokenizer). Unknown names are refused with the list. */
SLM2_NODISCARD slm2_status slm2_synth_shape(const char *name, uint32_t n_tokens, slm2_config *config, slm2_error *error);
/* n_tokens of a tokenizer section. */
SLM2_NODISCARD slm2_status slm2_tokenizer_section_tokens(const uint8_t *section, size_t n, uint32_t *n_tokens, slm2_error *error);
/* Generation defaults are Qwen3's; ids and chat format follow from the added tokens the tokenizer has. */
SLM2_NODISCARD slm2_status slm2_synth_bytes(const slm2_synth_params *params, size_t *bytes, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_synth(const slm2_synth_params *params, const slm2_sink *sink, void *mem, size_t mem_bytes,
                                      slm2_convert_report *report, slm2_error *error);

#endif
