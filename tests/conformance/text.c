/* tests/conformance/text.c: the tokenizer, the decoder and the chat template on generated inputs, by digests of what Hugging
 * Face makes of them (tests/data/conformance/text.txt). Qwen3's own tokenizer.json is what is tested.
 *
 * A line of text.txt: SET BLOCK INPUTS RESULTS, two SHA-256 over the block's items in order:
 *   strings        inputs: the texts; results: ids with added tokens on, FFFFFFFF, ids with them off, FFFFFFFF
 *   ids            inputs: the ids; results: the text, then the text without special tokens, each after its length
 *   conversations  inputs: the JSON; results: the prompt after its length, its ids with added tokens on, FFFFFFFF
 * Texts are hashed after their length in bytes; numbers are u32, little endian.
 */
#include "base/bytes.h"
#include "base/sha256.h"
#include "convert/convert.h"
#include "slm2/chat.h"
#include "tests/conformance/conformance.h"

static void *must(void *p) {
  if (p != NULL) return p;
  printf("FAIL out of memory\n");
  exit(1);
}

static void require(slm2_status status, const slm2_error *error) {
  if (status == SLM2_OK) return;
  printf("FAIL %s\n", error->message);
  exit(1);
}

static uint8_t *section; /* of the open tokenizer */
static void *index;

void close_tokenizer(void) { free(section), free(index); }

slm2_tokenizer *open_tokenizer(const char *json_path) {
  slm2_error error;
  slm2_tokenizer *t;
  size_t n, scratch_bytes, capacity, section_bytes, index_bytes;
  char *json = test_read_file(json_path, &n);
  require(slm2_tokenizer_convert_bytes(json, n, &scratch_bytes, &capacity, &error), &error);
  void *scratch = must(malloc(scratch_bytes));
  section = must(malloc(capacity));
  require(slm2_tokenizer_convert(json, n, scratch, scratch_bytes, section, capacity, &section_bytes, &error), &error);
  free(scratch), free(json);
  require(slm2_tokenizer_bytes(section, section_bytes, &index_bytes, &error), &error);
  index = must(malloc(index_bytes));
  require(slm2_tokenizer_init(index, index_bytes, section, section_bytes, &t, &error), &error);
  return t;
}

/* --- one item: its input and its results ------------------------------------- */

typedef struct item {
  bytes input, text, other; /* texts: the prompt; or all and without special tokens */
  uint32_t *on, *off, ids[24];
  size_t n_on, n_off, n_ids;
} item;

static size_t tokenize(const slm2_tokenizer *t, const uint8_t *text, size_t n, slm2_specials specials, uint32_t **ids) {
  static void *scratch;
  static size_t scratch_bytes;
  slm2_error error;
  size_t need, n_ids;
  require(slm2_tokenize_scratch_bytes(n, &need), &error);
  if (need > scratch_bytes) {
    free(scratch);
    scratch = must(malloc(scratch_bytes = need));
  }
  if (*ids == NULL) *ids = must(malloc(sizeof(uint32_t) * (3 * STRING_MAX + 1)));
  require(slm2_tokenize(t, text, n, specials, NULL, scratch, scratch_bytes, *ids, 3 * n + 1, &n_ids, &error), &error);
  return n_ids;
}

static void decode(const slm2_tokenizer *t, const item *from, bool skip_special, bytes *out) {
  static uint8_t piece[SLM2_DECODE_MAX(1024)];
  slm2_decoder d;
  slm2_decoder_init(&d);
  out->n = 0;
  for (size_t i = 0; i < from->n_ids; i++) {
    size_t n;
    const uint8_t *token = slm2_token_bytes(t, from->ids[i], &n);
    if (!skip_special || !slm2_token_is_special(t, from->ids[i])) put(out, piece, slm2_decoder_push(&d, token, n, piece));
  }
  put(out, piece, slm2_decoder_flush(&d, piece));
}

static void render(const bytes *json, bytes *prompt) {
  static uint8_t mask[STRING_MAX];
  slm2_error error;
  size_t need;
  require(slm2_chat_scratch_bytes(json->n, &need), &error);
  void *scratch = must(malloc(need));
  require(slm2_chat_render(SLM2_CHAT_QWEN3, (const char *)json->at, json->n, NULL, scratch, need, (char *)prompt->at, mask,
                           sizeof prompt->at, &prompt->n, &error), &error);
  free(scratch);
}

static void make_string_item(const slm2_tokenizer *t, uint64_t *random, item *it) {
  make_string(t, random, true, &it->input);
  it->n_on = tokenize(t, it->input.at, it->input.n, SLM2_SPECIALS_ON, &it->on);
  it->n_off = tokenize(t, it->input.at, it->input.n, SLM2_SPECIALS_OFF, &it->off);
}

static void make_ids_item(const slm2_tokenizer *t, uint64_t *random, item *it) {
  it->n_ids = make_ids(random, it->ids);
  decode(t, it, false, &it->text);
  decode(t, it, true, &it->other);
}

static void make_conversation_item(const slm2_tokenizer *t, uint64_t *random, item *it) {
  make_conversation(t, random, &it->input);
  render(&it->input, &it->text);
  it->n_on = tokenize(t, it->text.at, it->text.n, SLM2_SPECIALS_ON, &it->on);
}

/* --- hashing and printing ------------------------------------------------------ */

static void hash_u32(slm2_sha256 *hash, uint32_t x) {
  uint8_t four[4];
  slm2_store_u32(four, x);
  slm2_sha256_update(hash, four, 4);
}

static void hash_bytes(slm2_sha256 *hash, const bytes *b) {
  hash_u32(hash, (uint32_t)b->n);
  slm2_sha256_update(hash, b->at, b->n);
}

static void hash_ids(slm2_sha256 *hash, const uint32_t *ids, size_t n) {
  for (size_t i = 0; i < n; i++) hash_u32(hash, ids[i]);
  hash_u32(hash, UINT32_MAX);
}

static void print_bytes(const bytes *b, char end) {
  for (size_t i = 0; i < b->n; i++) printf("%02x", b->at[i]);
  printf("%s%c", b->n == 0 ? "-" : "", end);
}

static void print_ids(const uint32_t *ids, size_t n, char end) {
  for (size_t i = 0; i < n; i++) printf("%s%u", i == 0 ? "" : ",", (unsigned)ids[i]);
  printf("%s%c", n == 0 ? "-" : "", end);
}

static void hash_string(const item *it, slm2_sha256 *inputs, slm2_sha256 *results) {
  hash_bytes(inputs, &it->input);
  hash_ids(results, it->on, it->n_on);
  hash_ids(results, it->off, it->n_off);
}

static void print_string(const item *it) {
  print_bytes(&it->input, ' ');
  print_ids(it->on, it->n_on, ' ');
  print_ids(it->off, it->n_off, '\n');
}

static void hash_ids_item(const item *it, slm2_sha256 *inputs, slm2_sha256 *results) {
  hash_ids(inputs, it->ids, it->n_ids);
  hash_bytes(results, &it->text);
  hash_bytes(results, &it->other);
}

static void print_ids_item(const item *it) {
  print_ids(it->ids, it->n_ids, ' ');
  print_bytes(&it->text, ' ');
  print_bytes(&it->other, '\n');
}

static void hash_conversation(const item *it, slm2_sha256 *inputs, slm2_sha256 *results) {
  hash_bytes(inputs, &it->input);
  hash_bytes(results, &it->text);
  hash_ids(results, it->on, it->n_on);
}

static void print_conversation(const item *it) {
  print_bytes(&it->input, ' ');
  print_bytes(&it->text, ' ');
  print_ids(it->on, it->n_on, '\n');
}

static const struct set {
  const char *name, *what;
  uint64_t seed;
  uint32_t block, n_blocks;
  void (*make)(const slm2_tokenizer *t, uint64_t *random, item *it);
  void (*hash)(const item *it, slm2_sha256 *inputs, slm2_sha256 *results);
  void (*print)(const item *it);
} sets[] = {
    {"strings", "tokenizer: strings", 1, 10000, 20, make_string_item, hash_string, print_string},
    {"ids", "decoder: lists of ids", 2, 10000, 5, make_ids_item, hash_ids_item, print_ids_item},
    {"conversations", "chat: conversations", 3, 100, 10, make_conversation_item, hash_conversation, print_conversation},
};
enum { N_SETS = sizeof sets / sizeof sets[0] };

void print_set(const slm2_tokenizer *t, const char *set, uint32_t first, uint32_t count) {
  static item it;
  for (size_t s = 0; s < N_SETS; s++) {
    if (strcmp(sets[s].name, set) != 0) continue;
    for (uint32_t i = first; i < first + count; i++) {
      uint64_t random = item_random(sets[s].seed, i);
      sets[s].make(t, &random, &it);
      sets[s].print(&it);
    }
    return;
  }
  printf("FAIL no set %s\n", set);
  exit(1);
}

static void hash_block(const slm2_tokenizer *t, const struct set *set, uint32_t block, char inputs_hex[65],
                       char results_hex[65]) {
  static item it;
  slm2_sha256 inputs, results;
  uint8_t digest[32];
  slm2_sha256_init(&inputs);
  slm2_sha256_init(&results);
  for (uint32_t i = block * set->block; i < (block + 1) * set->block; i++) {
    uint64_t random = item_random(set->seed, i);
    set->make(t, &random, &it);
    set->hash(&it, &inputs, &results);
  }
  slm2_sha256_final(&inputs, digest);
  slm2_hex(digest, 32, inputs_hex);
  slm2_sha256_final(&results, digest);
  slm2_hex(digest, 32, results_hex);
}

void check_text(const char *folder, const slm2_tokenizer *t) {
  char path[512], name[32], want_inputs[65], want_results[65], inputs[65], results[65], label[96];
  unsigned block;
  snprintf(path, sizeof path, "%s/text.txt", folder);
  char *file = test_read_file(path, NULL);
  uint32_t seen[N_SETS] = {0}, good[N_SETS] = {0};
  int used;
  const char *at = file;
  for (; sscanf(at, "%31s %u %64s %64s\n%n", name, &block, want_inputs, want_results, &used) == 4; at += used) {
    for (size_t s = 0; s < N_SETS; s++) {
      if (strcmp(sets[s].name, name) != 0 || block != seen[s]) continue;
      hash_block(t, &sets[s], block, inputs, results);
      snprintf(label, sizeof label, "%s block %u: other inputs than Hugging Face was given", name, block);
      bool same_inputs = expect(strcmp(inputs, want_inputs) == 0, label);
      snprintf(label, sizeof label, "%s block %u: results differ from Hugging Face's", name, block);
      good[s] += same_inputs & expect(strcmp(results, want_results) == 0, label);
      seen[s]++;
    }
  }
  free(file);
  printf("%-24s %10s %10s\n", "against Hugging Face", "items", "identical");
  for (size_t s = 0; s < N_SETS; s++) {
    expect(seen[s] == sets[s].n_blocks, sets[s].what);
    printf("%-24s %10u %10u\n", sets[s].what, (unsigned)(sets[s].block * seen[s]), (unsigned)(sets[s].block * good[s]));
  }
}
