/* convert/gguf.h: the border for GGUF files, usable on its own (`slm2 inspect FILE.gguf`). Format: ggml's docs/gguf.md.
 *
 *   "GGUF" | u32 version | u64 tensors | u64 values | the values | the tensor list | padding | data
 *
 * Accepted are versions 2 and 3, little-endian. Stricter than llama.cpp: keys and tensor names are 1 to 255 and 1 to 64
 * bytes and not repeated; no arrays of arrays; at most 4 dimensions, none zero; every tensor begins where the one before
 * it ends, rounded up to the alignment, and the file ends with the last one or with its padding. Values are not looked
 * at. Memory: the header (all before the padding), lent by the caller, and less than 1 MiB whatever the file says [FIL-2].
 */
#ifndef SLM2_CONVERT_GGUF_H
#define SLM2_CONVERT_GGUF_H

#include <stdbool.h>
#include "convert/convert.h"

#define SLM2_GGUF_HEADER_MAX 268435456u /* 256 MiB, as a tokenizer section; that of Qwen3-0.6B is 5.7 MiB */
#define SLM2_GGUF_MAX_KEY 255u
#define SLM2_GGUF_MAX_NAME 64u          /* the format's limit for tensors */
#define SLM2_GGUF_MAX_VALUES 4096u      /* with the tensors' limit: entries of less than 1 MiB */
#define SLM2_GGUF_MAX_TENSORS 16384u
#define SLM2_GGUF_MAX_RANK 4u
#define SLM2_GGUF_ALIGNMENT 32u         /* unless general.alignment says otherwise */
#define SLM2_GGUF_ALIGNMENT_MAX 1048576u

typedef enum slm2_gguf_type {
  SLM2_GGUF_U8 = 0, SLM2_GGUF_I8, SLM2_GGUF_U16, SLM2_GGUF_I16, SLM2_GGUF_U32, SLM2_GGUF_I32, SLM2_GGUF_F32, SLM2_GGUF_BOOL,
  SLM2_GGUF_STRING, SLM2_GGUF_ARRAY, SLM2_GGUF_U64, SLM2_GGUF_I64, SLM2_GGUF_F64,
} slm2_gguf_type;
const char *slm2_gguf_type_name(uint32_t type);
/* Bytes of a number or bool; 0 for strings, arrays and what is no type. */
uint32_t slm2_gguf_type_bytes(uint32_t type);

/* Tensor types, by ggml's numbers. Those this program converts: */
enum { SLM2_GGML_F32 = 0, SLM2_GGML_F16 = 1, SLM2_GGML_Q8_0 = 8, SLM2_GGML_BF16 = 30 };
/* "Q4_K"; NULL for a number that is no type. */
const char *slm2_ggml_name(uint32_t type);
/* Elements and bytes of a block; false for a number that is no type. */
bool slm2_ggml_block(uint32_t type, uint32_t *elements, uint32_t *bytes);

/* Positions and lengths in the header. */
typedef struct slm2_gguf_value {
  uint64_t count;          /* elements of an array, bytes of a string, else 1 */
  uint32_t key_at, n_key;
  uint32_t at;             /* of a number; of a string's first byte; of an array's first element */
  uint8_t type, item;      /* item: type of an array's elements */
} slm2_gguf_value;

typedef struct slm2_gguf_tensor {
  uint64_t offset, bytes;  /* in the file */
  uint32_t name_at, n_name;
  uint32_t dims_at;        /* u64[rank] */
  uint16_t type;
  uint8_t rank;
  bool bound;              /* a section uses it */
} slm2_gguf_tensor;

/* A name in the header and whose it is. */
typedef struct slm2_gguf_name {
  uint32_t at, n, index;
} slm2_gguf_name;

/* A checked file. values and tensors are in the order of the file. Keeps pointers to the input and the lent memory. */
typedef struct slm2_gguf {
  const slm2_input *input;
  const uint8_t *header;
  size_t header_bytes;
  uint32_t version, n_values, n_tensors;
  uint32_t alignment;
  uint64_t data_at;        /* in the file */
  slm2_gguf_value *values;
  slm2_gguf_tensor *tensors;
  slm2_gguf_name *value_names, *tensor_names; /* sorted */
} slm2_gguf;

/* What a first pass through the header finds, in a window of a few KiB: it bounds every memory that is needed. */
typedef struct slm2_gguf_scan {
  size_t header_bytes;
  uint32_t version, n_values, n_tensors;
  uint32_t max_strings;    /* elements of the longest array of strings */
  uint64_t max_cols;       /* largest first dimension of a tensor of two dimensions */
} slm2_gguf_scan;
SLM2_NODISCARD slm2_status slm2_gguf_scan_header(const slm2_input *input, slm2_gguf_scan *out, slm2_error *error);
/* Memory for slm2_gguf_open, the header included. */
size_t slm2_gguf_bytes(const slm2_gguf_scan *scan);
/* Reads and checks the header. input and mem (at a multiple of 16 bytes) must outlive *out. */
SLM2_NODISCARD slm2_status slm2_gguf_open(const slm2_input *input, const slm2_gguf_scan *scan, void *mem, size_t mem_bytes,
                                          slm2_gguf *out, slm2_error *error);

/* NULL when there is none. */
const slm2_gguf_value *slm2_gguf_find(const slm2_gguf *g, const char *key);
slm2_gguf_tensor *slm2_gguf_find_tensor(const slm2_gguf *g, const char *name);
uint64_t slm2_gguf_dim(const slm2_gguf *g, const slm2_gguf_tensor *t, uint32_t i);

/* The value of a key, for what is asked: refuses another type, numbers that do not fit, and bools besides 0 and 1. An
 * absent key leaves *out alone. */
SLM2_NODISCARD slm2_status slm2_gguf_u32(const slm2_gguf *g, const char *key, uint32_t *out, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_gguf_f32(const slm2_gguf *g, const char *key, float *out, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_gguf_bool(const slm2_gguf *g, const char *key, bool *out, slm2_error *error);
SLM2_NODISCARD slm2_status slm2_gguf_string(const slm2_gguf *g, const char *key, const char **out, size_t *n, slm2_error *error);
/* An array of this item type; *out stays NULL when the key is absent. */
SLM2_NODISCARD slm2_status slm2_gguf_array(const slm2_gguf *g, const char *key, slm2_gguf_type item, const slm2_gguf_value **out,
                                           slm2_error *error);
/* Steps through an array of strings: *at begins as its value's at, and moves behind the string that is returned. */
const char *slm2_gguf_next_string(const slm2_gguf *g, uint32_t *at, size_t *n);

/* A refusal about a value, at its place: fmt begins with the file and the key ("%s: %s ..."), then a and b. */
slm2_status slm2_gguf_refuse(const slm2_gguf *g, const slm2_gguf_value *v, slm2_status code, const char *key, const char *fmt,
                             uint64_t a, uint64_t b, slm2_error *error);

#endif
