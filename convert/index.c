/* convert/index.c: model.safetensors.index.json. It names files to open, so it is read as hostile [FIL-7]: shard names
 * are plain basenames, every tensor is listed once, and what it says must be what the shards hold. */
#include "convert/convert.h"
#include "convert/safetensors.h"
#include "convert/text.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"

#define WHAT "model.safetensors.index.json"
#define INDEX_MAX (UINT32_C(1) << 28) /* bytes: offsets fit 32 bits, and so does the scratch on a 32-bit machine */

typedef struct index_text {
  slm2_json map; /* just behind the '{' of weight_map */
  bool has_total;
  uint64_t total;
} index_text;

static slm2_status read_metadata(slm2_json *j, index_text *out, slm2_error *error) {
  slm2_json_token t;
  SLM2_TRY(slm2_json_expect(j, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) return SLM2_OK;
    if (!slm2_json_is(&t, "total_size")) {
      SLM2_TRY(slm2_json_skip(j, &t, error));
      continue;
    }
    if (out->has_total) return slm2_fail(error, SLM2_E_FORMAT, "index", WHAT, t.offset, "total_size comes twice");
    out->has_total = true;
    SLM2_TRY(slm2_json_next(j, &t, error));
    SLM2_TRY(slm2_json_u64(j, &t, "total_size", &out->total, error));
  }
}

/* Checks the whole text as JSON and finds its parts. */
static slm2_status open_index(const char *json, size_t n, index_text *out, slm2_error *error) {
  slm2_json j;
  slm2_json_token t;
  bool map = false, metadata = false;
  *out = (index_text){.has_total = false};
  slm2_json_init(&j, json, n, WHAT);
  SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(&j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    bool is_map = slm2_json_is(&t, "weight_map"), is_metadata = slm2_json_is(&t, "metadata");
    if ((is_map && map) || (is_metadata && metadata))
      return slm2_fail(error, SLM2_E_FORMAT, "index", WHAT, t.offset, "a key comes twice");
    map = map || is_map;
    metadata = metadata || is_metadata;
    if (is_metadata) {
      SLM2_TRY(read_metadata(&j, out, error));
    } else if (is_map) {
      SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, error));
      out->map = j;
      SLM2_TRY(slm2_json_skip(&j, &t, error));
    } else {
      SLM2_TRY(slm2_json_skip(&j, &t, error));
    }
  }
  SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_END, &t, error));
  return map ? SLM2_OK : slm2_fail(error, SLM2_E_FORMAT, "index", WHAT, SLM2_NO_OFFSET, "weight_map is missing");
}

/* [A-Za-z0-9._-]+ and not a name for a folder. */
static bool plain_basename(const char *s, size_t n) {
  size_t dots = 0;
  if (n == 0 || n >= SLM2_SHARD_NAME_MAX) return false;
  for (size_t i = 0; i < n; i++) {
    char c = s[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!plain) return false;
    dots += c == '.';
  }
  return dots != n;
}

/* Next pair of weight_map: key is the tensor, value a plain shard name. *done at its end. */
static slm2_status next_pair(slm2_json *j, slm2_json_token *key, slm2_json_token *value, bool *done, slm2_error *error) {
  SLM2_TRY(slm2_json_next(j, key, error));
  *done = key->type == SLM2_JSON_OBJECT_END;
  if (*done) return SLM2_OK;
  if (key->escaped) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "index", key->raw, key->n_raw, key->offset, "a tensor name with escapes");
  }
  SLM2_TRY(slm2_json_next(j, value, error));
  if (value->type != SLM2_JSON_STRING) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "index", key->raw, key->n_raw, value->offset,
                       "the shard of a tensor is not a string");
  }
  if (value->escaped || !plain_basename(value->raw, value->n_raw)) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "index", key->raw, key->n_raw, value->offset,
                       "the shard of a tensor is not a plain file name of at most %u letters, digits, '.', '_' and '-'",
                       (uint64_t)SLM2_SHARD_NAME_MAX - 1);
  }
  return SLM2_OK;
}

/* --- distinct shard names ----------------------------------------------------- */

typedef struct key_span {
  uint32_t at, n;
} key_span;

/* The shortest pair is "":"a", of seven bytes. */
static size_t key_capacity(size_t n) { return n / 7 + 1; }
size_t slm2_index_bytes(size_t n) { return key_capacity(n) * sizeof(key_span); }

static bool key_less(const char *text, key_span a, key_span b) { return text_compare(text + a.at, a.n, text + b.at, b.n) < 0; }
static void sift_down(const char *text, key_span *k, size_t root, size_t n) {
  key_span moved = k[root];
  for (size_t child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && key_less(text, k[child], k[child + 1])) child++;
    if (!key_less(text, moved, k[child])) break;
    k[root] = k[child];
  }
  k[root] = moved;
}
static slm2_status refuse_repeated(const char *text, key_span *k, size_t n, slm2_error *error) {
  for (size_t i = n / 2; i > 0; i--) sift_down(text, k, i - 1, n);
  for (size_t last = n; last > 1; last--) { /* heapsort; the largest so far is compared with the next one to come */
    key_span top = k[0];
    k[0] = k[last - 1];
    sift_down(text, k, 0, last - 1);
    if (key_less(text, k[0], top)) continue;
    return slm2_fail_n(error, SLM2_E_FORMAT, "index", text + top.at, top.n, top.at, "a tensor is listed twice in " WHAT);
  }
  return SLM2_OK;
}

/* Adds a name that is not there yet. Neighbours in an index mostly share their shard: the last hit is tried first. */
static slm2_status add_shard(const slm2_json_token *value, char (*names)[SLM2_SHARD_NAME_MAX], uint32_t capacity, uint32_t *n,
                             uint32_t *last, slm2_error *error) {
  if (*n > 0 && slm2_json_is(value, names[*last])) return SLM2_OK;
  for (uint32_t i = 0; i < *n; i++) {
    if (!slm2_json_is(value, names[i])) continue;
    *last = i;
    return SLM2_OK;
  }
  if (*n == capacity) {
    return slm2_fail(error, SLM2_E_FORMAT, "index", WHAT, value->offset, "more than %u shards", (uint64_t)capacity);
  }
  memcpy(names[*n], value->raw, value->n_raw);
  names[*n][value->n_raw] = 0;
  *last = (*n)++;
  return SLM2_OK;
}

slm2_status slm2_index_shards(const char *json, size_t n, void *mem, size_t mem_bytes, char (*names)[SLM2_SHARD_NAME_MAX],
                              uint32_t capacity, uint32_t *n_names, slm2_error *error) {
  index_text index;
  slm2_json_token key, value;
  key_span *keys = mem;
  size_t n_keys = 0;
  uint32_t found = 0, last = 0;
  if (n > INDEX_MAX) return slm2_fail(error, SLM2_E_FORMAT, "index", WHAT, SLM2_NO_OFFSET, "%u bytes long", (uint64_t)n);
  if (!is_aligned(mem)) return slm2_fail(error, SLM2_E_ARGUMENT, "index", "mem", SLM2_NO_OFFSET, "mem is not 16-byte aligned");
  if (mem_bytes < slm2_index_bytes(n)) {
    return slm2_fail(error, SLM2_E_MEMORY, "index", WHAT, SLM2_NO_OFFSET, "needs %u bytes of memory, got %u",
                     (uint64_t)slm2_index_bytes(n), (uint64_t)mem_bytes);
  }
  SLM2_TRY(open_index(json, n, &index, error));
  for (bool done;;) {
    SLM2_TRY(next_pair(&index.map, &key, &value, &done, error));
    if (done) break;
    keys[n_keys++] = (key_span){(uint32_t)(key.raw - json), (uint32_t)key.n_raw};
    SLM2_TRY(add_shard(&value, names, capacity, &found, &last, error));
  }
  SLM2_TRY(refuse_repeated(json, keys, n_keys, error));
  if (found == 0) return slm2_fail(error, SLM2_E_FORMAT, "index", WHAT, SLM2_NO_OFFSET, "weight_map lists no tensor");
  *n_names = found;
  return SLM2_OK;
}

/* --- against the shards ---------------------------------------------------------- */

static slm2_status check_pair(const slm2_json_token *key, const slm2_json_token *value, slm2_safetensors *shards,
                              uint32_t n_shards, slm2_error *error) {
  uint32_t s = 0;
  while (s < n_shards && !slm2_json_is(value, shards[s].file)) s++;
  if (s == n_shards) {
    char name[SLM2_SHARD_NAME_MAX] = {0};
    memcpy(name, value->raw, value->n_raw);
    return slm2_fail_n(error, SLM2_E_FORMAT, "index", key->raw, key->n_raw, value->offset, "shard %s of a tensor is missing",
                       name);
  }
  uint32_t i = slm2_st_find(&shards[s], key->raw, key->n_raw);
  if (i == UINT32_MAX) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "index", key->raw, key->n_raw, key->offset,
                       "a tensor is not in %s, where the index says it is", shards[s].file);
  }
  slm2_st_entry *e = &shards[s].entries[i];
  if (e->indexed)
    return slm2_fail_n(error, SLM2_E_FORMAT, "index", key->raw, key->n_raw, key->offset, "a tensor is listed twice in " WHAT);
  e->indexed = true;
  return SLM2_OK;
}

slm2_status slm2_index_check(const char *json, size_t n, slm2_safetensors *shards, uint32_t n_shards, slm2_error *error) {
  index_text index;
  slm2_json_token key, value;
  SLM2_TRY(open_index(json, n, &index, error));
  for (bool done;;) {
    SLM2_TRY(next_pair(&index.map, &key, &value, &done, error));
    if (done) break;
    SLM2_TRY(check_pair(&key, &value, shards, n_shards, error));
  }
  uint64_t total = 0;
  for (uint32_t s = 0; s < n_shards; s++) {
    for (uint32_t i = 0; i < shards[s].n_tensors; i++) {
      const slm2_st_entry *e = &shards[s].entries[i];
      if (e->indexed) continue;
      return slm2_fail_n(error, SLM2_E_FORMAT, "index", shards[s].header + e->name_at, e->n_name, SLM2_NO_OFFSET,
                         "a tensor of %s is not in the index", shards[s].file);
    }
    if (!slm2_add_u64(total, shards[s].data_bytes, &total)) total = UINT64_MAX;
  }
  if (!index.has_total || index.total == total) return SLM2_OK;
  return slm2_fail(error, SLM2_E_FORMAT, "index", WHAT, SLM2_NO_OFFSET, "total_size says %u bytes, the shards hold %u",
                   index.total, total);
}
