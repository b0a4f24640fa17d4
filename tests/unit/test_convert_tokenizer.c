/* tests/unit/test_convert_tokenizer.c: tokenizer.json to a tokenizer section. The right bytes come from the independent
 * tests/gen/tokenizer_section.py; every section made is also opened by the tokenizer itself. Then each rule broken once. */
#include "base/sha256.h"
#include "tests/unit/checkpoint.h"
#include "slm2/tokenizer.h"
#include "tokenizer/section.h"

static const char tiny[] = "tests/data/hf-tiny/tied/tokenizer.json";
/* tests/gen/tokenizer_section.py tests/data/hf-tiny/tied/tokenizer.json out.section; sha256sum out.section */
static const char tiny_section[] = "920722820b65bfd2c24bc26db6aa0e496fc4f1bc63c1eec03ecdf4385b7eaddd";

typedef struct converted {
  slm2_status status;
  slm2_error error;
  uint8_t *section;
  size_t n;
} converted;

/* Converts in memory of exactly the announced sizes. */
static converted convert(const char *json, size_t n) {
  converted c = {.section = NULL};
  size_t scratch_bytes, capacity;
  char *text = malloc(n + (n == 0));
  memcpy(text, json, n);
  c.status = slm2_tokenizer_convert_bytes(text, n, &scratch_bytes, &capacity, &c.error);
  if (c.status == SLM2_OK) {
    void *scratch = malloc(scratch_bytes);
    memset(scratch, 0xa5, scratch_bytes);
    c.section = malloc(capacity);
    c.status = slm2_tokenizer_convert(text, n, scratch, scratch_bytes, c.section, capacity, &c.n, &c.error);
    free(scratch);
  }
  free(text);
  return c;
}

static int opens(const converted *c) {
  size_t bytes;
  slm2_tokenizer *t;
  slm2_error error;
  if (slm2_tokenizer_bytes(c->section, c->n, &bytes, &error) != SLM2_OK) return 0;
  void *mem = malloc(bytes);
  int good = slm2_tokenizer_init(mem, bytes, c->section, c->n, &t, &error) == SLM2_OK;
  if (!good) printf("  tokenizer: %s\n", error.message);
  free(mem);
  return good;
}

static int has_hash(const converted *c, const char *digits) {
  uint8_t sha[32];
  char hex[65];
  slm2_sha256_of(c->section, c->n, sha);
  slm2_hex(sha, 32, hex);
  return strcmp(hex, digits) == 0;
}

/* --- the same tokenizer, written otherwise --------------------------------------------------------- */

/* Old files: "left right" instead of ["left", "right"]. */
static char *merges_as_texts(const char *json) {
  const char *at = strstr(json, "\"merges\": [");
  char *out = malloc(strlen(json) + 1);
  size_t n = (size_t)(at - json) + strlen("\"merges\": [");
  memcpy(out, json, n);
  for (at += strlen("\"merges\": ["); *at != 0;) {
    if (*at == '[' && at[1] == '\n') { /* an opening pair; no token ends in '[' and a line feed */
      at++;
    } else if (strncmp(at, "\",\n        \"", 12) == 0) {
      out[n++] = ' ';
      at += 12;
    } else if (strncmp(at, "]", 1) == 0 && (at[1] == ',' || strncmp(at + 1, "\n    ]", 6) == 0)) {
      at++;
    } else {
      out[n++] = *at++;
    }
  }
  out[n] = 0;
  return out;
}

static void test_forms(void) {
  size_t n;
  char *json = test_read_file(tiny, &n);
  converted c = convert(json, n);
  if (!CHECK(c.status == SLM2_OK)) printf("  %s: %s\n", c.error.name, c.error.message);
  CHECK(has_hash(&c, tiny_section) && opens(&c));
  free(c.section);
  static const struct {
    const char *what, *from, *to;
  } same[] = {
      {"escapes in a token", "\"Gr\u00c3\u00b6\u00c3\u0141e\": 272", "\"\\u0047r\\u00c3\u00b6\u00c3\\u0141\\u0065\": 272"},
      {"escapes in an added token", "\"<|im_end|>\"", "\"\\u003c|im_end|\\u003e\""},
      {"an added token in the vocabulary too", "\"!\": 0,", "\"<|im_end|>\": 292, \"!\": 0,"},
      {"post_processor null",
       "\"post_processor\": {\n    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": false,\n    \"trim_offsets\": false,\n    "
       "\"use_regex\": false\n  }",
       "\"post_processor\": null"},
      {"padding", "\"padding\": null", "\"padding\": {\"strategy\": \"BatchLongest\"}"},
      {"empty prefix", "\"continuing_subword_prefix\": null", "\"continuing_subword_prefix\": \"\""},
      {"dropout 0", "\"dropout\": null", "\"dropout\": 0.0"},
      {"no ignore_merges", "\"ignore_merges\": false,", ""},
      {"no fuse_unk", "\"fuse_unk\": false,", ""},
  };
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    char *text = replaced(json, same[i].from, same[i].to);
    c = convert(text, strlen(text));
    if (!CHECK_CASE(c.status == SLM2_OK && has_hash(&c, tiny_section), same[i].what))
      printf("  %s: %s\n", c.error.name, c.error.message);
    free(c.section);
    free(text);
  }
  char *texts = merges_as_texts(json);
  CHECK(strstr(texts, "a t\"") != NULL);
  c = convert(texts, strlen(texts));
  if (!CHECK(c.status == SLM2_OK && has_hash(&c, tiny_section))) printf("  %s: %s\n", c.error.name, c.error.message);
  free(c.section);
  /* old form, broken */
  static const struct {
    const char *from, *to, *message;
  } broken[] = {
      {"a t\"", "at\"", "merge 0 is not two texts"},     {"a t\"", "a  t\"", "merge 0 is not two texts"},
      {"a t\"", "a t \"", "merge 0 is not two texts"},   {"a t\"", " t\"", "merge 0 is not two texts"},
      {"a t\"", "a zz\"", "merge 0 joins what is no token"},
  };
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
    char *text = replaced(texts, broken[i].from, broken[i].to);
    c = convert(text, strlen(text));
    if (!CHECK_CASE(c.status == SLM2_E_FORMAT && strstr(c.error.message, broken[i].message) != NULL, broken[i].to))
      printf("  %s\n", c.error.message);
    free(c.section);
    free(text);
  }
  free(texts);
  free(json);
}

/* --- each rule broken once --------------------------------------------------------------------------- */

#define PRE_BYTES "\"add_prefix_space\": false,\n        \"trim_offsets\": false,\n        \"use_regex\": false"

static const struct {
  const char *from, *to;
  slm2_status status;
  const char *name, *message; /* parts of them */
} broken[] = {
    {"\"NFC\"", "\"NFKC\"", SLM2_E_UNSUPPORTED, "type", "normalizer.type is NFKC; only NFC"},
    {"{\n    \"type\": \"NFC\"\n  }", "null", SLM2_E_UNSUPPORTED, "normalizer", "no object"},
    {"\"type\": \"NFC\"", "\"type\": \"NFC\", \"x\": 1", SLM2_E_UNSUPPORTED, "x", "normalizer"},
    {"\"type\": \"Sequence\"", "\"type\": \"Metaspace\"", SLM2_E_UNSUPPORTED, "type", "pre_tokenizer.type is Metaspace"},
    {"\"type\": \"Split\"", "\"type\": \"Digits\"", SLM2_E_UNSUPPORTED, "type", "Digits"},
    {"\\\\p{N}| ?", "\\\\p{N}{1,3}| ?", SLM2_E_UNSUPPORTED, "Regex", "pattern.Regex"},
    {"\"Regex\"", "\"String\"", SLM2_E_UNSUPPORTED, "String", "pattern"},
    {"\"Isolated\"", "\"Removed\"", SLM2_E_UNSUPPORTED, "behavior", "Removed"},
    {"\"invert\": false", "\"invert\": true", SLM2_E_UNSUPPORTED, "invert", "false"},
    {PRE_BYTES, "\"add_prefix_space\": true, \"use_regex\": false", SLM2_E_UNSUPPORTED, "add_prefix_space", "false"},
    {PRE_BYTES, "\"add_prefix_space\": false, \"use_regex\": true", SLM2_E_UNSUPPORTED, "use_regex", "false"},
    {PRE_BYTES, "\"add_prefix_space\": false", SLM2_E_UNSUPPORTED, "use_regex", "missing"},
    {PRE_BYTES "\n      }", PRE_BYTES "\n      }, {\"type\": \"Digits\"}", SLM2_E_UNSUPPORTED, "pretokenizers", "more than"},
    {"\"post_processor\": {\n    \"type\": \"ByteLevel\"", "\"post_processor\": {\n    \"type\": \"TemplateProcessing\"",
     SLM2_E_UNSUPPORTED, "type", "post_processor.type is TemplateProcessing"},
    {"\"decoder\": {\n    \"type\": \"ByteLevel\"", "\"decoder\": {\n    \"type\": \"WordPiece\"", SLM2_E_UNSUPPORTED, "type",
     "decoder.type is WordPiece"},
    {"\"type\": \"BPE\"", "\"type\": \"Unigram\"", SLM2_E_UNSUPPORTED, "type", "model.type is Unigram"},
    {"\"dropout\": null", "\"dropout\": 0.1", SLM2_E_UNSUPPORTED, "dropout", "not supported"},
    {"\"unk_token\": null", "\"unk_token\": \"!\"", SLM2_E_UNSUPPORTED, "unk_token", "not supported"},
    {"\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"w\"", SLM2_E_UNSUPPORTED, "end_of_word_suffix", "not supported"},
    {"\"byte_fallback\": false", "\"byte_fallback\": true", SLM2_E_UNSUPPORTED, "byte_fallback", "false"},
    {"\"ignore_merges\": false", "\"ignore_merges\": true", SLM2_E_UNSUPPORTED, "ignore_merges", "false"},
    {"\"fuse_unk\": false", "\"fuse_unk\": 1", SLM2_E_UNSUPPORTED, "fuse_unk", "neither"},
    {"\"fuse_unk\": false", "\"dropout\": null", SLM2_E_UNSUPPORTED, "dropout", "twice"},
    {"\"version\": \"1.0\"", "\"extra\": 1", SLM2_E_UNSUPPORTED, "extra", "the file"},
    {"\"decoder\"", "\"normalizer\"", SLM2_E_UNSUPPORTED, "normalizer", "twice"},
    {"\"lstrip\": false", "\"lstrip\": true", SLM2_E_UNSUPPORTED, "lstrip", "not false"},
    {"\"rstrip\": false", "\"rstrip\": true", SLM2_E_UNSUPPORTED, "rstrip", "not false"},
    {"\"single_word\": false", "\"single_word\": true", SLM2_E_UNSUPPORTED, "single_word", "not false"},
    {"\"normalized\": false", "\"normalized\": true", SLM2_E_UNSUPPORTED, "normalized", "not false"},
    {"\"special\": true", "\"special\": 1", SLM2_E_JSON, "", ""},
    {"\"id\": 290", "\"id\": 290, \"id\": 290", SLM2_E_UNSUPPORTED, "id", "repeated"},
    {"\"id\": 290", "\"ids\": 290", SLM2_E_UNSUPPORTED, "ids", "unknown"},
    {"\"id\": 290,", "", SLM2_E_JSON, "", "lacks id"},
    {"\"content\": \"<|endoftext|>\"", "\"content\": null", SLM2_E_JSON, "content", "no text"},
    {"\"content\": \"<|endoftext|>\"", "\"content\": \"\"", SLM2_E_FORMAT, "", "290 has 0 bytes"},
    {"\"content\": \"<|endoftext|>\"", "\"content\": \"\xef\xbf\xbd\"", SLM2_E_FORMAT, "", "U+FFFD"},
    {"\"content\": \"<|endoftext|>\"", "\"content\": \"<|im_end|>\"", SLM2_E_FORMAT, "<|im_end|>",
     "tokens 290 and 292 are the same bytes"},
    {"\"content\": \"<|endoftext|>\"", "\"content\": \"the\"", SLM2_OK, "", ""}, /* the bytes of no token: "Gthe" has a space */
    {"\"content\": \"<|endoftext|>\"", "\"content\": \"hat\"", SLM2_E_FORMAT, "hat", "tokens 260 and 290 are the same bytes"},
    {"\"id\": 290", "\"id\": 291", SLM2_E_FORMAT, "<|endoftext|>", "two tokens have the id 291"},
    {"\"id\": 290", "\"id\": 316", SLM2_E_FORMAT, "<|endoftext|>", "id 316, but there are only 316 tokens"},
    {"\"id\": 290", "\"id\": 4294967296", SLM2_E_JSON, "", ""},
    {"\"id\": 290", "\"id\": 0", SLM2_E_FORMAT, "", "two tokens have the id 0"},
    {"\"!\": 0,", "\"!\": 1,", SLM2_E_FORMAT, "!", "two tokens have the id 1"},
    {"\"!\": 0,", "\"!\": -1,", SLM2_E_JSON, "", ""},
    {"\"!\": 0,", "\"!\": \"0\",", SLM2_E_JSON, "", ""},
    {"\"!\": 0,", "\"!\": 0, \"!\": 0,", SLM2_E_FORMAT, "!", "two tokens have the id 0"},
    {"\"!\": 0,", "\"!\": 0, \"!\": 316,", SLM2_E_FORMAT, "!", "tokens 0 and 316 are the same bytes"},
    {"\"!\": 0,", "\"<|im_end|>\": 292, \"<|im_end|>\": 292, \"!\": 0,", SLM2_E_FORMAT, "<|im_end|>",
     "two tokens have the id 292"},
    {"\"!\": 0,", "\"<|im_end|>\": 316, \"!\": 0,", SLM2_E_FORMAT, "", "are the same bytes"},
    {"\"!\": 0,", "\"!\": 0, \"new token\": 316,", SLM2_E_FORMAT, "new token", "no text of byte symbols"},
    {"\"!\": 0,", "\"!\": 0, \"\": 316,", SLM2_E_FORMAT, "", "token 316 has 0 bytes"},
    {"\"!\": 0,", "\"!\": 0, \"zz\": 317,", SLM2_E_FORMAT, "zz", "id 317, but there are only 317 tokens"},
    {"\"!\": 0,", "\"zz\": 0,", SLM2_E_FORMAT, "vocab", "no token is the byte 0x21"},
    {"\"at\": 256", "\"ta\": 256", SLM2_E_FORMAT, "merges", "result of merge 0"},
    {"\"hat\": 260", "\"htt\": 260", SLM2_E_FORMAT, "merges", "result of merge 4"},
    {"[\n        \"a\",\n        \"t\"\n      ]", "[\"a\"]", SLM2_E_JSON, "", ""},
    {"[\n        \"a\",\n        \"t\"\n      ]", "[\"a\", \"t\", \"t\"]", SLM2_E_JSON, "", ""},
    {"[\n        \"a\",\n        \"t\"\n      ]", "[\"a\", 1]", SLM2_E_JSON, "", ""},
    {"[\n        \"a\",\n        \"t\"\n      ]", "7", SLM2_E_JSON, "merges", "neither"},
    {"[\n        \"a\",\n        \"t\"\n      ]", "[\"a\", \"\"]", SLM2_E_FORMAT, "merges", "merge 0 is not two"},
    {"[\n        \"a\",\n        \"t\"\n      ]", "[\"<|im_start|>\", \"t\"]", SLM2_E_FORMAT, "<|im_start|>", "merge 0 joins"},
    {"[\n        \"h\",\n        \"e\"\n      ]", "[\"a\", \"t\"]", SLM2_E_FORMAT, "merges", "merge 1 joins a pair"},
    {"\"merges\": [", "\"merges\": {}, \"x\": [", SLM2_E_UNSUPPORTED, "merges", "no list"},
    {"\"vocab\": {", "\"vocab\": [], \"x\": {", SLM2_E_UNSUPPORTED, "vocab", "no object"},
    {"\"added_tokens\": [", "\"added_tokens\": 1, \"x\": [", SLM2_E_UNSUPPORTED, "added_tokens", "no list"},
    {"\"added_tokens\": [", "\"added_tokens\": [5, ", SLM2_E_JSON, "added_tokens", "no object"},
};

static void test_rules(void) {
  size_t n;
  char *json = test_read_file(tiny, &n);
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
    char *text = replaced(json, broken[i].from, broken[i].to);
    converted c = convert(text, strlen(text));
    bool good = c.status == broken[i].status && (c.status == SLM2_OK || (strstr(c.error.name, broken[i].name) != NULL &&
                                                                         strstr(c.error.message, broken[i].message) != NULL));
    if (!CHECK_CASE(good, broken[i].to)) printf("  %s: %s: %s\n", slm2_status_name(c.status), c.error.name, c.error.message);
    if (c.status == SLM2_OK) CHECK_CASE(opens(&c), broken[i].to);
    free(c.section);
    free(text);
  }
  /* memory one byte too small, and a text that is no JSON */
  size_t scratch, capacity, out;
  slm2_error error;
  CHECK(slm2_tokenizer_convert_bytes(json, n, &scratch, &capacity, &error) == SLM2_OK);
  uint8_t *mem = malloc(scratch + capacity);
  CHECK(slm2_tokenizer_convert(json, n, mem, scratch - 1, mem + scratch, capacity, &out, &error) == SLM2_E_MEMORY);
  CHECK(slm2_tokenizer_convert(json, n, mem, scratch, mem + scratch, capacity - 1, &out, &error) == SLM2_E_MEMORY);
  CHECK(slm2_tokenizer_convert(json, n, mem + 1, scratch, mem + scratch, capacity, &out, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenizer_convert_bytes("", 0, &scratch, &capacity, &error) == SLM2_E_JSON);
  CHECK(slm2_tokenizer_convert_bytes("[]", 2, &scratch, &capacity, &error) == SLM2_E_UNSUPPORTED);
  CHECK(slm2_tokenizer_convert_bytes("{}", 2, &scratch, &capacity, &error) == SLM2_E_UNSUPPORTED);
  free(mem);
  free(json);
}

/* --- size: tokens at the limit, and 200,000 tokens in time that grows with the text ----------------------- */

static void test_long_tokens(void) {
  size_t n;
  char *json = test_read_file(tiny, &n);
  for (size_t length = SLM2_MAX_TOKEN_BYTES; length <= SLM2_MAX_TOKEN_BYTES + 1; length++) {
    char *entry = malloc(2 * length + 64);
    for (int kind = 0; kind < 2; kind++) { /* a token of the vocabulary, an added one */
      size_t at = (size_t)sprintf(entry, kind == 0 ? "\"!\": 0, \"" : "\"content\": \"");
      for (size_t i = 0; i < length; i++) {
        if (kind == 0 && i % 2 == 0) at += (size_t)sprintf(entry + at, "\xc4\xa0"); /* a space's symbol */
        else entry[at++] = 'x';
      }
      sprintf(entry + at, kind == 0 ? "\": 316," : "\"");
      char *text = replaced(json, kind == 0 ? "\"!\": 0," : "\"content\": \"<|endoftext|>\"", entry);
      converted c = convert(text, strlen(text));
      CHECK(c.status == (length == SLM2_MAX_TOKEN_BYTES ? SLM2_OK : SLM2_E_FORMAT));
      if (c.status == SLM2_OK) CHECK(opens(&c));
      else CHECK(strstr(c.error.message, "longer than 1024 bytes") != NULL);
      free(c.section);
      free(text);
    }
    free(entry);
  }
  free(json);
}

static void test_many_tokens(void) {
  enum { COUNT = 200000 };
  size_t n;
  char *json = test_read_file(tiny, &n), *entries = malloc(COUNT * 24 + 16);
  size_t at = (size_t)sprintf(entries, "\"!\": 0, ");
  for (uint32_t i = 0; i < COUNT; i++) at += (size_t)sprintf(entries + at, "\"%u-\": %u,", i, 316 + (i * 7919u) % COUNT);
  char *text = replaced(json, "\"!\": 0,", entries);
  converted c = convert(text, strlen(text));
  CHECK(c.status == SLM2_OK && opens(&c));
  free(c.section);
  free(text);
  free(entries);
  free(json);
}

int main(void) {
  test_forms();
  test_rules();
  test_long_tokens();
  test_many_tokens();
  return test_end("convert_tokenizer");
}
