/* convert/export.c: opens a .slm2 file for exporting: everything in it is verified first, so that no damage is passed on. */
#include "convert/export.h"
#include "convert/text.h"
#include "base/arena.h"
#include "base/error.h"
#include "kernel/weights.h"
#include "tokenizer/section.h"

#define PIECE_BYTES 1048576u

/* What is placed beside the export itself. */
typedef struct parts {
  slm2_export *export;
  void *model, *reader;
  uint8_t *header;
} parts;

static void place(parts *p, const slm2_header *h, size_t model_bytes, slm2_arena *a) {
  const slm2_config *c = &h->config;
  uint32_t cols = c->heads * c->head_dim;
  if (cols < c->hidden) cols = c->hidden;
  if (cols < c->intermediate) cols = c->intermediate;
  p->export = slm2_arena_take(a, 1, sizeof *p->export);
  p->model = slm2_arena_take(a, model_bytes, 1);
  p->reader = slm2_arena_take(a, slm2_reader_bytes(), 1);
  p->header = slm2_arena_take(a, h->header_bytes, 1);
  uint8_t *rows = slm2_arena_take(a, SLM2_BLOCK_BYTES, cols);
  uint8_t *values = slm2_arena_take(a, SLM2_PANEL_ROWS * 4, cols);
  if (p->export == NULL) return;
  p->export->rows = rows;
  p->export->values = values;
}

/* The header and the model's memory. */
static slm2_status measure(const uint8_t *file, uint64_t file_bytes, slm2_header *header, size_t *model_bytes,
                           slm2_error *error) {
  uint8_t first[8] = {0};
  uint64_t n;
  SLM2_TRY(slm2_model_bytes(file, file_bytes, model_bytes, error)); /* alignment, header, size, tokenizer */
  memcpy(first, file, sizeof first);
  SLM2_TRY(slm2_header_length(first, file_bytes, &n, error));
  return slm2_header_parse(file + 8, (size_t)n, file_bytes, header, error);
}

slm2_status slm2_export_bytes(const uint8_t *file, uint64_t file_bytes, size_t *bytes, slm2_error *error) {
  slm2_header header;
  size_t model_bytes;
  parts p;
  slm2_arena arena;
  SLM2_TRY(measure(file, file_bytes, &header, &model_bytes, error));
  slm2_arena_init(&arena, NULL, 0);
  place(&p, &header, model_bytes, &arena);
  if (arena.failed || arena.used > SIZE_MAX)
    return slm2_fail(error, SLM2_E_MEMORY, "export", NULL, SLM2_NO_OFFSET, "needs %u bytes of memory", arena.used);
  *bytes = (size_t)arena.used;
  return SLM2_OK;
}

static slm2_status verify(const parts *p, const slm2_header *h,
                          void (*progress)(void *user, const char *phase, uint64_t done, uint64_t total), void *user,
                          slm2_error *error) {
  const slm2_export *e = p->export;
  slm2_reader *reader;
  slm2_status status =
      slm2_reader_init(p->reader, slm2_reader_bytes(), p->header, (size_t)h->header_bytes, e->file_bytes, &reader, error);
  if (status == SLM2_OK) status = SLM2_NEED_MORE;
  for (uint64_t at = 0; status == SLM2_NEED_MORE && at < e->file_bytes;) {
    size_t n = e->file_bytes - at < PIECE_BYTES ? (size_t)(e->file_bytes - at) : PIECE_BYTES;
    status = slm2_reader_push(reader, e->file + at, n, error);
    at += n;
    if (progress != NULL) progress(user, "verify", at, e->file_bytes);
  }
  if (status != SLM2_NEED_MORE) return status;
  return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, "export", NULL, e->file_bytes, "the verifier wants more than the file");
}

/* Whether quantising q * d gives q and d back [D9]: the largest |q| is 127 and d > 0, or all is zero. */
static bool is_exact(const uint8_t *block) {
  uint16_t d = slm2_load_u16(block);
  int largest = 0;
  for (uint32_t k = 0; k < SLM2_BLOCK; k++) {
    int q = (int8_t)block[2 + k];
    if (q < 0) q = -q;
    if (q > largest) largest = q;
  }
  return d == 0 ? largest == 0 : d < 0x8000 && largest == 127;
}

static uint64_t count_inexact(const slm2_export *e) {
  uint64_t n = 0;
  slm2_section s;
  for (uint32_t i = 2; slm2_section_get(e->header, i, &s) == SLM2_OK; i++) {
    size_t blocks = SLM2_PANEL_ROWS * (size_t)s.dims[1] / SLM2_BLOCK;
    for (uint64_t row = 0; s.n_dims == 2 && row < s.dims[0]; row += SLM2_PANEL_ROWS) {
      const uint8_t *rows = slm2_export_rows(e, &s, row);
      for (size_t b = 0; b < blocks; b++) n += !is_exact(rows + b * SLM2_BLOCK_BYTES);
    }
  }
  return n;
}

slm2_status slm2_export_open(const uint8_t *file, uint64_t file_bytes, void *mem, size_t mem_bytes,
                             void (*progress)(void *user, const char *phase, uint64_t done, uint64_t total), void *user,
                             slm2_export **out, slm2_error *error) {
  slm2_header header;
  size_t model_bytes;
  parts p;
  slm2_arena arena;
  slm2_model *model;
  SLM2_TRY(measure(file, file_bytes, &header, &model_bytes, error));
  if ((uintptr_t)mem % 64 != 0) {
    return slm2_fail(error, SLM2_E_ARGUMENT, "export", "mem", SLM2_NO_OFFSET, "mem is not 64-byte aligned");
  }
  slm2_arena_init(&arena, mem, mem_bytes);
  place(&p, &header, model_bytes, &arena);
  if (arena.failed)
    return slm2_fail(error, SLM2_E_MEMORY, "export", NULL, SLM2_NO_OFFSET, "%u bytes of memory are too few", (uint64_t)mem_bytes);
  slm2_export *e = p.export;
  e->file = file;
  e->file_bytes = file_bytes;
  e->data = file + 8 + header.header_bytes;
  SLM2_TRY(verify(&p, &header, progress, user, error));
  SLM2_TRY(slm2_model_init(p.model, model_bytes, file, file_bytes, &model, error));
  e->header = slm2_model_header(model);
  e->tokenizer = slm2_model_tokenizer(model);
  e->n_tokens = e->n_merges = 0;
  e->merges = NULL;
  if (e->tokenizer != NULL) { /* section 0, which slm2_model_init has checked */
    e->n_tokens = slm2_load_u32(e->data + 8);
    e->n_merges = slm2_load_u32(e->data + 12);
    e->merges = e->data + SLM2_TOKENIZER_HEAD_BYTES + 4 * (size_t)e->n_tokens;
  }
  e->inexact_blocks = count_inexact(e);
  *out = e;
  return SLM2_OK;
}

const slm2_header *slm2_export_header(const slm2_export *e) { return e->header; }
uint64_t slm2_export_inexact_blocks(const slm2_export *e) { return e->inexact_blocks; }

const uint8_t *slm2_export_rows(const slm2_export *e, const slm2_section *s, uint64_t row) {
  uint32_t cols = (uint32_t)s->dims[1];
  const uint8_t *at = e->data + s->offset + row * (cols / SLM2_BLOCK) * SLM2_BLOCK_BYTES;
  if (e->header->form == SLM2_FORM_ROWS) return at;
  slm2_rows_from_panels(at, cols, e->rows);
  return e->rows;
}

slm2_emitter *slm2_export_begin(slm2_export *e, const slm2_sink *sink, slm2_error *error) {
  slm2_emit_begin(&e->emitter, sink, error);
  return &e->emitter;
}
