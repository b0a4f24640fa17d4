/* convert/gguf_import.c: a GGUF file to one SLM2 file: check the header, read geometry, tokenizer and settings, bind every
 * tensor, then write section by section. */
#include "convert/gguf_model.h"
#include "convert/output.h"
#include "convert/text.h"
#include "convert/weights.h"
#include "base/error.h"
#include "kernel/weights.h"
#include "num/fp_env.h"

static const char operation[] = "convert";

typedef struct job {
  const slm2_input *input;
  const slm2_convert_options *options;
  slm2_gguf_scan scan;
  slm2_gguf gguf;
  slm2_gguf_tokenizer tokenizer;
  slm2_header header;
  /* the GGUF as weights.h sees it: a source of one shard */
  slm2_source source;
  slm2_weights weights;
  /* placed in the lent memory */
  void *gguf_memory;
  slm2_section_builder builder;
  uint8_t *section;
  slm2_row_buffers buffers;
  slm2_output output;
} job;

static slm2_status read_shard(void *user, uint32_t shard, uint64_t offset, void *buffer, size_t n, slm2_error *error) {
  const job *w = user;
  (void)shard;
  return w->input->read(w->input->user, offset, buffer, n, error);
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Bytes of the widest section: the texts lie in the header, and there are at most max_strings tokens and merges. */
static uint64_t section_capacity(const slm2_gguf_scan *s) {
  uint64_t n = s->max_strings;
  return slm2_section_capacity(n, n, n < 1024 ? n : 1024, s->header_bytes);
}

/* Bounds from the first pass alone: what exceeds the format's limits is refused before it is used. */
static void place(job *w, slm2_arena *a) {
  uint64_t cols = w->scan.max_cols, widest = (uint64_t)SLM2_MAX_HEADS * SLM2_MAX_HEAD_DIM;
  if (cols > widest) cols = widest;
  if (cols < SLM2_MAX_HEAD_DIM) cols = SLM2_MAX_HEAD_DIM;
  w->gguf_memory = slm2_arena_take(a, slm2_gguf_bytes(&w->scan), 1);
  slm2_section_place(&w->builder, w->scan.max_strings, w->scan.max_strings, a);
  w->section = slm2_arena_take(a, section_capacity(&w->scan), 1);
  w->weights.tensors = slm2_arena_take(a, (uint64_t)w->scan.n_tensors + 3, sizeof *w->weights.tensors);
  w->buffers.max_cols = (uint32_t)cols;
  w->buffers.raw = slm2_arena_take(a, SLM2_PANEL_ROWS * 4, cols);
  w->buffers.rows = slm2_arena_take(a, SLM2_BLOCK_BYTES, cols);
  w->buffers.panels = slm2_arena_take(a, SLM2_BLOCK_BYTES, cols);
  /* A header of at most SLM2_HEADER_MAX has room for the hashes of this many chunks. */
  w->output.text_capacity = 8 + SLM2_HEADER_MAX;
  w->output.text = slm2_arena_take(a, w->output.text_capacity, 1);
  w->output.hashes = slm2_arena_take(a, SLM2_HEADER_MAX / 64, 32);
}

slm2_status slm2_convert_gguf_bytes(const slm2_input *gguf, size_t *bytes, slm2_error *error) {
  job w = {.input = gguf};
  slm2_arena arena;
  SLM2_TRY(slm2_gguf_scan_header(gguf, &w.scan, error));
  slm2_arena_init(&arena, NULL, 0);
  place(&w, &arena);
  if (arena.failed || arena.used > SIZE_MAX) {
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET,
                     "needs %u bytes of memory, more than this machine has addresses for", arena.used);
  }
  *bytes = (size_t)arena.used;
  return SLM2_OK;
}

/* --- tensors ------------------------------------------------------------------------------------ */

static slm2_status refuse_tensor(const job *w, slm2_status code, const char *name, const slm2_gguf_tensor *t, const char *fmt,
                                 const char *text, slm2_error *error) {
  return slm2_fail(error, code, operation, name, t->dims_at, fmt, w->input->name, name, text);
}

static slm2_status check_shape(const job *w, const slm2_section *s, const slm2_gguf_tensor *t, slm2_error *error) {
  const slm2_gguf *g = &w->gguf;
  uint64_t have[2] = {slm2_gguf_dim(g, t, 0), t->rank > 1 ? slm2_gguf_dim(g, t, 1) : 1};
  /* GGUF lists the dimensions innermost first. */
  uint64_t want[2] = {s->n_dims == 2 ? s->dims[1] : s->dims[0], s->n_dims == 2 ? s->dims[0] : 1};
  if (t->rank == s->n_dims && have[0] == want[0] && have[1] == want[1]) return SLM2_OK;
  return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, operation, s->name, t->dims_at,
                   "%s: %s has %u dimensions (%u, %u, ...); the metadata demand (%u, %u)", w->input->name, s->name,
                   (uint64_t)t->rank, have[0], have[1], want[0], want[1]);
}

static slm2_status bind_section(job *w, const slm2_section *s, slm2_weight_source *out, slm2_error *error) {
  slm2_gguf_tensor *t = slm2_gguf_find_tensor(&w->gguf, s->name);
  if (t == NULL) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, s->name, SLM2_NO_OFFSET, "%s: the tensor %s is missing", w->input->name,
                     s->name);
  }
  *out = (slm2_weight_source){.offset = t->offset};
  switch (t->type) {
  case SLM2_GGML_F32: out->dtype = SLM2_ST_F32; break;
  case SLM2_GGML_F16: out->dtype = SLM2_ST_F16; break;
  case SLM2_GGML_BF16: out->dtype = SLM2_ST_BF16; break;
  case SLM2_GGML_Q8_0:
    out->q8_0 = true;
    if (s->n_dims == 2) break;
    return refuse_tensor(w, SLM2_E_UNSUPPORTED_QUANTIZATION, s->name, t, "%s: %s is %s; a norm must be F32, F16 or BF16", "Q8_0",
                         error);
  default:
    return refuse_tensor(w, SLM2_E_UNSUPPORTED_QUANTIZATION, s->name, t, "%s: %s is %s; weights must be Q8_0, F32, F16 or BF16",
                         slm2_ggml_name(t->type), error);
  }
  t->bound = true;
  return check_shape(w, s, t, error);
}

/* Every tensor that the geometry demands, and no other. Stops at the first one that is missing, so that at most
 * n_tensors + 2 entries are used. */
static slm2_status bind_tensors(job *w, slm2_error *error) {
  slm2_section s;
  for (uint32_t i = 2; i < slm2_section_count(&w->header.config); i++) {
    SLM2_TRY(slm2_section_get(&w->header, i, &s));
    slm2_gguf_rename(&s);
    SLM2_TRY(bind_section(w, &s, &w->weights.tensors[i], error));
  }
  for (uint32_t i = 0; i < w->gguf.n_tensors; i++) {
    const slm2_gguf_tensor *t = &w->gguf.tensors[i];
    if (t->bound) continue;
    return slm2_fail_n(error, SLM2_E_UNSUPPORTED, operation, (const char *)w->gguf.header + t->name_at, t->n_name, t->name_at,
                       "%s: a tensor that a dense Qwen3 of this geometry does not have", w->input->name);
  }
  return SLM2_OK;
}

/* --- all ------------------------------------------------------------------------------------------ */

static slm2_status convert_tokenizer(job *w, slm2_error *error) {
  size_t n = 0;
  w->header.tokenizer_bytes = 0;
  if (w->tokenizer.tokens == NULL) return SLM2_OK;
  if (w->tokenizer.tokens->count != w->header.config.vocab) {
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, operation, "tokenizer.ggml.tokens", w->tokenizer.tokens->at,
                     "%s: %u tokens, but token_embd.weight has %u rows", w->input->name, w->tokenizer.tokens->count,
                     (uint64_t)w->header.config.vocab);
  }
  SLM2_TRY(slm2_gguf_tokenizer_convert(&w->gguf, &w->tokenizer, &w->builder, w->section, &n, error));
  w->header.tokenizer_bytes = n;
  return SLM2_OK;
}

/* The header was read twice: what the second reading says must fit the memory that the first one asked for. A matrix that
 * is wider than its row buffers would be one of no tensor of the file. */
static slm2_status check_bounds(const job *w, slm2_error *error) {
  const slm2_config *c = &w->header.config;
  uint32_t limit = w->buffers.max_cols, strings = w->scan.max_strings;
  if (c->hidden <= limit && c->intermediate <= limit && c->heads * c->head_dim <= limit && w->tokenizer.n_tokens <= strings &&
      w->tokenizer.n_merges <= strings) {
    return SLM2_OK;
  }
  return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, operation, w->input->name, SLM2_NO_OFFSET,
                   "%s: no tensor has the widths of the metadata: %u, %u and %u", w->input->name, (uint64_t)c->hidden,
                   (uint64_t)c->intermediate, (uint64_t)c->heads * c->head_dim);
}

static slm2_status read_model(job *w, slm2_convert_report *report, slm2_error *error) {
  bool has_template;
  SLM2_TRY(slm2_gguf_config(&w->gguf, &w->header.config, error));
  SLM2_TRY(slm2_gguf_tokenizer_open(&w->gguf, &w->tokenizer, error));
  SLM2_TRY(check_bounds(w, error));
  SLM2_TRY(convert_tokenizer(w, error));
  SLM2_TRY(slm2_gguf_settings(&w->gguf, w->tokenizer.tokens == NULL ? NULL : w->section, &w->header, &has_template,
                              report->chat_template_sha256, error));
  if (w->options->force_chat_qwen3) w->header.chat_format = SLM2_CHAT_QWEN3;
  report->chat_template_unknown = w->header.chat_format == SLM2_CHAT_NONE;
  w->header.form = w->options->form;
  return slm2_header_layout(&w->header, error);
}

static SLM2_NOINLINE slm2_status import(job *w, const slm2_sink *sink, void *mem, size_t mem_bytes, slm2_convert_report *report,
                                        slm2_error *error) {
  slm2_arena arena;
  if (!is_aligned(mem)) return slm2_fail(error, SLM2_E_ARGUMENT, operation, "mem", SLM2_NO_OFFSET, "mem is not 16-byte aligned");
  SLM2_TRY(slm2_gguf_scan_header(w->input, &w->scan, error));
  slm2_arena_init(&arena, mem, mem_bytes);
  place(w, &arena);
  if (arena.failed)
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET, "%u bytes of memory are too few",
                     (uint64_t)mem_bytes);
  SLM2_TRY(slm2_gguf_open(w->input, &w->scan, w->gguf_memory, slm2_gguf_bytes(&w->scan), &w->gguf, error));
  SLM2_TRY(read_model(w, report, error));
  SLM2_TRY(bind_tensors(w, error));
  w->weights.clear_zero_blocks = !slm2_gguf_is_own(&w->gguf);
  slm2_output_begin(&w->output, sink, &w->header, "convert");
  SLM2_TRY(slm2_output_front(&w->output, w->section, error));
  for (uint32_t i = 2; i < slm2_section_count(&w->header.config); i++) {
    SLM2_TRY(slm2_weights_write(&w->weights, &w->header, i, &w->buffers, &w->output, &report->zero_blocks, error));
  }
  SLM2_TRY(slm2_output_end(&w->output, report->identity, error));
  report->header = w->header;
  return SLM2_OK;
}

slm2_status slm2_convert_gguf(const slm2_input *gguf, const slm2_sink *sink, const slm2_convert_options *options, void *mem,
                              size_t mem_bytes, slm2_convert_report *report, slm2_error *error) {
  job w = {.input = gguf, .options = options};
  w.source = (slm2_source){
      .user = &w, .n_shards = 1, .shard_names = &gguf->name, .shard_bytes = &gguf->bytes, .read = read_shard};
  w.weights = (slm2_weights){.source = &w.source, .rename = slm2_gguf_rename};
  slm2_convert_report made = {.zero_blocks = 0};
  slm2_fp_state state = slm2_fp_enter();
  slm2_status status = import(&w, sink, mem, mem_bytes, &made, error);
  slm2_fp_leave(state);
  if (status == SLM2_OK) *report = made;
  return status;
}
