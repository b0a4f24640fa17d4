/* tests/unit/format_file.h: whole .slm2 files in memory for the tests of format/, with random legal contents. */
#ifndef SLM2_TESTS_FORMAT_FILE_H
#define SLM2_TESTS_FORMAT_FILE_H

#include "base/bytes.h"
#include "base/sha256.h"
#include "kernel/weights.h"
#include "slm2/format.h"
#include "tests/test.h"

typedef struct format_file {
  uint8_t *bytes;
  size_t n;
  slm2_header header;
} format_file;

/* hidden 32, MLP 64, 1 layer, 4 heads of 8: the smallest file with every kind of section and real padding. */
static const slm2_config format_tiny = {32, 64, 1, 4, 4, 8, 32, 64, 10000, 1e-6f, true};

static inline slm2_header format_header(const slm2_config *config, slm2_weight_form form, uint64_t tokenizer_bytes) {
  slm2_header h = {.config = *config, .form = form, .tokenizer_bytes = tokenizer_bytes, .chat_format = SLM2_CHAT_QWEN3};
  h.generation = (slm2_generation){true, 0.6f, 20, 0.95f, 1.0f, UINT32_MAX, 3, 2, {5, 3}};
  strcpy(h.license, "apache-2.0");
  strcpy(h.source, "Qwen/Qwen3-0.6B");
  strcpy(h.source_revision, "c1899de289a04d12100db370d81485cdf75e47ca");
  return h;
}

/* Field by field: padding inside the struct has no value. */
static inline bool format_same(const slm2_header *a, const slm2_header *b) {
  const slm2_config *c = &a->config, *d = &b->config;
  const slm2_generation *g = &a->generation, *h = &b->generation;
  return c->hidden == d->hidden && c->intermediate == d->intermediate && c->layers == d->layers && c->heads == d->heads &&
         c->kv_heads == d->kv_heads && c->head_dim == d->head_dim && c->vocab == d->vocab &&
           c->max_positions == d->max_positions &&
         c->rope_theta == d->rope_theta && c->rms_eps == d->rms_eps && c->tied == d->tied && g->do_sample == h->do_sample &&
         g->temperature == h->temperature && g->top_k == h->top_k && g->top_p == h->top_p &&
           g->repeat_penalty == h->repeat_penalty &&
         g->bos == h->bos && g->pad == h->pad && g->n_eos == h->n_eos && memcmp(g->eos, h->eos, 4 * g->n_eos) == 0 &&
           a->form == b->form &&
         a->chat_format == b->chat_format && strcmp(a->license, b->license) == 0 && strcmp(a->source, b->source) == 0 &&
         strcmp(a->source_revision, b->source_revision) == 0 && a->tokenizer_bytes == b->tokenizer_bytes &&
         a->header_bytes == b->header_bytes && a->data_bytes == b->data_bytes && a->n_chunks == b->n_chunks;
}

static inline uint8_t *format_data(const format_file *f) { return f->bytes + 8 + f->header.header_bytes; }

static inline slm2_section format_section(const format_file *f, const char *name) {
  slm2_section s;
  for (uint32_t i = 0; slm2_section_get(&f->header, i, &s) == SLM2_OK; i++) {
    if (strcmp(s.name, name) == 0) return s;
  }
  printf("FAIL no section %s\n", name);
  exit(1);
}

/* Hashes the data as it is now and writes the header. */
static inline void format_seal(format_file *f) {
  uint8_t *hashes = malloc(32 * (size_t)f->header.n_chunks);
  for (uint64_t at = 0; at < f->header.data_bytes; at += SLM2_CHUNK_BYTES) {
    uint64_t left = f->header.data_bytes - at;
    slm2_sha256_of(format_data(f) + at, left < SLM2_CHUNK_BYTES ? (size_t)left : SLM2_CHUNK_BYTES,
      hashes + at / SLM2_CHUNK_BYTES * 32);
  }
  slm2_error e;
  slm2_store_u64(f->bytes, f->header.header_bytes);
  CHECK(slm2_header_write(&f->header, hashes, f->bytes + 8, (size_t)f->header.header_bytes, &e) == SLM2_OK);
  free(hashes);
}

static inline void format_fill(format_file *f, uint64_t seed) {
  slm2_section s;
  for (uint32_t i = 0; slm2_section_get(&f->header, i, &s) == SLM2_OK; i++) {
    uint8_t *p = format_data(f) + s.offset;
    memset(p, 0, (size_t)s.padded_bytes);
    for (uint64_t k = 0; k < s.bytes; k++) p[k] = (uint8_t)test_random(&seed);
    if (s.dtype == SLM2_DTYPE_F32) { /* in (0.5, 1) */
      for (uint64_t k = 0; k < s.bytes; k += 4) p[k + 2] &= 0x7f, p[k + 3] = 0x3f;
    }
    if (s.dtype != SLM2_DTYPE_Q8) continue;
    for (uint64_t k = 0; k < s.bytes; k++) p[k] = p[k] == 0x80 ? 0x7f : p[k];
    for (uint32_t r = 0; r < s.dims[0]; r++) {
      for (uint32_t b = 0; b < s.dims[1] / 32; b++) p[slm2_scale_at(f->header.form, (uint32_t)s.dims[1], r, b) + 1] &= 0xbb;
    }
  }
}

static inline format_file format_build(const slm2_config *config, slm2_weight_form form, uint64_t tokenizer_bytes,
  uint64_t seed) {
  format_file f = {.header = format_header(config, form, tokenizer_bytes)};
  slm2_error e;
  CHECK(slm2_header_layout(&f.header, &e) == SLM2_OK);
  f.n = (size_t)(8 + f.header.header_bytes + f.header.data_bytes);
  f.bytes = malloc(f.n);
  format_fill(&f, seed);
  format_seal(&f);
  return f;
}

/* Feeds bytes[0..n) in pieces of `piece`; stops at the first refusal. */
static inline slm2_status format_read(const uint8_t *bytes, size_t n, size_t piece, uint64_t file_bytes, slm2_error *e) {
  void *mem = malloc(slm2_reader_bytes());
  uint8_t *buffer = malloc(16384);
  slm2_reader *r = NULL;
  slm2_status status = slm2_reader_init(mem, slm2_reader_bytes(), buffer, 16384, file_bytes, &r, e);
  if (status == SLM2_OK) status = SLM2_NEED_MORE;
  for (size_t at = 0; at < n && status <= SLM2_NEED_MORE; at += piece) {
    status = slm2_reader_push(r, bytes + at, n - at < piece ? n - at : piece, e);
  }
  free(mem);
  free(buffer);
  return status;
}

#endif
