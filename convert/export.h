/* convert/export.h: a verified .slm2 file as the exporters see it. Internal to convert/. */
#ifndef SLM2_CONVERT_EXPORT_H
#define SLM2_CONVERT_EXPORT_H

#include "convert/emit.h"
#include "slm2/model.h"

struct slm2_export {
  const uint8_t *file, *data; /* data: its first section */
  uint64_t file_bytes;
  const slm2_header *header;
  const slm2_tokenizer *tokenizer; /* NULL when the file has none */
  const uint8_t *merges;           /* u32[n_merges][3] in the tokenizer section */
  uint32_t n_tokens, n_merges;
  uint64_t inexact_blocks;
  uint8_t *rows;   /* 32 rows of blocks of the widest matrix */
  uint8_t *values; /* the same as f32 */
  slm2_emitter emitter;
};

/* Rows row .. row + 31 of matrix s as Q8_0 blocks: where they are, or from panels in e->rows. */
const uint8_t *slm2_export_rows(const slm2_export *e, const slm2_section *s, uint64_t row);
/* Begins a file of the emitter. */
slm2_emitter *slm2_export_begin(slm2_export *e, const slm2_sink *sink, slm2_error *error);
/* tokenizer.json of the section. */
void slm2_export_tokenizer(const slm2_export *e, slm2_emitter *out);

#endif
