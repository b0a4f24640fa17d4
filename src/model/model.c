/* model/model.c: one .slm2 file in lent memory to an immutable slm2_model. Checks here are those of a load: header,
 * size, tokenizer, RoPE table. Hashes are the reader's work (format/). Contract: include/slm2/model.h. */
#include "model/model.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/sha256.h"

const char *slm2_profile_name(slm2_profile profile) { return profile == SLM2_PROFILE_F32 ? "f32" : "q8"; }
const char *slm2_kv_name(slm2_kv_type kv) { return kv == SLM2_KV_F32 ? "f32" : "f16"; }

const slm2_header *slm2_model_header(const slm2_model *m) { return &m->header; }
const slm2_tokenizer *slm2_model_tokenizer(const slm2_model *m) { return m->tokenizer; }
const uint8_t *slm2_model_token_mask(const slm2_model *m) { return m->token_mask; }
void slm2_model_identity(const slm2_model *m, uint8_t out[32]) {
  slm2_header_identity(m->json, (size_t)m->header.header_bytes, out);
}

void slm2_model_tokenizer_sha256(const slm2_model *m, uint8_t out[32]) {
  /* The first section begins with the data. */
  slm2_sha256_of(m->json + (size_t)m->header.header_bytes, (size_t)m->header.tokenizer_bytes, out);
}

/* A file whose header is parsed. */
typedef struct opened {
  slm2_header header;
  const uint8_t *json, *data;
  size_t tokenizer_index_bytes; /* 0: no tokenizer */
} opened;

static slm2_status open_file(const uint8_t *file, uint64_t file_bytes, opened *o, slm2_error *error) {
  uint64_t n;
  if ((uintptr_t)file % SLM2_SECTION_ALIGN != 0)
    return slm2_fail(error, SLM2_E_ARGUMENT, "model", "file", SLM2_NO_OFFSET, "the lent bytes must be %u-byte aligned",
                     (uint64_t)SLM2_SECTION_ALIGN);
  if (file_bytes > SIZE_MAX)
    return slm2_fail(error, SLM2_E_MEMORY, "model", "file", SLM2_NO_OFFSET, "%u bytes exceed this machine's address space",
                     file_bytes);
  if (file_bytes < 8)
    return slm2_fail(error, SLM2_E_FORMAT, "model", "file", 0,
                     "%u bytes are too few for an SLM2 file: its header length alone takes 8",
                     file_bytes);
  SLM2_TRY(slm2_header_length(file, file_bytes, &n, error));
  o->json = file + 8;
  o->data = file + 8 + (size_t)n;
  SLM2_TRY(slm2_header_parse(o->json, (size_t)n, file_bytes, &o->header, error));
  o->tokenizer_index_bytes = 0;
  if (o->header.tokenizer_bytes == 0) return SLM2_OK;
  slm2_section s;
  SLM2_TRY(slm2_section_get(&o->header, 0, &s));
  return slm2_tokenizer_bytes(o->data + (size_t)s.offset, (size_t)s.bytes, &o->tokenizer_index_bytes, error);
}

/* The memory of a model. NULL members while measuring. */
typedef struct placed {
  slm2_model *model;
  slm2_layer *layers;
  uint8_t *token_mask;
  void *tokenizer_index;
} placed;

static placed place(slm2_arena *a, const opened *o) {
  placed p;
  p.model = slm2_arena_take(a, 1, sizeof *p.model);
  p.layers = slm2_arena_take(a, o->header.config.layers, sizeof *p.layers);
  p.token_mask = slm2_arena_take(a, o->header.config.vocab / 8, 1);
  p.tokenizer_index = slm2_arena_take(a, o->tokenizer_index_bytes, 1);
  return p;
}

slm2_status slm2_model_bytes(const uint8_t *file, uint64_t file_bytes, size_t *bytes, slm2_error *error) {
  opened o;
  SLM2_TRY(open_file(file, file_bytes, &o, error));
  slm2_arena a;
  slm2_arena_init(&a, NULL, 0);
  (void)place(&a, &o);
  if (a.failed || !slm2_to_size(a.used, bytes))
    return slm2_fail(error, SLM2_E_MEMORY, "model", NULL, SLM2_NO_OFFSET, "%u bytes exceed this machine's address space", a.used);
  return SLM2_OK;
}

/* [D14] With 0 < f <= 1 no angle exceeds its position, so the session's bound on positions keeps every angle inside
 * the tested range of sin and cos. Positive f32 are ordered like their bits. */
static slm2_status check_inv_freq(const slm2_model *m, slm2_error *error) {
  for (uint32_t i = 0; i < m->header.config.head_dim / 2; i++) {
    uint32_t bits = slm2_load_u32(m->inv_freq + 4 * (size_t)i);
    if (bits == 0 || bits > 0x3f800000u)
      return slm2_fail(error, SLM2_E_WEIGHT, "model", "rope.inv_freq", SLM2_NO_OFFSET,
                       "entry %u has the bits %x: a frequency must be above 0 and at most 1", (uint64_t)i, (uint64_t)bits);
  }
  return SLM2_OK;
}

/* [D19] Ids that may be sampled: those with a token; all of them when the file has no tokenizer. */
static void fill_token_mask(slm2_model *m) {
  for (uint32_t i = 0; i < m->header.config.vocab / 8; i++) {
    unsigned bits = 0;
    for (uint32_t j = 0; j < 8; j++)
      bits |= (m->tokenizer == NULL || slm2_token_exists(m->tokenizer, 8 * i + j) ? 1u : 0u) << j;
    m->token_mask[i] = (uint8_t)bits;
  }
}

static slm2_status init_tokenizer(slm2_model *m, const opened *o, const placed *p, const uint8_t *section, slm2_error *error) {
  m->tokenizer = NULL;
  m->think_open = m->think_close = SLM2_NO_TOKEN;
  if (o->header.tokenizer_bytes == 0) return SLM2_OK;
  SLM2_TRY(slm2_tokenizer_init(p->tokenizer_index, o->tokenizer_index_bytes, section, (size_t)o->header.tokenizer_bytes,
                               &m->tokenizer, error));
  uint32_t size = slm2_tokenizer_size(m->tokenizer);
  if (size > m->header.config.vocab)
    return slm2_fail(error, SLM2_E_DIMENSION_MISMATCH, "model", "tokenizer", SLM2_NO_OFFSET,
                     "its ids reach %u, but the embedding has %u rows", (uint64_t)size - 1, (uint64_t)m->header.config.vocab);
  m->think_open = slm2_token_find_added(m->tokenizer, "<think>", 7);
  m->think_close = slm2_token_find_added(m->tokenizer, "</think>", 8);
  return SLM2_OK;
}

slm2_status slm2_model_init(void *mem, size_t mem_bytes, const uint8_t *file, uint64_t file_bytes, slm2_model **out,
                            slm2_error *error) {
  opened o;
  SLM2_TRY(open_file(file, file_bytes, &o, error));
  if ((uintptr_t)mem % 64 != 0)
    return slm2_fail(error, SLM2_E_ARGUMENT, "model", "mem", SLM2_NO_OFFSET, "the lent memory must be 64-byte aligned");
  slm2_arena a;
  slm2_arena_init(&a, mem, mem_bytes);
  placed p = place(&a, &o);
  if (a.failed)
    return slm2_fail(error, SLM2_E_MEMORY, "model", "mem", SLM2_NO_OFFSET, "%u bytes are too few for this model's index",
                     (uint64_t)mem_bytes);
  slm2_model *m = p.model;
  m->header = o.header;
  m->json = o.json;
  m->layers = p.layers;
  m->token_mask = p.token_mask;
  const uint8_t *section;
  SLM2_TRY(slm2_model_bind(m, o.data, &section, error));
  SLM2_TRY(check_inv_freq(m, error));
  SLM2_TRY(init_tokenizer(m, &o, &p, section, error));
  fill_token_mask(m);
  *out = m;
  return SLM2_OK;
}
