/* model/bind.c: sections of the file to the pointers of a model. The header was parsed and is canonical, so the order
 * of the sections follows from the config; each is still compared with what the forward pass will read from it,
 * because from here on nothing is bounds-checked. */
#include "base/error.h"
#include "model/model.h"

/* Walks the sections in file order. status is sticky: after a failure every take gives NULL. */
typedef struct binder {
  const slm2_header *header;
  const uint8_t *data;
  uint32_t next;
  slm2_status status;
  slm2_error *error;
} binder;

static const uint8_t *take(binder *b, slm2_dtype dtype, uint64_t rows, uint64_t cols) {
  slm2_section s;
  if (b->status != SLM2_OK) return NULL;
  b->status = slm2_section_get(b->header, b->next++, &s);
  if (b->status != SLM2_OK) return NULL;
  bool shape = s.n_dims == 1 ? rows == 1 && s.dims[0] == cols : s.dims[0] == rows && s.dims[1] == cols;
  bool inside = s.offset <= b->header->data_bytes && s.bytes <= b->header->data_bytes - s.offset;
  if (s.dtype != dtype || !shape || !inside) {
    b->status = slm2_fail(b->error, SLM2_E_INTERNAL_INVARIANT, "model bind", s.name, s.offset,
                          "expected [%u, %u], found %u dimensions [%u, %u], %u bytes", rows, cols, (uint64_t)s.n_dims,
                          s.dims[0], s.dims[1], s.bytes);
    return NULL;
  }
  if (((uintptr_t)b->data + s.offset) % SLM2_SECTION_ALIGN != 0) { /* what kernels may rely on */
    b->status = slm2_fail(b->error, SLM2_E_INTERNAL_INVARIANT, "model bind", s.name, s.offset,
                          "it does not begin at a multiple of %u", (uint64_t)SLM2_SECTION_ALIGN);
    return NULL;
  }
  return b->data + (size_t)s.offset;
}

static const uint8_t *vector(binder *b, uint32_t n) { return take(b, SLM2_DTYPE_F32, 1, n); }

static slm2_matrix matrix(binder *b, uint32_t rows, uint32_t cols) {
  return (slm2_matrix){take(b, SLM2_DTYPE_Q8, rows, cols), rows, cols, b->header->form};
}

slm2_status slm2_model_bind(slm2_model *m, const uint8_t *data, const uint8_t **tokenizer, slm2_error *error) {
  const slm2_config *c = &m->header.config;
  uint32_t q_rows = c->heads * c->head_dim, kv_rows = c->kv_heads * c->head_dim;
  binder b = {&m->header, data, 0, SLM2_OK, error};

  *tokenizer = take(&b, SLM2_DTYPE_U8, 1, m->header.tokenizer_bytes);
  m->inv_freq = vector(&b, c->head_dim / 2);
  m->embedding = matrix(&b, c->vocab, c->hidden);
  for (uint32_t i = 0; i < c->layers; i++) {
    slm2_layer *l = &m->layers[i];
    l->attention_norm = vector(&b, c->hidden);
    l->q = matrix(&b, q_rows, c->hidden);
    l->k = matrix(&b, kv_rows, c->hidden);
    l->v = matrix(&b, kv_rows, c->hidden);
    l->o = matrix(&b, c->hidden, q_rows);
    l->q_norm = vector(&b, c->head_dim);
    l->k_norm = vector(&b, c->head_dim);
    l->mlp_norm = vector(&b, c->hidden);
    l->gate = matrix(&b, c->intermediate, c->hidden);
    l->up = matrix(&b, c->intermediate, c->hidden);
    l->down = matrix(&b, c->hidden, c->intermediate);
  }
  m->final_norm = vector(&b, c->hidden);
  m->logits = c->tied ? m->embedding : matrix(&b, c->vocab, c->hidden);
  return b.status;
}
