/* convert/convert.c: a Hugging Face folder to one SLM2 file, in the order a reader would do it by hand: read the small
 * files, open and check the shards, bind every tensor, convert the tokenizer, then write section by section. */
#include "convert/convert.h"
#include "convert/hf.h"
#include "convert/output.h"
#include "convert/safetensors.h"
#include "convert/text.h"
#include "convert/weights.h"
#include "base/error.h"
#include "num/fp_env.h"
#include "kernel/weights.h"

static const char operation[] = "convert";

typedef struct job {
  const slm2_source *source;
  const slm2_convert_options *options;
  slm2_header header;
  size_t header_bytes[SLM2_MAX_SHARDS]; /* of the shards */
  size_t scratch_bytes, section_capacity; /* of the tokenizer */
  /* placed in the lent memory */
  char *shard_headers[SLM2_MAX_SHARDS];
  void *entries[SLM2_MAX_SHARDS];
  slm2_weights weights;
  slm2_row_buffers buffers;
  void *scratch;
  char *config_text; /* for strings of tokenizer_config.json */
  uint8_t *section;
  slm2_output output;
} job;

/* --- before memory ----------------------------------------------------------------------------------- */

static slm2_status check_source(const slm2_source *s, slm2_error *error) {
  static const struct {
    slm2_source_file file;
    const char *name;
  } required[] = {{SLM2_SOURCE_CONFIG, "config.json"}, {SLM2_SOURCE_TOKENIZER, "tokenizer.json"}};
  for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
    if (s->text[required[i].file] != NULL) continue;
    return slm2_fail(error, SLM2_E_FORMAT, operation, required[i].name, SLM2_NO_OFFSET, "%s is missing", required[i].name);
  }
  if (s->n_shards == 0 || s->n_shards > SLM2_MAX_SHARDS || (s->index == NULL && s->n_shards != 1)) {
    return slm2_fail(error, SLM2_E_ARGUMENT, operation, "n_shards", SLM2_NO_OFFSET,
                     "%u shards %s an index; possible are 1, or 1 to %u with one", (uint64_t)s->n_shards,
                     s->index == NULL ? "without" : "with", (uint64_t)SLM2_MAX_SHARDS);
  }
  return SLM2_OK;
}

static slm2_status read_shard_lengths(job *w, slm2_error *error) {
  const slm2_source *s = w->source;
  for (uint32_t i = 0; i < s->n_shards; i++) {
    uint8_t first[8] = {0};
    if (s->shard_bytes[i] >= 8) SLM2_TRY(s->read(s->user, i, 0, first, sizeof first, error));
    SLM2_TRY(slm2_st_header_length(s->shard_names[i], first, s->shard_bytes[i], &w->header_bytes[i], error));
  }
  return SLM2_OK;
}

/* Everything that the small files and the shards' first bytes say; a header that is right but for hashes, names and
 * the exact size of the tokenizer. */
static slm2_status prepare(job *w, slm2_error *error) {
  const slm2_source *s = w->source;
  slm2_header *h = &w->header;
  slm2_generation ids;
  SLM2_TRY(check_source(s, error));
  SLM2_TRY(slm2_hf_config(s->text[SLM2_SOURCE_CONFIG], s->text_bytes[SLM2_SOURCE_CONFIG], &h->config, &ids, error));
  SLM2_TRY(slm2_hf_generation(s->text[SLM2_SOURCE_GENERATION], s->text_bytes[SLM2_SOURCE_GENERATION], &ids, h->config.vocab,
                              &h->generation, error));
  SLM2_TRY(slm2_tokenizer_convert_bytes(s->text[SLM2_SOURCE_TOKENIZER], s->text_bytes[SLM2_SOURCE_TOKENIZER], &w->scratch_bytes,
                                        &w->section_capacity, error));
  SLM2_TRY(read_shard_lengths(w, error));
  text_copy(h->source, sizeof h->source, "unknown");
  text_copy(h->source_revision, sizeof h->source_revision, "unknown");
  text_copy(h->license, sizeof h->license, "unknown");
  h->tokenizer_bytes = w->section_capacity;
  h->form = SLM2_FORM_PANELS; /* the longer dtype name, until the memory is placed */
  return slm2_header_layout(h, error);
}

static void place(job *w, slm2_arena *a) {
  const slm2_config *c = &w->header.config;
  uint32_t n = w->source->n_shards, cols = c->heads * c->head_dim;
  if (cols < c->hidden) cols = c->hidden;
  if (cols < c->intermediate) cols = c->intermediate;
  w->weights.source = w->source;
  w->weights.shards = slm2_arena_take(a, n, sizeof *w->weights.shards);
  w->weights.tensors = slm2_arena_take(a, slm2_section_count(c), sizeof *w->weights.tensors);
  for (uint32_t i = 0; i < n; i++) {
    w->shard_headers[i] = slm2_arena_take(a, w->header_bytes[i], 1);
    w->entries[i] = slm2_arena_take(a, slm2_st_bytes(w->header_bytes[i]), 1);
  }
  w->scratch = slm2_arena_take(a, w->scratch_bytes, 1);
  w->section = slm2_arena_take(a, w->section_capacity, 1);
  w->config_text = slm2_arena_take(a, w->source->text_bytes[SLM2_SOURCE_TOKENIZER_CONFIG], 1);
  w->buffers.max_cols = cols;
  w->buffers.raw = slm2_arena_take(a, SLM2_PANEL_ROWS * 4, cols);
  w->buffers.rows = slm2_arena_take(a, SLM2_BLOCK_BYTES, cols);
  w->buffers.panels = slm2_arena_take(a, SLM2_BLOCK_BYTES, cols);
  slm2_output_place(&w->output, &w->header, a);
}

slm2_status slm2_convert_bytes(const slm2_source *source, size_t *bytes, slm2_error *error) {
  job w = {.source = source};
  slm2_arena arena;
  SLM2_TRY(prepare(&w, error));
  slm2_arena_init(&arena, NULL, 0);
  place(&w, &arena);
  if (arena.failed || arena.used > SIZE_MAX) {
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET,
                     "needs %u bytes of memory, more than this machine has addresses for", arena.used);
  }
  *bytes = (size_t)arena.used;
  return SLM2_OK;
}

/* --- before the first byte ------------------------------------------------------------------------------ */

static slm2_status open_shards(job *w, slm2_error *error) {
  const slm2_source *s = w->source;
  for (uint32_t i = 0; i < s->n_shards; i++) {
    size_t n = w->header_bytes[i];
    SLM2_TRY(s->read(s->user, i, 8, w->shard_headers[i], n, error));
    SLM2_TRY(slm2_st_open(s->shard_names[i], w->shard_headers[i], n, s->shard_bytes[i], w->entries[i], slm2_st_bytes(n),
                          &w->weights.shards[i], error));
  }
  if (s->index == NULL) return SLM2_OK;
  return slm2_index_check(s->index, s->index_bytes, w->weights.shards, s->n_shards, error);
}

static slm2_status convert_tokenizer(job *w, slm2_error *error) {
  const slm2_source *s = w->source;
  size_t n;
  uint32_t n_tokens;
  SLM2_TRY(slm2_tokenizer_convert(s->text[SLM2_SOURCE_TOKENIZER], s->text_bytes[SLM2_SOURCE_TOKENIZER], w->scratch,
                                  w->scratch_bytes, w->section, w->section_capacity, &n, error));
  SLM2_TRY(slm2_tokenizer_section_tokens(w->section, n, &n_tokens, error));
  if (n_tokens > w->header.config.vocab) {
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, operation, "vocab_size", SLM2_NO_OFFSET,
                     "tokenizer.json has %u tokens, vocab_size is %u", (uint64_t)n_tokens, (uint64_t)w->header.config.vocab);
  }
  w->header.tokenizer_bytes = n;
  if (s->text[SLM2_SOURCE_TOKENIZER_CONFIG] == NULL) return SLM2_OK;
  return slm2_hf_check_added(s->text[SLM2_SOURCE_TOKENIZER_CONFIG], s->text_bytes[SLM2_SOURCE_TOKENIZER_CONFIG], w->section,
                             w->config_text, error);
}

static slm2_status recognise_chat(job *w, slm2_convert_report *report, slm2_error *error) {
  const slm2_source *s = w->source;
  bool found;
  SLM2_TRY(slm2_hf_chat_template(s->text[SLM2_SOURCE_CHAT_TEMPLATE], s->text_bytes[SLM2_SOURCE_CHAT_TEMPLATE],
                                 s->text[SLM2_SOURCE_TOKENIZER_CONFIG], s->text_bytes[SLM2_SOURCE_TOKENIZER_CONFIG],
                                 w->config_text, &found, report->chat_template_sha256, error));
  w->header.chat_format = found ? slm2_known_chat_format(report->chat_template_sha256) : SLM2_CHAT_NONE;
  if (w->options->force_chat_qwen3) w->header.chat_format = SLM2_CHAT_QWEN3;
  report->chat_template_unknown = w->header.chat_format == SLM2_CHAT_NONE;
  return SLM2_OK;
}

static slm2_status recognise_revision(job *w, const slm2_sink *sink, slm2_error *error) {
  const slm2_known_revision *r;
  size_t n = SLM2_PANEL_ROWS * 4 * (size_t)w->buffers.max_cols;
  SLM2_TRY(slm2_known_match(slm2_known_revisions, slm2_n_known_revisions, w->source, sink, w->buffers.raw, n, &r, error));
  if (r == NULL) return SLM2_OK;
  text_copy(w->header.source, sizeof w->header.source, r->source);
  text_copy(w->header.source_revision, sizeof w->header.source_revision, r->revision);
  text_copy(w->header.license, sizeof w->header.license, r->license);
  return SLM2_OK;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

static slm2_status write_sections(job *w, const slm2_sink *sink, slm2_convert_report *report, slm2_error *error) {
  slm2_output_begin(&w->output, sink, &w->header, "convert");
  SLM2_TRY(slm2_output_front(&w->output, w->section, error));
  for (uint32_t i = 2; i < slm2_section_count(&w->header.config); i++) {
    SLM2_TRY(slm2_weights_write(&w->weights, &w->header, i, &w->buffers, &w->output, &report->zero_blocks, error));
  }
  return slm2_output_end(&w->output, report->identity, error);
}

static SLM2_NOINLINE slm2_status convert(job *w, const slm2_sink *sink, void *mem, size_t mem_bytes, slm2_convert_report *report,
                                         slm2_error *error) {
  slm2_arena arena;
  if (!is_aligned(mem)) return slm2_fail(error, SLM2_E_ARGUMENT, operation, "mem", SLM2_NO_OFFSET, "mem is not 16-byte aligned");
  SLM2_TRY(prepare(w, error));
  slm2_arena_init(&arena, mem, mem_bytes);
  place(w, &arena);
  if (arena.failed)
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET, "%u bytes of memory are too few",
                     (uint64_t)mem_bytes);
  w->header.form = w->options->form;
  SLM2_TRY(open_shards(w, error));
  SLM2_TRY(slm2_weights_bind(&w->weights, &w->header, error));
  SLM2_TRY(convert_tokenizer(w, error));
  SLM2_TRY(recognise_chat(w, report, error));
  report->lm_head_duplicate = w->weights.has_head_copy;
  if (w->weights.has_head_copy) SLM2_TRY(slm2_weights_compare_head(&w->weights, &w->header, &w->buffers, sink, error));
  SLM2_TRY(recognise_revision(w, sink, error));
  SLM2_TRY(slm2_header_layout(&w->header, error));
  SLM2_TRY(write_sections(w, sink, report, error));
  report->header = w->header;
  return SLM2_OK;
}

slm2_status slm2_convert_hf(const slm2_source *source, const slm2_sink *sink, const slm2_convert_options *options, void *mem,
                            size_t mem_bytes, slm2_convert_report *report, slm2_error *error) {
  job w = {.source = source, .options = options};
  slm2_convert_report made = {.zero_blocks = 0};
  slm2_fp_state state = slm2_fp_enter();
  slm2_status status = convert(&w, sink, mem, mem_bytes, &made, error);
  slm2_fp_leave(state);
  if (status == SLM2_OK) *report = made;
  return status;
}
