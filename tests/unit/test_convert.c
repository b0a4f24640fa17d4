/* tests/unit/test_convert.c: HF folders to SLM2. Right values: tests/data/hf-tiny (checkpoints written by transformers,
 * expected bytes by numpy, see tests/gen/hf_tiny.py). Then everything that may not change the result, everything that
 * must be refused, faults, truncations and mutations. */
#include "tests/unit/checkpoint.h"

static const slm2_convert_options rows = {.form = SLM2_FORM_ROWS}, panels = {.form = SLM2_FORM_PANELS};

/* Whether a whole file passes the push reader. */
static int verifies(const uint8_t *file, size_t n) {
  void *mem = malloc(slm2_reader_bytes()), *header = malloc(SLM2_HEADER_MAX);
  slm2_reader *reader;
  slm2_error error = {.code = SLM2_OK};
  slm2_status status = slm2_reader_init(mem, slm2_reader_bytes(), header, SLM2_HEADER_MAX, n, &reader, &error);
  if (status == SLM2_OK) status = slm2_reader_push(reader, file, n, &error);
  if (status != SLM2_OK) printf("  reader: %s: %s\n", slm2_status_name(status), error.message);
  free(mem);
  free(header);
  return status == SLM2_OK;
}

/* --- right values ----------------------------------------------------------------------------------- */

static void check_section(const slm2_convert_report *r, const uint8_t *file, const char *name, const char *digits) {
  slm2_section s;
  for (uint32_t i = 0; i < slm2_section_count(&r->header.config); i++) {
    if (slm2_section_get(&r->header, i, &s) != SLM2_OK || strcmp(s.name, name) != 0) continue;
    uint8_t sha[32];
    char hex[65];
    slm2_sha256_of(file + 8 + r->header.header_bytes + s.offset, (size_t)s.bytes, sha);
    slm2_hex(sha, 32, hex);
    CHECK_CASE(strcmp(hex, digits) == 0, name);
    return;
  }
  CHECK_CASE(0, name);
}

/* Every line of expected.txt: name, hash as rows, hash as panels. */
static void check_expected(const char *folder, const slm2_convert_report *r, const uint8_t *file) {
  char path[128], name[96], in_rows[80], in_panels[80];
  unsigned lines = 0;
  snprintf(path, sizeof path, "%s/expected.txt", folder);
  FILE *f = fopen(path, "r");
  for (int n; f != NULL && (n = fscanf(f, "%95s %79s", name, in_rows)) == 2; lines++) {
    if (strcmp(name, "zero_blocks") == 0) {
      CHECK(r->zero_blocks == strtoull(in_rows, NULL, 10) && r->zero_blocks > 0);
      break;
    }
    if (fscanf(f, "%79s", in_panels) != 1) break;
    check_section(r, file, name, r->header.form == SLM2_FORM_ROWS ? in_rows : in_panels);
  }
  CHECK(f != NULL && lines == slm2_section_count(&r->header.config) - 1); /* all but the tokenizer */
  if (f != NULL) fclose(f);
}

static void test_fixture(const char *folder, bool tied, uint32_t theta, const char *tokenizer_sha256) {
  checkpoint *c = checkpoint_load(folder);
  slm2_convert_report r;
  slm2_error error;
  for (int form = 0; form < 2; form++) {
    if (!CHECK(checkpoint_convert(c, form == 0 ? &rows : &panels, &r, &error) == SLM2_OK)) {
      printf("  %s: %s\n", error.name, error.message);
      break;
    }
    const slm2_config *g = &r.header.config;
    uint8_t identity[32];
    CHECK(verifies(c->out, c->n_out) && c->n_out == 8 + r.header.header_bytes + r.header.data_bytes && c->progress_faults == 0);
    CHECK(g->hidden == 32 && g->intermediate == 64 && g->layers == 2 && g->heads == 2 && g->kv_heads == 1 && g->head_dim == 32);
    CHECK(g->vocab == 320 && g->max_positions == 512 && g->rope_theta == theta && g->rms_eps == 1e-6f && g->tied == tied);
    CHECK(r.header.chat_format == SLM2_CHAT_QWEN3 && !r.chat_template_unknown && !r.lm_head_duplicate);
    CHECK(strcmp(r.header.source, "unknown") == 0 && strcmp(r.header.source_revision, "unknown") == 0 &&
          strcmp(r.header.license, "unknown") == 0);
    slm2_header_identity(c->out + 8, (size_t)r.header.header_bytes, identity);
    CHECK(memcmp(identity, r.identity, 32) == 0);
    check_section(&r, c->out, "tokenizer", tokenizer_sha256);
    check_expected(folder, &r, c->out);
    const slm2_generation *s = &r.header.generation;
    if (tied)
      CHECK(s->do_sample && s->temperature == 0.6f && s->top_k == 20 && s->top_p == 0.95f && s->n_eos == 2 && s->eos[1] == 290 &&
            s->pad == 290);
    else
      CHECK(!s->do_sample && s->temperature == 1.0f && s->top_k == 50 && s->top_p == 1.0f && s->n_eos == 1 &&
            s->pad == UINT32_MAX);
    CHECK(s->bos == 290 && s->eos[0] == 292 && s->repeat_penalty == 1.0f);
  }
  checkpoint_free(c);
}

/* --- what may not change the result: dtype, shards, order, duplicates [FIL-6] ----------------------------- */

/* Values that BF16, F16 and F32 all hold exactly. */
static void make_portable(tensor_list *list) {
  for (uint32_t i = 0; i < list->n; i++) {
    for (uint64_t k = 0; k < list->t[i].n; k++) {
      float v = list->t[i].values[k] * 64.0f;
      list->t[i].values[k] = (float)(int)(v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v) / 64.0f;
    }
  }
}

static void test_same_bytes(void) {
  static const struct {
    slm2_st_dtype first, others;
    uint32_t shards;
    int indexed, head_copy;
  } variants[] = {
      {SLM2_ST_BF16, SLM2_ST_BF16, 1, 0, 0}, {SLM2_ST_F32, SLM2_ST_F32, 1, 0, 0},   {SLM2_ST_F16, SLM2_ST_F16, 1, 1, 0},
      {SLM2_ST_F16, SLM2_ST_BF16, 2, 1, 0},  {SLM2_ST_F32, SLM2_ST_F16, 5, 1, 0},   {SLM2_ST_BF16, SLM2_ST_BF16, 1, 0, 1},
      {SLM2_ST_BF16, SLM2_ST_F32, 3, 1, 1},  {SLM2_ST_F16, SLM2_ST_BF16, 2, 1, 1},
  };
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/tied");
  uint8_t *first = NULL;
  size_t n_first = 0;
  for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
    tensor_list *list = checkpoint_tensors(c);
    slm2_convert_report r;
    slm2_error error;
    make_portable(list);
    for (uint32_t i = 0; i < list->n / 2; i++) { /* another order each time */
      test_tensor swap = list->t[i];
      uint32_t j = (uint32_t)(i * 7 + v) % list->n;
      list->t[i] = list->t[j];
      list->t[j] = swap;
    }
    if (variants[v].head_copy) tensor_copy(list, "model.embed_tokens.weight", "lm_head.weight");
    for (uint32_t i = 0; i < list->n; i++) {
      list->t[i].dtype = strcmp(list->t[i].name, "model.embed_tokens.weight") == 0 ? variants[v].first : variants[v].others;
      list->t[i].shard = i % variants[v].shards;
    }
    checkpoint_write_tensors(c, list, variants[v].shards, variants[v].indexed);
    if (!CHECK(checkpoint_convert(c, &panels, &r, &error) == SLM2_OK)) printf("  %s: %s\n", error.name, error.message);
    CHECK(r.lm_head_duplicate == (variants[v].head_copy != 0));
    if (first == NULL) {
      n_first = c->n_out;
      first = malloc(n_first);
      memcpy(first, c->out, n_first);
    }
    CHECK(c->n_out == n_first && memcmp(c->out, first, n_first) == 0);
    /* the next variant starts from the single file without the copy */
    for (uint32_t i = 0; i < list->n; i++) list->t[i].shard = 0;
    if (variants[v].head_copy) free(list->t[--list->n].values);
    checkpoint_write_tensors(c, list, 1, 0);
    tensors_free(list);
  }
  free(first);
  checkpoint_free(c);
}

/* --- what must be refused ------------------------------------------------------------------------------------ */

typedef void change_tensors(tensor_list *list);

static void remove_tensor(tensor_list *list, const char *name) {
  test_tensor *t = tensor_named(list, name);
  free(t->values);
  *t = list->t[--list->n];
}
static void no_embedding(tensor_list *l) { remove_tensor(l, "model.embed_tokens.weight"); }
static void no_q_norm(tensor_list *l) {
  remove_tensor(l, "model.layers.1.self_attn.q_norm.weight");
  remove_tensor(l, "model.norm.weight");
}
static void no_head(tensor_list *l) { remove_tensor(l, "lm_head.weight"); }
static void only_head(tensor_list *l) {
  tensor_copy(l, "model.embed_tokens.weight", "lm_head.weight");
  remove_tensor(l, "model.embed_tokens.weight");
}
static void head_differs(tensor_list *l) { tensor_copy(l, "model.embed_tokens.weight", "lm_head.weight")->values[1234] += 1.0f; }
static void head_of_other_shape(tensor_list *l) {
  test_tensor *t = tensor_copy(l, "model.embed_tokens.weight", "lm_head.weight");
  t->dims[0] = 160;
  t->n /= 2;
}
static void head_differs_in_zero_sign(tensor_list *l) {
  tensor_named(l, "model.embed_tokens.weight")->values[7] = 0.0f;
  tensor_copy(l, "model.embed_tokens.weight", "lm_head.weight")->values[7] = -0.0f;
}
static void extra_bias(tensor_list *l) { tensor_copy(l, "model.norm.weight", "model.layers.0.self_attn.q_proj.bias"); }
static void extra_layer(tensor_list *l) { tensor_copy(l, "model.norm.weight", "model.layers.2.input_layernorm.weight"); }
static void extra_inv_freq(tensor_list *l) {
  tensor_copy(l, "model.norm.weight", "model.layers.0.self_attn.rotary_emb.inv_freq");
  tensor_copy(l, "model.norm.weight", "model.rotary_emb.inv_freq");
}
static void bad_inv_freq(tensor_list *l) { tensor_copy(l, "model.norm.weight", "model.layers.x.self_attn.rotary_emb.inv_freq"); }
static void wrong_shape(tensor_list *l) {
  test_tensor *t = tensor_named(l, "model.layers.0.self_attn.q_proj.weight");
  t->dims[0] = 32;
  t->dims[1] = 64;
}
static void wrong_rank(tensor_list *l) {
  test_tensor *t = tensor_named(l, "model.norm.weight");
  t->rank = 2;
  t->dims[1] = 1;
}
static void wrong_norm(tensor_list *l) {
  tensor_named(l, "model.norm.weight")->n = tensor_named(l, "model.norm.weight")->dims[0] = 16;
}
static void columns_33(tensor_list *l) {
  test_tensor *t = tensor_named(l, "model.layers.0.mlp.down_proj.weight");
  t->dims[1] = 63;
  t->n = 32 * 63;
}
static void dtype_f64(tensor_list *l) { tensor_named(l, "model.norm.weight")->dtype = SLM2_ST_F64; }
static void dtype_i8(tensor_list *l) { tensor_named(l, "model.layers.0.mlp.down_proj.weight")->dtype = SLM2_ST_I8; }
static void nan_weight(tensor_list *l) {
  tensor_named(l, "model.layers.1.mlp.up_proj.weight")->values[77] = slm2_float_from_bits(0x7fc00000);
}
static void inf_norm(tensor_list *l) {
  tensor_named(l, "model.layers.1.post_attention_layernorm.weight")->values[5] = slm2_float_from_bits(0xff800000);
}
static void huge_weight(tensor_list *l) { tensor_named(l, "model.layers.0.mlp.gate_proj.weight")->values[100] = -8388608.0f; }

static const struct {
  const char *what;
  int untied;
  change_tensors *change;
  slm2_status status;
  const char *name, *message;
} tensor_rows[] = {
    {"no embedding", 0, no_embedding, SLM2_E_FORMAT, "model.embed_tokens.weight", "1 tensors are missing"},
    {"no norms", 0, no_q_norm, SLM2_E_FORMAT, "model.layers.1.self_attn.q_norm.weight", "2 tensors are missing"},
    {"untied without lm_head", 1, no_head, SLM2_E_FORMAT, "lm_head.weight", "tie_word_embeddings false"},
    {"only lm_head", 0, only_head, SLM2_E_FORMAT, "model.embed_tokens.weight", "missing"},
    {"another lm_head", 0, head_differs, SLM2_E_FORMAT, "lm_head.weight", "at index 1234"},
    {"lm_head of another shape", 0, head_of_other_shape, SLM2_E_DIMENSION_MISMATCH, "lm_head.weight", "[320, 32]"},
    {"lm_head with -0", 0, head_differs_in_zero_sign, SLM2_E_FORMAT, "lm_head.weight", "at index 7"},
    {"a bias", 0, extra_bias, SLM2_E_UNSUPPORTED, "model.layers.0.self_attn.q_proj.bias", "does not have"},
    {"a third layer", 0, extra_layer, SLM2_E_UNSUPPORTED, "model.layers.2.input_layernorm.weight", "does not have"},
    {"inv_freq", 0, extra_inv_freq, SLM2_OK, "", ""},
    {"inv_freq of no layer", 0, bad_inv_freq, SLM2_E_UNSUPPORTED, "model.layers.x.self_attn.rotary_emb.inv_freq",
     "does not have"},
    {"a wrong shape", 0, wrong_shape, SLM2_E_DIMENSION_MISMATCH, "model.layers.0.self_attn.q_proj.weight",
     "(32, 64, ...); config.json demands [64, 32]"},
    {"a wrong rank", 0, wrong_rank, SLM2_E_DIMENSION_MISMATCH, "model.norm.weight", "2 dimensions"},
    {"a short norm", 0, wrong_norm, SLM2_E_DIMENSION_MISMATCH, "model.norm.weight", "demands [32]"},
    {"63 columns", 0, columns_33, SLM2_E_DIMENSION_MISMATCH, "model.layers.0.mlp.down_proj.weight", "[32, 64]"},
    {"F64", 0, dtype_f64, SLM2_E_UNSUPPORTED_QUANTIZATION, "model.norm.weight", "is F64"},
    {"I8", 0, dtype_i8, SLM2_E_UNSUPPORTED_QUANTIZATION, "model.layers.0.mlp.down_proj.weight", "is I8"},
    {"NaN", 0, nan_weight, SLM2_E_WEIGHT, "model.layers.1.mlp.up_proj.weight", "at index 77 is not finite"},
    {"-inf in a norm", 0, inf_norm, SLM2_E_WEIGHT, "model.layers.1.post_attention_layernorm.weight", "at index 5 is not finite"},
    {"2^23", 0, huge_weight, SLM2_E_WEIGHT, "model.layers.0.mlp.gate_proj.weight", "at index 100 is too large"},
};

static void test_tensor_rules(void) {
  for (size_t i = 0; i < sizeof tensor_rows / sizeof tensor_rows[0]; i++) {
    checkpoint *c = checkpoint_load(tensor_rows[i].untied ? "tests/data/hf-tiny/untied" : "tests/data/hf-tiny/tied");
    tensor_list *list = checkpoint_tensors(c);
    slm2_convert_report r = {.zero_blocks = 99};
    slm2_error error;
    tensor_rows[i].change(list);
    checkpoint_write_tensors(c, list, 1, 0);
    slm2_status status = checkpoint_convert(c, &panels, &r, &error);
    if (!CHECK_CASE(status == tensor_rows[i].status && strcmp(error.name, tensor_rows[i].name) == 0 &&
                        strstr(error.message, tensor_rows[i].message) != NULL,
                    tensor_rows[i].what))
      printf("  %s: %s: %s\n", slm2_status_name(status), error.name, error.message);
    /* What names, shapes and dtypes show is refused before the first byte. */
    if (status != SLM2_OK) CHECK_CASE(r.zero_blocks == 99 && (status == SLM2_E_WEIGHT || c->writes == 0), tensor_rows[i].what);
    tensors_free(list);
    checkpoint_free(c);
  }
}

static void test_shards(void) {
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/tied");
  tensor_list *list = checkpoint_tensors(c);
  slm2_convert_report r;
  slm2_error error;
  /* one tensor in two shards */
  tensor_copy(list, "model.norm.weight", "model.norm.weight")->shard = 1;
  checkpoint_write_tensors(c, list, 2, 1);
  CHECK(checkpoint_convert(c, &rows, &r, &error) == SLM2_E_FORMAT && strcmp(error.name, "model.norm.weight") == 0);
  c->source.n_shards = 0;
  CHECK(checkpoint_convert(c, &rows, &r, &error) == SLM2_E_ARGUMENT);
  c->source.n_shards = 2;
  free((char *)(uintptr_t)c->source.index);
  c->source.index = NULL;
  CHECK(checkpoint_convert(c, &rows, &r, &error) == SLM2_E_ARGUMENT);
  tensors_free(list);
  checkpoint_free(c);
}

static void test_texts(void) {
  static const struct {
    slm2_source_file file;
    const char *from, *to; /* NULL: the file is removed */
    slm2_status status;
    const char *name;
  } changes[] = {
      {SLM2_SOURCE_CONFIG, NULL, NULL, SLM2_E_FORMAT, "config.json"},
      {SLM2_SOURCE_TOKENIZER, NULL, NULL, SLM2_E_FORMAT, "tokenizer.json"},
      {SLM2_SOURCE_GENERATION, NULL, NULL, SLM2_OK, ""},
      {SLM2_SOURCE_TOKENIZER_CONFIG, NULL, NULL, SLM2_OK, ""},
      {SLM2_SOURCE_CONFIG, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", SLM2_E_FORMAT,
       "model.layers.2.input_layernorm.weight"},
      {SLM2_SOURCE_CONFIG, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", SLM2_E_UNSUPPORTED,
       "model.layers.1.input_layernorm.weight"},
      {SLM2_SOURCE_CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", SLM2_E_FORMAT, "lm_head.weight"},
      {SLM2_SOURCE_CONFIG, "\"vocab_size\": 320", "\"vocab_size\": 321", SLM2_E_DIMENSION_MISMATCH, NULL},
      {SLM2_SOURCE_CONFIG, "\"vocab_size\": 320", "\"vocab_size\": 352", SLM2_E_DIMENSION_MISMATCH, "model.embed_tokens.weight"},
      {SLM2_SOURCE_GENERATION, "292,", "320,", SLM2_E_TOKEN, "eos_token_id"},
      {SLM2_SOURCE_TOKENIZER, "\"NFC\"", "\"NFD\"", SLM2_E_UNSUPPORTED, "type"},
  };
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    checkpoint *c = checkpoint_load("tests/data/hf-tiny/tied");
    slm2_convert_report r;
    slm2_error error;
    char *text = changes[i].from == NULL ? NULL : replaced(c->source.text[changes[i].file], changes[i].from, changes[i].to);
    checkpoint_set_text(c, changes[i].file, text);
    slm2_status status = checkpoint_convert(c, &panels, &r, &error);
    if (!CHECK_CASE(status == changes[i].status && (changes[i].name == NULL || strcmp(error.name, changes[i].name) == 0),
                    changes[i].to))
      printf("  %s: %s: %s\n", slm2_status_name(status), error.name, error.message);
    free(text);
    checkpoint_free(c);
  }
}

/* More tokens than rows of the embedding. */
static void test_small_vocabulary(void) {
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/tied");
  tensor_list *list = checkpoint_tensors(c);
  slm2_convert_report r;
  slm2_error error;
  test_tensor *t = tensor_named(list, "model.embed_tokens.weight");
  t->dims[0] = 288;
  t->n = 288 * 32;
  checkpoint_write_tensors(c, list, 1, 0);
  char *text = replaced(c->source.text[SLM2_SOURCE_CONFIG], "320", "288");
  checkpoint_set_text(c, SLM2_SOURCE_CONFIG, text);
  free(text);
  checkpoint_set_text(c, SLM2_SOURCE_GENERATION, "{\"eos_token_id\": 1, \"bos_token_id\": 1}");
  CHECK(checkpoint_convert(c, &panels, &r, &error) == SLM2_E_DIMENSION_MISMATCH &&
        strstr(error.message, "316 tokens, vocab_size is 288") != NULL);
  tensors_free(list);
  checkpoint_free(c);
}

static void test_chat(void) {
  static const struct {
    const char *jinja, *config;
    bool force;
    slm2_chat_format format;
    bool unknown;
  } cases[] = {
      {"as it is", "{}", false, SLM2_CHAT_QWEN3, false},
      {NULL, "{}", false, SLM2_CHAT_NONE, true},
      {NULL, "{}", true, SLM2_CHAT_QWEN3, false},
      {"{{ messages }}", "{}", false, SLM2_CHAT_NONE, true},
      {"{{ messages }}", "{}", true, SLM2_CHAT_QWEN3, false},
      {NULL, "{\"chat_template\": \"x\"}", false, SLM2_CHAT_NONE, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    checkpoint *c = checkpoint_load("tests/data/hf-tiny/tied");
    slm2_convert_options options = {.form = SLM2_FORM_PANELS, .force_chat_qwen3 = cases[i].force};
    slm2_convert_report r;
    slm2_error error;
    if (cases[i].jinja == NULL || i != 0) checkpoint_set_text(c, SLM2_SOURCE_CHAT_TEMPLATE, cases[i].jinja);
    checkpoint_set_text(c, SLM2_SOURCE_TOKENIZER_CONFIG, cases[i].config);
    CHECK(checkpoint_convert(c, &options, &r, &error) == SLM2_OK && verifies(c->out, c->n_out));
    CHECK(r.header.chat_format == cases[i].format && r.chat_template_unknown == cases[i].unknown);
    checkpoint_free(c);
  }
}

/* tokenizer_config.json may not bring added tokens that tokenizer.json does not have. */
static void test_added_tokens(void) {
  static const struct {
    const char *config;
    slm2_status status;
    const char *name;
  } cases[] = {
      {"{\"added_tokens_decoder\": {}}", SLM2_OK, ""},
      {"{\"added_tokens_decoder\": null}", SLM2_OK, ""},
      {"{\"added_tokens_decoder\": {\"292\": {\"content\": \"<|im_\\u0065nd|>\", \"special\": true, \"lstrip\": false}}}",
       SLM2_OK, ""},
      {"{\"added_tokens_decoder\": {\"292\": {\"content\": \"<|im_end|>\", \"special\": false}}}", SLM2_E_UNSUPPORTED, "292"},
      {"{\"added_tokens_decoder\": {\"291\": {\"content\": \"<|im_end|>\", \"special\": true}}}", SLM2_E_UNSUPPORTED, "291"},
      {"{\"added_tokens_decoder\": {\"316\": {\"content\": \"<|new|>\", \"special\": true}}}", SLM2_E_UNSUPPORTED, "316"},
      {"{\"added_tokens_decoder\": {\"260\": {\"content\": \"hat\", \"special\": false}}}", SLM2_E_UNSUPPORTED, "260"},
      {"{\"added_tokens_decoder\": {\"0292\": {\"content\": \"<|im_end|>\", \"special\": true}}}", SLM2_E_UNSUPPORTED, "0292"},
      {"{\"added_tokens_decoder\": {\"4294967588\": {\"content\": \"<|im_end|>\", \"special\": true}}}", SLM2_E_UNSUPPORTED,
       "4294967588"},
      {"{\"added_tokens_decoder\": {\"\": {\"content\": \"<|im_end|>\", \"special\": true}}}", SLM2_E_UNSUPPORTED, ""},
      {"{\"added_tokens_decoder\": {\"292\": {\"special\": true}}}", SLM2_E_UNSUPPORTED, "292"},
      {"{\"added_tokens_decoder\": {\"292\": 5}}", SLM2_E_JSON, "tokenizer_config.json"},
      {"{\"added_tokens_decoder\": []}", SLM2_E_JSON, "added_tokens_decoder"},
  };
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/tied");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    slm2_convert_report r;
    slm2_error error;
    checkpoint_set_text(c, SLM2_SOURCE_TOKENIZER_CONFIG, cases[i].config);
    slm2_status status = checkpoint_convert(c, &panels, &r, &error);
    if (!CHECK_CASE(status == cases[i].status && strcmp(error.name, cases[i].name) == 0, cases[i].config))
      printf("  %s: %s: %s\n", slm2_status_name(status), error.name, error.message);
  }
  checkpoint_free(c);
}

/* --- faults ------------------------------------------------------------------------------------------------------ */

static void test_faults(void) {
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/untied");
  slm2_convert_report r;
  slm2_error error;
  size_t bytes;
  CHECK(checkpoint_convert(c, &panels, &r, &error) == SLM2_OK);
  size_t n_good = c->n_out;
  uint8_t *good = malloc(n_good);
  memcpy(good, c->out, n_good);
  long reads = c->reads, writes = c->writes;
  for (c->fail_read = 0; c->fail_read < reads; c->fail_read++) {
    slm2_status status = checkpoint_convert(c, &panels, &r, &error);
    if (status != SLM2_E_IO || strcmp(error.message, "test read fault") != 0) CHECK(false);
  }
  c->fail_read = -1;
  for (c->fail_write = 0; c->fail_write < writes; c->fail_write++) {
    slm2_status status = checkpoint_convert(c, &panels, &r, &error);
    if (status != SLM2_E_IO || strcmp(error.message, "test write fault") != 0) CHECK(false);
  }
  c->fail_write = -1;
  CHECK(checkpoint_convert(c, &panels, &r, &error) == SLM2_OK && c->n_out == n_good && memcmp(good, c->out, n_good) == 0);
  CHECK(reads > 50 && writes > 50);
  /* memory: one byte less than announced */
  slm2_sink sink = checkpoint_sink(c);
  CHECK(slm2_convert_bytes(&c->source, &bytes, &error) == SLM2_OK);
  void *mem = malloc(bytes);
  CHECK(slm2_convert_hf(&c->source, &sink, &panels, mem, bytes - 64, &r, &error) == SLM2_E_MEMORY);
  CHECK(slm2_convert_hf(&c->source, &sink, &panels, (uint8_t *)mem + 8, bytes - 8, &r, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_convert_hf(&c->source, &sink, &panels, mem, bytes, &r, NULL) == SLM2_OK);
  sink.progress = NULL;
  CHECK(slm2_convert_hf(&c->source, &sink, &panels, mem, bytes, &r, &error) == SLM2_OK);
  free(mem);
  free(good);
  checkpoint_free(c);
}

/* Every shorter version of every file is refused: at a cut in the data at the latest by its length. */
static void test_truncations(void) {
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/untied");
  slm2_convert_report r;
  slm2_error error;
  unsigned accepted = 0;
  for (uint32_t s = 0; s < c->source.n_shards; s++) {
    uint64_t whole = c->shard_bytes[s];
    uint8_t *shard = c->shards[s];
    for (uint64_t n = 0; n < whole; n += n < 2048 ? 1 : 499) {
      c->shards[s] = malloc((size_t)n + 1);
      memcpy(c->shards[s], shard, (size_t)n);
      c->shard_bytes[s] = n;
      accepted += checkpoint_convert(c, &panels, &r, &error) == SLM2_OK;
      free(c->shards[s]);
    }
    c->shards[s] = shard;
    c->shard_bytes[s] = whole;
  }
  for (int i = -1; i < SLM2_SOURCE_TEXTS; i++) {
    const char **text = i < 0 ? &c->source.index : &c->source.text[i];
    size_t *n_text = i < 0 ? &c->source.index_bytes : &c->source.text_bytes[i];
    const char *whole = *text;
    size_t n_whole = *n_text, end = n_whole;
    while (end > 0 && whole[end - 1] == '\n') end--;
    if (i == SLM2_SOURCE_CHAT_TEMPLATE) continue; /* shorter is another template */
    for (size_t n = 0; n < end; n += i == SLM2_SOURCE_TOKENIZER ? 7 : 1) {
      char *cut = malloc(n + 1);
      memcpy(cut, whole, n);
      *text = cut;
      *n_text = n;
      accepted += checkpoint_convert(c, &panels, &r, &error) == SLM2_OK;
      free(cut);
    }
    *text = whole;
    *n_text = n_whole;
  }
  CHECK(accepted == 0);
  CHECK(checkpoint_convert(c, &panels, &r, &error) == SLM2_OK);
  checkpoint_free(c);
}

/* Random changes of texts and headers: refused with a message, or a file that verifies. */
static void test_mutations(unsigned runs) {
  static const char alphabet[] = "{}[]\",:0123456789truefalsn-. \\u";
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/tied");
  uint64_t state = 21;
  unsigned accepted = 0;
  for (unsigned run = 0; run < runs; run++) {
    slm2_convert_report r;
    slm2_error error;
    unsigned which = (unsigned)(test_random(&state) % 5);
    uint8_t *bytes = which == 4 ? c->shards[0] : (uint8_t *)(uintptr_t)c->source.text[which];
    size_t n = which == 4 ? 8 + (size_t)slm2_load_u64(bytes) : c->source.text_bytes[which];
    size_t at[2];
    uint8_t old[2];
    for (int k = 0; k < 2; k++) {
      at[k] = (size_t)(test_random(&state) % n);
      old[k] = bytes[at[k]];
      bytes[at[k]] = test_random(&state) % 4 == 0 ? (uint8_t)test_random(&state)
                                                  : (uint8_t)alphabet[test_random(&state) % (sizeof alphabet - 1)];
    }
    slm2_status status = checkpoint_convert(c, &panels, &r, &error);
    if (status == SLM2_OK) {
      accepted++;
      if (!verifies(c->out, c->n_out)) CHECK(false);
    } else if (error.message[0] == 0 || error.code != status || status == SLM2_E_INTERNAL_INVARIANT) {
      CHECK(false);
    }
    for (int k = 1; k >= 0; k--) bytes[at[k]] = old[k];
  }
  printf("test_convert: mutations from seed 21, %u of %u still convert\n", accepted, runs);
  CHECK(accepted > runs / 200 && accepted < runs);
  checkpoint_free(c);
}

int main(int argc, char **argv) {
  /* The tokenizer of both: hash of what tests/gen/tokenizer_section.py makes of it. */
  static const char section[] = "920722820b65bfd2c24bc26db6aa0e496fc4f1bc63c1eec03ecdf4385b7eaddd";
  test_fixture("tests/data/hf-tiny/tied", true, 1000000, section);
  test_fixture("tests/data/hf-tiny/untied", false, 5000000, section);
  test_same_bytes();
  test_tensor_rules();
  test_shards();
  test_texts();
  test_small_vocabulary();
  test_chat();
  test_added_tokens();
  test_faults();
  test_truncations();
  test_mutations(argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10000);
  return test_end("convert");
}
