/* convert/synth.c: models of any geometry with synthetic weights [D27]. Every weight is a pure function of the seed and
 * its place, computed with integers alone (docs/FORMAT.md, "Synthetic models"):
 *
 *   mix(z)         the output function of SplitMix64;  G = 0x9e3779b97f4a7c15; all sums modulo 2^64
 *   section(i)     mix(seed + G (i + 1)), i = index of the section in the file
 *   row(i, r)      mix(section(i) + G (r + 1))
 *   word(b, k)     mix(row(i, r) + G (8 b + k + 1))
 *   q[0..31]       of block b: the bytes of words k = 0..3, little-endian, as int8; -128 becomes 0
 *   d              of block b, as half bits, from word 4: bits 0..9 mantissa; exponent field E; negative when bits 10..19
 *                  are all 0; subnormal (exponent field 0) when bits 20..29 are all 0
 *   E              max(1, 8 - ceil(log2(cols)) / 2), plus 2 for the embedding and lm_head: products keep their variance,
 *                  logits spread by about 4
 *   norms          value j of section i: (1024 + k) / 1024, k = (bits 0..7 of mix(section(i) + G (j + 1))) - 128
 */
#include "convert/byte_tokenizer.h"
#include "convert/convert.h"
#include "convert/output.h"
#include "convert/text.h"
#include "base/error.h"
#include "kernel/weights.h"
#include "num/fp_env.h"

static const char operation[] = "synth";
#define GAMMA UINT64_C(0x9e3779b97f4a7c15)

/* --- shapes --------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  slm2_config config; /* vocab 0: the tokenizer's */
} shapes[] = {
    {"qwen3-0.6b", {1024, 3072, 28, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true}},
    {"qwen3-1.7b", {2048, 6144, 28, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true}},
    {"qwen3-4b", {2560, 9728, 36, 32, 8, 128, 151936, 40960, 1000000, 1e-6f, true}},
    {"qwen3-8b", {4096, 12288, 36, 32, 8, 128, 151936, 40960, 1000000, 1e-6f, false}},
    {"qwen3-0.6b-4layer", {1024, 3072, 4, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true}},
    {"small", {256, 768, 4, 8, 4, 64, 0, 40960, 1000000, 1e-6f, true}},
    {"tiny", {64, 96, 2, 4, 2, 32, 0, 40960, 1000000, 1e-6f, true}},
};

slm2_status slm2_synth_shape(const char *name, uint32_t n_tokens, slm2_config *config, slm2_error *error) {
  size_t n = text_length(name);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    if (text_compare(name, n, shapes[i].name, text_length(shapes[i].name)) != 0) continue;
    slm2_config c = shapes[i].config;
    if (n_tokens == 0) n_tokens = SLM2_BYTE_TOKENIZER_TOKENS;
    if (n_tokens > SLM2_MAX_VOCAB) {
      return slm2_fail(error, SLM2_E_ARGUMENT, operation, "tokens", SLM2_NO_OFFSET, "%u tokens; at most %u are possible",
                       (uint64_t)n_tokens, (uint64_t)SLM2_MAX_VOCAB);
    }
    if (c.vocab == 0) c.vocab = (n_tokens + 31) & ~UINT32_C(31);
    *config = c;
    return SLM2_OK;
  }
  return slm2_fail(error, SLM2_E_ARGUMENT, operation, name, SLM2_NO_OFFSET,
                   "no shape %s; there are qwen3-0.6b, qwen3-1.7b, qwen3-4b, qwen3-8b, qwen3-0.6b-4layer, small and tiny", name);
}

/* --- the generator ------------------------------------------------------------------------------------------ */

static inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Exponent field of the scales of a matrix. */
static uint32_t scale_exponent(uint64_t cols, bool logits) {
  uint32_t log2 = 0;
  while (UINT64_C(1) << log2 < cols) log2++;
  uint32_t e = log2 / 2 < 7 ? 8 - log2 / 2 : 1;
  return logits ? e + 2 : e;
}

static void make_row(uint64_t row_key, uint32_t n_blocks, uint32_t exponent, uint8_t *blocks) {
  for (uint32_t b = 0; b < n_blocks; b++) {
    uint8_t *block = blocks + SLM2_BLOCK_BYTES * (size_t)b;
    uint64_t counter = row_key + GAMMA * (8 * (uint64_t)b + 1);
    for (uint32_t k = 0; k < 4; k++) slm2_store_u64(block + 2 + 8 * k, mix(counter + GAMMA * k));
    for (uint32_t j = 0; j < SLM2_BLOCK; j++) block[2 + j] = block[2 + j] == 0x80 ? 0 : block[2 + j];
    uint64_t word = mix(counter + GAMMA * 4);
    uint32_t sign = (word >> 10 & 0x3ff) == 0, field = (word >> 20 & 0x3ff) == 0 ? 0 : exponent;
    slm2_store_u16(block, (uint16_t)(sign << 15 | field << 10 | (uint32_t)(word & 0x3ff)));
  }
}

typedef struct job {
  slm2_header header;
  const uint8_t *tokenizer;
  uint8_t *rows, *panels;
  slm2_output output;
} job;

static slm2_status write_matrix(job *w, const slm2_section *s, uint64_t key, uint32_t exponent, slm2_error *error) {
  uint32_t cols = (uint32_t)s->dims[1], n_blocks = cols / SLM2_BLOCK;
  size_t row_bytes = n_blocks * (size_t)SLM2_BLOCK_BYTES;
  for (uint64_t row = 0; row < s->dims[0]; row += SLM2_PANEL_ROWS) {
    for (uint32_t r = 0; r < SLM2_PANEL_ROWS; r++)
      make_row(mix(key + GAMMA * (row + r + 1)), n_blocks, exponent, w->rows + r * row_bytes);
    if (w->header.form == SLM2_FORM_PANELS) slm2_panels_from_rows(w->rows, cols, w->panels);
    SLM2_TRY(slm2_output_put(&w->output, w->header.form == SLM2_FORM_PANELS ? w->panels : w->rows, SLM2_PANEL_ROWS * row_bytes,
                             error));
  }
  return slm2_output_align(&w->output, error);
}

static slm2_status write_norm(job *w, const slm2_section *s, uint64_t key, slm2_error *error) {
  size_t n = (size_t)s->dims[0];
  for (size_t j = 0; j < n; j++) {
    int32_t k = (int32_t)(mix(key + GAMMA * (j + 1)) & 0xff) - 128;
    slm2_store_f32(w->rows + 4 * j, (float)(1024 + k) * (1.0f / 1024)); /* exact: 11 bits and a power of two */
  }
  SLM2_TRY(slm2_output_put(&w->output, w->rows, 4 * n, error));
  return slm2_output_align(&w->output, error);
}

static slm2_status write_all(job *w, uint64_t seed, uint8_t identity[32], slm2_error *error) {
  slm2_section s;
  SLM2_TRY(slm2_output_front(&w->output, w->tokenizer, error));
  for (uint32_t i = 2; i < slm2_section_count(&w->header.config); i++) {
    uint64_t key = mix(seed + GAMMA * (i + 1));
    SLM2_TRY(slm2_section_get(&w->header, i, &s));
    /* The embedding is section 2; lm_head is the only matrix with as many rows. */
    bool logits = i == 2 || (s.n_dims == 2 && i + 1 == slm2_section_count(&w->header.config));
    if (s.n_dims == 2) SLM2_TRY(write_matrix(w, &s, key, scale_exponent(s.dims[1], logits), error));
    else SLM2_TRY(write_norm(w, &s, key, error));
  }
  return slm2_output_end(&w->output, identity, error);
}

/* --- the rest of the file ------------------------------------------------------------------------------------- */

static uint32_t added_id(const uint8_t *tokenizer, const char *text) {
  return slm2_section_added_id(tokenizer, text, text_length(text), NULL);
}

/* Qwen3's sampling defaults, and the special tokens by their texts. */
static void set_generation(slm2_header *h, const uint8_t *tokenizer) {
  uint32_t end = added_id(tokenizer, "<|im_end|>"), text_end = added_id(tokenizer, "<|endoftext|>");
  h->generation = (slm2_generation){.do_sample = true, .temperature = 0.6f, .top_k = 20, .top_p = 0.95f, .repeat_penalty = 1.0f,
                                    .bos = text_end, .pad = text_end};
  if (end != UINT32_MAX) h->generation.eos[h->generation.n_eos++] = end;
  if (text_end != UINT32_MAX) h->generation.eos[h->generation.n_eos++] = text_end;
  bool chat = end != UINT32_MAX && added_id(tokenizer, "<|im_start|>") != UINT32_MAX;
  h->chat_format = chat ? SLM2_CHAT_QWEN3 : SLM2_CHAT_NONE;
}

/* The header; byte_tokenizer: filled and used when params have none. */
static slm2_status prepare(job *w, const slm2_synth_params *params, uint8_t byte_tokenizer[SLM2_BYTE_TOKENIZER_MAX],
                           slm2_error *error) {
  slm2_header *h = &w->header;
  uint32_t n_tokens;
  size_t n = params->tokenizer != NULL ? params->tokenizer_bytes : slm2_byte_tokenizer(byte_tokenizer);
  w->tokenizer = params->tokenizer != NULL ? params->tokenizer : byte_tokenizer;
  SLM2_TRY(slm2_config_check(&params->config, error));
  SLM2_TRY(slm2_tokenizer_section_tokens(w->tokenizer, n, &n_tokens, error));
  if (n_tokens > params->config.vocab) {
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, operation, "vocab_size", SLM2_NO_OFFSET,
                     "the tokenizer has %u tokens, the shape %u", (uint64_t)n_tokens, (uint64_t)params->config.vocab);
  }
  h->config = params->config;
  h->form = params->form;
  h->tokenizer_bytes = n;
  set_generation(h, w->tokenizer);
  text_copy(h->license, sizeof h->license, "unknown");
  text_copy(h->source, sizeof h->source, "synth");
  text_copy(h->source_revision, sizeof h->source_revision, "unknown");
  return slm2_header_layout(h, error);
}

static void place(job *w, slm2_arena *a) {
  const slm2_config *c = &w->header.config;
  uint32_t cols = c->heads * c->head_dim;
  if (cols < c->hidden) cols = c->hidden;
  if (cols < c->intermediate) cols = c->intermediate;
  w->rows = slm2_arena_take(a, SLM2_BLOCK_BYTES, cols); /* 32 rows; a norm's 4 bytes a value fit too */
  w->panels = slm2_arena_take(a, SLM2_BLOCK_BYTES, cols);
  slm2_output_place(&w->output, &w->header, a);
}

slm2_status slm2_synth_bytes(const slm2_synth_params *params, size_t *bytes, slm2_error *error) {
  job w = {.tokenizer = NULL};
  uint8_t byte_tokenizer[SLM2_BYTE_TOKENIZER_MAX];
  slm2_arena arena;
  SLM2_TRY(prepare(&w, params, byte_tokenizer, error));
  slm2_arena_init(&arena, NULL, 0);
  place(&w, &arena);
  if (arena.failed || arena.used > SIZE_MAX) {
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET, "needs %u bytes of memory", arena.used);
  }
  *bytes = (size_t)arena.used;
  return SLM2_OK;
}

static SLM2_NOINLINE slm2_status synth(job *w, const slm2_synth_params *params, const slm2_sink *sink, void *mem,
                                       size_t mem_bytes, uint8_t identity[32], slm2_error *error) {
  uint8_t byte_tokenizer[SLM2_BYTE_TOKENIZER_MAX];
  slm2_arena arena;
  if (!is_aligned(mem)) return slm2_fail(error, SLM2_E_ARGUMENT, operation, "mem", SLM2_NO_OFFSET, "mem is not 16-byte aligned");
  SLM2_TRY(prepare(w, params, byte_tokenizer, error));
  slm2_arena_init(&arena, mem, mem_bytes);
  place(w, &arena);
  if (arena.failed)
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET, "%u bytes of memory are too few",
                     (uint64_t)mem_bytes);
  slm2_output_begin(&w->output, sink, &w->header, "synth");
  return write_all(w, params->seed, identity, error);
}

slm2_status slm2_synth(const slm2_synth_params *params, const slm2_sink *sink, void *mem, size_t mem_bytes,
                       slm2_convert_report *report, slm2_error *error) {
  job w = {.tokenizer = NULL};
  slm2_convert_report made = {.zero_blocks = 0};
  slm2_fp_state state = slm2_fp_enter();
  slm2_status status = synth(&w, params, sink, mem, mem_bytes, made.identity, error);
  slm2_fp_leave(state);
  if (status != SLM2_OK) return status;
  made.header = w.header;
  *report = made;
  return SLM2_OK;
}
