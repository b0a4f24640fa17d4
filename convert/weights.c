/* convert/weights.c: binds the tensors of a checkpoint to sections and turns their values into Q8_0 and f32. Widening
 * BF16, F16 and F32 to f32 is exact, so equal values give equal bytes whatever stored them. */
#include "convert/weights.h"
#include "convert/text.h"
#include "base/error.h"
#include "kernel/weights.h"
#include "num/math.h"

static const char operation[] = "convert";
static const char head_name[] = "lm_head.weight";
static const char embed_name[] = "model.embed_tokens.weight";
#define EMBED_SECTION 2u

/* --- binding ------------------------------------------------------------------------------------ */

static slm2_status check_dtype(const char *name, const char *file, slm2_st_dtype dtype, slm2_error *error) {
  if (dtype == SLM2_ST_BF16 || dtype == SLM2_ST_F16 || dtype == SLM2_ST_F32) return SLM2_OK;
  return slm2_fail(error, SLM2_E_UNSUPPORTED_QUANTIZATION, operation, name, SLM2_NO_OFFSET,
                   "%s: %s is %s; weights must be BF16, F16 or F32", file, name, slm2_st_dtype_name(dtype));
}

static slm2_status check_shape(const slm2_section *s, const char *file, const slm2_st_tensor *t, slm2_error *error) {
  bool same = t->rank == s->n_dims;
  for (uint32_t i = 0; i < s->n_dims; i++) same = same && t->dims[i] == s->dims[i];
  if (same) return SLM2_OK;
  uint64_t have[2] = {t->rank > 0 ? t->dims[0] : 0, t->rank > 1 ? t->dims[1] : 0};
  if (s->n_dims == 1) {
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, operation, s->name, SLM2_NO_OFFSET,
                     "%s: %s has %u dimensions (%u, ...); config.json demands [%u]", file, s->name, (uint64_t)t->rank, have[0],
                     s->dims[0]);
  }
  return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, operation, s->name, SLM2_NO_OFFSET,
                   "%s: %s has %u dimensions (%u, %u, ...); config.json demands [%u, %u]", file, s->name, (uint64_t)t->rank,
                   have[0], have[1], s->dims[0], s->dims[1]);
}

/* Finds a name in exactly one shard and marks it as used. *found: there is one. */
static slm2_status find_tensor(const slm2_weights *w, const slm2_section *s, bool *found, slm2_weight_source *out,
                               slm2_error *error) {
  *found = false;
  for (uint32_t shard = 0; shard < w->source->n_shards; shard++) {
    slm2_safetensors *st = &w->shards[shard];
    uint32_t i = slm2_st_find(st, s->name, text_length(s->name));
    if (i == UINT32_MAX) continue;
    if (*found) {
      return slm2_fail(error, SLM2_E_FORMAT, operation, s->name, SLM2_NO_OFFSET, "%s is in both %s and %s", s->name,
                       w->shards[out->shard].file, st->file);
    }
    slm2_st_tensor t;
    slm2_st_get(st, i, &t);
    SLM2_TRY(check_dtype(s->name, st->file, t.dtype, error));
    SLM2_TRY(check_shape(s, st->file, &t, error));
    st->entries[i].bound = true;
    *found = true;
    *out = (slm2_weight_source){.shard = shard, .dtype = t.dtype, .offset = t.offset};
  }
  return SLM2_OK;
}

/* The tables of rotary frequencies that old versions saved: the format has its own [D14]. */
static bool is_harmless(const char *name, size_t n) {
  static const char prefix[] = "model.layers.", suffix[] = ".self_attn.rotary_emb.inv_freq",
                    whole[] = "model.rotary_emb.inv_freq";
  size_t n_prefix = sizeof prefix - 1, n_suffix = sizeof suffix - 1;
  if (n == sizeof whole - 1 && memcmp(name, whole, n) == 0) return true;
  if (n <= n_prefix + n_suffix || memcmp(name, prefix, n_prefix) != 0 || memcmp(name + n - n_suffix, suffix, n_suffix) != 0)
    return false;
  for (size_t i = n_prefix; i < n - n_suffix; i++) {
    if (name[i] < '0' || name[i] > '9') return false;
  }
  return true;
}

static slm2_status refuse_extra(const slm2_weights *w, slm2_error *error) {
  for (uint32_t shard = 0; shard < w->source->n_shards; shard++) {
    const slm2_safetensors *st = &w->shards[shard];
    for (uint32_t i = 0; i < st->n_tensors; i++) {
      const slm2_st_entry *e = &st->entries[i];
      if (e->bound || is_harmless(st->header + e->name_at, e->n_name)) continue;
      return slm2_fail_n(error, SLM2_E_UNSUPPORTED, operation, st->header + e->name_at, e->n_name, SLM2_NO_OFFSET,
                         "%s: a tensor that a dense Qwen3 of this config does not have", st->file);
    }
  }
  return SLM2_OK;
}

slm2_status slm2_weights_bind(slm2_weights *w, const slm2_header *header, slm2_error *error) {
  slm2_section s, missing = {.name = ""};
  uint64_t n_missing = 0;
  bool found;
  for (uint32_t i = EMBED_SECTION; i < slm2_section_count(&header->config); i++) {
    SLM2_TRY(slm2_section_get(header, i, &s));
    SLM2_TRY(find_tensor(w, &s, &found, &w->tensors[i], error));
    if (!found && n_missing++ == 0) missing = s;
  }
  if (n_missing > 0) {
    bool head = memcmp(missing.name, head_name, sizeof head_name) == 0;
    return slm2_fail(error, SLM2_E_FORMAT, operation, missing.name, SLM2_NO_OFFSET, "%u tensors are missing; the first is %s%s",
                     n_missing, missing.name, head ? ", which a model with tie_word_embeddings false needs" : "");
  }
  w->has_head_copy = false;
  if (header->config.tied) {
    SLM2_TRY(slm2_section_get(header, EMBED_SECTION, &s));
    memcpy(s.name, head_name, sizeof head_name);
    SLM2_TRY(find_tensor(w, &s, &w->has_head_copy, &w->head_copy, error));
  }
  return refuse_extra(w, error);
}

/* --- values --------------------------------------------------------------------------------------- */

static uint32_t value_bytes(slm2_st_dtype dtype) { return dtype == SLM2_ST_F32 ? 4 : 2; }

/* Bits of the f32 of value i, exactly. */
static uint32_t value_bits(slm2_st_dtype dtype, const uint8_t *raw, size_t i) {
  if (dtype == SLM2_ST_F32) return slm2_load_u32(raw + 4 * i);
  uint16_t half = slm2_load_u16(raw + 2 * i);
  return dtype == SLM2_ST_BF16 ? (uint32_t)half << 16 : slm2_float_bits(slm2_f16_to_f32(half));
}

/* Values first .. first + n - 1 of a tensor. */
static slm2_status read_values(const slm2_weights *w, const slm2_weight_source *t, uint64_t first, size_t n, uint8_t *raw,
                               slm2_error *error) {
  uint32_t size = value_bytes(t->dtype);
  return w->source->read(w->source->user, t->shard, t->offset + first * size, raw, n * size, error);
}

slm2_status slm2_weights_compare_head(const slm2_weights *w, const slm2_header *header, const slm2_row_buffers *buffers,
                                      const slm2_sink *sink, slm2_error *error) {
  const slm2_weight_source *embed = &w->tensors[EMBED_SECTION], *head = &w->head_copy;
  uint64_t total = (uint64_t)header->config.vocab * header->config.hidden, reported = 0;
  uint8_t *raw[2] = {buffers->raw, buffers->raw + 4 * (size_t)SLM2_PANEL_ROWS / 2 * buffers->max_cols};
  for (uint64_t first = 0; first < total;) {
    size_t n = SLM2_PANEL_ROWS / 2 * (size_t)header->config.hidden; /* vocab is a multiple of 32: this divides total */
    SLM2_TRY(read_values(w, embed, first, n, raw[0], error));
    SLM2_TRY(read_values(w, head, first, n, raw[1], error));
    for (size_t i = 0; i < n; i++) {
      if (value_bits(embed->dtype, raw[0], i) == value_bits(head->dtype, raw[1], i)) continue;
      return slm2_fail(error, SLM2_E_FORMAT, operation, head_name, head->offset + (first + i) * value_bytes(head->dtype),
                       "tie_word_embeddings is true, but %s differs from %s at index %u", head_name, embed_name, first + i);
    }
    first += n;
    slm2_report(sink, "compare", first * value_bytes(head->dtype), total * value_bytes(head->dtype), &reported);
  }
  return SLM2_OK;
}

static slm2_status refuse_value(const slm2_weights *w, const slm2_section *s, const slm2_weight_source *t, uint64_t index,
                                const char *why, slm2_error *error) {
  return slm2_fail(error, SLM2_E_WEIGHT, operation, s->name, t->offset + index * value_bytes(t->dtype), "%s: %s at index %u %s",
                   w->source->shard_names[t->shard], s->name, index, why);
}

/* One row group: raw values to rows of Q8_0 blocks. */
static slm2_status quantize_rows(const slm2_weights *w, const slm2_section *s, const slm2_weight_source *t, uint64_t first,
                                 const uint8_t *raw, uint8_t *rows, uint64_t *zero_blocks, slm2_error *error) {
  size_t n_blocks = SLM2_PANEL_ROWS * (size_t)s->dims[1] / SLM2_BLOCK;
  for (size_t b = 0; b < n_blocks; b++) {
    float x[SLM2_BLOCK];
    slm2_error why;
    uint8_t *block = rows + b * SLM2_BLOCK_BYTES;
    for (size_t k = 0; k < SLM2_BLOCK; k++) x[k] = slm2_float_from_bits(value_bits(t->dtype, raw, b * SLM2_BLOCK + k));
    if (slm2_q8_quantize(x, block, &why) != SLM2_OK) {
      bool finite = (slm2_float_bits(x[why.offset % SLM2_BLOCK]) & 0x7fffffff) < 0x7f800000;
      return refuse_value(w, s, t, first + b * SLM2_BLOCK + why.offset,
                          finite ? "is too large: the scale of its block exceeds half precision" : "is not finite", error);
    }
    *zero_blocks += slm2_load_u16(block) == 0;
  }
  return SLM2_OK;
}

/* One row group of a GGUF: blocks must have a finite scale and no -128 [D9]. first: index of its first value. */
static slm2_status check_blocks(const slm2_weights *w, const slm2_section *s, const slm2_weight_source *t, uint64_t first,
                                uint8_t *rows, uint64_t *zero_blocks, slm2_error *error) {
  size_t n_blocks = SLM2_PANEL_ROWS * (size_t)s->dims[1] / SLM2_BLOCK;
  for (size_t b = 0; b < n_blocks; b++) {
    uint8_t *block = rows + b * SLM2_BLOCK_BYTES;
    uint64_t number = first / SLM2_BLOCK + b, at = t->offset + number * SLM2_BLOCK_BYTES;
    const char *file = w->source->shard_names[t->shard];
    if ((slm2_load_u16(block) & 0x7c00) == 0x7c00) {
      return slm2_fail(error, SLM2_E_WEIGHT, operation, s->name, at, "%s: %s: the scale of block %u is not finite", file, s->name,
                       number);
    }
    for (uint32_t k = 0; k < SLM2_BLOCK; k++) {
      if (block[2 + k] != 0x80) continue;
      return slm2_fail(error, SLM2_E_WEIGHT, operation, s->name, at + 2 + k, "%s: %s: weight %u of block %u is -128", file,
                       s->name, (uint64_t)k, number);
    }
    if (!w->clear_zero_blocks || (slm2_load_u16(block) & 0x7fff) != 0) continue;
    memset(block, 0, SLM2_BLOCK_BYTES);
    ++*zero_blocks;
  }
  return SLM2_OK;
}

/* Rows row .. row + 31 of a matrix as Q8_0 blocks in buffers->rows. */
static slm2_status read_rows(const slm2_weights *w, const slm2_section *s, const slm2_weight_source *t, uint64_t row,
                             const slm2_row_buffers *buffers, uint64_t *zero_blocks, slm2_error *error) {
  size_t n = SLM2_PANEL_ROWS * (size_t)s->dims[1];
  uint64_t first = row * s->dims[1];
  if (t->q8_0) {
    SLM2_TRY(w->source->read(w->source->user, t->shard, t->offset + first / SLM2_BLOCK * SLM2_BLOCK_BYTES, buffers->rows,
                             n / SLM2_BLOCK * SLM2_BLOCK_BYTES, error));
    return check_blocks(w, s, t, first, buffers->rows, zero_blocks, error);
  }
  SLM2_TRY(read_values(w, t, first, n, buffers->raw, error));
  return quantize_rows(w, s, t, first, buffers->raw, buffers->rows, zero_blocks, error);
}

static slm2_status write_matrix(const slm2_weights *w, const slm2_header *header, const slm2_section *s,
                                const slm2_weight_source *t, const slm2_row_buffers *buffers, slm2_output *out,
                                uint64_t *zero_blocks, slm2_error *error) {
  uint32_t cols = (uint32_t)s->dims[1];
  size_t bytes = SLM2_PANEL_ROWS * (size_t)cols / SLM2_BLOCK * SLM2_BLOCK_BYTES;
  for (uint64_t row = 0; row < s->dims[0]; row += SLM2_PANEL_ROWS) {
    SLM2_TRY(read_rows(w, s, t, row, buffers, zero_blocks, error));
    if (header->form == SLM2_FORM_PANELS) slm2_panels_from_rows(buffers->rows, cols, buffers->panels);
    SLM2_TRY(slm2_output_put(out, header->form == SLM2_FORM_PANELS ? buffers->panels : buffers->rows, bytes, error));
  }
  return SLM2_OK;
}

static slm2_status write_vector(const slm2_weights *w, const slm2_section *s, const slm2_weight_source *t,
                                const slm2_row_buffers *buffers, slm2_output *out, slm2_error *error) {
  size_t n = (size_t)s->dims[0];
  SLM2_TRY(read_values(w, t, 0, n, buffers->raw, error));
  for (size_t i = 0; i < n; i++) {
    uint32_t bits = value_bits(t->dtype, buffers->raw, i);
    if ((bits & 0x7fffffff) >= 0x7f800000) return refuse_value(w, s, t, i, "is not finite", error);
    slm2_store_u32(buffers->rows + 4 * i, bits);
  }
  return slm2_output_put(out, buffers->rows, 4 * n, error);
}

slm2_status slm2_weights_write(const slm2_weights *w, const slm2_header *header, uint32_t i, const slm2_row_buffers *buffers,
                               slm2_output *out, uint64_t *zero_blocks, slm2_error *error) {
  slm2_section s;
  SLM2_TRY(slm2_section_get(header, i, &s));
  if (w->rename != NULL) w->rename(&s);
  if (s.n_dims == 2) SLM2_TRY(write_matrix(w, header, &s, &w->tensors[i], buffers, out, zero_blocks, error));
  else SLM2_TRY(write_vector(w, &s, &w->tensors[i], buffers, out, error));
  return slm2_output_align(out, error);
}
