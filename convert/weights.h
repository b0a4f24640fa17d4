/* convert/weights.h: the weights of a checkpoint: which tensor of which shard serves which section, and their values.
 * Internal to convert/. */
#ifndef SLM2_CONVERT_WEIGHTS_H
#define SLM2_CONVERT_WEIGHTS_H

#include "convert/convert.h"
#include "convert/output.h"
#include "convert/safetensors.h"

/* Where the values of one section come from. */
typedef struct slm2_weight_source {
  uint32_t shard;
  bool q8_0;           /* rows of Q8_0 blocks, which are taken over; else values of dtype */
  slm2_st_dtype dtype; /* BF16, F16 or F32 */
  uint64_t offset;     /* in the shard's file */
} slm2_weight_source;

typedef struct slm2_weights {
  const slm2_source *source;
  slm2_safetensors *shards;    /* [n_shards]; NULL when the source is a GGUF file */
  void (*rename)(slm2_section *s); /* to the source's own name, for messages; NULL: it is the same */
  bool clear_zero_blocks; /* Q8_0 blocks of scale 0 get weights 0, as the quantiser makes them [D9] */
  slm2_weight_source *tensors; /* [section count], the first two unused */
  bool has_head_copy;          /* tied, and lm_head.weight is stored too */
  slm2_weight_source head_copy;
} slm2_weights;

/* Bytes of one row group of 32 rows. */
typedef struct slm2_row_buffers {
  uint8_t *raw, *rows, *panels;
  uint32_t max_cols;
} slm2_row_buffers;

/* Finds every tensor the config demands, with its shape and a known dtype, and refuses all others by name [FIL-6]. */
SLM2_NODISCARD slm2_status slm2_weights_bind(slm2_weights *w, const slm2_header *header, slm2_error *error);
/* A tied model's lm_head.weight must hold the values of the embedding. */
SLM2_NODISCARD slm2_status slm2_weights_compare_head(const slm2_weights *w, const slm2_header *header,
                                                     const slm2_row_buffers *buffers, const slm2_sink *sink, slm2_error *error);
/* Writes section i >= 2: quantised rows in the header's form, or f32. Adds to *zero_blocks. */
SLM2_NODISCARD slm2_status slm2_weights_write(const slm2_weights *w, const slm2_header *header, uint32_t i,
                                              const slm2_row_buffers *buffers, slm2_output *out, uint64_t *zero_blocks,
                                              slm2_error *error);

#endif
