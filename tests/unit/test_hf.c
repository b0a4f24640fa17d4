/* tests/unit/test_hf.c: config.json, generation_config.json, chat templates and known revisions. The real files of Qwen3
 * are in tests/data/qwen3; their right values stand in their own texts (transformers' key names). */
#include "convert/hf.h"
#include "tests/unit/checkpoint.h"

/* --- the real files --------------------------------------------------------------------------------- */

static const struct {
  const char *file;
  slm2_config config;
} real[] = {
    {"tests/data/qwen3/config-0.6B.json", {1024, 3072, 28, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true}},
    {"tests/data/qwen3/config-1.7B.json", {2048, 6144, 28, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true}},
    {"tests/data/qwen3/config-4B.json", {2560, 9728, 36, 32, 8, 128, 151936, 40960, 1000000, 1e-6f, true}},
    {"tests/data/qwen3/config-8B.json", {4096, 12288, 36, 32, 8, 128, 151936, 40960, 1000000, 1e-6f, false}},
};

static int same_config(const slm2_config *a, const slm2_config *b) {
  return a->hidden == b->hidden && a->intermediate == b->intermediate && a->layers == b->layers && a->heads == b->heads &&
         a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->vocab == b->vocab &&
         a->max_positions == b->max_positions && a->rope_theta == b->rope_theta && a->rms_eps == b->rms_eps && a->tied == b->tied;
}

static void test_real(void) {
  slm2_error error;
  for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
    size_t n;
    slm2_config config;
    slm2_generation ids, g;
    char *json = test_read_file(real[i].file, &n);
    CHECK_CASE(slm2_hf_config(json, n, &config, &ids, &error) == SLM2_OK && same_config(&config, &real[i].config), real[i].file);
    CHECK_CASE(ids.bos == 151643 && ids.pad == UINT32_MAX && ids.n_eos == 1 && ids.eos[0] == 151645, real[i].file);
    free(json);
    json = test_read_file("tests/data/qwen3/generation_config.json", &n);
    CHECK(slm2_hf_generation(json, n, &ids, config.vocab, &g, &error) == SLM2_OK);
    CHECK(g.do_sample && g.temperature == 0.6f && g.top_k == 20 && g.top_p == 0.95f && g.repeat_penalty == 1.0f);
    CHECK(g.bos == 151643 && g.pad == 151643 && g.n_eos == 2 && g.eos[0] == 151645 && g.eos[1] == 151643);
    free(json);
  }
}

/* --- config.json, one change at a time ------------------------------------------------------------------ */

typedef struct config_case {
  const char *from, *to;
  slm2_status status;
  const char *name, *message;
} config_case;

static const config_case config_cases[] = {
    {"\"model_type\": \"qwen3\"", "\"model_type\": \"qwen3_moe\"", SLM2_E_UNSUPPORTED, "model_type", "qwen3_moe; only qwen3"},
    {"\"model_type\": \"qwen3\"", "\"model_type\": 3", SLM2_E_UNSUPPORTED, "model_type", "no text"},
    {"\"model_type\": \"qwen3\",", "", SLM2_E_JSON, "model_type", "missing"},
    {"\"Qwen3ForCausalLM\"", "\"LlamaForCausalLM\"", SLM2_E_UNSUPPORTED, "architectures", "LlamaForCausalLM"},
    {"\"Qwen3ForCausalLM\"", "", SLM2_E_UNSUPPORTED, "architectures", "exactly one"},
    {"\"Qwen3ForCausalLM\"", "\"Qwen3ForCausalLM\", \"Qwen3ForCausalLM\"", SLM2_E_UNSUPPORTED, "architectures", "exactly one"},
    {"\"Qwen3ForCausalLM\"", "1", SLM2_E_UNSUPPORTED, "architectures", "no text"},
    {"\"hidden_size\": 1024", "\"hidden_size\": 1040", SLM2_E_DIMENSION_MISMATCH, "hidden_size", ""},
    {"\"hidden_size\": 1024", "\"hidden_size\": 1024.5", SLM2_E_JSON, "", "hidden_size"},
    {"\"hidden_size\": 1024", "\"hidden_size\": -1024", SLM2_E_JSON, "", "hidden_size"},
    {"\"hidden_size\": 1024", "\"hidden_size\": 4294967296", SLM2_E_JSON, "", "hidden_size"},
    {"\"hidden_size\": 1024", "\"hidden_size\": \"1024\"", SLM2_E_JSON, "", "hidden_size"},
    {"\"hidden_size\": 1024", "\"hidden_size\": 1024, \"hidden_size\": 1024", SLM2_E_JSON, "hidden_size", "twice"},
    {"\"hidden_size\": 1024", "\"hidden_size\": 1024, \"hidden\\u005fsize\": 1024", SLM2_E_JSON, "hidden_size", "twice"},
    {"\"hidden_size\": 1024,", "", SLM2_E_JSON, "hidden_size", "missing"},
    {"\"intermediate_size\": 3072,", "", SLM2_E_JSON, "intermediate_size", "missing"},
    {"\"num_hidden_layers\": 28,", "", SLM2_E_JSON, "num_hidden_layers", "missing"},
    {"\"num_attention_heads\": 16,", "", SLM2_E_JSON, "num_attention_heads", "missing"},
    {"\"num_key_value_heads\": 8,", "", SLM2_E_JSON, "num_key_value_heads", "missing"},
    {"\"max_position_embeddings\": 40960,", "", SLM2_E_JSON, "max_position_embeddings", "missing"},
    {"\"rms_norm_eps\": 1e-06,", "", SLM2_E_JSON, "rms_norm_eps", "missing"},
    {"\"rope_theta\": 1000000,", "", SLM2_E_JSON, "rope_theta", "missing"},
    {",\n  \"vocab_size\": 151936", "", SLM2_E_JSON, "vocab_size", "missing"},
    {"\"head_dim\": 128,", "", SLM2_OK, "", ""}, /* transformers' default */
    {"\"num_hidden_layers\": 28", "\"num_hidden_layers\": 0", SLM2_E_UNSUPPORTED, "num_hidden_layers", ""},
    {"\"num_hidden_layers\": 28", "\"num_hidden_layers\": 513", SLM2_E_UNSUPPORTED, "num_hidden_layers", ""},
    {"\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5", SLM2_E_DIMENSION_MISMATCH, NULL, ""},
    {"\"head_dim\": 128", "\"head_dim\": 100", SLM2_E_DIMENSION_MISMATCH, NULL, ""},
    {"\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 0", SLM2_E_UNSUPPORTED, "rms_norm_eps", ""},
    {"\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": -1e-6", SLM2_E_UNSUPPORTED, "rms_norm_eps", ""},
    {"\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 1e-60", SLM2_E_UNSUPPORTED, NULL, ""},
    {"\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": NaN", SLM2_E_JSON, "", ""},
    {"\"rope_theta\": 1000000", "\"rope_theta\": 1000000.0", SLM2_OK, "", ""},
    {"\"rope_theta\": 1000000", "\"rope_theta\": 1e6", SLM2_OK, "", ""},
    {"\"rope_theta\": 1000000", "\"rope_theta\": 1000000.5", SLM2_E_UNSUPPORTED, "rope_theta", "whole number"},
    {"\"rope_theta\": 1000000", "\"rope_theta\": 1", SLM2_E_UNSUPPORTED, "rope_theta", "whole number"},
    {"\"rope_theta\": 1000000", "\"rope_theta\": 2147483649", SLM2_E_UNSUPPORTED, "rope_theta", "whole number"},
    {"\"rope_theta\": 1000000", "\"rope_theta\": 1e300", SLM2_E_UNSUPPORTED, "rope_theta", "whole number"},
    {"\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000000}", SLM2_OK, "", ""},
    {"\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_theta\": 1000000.0}, \"rope_theta\": 1000000", SLM2_OK, "", ""},
    {"\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_theta\": 10000}, \"rope_theta\": 1000000", SLM2_E_UNSUPPORTED,
     "rope_theta", "10000 and 1000000"},
    {"\"rope_theta\": 1000000", "\"rope_parameters\": {\"factor\": 4.0, \"rope_type\": \"yarn\", \"rope_theta\": 1000000}",
     SLM2_E_UNSUPPORTED, "rope_parameters", "yarn; only default"},
    {"\"rope_theta\": 1000000",
     "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000000, \"partial_rotary_factor\": 0.5}",
     SLM2_E_UNSUPPORTED, "partial_rotary_factor", "rope_parameters"},
    {"\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_type\": \"default\"}", SLM2_E_JSON, "rope_theta", "missing"},
    {"\"rope_scaling\": null",
     "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 32768}",
     SLM2_E_UNSUPPORTED, "rope_scaling", "yarn"},
    {"\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", SLM2_E_UNSUPPORTED, "rope_scaling",
     "linear"},
    {"\"rope_scaling\": null", "\"rope_scaling\": {\"factor\": 2}", SLM2_E_UNSUPPORTED, "factor", "rope_scaling"},
    {"\"rope_scaling\": null", "\"rope_scaling\": 4", SLM2_E_UNSUPPORTED, "rope_scaling", "neither"},
    {"\"rope_scaling\": null,", "", SLM2_OK, "", ""},
    {"\"attention_bias\": false", "\"attention_bias\": true", SLM2_E_UNSUPPORTED, "attention_bias", "only false"},
    {"\"attention_bias\": false,", "", SLM2_OK, "", ""},
    {"\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", SLM2_E_UNSUPPORTED, "hidden_act", "gelu; only silu"},
    {"\"use_sliding_window\": false", "\"use_sliding_window\": true", SLM2_E_UNSUPPORTED, "use_sliding_window", "only false"},
    {"\"sliding_window\": null", "\"sliding_window\": 4096", SLM2_OK, "", ""}, /* not used */
    {"\"use_cache\": true", "\"use_cache\": true, \"layer_types\": [\"full_attention\", \"full_attention\"]", SLM2_OK, "", ""},
    {"\"use_cache\": true", "\"layer_types\": [\"full_attention\", \"sliding_attention\"]", SLM2_E_UNSUPPORTED, "layer_types",
     "sliding_attention"},
    {"\"use_cache\": true", "\"quantization_config\": {\"quant_method\": \"gptq\"}", SLM2_E_UNSUPPORTED, "quantization_config",
     "not supported"},
    {"\"use_cache\": true", "\"quantization_config\": null", SLM2_OK, "", ""},
    {"\"use_cache\": true", "\"num_experts\": 128", SLM2_E_UNSUPPORTED, "num_experts", "not supported"},
    {"\"use_cache\": true", "\"moe_intermediate_size\": 768", SLM2_E_UNSUPPORTED, "moe_intermediate_size", "not supported"},
    {"\"use_cache\": true", "\"auto_map\": {\"AutoModel\": \"x.Y\"}", SLM2_E_UNSUPPORTED, "auto_map", "not supported"},
    {"\"use_cache\": true", "\"anything\": {\"deep\": [1, {}]}", SLM2_OK, "", ""},
    {"\"tie_word_embeddings\": true,", "", SLM2_OK, "untied", ""}, /* transformers' default is false */
    {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1", SLM2_E_JSON, "", "tie_word_embeddings"},
    {"\"torch_dtype\"", "\"dtype\"", SLM2_OK, "", ""},
    {"\"eos_token_id\": 151645", "\"eos_token_id\": [1, 2, 1]", SLM2_OK, "", ""},
    {"\"eos_token_id\": 151645", "\"eos_token_id\": [1, 2, 3, 4, 5, 6, 7, 8, 9]", SLM2_E_UNSUPPORTED, "eos_token_id",
     "more than 8"},
    {"\"eos_token_id\": 151645", "\"eos_token_id\": \"x\"", SLM2_E_JSON, "", "eos_token_id"},
    {"\"vocab_size\": 151936\n}", "\"vocab_size\": 151936\n} x", SLM2_E_JSON, "", ""},
    {"{\n  \"arch", "[] {\n  \"arch", SLM2_E_JSON, "", ""},
};

static void test_config(void) {
  size_t n;
  char *json = test_read_file("tests/data/qwen3/config-0.6B.json", &n);
  for (size_t i = 0; i < sizeof config_cases / sizeof config_cases[0]; i++) {
    const config_case *k = &config_cases[i];
    slm2_config config = {.layers = 77}, want = real[0].config;
    slm2_generation ids;
    slm2_error error = {.code = SLM2_OK};
    char *text = replaced(json, k->from, k->to);
    slm2_status status = slm2_hf_config(text, strlen(text), &config, &ids, &error);
    bool good = status == k->status && strstr(error.message, k->message) != NULL;
    if (status == SLM2_OK) {
      want.tied = strcmp(k->name, "untied") != 0;
      good = good && same_config(&config, &want);
    } else {
      good = good && config.layers == 77 && error.code == status &&
             (k->name == NULL || k->name[0] == 0 || strcmp(error.name, k->name) == 0);
    }
    if (!CHECK_CASE(good, k->to[0] == 0 ? k->from : k->to))
      printf("  %s: %s: %s\n", slm2_status_name(status), error.name, error.message);
    free(text);
  }
  free(json);
}

/* --- generation_config.json -------------------------------------------------------------------------------- */

static const struct {
  const char *json;
  slm2_status status;
  const char *name; /* of the error */
  slm2_generation want;
} generations[] = {
    {NULL, SLM2_OK, "", {false, 1.0f, 50, 1.0f, 1.0f, 3, 4, 1, {5}}},
    {"{}", SLM2_OK, "", {false, 1.0f, 50, 1.0f, 1.0f, 3, 4, 1, {5}}},
    {"{\"do_sample\": null, \"temperature\": null, \"top_k\": null, \"eos_token_id\": null, \"pad_token_id\": null}",
     SLM2_OK,
     "",
     {false, 1.0f, 50, 1.0f, 1.0f, 3, 4, 1, {5}}},
    {"{\"do_sample\": true, \"temperature\": 0.7, \"top_k\": 0, \"top_p\": 0.8, \"repetition_penalty\": 1.05}",
     SLM2_OK,
     "",
     {true, 0.7f, 0, 0.8f, 1.05f, 3, 4, 1, {5}}},
    {"{\"eos_token_id\": [7, 6, 7], \"bos_token_id\": 1, \"pad_token_id\": 0}",
     SLM2_OK,
     "",
     {false, 1.0f, 50, 1.0f, 1.0f, 1, 0, 2, {7, 6}}},
    {"{\"eos_token_id\": 99}", SLM2_OK, "", {false, 1.0f, 50, 1.0f, 1.0f, 3, 4, 1, {99}}},
    {"{\"eos_token_id\": 100}", SLM2_E_TOKEN, "eos_token_id", {false}},
    {"{\"bos_token_id\": 4294967295}", SLM2_OK, "", {false, 1.0f, 50, 1.0f, 1.0f, UINT32_MAX, 4, 1, {5}}},
    {"{\"pad_token_id\": 100}", SLM2_E_TOKEN, "pad_token_id", {false}},
    {"{\"temperature\": 0}", SLM2_OK, "", {false, 0.0f, 50, 1.0f, 1.0f, 3, 4, 1, {5}}},
    {"{\"temperature\": -0.5}", SLM2_E_UNSUPPORTED, "temperature", {false}},
    {"{\"temperature\": 1e39}", SLM2_E_UNSUPPORTED, "temperature", {false}},
    {"{\"temperature\": \"hot\"}", SLM2_E_JSON, NULL, {false}},
    {"{\"top_p\": 1.5}", SLM2_E_UNSUPPORTED, "top_p", {false}},
    {"{\"top_k\": -1}", SLM2_E_JSON, NULL, {false}},
    {"{\"repetition_penalty\": 0}", SLM2_E_UNSUPPORTED, "repetition_penalty", {false}},
    {"{\"repetition_penalty\": 1e-60}", SLM2_E_UNSUPPORTED, "repetition_penalty", {false}},
    {"{\"do_sample\": 1}", SLM2_E_JSON, NULL, {false}},
    {"{\"min_p\": 0, \"typical_p\": 1.0, \"num_beams\": 1, \"no_repeat_ngram_size\": 0}",
     SLM2_OK,
     "",
     {false, 1.0f, 50, 1.0f, 1.0f, 3, 4, 1, {5}}},
    {"{\"min_p\": 0.05}", SLM2_E_UNSUPPORTED, "min_p", {false}},
    {"{\"typical_p\": 0.9}", SLM2_E_UNSUPPORTED, "typical_p", {false}},
    {"{\"num_beams\": 4}", SLM2_E_UNSUPPORTED, "num_beams", {false}},
    {"{\"no_repeat_ngram_size\": 3}", SLM2_E_UNSUPPORTED, "no_repeat_ngram_size", {false}},
    {"{\"suppress_tokens\": [1]}", SLM2_E_UNSUPPORTED, "suppress_tokens", {false}},
    {"{\"bad_words_ids\": null}", SLM2_OK, "", {false, 1.0f, 50, 1.0f, 1.0f, 3, 4, 1, {5}}},
    {"{\"max_new_tokens\": 2048, \"transformers_version\": \"4.51.0\"}",
     SLM2_OK,
     "",
     {false, 1.0f, 50, 1.0f, 1.0f, 3, 4, 1, {5}}},
    {"{\"top_k\": 1, \"top_k\": 1}", SLM2_E_JSON, "top_k", {false}},
    {"[]", SLM2_E_JSON, NULL, {false}},
    {"{} {}", SLM2_E_JSON, NULL, {false}},
    {"", SLM2_E_JSON, NULL, {false}},
};

static void test_generation(void) {
  const slm2_generation ids = {.bos = 3, .pad = 4, .n_eos = 1, .eos = {5}};
  for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++) {
    slm2_generation g = {.top_k = 77};
    const slm2_generation *w = &generations[i].want;
    slm2_error error = {.code = SLM2_OK};
    const char *json = generations[i].json;
    slm2_status status = slm2_hf_generation(json, json == NULL ? 0 : strlen(json), &ids, 100, &g, &error);
    bool good = status == generations[i].status;
    if (status == SLM2_OK) {
      good = good && g.do_sample == w->do_sample && g.temperature == w->temperature && g.top_k == w->top_k &&
             g.top_p == w->top_p && g.repeat_penalty == w->repeat_penalty && g.bos == w->bos && g.pad == w->pad &&
             g.n_eos == w->n_eos && memcmp(g.eos, w->eos, w->n_eos * sizeof g.eos[0]) == 0;
    } else {
      good = good && g.top_k == 77 && (generations[i].name == NULL || strcmp(error.name, generations[i].name) == 0);
    }
    if (!CHECK_CASE(good, json == NULL ? "absent" : json))
      printf("  %s: %s: %s\n", slm2_status_name(status), error.name, error.message);
  }
}

/* --- chat templates ------------------------------------------------------------------------------------------- */

static void test_templates(void) {
  size_t n_jinja, n_config;
  char *jinja = test_read_file("tests/data/qwen3/chat_template_c1899de.jinja", &n_jinja);
  char *config = test_read_file("tests/data/qwen3/tokenizer_config.json", &n_config), *scratch = malloc(n_config);
  uint8_t sha[32], other[32];
  slm2_error error;
  bool found;
  CHECK(slm2_hf_chat_template(jinja, n_jinja, NULL, 0, NULL, &found, sha, &error) == SLM2_OK && found);
  CHECK(slm2_known_chat_format(sha) == SLM2_CHAT_QWEN3);
  CHECK(slm2_hf_chat_template(NULL, 0, config, n_config, scratch, &found, other, &error) == SLM2_OK && found &&
        memcmp(sha, other, 32) == 0);
  CHECK(slm2_hf_chat_template("x", 1, config, n_config, scratch, &found, other, &error) == SLM2_OK && found &&
        memcmp(sha, other, 32) != 0);
  CHECK(slm2_known_chat_format(other) == SLM2_CHAT_NONE);
  CHECK(slm2_hf_chat_template(NULL, 0, NULL, 0, NULL, &found, other, &error) == SLM2_OK && !found);
  free(scratch);
  free(config);
  free(jinja);
  static const struct {
    const char *json;
    slm2_status status;
    const char *text; /* NULL: none is found */
  } cases[] = {
      {"{\"chat_template\": \"a\\n\\u00e4\"}", SLM2_OK, "a\n\xc3\xa4"},
      {"{\"chat_template\": null}", SLM2_OK, NULL},
      {"{\"other\": {\"chat_template\": \"a\"}}", SLM2_OK, NULL},
      {"{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}, {\"template\": \"d\", \"name\": \"default\"}]}",
       SLM2_OK, "d"},
      {"{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}]}", SLM2_OK, NULL},
      {"{\"chat_template\": [{\"name\": \"default\"}]}", SLM2_E_JSON, NULL},
      {"{\"chat_template\": [\"a\"]}", SLM2_E_JSON, NULL},
      {"{\"chat_template\": 1}", SLM2_E_JSON, NULL},
      {"{\"chat_template\": \"a\", \"chat_template\": \"a\"}", SLM2_E_JSON, NULL},
      {"[]", SLM2_E_JSON, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t n = strlen(cases[i].json);
    char *text = malloc(n);
    memcpy(text, cases[i].json, n);
    scratch = malloc(n);
    slm2_status status = slm2_hf_chat_template(NULL, 0, text, n, scratch, &found, sha, &error);
    CHECK_CASE(status == cases[i].status, cases[i].json);
    if (status == SLM2_OK) CHECK_CASE(found == (cases[i].text != NULL), cases[i].json);
    if (status == SLM2_OK && found) {
      slm2_sha256_of(cases[i].text, strlen(cases[i].text), other);
      CHECK_CASE(memcmp(sha, other, 32) == 0, cases[i].json);
    }
    free(scratch);
    free(text);
  }
}

/* --- known revisions ---------------------------------------------------------------------------------------------- */

static int is_hex(const char *s, size_t n) { return strlen(s) == n && strspn(s, "0123456789abcdef") == n; }

static void test_known(void) {
  static const char *const files[] = {"tests/data/qwen3/config-0.6B.json", "tests/data/qwen3/config-1.7B.json",
                                      "tests/data/qwen3/config-4B.json", "tests/data/qwen3/config-8B.json"};
  /* Parameters of the checkpoints as published: all but the 4B's store lm_head.weight. */
  static const uint64_t values[] = {751632384, 2031739904, 4022468096, 8190735360};
  CHECK(slm2_n_known_revisions == 4);
  for (uint32_t k = 0; k < slm2_n_known_revisions; k++) {
    const slm2_known_revision *r = &slm2_known_revisions[k];
    uint8_t sha[32];
    size_t n;
    uint64_t bytes = 0;
    char *text = test_read_file(files[k], &n);
    slm2_sha256_of(text, n, sha);
    CHECK_CASE(slm2_known_hash_is(r->config, sha), r->source);
    free(text);
    text = test_read_file("tests/data/qwen3/generation_config.json", &n);
    slm2_sha256_of(text, n, sha);
    CHECK(slm2_known_hash_is(r->generation, sha) && !slm2_known_hash_is(r->config, sha));
    free(text);
    text = test_read_file("tests/data/qwen3/tokenizer_config.json", &n);
    slm2_sha256_of(text, n, sha);
    CHECK(slm2_known_hash_is(r->tokenizer_config, sha));
    free(text);
    CHECK(is_hex(r->revision, 40) && is_hex(r->config, 64) && is_hex(r->generation, 64) && is_hex(r->tokenizer, 64) &&
          is_hex(r->tokenizer_config, 64));
    CHECK(r->n_shards >= 1 && r->n_shards <= SLM2_KNOWN_MAX_SHARDS && strcmp(r->license, "apache-2.0") == 0);
    for (uint32_t i = 0; i < r->n_shards; i++) {
      CHECK_CASE(is_hex(r->shards[i].sha256, 64), r->source);
      for (uint32_t j = 0; j < i; j++) CHECK_CASE(r->shards[i].bytes != r->shards[j].bytes, r->source);
      bytes += r->shards[i].bytes;
    }
    /* BF16 data, and headers of about 115 bytes for each of up to 400 tensors */
    CHECK_CASE(bytes > 2 * values[k] && bytes - 2 * values[k] < 120 * 400 + 8 * r->n_shards, r->source);
  }
}

/* Recognition itself, with a table that knows the tiny untied checkpoint. */
static void test_match(void) {
  checkpoint *c = checkpoint_load("tests/data/hf-tiny/untied");
  slm2_sink sink = checkpoint_sink(c);
  slm2_error error;
  char digits[8][65];
  slm2_known_revision known[2] = {slm2_known_revisions[0], {.source = "tiny", .n_shards = 4}};
  const slm2_known_revision *found;
  const slm2_source_file files[] = {SLM2_SOURCE_CONFIG, SLM2_SOURCE_GENERATION, SLM2_SOURCE_TOKENIZER,
                                    SLM2_SOURCE_TOKENIZER_CONFIG};
  const char **hashes[] = {&known[1].config, &known[1].generation, &known[1].tokenizer, &known[1].tokenizer_config};
  uint8_t sha[32], buffer[1000];
  for (int i = 0; i < 4; i++) {
    slm2_sha256_of(c->source.text[files[i]], c->source.text_bytes[files[i]], sha);
    slm2_hex(sha, 32, digits[i]);
    *hashes[i] = digits[i];
    slm2_sha256_of(c->shards[i], (size_t)c->shard_bytes[i], sha);
    slm2_hex(sha, 32, digits[4 + i]);
    known[1].shards[3 - i] = (slm2_known_shard){c->shard_bytes[i], digits[4 + i]}; /* the order does not matter */
  }
  checkpoint_set_text(c, SLM2_SOURCE_CHAT_TEMPLATE, NULL);
#define MATCH() slm2_known_match(known, 2, &c->source, &sink, buffer, sizeof buffer, &found, &error)
  CHECK(MATCH() == SLM2_OK && found == &known[1] && c->reads > 180);
  /* one byte of a shard, and a hash of each small file: the weights are not even read for the latter */
  c->shards[2][c->shard_bytes[2] - 1] ^= 1;
  CHECK(MATCH() == SLM2_OK && found == NULL);
  c->shards[2][c->shard_bytes[2] - 1] ^= 1;
  for (int i = 0; i < 4; i++) {
    digits[i][63] = digits[i][63] == '0' ? '1' : '0';
    c->reads = 0;
    CHECK(MATCH() == SLM2_OK && found == NULL && c->reads == 0);
    slm2_sha256_of(c->source.text[files[i]], c->source.text_bytes[files[i]], sha);
    slm2_hex(sha, 32, digits[i]);
  }
  CHECK(MATCH() == SLM2_OK && found == &known[1]);
  c->shard_bytes[0]--;
  CHECK(MATCH() == SLM2_OK && found == NULL);
  c->shard_bytes[0]++;
  c->reads = 0;
  c->fail_read = 77;
  CHECK(MATCH() == SLM2_E_IO);
  c->fail_read = -1;
  checkpoint_set_text(c, SLM2_SOURCE_CHAT_TEMPLATE, "another template");
  CHECK(MATCH() == SLM2_OK && found == NULL);
  checkpoint_set_text(c, SLM2_SOURCE_CHAT_TEMPLATE, NULL);
  checkpoint_set_text(c, SLM2_SOURCE_GENERATION, NULL);
  CHECK(MATCH() == SLM2_OK && found == NULL);
  CHECK(c->progress_faults == 0);
  checkpoint_free(c);
}

int main(void) {
  test_real();
  test_config();
  test_generation();
  test_templates();
  test_known();
  test_match();
  return test_end("hf");
}
