/* tests/tiny_tokenizer.h: tokenizer sections built by hand: the 256 bytes, a few merges, some added tokens. */
#ifndef SLM2_TEST_TINY_TOKENIZER_H
#define SLM2_TEST_TINY_TOKENIZER_H

#include "base/bytes.h"
#include "slm2/tokenizer.h"
#include "tests/test.h"
#include "tokenizer/section.h"

enum { TINY_MERGES = 9, TINY_ADDED = 7, TINY_TOKENS = 256 + 8 + 1 + TINY_ADDED };
enum { TINY_GAP = 264 };
enum { TINY_X = 265, TINY_X_LONG = 266, TINY_LT = 267, TINY_E = 268, TINY_THINK = 269, TINY_INNER = 270, TINY_LAST = 271 };

/* Two ways to "abc"; the lowest rank is not the first letter pair; "b c" competes with "a b". */
static const struct { const char *left, *right; } tiny_merges[TINY_MERGES] = {
    {"a", "b"}, {"b", "c"}, {"ab", "c"}, {"a", "a"}, {"aa", "aa"}, {"a", "bc"}, {" ", "a"}, {"c", "c"}, {"aaaa", "aaaa"}};
static const struct { const char *text; uint32_t special; } tiny_added[TINY_ADDED] = {
    {"<|x|>", 1}, {"<|x|>long", 0}, {"<", 0}, {"\xc3\xa9", 1}, {"<think>", 0}, {"x|>", 0}, {"<|x|", 1}};

typedef struct tiny_section {
  uint8_t bytes[16384];
  size_t n;
  size_t ends, merges, added, blob; /* offsets of the arrays */
  const char *text[TINY_TOKENS];
  size_t length[TINY_TOKENS];
} tiny_section;

static inline uint32_t tiny_find(const tiny_section *s, const char *text) {
  for (uint32_t id = 0; id < TINY_GAP; id++) {
    if (s->length[id] == strlen(text) && memcmp(s->text[id], text, strlen(text)) == 0) return id;
  }
  printf("FAIL tiny tokenizer has no '%s'\n", text);
  exit(1);
}

static inline void tiny_init(tiny_section *s) {
  static char bytes[256], joined[TINY_MERGES][16];
  memset(s, 0, sizeof *s);
  for (unsigned b = 0; b < 256; b++) {
    bytes[b] = (char)(b ^ 0x55); /* ids are not byte values */
    s->text[b] = &bytes[b];
    s->length[b] = 1;
  }
  uint32_t n_tokens = 256;
  for (int i = 0; i < TINY_MERGES; i++) {
    snprintf(joined[i], sizeof joined[i], "%s%s", tiny_merges[i].left, tiny_merges[i].right);
    if (i == 5) continue; /* "abc" again */
    s->text[n_tokens] = joined[i];
    s->length[n_tokens++] = strlen(joined[i]);
  }
  for (int i = 0; i < TINY_ADDED; i++) {
    s->text[TINY_X + i] = tiny_added[i].text;
    s->length[TINY_X + i] = strlen(tiny_added[i].text);
  }
  s->ends = SLM2_TOKENIZER_HEAD_BYTES;
  s->merges = s->ends + 4 * TINY_TOKENS;
  s->added = s->merges + 12 * TINY_MERGES;
  s->blob = s->added + 8 * TINY_ADDED;
  uint32_t end = 0;
  for (uint32_t id = 0; id < TINY_TOKENS; id++) {
    if (s->length[id] != 0) memcpy(s->bytes + s->blob + end, s->text[id], s->length[id]);
    end += (uint32_t)s->length[id];
    slm2_store_u32(s->bytes + s->ends + 4 * id, end);
  }
  for (int i = 0; i < TINY_MERGES; i++) {
    uint8_t *row = s->bytes + s->merges + 12 * i;
    slm2_store_u32(row, tiny_find(s, tiny_merges[i].left));
    slm2_store_u32(row + 4, tiny_find(s, tiny_merges[i].right));
    slm2_store_u32(row + 8, tiny_find(s, joined[i]));
  }
  for (uint32_t i = 0; i < TINY_ADDED; i++) {
    slm2_store_u32(s->bytes + s->added + 8 * i, TINY_X + i);
    slm2_store_u32(s->bytes + s->added + 8 * i + 4, tiny_added[i].special);
  }
  const uint32_t head[8] = {SLM2_TOKENIZER_MAGIC, SLM2_PRETOKENIZER_QWEN2, TINY_TOKENS, TINY_MERGES, TINY_ADDED, end, 0, 0};
  for (int i = 0; i < 8; i++) slm2_store_u32(s->bytes + 4 * i, head[i]);
  s->n = s->blob + end;
}

/* A tokenizer over a section of exactly n bytes in memory of exactly its size (sanitizers watch both);
 * NULL with *error when refused. Free with tiny_close. */
typedef struct tiny_handle {
  uint8_t *section;
  void *mem;
  slm2_tokenizer *t;
  slm2_status status;
} tiny_handle;

static inline tiny_handle tiny_open(const uint8_t *bytes, size_t n, slm2_error *error) {
  tiny_handle h = {malloc(n == 0 ? 1 : n), NULL, NULL, SLM2_OK};
  size_t need = 0;
  if (n != 0) memcpy(h.section, bytes, n);
  h.status = slm2_tokenizer_bytes(h.section, n, &need, error);
  if (h.status != SLM2_OK) return h;
  h.mem = malloc(need);
  h.status = slm2_tokenizer_init(h.mem, need, h.section, n, &h.t, error);
  return h;
}
static inline void tiny_close(tiny_handle *h) {
  free(h->section);
  free(h->mem);
  *h = (tiny_handle){0};
}

#endif
