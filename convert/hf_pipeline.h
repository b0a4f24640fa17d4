/* convert/hf_pipeline.h: first pass over tokenizer.json. Internal to convert/. */
#ifndef SLM2_CONVERT_HF_PIPELINE_H
#define SLM2_CONVERT_HF_PIPELINE_H

#include "base/json.h"

/* Where the three big parts lie, and how much there is. Readers stand just behind the opening bracket. */
typedef struct slm2_tokenizer_scan {
  slm2_json added, vocab, merges;
  uint32_t n_added, n_vocab, n_merges;
  uint64_t text_bytes; /* of all tokens, as JSON text: their bytes are no more */
} slm2_tokenizer_scan;

/* The expression of Qwen's pre-tokenizer. */
extern const char slm2_qwen_pattern[];

/* Checks that the pipeline is Qwen's and the text strict JSON; anything else is refused by name. */
SLM2_NODISCARD slm2_status slm2_tokenizer_scan_json(const char *json, size_t n, slm2_tokenizer_scan *out, slm2_error *error);

#endif
