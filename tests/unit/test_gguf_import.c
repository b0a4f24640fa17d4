/* convert/gguf_*.c: the import of a dense Qwen3 from GGUF. The fixtures are written by the package gguf
 * (tests/gen/gguf_fixtures.py); the right result is what the Hugging Face folder of the same weights gives, which
 * test_convert checks against an independent quantiser [D9]. */
#include "tests/unit/checkpoint.h"
#include "tests/unit/gguf_file.h"

#define TIED "tests/data/gguf/tied-q8_0.gguf"

static const slm2_convert_options forms[2] = {{.form = SLM2_FORM_ROWS}, {.form = SLM2_FORM_PANELS}};
static memory_sink made;

/* Converts what f is; the result is in made. */
static slm2_status convert(const gguf_file *f, int form, slm2_convert_report *report, slm2_error *error) {
  memory_file m;
  size_t n;
  uint8_t *bytes = gguf_build(f, &n);
  slm2_status status = gguf_convert(memory_input(&m, bytes, n), &made, &forms[form], report, error);
  free(bytes);
  return status;
}

/* The push reader accepts it, and its size is right. */
static int verifies(const uint8_t *file, size_t n) {
  slm2_reader *r;
  void *mem = aligned_alloc(64, padded(slm2_reader_bytes(), 64));
  uint8_t *header = malloc(SLM2_HEADER_MAX);
  int good = slm2_reader_init(mem, slm2_reader_bytes(), header, SLM2_HEADER_MAX, n, &r, NULL) == SLM2_OK &&
             slm2_reader_push(r, file, n, NULL) == SLM2_OK;
  free(mem);
  free(header);
  return good;
}

/* --- right results ------------------------------------------------------------------------ */

/* Section i of a file made; returns its place. */
static const uint8_t *section(const uint8_t *file, const slm2_header *h, uint32_t i, slm2_section *s) {
  if (slm2_section_get(h, i, s) != SLM2_OK) exit(1);
  return file + 8 + h->header_bytes + s->offset;
}

static void test_equal(const char *gguf, const char *folder, int same_header) {
  checkpoint *c = checkpoint_load(folder);
  gguf_file *f = gguf_load(gguf);
  slm2_error e;
  slm2_convert_report a, b;
  for (int form = 0; form < 2; form++) {
    CHECK_CASE(checkpoint_convert(c, &forms[form], &a, &e) == SLM2_OK, folder);
    if (!CHECK_CASE(convert(f, form, &b, &e) == SLM2_OK, gguf)) printf("  %s\n", e.message);
    CHECK_CASE(verifies(made.bytes, made.n), gguf);
    if (same_header) CHECK_CASE(made.n == c->n_out && memcmp(made.bytes, c->out, made.n) == 0, gguf);
    for (uint32_t i = 0; i < slm2_section_count(&a.header.config); i++) {
      slm2_section s, t;
      const uint8_t *x = section(c->out, &a.header, i, &s), *y = section(made.bytes, &b.header, i, &t);
      CHECK_CASE(s.bytes == t.bytes && memcmp(x, y, (size_t)s.bytes) == 0, s.name);
    }
    CHECK_CASE(a.zero_blocks == b.zero_blocks && b.zero_blocks > 0, gguf); /* the fixture has blocks of scale zero */
    CHECK_CASE(!b.chat_template_unknown && b.header.chat_format == SLM2_CHAT_QWEN3, gguf);
  }
  gguf_free(f);
  checkpoint_free(c);
}

/* The same weights stored as F32 and F16: widening BF16 is exact, F16 is so for most. */
static void test_floats(void) {
  gguf_file *f = gguf_load("tests/data/gguf/tied-bf16.gguf"), *wide = gguf_load("tests/data/gguf/tied-bf16.gguf");
  slm2_convert_report r;
  slm2_error e;
  CHECK(convert(f, 1, &r, &e) == SLM2_OK);
  size_t n = made.n;
  uint8_t *right = copy_bytes(made.bytes, n);
  for (uint32_t i = 0; i < wide->n_t; i++) {
    gguf_t *t = &wide->t[i];
    if (t->type != SLM2_GGML_BF16) continue;
    uint8_t *data = malloc(2 * t->bytes);
    for (size_t k = 0; k < t->bytes / 2; k++) slm2_store_u32(data + 4 * k, (uint32_t)slm2_load_u16(t->data + 2 * k) << 16);
    free(t->data);
    t->data = data;
    t->bytes *= 2;
    t->type = SLM2_GGML_F32;
  }
  CHECK(convert(wide, 1, &r, &e) == SLM2_OK && made.n == n && memcmp(made.bytes, right, n) == 0);
  wide->version = 2; /* the same bytes but for the number */
  wide->alignment = 8;
  gguf_set_u32(wide, "general.alignment", 8);
  CHECK(convert(wide, 1, &r, &e) == SLM2_OK && made.n == n && memcmp(made.bytes, right, n) == 0);
  /* A norm in F16 is widened. */
  gguf_t *norm = gguf_t_named(wide, "output_norm.weight");
  float first = slm2_load_f32(norm->data);
  uint16_t half = slm2_f32_to_f16(first);
  for (size_t k = 0; k < norm->bytes / 4; k++) slm2_store_u16(norm->data + 2 * k, half);
  norm->bytes /= 2;
  norm->type = SLM2_GGML_F16;
  CHECK(convert(wide, 1, &r, &e) == SLM2_OK);
  slm2_section s;
  const uint8_t *p = section(made.bytes, &r.header, slm2_section_count(&r.header.config) - 1, &s);
  CHECK(strcmp(s.name, "model.norm.weight") == 0 && slm2_load_f32(p) == slm2_f16_to_f32(half));
  free(right);
  gguf_free(f);
  gguf_free(wide);
}

/* Blocks are taken over bit by bit: negative and subnormal scales, any q above -128. */
static void test_blocks(void) {
  gguf_file *f = gguf_load(TIED);
  slm2_convert_report r;
  slm2_error e;
  gguf_t *t = gguf_t_named(f, "blk.1.ffn_up.weight");
  static const uint16_t scales[] = {0x3c00, 0xbc00, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x0400};
  for (size_t b = 0; b < t->bytes / 34; b++) {
    slm2_store_u16(t->data + 34 * b, scales[b % 7]);
    for (size_t k = 0; k < 32; k++) t->data[34 * b + 2 + k] = (uint8_t)((b + k) % 255 + 129); /* -127 .. 127 */
  }
  CHECK(convert(f, 0, &r, &e) == SLM2_OK);
  slm2_section s;
  for (uint32_t i = 2; i < slm2_section_count(&r.header.config); i++) {
    const uint8_t *p = section(made.bytes, &r.header, i, &s);
    if (strcmp(s.name, "model.layers.1.mlp.up_proj.weight") == 0) CHECK(s.bytes == t->bytes && memcmp(p, t->data, t->bytes) == 0);
  }
  slm2_store_u16(t->data + 34, 0x8000); /* a scale of -0 stands for 32 zeros, however they are written */
  CHECK(convert(f, 0, &r, &e) == SLM2_OK);
  for (uint32_t i = 2; i < slm2_section_count(&r.header.config); i++) {
    const uint8_t *p = section(made.bytes, &r.header, i, &s);
    static const uint8_t zeros[34] = {0};
    if (strcmp(s.name, "model.layers.1.mlp.up_proj.weight") == 0) CHECK(memcmp(p + 34, zeros, 34) == 0);
  }
  gguf_free(f);
}

static void bad_weight(const char *name, size_t at, uint32_t bits, size_t n, const char *text, const char *path) {
  gguf_file *f = gguf_load(path);
  slm2_convert_report r;
  slm2_error e;
  gguf_t *t = gguf_t_named(f, name);
  for (size_t i = 0; i < n; i++) t->data[at + i] = (uint8_t)(bits >> (8 * i));
  if (!CHECK_CASE(convert(f, 1, &r, &e) == SLM2_E_WEIGHT && strcmp(e.name, name) == 0 && strstr(e.message, text) != NULL, text))
    printf("  %s\n", e.message);
  size_t size;
  uint8_t *bytes = gguf_build(f, &size); /* the offset names the place in the file */
  CHECK_CASE(e.offset < size && memcmp(bytes + e.offset, t->data + at, n) == 0, text);
  free(bytes);
  gguf_free(f);
}

static void test_bad_weights(void) {
  bad_weight("token_embd.weight", 34 * 7, 0x7c00, 2, "the scale of block 7 is not finite", TIED);
  bad_weight("blk.0.attn_q.weight", 0, 0xfe01, 2, "the scale of block 0 is not finite", TIED);
  bad_weight("blk.1.ffn_down.weight", 34 * 63 + 33, 0x80, 1, "weight 31 of block 63 is -128", TIED);
  bad_weight("blk.0.ffn_norm.weight", 4, 0x7fc00000, 4, "index 1 is not finite", TIED);
  bad_weight("token_embd.weight", 66, 0x7f80, 2, "index 33 is not finite", "tests/data/gguf/tied-bf16.gguf");
  bad_weight("blk.1.attn_k.weight", 0, 0x7f7f, 2, "too large", "tests/data/gguf/tied-bf16.gguf");
}

/* --- metadata -------------------------------------------------------------------------------- */

typedef struct edit {
  const char *key; /* NULL: none */
  enum { DROP, U32, F32, BOOL, TEXT } kind;
  uint32_t u32;
  float f32;
  const char *text;
  slm2_status code;
  const char *says; /* the message, or for SLM2_OK nothing */
} edit;

static void apply(gguf_file *f, const edit *x) {
  if (x->kind == DROP) gguf_set(f, x->key, 0, NULL, 0);
  else if (x->kind == U32) gguf_set_u32(f, x->key, x->u32);
  else if (x->kind == F32) gguf_set_f32(f, x->key, x->f32);
  else if (x->kind == BOOL) gguf_set_bool(f, x->key, (uint8_t)x->u32);
  else gguf_set_text(f, x->key, x->text);
}

#define DIM SLM2_E_DIMENSION_MISMATCH
#define UNS SLM2_E_UNSUPPORTED
#define FMT SLM2_E_FORMAT
static const edit edits[] = {
    {"general.architecture", DROP, 0, 0, NULL, FMT, "general.architecture is missing"},
    {"general.architecture", TEXT, 0, 0, "qwen3moe", UNS, "general.architecture is qwen3moe; only qwen3"},
    {"general.architecture", U32, 3, 0, NULL, FMT, "must be a string"},
    {"general.type", TEXT, 0, 0, "adapter", UNS, "only model is supported"},
    {"general.type", DROP, 0, 0, NULL, SLM2_OK, ""},
    {"general.quantization_version", U32, 1, 0, NULL, SLM2_E_UNSUPPORTED_QUANTIZATION, "only 2 is supported"},
    {"general.quantization_version", DROP, 0, 0, NULL, SLM2_OK, ""},
    {"split.count", U32, 2, 0, NULL, UNS, "one of several parts"},
    {"split.count", U32, 1, 0, NULL, SLM2_OK, ""},
    {"general.alignment", TEXT, 0, 0, "32", FMT, "must be a whole number"},
    {"some.other.key", TEXT, 0, 0, "x", SLM2_OK, ""},
    {"qwen3.block_count", DROP, 0, 0, NULL, FMT, "qwen3.block_count is missing"},
    {"qwen3.context_length", DROP, 0, 0, NULL, FMT, "is missing"},
    {"qwen3.embedding_length", DROP, 0, 0, NULL, FMT, "is missing"},
    {"qwen3.feed_forward_length", DROP, 0, 0, NULL, FMT, "is missing"},
    {"qwen3.attention.head_count", DROP, 0, 0, NULL, FMT, "is missing"},
    {"qwen3.attention.layer_norm_rms_epsilon", DROP, 0, 0, NULL, FMT, "is missing"},
    {"qwen3.block_count", U32, 1, 0, NULL, UNS, "does not have"},
    {"qwen3.block_count", U32, 3, 0, NULL, FMT, "the tensor blk.2.attn_norm.weight is missing"},
    {"qwen3.block_count", U32, 0, 0, NULL, UNS, ""},
    {"qwen3.block_count", U32, UINT32_MAX, 0, NULL, UNS, ""},
    {"qwen3.block_count", F32, 0, 2, NULL, FMT, "of type f32; it must be a whole number"},
    {"qwen3.embedding_length", U32, 64, 0, NULL, DIM, "token_embd.weight has 2 dimensions (32, 320, ...)"},
    {"qwen3.embedding_length", U32, 33, 0, NULL, DIM, "33"},
    {"qwen3.feed_forward_length", U32, 96, 0, NULL, DIM, "blk.0.ffn_gate.weight has 2 dimensions (32, 64, ...)"},
    {"qwen3.feed_forward_length", U32, 1024, 0, NULL, DIM, "no tensor has the widths of the metadata: 32, 1024 and 64"},
    {"qwen3.feed_forward_length", U32, 32, 0, NULL, DIM, "blk.0.ffn_gate.weight has"},
    {"qwen3.attention.head_count", U32, 1, 0, NULL, DIM, "blk.0.attn_q.weight"},
    {"qwen3.attention.head_count_kv", U32, 2, 0, NULL, DIM, "blk.0.attn_k.weight"},
    {"qwen3.attention.head_count_kv", DROP, 0, 0, NULL, DIM, "blk.0.attn_k.weight"}, /* then it is head_count */
    {"qwen3.attention.key_length", U32, 64, 0, NULL, DIM, "value_length is 32, but the keys have 64"},
    {"qwen3.attention.value_length", U32, 64, 0, NULL, DIM, "value_length is 64, but the keys have 32"},
    {"qwen3.attention.value_length", DROP, 0, 0, NULL, SLM2_OK, ""},
    {"qwen3.rope.dimension_count", U32, 16, 0, NULL, DIM, "dimension_count is 16"},
    {"qwen3.rope.dimension_count", U32, 32, 0, NULL, SLM2_OK, ""},
    {"qwen3.vocab_size", U32, 288, 0, NULL, DIM, "vocab_size is 288, but token_embd.weight has 320"},
    {"qwen3.vocab_size", U32, 320, 0, NULL, SLM2_OK, ""},
    {"qwen3.context_length", U32, 0, 0, NULL, UNS, ""},
    {"qwen3.rope.freq_base", F32, 0, 1.5f, NULL, UNS, "no whole number"},
    {"qwen3.rope.freq_base", F32, 0, 1000000.5f, NULL, UNS, "no whole number"},
    {"qwen3.rope.freq_base", F32, 0, 1e10f, NULL, UNS, "no whole number"},
    {"qwen3.rope.freq_base", F32, 0, -1, NULL, UNS, "no whole number"},
    {"qwen3.rope.freq_base", U32, 1000000, 0, NULL, FMT, "must be f32"},
    {"qwen3.attention.layer_norm_rms_epsilon", F32, 0, 0, NULL, UNS, "not between 0 and 1"},
    {"qwen3.attention.layer_norm_rms_epsilon", F32, 0, -1e-6f, NULL, UNS, "not between 0 and 1"},
    {"qwen3.rope.scaling.type", TEXT, 0, 0, "yarn", UNS, "is yarn; only none"},
    {"qwen3.rope.scaling.type", TEXT, 0, 0, "none", SLM2_OK, ""},
    {"qwen3.rope.scaling.factor", F32, 0, 4, NULL, UNS, "key of the architecture that is not supported"},
    {"qwen3.attention.causal", BOOL, 0, 0, NULL, UNS, "only true"},
    {"qwen3.attention.causal", BOOL, 1, 0, NULL, SLM2_OK, ""},
    {"qwen3.attention.sliding_window", U32, 4096, 0, NULL, UNS, "only 0"},
    {"qwen3.expert_count", U32, 8, 0, NULL, UNS, "only 0"},
    {"qwen3.expert_count", U32, 0, 0, NULL, SLM2_OK, ""},
    {"qwen3.pooling_type", U32, 3, 0, NULL, UNS, "only 0"},
    {"tokenizer.ggml.model", TEXT, 0, 0, "llama", UNS, "is llama; only gpt2"},
    {"tokenizer.ggml.model", DROP, 0, 0, NULL, UNS, "is missing; only gpt2"},
    {"tokenizer.ggml.pre", TEXT, 0, 0, "llama-bpe", UNS, "is llama-bpe; only qwen2"},
    {"tokenizer.ggml.pre", DROP, 0, 0, NULL, UNS, "only qwen2"},
    {"tokenizer.ggml.tokens", DROP, 0, 0, NULL, FMT, "tokenizer.ggml.tokens is missing"},
    {"tokenizer.ggml.token_type", DROP, 0, 0, NULL, FMT, "token_type is missing"},
    {"tokenizer.ggml.merges", DROP, 0, 0, NULL, FMT, "merges is missing"},
    {"tokenizer.ggml.tokens", TEXT, 0, 0, "x", FMT, "must be an array of strings"},
    {"tokenizer.ggml.add_bos_token", BOOL, 1, 0, NULL, UNS, "only false"},
    {"tokenizer.ggml.add_bos_token", BOOL, 2, 0, NULL, FMT, "neither 0 nor 1"},
    {"tokenizer.ggml.add_eos_token", BOOL, 1, 0, NULL, UNS, "only false"},
    {"tokenizer.ggml.add_space_prefix", BOOL, 1, 0, NULL, UNS, "only false"},
    {"tokenizer.ggml.eos_token_id", U32, 320, 0, NULL, SLM2_E_TOKEN, "eos_token_id is 320, but there are 320"},
    {"tokenizer.ggml.bos_token_id", U32, 400, 0, NULL, SLM2_E_TOKEN, "bos_token_id is 400"},
    {"tokenizer.ggml.padding_token_id", U32, 999, 0, NULL, SLM2_E_TOKEN, "padding_token_id"},
    {"general.sampling.temp", F32, 0, -1, NULL, UNS, "out of range"},
    {"general.sampling.top_p", F32, 0, 1.5f, NULL, UNS, "out of range"},
    {"general.sampling.min_p", F32, 0, 0.1f, NULL, UNS, "out of range"},
    {"general.sampling.min_p", F32, 0, 0, NULL, SLM2_OK, ""},
    {"general.sampling.penalty_repeat", F32, 0, 0, NULL, UNS, "out of range"},
    {"general.sampling.mirostat", U32, 2, 0, NULL, UNS, "only 0"},
    {"general.sampling.top_k", TEXT, 0, 0, "20", FMT, "must be a whole number"},
    {"slm2.format_version", TEXT, 0, 0, "1", FMT, "slm2.license is missing"},
    {"slm2.format_version", TEXT, 0, 0, "2", SLM2_E_VERSION, ""},
};

static void test_edits(void) {
  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
    gguf_file *f = gguf_load(TIED);
    slm2_convert_report r;
    slm2_error e;
    apply(f, &edits[i]);
    slm2_status status = convert(f, 1, &r, &e);
    if (!CHECK_CASE(status == edits[i].code && strstr(e.message, edits[i].says) != NULL, edits[i].key))
      printf("  wanted %d \"%s\", got %d: %s\n", edits[i].code, edits[i].says, status, e.message);
    if (status == SLM2_OK) CHECK_CASE(verifies(made.bytes, made.n), edits[i].key);
    else CHECK_CASE(made.n == 0, edits[i].key); /* nothing is written before everything is checked */
    gguf_free(f);
  }
}

static void expect_file(gguf_file *f, slm2_status code, const char *name, const char *says, const char *label) {
  slm2_convert_report r;
  slm2_error e;
  slm2_status status = convert(f, 1, &r, &e);
  bool right = status == code && (code == SLM2_OK || (strstr(e.message, says) != NULL && strstr(e.name, name) != NULL));
  if (!CHECK_CASE(right, label)) printf("  got %d, %s: %s\n", status, e.name, e.message);
  gguf_free(f);
}

static void test_tensors(void) {
  static const struct { uint32_t type; const char *name; } others[] = {
      {2, "Q4_0"}, {12, "Q4_K"}, {14, "Q6_K"}, {24, "I8"}, {28, "F64"}, {39, "MXFP4"}};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    gguf_file *f = gguf_load("tests/data/gguf/tied-bf16.gguf");
    gguf_t *t = gguf_t_named(f, "token_embd.weight"); /* 320 x 32 values */
    uint32_t elements = 0, bytes = 0;
    CHECK(slm2_ggml_block(others[i].type, &elements, &bytes));
    t->type = others[i].type;
    t->data = realloc(t->data, 320 * 32 * 8);
    t->bytes = 320 * 32 / elements * bytes;
    if (elements > 32) expect_file(f, DIM, "token_embd.weight", "blocks of 256", others[i].name);
    else expect_file(f, SLM2_E_UNSUPPORTED_QUANTIZATION, "token_embd.weight", others[i].name, others[i].name);
  }
  gguf_file *f = gguf_load(TIED);
  gguf_t *t = gguf_t_named(f, "output_norm.weight");
  t->type = SLM2_GGML_Q8_0;
  t->bytes = 34;
  expect_file(f, SLM2_E_UNSUPPORTED_QUANTIZATION, "output_norm.weight", "a norm must be", "a norm in Q8_0");
  f = gguf_load(TIED);
  strcpy(gguf_t_named(f, "blk.1.attn_k_norm.weight")->name, "blk.1.attn_k_norm.bias");
  expect_file(f, FMT, "blk.1.attn_k_norm.weight", "is missing", "a missing tensor");
  f = gguf_load(TIED);
  strcpy(gguf_t_named(f, "token_embd.weight")->name, "token_embed.weight");
  expect_file(f, FMT, "token_embd.weight", "no matrix token_embd.weight", "no embedding");
  static const char *const extra[] = {"blk.0.attn_q.bias", "rope_freqs.weight", "blk.2.attn_norm.weight",
                                      "blk.00.attn_norm.weight"};
  for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++) {
    f = gguf_load(TIED);
    gguf_t *from = gguf_t_named(f, "output_norm.weight");
    gguf_t *to = &f->t[f->n_t++];
    *to = *from;
    to->data = copy_bytes(from->data, from->bytes);
    strcpy(to->name, extra[i]);
    expect_file(f, UNS, extra[i], "does not have", extra[i]);
  }
  f = gguf_load(TIED);
  t = gguf_t_named(f, "output_norm.weight");
  t->rank = 2;
  t->dims[1] = 1;
  expect_file(f, DIM, "output_norm.weight", "2 dimensions (32, 1", "a norm of two dimensions");
  f = gguf_load(TIED);
  t = gguf_t_named(f, "blk.0.ffn_gate.weight"); /* transposed */
  t->dims[0] = 64;
  t->dims[1] = 32;
  expect_file(f, DIM, "blk.0.ffn_gate.weight", "(64, 32, ...); the metadata demand (32, 64)", "transposed");
}

/* --- tokenizer ------------------------------------------------------------------------------------ */

static gguf_file *with_type(uint32_t id, uint32_t type) {
  gguf_file *f = gguf_load(TIED);
  slm2_store_u32(gguf_kv_named(f, "tokenizer.ggml.token_type")->bytes + 12 + 4 * id, type);
  return f;
}
static gguf_file *with_token(uint32_t id, const char *text, size_t n) {
  gguf_file *f = gguf_load(TIED);
  gguf_set_item(f, "tokenizer.ggml.tokens", id, text, n);
  return f;
}
static gguf_file *with_merge(const char *text) {
  gguf_file *f = gguf_load(TIED);
  gguf_set_item(f, "tokenizer.ggml.merges", 5, text, strlen(text));
  return f;
}

static void test_tokenizer(void) {
  char longest[2100];
  memset(longest, 'a', sizeof longest);
  expect_file(with_type(300, 2), UNS, "token_type", "token 300 is of type 2", "unknown token");
  expect_file(with_type(300, 6), UNS, "token_type", "token 300 is of type 6", "byte token");
  expect_file(with_type(300, 0), UNS, "token_type", "token 300 is of type 0", "undefined token");
  expect_file(with_type(300, 0x80000001), UNS, "token_type", "of type 2147483649", "negative type");
  expect_file(with_type(5, 5), FMT, "vocab", "no token is the byte 0x26", "a byte without token");
  expect_file(with_type(315, 5), SLM2_OK, "", "", "the last token unused");
  expect_file(with_token(300, "<|im_end|>", 10), FMT, "<|im_end|>", "are the same bytes", "a token twice");
  expect_file(with_token(280, "", 0), FMT, "", "token 280 is empty", "an empty token");
  expect_file(with_token(300, "", 0), FMT, "", "added token 300 is empty", "an empty added token");
  expect_file(with_token(280, "a b", 3), FMT, "a b", "no text of byte symbols", "a blank is no symbol");
  expect_file(with_token(280, "a\xc0\x80", 3), FMT, "", "no text of byte symbols", "ill-formed UTF-8");
  expect_file(with_token(300, "a\xff", 2), FMT, "", "no UTF-8", "ill-formed UTF-8 added");
  expect_file(with_token(300, "\xef\xbf\xbd", 3), FMT, "", "U+FFFD", "U+FFFD added");
  expect_file(with_token(280, longest, 1025), FMT, "", "longer than 1024", "a long token");
  expect_file(with_token(300, longest, 1025), FMT, "", "longer than 1024", "a long added token");
  expect_file(with_token(300, longest, 1024), SLM2_OK, "", "", "the longest added token");
  expect_file(with_merge("ab"), FMT, "merges", "merge 5 is not two texts", "a merge without blank");
  expect_file(with_merge(" a"), FMT, "merges", "merge 5 is not two texts", "a merge of nothing");
  expect_file(with_merge("a b c"), FMT, "merges", "merge 5 is not two texts", "a merge of three");
  expect_file(with_merge("a zzzz"), FMT, "zzzz", "merge 5 joins what is no token", "a merge of no token");
  expect_file(with_merge("! !"), FMT, "merges", "result of merge 5 is no token", "a merge to no token");
  expect_file(with_merge("a t"), FMT, "merges", "merge 5 joins a pair that an earlier", "a merge twice");
  gguf_file *f = gguf_load(TIED);
  gguf_kv *types = gguf_kv_named(f, "tokenizer.ggml.token_type");
  slm2_store_u64(types->bytes + 4, 319);
  types->n -= 4;
  expect_file(f, FMT, "token_type", "319 entries for 320 tokens", "fewer types");
  f = gguf_load(TIED); /* one token fewer than rows */
  gguf_kv *tokens = gguf_kv_named(f, "tokenizer.ggml.tokens");
  types = gguf_kv_named(f, "tokenizer.ggml.token_type");
  slm2_store_u64(types->bytes + 4, 319);
  slm2_store_u64(tokens->bytes + 4, 319);
  types->n -= 4;
  tokens->n -= 8 + strlen("[PAD319]");
  expect_file(f, DIM, "tokenizer.ggml.tokens", "319 tokens, but token_embd.weight has 320 rows", "fewer tokens than rows");
}

/* Flags of added tokens, special ids and sampling as they come out. */
static void test_settings(void) {
  gguf_file *f = gguf_load(TIED);
  slm2_convert_report r;
  slm2_error e;
  for (const char *const *key = (const char *const[]){"general.sampling.top_k", "general.sampling.top_p", "general.sampling.temp",
                                                      "tokenizer.ggml.bos_token_id", "tokenizer.ggml.padding_token_id",
                                                      "tokenizer.chat_template", NULL};
       *key != NULL; key++)
    gguf_set(f, *key, 0, NULL, 0);
  CHECK(convert(f, 1, &r, &e) == SLM2_OK);
  const slm2_generation *g = &r.header.generation;
  CHECK(g->do_sample && g->temperature == 0.6f && g->top_k == 20 && g->top_p == 0.95f && g->repeat_penalty == 1.0f);
  CHECK(g->bos == UINT32_MAX && g->pad == UINT32_MAX && g->n_eos == 2 && g->eos[0] == 292 && g->eos[1] == 290);
  CHECK(r.chat_template_unknown && r.header.chat_format == SLM2_CHAT_NONE && strcmp(r.header.license, "unknown") == 0);
  gguf_set_f32(f, "general.sampling.temp", 0.25f); /* now the others are transformers' */
  gguf_set_u32(f, "tokenizer.ggml.eot_token_id", 291);
  gguf_set_u32(f, "tokenizer.ggml.bos_token_id", UINT32_MAX);
  gguf_set_text(f, "general.license", "apache-2.0");
  gguf_set_text(f, "tokenizer.chat_template", "{{ x }}");
  CHECK(convert(f, 1, &r, &e) == SLM2_OK);
  CHECK(g->temperature == 0.25f && g->top_k == 50 && g->top_p == 1.0f && g->repeat_penalty == 1.0f);
  CHECK(g->n_eos == 3 && g->eos[0] == 292 && g->eos[1] == 291 && g->eos[2] == 290 && g->bos == UINT32_MAX);
  CHECK(r.chat_template_unknown && strcmp(r.header.license, "apache-2.0") == 0 && strcmp(r.header.source, "unknown") == 0);
  slm2_convert_options force = {.form = SLM2_FORM_ROWS, .force_chat_qwen3 = true};
  memory_file m;
  size_t n;
  uint8_t *bytes = gguf_build(f, &n);
  CHECK(gguf_convert(memory_input(&m, bytes, n), &made, &force, &r, &e) == SLM2_OK);
  CHECK(!r.chat_template_unknown && r.header.chat_format == SLM2_CHAT_QWEN3 && r.header.form == SLM2_FORM_ROWS);
  free(bytes);
  gguf_set_text(f, "general.license", "Apache 2.0!"); /* no identifier of the header's form */
  CHECK(convert(f, 1, &r, &e) == SLM2_OK && strcmp(r.header.license, "unknown") == 0);
  gguf_set_text(f, "tokenizer.ggml.model", "none");
  CHECK(convert(f, 1, &r, &e) == SLM2_OK && r.header.tokenizer_bytes == 0 && verifies(made.bytes, made.n));
  gguf_free(f);
}

/* --- faults ------------------------------------------------------------------------------------------ */

static void test_faults(void) {
  slm2_convert_report r;
  slm2_error e;
  memory_file m;
  size_t n, bytes;
  uint8_t *file = (uint8_t *)test_read_file(TIED, &n);
  slm2_input *in = memory_input(&m, file, n);
  slm2_sink sink = memory_begin(&made);
  CHECK(slm2_convert_gguf_bytes(in, &bytes, &e) == SLM2_OK);
  void *mem = aligned_alloc(64, padded(bytes, 64) + 64);
  CHECK(slm2_convert_gguf(in, &sink, &forms[1], (char *)mem + 8, bytes, &r, &e) == SLM2_E_ARGUMENT);
  CHECK(slm2_convert_gguf(in, &sink, &forms[1], mem, bytes - 1, &r, &e) == SLM2_E_MEMORY);
  CHECK(slm2_convert_gguf(in, &sink, &forms[1], mem, 0, &r, &e) == SLM2_E_MEMORY && made.n == 0);
  m.reads = 0;
  CHECK(slm2_convert_gguf(in, &sink, &forms[1], mem, bytes, &r, &e) == SLM2_OK);
  long reads = m.reads, writes = made.writes;
  CHECK(reads > 20 && writes > 20);
  for (long i = 0; i < reads; i++) {
    sink = memory_begin(&made);
    m.reads = 0;
    m.fail_read = i;
    memset(&r, 0x5a, sizeof r);
    CHECK(slm2_convert_gguf(in, &sink, &forms[1], mem, bytes, &r, &e) == SLM2_E_IO && r.zero_blocks == 0x5a5a5a5a5a5a5a5a);
  }
  m.fail_read = -1;
  for (long i = 0; i < writes; i++) {
    sink = memory_begin(&made);
    made.fail_write = i;
    CHECK(slm2_convert_gguf(in, &sink, &forms[1], mem, bytes, &r, &e) == SLM2_E_IO);
  }
  free(mem);
  free(file);
}

/* Every length of the file, and bytes changed in the header: refused, or converted to a file that verifies. */
static void test_truncations(void) {
  slm2_convert_report r;
  slm2_error e;
  memory_file m;
  size_t n;
  uint8_t *file = (uint8_t *)test_read_file(TIED, &n);
  for (size_t cut = 0; cut < n; cut += cut < 12100 ? 1 : 97) {
    uint8_t *copy = copy_bytes(file, cut); /* its own block, so that a sanitizer sees the end */
    slm2_status status = gguf_convert(memory_input(&m, copy, cut), &made, &forms[1], &r, &e);
    CHECK(status == SLM2_E_FORMAT && made.n == 0);
    free(copy);
  }
  free(file);
}

static void test_mutations(void) {
  slm2_convert_report r;
  slm2_error e;
  memory_file m;
  size_t n, bytes;
  uint64_t seed = 20, converted = 0;
  uint8_t *file = (uint8_t *)test_read_file(TIED, &n), *copy = copy_bytes(file, n);
  for (int i = 0; i < 20000; i++) {
    size_t at[3];
    int count = 1 + (int)(test_random(&seed) % 3);
    for (int k = 0; k < count; k++) {
      at[k] = (size_t)(test_random(&seed) % 12003);
      if (test_random(&seed) % 4 == 0) at[k] %= 1400; /* the head and the geometry */
      uint64_t r8 = test_random(&seed);
      copy[at[k]] = (uint8_t)(test_random(&seed) % 3 == 0 ? UINT64_C(1) << r8 % 8 : r8);
    }
    slm2_input *in = memory_input(&m, copy, n);
    if (i % 4 == 0) { /* the file changes while it is read: the first pass saw another header */
      m.second = file;
      m.switch_at = (long)(test_random(&seed) % 12);
    }
    slm2_sink sink = memory_begin(&made);
    if (slm2_convert_gguf_bytes(in, &bytes, &e) == SLM2_OK) {
      void *mem = aligned_alloc(64, padded(bytes, 64));
      if (slm2_convert_gguf(in, &sink, &forms[1], mem, bytes, &r, &e) == SLM2_OK) {
        converted++;
        if (converted % 16 == 0) CHECK(verifies(made.bytes, made.n));
      }
      free(mem);
    }
    for (int k = 0; k < count; k++) copy[at[k]] = file[at[k]];
  }
  printf("test_gguf_import: mutations from seed 20, %llu of 20000 convert\n", (unsigned long long)converted);
  CHECK(converted > 1000 && converted < 19000);
  free(copy);
  free(file);
}

int main(void) {
  test_equal(TIED, "tests/data/hf-tiny/tied", 1);
  test_equal("tests/data/gguf/tied-bf16.gguf", "tests/data/hf-tiny/tied", 1);
  test_equal("tests/data/gguf/untied-q8_0.gguf", "tests/data/hf-tiny/untied", 0);
  test_floats();
  test_blocks();
  test_bad_weights();
  test_edits();
  test_tensors();
  test_tokenizer();
  test_settings();
  test_faults();
  test_truncations();
  test_mutations();
  free(made.bytes);
  return test_end("gguf_import");
}
