/* slm2/format.h: the SLM2 file, version 1 (docs/FORMAT.md is the full text).
 *
 *   u64 LE n | n bytes JSON header | data
 *
 * (8 + n) % 64 == 0: the header is padded with spaces, so every section of the
 * data starts 64-byte aligned in the file. The header is canonical: its config
 * fixes every byte of it, so one source gives one file. Sections follow each
 * other without holes and cover the file exactly; the declared length of each
 * includes its zero padding to 64 bytes, and the padding is verified.
 *
 * Identity of a model = SHA-256 of the n header bytes. The header holds the
 * SHA-256 of every 4 MiB chunk of the data, so the identity commits to the file.
 */
#ifndef SLM2_FORMAT_H
#define SLM2_FORMAT_H

#include <stdbool.h>
#include "slm2/status.h"

SLM2_C_BEGIN

#define SLM2_FORMAT_VERSION 1u
#define SLM2_HEADER_MAX 1048576u     /* n, in bytes */
#define SLM2_SECTION_ALIGN 64u
#define SLM2_CHUNK_BYTES 4194304u    /* hashed unit of the data; the last one may be shorter */
#define SLM2_MAX_LAYERS 256u         /* limits that keep every size product inside 64 bits */
#define SLM2_MAX_HIDDEN 65536u
#define SLM2_MAX_VOCAB 1048576u
#define SLM2_MAX_HEADS 1024u
#define SLM2_MAX_HEAD_DIM 512u
#define SLM2_MAX_INTERMEDIATE 262144u
#define SLM2_MAX_POSITIONS 16777216u        /* 2^24: every position is exact in f32 [D14] */
#define SLM2_MAX_TOKENIZER_BYTES 268435456u /* 256 MiB; Qwen3's section is about 5 MB */
#define SLM2_MAX_EOS 8u

/* Storage form of the 2-D weights: one form for the whole file, the same bits from both.
 * Both hold, per 32 consecutive columns of a row, one f16 scale d and 32 int8 q; weight = q * d [D10]. */
typedef enum slm2_weight_form {
  SLM2_FORM_ROWS = 0,   /* "Q8_0": row-major blocks of 34 bytes: f16 LE scale, 32 int8 */
  SLM2_FORM_PANELS = 1, /* "Q8_0_P32": 32 rows x 32 columns in 1,088 bytes: 16 dwords of scales (low half
                           row r, high half row r + 16), then for g = 0..7, r = 0..31 the four int8 of
                           columns 4g..4g+3 of row r. Panels: all columns of row group 0, then group 1 ... */
} slm2_weight_form;

/* Geometry of a dense Qwen3 model. Counts are elements, not bytes. */
typedef struct slm2_config {
  uint32_t hidden;       /* hidden_size, % 32 == 0 */
  uint32_t intermediate; /* MLP width, % 32 == 0 */
  uint32_t layers;
  uint32_t heads;    /* query heads; heads % kv_heads == 0; heads * head_dim % 32 == 0 */
  uint32_t kv_heads; /* kv_heads * head_dim % 32 == 0 */
  uint32_t head_dim; /* % 8 == 0 */
  uint32_t vocab;    /* rows of the embedding, % 32 == 0 */
  uint32_t max_positions; /* max_position_embeddings: the longest context the model was made for */
  uint32_t rope_theta;    /* 2 .. 2^31; informative: the table in the file is what is used [D14] */
  float rms_eps;          /* held as f32 [D13]; 0 < rms_eps <= 1 */
  bool tied;              /* logits use the embedding; else lm_head.weight is stored */
} slm2_config;

/* The model's own generation_config.json, as sampling defaults. Ids are < vocab. */
typedef struct slm2_generation {
  bool do_sample; /* false: greedy by default */
  float temperature;    /* finite, >= 0 */
  uint32_t top_k;
  float top_p;          /* 0 .. 1 */
  float repeat_penalty; /* finite, > 0 */
  uint32_t bos, pad;            /* UINT32_MAX when the source has none */
  uint32_t n_eos, eos[SLM2_MAX_EOS]; /* any of these ends an answer */
} slm2_generation;

typedef enum slm2_chat_format {
  SLM2_CHAT_NONE = 0,  /* unknown template: chat refuses, --raw works */
  SLM2_CHAT_QWEN3 = 1, /* the template of Qwen3 at revision c1899de, rendered in C */
} slm2_chat_format;

/* Everything the header says. Plain data: may be copied. */
typedef struct slm2_header {
  slm2_config config;
  slm2_generation generation;
  slm2_weight_form form;
  slm2_chat_format chat_format;
  char license[64];          /* SPDX identifier in lower case (a-z 0-9 . + -), or "unknown" */
  char source[64];           /* e.g. "Qwen/Qwen3-0.6B", "synth", or "unknown"; printable ASCII, no quote or backslash */
  char source_revision[48];  /* 40 hex digits when the source files' SHA-256 are known, else "unknown" */
  uint64_t tokenizer_bytes;  /* payload of the tokenizer section, without padding; 0 = no tokenizer */
  uint64_t header_bytes;     /* n */
  uint64_t data_bytes;       /* file size = 8 + header_bytes + data_bytes */
  uint64_t n_chunks;         /* ceil(data_bytes / SLM2_CHUNK_BYTES) */
} slm2_header;

typedef enum slm2_dtype { SLM2_DTYPE_U8 = 0, SLM2_DTYPE_F32 = 1, SLM2_DTYPE_Q8 = 2 } slm2_dtype;

/* One section. The sections of a file are fixed by its config alone: index 0 is
 * "tokenizer", 1 "rope.inv_freq", 2 "model.embed_tokens.weight", then per layer
 * input_layernorm, q_proj, k_proj, v_proj, o_proj, q_norm, k_norm,
 * post_attention_layernorm, gate_proj, up_proj, down_proj (Hugging Face names),
 * then "model.norm.weight" and, when untied, "lm_head.weight". */
typedef struct slm2_section {
  char name[64];
  slm2_dtype dtype;
  uint32_t n_dims;  /* 1 or 2 */
  uint64_t dims[2]; /* [n] (and dims[1] = 1), or [rows, cols] */
  uint64_t offset;  /* from the start of the data, % 64 == 0 */
  uint64_t bytes;   /* payload, without padding */
  uint64_t padded_bytes; /* with padding: the next section starts at offset + padded_bytes */
} slm2_section;

uint32_t slm2_section_count(const slm2_config *config);
/* Section i of a header whose config (one that slm2_config_check accepts), form and tokenizer_bytes are set.
 * SLM2_E_ARGUMENT when i is out of range. */
SLM2_NODISCARD slm2_status slm2_section_get(const slm2_header *header, uint32_t i, slm2_section *out);
/* Sum of the payloads of weights and norms: what "tensor bytes" means (633,495,552 for the 0.6B in Q8_0). */
uint64_t slm2_tensor_bytes(const slm2_header *header);
uint64_t slm2_parameter_count(const slm2_config *config);
/* Checks every limit and divisibility above; names the field and the numbers: SLM2_E_DIMENSION_MISMATCH for a
 * dimension that does not divide, SLM2_E_UNSUPPORTED for one beyond the limits. */
SLM2_NODISCARD slm2_status slm2_config_check(const slm2_config *config, slm2_error *error);

/* --- reading ------------------------------------------------------------ */

/* n from the first 8 bytes of a file of file_bytes (UINT64_MAX when the size is not known yet). */
SLM2_NODISCARD slm2_status slm2_header_length(const uint8_t first[8], uint64_t file_bytes, uint64_t *n, slm2_error *error);

/* Parses and validates the n header bytes of a file of file_bytes. Refuses anything
 * that is not canonical: unknown or repeated or reordered keys, escapes, holes, wrong
 * shapes or dtypes, missing chunk hashes. Allocates nothing; keeps no pointer. */
SLM2_NODISCARD slm2_status slm2_header_parse(const uint8_t *json, size_t n, uint64_t file_bytes, slm2_header *out,
                                             slm2_error *error);

/* The SHA-256 that a parsed header states for chunk i < n_chunks. */
SLM2_NODISCARD slm2_status slm2_header_chunk_hash(const uint8_t *json, size_t n, const slm2_header *header, uint64_t i,
                                                  uint8_t out[32]);

/* SHA-256 of the header bytes: the model's identity. */
void slm2_header_identity(const uint8_t *json, size_t n, uint8_t out[32]);

/* Push reader and verifier: takes a whole file in pieces of any size, checks the
 * header, then every chunk hash, padding, scale (finite, [D9]) and weight (no -128).
 * Caller-lent: the struct and a buffer for the header (SLM2_HEADER_MAX always suffices).
 * Plain data without interior pointers except the lent buffer. */
typedef struct slm2_reader slm2_reader;
size_t slm2_reader_bytes(void);
SLM2_NODISCARD slm2_status slm2_reader_init(void *mem, size_t mem_bytes, uint8_t *header_buffer, size_t header_capacity,
                                            uint64_t file_bytes, slm2_reader **out, slm2_error *error);
/* SLM2_NEED_MORE while the file is incomplete, SLM2_OK once all of it is verified,
 * else the refusal, which every later call repeats. */
SLM2_NODISCARD slm2_status slm2_reader_push(slm2_reader *reader, const uint8_t *bytes, size_t n, slm2_error *error);
/* NULL until the header is complete and valid. */
const slm2_header *slm2_reader_header(const slm2_reader *reader);
uint64_t slm2_reader_position(const slm2_reader *reader); /* bytes accepted so far */

/* --- writing ------------------------------------------------------------ */

/* Size of the canonical header for these fields (header_bytes, data_bytes and n_chunks
 * are computed and set in *header). Refuses a config that slm2_config_check refuses. */
SLM2_NODISCARD slm2_status slm2_header_layout(slm2_header *header, slm2_error *error);
/* Emits exactly header->header_bytes bytes into out; hashes: n_chunks x 32 bytes. */
SLM2_NODISCARD slm2_status slm2_header_write(const slm2_header *header, const uint8_t *hashes, uint8_t *out,
                                             size_t capacity, slm2_error *error);

/* Quantises 32 f32 to one Q8_0 block by [D9]; SLM2_E_WEIGHT with the index in error->offset. */
SLM2_NODISCARD slm2_status slm2_q8_quantize(const float x[32], uint8_t block[34], slm2_error *error);
/* 32 rows of row-major blocks [32][cols/32][34] to cols/32 panels of 1,088 bytes, and back. No overlap. */
void slm2_panels_from_rows(const uint8_t *rows, uint32_t cols, uint8_t *panels);
void slm2_rows_from_panels(const uint8_t *panels, uint32_t cols, uint8_t *rows);

SLM2_C_END

#endif
