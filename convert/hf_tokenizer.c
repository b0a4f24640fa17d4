/* convert/hf_tokenizer.c: the vocabulary, merges and added tokens of a tokenizer.json to the bytes of a tokenizer section
 * (src/tokenizer/section.h). Linear in the text: tokens are looked up in a hash table whose key is derived from the
 * text's own SHA-256, so nobody can prepare a file of colliding tokens. */
#include "convert/convert.h"
#include "convert/hf_pipeline.h"
#include "convert/text.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "tokenizer/section.h"

#define WHAT "tokenizer.json"
#define NO_TOKEN UINT32_MAX
/* A token's bytes as symbols in JSON: at most six characters (\uXXXX) each. */
#define MAX_TOKEN_TEXT (6 * SLM2_MAX_TOKEN_BYTES)

/* A token while its bytes are still text. n_text 0: no token has this id yet. */
typedef struct token_text {
  uint32_t at; /* of the text behind its quote */
  uint16_t n_text;
  bool escaped, added, special;
  bool listed; /* an added token that the vocabulary lists too, as trainers do */
} token_text;

typedef struct job {
  const char *json;
  slm2_tokenizer_scan scan;
  uint32_t n_tokens;
  /* scratch */
  token_text *tokens; /* [n_vocab + n_added] */
  uint32_t *slots;    /* id + 1 by hash of the token's bytes */
  uint32_t *pairs;    /* row + 1 by hash of the pair */
  char *text;         /* [MAX_TOKEN_TEXT], a decoded JSON string */
  uint32_t slot_mask, pair_mask;
  uint64_t key[2];
  /* section */
  uint8_t *ends, *merges, *added, *blob;
  uint32_t blob_bytes;
} job;

static slm2_status refuse(slm2_error *error, slm2_status code, const char *name, uint64_t at, const char *why, uint64_t a,
                          uint64_t b) {
  return slm2_fail(error, code, "tokenizer", name, at, why, a, b);
}
static slm2_status refuse_token(slm2_error *error, const job *w, uint32_t id, const char *why, uint64_t a, uint64_t b) {
  const token_text *t = &w->tokens[id];
  return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", w->json + t->at, t->n_text, t->at, why, a, b);
}

/* --- memory ----------------------------------------------------------------------------- */

/* Slots for n entries: a power of two, at most half full. */
static uint32_t slot_count(uint32_t n) {
  uint32_t slots = 16;
  while (slots < 2 * (uint64_t)n && slots < UINT32_C(1) << 31) slots *= 2;
  return slots;
}
static void place(job *w, slm2_arena *a) {
  uint32_t n = w->scan.n_vocab + w->scan.n_added;
  w->tokens = slm2_arena_take(a, n, sizeof *w->tokens);
  w->slots = slm2_arena_take(a, slot_count(n), sizeof *w->slots);
  w->pairs = slm2_arena_take(a, slot_count(w->scan.n_merges), sizeof *w->pairs);
  w->text = slm2_arena_take(a, MAX_TOKEN_TEXT, 1);
  w->slot_mask = slot_count(n) - 1;
  w->pair_mask = slot_count(w->scan.n_merges) - 1;
}

static slm2_status check_counts(const slm2_tokenizer_scan *s, slm2_error *error) {
  if (s->n_vocab > SLM2_MAX_VOCAB) {
    return refuse(error, SLM2_E_UNSUPPORTED, "vocab", SLM2_NO_OFFSET, WHAT ": %u tokens; at most %u are possible", s->n_vocab,
                  SLM2_MAX_VOCAB);
  }
  if (s->n_added > SLM2_MAX_ADDED) {
    return refuse(error, SLM2_E_UNSUPPORTED, "added_tokens", SLM2_NO_OFFSET, WHAT ": %u added tokens; at most %u are possible",
                  s->n_added, SLM2_MAX_ADDED);
  }
  if (s->n_merges > UINT32_C(1) << 24) {
    return refuse(error, SLM2_E_UNSUPPORTED, "merges", SLM2_NO_OFFSET, WHAT ": %u merges; at most %u are possible", s->n_merges,
                  UINT32_C(1) << 24);
  }
  return SLM2_OK;
}

static uint64_t section_capacity(const slm2_tokenizer_scan *s) {
  return SLM2_TOKENIZER_HEAD_BYTES + 4 * ((uint64_t)s->n_vocab + s->n_added) + 12 * (uint64_t)s->n_merges +
         8 * (uint64_t)s->n_added + s->text_bytes;
}

slm2_status slm2_tokenizer_convert_bytes(const char *json, size_t n, size_t *scratch_bytes, size_t *capacity, slm2_error *error) {
  job w = {.json = json};
  slm2_arena arena;
  SLM2_TRY(slm2_tokenizer_scan_json(json, n, &w.scan, error));
  SLM2_TRY(check_counts(&w.scan, error));
  slm2_arena_init(&arena, NULL, 0);
  place(&w, &arena);
  uint64_t section = section_capacity(&w.scan);
  if (arena.failed || arena.used > SIZE_MAX || section > SIZE_MAX) {
    return refuse(error, SLM2_E_MEMORY, "", SLM2_NO_OFFSET, WHAT ": %u bytes of scratch and %u of output do not fit this machine",
                  arena.used, section);
  }
  *scratch_bytes = (size_t)arena.used;
  *capacity = (size_t)section;
  return SLM2_OK;
}

/* --- hash tables ------------------------------------------------------------------------ */

/* The bijection of SplitMix64's output. */
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}
static uint64_t hash_bytes(const job *w, const uint8_t *bytes, uint32_t n) {
  uint64_t h = w->key[0] + n;
  for (uint32_t i = 0; i < n; i += 8) {
    uint64_t word = 0;
    for (uint32_t k = 0; k < 8 && i + k < n; k++) word |= (uint64_t)bytes[i + k] << (8 * k);
    h = mix((h ^ word) + w->key[1]);
  }
  return h;
}

static const uint8_t *token_bytes(const job *w, uint32_t id, uint32_t *n) {
  uint32_t begin = id == 0 ? 0 : slm2_load_u32(w->ends + 4 * (size_t)(id - 1));
  *n = slm2_load_u32(w->ends + 4 * (size_t)id) - begin;
  return w->blob + begin;
}
/* The slot where these bytes are, or would be. */
static uint32_t *token_slot(const job *w, const uint8_t *bytes, uint32_t n) {
  uint32_t at = (uint32_t)hash_bytes(w, bytes, n) & w->slot_mask;
  for (; w->slots[at] != 0; at = (at + 1) & w->slot_mask) {
    uint32_t n_found;
    const uint8_t *found = token_bytes(w, w->slots[at] - 1, &n_found);
    if (n_found == n && memcmp(found, bytes, n) == 0) break;
  }
  return &w->slots[at];
}
static uint32_t find_token(const job *w, const uint8_t *bytes, uint32_t n) {
  uint32_t slot = *token_slot(w, bytes, n);
  return slot == 0 || w->tokens[slot - 1].added ? NO_TOKEN : slot - 1;
}

/* Enters row `rank` of the merges; false when its pair is there already. */
static bool add_pair(const job *w, uint32_t rank) {
  const uint8_t *row = w->merges + 12 * (size_t)rank;
  uint64_t pair = slm2_load_u64(row);
  uint32_t at = (uint32_t)mix((pair ^ w->key[0]) + w->key[1]) & w->pair_mask;
  for (; w->pairs[at] != 0; at = (at + 1) & w->pair_mask) {
    if (slm2_load_u64(w->merges + 12 * (size_t)(w->pairs[at] - 1)) == pair) return false;
  }
  w->pairs[at] = rank + 1;
  return true;
}

/* --- GPT-2's symbols ---------------------------------------------------------------------- */

/* The byte a symbol stands for, or -1: 21..7E, A1..AC, AE..FF are themselves, U+0100 + i is the i-th other byte. */
static int symbol_byte(uint32_t cp) {
  if ((cp >= 0x21 && cp <= 0x7e) || (cp >= 0xa1 && cp <= 0xff && cp != 0xad)) return (int)cp;
  if (cp < 0x100 || cp > 0x143) return -1;
  uint32_t i = cp - 0x100;
  return (int)(i <= 0x20 ? i : i <= 0x42 ? i - 0x21 + 0x7f : 0xad);
}
/* Bytes of symbols; false when one is no symbol or there are more than SLM2_MAX_TOKEN_BYTES. */
static bool symbols_to_bytes(const char *s, size_t n, uint8_t *out, uint32_t *n_out) {
  uint32_t count = 0;
  for (size_t i = 0; i < n;) {
    uint32_t cp = (uint8_t)s[i];
    bool valid = true;
    i += cp < 0x80 ? 1 : slm2_utf8_next((const uint8_t *)s + i, n - i, &cp, &valid);
    int byte = symbol_byte(cp);
    if (byte < 0 || count == SLM2_MAX_TOKEN_BYTES) return false;
    out[count++] = (uint8_t)byte;
  }
  *n_out = count;
  return true;
}

/* --- tokens: first where their texts are, then their bytes in the order of ids ------------------ */

static slm2_status set_token(job *w, const slm2_json_token *text, uint32_t id, token_text value, slm2_error *error) {
  uint32_t n = w->scan.n_vocab + w->scan.n_added;
  if (text->n_raw == 0 || text->n_raw > MAX_TOKEN_TEXT) {
    return refuse(error, SLM2_E_FORMAT, "", text->offset, WHAT ": the text of token %u has %u bytes", id, text->n_raw);
  }
  if (id >= n) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", text->raw, text->n_raw, text->offset,
                       WHAT ": id %u, but there are only %u tokens; ids have no gaps", (uint64_t)id, (uint64_t)n);
  }
  token_text *t = &w->tokens[id];
  value.at = (uint32_t)(text->raw - w->json);
  value.n_text = (uint16_t)text->n_raw;
  value.escaped = text->escaped;
  if (t->n_text != 0) {
    bool same = t->n_text == value.n_text && memcmp(w->json + t->at, text->raw, text->n_raw) == 0;
    if (!t->added || value.added || t->listed || !same)
      return refuse_token(error, w, id, WHAT ": two tokens have the id %u", id, 0);
    t->listed = true;
    w->n_tokens--;
    return SLM2_OK;
  }
  *t = value;
  return SLM2_OK;
}

static slm2_status read_added_token(job *w, slm2_json *j, slm2_error *error) {
  enum { ID = 1, CONTENT = 2, SPECIAL = 4, ALL = 7 };
  static const char *const off[] = {"lstrip", "rstrip", "single_word", "normalized"};
  slm2_json_token t, content = {.type = SLM2_JSON_END};
  uint32_t id = 0;
  unsigned seen = 0;
  token_text value = {.added = true};
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    unsigned key = slm2_json_is(&t, "id")        ? ID
                   : slm2_json_is(&t, "content") ? CONTENT
                   : slm2_json_is(&t, "special") ? SPECIAL
                                                 : 0;
    for (unsigned i = 0; i < 4; i++) key |= slm2_json_is(&t, off[i]) ? 8u << i : 0;
    if (key == 0 || (seen & key) != 0) {
      return slm2_fail_n(error, SLM2_E_UNSUPPORTED, "tokenizer", t.raw, t.n_raw, t.offset, WHAT ": %s key in an added token",
                         key == 0 ? "an unknown" : "a repeated");
    }
    seen |= key;
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (key == ID) {
      SLM2_TRY(slm2_json_u32(j, &t, "id", &id, error));
    } else if (key == CONTENT && t.type == SLM2_JSON_STRING) {
      content = t;
    } else if (key == CONTENT) {
      return refuse(error, SLM2_E_JSON, "content", t.offset, WHAT ": the content of an added token is no text", 0, 0);
    } else if (key == SPECIAL) {
      SLM2_TRY(slm2_json_bool(j, &t, "special", &value.special, error));
    } else if (t.type != SLM2_JSON_FALSE) {
      return refuse(error, SLM2_E_UNSUPPORTED, off[key == 8 ? 0 : key == 16 ? 1 : key == 32 ? 2 : 3], t.offset,
                    WHAT ": an added token has a flag of lstrip, rstrip, single_word, normalized that is not false", 0, 0);
    }
  }
  if ((seen & ALL) != ALL)
    return refuse(error, SLM2_E_JSON, "added_tokens", t.offset, WHAT ": an added token lacks id, content or special", 0, 0);
  return set_token(w, &content, id, value, error);
}

static slm2_status read_tokens(job *w, slm2_error *error) {
  slm2_json j = w->scan.added;
  slm2_json_token t, key;
  for (uint32_t i = 0; i < w->scan.n_added; i++) {
    SLM2_TRY(slm2_json_next(&j, &t, error));
    if (t.type != SLM2_JSON_OBJECT)
      return refuse(error, SLM2_E_JSON, "added_tokens", t.offset, WHAT ": added token %u is no object", i, 0);
    SLM2_TRY(read_added_token(w, &j, error));
  }
  j = w->scan.vocab;
  for (uint32_t i = 0; i < w->scan.n_vocab; i++) {
    uint32_t id;
    SLM2_TRY(slm2_json_next(&j, &key, error));
    SLM2_TRY(slm2_json_next(&j, &t, error));
    SLM2_TRY(slm2_json_u32(&j, &t, "vocab", &id, error));
    SLM2_TRY(set_token(w, &key, id, (token_text){.added = false}, error));
  }
  return SLM2_OK;
}

/* A JSON string without its escapes: itself, or decoded into w->text. */
static const char *plain_text(const job *w, const char *raw, size_t n_raw, bool escaped, size_t *n) {
  *n = n_raw;
  if (!escaped) return raw;
  slm2_json_token t = {.type = SLM2_JSON_STRING, .raw = raw, .n_raw = n_raw, .escaped = true};
  *n = slm2_json_decode(&t, w->text);
  return w->text;
}

static slm2_status write_token(job *w, uint32_t id, slm2_error *error) {
  const token_text *t = &w->tokens[id];
  if (t->n_text == 0)
    return refuse(error, SLM2_E_FORMAT, "vocab", SLM2_NO_OFFSET, WHAT ": no token has id %u; ids 0..%u must all be there", id,
                  w->n_tokens - 1);
  size_t n_text;
  const char *text = plain_text(w, w->json + t->at, t->n_text, t->escaped, &n_text);
  uint8_t *out = w->blob + w->blob_bytes;
  uint32_t n = 0;
  if (!t->added) {
    if (!symbols_to_bytes(text, n_text, out, &n)) {
      return refuse_token(error, w, id, WHAT ": token %u is longer than %u bytes, or no text of byte symbols", id,
                          SLM2_MAX_TOKEN_BYTES);
    }
  } else {
    bool replaced = false;
    for (size_t i = 0; i + 3 <= n_text; i++) replaced = replaced || memcmp(text + i, "\xef\xbf\xbd", 3) == 0;
    if (n_text > SLM2_MAX_TOKEN_BYTES || replaced) {
      return refuse_token(error, w, id, WHAT ": added token %u is longer than %u bytes, or holds U+FFFD", id,
                          SLM2_MAX_TOKEN_BYTES);
    }
    memcpy(out, text, n_text);
    n = (uint32_t)n_text;
  }
  w->blob_bytes += n;
  slm2_store_u32(w->ends + 4 * (size_t)id, w->blob_bytes);
  uint32_t *slot = token_slot(w, out, n);
  if (*slot != 0) return refuse_token(error, w, id, WHAT ": tokens %u and %u are the same bytes", *slot - 1, id);
  *slot = id + 1;
  return SLM2_OK;
}

static slm2_status write_tokens(job *w, slm2_error *error) {
  uint32_t n_added = 0;
  for (uint32_t id = 0; id < w->n_tokens; id++) {
    SLM2_TRY(write_token(w, id, error));
    if (!w->tokens[id].added) continue;
    slm2_store_u32(w->added + 8 * (size_t)n_added, id);
    slm2_store_u32(w->added + 8 * (size_t)n_added++ + 4, w->tokens[id].special ? SLM2_ADDED_SPECIAL : 0);
  }
  for (uint32_t b = 0; b < 256; b++) {
    uint8_t byte = (uint8_t)b;
    if (find_token(w, &byte, 1) == NO_TOKEN)
      return refuse(error, SLM2_E_FORMAT, "vocab", SLM2_NO_OFFSET, WHAT ": no token is the byte 0x%x", b, 0);
  }
  return SLM2_OK;
}

/* --- merges --------------------------------------------------------------------------------- */

typedef struct merge_text {
  uint8_t bytes[2 * SLM2_MAX_TOKEN_BYTES]; /* left, then right */
  uint32_t n;
  uint32_t ids[2];
} merge_text;

/* One side of merge `rank`: its symbols to bytes behind those before it. */
static slm2_status add_side(const job *w, merge_text *m, uint32_t side, const char *s, size_t n, uint64_t at, uint32_t rank,
                            slm2_error *error) {
  uint32_t n_bytes = 0;
  if (n == 0 || !symbols_to_bytes(s, n, m->bytes + m->n, &n_bytes)) {
    return refuse(error, SLM2_E_FORMAT, "merges", at, WHAT ": merge %u is not two texts of byte symbols", rank, 0);
  }
  m->ids[side] = find_token(w, m->bytes + m->n, n_bytes);
  if (m->ids[side] == NO_TOKEN) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "tokenizer", s, n, at, WHAT ": merge %u joins what is no token of the vocabulary",
                       (uint64_t)rank);
  }
  m->n += n_bytes;
  return SLM2_OK;
}

/* "left right" in old files, ["left", "right"] in new ones. */
static slm2_status read_merge(const job *w, slm2_json *j, uint32_t rank, merge_text *m, slm2_error *error) {
  slm2_json_token t;
  SLM2_TRY(slm2_json_next(j, &t, error));
  uint64_t at = t.offset;
  bool pair = t.type == SLM2_JSON_ARRAY;
  if (!pair && t.type != SLM2_JSON_STRING)
    return refuse(error, SLM2_E_JSON, "merges", at, WHAT ": merge %u is neither a text nor a pair", rank, 0);
  m->n = 0;
  for (uint32_t side = 0; side < (pair ? 2u : 1u); side++) {
    if (pair) SLM2_TRY(slm2_json_expect(j, SLM2_JSON_STRING, &t, error));
    size_t n, space = 0;
    if (t.n_raw > MAX_TOKEN_TEXT)
      return refuse(error, SLM2_E_FORMAT, "merges", at, WHAT ": merge %u has %u bytes", rank, t.n_raw);
    const char *text = plain_text(w, t.raw, t.n_raw, t.escaped, &n);
    if (pair) {
      SLM2_TRY(add_side(w, m, side, text, n, at, rank, error));
      continue;
    }
    while (space < n && text[space] != ' ') space++;
    if (space == n)
      return refuse(error, SLM2_E_FORMAT, "merges", at, WHAT ": merge %u is not two texts of byte symbols", rank, 0);
    SLM2_TRY(add_side(w, m, 0, text, space, at, rank, error));
    SLM2_TRY(add_side(w, m, 1, text + space + 1, n - space - 1, at, rank, error));
  }
  return pair ? slm2_json_expect(j, SLM2_JSON_ARRAY_END, &t, error) : SLM2_OK;
}

static slm2_status write_merges(job *w, slm2_error *error) {
  slm2_json j = w->scan.merges;
  merge_text m;
  for (uint32_t rank = 0; rank < w->scan.n_merges; rank++) {
    SLM2_TRY(read_merge(w, &j, rank, &m, error));
    uint32_t result = find_token(w, m.bytes, m.n);
    if (result == NO_TOKEN)
      return refuse(error, SLM2_E_FORMAT, "merges", SLM2_NO_OFFSET, WHAT ": the result of merge %u is no token of the vocabulary",
                    rank, 0);
    uint8_t *row = w->merges + 12 * (size_t)rank;
    slm2_store_u32(row, m.ids[0]);
    slm2_store_u32(row + 4, m.ids[1]);
    slm2_store_u32(row + 8, result);
    if (!add_pair(w, rank))
      return refuse(error, SLM2_E_FORMAT, "merges", SLM2_NO_OFFSET, WHAT ": merge %u joins a pair that an earlier one joins",
                    rank, 0);
  }
  return SLM2_OK;
}

/* --- all ------------------------------------------------------------------------------------- */

slm2_status slm2_tokenizer_convert(const char *json, size_t n, void *scratch, size_t scratch_bytes, uint8_t *section,
                                   size_t capacity, size_t *section_bytes, slm2_error *error) {
  job w = {.json = json};
  slm2_arena arena;
  uint8_t digest[32];
  if (!is_aligned(scratch))
    return refuse(error, SLM2_E_ARGUMENT, "scratch", SLM2_NO_OFFSET, "scratch is not 16-byte aligned", 0, 0);
  SLM2_TRY(slm2_tokenizer_scan_json(json, n, &w.scan, error));
  SLM2_TRY(check_counts(&w.scan, error));
  slm2_arena_init(&arena, scratch, scratch_bytes);
  place(&w, &arena);
  if (arena.failed || capacity < section_capacity(&w.scan)) {
    return refuse(error, SLM2_E_MEMORY, "", SLM2_NO_OFFSET, WHAT ": %u bytes of scratch or %u of output are too few",
                  scratch_bytes, capacity);
  }
  memset(scratch, 0, (size_t)arena.used);
  slm2_sha256_of(json, n, digest);
  w.key[0] = slm2_load_u64(digest);
  w.key[1] = slm2_load_u64(digest + 8);
  w.n_tokens = w.scan.n_vocab + w.scan.n_added;
  SLM2_TRY(read_tokens(&w, error));
  w.ends = section + SLM2_TOKENIZER_HEAD_BYTES;
  w.merges = w.ends + 4 * (size_t)w.n_tokens;
  w.added = w.merges + 12 * (size_t)w.scan.n_merges;
  w.blob = w.added + 8 * (size_t)w.scan.n_added;
  SLM2_TRY(write_tokens(&w, error));
  SLM2_TRY(write_merges(&w, error));
  const uint32_t head[8] = {
      SLM2_TOKENIZER_MAGIC, SLM2_PRETOKENIZER_QWEN2, w.n_tokens, w.scan.n_merges, w.scan.n_added, w.blob_bytes, 0, 0};
  for (size_t i = 0; i < 8; i++) slm2_store_u32(section + 4 * i, head[i]);
  *section_bytes = (size_t)(w.blob - section) + w.blob_bytes;
  return SLM2_OK;
}
