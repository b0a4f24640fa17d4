/* The tokenizer without a download: a tiny vocabulary for added tokens, modes, limits and every refusal; the
 * stages NFC and split, and the decoder, on texts whose pieces Hugging Face's engine gave.
 * Merges: test_merge.c. Ids of the real vocabulary: tests/parity.
 */
#include "base/utf8.h"
#include "tests/tiny_tokenizer.h"
#include "tests/vectors.h"
#include "tokenizer/internal.h"

static tiny_section tiny;

/* --- running it -------------------------------------------------------------------- */

typedef struct result {
  slm2_status status;
  uint32_t *ids;
  size_t n;
  slm2_error error;
} result;

/* Text, mask and scratch lie in blocks of exactly their size. */
static result run(const slm2_tokenizer *t, const void *text, size_t n, slm2_specials specials, const char *mask) {
  result r = {SLM2_OK, malloc(4 * (3 * n + 1)), 0, {0}};
  size_t scratch_bytes;
  r.status = slm2_tokenize_scratch_bytes(n, &scratch_bytes);
  uint8_t *copy = malloc(n + 1), *marks = mask == NULL ? NULL : malloc(n + 1);
  void *scratch = malloc(scratch_bytes + 1), *lent = n == 0 ? NULL : scratch;
  memcpy(copy, text, n);
  for (size_t i = 0; marks != NULL && i < n; i++) marks[i] = mask[i] == '1';
  if (r.status == SLM2_OK)
    r.status = slm2_tokenize(t, copy, n, specials, marks, lent, scratch_bytes, r.ids, 3 * n + 1, &r.n, &r.error);
  free(copy), free(marks), free(scratch);
  return r;
}

/* Ids as text: "[<|x|>]ab[ a]" with token texts, bytes alone unbracketed. */
static void describe(const slm2_tokenizer *t, const result *r, char *out, size_t capacity) {
  size_t at = 0;
  out[0] = '\0';
  for (size_t i = 0; i < r->n && at + 32 < capacity; i++) {
    size_t n;
    const uint8_t *text = slm2_token_bytes(t, r->ids[i], &n);
    at += (size_t)snprintf(out + at, capacity - at, n == 1 && !slm2_token_is_added(t, r->ids[i]) ? "%.*s" : "[%.*s]", (int)n,
                           (const char *)text);
  }
}

static const struct {
  const char *text, *mask; /* mask NULL: both other modes */
  const char *on, *off;    /* masked: on */
} cases[] = {
    {"", NULL, "", ""},
    {"xyz", NULL, "xyz", "xyz"},
    {"abcd", NULL, "[abc]d", "[abc]d"},
    {"bcab", NULL, "[bc][ab]", "[bc][ab]"},
    {"aaaaaaaaa", NULL, "[aaaaaaaa]a", "[aaaaaaaa]a"},
    {"b ab", NULL, "b [ab]", "b [ab]"},
    {"b a", NULL, "b[ a]", "b[ a]"},
    {"<|x|>", NULL, "[<|x|>]", "<|x|>"},
    {"a<|x|>long<|x|>lon", NULL, "a[<|x|>long][<|x|>]lon", "a<|x|>long<|x|>lon"},
    {"<|x|", NULL, "[<|x|]", "<|x|"},
    {"<|x<|x|>", NULL, "[<]|x[<|x|>]", "<|x<|x|>"},
    {"<<think>", NULL, "[<][<think>]", "<<think>"},
    {"<thin", NULL, "[<]thin", "<thin"},
    {"a\xc3\xa9z", NULL, "a[\xc3\xa9]z", "a\xc3\xa9z"},
    {"ae\xcc\x81z", NULL, "a\xc3\xa9z", "a\xc3\xa9z"},           /* composed after the split: content, not a token */
    {"<\xcc\xb8", NULL, "[<]\xcc\xb8", "\xe2\x89\xae"},          /* split before composing */
    {"a\xff" "b", NULL, "a\xef\xbf\xbd" "b", "a\xef\xbf\xbd" "b"}, /* one U+FFFD per maximal invalid part */
    {"\xf0\x9f\x98<\xe2\x82", NULL, "\xef\xbf\xbd[<]\xef\xbf\xbd", "\xef\xbf\xbd<\xef\xbf\xbd"},
    {"\xf0\x9f\xc3\xa9", NULL, "\xef\xbf\xbd[\xc3\xa9]", "\xef\xbf\xbd\xc3\xa9"},
    {"<|x|>long", "111111111", "[<|x|>long]", NULL},
    {"<|x|>long", "111110000", "[<|x|>]long", NULL},
    {"<|x|>long", "111111110", "[<|x|>]long", NULL},
    {"<|x|>long", "111100000", "[<|x|]>long", NULL},
    {"<|x|>long", "110000000", "[<]|x|>long", NULL},
    {"<|x|>long", "011111111", "<|[x|>]long", NULL},
    {"<|x|><|x|>", "0000011111", "<|x|>[<|x|>]", NULL},
    {"<|x|><|x|>", "1011111111", "[<]|[x|>][<|x|>]", NULL},
    {"e\xcc\x81", "111", "\xc3\xa9", NULL},
    {"", "", "", NULL},
};

static void check_cases(const slm2_tokenizer *t) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char got[256];
    size_t n = strlen(cases[i].text);
    result r = run(t, cases[i].text, n, cases[i].mask != NULL ? SLM2_SPECIALS_MASKED : SLM2_SPECIALS_ON, cases[i].mask);
    describe(t, &r, got, sizeof got);
    if (!CHECK_CASE(r.status == SLM2_OK && strcmp(got, cases[i].on) == 0, cases[i].text)) printf("  got %s\n", got);
    free(r.ids);
    if (cases[i].off == NULL) continue;
    r = run(t, cases[i].text, n, SLM2_SPECIALS_OFF, NULL);
    describe(t, &r, got, sizeof got);
    if (!CHECK_CASE(r.status == SLM2_OK && strcmp(got, cases[i].off) == 0, cases[i].text)) printf("  got %s\n", got);
    free(r.ids);
  }
}

/* --- stages against Hugging Face ------------------------------------------------------ */

/* NFC and split of one text; the pieces joined are what content mode decodes to. */
static void check_pieces(const slm2_tokenizer *t, vector_value vector) {
  size_t n, n_normal, at = 0, end = 0, n_piece;
  uint8_t *text = vector_hex(vector_get(vector, "hex"), &n);
  uint8_t *out = malloc(3 * n + 1), *exact = malloc(n + 1);
  uint32_t *scratch = malloc(4 * SLM2_NFC_SCRATCH(n) + 4);
  const uint8_t *normal = slm2_nfc(memcpy(exact, text, n), n, out, scratch, &n_normal);
  vector_value pieces = vector_get(vector, "pieces"), piece;
  for (size_t i = 0; vector_next(pieces, &i, &piece); at = end) {
    char *want = vector_string(piece, &n_piece);
    bool inside = CHECK_CASE(at < n_normal, vector.text);
    end = inside ? slm2_pretoken_end(normal, n_normal, at) : at;
    CHECK_CASE(end - at == n_piece && memcmp(normal + at, want, n_piece) == 0, vector.text);
    free(want);
  }
  CHECK_CASE(at == n_normal, vector.text);
  result r = run(t, text, n, SLM2_SPECIALS_OFF, NULL);
  size_t decoded = 0;
  for (size_t i = 0; i < r.n; i++) {
    const uint8_t *token = slm2_token_bytes(t, r.ids[i], &n_piece);
    CHECK_CASE(!slm2_token_is_added(t, r.ids[i]), vector.text);
    CHECK_CASE(n_piece != 0 && decoded + n_piece <= n_normal && memcmp(normal + decoded, token, n_piece) == 0, vector.text);
    decoded += n_piece;
  }
  CHECK_CASE(r.status == SLM2_OK && decoded == n_normal, vector.text);
  free(text), free(out), free(exact), free(scratch), free(r.ids);
}

/* The bytes pushed in pieces of every small size give the text that they say as a whole. */
static void check_decoder(vector_value vector) {
  size_t n, n_want;
  uint8_t *bytes = vector_hex(vector_get(vector, "hex"), &n);
  vector_value text = vector_find(vector, "text");
  char *want = text.text != NULL ? vector_string(text, &n_want) : memcpy(malloc(n + 1), bytes, n);
  if (text.text == NULL) n_want = n;
  for (size_t size = 1; size <= 9; size++) {
    uint8_t *out = malloc(SLM2_DECODE_MAX(n) + 12), piece[SLM2_DECODE_MAX(9)];
    size_t n_out = 0;
    slm2_decoder d;
    slm2_decoder_init(&d);
    for (size_t at = 0; at < n; at += size) {
      size_t n_push = size < n - at ? size : n - at, written = slm2_decoder_push(&d, bytes + at, n_push, piece);
      CHECK_CASE(written <= SLM2_DECODE_MAX(n_push) && slm2_utf8_valid(piece, written) && d.n_held <= 3, vector.text);
      memcpy(out + n_out, piece, written);
      n_out += written;
    }
    n_out += slm2_decoder_flush(&d, out + n_out);
    CHECK_CASE(n_out == n_want && memcmp(out, want, n_want) == 0 && d.n_held == 0, vector.text);
    free(out);
  }
  free(bytes), free(want);
}

/* --- refusals ---------------------------------------------------------------------------- */

enum { HEAD = 1, ENDS, MERGES, ADDED, BLOB };
static const struct {
  int array;
  size_t word;
  uint32_t value;
  slm2_status status;
  const char *message;
} broken[] = {
    {HEAD, 0, 0x32544c53, SLM2_E_FORMAT, "magic is 0x32544c53, not 0x31544c53"},
    {HEAD, 1, 2, SLM2_E_UNSUPPORTED, "pre-tokenizer 2 is unknown"},
    {HEAD, 1, 0, SLM2_E_UNSUPPORTED, "pre-tokenizer 0 is unknown"},
    {HEAD, 2, 255, SLM2_E_FORMAT, "255 tokens cannot hold the 256 bytes"},
    {HEAD, 2, 0xffffffff, SLM2_E_FORMAT, "its counts need 17179869"},
    {HEAD, 3, 10, SLM2_E_FORMAT, "its counts need"},
    {HEAD, 3, 0xffffffff, SLM2_E_FORMAT, "its counts need 5153960"},
    {HEAD, 4, 1025, SLM2_E_FORMAT, "1025 added tokens; at most 1024"},
    {HEAD, 4, 8, SLM2_E_FORMAT, "its counts need"},
    {HEAD, 5, 0xffffffff, SLM2_E_FORMAT, "its counts need 42949"},
    {HEAD, 6, 1, SLM2_E_FORMAT, "reserved words are 1 and 0"},
    {HEAD, 7, 9, SLM2_E_FORMAT, "reserved words are 0 and 9"},
    {ENDS, 0, 2000, SLM2_E_FORMAT, "token 0 ends at byte 2000 of"},
    {ENDS, 5, 0, SLM2_E_FORMAT, "token 5 ends at byte 0, before it begins (5)"},
    {ENDS, TINY_LAST, 300, SLM2_E_FORMAT, "token 271 ends at byte 300, before it begins"},
    {ENDS, TINY_LAST - 1, 0xffffffff, SLM2_E_FORMAT, "token 270 ends at byte 4294967295 of"},
    {MERGES, 0, 0xffffffff, SLM2_E_FORMAT, "merge 0 names id 4294967295, which has no token (272 ids)"},
    {MERGES, 1, TINY_GAP, SLM2_E_FORMAT, "merge 0 names id 264, which has no token"},
    {MERGES, 2, TINY_X, SLM2_E_FORMAT, "merge 0 names id 265, an added token"},
    {MERGES, 2, 257, SLM2_E_FORMAT, "merge 0: token 257 is not its two parts joined"},
    {MERGES, 3, 'a' ^ 0x55, SLM2_E_FORMAT, "merge 1: token 257 is not its two parts joined"},
    {ADDED, 0, 0xffffffff, SLM2_E_FORMAT, "added token 0 has id 4294967295, which has no text"},
    {ADDED, 0, TINY_GAP, SLM2_E_FORMAT, "added token 0 has id 264, which has no text"},
    {ADDED, 1, 2, SLM2_E_FORMAT, "added token 0 has unknown flags 0x2"},
    {ADDED, 2, TINY_X, SLM2_E_FORMAT, "added token 1 has id 265; ids must ascend from 266"},
    {ADDED, 0, 3, SLM2_E_FORMAT, "no token is the byte 0x56"},
};

static void check_broken(void) {
  const size_t at[] = {0, 0, tiny.ends, tiny.merges, tiny.added, tiny.blob};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    static tiny_section s;
    slm2_error error = {0};
    s = tiny;
    slm2_store_u32(s.bytes + at[broken[i].array] + 4 * broken[i].word, broken[i].value);
    tiny_handle h = tiny_open(s.bytes, s.n, &error);
    CHECK_CASE(h.t == NULL && h.status == broken[i].status && error.code == h.status, broken[i].message);
    if (!CHECK_CASE(strstr(error.message, broken[i].message) != NULL, broken[i].message)) printf("  said: %s\n", error.message);
    tiny_close(&h);
  }
}

/* Faults that change texts. */
static void check_broken_texts(void) {
  static const struct {
    uint32_t id;
    const char *text;
    const char *message;
  } faults[] = {
      {7, "\x7a", "are both the byte 0x7a"},
      {TINY_LT, "\xff", "added token 2 (id 267) is not valid UTF-8"},
      {TINY_E, "\xe9\x41", "added token 3 (id 268) is not valid UTF-8"},
      {TINY_THINK, "a\xef\xbf\xbd" "bcd", "added token 4 (id 269) is not valid UTF-8 without U+FFFD"},
      {TINY_LAST, "<|x|>", "added tokens 265 and 271 have the same text"},
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    tiny_section s = tiny;
    slm2_error error = {0};
    uint32_t start = slm2_load_u32(s.bytes + s.ends + 4 * (faults[i].id - 1));
    memcpy(s.bytes + s.blob + start, faults[i].text, strlen(faults[i].text));
    if (faults[i].id == TINY_LAST) { /* one byte longer than before */
      slm2_store_u32(s.bytes + s.ends + 4 * TINY_LAST, start + 5);
      slm2_store_u32(s.bytes + 20, start + 5);
      s.n++;
    }
    tiny_handle h = tiny_open(s.bytes, s.n, &error);
    CHECK_CASE(h.t == NULL && h.status == SLM2_E_FORMAT && strstr(error.message, faults[i].message) != NULL, error.message);
    tiny_close(&h);
  }
  tiny_section s = tiny;
  slm2_error error = {0};
  for (uint32_t id = 5; id < TINY_TOKENS; id++) slm2_store_u32(s.bytes + s.ends + 4 * id, 5 + 1025);
  slm2_store_u32(s.bytes + 20, 5 + 1025);
  tiny_handle long_token = tiny_open(s.bytes, s.blob + 5 + 1025, &error);
  CHECK(long_token.t == NULL && strstr(error.message, "token 5 has 1025 bytes; at most 1024 are possible") != NULL);
  tiny_close(&long_token);
  s = tiny;
  memcpy(s.bytes + s.ends + 4 * TINY_LAST, s.bytes + s.ends + 4 * (TINY_LAST - 1), 4); /* the last token is empty */
  memcpy(s.bytes + 20, s.bytes + s.ends + 4 * TINY_LAST, 4);
  tiny_handle no_last = tiny_open(s.bytes, s.n - 4, &error);
  CHECK_CASE(no_last.t == NULL && strstr(error.message, "the last token 271 ends at byte 308 of 308 or is empty") != NULL,
             error.message);
  tiny_close(&no_last);
  s = tiny;
  memcpy(s.bytes + s.merges + 12, s.bytes + s.merges, 12);
  tiny_handle h = tiny_open(s.bytes, s.n, &error);
  CHECK(h.t == NULL && strstr(error.message, "merges 0 and 1 are the same pair") != NULL);
  tiny_close(&h);
}

/* Pairs chosen to fall into one run of the merge table: refused, where each look-up would walk the whole run. */
static void check_collisions(void) {
  enum { SLOTS = 72, SLOT_BITS = 12, MOST = 2000 };
  static struct { uint32_t left, right, slot; } pairs[MOST];
  uint32_t n = 0;
  for (uint32_t left = 0; left < 256; left++) {
    for (uint32_t right = 0; right < 256; right++) {
      uint32_t slot = (uint32_t)(slm2_pair_hash(left, right) >> (64 - SLOT_BITS));
      if (slot < SLOTS && n < MOST) pairs[n].left = left, pairs[n].right = right, pairs[n++].slot = slot;
    }
  }
  CHECK(n > 1080 && n < MOST);
  uint8_t *bytes = malloc(32 + 4 * (256 + n) + 12 * n + 256 + 2 * n), *p = bytes + 32;
  const uint32_t head[8] = {SLM2_TOKENIZER_MAGIC, SLM2_PRETOKENIZER_QWEN2, 256 + n, n, 0, 256 + 2 * n, 0, 0};
  for (int i = 0; i < 8; i++) slm2_store_u32(bytes + 4 * i, head[i]);
  for (uint32_t id = 0; id < 256 + n; id++, p += 4) slm2_store_u32(p, id < 256 ? id + 1 : 256 + 2 * (id - 255));
  for (uint32_t pass = 0; pass < 2; pass++) { /* those of slot 0 last */
    for (uint32_t i = 0; i < n; i++) {
      if ((pairs[i].slot == 0) != (pass == 1)) continue;
      slm2_store_u32(p, pairs[i].left), slm2_store_u32(p + 4, pairs[i].right), slm2_store_u32(p + 8, 256 + i);
      p += 12;
    }
  }
  for (uint32_t b = 0; b < 256; b++) *p++ = (uint8_t)b;
  for (uint32_t i = 0; i < n; i++) *p++ = (uint8_t)pairs[i].left, *p++ = (uint8_t)pairs[i].right;
  slm2_error error = {0};
  tiny_handle h = tiny_open(bytes, (size_t)(p - bytes), &error);
  CHECK_CASE(h.t == NULL && h.status == SLM2_E_FORMAT && strstr(error.message, "collides with more than 1024 others") != NULL,
             error.message);
  tiny_close(&h);
  free(bytes);
}

/* Every cut is refused; random damage is refused or gives a tokenizer that works on any bytes. */
static void check_damage(void) {
  slm2_error error;
  uint64_t seed = 3;
  for (size_t n = 0; n < tiny.n; n += n < 40 ? 1 : 97) {
    tiny_handle h = tiny_open(tiny.bytes, n, &error);
    CHECK(h.t == NULL && h.status == SLM2_E_FORMAT);
    tiny_close(&h);
  }
  tiny_handle longer = tiny_open(tiny.bytes, tiny.n + 1, &error);
  CHECK(longer.status == SLM2_E_FORMAT);
  tiny_close(&longer);
  size_t accepted = 0;
  for (int round = 0; round < 3000; round++) {
    tiny_section s = tiny;
    for (uint64_t i = test_random(&seed) % 3 + 1; i > 0; i--)
      s.bytes[test_random(&seed) % s.n] = (uint8_t)(test_random(&seed) % 4 == 0 ? 0 : test_random(&seed));
    tiny_handle h = tiny_open(s.bytes, s.n, &error);
    CHECK((h.t != NULL) == (h.status == SLM2_OK));
    if (h.t != NULL) {
      uint8_t text[64];
      for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)"ab c<|x|>long\xc3\xa9\xff"[test_random(&seed) % 16];
      result r = run(h.t, text, sizeof text, SLM2_SPECIALS_ON, NULL);
      CHECK(r.status == SLM2_OK && r.n != 0);
      for (size_t i = 0; i < r.n; i++) CHECK(slm2_token_exists(h.t, r.ids[i]));
      free(r.ids);
      accepted++;
    }
    tiny_close(&h);
  }
  CHECK(accepted > 10);
}

static void check_arguments(const slm2_tokenizer *t) {
  slm2_error error = {0};
  uint8_t mem[64];
  size_t bytes = 0, n = 77, need;
  slm2_tokenizer *out = NULL;
  uint32_t ids[64];
  CHECK(slm2_tokenizer_bytes(NULL, 5, &bytes, &error) == SLM2_E_ARGUMENT &&
        slm2_tokenizer_bytes(tiny.bytes, tiny.n, NULL, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenizer_bytes(NULL, 0, &bytes, NULL) == SLM2_E_FORMAT && bytes == 0);
  CHECK(slm2_tokenizer_init(NULL, 0, tiny.bytes, tiny.n, &out, &error) == SLM2_E_ARGUMENT);
  _Alignas(16) static uint8_t aligned[8192];
  CHECK(slm2_tokenizer_init(aligned + 1, sizeof aligned - 1, tiny.bytes, tiny.n, &out, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenizer_init(aligned, 64, tiny.bytes, tiny.n, &out, &error) == SLM2_E_MEMORY && out == NULL &&
        strstr(error.message, "64 were lent") != NULL);
  CHECK(slm2_tokenize_scratch_bytes(5, NULL) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize_scratch_bytes(SIZE_MAX, &n) == SLM2_E_ARGUMENT && n == 77);
  CHECK(slm2_tokenize_scratch_bytes((1u << 29) + 1, &n) == SLM2_E_ARGUMENT && n == 77);
  if (SIZE_MAX > UINT32_MAX) CHECK(slm2_tokenize_scratch_bytes(1u << 29, &n) == SLM2_OK && n > 1u << 29);
  else CHECK(slm2_tokenize_scratch_bytes(1u << 29, &n) == SLM2_E_ARGUMENT && n == 77); /* more than a size_t counts */
  CHECK(slm2_tokenize_scratch_bytes(5, &need) == SLM2_OK && need <= sizeof aligned);
  const uint8_t *text = (const uint8_t *)"abzab";
  n = 77;
  CHECK(slm2_tokenize(NULL, text, 5, SLM2_SPECIALS_ON, NULL, aligned, need, ids, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, NULL, 5, SLM2_SPECIALS_ON, NULL, aligned, need, ids, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, NULL, need, ids, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, aligned + 4, need, ids, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, aligned, need, NULL, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, aligned, need, ids, 64, NULL, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, (slm2_specials)3, NULL, aligned, need, ids, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_MASKED, NULL, aligned, need, ids, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, mem, aligned, need, ids, 64, &n, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, aligned, need - 1, ids, 64, &n, &error) == SLM2_E_MEMORY);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, aligned, need, ids, 2, &n, &error) == SLM2_E_MEMORY && n == 77);
  CHECK(strstr(error.message, "3 ids do not fit in 2") != NULL);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, aligned, need, NULL, 0, &n, NULL) == SLM2_E_MEMORY && n == 77);
  CHECK(slm2_tokenize(t, text, 5, SLM2_SPECIALS_ON, NULL, aligned, need, ids, 3, &n, &error) == SLM2_OK && n == 3);
  const uint8_t *two = (const uint8_t *)"<|x|><|x|>";
  CHECK(slm2_tokenize_scratch_bytes(10, &need) == SLM2_OK && need <= sizeof aligned);
  ids[1] = 0x77777777;
  CHECK(slm2_tokenize(t, two, 10, SLM2_SPECIALS_ON, NULL, aligned, need, ids, 1, &n, &error) == SLM2_E_MEMORY && n == 3);
  CHECK(ids[1] == 0x77777777);
  CHECK(slm2_tokenize(t, NULL, 0, SLM2_SPECIALS_ON, NULL, NULL, 0, NULL, 0, &n, &error) == SLM2_OK && n == 0);
}

static void check_lookups(const slm2_tokenizer *t) {
  size_t n = 1;
  CHECK(slm2_tokenizer_size(t) == TINY_TOKENS);
  for (uint32_t id = 0; id < TINY_TOKENS; id++) {
    const uint8_t *text = slm2_token_bytes(t, id, &n);
    CHECK(n == tiny.length[id] && (text == NULL) == (n == 0) && (n == 0 || memcmp(text, tiny.text[id], n) == 0));
    CHECK(slm2_token_exists(t, id) == (id != TINY_GAP) && slm2_token_is_added(t, id) == (id >= TINY_X));
    CHECK(slm2_token_is_special(t, id) == (id == TINY_X || id == TINY_E || id == TINY_LAST));
    uint32_t found = id == TINY_GAP ? SLM2_NO_TOKEN : slm2_token_find_added(t, tiny.text[id], tiny.length[id]);
    CHECK(found == (id == ('<' ^ 0x55) ? TINY_LT : id >= TINY_X ? id : SLM2_NO_TOKEN));
  }
  static const uint32_t absent[] = {TINY_TOKENS, TINY_TOKENS + 1, 0x40000000, SLM2_NO_TOKEN};
  for (size_t i = 0; i < 4; i++) {
    n = 1;
    CHECK(slm2_token_bytes(t, absent[i], &n) == NULL && n == 0 && !slm2_token_exists(t, absent[i]));
    CHECK(!slm2_token_is_added(t, absent[i]) && !slm2_token_is_special(t, absent[i]));
  }
  CHECK(slm2_token_find_added(t, "", 0) == SLM2_NO_TOKEN && slm2_token_find_added(t, "zzz", 3) == SLM2_NO_TOKEN);
  CHECK(slm2_token_find_added(t, "<|x|>lon", 8) == SLM2_NO_TOKEN && slm2_token_find_added(t, "<|x|>longer", 11) == SLM2_NO_TOKEN);
}

/* A mebibyte of what would be slow if anything were quadratic: it would not end in this life. */
static void check_long(const slm2_tokenizer *t) {
  static const char *const units[] = {"a",        " ",   "\n", "\xff", "<", "'", "\xcc\x81", "\xcc\xb4\xcd\x85", "\xe1\x84\x80",
                                      "\xcd\x84", "<|x", "a "};
  size_t n = 1u << 20;
  char *text = malloc(n);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    for (size_t at = 0; at < n; at++) text[at] = units[i][at % strlen(units[i])];
    result r = run(t, text, n, SLM2_SPECIALS_ON, NULL);
    CHECK_CASE(r.status == SLM2_OK && r.n != 0, units[i]);
    free(r.ids);
  }
  memset(text, 'a', n - 2);
  memcpy(text + n - 2, "\xcc\x81", 2); /* one mark after a mebibyte that is NFC already */
  result r = run(t, text, n, SLM2_SPECIALS_ON, NULL);
  CHECK(r.status == SLM2_OK && slm2_token_length(t, r.ids[r.n - 1]) == 1);
  free(r.ids), free(text);
}

/* Where composing must not happen, or just happens: Unicode Standard Annex 15; as Hugging Face's engine does. */
static void check_nfc(void) {
  static const char *const texts[][2] = {
      {"a\xcc\x85\xcc\x81", "a\xcc\x85\xcc\x81"},                                   /* blocked by a mark of the same class */
      {"a\xcc\xa3\xcc\x82", "\xe1\xba\xad"},                                       /* two marks */
      {"a\xcc\x82\xcc\xa3", "\xe1\xba\xad"},                                       /* after reordering */
      {"a\xcc\x81\xcc\xb4", "\xc3\xa1\xcc\xb4"},                                   /* past a lower class */
      {"\xea\xb0\x80\xe1\x86\xa7", "\xea\xb0\x80\xe1\x86\xa7"},                   /* U+11A7 is no trailing consonant */
      {"\xea\xb0\x80\xe1\x86\xa8", "\xea\xb0\x81"}, {"\xea\xb0\x81\xe1\x86\xa8", "\xea\xb0\x81\xe1\x86\xa8"},
      {"\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"},                   /* jamo */
      {"\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"}, {"\xe2\x84\xaa", "K"},         /* an exclusion; a singleton */
      {"\xcc\x81", "\xcc\x81"}, {"\xcd\x84", "\xcc\x88\xcc\x81"},                   /* marks alone */
      {"\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0", "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0"}, /* composes since Unicode 13, not there */
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    uint32_t scratch[64];
    uint8_t out[64];
    size_t n;
    const uint8_t *got = slm2_nfc((const uint8_t *)texts[i][0], strlen(texts[i][0]), out, scratch, &n);
    CHECK_CASE(n == strlen(texts[i][1]) && memcmp(got, texts[i][1], n) == 0, texts[i][0]);
  }
}

int main(void) {
  slm2_error error;
  tiny_init(&tiny);
  tiny_handle h = tiny_open(tiny.bytes, tiny.n, &error);
  if (!CHECK_CASE(h.status == SLM2_OK, error.message)) return test_end("tokenizer");
  check_cases(h.t);
  check_lookups(h.t);
  check_arguments(h.t);
  vector_value file = vector_file("tests/data/tokenizer/random_vectors.jsonl"), line;
  for (size_t at = 0; vector_next(file, &at, &line);) {
    char label[64];
    snprintf(label, sizeof label, "%.50s", line.text);
    check_pieces(h.t, line);
    check_decoder(line);
  }
  vector_close(file);
  check_nfc();
  check_broken();
  check_broken_texts();
  check_collisions();
  check_damage();
  check_long(h.t);
  tiny_close(&h);
  return test_end("tokenizer");
}
