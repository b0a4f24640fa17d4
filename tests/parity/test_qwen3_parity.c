/* The real tokenizer of Qwen3, converted by the product, against Hugging Face: ids of every vector, of every scalar
 * value in three contexts, of long runs, of random texts and of whole conversations; and back to text.
 *
 *   test_qwen3_parity tokenizer.json     (tools/fetch_tokenizer gets it)
 */
#include "base/sha256.h"
#include "base/utf8.h"
#include "convert/convert.h"
#include "slm2/chat.h"
#include "slm2/tokenizer.h"
#include "tests/vectors.h"

/* What the independent tests/gen/tokenizer_section.py makes of the same file. */
static const char section_sha256[] = "05fb9099595cf8554fac17c19da246862dd700f0597bd670464fc6e00886dc5e";
enum { FIRST_ADDED = 151643, N_TOKENS = 151669, ENDOFTEXT = 151643, IM_START = 151644 };

static slm2_tokenizer *t;

typedef struct ids {
  uint32_t *id;
  size_t n;
} ids;

static ids tokenize(const void *text, size_t n, slm2_specials specials, const uint8_t *mask) {
  static uint8_t *scratch;
  static size_t capacity;
  slm2_error error;
  size_t need;
  ids r = {malloc(4 * (3 * n + 1)), 0};
  if (slm2_tokenize_scratch_bytes(n, &need) != SLM2_OK) exit(1);
  if (need > capacity) {
    free(scratch);
    scratch = malloc(capacity = need);
  }
  if (!CHECK_CASE(slm2_tokenize(t, text, n, specials, mask, scratch, need, r.id, 3 * n + 1, &r.n, &error) == SLM2_OK,
                  error.message))
    exit(1);
  return r;
}

static void expect_ids(const void *text, size_t n, slm2_specials specials, const uint8_t *mask, vector_value want,
                       vector_value label) {
  char title[64];
  snprintf(title, sizeof title, "%.*s", (int)(label.n < 60 ? label.n : 60), label.text);
  size_t n_want;
  uint32_t *expected = vector_ids(want, &n_want);
  ids got = tokenize(text, n, specials, mask);
  CHECK_CASE(got.n == n_want && memcmp(got.id, expected, 4 * n_want) == 0, title);
  for (size_t i = 0; i < got.n && specials == SLM2_SPECIALS_OFF; i++) CHECK_CASE(got.id[i] < FIRST_ADDED, title);
  free(expected), free(got.id);
}

static void expect_text(const ids *from, bool skip_special, vector_value want, vector_value label) {
  size_t n_want, n_out = 0, n = 0;
  char *expected = vector_string(want, &n_want), *out;
  for (size_t i = 0; i < from->n; i++) n += slm2_token_bytes(t, from->id[i], &n_out) == NULL ? 0 : n_out;
  out = malloc(SLM2_DECODE_MAX(n) + 12 * from->n + 12);
  slm2_decoder d;
  slm2_decoder_init(&d);
  n_out = 0;
  for (size_t i = 0; i < from->n; i++) {
    const uint8_t *bytes = slm2_token_bytes(t, from->id[i], &n);
    if (!skip_special || !slm2_token_is_special(t, from->id[i])) n_out += slm2_decoder_push(&d, bytes, n, (uint8_t *)out + n_out);
  }
  n_out += slm2_decoder_flush(&d, (uint8_t *)out + n_out);
  CHECK_CASE(n_out == n_want && memcmp(out, expected, n_want) == 0, label.text);
  free(expected), free(out);
}

/* SHA-256 of the ids in decimal with spaces between. */
static bool has_digest(const ids *from, vector_value want) {
  slm2_sha256 s;
  uint8_t digest[32];
  char text[65];
  slm2_sha256_init(&s);
  for (size_t i = 0; i < from->n; i++) {
    char number[16];
    slm2_sha256_update(&s, number, (size_t)snprintf(number, sizeof number, "%s%u", i == 0 ? "" : " ", (unsigned)from->id[i]));
  }
  slm2_sha256_final(&s, digest);
  slm2_hex(digest, 32, text);
  return want.n == 66 && memcmp(want.text + 1, text, 64) == 0;
}

static void check_token_vectors(void) {
  vector_value file = vector_file("tests/data/tokenizer/qwen3_token_vectors.jsonl"), line;
  for (size_t at = 0; vector_next(file, &at, &line);) {
    size_t n;
    uint8_t *text = vector_hex(vector_get(line, "text_utf8_hex"), &n);
    expect_ids(text, n, SLM2_SPECIALS_ON, NULL, vector_get(line, "ids_parse_special"), line);
    expect_ids(text, n, SLM2_SPECIALS_OFF, NULL, vector_get(line, "ids_plain"), line);
    free(text);
  }
  vector_close(file);
  file = vector_file("tests/data/tokenizer/hf_goldens.json");
  for (size_t at = 0; vector_next(file, &at, &line);) {
    size_t n;
    char *text = vector_string(vector_get(line, "text"), &n);
    expect_ids(text, n, SLM2_SPECIALS_ON, NULL, vector_get(line, "ids"), line);
    ids golden;
    golden.id = vector_ids(vector_get(line, "ids"), &golden.n);
    expect_text(&golden, false, vector_get(line, "decode"), line);
    expect_text(&golden, true, vector_get(line, "decode_skip_special"), line);
    free(text), free(golden.id);
  }
  vector_close(file);
}

static void check_random_vectors(void) {
  vector_value file = vector_file("tests/data/tokenizer/random_vectors.jsonl"), line;
  for (size_t at = 0; vector_next(file, &at, &line);) {
    size_t n, n_mask;
    uint8_t *text = vector_hex(vector_get(line, "hex"), &n);
    expect_ids(text, n, SLM2_SPECIALS_ON, NULL, vector_get(line, "on"), line);
    expect_ids(text, n, SLM2_SPECIALS_OFF, NULL, vector_get(line, "off"), line);
    ids on;
    on.id = vector_ids(vector_get(line, "on"), &on.n);
    expect_text(&on, false, vector_get(line, "decoded"), line);
    if (vector_find(line, "mask").text != NULL) {
      char *mask = vector_string(vector_get(line, "mask"), &n_mask);
      for (size_t i = 0; i < n_mask; i++) mask[i] = mask[i] == '1';
      expect_ids(text, n, SLM2_SPECIALS_MASKED, (const uint8_t *)mask, vector_get(line, "masked"), line);
      free(mask);
    }
    free(text), free(on.id);
  }
  vector_close(file);
}

/* Each block: 4,096 code points in a context, joined by <|endoftext|>, which n_ids does not count. */
static void check_code_points(void) {
  static const struct {
    const char *name, *before, *after;
  } contexts[] = {{"\"alone\"", "", ""}, {"\"a_b\"", "a", "b"}, {"\"sp_1\"", " ", "1"}};
  vector_value file = vector_file("tests/data/tokenizer/qwen3_codepoint_blocks.jsonl"), line;
  size_t blocks = 0;
  for (size_t at = 0; vector_next(file, &at, &line); blocks++) {
    vector_value context = vector_get(line, "ctx");
    size_t c = 0, n_base, n = 0;
    while (c < 2 && strncmp(context.text, contexts[c].name, context.n) != 0) c++;
    char *base = vector_string(vector_get(line, "base"), &n_base), *text = malloc(4096 * 24);
    uint32_t first = (uint32_t)strtoul(base, NULL, 16);
    for (uint32_t cp = first; cp < first + 4096; cp++) {
      if (cp >= 0xd800 && cp < 0xe000) continue;
      n += (size_t)sprintf(text + n, "%s%s", n == 0 ? "" : "<|endoftext|>", contexts[c].before);
      n += slm2_utf8_put(cp, (uint8_t *)text + n);
      n += (size_t)sprintf(text + n, "%s", contexts[c].after);
    }
    ids got = tokenize(text, n, SLM2_SPECIALS_ON, NULL);
    size_t counted = 0;
    for (size_t i = 0; i < got.n; i++) counted += got.id[i] != ENDOFTEXT;
    CHECK_CASE(counted == strtoul(vector_get(line, "n_ids").text, NULL, 10), base);
    CHECK_CASE(has_digest(&got, vector_get(line, "sha256")), base);
    free(base), free(text), free(got.id);
  }
  CHECK(blocks == 816);
  vector_close(file);
}

static void check_long_inputs(void) {
  static const struct {
    const char *unit;
    size_t count;
  } inputs[] = {{"A", 43000},
                {"a", 100000},
                {NULL, 100000},
                {" ", 100000},
                {"\n", 100000},
                {"!", 100000},
                {"1", 100000},
                {"\xe5\xad\xa3", 30000},
                {"\xf0\x9f\x98\x80", 20000},
                {"a ", 50000},
                {"e\xcc\x81", 50000},
                {"\xcc\x81", 50000},
                {"<|im_end|>", 5000},
                {"<|", 50000}};
  vector_value file = vector_file("tests/data/tokenizer/qwen3_long_inputs.jsonl"), line;
  size_t i = 0;
  for (size_t at = 0; vector_next(file, &at, &line); i++) {
    size_t n = 0, unit = inputs[i].unit == NULL ? 1 : strlen(inputs[i].unit);
    char *text = malloc(unit * inputs[i].count + 1);
    uint64_t random = 1;
    if (i == 11) text[n++] = 'a'; /* one letter and then marks only */
    for (size_t k = 0; k < inputs[i].count; k++, n += unit) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      if (inputs[i].unit == NULL) text[n] = (char)('a' + (random >> 33) % 26);
      else memcpy(text + n, inputs[i].unit, unit);
    }
    ids got = tokenize(text, n, SLM2_SPECIALS_ON, NULL);
    CHECK_CASE(got.n == strtoul(vector_get(line, "n_ids").text, NULL, 10), line.text);
    CHECK_CASE(has_digest(&got, vector_get(line, "sha256_of_space_joined_ids")), line.text);
    free(text), free(got.id);
  }
  CHECK(i == sizeof inputs / sizeof *inputs);
  vector_close(file);
}

/* A conversation's prompt: with added tokens on everywhere, and by the mask. */
static void check_conversation(vector_value json, vector_value on, vector_value masked, vector_value label) {
  slm2_error error;
  size_t need, n = 0;
  if (slm2_chat_scratch_bytes(json.n, &need) != SLM2_OK) exit(1);
  void *scratch = malloc(need);
  char *text = malloc(1u << 16);
  uint8_t *mask = malloc(1u << 16);
  slm2_status status =
      slm2_chat_render(SLM2_CHAT_QWEN3, json.text, json.n, NULL, scratch, need, text, mask, 1u << 16, &n, &error);
  if (CHECK_CASE(status == SLM2_OK, error.message) && on.text != NULL) {
    expect_ids(text, n, SLM2_SPECIALS_ON, NULL, on, label);
    if (masked.text != NULL) expect_ids(text, n, SLM2_SPECIALS_MASKED, mask, masked, label);
  } else if (status == SLM2_OK) { /* as many turns as the template opened, whatever the content says */
    size_t turns = 0, opened = 0;
    ids got = tokenize(text, n, SLM2_SPECIALS_MASKED, mask);
    for (size_t i = 0; i < got.n; i++) turns += got.id[i] == IM_START;
    for (size_t i = 0; i + 12 <= n; i++) opened += memcmp(text + i, "<|im_start|>", 12) == 0 && memchr(mask + i, 0, 12) == NULL;
    CHECK_CASE(turns == opened, label.text);
    free(got.id);
  }
  free(scratch), free(text), free(mask);
}

static void check_conversations(void) {
  static const struct { const char *path, *json, *on, *safe; } files[] = {
      {"tests/data/chat/chat_goldens.json", "args", "ids", NULL},
      {"tests/data/chat/qwen3_chat_vectors.jsonl", "args", "ids", "ids_safe_if_different"},
      {"tests/data/chat/random_vectors.jsonl", "json", NULL, NULL}};
  for (size_t f = 0; f < 3; f++) {
    vector_value file = vector_file(files[f].path), line, none = {NULL, 0};
    for (size_t at = 0; vector_next(file, &at, &line);) {
      vector_value json = vector_get(line, files[f].json), on = files[f].on == NULL ? none : vector_get(line, files[f].on),
                   safe = on;
      if (f == 0 && strstr(vector_get(line, "name").text, "\"unclosed_think_kept\"") == vector_get(line, "name").text)
        safe = none; /* its <think> is content: an id of its own only where all of the text may give one */
      if (files[f].safe != NULL && vector_get(line, files[f].safe).text[0] == '[') safe = vector_get(line, files[f].safe);
      char *inner = NULL;
      if (json.text[0] == '"') json.text = inner = vector_string(json, &json.n);
      check_conversation(json, on, safe, line);
      free(inner);
    }
    vector_close(file);
  }
}

static void check_vocabulary(void) {
  size_t special = 0, added = 0, partial = 0, n;
  CHECK(slm2_tokenizer_size(t) == N_TOKENS && !slm2_token_exists(t, N_TOKENS));
  for (uint32_t id = 0; id < N_TOKENS; id++) {
    const uint8_t *text = slm2_token_bytes(t, id, &n);
    special += slm2_token_is_special(t, id);
    added += slm2_token_is_added(t, id);
    partial += text == NULL || !slm2_utf8_valid(text, n);
  }
  CHECK(special == 14 && added == 26 && partial == 1448);
  CHECK(slm2_token_find_added(t, "<think>", 7) == 151667 && slm2_token_find_added(t, "<|im_end|>", 10) == 151645);
  CHECK(!slm2_token_is_special(t, 151667) && slm2_token_is_special(t, 151656) && !slm2_token_is_special(t, 151657));
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: test_qwen3_parity tokenizer.json\n");
    return 2;
  }
  slm2_error error;
  size_t n, scratch_bytes, capacity, section_bytes, index_bytes;
  char *json = test_read_file(argv[1], &n), hex[65];
  if (!CHECK_CASE(slm2_tokenizer_convert_bytes(json, n, &scratch_bytes, &capacity, &error) == SLM2_OK, error.message))
    return test_end("qwen3_parity");
  void *scratch = malloc(scratch_bytes);
  uint8_t *section = malloc(capacity), digest[32];
  if (!CHECK_CASE(slm2_tokenizer_convert(json, n, scratch, scratch_bytes, section, capacity, &section_bytes, &error) == SLM2_OK,
                  error.message))
    return test_end("qwen3_parity");
  free(scratch), free(json);
  slm2_sha256_of(section, section_bytes, digest);
  slm2_hex(digest, 32, hex);
  CHECK_CASE(strcmp(hex, section_sha256) == 0, hex);
  if (!CHECK_CASE(slm2_tokenizer_bytes(section, section_bytes, &index_bytes, &error) == SLM2_OK, error.message))
    return test_end("qwen3_parity");
  void *mem = malloc(index_bytes);
  if (!CHECK_CASE(slm2_tokenizer_init(mem, index_bytes, section, section_bytes, &t, &error) == SLM2_OK, error.message))
    return test_end("qwen3_parity");
  check_vocabulary();
  check_token_vectors();
  check_random_vectors();
  check_code_points();
  check_long_inputs();
  check_conversations();
  free(mem), free(section);
  return test_end("qwen3_parity");
}
