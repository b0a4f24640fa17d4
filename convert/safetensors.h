/* convert/safetensors.h: the border for safetensors files, usable on its own (`slm2 inspect FILE.safetensors`).
 *
 *   u64 LE n | n bytes JSON header | data
 *
 * Accepted is what the reference crate accepts, minus: headers that do not begin with '{', repeated names or keys,
 * unknown keys in an entry, more than SLM2_ST_MAX_RANK dimensions, more than SLM2_ST_MAX_TENSORS tensors. The
 * tensors must cover the data exactly. Values are not looked at. Memory: the header, lent by the caller, and less
 * than 1 MiB whatever the file says [FIL-2].
 */
#ifndef SLM2_CONVERT_SAFETENSORS_H
#define SLM2_CONVERT_SAFETENSORS_H

#include <stdbool.h>
#include "slm2/status.h"

#define SLM2_ST_HEADER_MAX 100000000u /* the reference crate's limit */
#define SLM2_ST_MAX_RANK 8u
#define SLM2_ST_MAX_TENSORS 32000u /* keeps the entries under 1 MiB */

typedef enum slm2_st_dtype {
  SLM2_ST_BOOL, SLM2_ST_F4, SLM2_ST_F6_E2M3, SLM2_ST_F6_E3M2, SLM2_ST_U8, SLM2_ST_I8, SLM2_ST_F8_E5M2, SLM2_ST_F8_E4M3,
  SLM2_ST_F8_E8M0, SLM2_ST_F8_E4M3FNUZ, SLM2_ST_F8_E5M2FNUZ, SLM2_ST_I16, SLM2_ST_U16, SLM2_ST_F16, SLM2_ST_BF16, SLM2_ST_I32,
  SLM2_ST_U32, SLM2_ST_F32, SLM2_ST_C64, SLM2_ST_F64, SLM2_ST_I64, SLM2_ST_U64,
} slm2_st_dtype;
const char *slm2_st_dtype_name(slm2_st_dtype dtype);

typedef struct slm2_st_tensor {
  const char *name; /* n_name bytes of UTF-8 in the header, not terminated */
  size_t n_name;
  slm2_st_dtype dtype;
  uint32_t rank;
  uint64_t dims[SLM2_ST_MAX_RANK];
  uint64_t offset; /* from the start of the file */
  uint64_t bytes;
} slm2_st_tensor;

/* One tensor as it is kept: where it stands in the header. 32 bytes. */
typedef struct slm2_st_entry {
  uint64_t begin, end;      /* data_offsets */
  uint32_t name_at, n_name; /* in the header */
  uint32_t value_at;        /* of its object's '{' */
  bool indexed, bound;      /* the index file named it; a section uses it */
} slm2_st_entry;

/* A checked file. Entries are sorted by name. Keeps pointers to the lent header, memory and file name. */
typedef struct slm2_safetensors {
  const char *file; /* for messages */
  const char *header;
  size_t header_bytes;
  uint64_t data_bytes;
  slm2_st_entry *entries;
  uint32_t n_tensors;
} slm2_safetensors;

/* n from the first 8 bytes (fewer: a short file) of a file of file_bytes; 8 + n fits in the file. */
SLM2_NODISCARD slm2_status slm2_st_header_length(const char *file, const uint8_t *first, uint64_t file_bytes, size_t *n,
                                                 slm2_error *error);
/* Memory for slm2_st_open of n header bytes. */
size_t slm2_st_bytes(size_t n);
/* Checks the n header bytes of a file of file_bytes. header is lent and written to: names with escapes are decoded in
 * place. It and mem (at a multiple of 16 bytes) must outlive *out. */
SLM2_NODISCARD slm2_status slm2_st_open(const char *file, char *header, size_t n, uint64_t file_bytes, void *mem,
                                        size_t mem_bytes, slm2_safetensors *out, slm2_error *error);
/* Tensor i < n_tensors, in the order of names. */
void slm2_st_get(const slm2_safetensors *st, uint32_t i, slm2_st_tensor *out);
/* Position of a name, or UINT32_MAX. */
uint32_t slm2_st_find(const slm2_safetensors *st, const char *name, size_t n_name);

/* model.safetensors.index.json against its opened shards: every tensor it names is in the shard it says, every tensor
 * of a shard is named once, every shard is listed, and total_size, if stated, is the sum of the shards' data bytes. */
SLM2_NODISCARD slm2_status slm2_index_check(const char *json, size_t n, slm2_safetensors *shards, uint32_t n_shards,
                                            slm2_error *error);

#endif
