/* convert/gguf_model.h: a dense Qwen3 in GGUF: names of tensors and keys, and what the metadata says. Internal to
 * convert/; the table is in docs/FORMAT.md, "GGUF". */
#ifndef SLM2_CONVERT_GGUF_MODEL_H
#define SLM2_CONVERT_GGUF_MODEL_H

#include "convert/gguf.h"
#include "convert/section.h"

/* Gives a section of weights its name in GGUF: "blk.0.attn_q.weight". */
void slm2_gguf_rename(slm2_section *s);

/* Geometry. tied: there is no output.weight. Every key that begins with "qwen3." must be one that is understood. */
SLM2_NODISCARD slm2_status slm2_gguf_config(const slm2_gguf *g, slm2_config *config, slm2_error *error);
/* Everything else of the header: special ids, sampling defaults, chat format, licence and source. section: the converted
 * tokenizer, or NULL when the file has none. *template_found: it has a chat template, of this SHA-256. */
SLM2_NODISCARD slm2_status slm2_gguf_settings(const slm2_gguf *g, const uint8_t *section, slm2_header *header,
                                              bool *template_found, uint8_t template_sha256[32], slm2_error *error);

/* Metadata of an SLM2 header that GGUF has no key for, or rounds: an export stores all of them, as strings under "slm2." and
 * these names, so that SLM2 -> GGUF -> SLM2 gives the same bytes. */
#define SLM2_GGUF_OWN "slm2."
extern const char *const slm2_gguf_own_keys[];
extern const uint32_t slm2_n_gguf_own_keys;
#define SLM2_GGUF_OWN_KEY_MAX 32u
/* "slm2." and key i. */
void slm2_gguf_own_key(uint32_t i, char out[SLM2_GGUF_OWN_KEY_MAX]);
/* The position of own key i in the metadata of the header (format/layout.h). */
uint32_t slm2_gguf_own_field(uint32_t i);

/* Whether the file is an export of slm2. */
bool slm2_gguf_is_own(const slm2_gguf *g);

/* The tokenizer. *n_tokens is 0 when the file says that it has none. */
typedef struct slm2_gguf_tokenizer {
  const slm2_gguf_value *tokens, *types, *merges;
  uint32_t n_tokens, n_merges, n_added; /* n_tokens: up to the last id that has a token */
} slm2_gguf_tokenizer;
SLM2_NODISCARD slm2_status slm2_gguf_tokenizer_open(const slm2_gguf *g, slm2_gguf_tokenizer *out, slm2_error *error);
/* section: slm2_section_capacity bytes, of which the texts are at most the header's. */
SLM2_NODISCARD slm2_status slm2_gguf_tokenizer_convert(const slm2_gguf *g, const slm2_gguf_tokenizer *t, slm2_section_builder *b,
                                                       uint8_t *section, size_t *section_bytes, slm2_error *error);

#endif
