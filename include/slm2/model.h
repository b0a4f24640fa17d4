/* slm2/model.h: an immutable model bound to the bytes of one .slm2 file.
 *
 * The bytes are lent (a read-only mapping natively, linear memory in wasm) and must
 * outlive the model; nothing is copied but the tokenizer's index. Any number of
 * sessions, in any number of threads, may share one model.
 */
#ifndef SLM2_MODEL_H
#define SLM2_MODEL_H

#include "slm2/format.h"
#include "slm2/status.h"
#include "slm2/tokenizer.h"

SLM2_C_BEGIN

typedef struct slm2_model slm2_model;

/* Bytes of memory slm2_model_init needs for this file (header, size and the tokenizer's counts are checked; hashes
 * are not: that is slm2_reader's work). file must be 64-byte aligned. Nothing behind the header and the first 32 bytes of
 * the data is read: with file_bytes as the size of the whole, this prefix of a file that is not there yet will do. */
SLM2_NODISCARD slm2_status slm2_model_bytes(const uint8_t *file, uint64_t file_bytes, size_t *bytes, slm2_error *error);
/* mem: 64-byte aligned, kept. */
SLM2_NODISCARD slm2_status slm2_model_init(void *mem, size_t mem_bytes, const uint8_t *file, uint64_t file_bytes,
                                           slm2_model **out, slm2_error *error);

const slm2_header *slm2_model_header(const slm2_model *model);
void slm2_model_identity(const slm2_model *model, uint8_t out[32]);
const slm2_tokenizer *slm2_model_tokenizer(const slm2_model *model); /* NULL when the file has none */
/* SHA-256 of the tokenizer section without padding (of no bytes when there is none); computed anew at each call. */
void slm2_model_tokenizer_sha256(const slm2_model *model, uint8_t out[32]);
/* One bit per logit, LSB first: ids with a token (all of them when there is no tokenizer) [D19]. */
const uint8_t *slm2_model_token_mask(const slm2_model *model);

/* The two numeric profiles; each is a complete model of computation. */
typedef enum slm2_profile {
  SLM2_PROFILE_F32 = 0, /* f32 activations times dequantised weights: the authority [D10] */
  SLM2_PROFILE_Q8 = 1,  /* activations quantised per 32-block, exact integer dots [D11] */
} slm2_profile;

/* Storage of keys and values; part of the model of computation [D18]. */
typedef enum slm2_kv_type { SLM2_KV_F32 = 0, SLM2_KV_F16 = 1 } slm2_kv_type;

const char *slm2_profile_name(slm2_profile profile); /* "f32", "q8" */
const char *slm2_kv_name(slm2_kv_type kv);           /* "f32", "f16" */

SLM2_C_END

#endif
