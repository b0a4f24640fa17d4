/* tests/unit/tiny_model.h: small synthetic models as .slm2 files in memory. The weights come from the generator that
 * tests/gen/forward_reference.py repeats in Python: section i is drawn from SplitMix64 of seed * 1000 + i.
 */
#ifndef SLM2_TINY_MODEL_H
#define SLM2_TINY_MODEL_H

#include "base/bytes.h"
#include "base/sha256.h"
#include "kernel/weights.h"
#include "num/math.h"
#include "slm2/model.h"
#include "slm2/session.h"
#include "tests/test.h"
#include "tokenizer/section.h"

typedef struct tiny_spec {
  const char *name;
  slm2_config config;
  uint64_t seed;
} tiny_spec;

/* GQA ratios 2, 1, 4; head_dim 32, 64, 128; tied and untied. */
static const tiny_spec tiny_specs[] = {
    {"gqa2", {64, 96, 2, 4, 2, 32, 320, 256, 1000000, 1e-6f, true}, 1},
    {"mha", {64, 64, 1, 2, 2, 64, 64, 256, 10000, 1e-6f, false}, 2},
    {"gqa4", {32, 64, 2, 4, 1, 128, 64, 256, 5000000, 1e-6f, true}, 3},
};
#define N_TINY 3

typedef struct tiny_file {
  uint8_t *bytes; /* 64-byte aligned */
  uint64_t n;
  slm2_header header;
} tiny_file;

static inline void *tiny_memory(uint64_t bytes) {
  void *p = aligned_alloc(64, ((size_t)bytes + 63) & ~(size_t)63);
  if (p == NULL) exit(1);
  memset(p, 0xff, (size_t)bytes); /* NaN everywhere: nothing may depend on fresh memory [DET-6] */
  return p;
}

/* A token of a test tokenizer beyond the 256 single bytes, which are ids 0 .. 255. */
typedef struct tiny_token {
  uint32_t id;
  const char *text;
  int added; /* 0 plain, 1 added, 2 added and special */
} tiny_token;

/* A tokenizer section without merges: the bytes, then `tokens` by ascending id; ids between them have no token. malloc'ed. */
static inline uint8_t *tiny_tokenizer(const tiny_token *tokens, uint32_t n_tokens, size_t *bytes) {
  uint32_t blob = 256, n_added = 0, n_ids = tokens[n_tokens - 1].id + 1;
  for (uint32_t i = 0; i < n_tokens; i++) {
    blob += (uint32_t)strlen(tokens[i].text);
    n_added += tokens[i].added > 0;
  }
  *bytes = SLM2_TOKENIZER_HEAD_BYTES + 4 * (size_t)n_ids + 8 * (size_t)n_added + blob;
  uint8_t *out = calloc(1, *bytes), *ends = out + SLM2_TOKENIZER_HEAD_BYTES, *added = ends + 4 * (size_t)n_ids;
  uint8_t *text = added + 8 * (size_t)n_added;
  const uint32_t head[] = {SLM2_TOKENIZER_MAGIC, SLM2_PRETOKENIZER_QWEN2, n_ids, 0, n_added, blob};
  for (uint32_t i = 0; i < 6; i++) slm2_store_u32(out + 4 * i, head[i]);
  for (uint32_t id = 0, i = 0, at = 0; id < n_ids; id++) {
    if (id < 256) text[at++] = (uint8_t)id;
    if (id == tokens[i].id) {
      size_t n = strlen(tokens[i].text);
      memcpy(text + at, tokens[i].text, n);
      at += (uint32_t)n;
      if (tokens[i].added > 0) {
        slm2_store_u32(added, id);
        slm2_store_u32(added + 4, tokens[i].added == 2 ? SLM2_ADDED_SPECIAL : 0);
        added += 8;
      }
      i++;
    }
    slm2_store_u32(ends + 4 * (size_t)id, at);
  }
  return out;
}

static inline uint8_t *tiny_data(const tiny_file *f) { return f->bytes + 8 + f->header.header_bytes; }
/* Payload of the section of this name. */
static inline uint8_t *tiny_section(const tiny_file *f, const char *name, slm2_section *s) {
  for (uint32_t i = 0; slm2_section_get(&f->header, i, s) == SLM2_OK; i++)
    if (strcmp(s->name, name) == 0) return tiny_data(f) + s->offset;
  printf("FAIL no section %s\n", name);
  exit(1);
}

static inline void tiny_matrix(uint8_t *out, slm2_weight_form form, uint32_t rows, uint32_t cols, uint64_t state) {
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t b = 0; b < cols / 32; b++) {
      uint64_t bits = test_random(&state);
      uint32_t d = (uint32_t)(bits & 0x3ff) | ((bits >> 10 & 63) == 0 ? 0u : 5u << 10) | ((bits >> 16 & 15) == 0 ? 0x8000u : 0u);
      slm2_store_u16(out + slm2_scale_at(form, cols, r, b), (uint16_t)d);
      for (uint32_t k = 0; k < 32; k += 8) {
        uint64_t word = test_random(&state);
        for (uint32_t j = 0; j < 8; j++)
          out[slm2_weight_at(form, cols, r, b, k + j)] = (uint8_t)((word >> (8 * j) & 255) % 255 - 127);
      }
    }
}

static inline void tiny_fill(tiny_file *f, uint64_t seed, const uint8_t *tokenizer) {
  slm2_section s;
  for (uint32_t i = 0; slm2_section_get(&f->header, i, &s) == SLM2_OK; i++) {
    uint8_t *out = tiny_data(f) + s.offset;
    uint64_t state = seed * 1000 + i;
    memset(out, 0, (size_t)s.padded_bytes);
    if (s.dtype == SLM2_DTYPE_U8) {
      if (tokenizer != NULL) memcpy(out, tokenizer, (size_t)s.bytes);
    } else if (strcmp(s.name, "rope.inv_freq") == 0) {
      float freq[SLM2_MAX_HEAD_DIM / 2];
      CHECK(slm2_inv_freq(f->header.config.rope_theta, f->header.config.head_dim, freq));
      for (uint32_t k = 0; k < s.dims[0]; k++) slm2_store_f32(out + 4 * (size_t)k, freq[k]);
    } else if (s.dtype == SLM2_DTYPE_F32) {
      for (uint32_t k = 0; k < s.dims[0]; k++)
        slm2_store_f32(out + 4 * (size_t)k, 1.0f + (float)((int)(test_random(&state) & 63) - 32) / 64.0f);
    } else {
      tiny_matrix(out, f->header.form, (uint32_t)s.dims[0], (uint32_t)s.dims[1], state);
    }
  }
}

/* tokenizer: section bytes, or NULL. eos: an end token, or SLM2_NO_TOKEN. */
static inline tiny_file tiny_build(const tiny_spec *spec, slm2_weight_form form, const uint8_t *tokenizer, size_t n_tokenizer,
                                   uint32_t eos) {
  tiny_file f = {0};
  slm2_error error;
  f.header.config = spec->config;
  f.header.form = form;
  f.header.generation = (slm2_generation){.do_sample = true, .temperature = 0.6f, .top_k = 20, .top_p = 0.95f,
                                          .repeat_penalty = 1.0f,
                                          .bos = UINT32_MAX, .pad = UINT32_MAX, .n_eos = eos != SLM2_NO_TOKEN, .eos = {eos}};
  strcpy(f.header.license, "unknown");
  strcpy(f.header.source, "unknown");
  strcpy(f.header.source_revision, "unknown");
  f.header.tokenizer_bytes = n_tokenizer;
  if (slm2_header_layout(&f.header, &error) != SLM2_OK) {
    printf("FAIL layout of %s: %s\n", spec->name, error.message);
    exit(1);
  }
  f.n = 8 + f.header.header_bytes + f.header.data_bytes;
  f.bytes = tiny_memory(f.n);
  tiny_fill(&f, spec->seed, tokenizer);
  uint8_t *hashes = malloc((size_t)f.header.n_chunks * 32);
  for (uint64_t i = 0; i < f.header.n_chunks; i++) {
    uint64_t at = i * SLM2_CHUNK_BYTES, left = f.header.data_bytes - at;
    slm2_sha256_of(tiny_data(&f) + at, (size_t)(left < SLM2_CHUNK_BYTES ? left : SLM2_CHUNK_BYTES), hashes + 32 * i);
  }
  slm2_store_u64(f.bytes, f.header.header_bytes);
  CHECK(slm2_header_write(&f.header, hashes, f.bytes + 8, (size_t)f.header.header_bytes, &error) == SLM2_OK);
  free(hashes);
  return f;
}

/* A loaded model with its memory; exits when it does not load. */
typedef struct tiny_model {
  tiny_file file;
  slm2_model *model;
  void *memory;
} tiny_model;

static inline tiny_model tiny_load(tiny_file file) {
  tiny_model m = {.file = file};
  slm2_error error;
  size_t bytes;
  if (slm2_model_bytes(file.bytes, file.n, &bytes, &error) != SLM2_OK ||
      slm2_model_init(m.memory = tiny_memory(bytes), bytes, file.bytes, file.n, &m.model, &error) != SLM2_OK) {
    printf("FAIL load: %s: %s\n", error.name, error.message);
    exit(1);
  }
  return m;
}
static inline void tiny_free(tiny_model *m) {
  free(m->memory);
  free(m->file.bytes);
}

/* A session in poisoned memory of exactly the planned size; exits when it cannot be made. */
static inline slm2_session *tiny_session(const slm2_model *model, const slm2_session_params *params) {
  slm2_plan plan;
  slm2_error error;
  slm2_session *s = NULL;
  if (slm2_session_plan(slm2_model_header(model), params, &plan, &error) != SLM2_OK ||
      slm2_session_init(tiny_memory(plan.total), plan.total, model, params, &s, &error) != SLM2_OK) {
    printf("FAIL session: %s: %s\n", error.name, error.message);
    exit(1);
  }
  return s; /* the struct is at the front of its block: free(s) releases it */
}

#endif
