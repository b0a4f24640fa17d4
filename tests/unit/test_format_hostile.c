/* tests/unit/test_format_hostile.c: files that are not slm2 files. A table of malformed headers, each refused with its
 * code, name and reason; the fault classes of malformed safetensors files (length, JSON, names, offsets, shapes,
 * dtypes) among them; every truncation, every byte of the header at every value, damaged data, random edits. */
#include "base/error.h"
#include "tests/unit/format_file.h"

/* Under sanitizers, which are several times slower, every seventh value of each header byte. */
#if defined(__SANITIZE_ADDRESS__)
#define VALUE_STEP 7
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VALUE_STEP 7
#endif
#endif
#ifndef VALUE_STEP
#define VALUE_STEP 1
#endif

/* A header text with one edit: the first `from` becomes `to`; trailing spaces are made right again. */
static uint8_t *edited(const format_file *f, const char *from, const char *to, size_t *n) {
  size_t length = (size_t)f->header.header_bytes;
  char *text = calloc(1, length + 1);
  memcpy(text, f->bytes + 8, length);
  while (text[length - 1] == ' ') text[--length] = 0;
  char *at = strstr(text, from);
  if (at == NULL) {
    printf("FAIL no \"%s\" in the header\n", from);
    exit(1);
  }
  size_t before = (size_t)(at - text), after = length - before - strlen(from), total = before + strlen(to) + after;
  *n = (8 + total + 63) / 64 * 64 - 8;
  uint8_t *out = malloc(*n);
  memset(out, ' ', *n);
  memcpy(out, text, before);
  memcpy(out + before, to, strlen(to));
  memcpy(out + before + strlen(to), at + strlen(from), after);
  free(text);
  return out;
}

typedef struct header_case {
  const char *from, *to;
  slm2_status status;
  const char *name, *words; /* the error's name, and text in its message */
} header_case;

#define META "{\"__metadata__\":{\"format\":\"slm2\","
#define EMBED "model.embed_tokens.weight"
#define NORM0 "model.layers.0.input_layernorm.weight"
#define EMBED_ENTRY "\"" EMBED "\":{\"dtype\":\"Q8_0\",\"shape\":[32,32],\"data_offsets\":[128,1216]}"
#define TWO_64 "18446744073709551616"

static const header_case cases[] = {
  /* JSON and its spelling */
  {"{\"__metadata__\"", " {\"__metadata__\"", SLM2_E_FORMAT, "", "byte 8 is 0x20"},
  {"{\"__metadata__\"", "[\"__metadata__\"", SLM2_E_FORMAT, "", "byte 8 is 0x5b"},
  {"{\"__metadata__\"", "\xef\xbb\xbf{\"__metadata__\"", SLM2_E_FORMAT, "", "byte 8 is 0xef"},
  {"[12480,12608]}}", "[12480,12608]}}x", SLM2_E_JSON, "slm2 header", "more text"},
  {"[12480,12608]}}", "[12480,12608]}}{}", SLM2_E_JSON, "slm2 header", "more text"},
  {"[12480,12608]}}", "[12480,12608]}", SLM2_E_JSON, "slm2 header", "ends early"},
  {"[12480,12608]}}", "[12480,12608]}}\n", SLM2_E_FORMAT, "", "spelled differently"},
  {"[12480,12608]}}", "[12480,12608]}}\t ", SLM2_E_FORMAT, "", "spelled differently"},
  {"\"shape\":[32]", "\"shape\":[32 ]", SLM2_E_FORMAT, "", "spelled differently"},
  {",\"rope.inv_freq\"", ", \"rope.inv_freq\"", SLM2_E_FORMAT, "", "spelled differently"},
  {"\"license\":", "\"license\" :", SLM2_E_FORMAT, "", "spelled differently"},
  {"\"shape\":[32]", "\"shape\":[32,]", SLM2_E_JSON, "slm2 header", "value"},
  {"\"shape\":[32]", "\"shape\":[\"32\"]", SLM2_E_JSON, NORM0, "not a number"},
  {"\"shape\":[32]", "\"shape\":[[32]]", SLM2_E_JSON, NORM0, "not a number"},
  {"\"shape\":[32]", "\"shape\":32", SLM2_E_JSON, "slm2 header", "an array was expected"},
  {"\"shape\":[32]", "\"shape\":[032]", SLM2_E_JSON, "slm2 header", "malformed number"},
  {"\"license\":\"apache-2.0\"", "\"license\":\"apache\xff\"", SLM2_E_JSON, "slm2 header", "UTF-8"},
  {"\"license\":\"apache-2.0\"", "\"license\":\"apache\x01\"", SLM2_E_JSON, "slm2 header", "control"},
  {"\"license\":\"apache-2.0\"", "\"license\":\"apache\xc3\xa9\"", SLM2_E_FORMAT, "license", "a-z"},
  {"\"license\":\"apache-2.0\"", "\"license\":\"apache\\u002d2.0\"", SLM2_E_FORMAT, "apache\\u002d2.0", "escape in a string"},
  {"\"license\":\"apache-2.0\"", "\"license\":\"\\u0000\"", SLM2_E_FORMAT, "\\u0000", "escape in a string"},
  {"\"license\":\"apache-2.0\"", "\"license\":7", SLM2_E_JSON, "slm2 header", "a string was expected, but a number came"},
  {"\"license\":\"apache-2.0\"", "\"license\":{\"a\":{\"b\":[]}}", SLM2_E_JSON, "slm2 header",
  "a string was expected, but an object came"},
  {"\"license\":\"apache-2.0\"", "\"license\":null", SLM2_E_JSON, "slm2 header", "a string was expected"},
  {"\"license\"", "\"l\\u0069cense\"", SLM2_E_FORMAT, "l\\u0069cense", "escape in a key"},
  {"\"" EMBED "\"", "\"model.embed\\u005ftokens.weight\"", SLM2_E_FORMAT, "model.embed\\u005ftokens.weight", "escape in a key"},
  {"\"" EMBED "\"", "\"model.\\ud800\"", SLM2_E_JSON, "slm2 header", "lone surrogate"},
  {"\"" EMBED "\"", "\"model.\xff\"", SLM2_E_JSON, "slm2 header", "UTF-8"},
  {"\"dtype\":\"U8\"", "\"dtype\":\"\\u0055\\u0038\"", SLM2_E_FORMAT, "\\u0055\\u0038", "escape in a string"},
  {"\"dtype\":\"U8\"", "\"dtype\":[[[[[[[[[[[[[[[[\"U8\"]]]]]]]]]]]]]]]]", SLM2_E_JSON, "slm2 header", "a string was expected"},
  /* other formats, other versions */
  {META, "{\"__metadata__\":{\"format\":\"pt\",", SLM2_E_FORMAT, "format", "slm2 convert"},
  {META, "{\"__metadata__\":{", SLM2_E_FORMAT, "format", "slm2 convert"},
  {"\"__metadata__\"", "\"tensor\"", SLM2_E_FORMAT, "format", "slm2 convert"},
  {"\"format_version\":\"1\"", "\"format_version\":\"2\"", SLM2_E_VERSION, "format_version", "is \"2\"; this build reads 1"},
  {"\"format_version\":\"1\"", "\"format_version\":\"01\"", SLM2_E_VERSION, "format_version", "is \"01\""},
  {"\"format_version\":\"1\"", "\"format_version\":1", SLM2_E_JSON, "slm2 header", "a string was expected"},
  {"\"architecture\":\"qwen3\"", "\"architecture\":\"llama\"", SLM2_E_UNSUPPORTED, "architecture",
  "\"llama\"; this build reads qwen3"},
  {"\"chat_format\":\"qwen3\"", "\"chat_format\":\"chatml\"", SLM2_E_UNSUPPORTED, "chat_format", "\"chatml\""},
  {"\"chunk_bytes\":\"4194304\"", "\"chunk_bytes\":\"1048576\"", SLM2_E_UNSUPPORTED, "chunk_bytes", "\"1048576\""},
  {"\"weight_form\":\"Q8_0\"", "\"weight_form\":\"Q4_0\"", SLM2_E_UNSUPPORTED_QUANTIZATION, "weight_form", "\"Q4_0\""},
  /* metadata keys and values */
  {"\"source\":", "\"sauce\":", SLM2_E_FORMAT, "sauce", "unknown name \"sauce\""},
  {"\"source\":", "\"license\":", SLM2_E_FORMAT, "license", "duplicate name \"license\""},
  {"\"source\":\"Qwen/Qwen3-0.6B\",", "", SLM2_E_FORMAT, "source", "\"source\" is missing before \"source_revision\""},
  {"\"source\":\"Qwen/Qwen3-0.6B\"", "\"date\":\"today\",\"source\":\"Qwen/Qwen3-0.6B\"", SLM2_E_FORMAT, "date", "unknown name"},
  {",\"chunk_bytes\":\"4194304\",\"chunk_sha256\":", ",\"chunk_sha256\":", SLM2_E_FORMAT, "chunk_bytes", "missing before"},
  {"\"},\"tokenizer\"", "\",\"x\":\"y\"},\"tokenizer\"", SLM2_E_FORMAT, "x", "unknown name"},
  {"\"},\"tokenizer\"", "\",\"format\":\"slm2\"},\"tokenizer\"", SLM2_E_FORMAT, "format", "duplicate name"},
  {"\"tokenizer_bytes\":\"5\"", "\"tokenizer_bytes\":\"05\"", SLM2_E_FORMAT, "tokenizer_bytes", "\"05\""},
  {"\"tokenizer_bytes\":\"5\"", "\"tokenizer_bytes\":\"-5\"", SLM2_E_FORMAT, "tokenizer_bytes", "plain decimal"},
  {"\"tokenizer_bytes\":\"5\"", "\"tokenizer_bytes\":\"\"", SLM2_E_FORMAT, "tokenizer_bytes", "plain decimal"},
  {"\"tokenizer_bytes\":\"5\"", "\"tokenizer_bytes\":\"" TWO_64 "\"", SLM2_E_FORMAT, "tokenizer_bytes", "plain decimal"},
  {"\"tokenizer_bytes\":\"5\"", "\"tokenizer_bytes\":\"18446744073709551615\"", SLM2_E_UNSUPPORTED, "tokenizer_bytes",
  "268435456"},
  {"\"hidden_size\":\"32\"", "\"hidden_size\":\"33\"", SLM2_E_DIMENSION_MISMATCH, "hidden_size",
  "33, which is not a multiple of 32"},
  {"\"hidden_size\":\"32\"", "\"hidden_size\":\"4294967296\"", SLM2_E_FORMAT, "hidden_size", "plain decimal"},
  {"\"hidden_size\":\"32\"", "\"hidden_size\":\"4294967264\"", SLM2_E_UNSUPPORTED, "hidden_size", "4294967264"},
  {"\"hidden_size\":\"32\"", "\"hidden_size\":\"3e1\"", SLM2_E_FORMAT, "hidden_size", "3e1"},
  {"\"num_hidden_layers\":\"1\"", "\"num_hidden_layers\":\"0\"", SLM2_E_UNSUPPORTED, "num_hidden_layers", "outside 1 .. 256"},
  {"\"num_hidden_layers\":\"1\"", "\"num_hidden_layers\":\"4294967295\"", SLM2_E_UNSUPPORTED, "num_hidden_layers", "4294967295"},
  {"\"num_hidden_layers\":\"1\"", "\"num_hidden_layers\":\"2\"", SLM2_E_FORMAT, "model.layers.1.input_layernorm.weight",
   "missing before \"model.norm.weight\""},
  {"\"num_key_value_heads\":\"4\"", "\"num_key_value_heads\":\"3\"", SLM2_E_DIMENSION_MISMATCH, "num_attention_heads",
  "4, which is not a multiple of num_key_value_heads 3"},
  {"\"head_dim\":\"8\"", "\"head_dim\":\"10\"", SLM2_E_DIMENSION_MISMATCH, "head_dim", "10"},
  {"\"vocab_size\":\"32\"", "\"vocab_size\":\"151669\"", SLM2_E_DIMENSION_MISMATCH, "vocab_size", "151669"},
  {"\"rope_theta\":\"10000\"", "\"rope_theta\":\"10000.0\"", SLM2_E_FORMAT, "rope_theta", "10000.0"},
  {"\"rms_norm_eps\":\"1e-06\"", "\"rms_norm_eps\":\"1e-6\"", SLM2_E_FORMAT, "", "spelled differently"},
  {"\"rms_norm_eps\":\"1e-06\"", "\"rms_norm_eps\":\"0.000001\"", SLM2_E_FORMAT, "", "spelled differently"},
  {"\"rms_norm_eps\":\"1e-06\"", "\"rms_norm_eps\":\"nan\"", SLM2_E_FORMAT, "rms_norm_eps", "finite decimal"},
  {"\"rms_norm_eps\":\"1e-06\"", "\"rms_norm_eps\":\"1e999\"", SLM2_E_FORMAT, "rms_norm_eps", "finite decimal"},
  {"\"rms_norm_eps\":\"1e-06\"", "\"rms_norm_eps\":\"0.0\"", SLM2_E_UNSUPPORTED, "rms_norm_eps", "above 0"},
  {"\"temperature\":\"0.6\"", "\"temperature\":\"-1.0\"", SLM2_E_FORMAT, "temperature", "finite number from 0"},
  {"\"temperature\":\"0.6\"", "\"temperature\":\"0.60\"", SLM2_E_FORMAT, "", "spelled differently"},
  {"\"do_sample\":\"true\"", "\"do_sample\":\"True\"", SLM2_E_FORMAT, "do_sample", "True"},
  {"\"do_sample\":\"true\"", "\"do_sample\":true", SLM2_E_JSON, "slm2 header", "a string was expected, but true came"},
  {"\"bos_token_id\":\"none\"", "\"bos_token_id\":\"4294967295\"", SLM2_E_FORMAT, "bos_token_id", "4294967295"},
  {"\"bos_token_id\":\"none\"", "\"bos_token_id\":\"32\"", SLM2_E_TOKEN, "bos_token_id", "32, but vocab_size is 32"},
  {"\"eos_token_ids\":\"5,3\"", "\"eos_token_ids\":\"5,\"", SLM2_E_FORMAT, "eos_token_ids", "commas"},
  {"\"eos_token_ids\":\"5,3\"", "\"eos_token_ids\":\"\"", SLM2_E_FORMAT, "eos_token_ids", "commas"},
  {"\"eos_token_ids\":\"5,3\"", "\"eos_token_ids\":\"5, 3\"", SLM2_E_FORMAT, "eos_token_ids", "commas"},
  {"\"eos_token_ids\":\"5,3\"", "\"eos_token_ids\":\"0,1,2,3,4,5,6,7,8\"", SLM2_E_FORMAT, "eos_token_ids", "1 to 8"},
  {"\"eos_token_ids\":\"5,3\"", "\"eos_token_ids\":\"99\"", SLM2_E_TOKEN, "eos_token_ids", "99"},
  {"\"license\":\"apache-2.0\"", "\"license\":\"0123456789012345678901234567890123456789012345678901234567890123\"",
  SLM2_E_FORMAT, "license", "shorter"},
  {"c1899de289", "C1899de289", SLM2_E_FORMAT, "source_revision", "40 lower-case"},
  {"\"chunk_sha256\":\"", "\"chunk_sha256\":\"00", SLM2_E_FORMAT, "chunk_sha256", "66 digits"},
  {"\"chunk_sha256\":\"", "\"chunk_sha256\":\"\",\"x\":\"", SLM2_E_FORMAT, "x", "unknown name"},
  /* sections: names */
  {EMBED_ENTRY ",", "", SLM2_E_FORMAT, EMBED, "\"" EMBED "\" is missing before \"" NORM0 "\""},
  {EMBED_ENTRY ",", EMBED_ENTRY "," EMBED_ENTRY ",", SLM2_E_FORMAT, EMBED, "duplicate name"},
  {"\"" EMBED "\"", "\"tokenizer\"", SLM2_E_FORMAT, "tokenizer", "duplicate name"},
  {"\"" EMBED "\"", "\"model.embed_tokens.weights\"", SLM2_E_FORMAT, "model.embed_tokens.weights", "unknown name"},
  {"\"" EMBED "\"", "\"\"", SLM2_E_FORMAT, "", "unknown name"},
  {"[12480,12608]}}", "[12480,12608]},\"lm_head.weight\":{\"dtype\":\"Q8_0\",\"shape\":[32,32],\"data_offsets\":[12608,13696]}}",
   SLM2_E_FORMAT, "lm_head.weight", "unknown name"},
  {"[12480,12608]}}", "[12480,12608]},\"tokenizer\":{}}", SLM2_E_FORMAT, "tokenizer", "duplicate name"},
  {",\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[32],\"data_offsets\":[12480,12608]}}", "}", SLM2_E_FORMAT,
  "model.norm.weight", "is missing"},
  {"\"tie_word_embeddings\":\"true\"", "\"tie_word_embeddings\":\"false\"", SLM2_E_FORMAT, "lm_head.weight", "is missing"},
  /* sections: entries */
  {"{\"dtype\":\"U8\",", "{", SLM2_E_FORMAT, "tokenizer", "\"dtype\""},
  {"{\"dtype\":\"U8\",", "{\"type\":\"U8\",", SLM2_E_FORMAT, "tokenizer", "\"dtype\""},
  {",\"data_offsets\":[0,64]", "", SLM2_E_FORMAT, "data_offsets", "is missing"},
  {"[0,64]}", "[0,64],\"note\":1}", SLM2_E_JSON, "slm2 header", "the end of an object was expected, but a key came"},
  {"\"tokenizer\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,64]}", "\"tokenizer\":[]", SLM2_E_JSON,
  "slm2 header", "an object was expected"},
  {"\"dtype\":\"Q8_0\"", "\"dtype\":\"Q4_K\"", SLM2_E_UNSUPPORTED_QUANTIZATION, EMBED, "has dtype Q4_K, but Q8_0 is demanded"},
  {"\"dtype\":\"Q8_0\"", "\"dtype\":\"F16\"", SLM2_E_UNSUPPORTED_QUANTIZATION, EMBED, "F16"},
  {"\"dtype\":\"Q8_0\"", "\"dtype\":\"\"", SLM2_E_UNSUPPORTED_QUANTIZATION, EMBED, "Q8_0"},
  {"\"dtype\":\"Q8_0\"", "\"dtype\":\"Q8_0_P32\"", SLM2_E_FORMAT, EMBED,
  "has dtype Q8_0_P32, but Q8_0 is demanded (weight_form is Q8_0)"},
  {"\"dtype\":\"Q8_0\"", "\"dtype\":\"F32\"", SLM2_E_FORMAT, EMBED, "has dtype F32"},
  {"\"dtype\":\"U8\"", "\"dtype\":\"I8\"", SLM2_E_UNSUPPORTED_QUANTIZATION, "tokenizer", "I8"},
  {"\"dtype\":\"U8\"", "\"dtype\":8", SLM2_E_JSON, "slm2 header", "a string was expected"},
  {"\"shape\":[32,32]", "\"shape\":[64,32]", SLM2_E_DIMENSION_MISMATCH, EMBED, "shape [64,32], but the config demands [32,32]"},
  {"\"shape\":[32,32]", "\"shape\":[1024]", SLM2_E_DIMENSION_MISMATCH, EMBED, "1 dimensions, but 2"},
  {"\"shape\":[32,32]", "\"shape\":[]", SLM2_E_DIMENSION_MISMATCH, EMBED, "0 dimensions"},
  {"\"shape\":[32,32]", "\"shape\":[0,1024]", SLM2_E_DIMENSION_MISMATCH, EMBED, "[0,1024]"},
  {"\"shape\":[32,32]", "\"shape\":[4294967296,4294967296]", SLM2_E_DIMENSION_MISMATCH, EMBED, "[4294967296,4294967296]"},
  {"\"shape\":[32,32]", "\"shape\":[32,32,1]", SLM2_E_DIMENSION_MISMATCH, EMBED, "at least 3 dimensions"},
  {"\"shape\":[32,32]", "\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", SLM2_E_DIMENSION_MISMATCH, EMBED,
  "at least 3 dimensions"},
  {"\"shape\":[32,32]", "\"shape\":[32,-32]", SLM2_E_JSON, EMBED, "non-negative integer"},
  {"\"shape\":[32,32]", "\"shape\":[32,32.0]", SLM2_E_JSON, EMBED, "non-negative integer"},
  {"\"shape\":[32]", "\"shape\":[64]", SLM2_E_DIMENSION_MISMATCH, NORM0, "shape [64], but the config demands [32]"},
  {"\"shape\":[32]", "\"shape\":[4611686018427387904]", SLM2_E_DIMENSION_MISMATCH, NORM0, "[4611686018427387904]"},
  {"\"shape\":[32]", "\"shape\":[" TWO_64 "]", SLM2_E_JSON, NORM0, "larger than 18446744073709551615"},
  {"\"shape\":[5]", "\"shape\":[6]", SLM2_E_DIMENSION_MISMATCH, "tokenizer", "[6]"},
  /* sections: offsets */
  {"[128,1216]", "[192,1280]", SLM2_E_FORMAT, EMBED, "a hole of 64 bytes"},
  {"[128,1216]", "[64,1152]", SLM2_E_FORMAT, EMBED, "it overlaps the 64 bytes before 128"},
  {"[128,1216]", "[0,1088]", SLM2_E_FORMAT, EMBED, "overlaps the 128 bytes"},
  {"[128,1216]", "[136,1224]", SLM2_E_FORMAT, EMBED, "136, which is not a multiple of 64"},
  {"[128,1216]", "[1216,128]", SLM2_E_FORMAT, EMBED, "begins at 1216, after its end 128"},
  {"[128,1216]", "[128,1152]", SLM2_E_FORMAT, EMBED, "takes 1024 bytes, but its shape demands 1088"},
  {"[128,1216]", "[128,1280]", SLM2_E_FORMAT, EMBED, "takes 1152 bytes"},
  {"[128,1216]", "[128,128]", SLM2_E_FORMAT, EMBED, "takes 0 bytes"},
  {"[128,1216]", "[128,18446744073709551615]", SLM2_E_FORMAT, EMBED, "takes 18446744073709551487 bytes"},
  {"[128,1216]", "[128," TWO_64 "]", SLM2_E_JSON, EMBED, "larger than 18446744073709551615"},
  {"[128,1216]", "[-128,1216]", SLM2_E_JSON, EMBED, "non-negative integer"},
  {"[128,1216]", "[128.0,1216]", SLM2_E_JSON, EMBED, "non-negative integer"},
  {"[128,1216]", "[128,1.216e3]", SLM2_E_JSON, EMBED, "non-negative integer"},
  {"[128,1216]", "[128]", SLM2_E_FORMAT, EMBED, "not two numbers"},
  {"[128,1216]", "[128,1216,1216]", SLM2_E_FORMAT, EMBED, "not two numbers"},
  {"[128,1216]", "\"128,1216\"", SLM2_E_JSON, "slm2 header", "an array was expected"},
  {"[0,64]", "[0,5]", SLM2_E_FORMAT, "tokenizer", "takes 5 bytes, but its shape demands 64 (5 padded to 64)"},
};

static void test_headers(void) {
  format_file f = format_build(&format_tiny, SLM2_FORM_ROWS, 5, 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t n;
    uint8_t *json = edited(&f, cases[i].from, cases[i].to, &n);
    slm2_error e = {0};
    slm2_header h;
    memset(&h, 0x5a, sizeof h);
    slm2_status status = slm2_header_parse(json, n, 8 + n + f.header.data_bytes, &h, &e);
    if (!(CHECK_CASE(status == cases[i].status && e.code == status, cases[i].to) &
          CHECK_CASE(strcmp(e.name, cases[i].name) == 0 && strstr(e.message, cases[i].words) != NULL, cases[i].to))) {
      printf("  %s: %s: %s\n", slm2_status_name(status), e.name, e.message);
    }
    CHECK_CASE(e.offset == SLM2_NO_OFFSET || e.offset <= 8 + n, cases[i].to);
    for (size_t k = 0; k < sizeof h; k++) CHECK(((uint8_t *)&h)[k] == 0x5a);
    free(json);
  }
  free(f.bytes);
}

/* Deep nesting and very many dimensions or names cost no more than their text. */
static void test_large(void) {
  format_file f = format_build(&format_tiny, SLM2_FORM_ROWS, 5, 1);
  char *to = malloc(900001);
  size_t n;
  slm2_error e;
  slm2_header h;
  memset(to, '[', 900000);
  memcpy(to, "\"shape\":", 8);
  to[900000] = 0;
  uint8_t *json = edited(&f, "\"shape\":[5]", to, &n);
  CHECK(slm2_header_parse(json, n, UINT64_MAX, &h, &e) == SLM2_E_JSON);
  free(json);
  for (size_t i = 8; i < 900000; i++) to[i] = i == 8 ? '[' : i % 2 ? '1' : ',';
  json = edited(&f, "\"shape\":[5]", to, &n);
  CHECK(slm2_header_parse(json, n, UINT64_MAX, &h, &e) == SLM2_E_DIMENSION_MISMATCH);
  free(json);
  memcpy(to, "\"x", 2);
  memset(to + 2, 'y', 900000 - 2);
  json = edited(&f, "\"rope.inv_freq", to, &n);
  CHECK(slm2_header_parse(json, n, UINT64_MAX, &h, &e) == SLM2_E_FORMAT && strlen(e.name) == sizeof e.name - 1);
  free(json);
  free(to);
  free(f.bytes);
}

static void test_lengths(void) {
  static const struct {
    uint64_t n, file_bytes;
    slm2_status status;
    const char *words;
  } lengths[] = {
    {56, 64, SLM2_OK, ""}, {56, UINT64_MAX, SLM2_OK, ""}, {1048568, UINT64_MAX, SLM2_OK, ""},
    {1048632, UINT64_MAX, SLM2_E_FORMAT, "1048632, more than 1048576"},
    {UINT64_MAX, 70, SLM2_E_FORMAT, "18446744073709551615"}, {UINT64_MAX >> 1, 70, SLM2_E_FORMAT, "9223372036854775807"},
    {100000001, 70, SLM2_E_FORMAT, "100000001"}, {0, 70, SLM2_E_FORMAT, "header length 0"},
    {55, 70, SLM2_E_FORMAT, "multiple of 64"},
    {57, 70, SLM2_E_FORMAT, "multiple of 64"}, {35552, UINT64_MAX, SLM2_E_FORMAT, "slm2 convert"},
    {56, 63, SLM2_E_FORMAT, "beyond the end of the file of 63 bytes"},
    {56, 8, SLM2_E_FORMAT, "beyond"},
    {56, 7, SLM2_E_FORMAT, "7 bytes are too few"}, {0, 0, SLM2_E_FORMAT, "0 bytes are too few"}, /* no length was read */
  };
  slm2_error e;
  uint8_t first[8];
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    uint64_t n = 77;
    slm2_store_u64(first, lengths[i].n);
    CHECK_CASE(slm2_header_length(first, lengths[i].file_bytes, &n, &e) == lengths[i].status, lengths[i].words);
    CHECK_CASE(n == (lengths[i].status == SLM2_OK ? lengths[i].n : 77), lengths[i].words);
    if (lengths[i].status != SLM2_OK) CHECK_CASE(strstr(e.message, lengths[i].words) != NULL, lengths[i].words);
  }
  uint64_t n;
  CHECK(slm2_header_length((const uint8_t *)"GGUF\3\0\0", 1000, &n, &e) == SLM2_E_FORMAT && strstr(e.message,
    "GGUF file") != NULL);
  CHECK(strstr(e.message, "slm2 convert") != NULL);
  CHECK(slm2_header_length((const uint8_t *)"version ", 130, &n, &e) == SLM2_E_FORMAT && strstr(e.message, "Git LFS") != NULL);
  /* a header of nothing but {} */
  uint8_t empty[56];
  slm2_header h;
  memset(empty, ' ', sizeof empty);
  memcpy(empty, "{}", 2);
  CHECK(slm2_header_parse(empty, 56, 64, &h, &e) == SLM2_E_FORMAT && strcmp(e.name, "format") == 0);
  CHECK(slm2_header_parse(empty, 55, 64, &h, &e) == SLM2_E_FORMAT);
  memset(empty + 2, 0, sizeof empty - 2); /* padded with NUL */
  CHECK(slm2_header_parse(empty, 56, 64, &h, &e) == SLM2_E_FORMAT);
}

/* A canonical header in a file of another length; padding that is longer than needed, or not spaces. */
static void test_sizes(void) {
  format_file f = format_build(&format_tiny, SLM2_FORM_ROWS, 5, 1);
  size_t n = (size_t)f.header.header_bytes;
  slm2_header h;
  slm2_error e;
  CHECK(slm2_header_parse(f.bytes + 8, n, f.n, &h, &e) == SLM2_OK);
  CHECK(slm2_header_parse(f.bytes + 8, n, f.n - 1, &h, &e) == SLM2_E_FORMAT && strstr(e.message, "cut short") != NULL &&
    e.offset == f.n - 1);
  CHECK(slm2_header_parse(f.bytes + 8, n, 8 + n, &h, &e) == SLM2_E_FORMAT && strstr(e.message, "cut short") != NULL);
  CHECK(slm2_header_parse(f.bytes + 8, n, f.n + 3, &h, &e) == SLM2_E_FORMAT && strstr(e.message,
    "3 bytes follow") != NULL && e.offset == f.n);
  CHECK(slm2_header_parse(f.bytes + 8, n, 8 + n - 1, &h, &e) == SLM2_E_FORMAT);
  uint8_t *longer = malloc(n + 64);
  memset(longer, ' ', n + 64);
  memcpy(longer, f.bytes + 8, n);
  CHECK(slm2_header_parse(longer, n + 64, f.n + 64, &h, &e) == SLM2_E_FORMAT && strstr(e.message, "canonical one has") != NULL);
  CHECK(longer[n - 1] == ' ');
  longer[n - 1] = 0;
  CHECK(slm2_header_parse(longer, n, f.n, &h, &e) == SLM2_E_JSON);
  longer[n - 1] = '\n';
  CHECK(slm2_header_parse(longer, n, f.n, &h, &e) == SLM2_E_FORMAT && e.offset == 8 + n - 1);
  free(longer);
  free(f.bytes);
}

/* What a parser may do with a text it accepts: nothing but read it. Its fields give the same bytes again. */
static bool refused_or_same(const uint8_t *json, size_t n) {
  uint8_t *exact = malloc(n), *again = malloc(n);
  slm2_header h;
  slm2_error e;
  memcpy(exact, json, n);
  bool good = true;
  if (slm2_header_parse(exact, n, UINT64_MAX, &h, &e) == SLM2_OK) {
    uint8_t hash[32];
    good = h.n_chunks == 1 && slm2_header_chunk_hash(exact, n, &h, 0, hash) == SLM2_OK &&
           slm2_header_write(&h, hash, again, n, &e) == SLM2_OK && memcmp(exact, again, n) == 0;
  }
  free(exact);
  free(again);
  return good;
}

/* Every byte of the header at every value; every length of the file; bytes of the data. */
static void test_mutations(void) {
  format_file f = format_build(&format_tiny, SLM2_FORM_PANELS, 5, 2);
  size_t head = 8 + (size_t)f.header.header_bytes;
  slm2_error e;
  for (size_t at = 0; at < head; at++) {
    uint8_t before = f.bytes[at];
    unsigned bad = 0;
    for (int step = 1; step < 256; step += VALUE_STEP) {
      f.bytes[at] = (uint8_t)(before + step);
      if (at < 8) bad += format_read(f.bytes, f.n, SIZE_MAX, f.n, &e) <= SLM2_NEED_MORE;
      else bad += !refused_or_same(f.bytes + 8, head - 8);
    }
    f.bytes[at] = before;
    CHECK(bad == 0);
  }
  for (size_t n = 0; n < f.n; n++) {
    if (n > head && n % 13 != 0) continue;
    CHECK(format_read(f.bytes, n, SIZE_MAX, UINT64_MAX, &e) == SLM2_NEED_MORE);
    CHECK(format_read(f.bytes, n, SIZE_MAX, n, &e) == SLM2_E_FORMAT);
  }
  for (size_t at = head; at < f.n; at += 11) {
    uint8_t before = f.bytes[at];
    f.bytes[at] = (uint8_t)(before ^ 1u << at % 8);
    CHECK(format_read(f.bytes, f.n, 1000, f.n, &e) == SLM2_E_INTEGRITY);
    f.bytes[at] = 0x80;
    CHECK(before == 0x80 || format_read(f.bytes, f.n, 1000, f.n, &e) == SLM2_E_INTEGRITY);
    f.bytes[at] = before;
  }
  CHECK(format_read(f.bytes, f.n, 1000, f.n, &e) == SLM2_OK);
  free(f.bytes);
}

static void test_random_edits(void) {
  format_file f = format_build(&format_tiny, SLM2_FORM_ROWS, 5, 3);
  size_t n = (size_t)f.header.header_bytes;
  uint8_t *json = malloc(n);
  static const char alphabet[] = "{}[]:,\" \\0123456789eE.-+uabcdtnQ_8\x00\xff\x80";
  uint64_t seed = 7; /* seed 7 */
  unsigned bad = 0;
  for (int i = 0; i < 30000; i++) {
    memcpy(json, f.bytes + 8, n);
    for (uint64_t edits = 1 + test_random(&seed) % 3; edits > 0; edits--) {
      json[test_random(&seed) % n] = (uint8_t)alphabet[test_random(&seed) % (sizeof alphabet - 1)];
    }
    if (i % 4 == 0) { /* a piece moves */
      uint64_t length = test_random(&seed) % 64, from = test_random(&seed) % (n - length), to = test_random(&seed) % (n - length);
      memmove(json + to, f.bytes + 8 + from, (size_t)length);
    }
    bad += !refused_or_same(json, n);
  }
  CHECK(bad == 0);
  free(json);
  free(f.bytes);
}

int main(void) {
  test_headers();
  test_large();
  test_lengths();
  test_sizes();
  test_mutations();
  test_random_edits();
  return test_end("format_hostile");
}
