/* convert/safetensors.c: parses and checks safetensors headers. First border for weights from strangers: every number
 * of the file is checked before it bounds anything. Format: the safetensors README; rules: convert/safetensors.h. */
#include "convert/safetensors.h"
#include "convert/text.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"

static const struct {
  const char *name;
  uint32_t bits;
} dtypes[] = {
    [SLM2_ST_BOOL] = {"BOOL", 8},         [SLM2_ST_F4] = {"F4", 4},
    [SLM2_ST_F6_E2M3] = {"F6_E2M3", 6},   [SLM2_ST_F6_E3M2] = {"F6_E3M2", 6},
    [SLM2_ST_U8] = {"U8", 8},             [SLM2_ST_I8] = {"I8", 8},
    [SLM2_ST_F8_E5M2] = {"F8_E5M2", 8},   [SLM2_ST_F8_E4M3] = {"F8_E4M3", 8},
    [SLM2_ST_F8_E8M0] = {"F8_E8M0", 8},   [SLM2_ST_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [SLM2_ST_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [SLM2_ST_I16] = {"I16", 16},          [SLM2_ST_U16] = {"U16", 16},
    [SLM2_ST_F16] = {"F16", 16},          [SLM2_ST_BF16] = {"BF16", 16},
    [SLM2_ST_I32] = {"I32", 32},          [SLM2_ST_U32] = {"U32", 32},
    [SLM2_ST_F32] = {"F32", 32},          [SLM2_ST_C64] = {"C64", 64},
    [SLM2_ST_F64] = {"F64", 64},          [SLM2_ST_I64] = {"I64", 64},
    [SLM2_ST_U64] = {"U64", 64},
};
#define HEADER_AT 8u /* in the file: offsets of errors count from its start */
#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

const char *slm2_st_dtype_name(slm2_st_dtype dtype) { return (size_t)dtype < N_DTYPES ? dtypes[dtype].name : "unknown"; }

static slm2_status refuse(slm2_error *error, const char *file, uint64_t offset, const char *why) {
  return slm2_fail(error, SLM2_E_FORMAT, "safetensors", file, offset, "%s: %s", file, why);
}

slm2_status slm2_st_header_length(const char *file, const uint8_t *first, uint64_t file_bytes, size_t *n, slm2_error *error) {
  if (file_bytes < 8) {
    return slm2_fail(error, SLM2_E_FORMAT, "safetensors", file, 0, "%s: %u bytes long; a safetensors file has at least 8", file,
                     file_bytes);
  }
  uint64_t length = slm2_load_u64(first);
  if (length > SLM2_ST_HEADER_MAX) {
    return slm2_fail(error, SLM2_E_FORMAT, "safetensors", file, 0, "%s: header of %u bytes; the limit is %u", file, length,
                     (uint64_t)SLM2_ST_HEADER_MAX);
  }
  if (length > file_bytes - 8) {
    return slm2_fail(error, SLM2_E_FORMAT, "safetensors", file, 0,
                     "%s: header of %u bytes in a file of %u: the file is truncated", file, length, file_bytes);
  }
  if (length < 2) return refuse(error, file, 0, "the header is empty");
  *n = (size_t)length;
  return SLM2_OK;
}

/* How many entries n header bytes may need. The shortest one, of metadata, has 6 bytes: "":"", */
static size_t entry_capacity(size_t n) { return n / 6 + 1 < SLM2_ST_MAX_TENSORS ? n / 6 + 1 : SLM2_ST_MAX_TENSORS; }
size_t slm2_st_bytes(size_t n) { return entry_capacity(n) * sizeof(slm2_st_entry); }

/* --- one entry ------------------------------------------------------------- */

static slm2_status read_dtype(slm2_json *j, slm2_st_tensor *out, slm2_error *error) {
  slm2_json_token t;
  SLM2_TRY(slm2_json_expect(j, SLM2_JSON_STRING, &t, error));
  for (size_t i = 0; i < N_DTYPES; i++) {
    if (!slm2_json_is(&t, dtypes[i].name)) continue;
    out->dtype = (slm2_st_dtype)i;
    return SLM2_OK;
  }
  return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", out->name, out->n_name, j->base + t.offset,
                     "%s: a tensor has an unknown dtype", j->what);
}

static slm2_status read_shape(slm2_json *j, slm2_st_tensor *out, slm2_error *error) {
  slm2_json_token t;
  out->rank = 0;
  SLM2_TRY(slm2_json_expect(j, SLM2_JSON_ARRAY, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_ARRAY_END) return SLM2_OK;
    if (out->rank == SLM2_ST_MAX_RANK) {
      return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", out->name, out->n_name, j->base + t.offset,
                         "%s: a tensor has more than %u dimensions", j->what, (uint64_t)SLM2_ST_MAX_RANK);
    }
    SLM2_TRY(slm2_json_u64(j, &t, "shape", &out->dims[out->rank++], error));
  }
}

static slm2_status read_offsets(slm2_json *j, uint64_t offsets[2], slm2_error *error) {
  slm2_json_token t;
  SLM2_TRY(slm2_json_expect(j, SLM2_JSON_ARRAY, &t, error));
  for (int i = 0; i < 2; i++) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    SLM2_TRY(slm2_json_u64(j, &t, "data_offsets", &offsets[i], error));
  }
  return slm2_json_expect(j, SLM2_JSON_ARRAY_END, &t, error);
}

/* Whether dtype and dims say exactly `bytes` bytes; why not. */
static slm2_status check_size(const slm2_json *j, const slm2_st_tensor *t, uint64_t bytes, uint64_t at, slm2_error *error) {
  uint64_t bits = 1;
  for (uint32_t i = 0; i <= t->rank; i++) {
    if (!slm2_mul_u64(bits, i < t->rank ? t->dims[i] : dtypes[t->dtype].bits, &bits)) {
      return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", t->name, t->n_name, at,
                         "%s: the size of a tensor overflows 64 bits", j->what);
    }
  }
  if (bits % 8 != 0) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", t->name, t->n_name, at,
                       "%s: a tensor of %u bits is no whole number of bytes", j->what, bits);
  }
  if (bits / 8 == bytes) return SLM2_OK;
  return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", t->name, t->n_name, at,
                     "%s: dtype %s and shape need %u bytes, data_offsets hold %u", j->what, dtypes[t->dtype].name, bits / 8,
                     bytes);
}

/* Reads one tensor's object; its '{' was just read. offsets are relative to the data. */
static slm2_status read_entry(slm2_json *j, slm2_st_tensor *out, uint64_t offsets[2], slm2_error *error) {
  enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
  unsigned seen = 0;
  slm2_json_token t;
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    unsigned key = slm2_json_is(&t, "dtype")          ? DTYPE
                   : slm2_json_is(&t, "shape")        ? SHAPE
                   : slm2_json_is(&t, "data_offsets") ? OFFSETS
                                                      : 0;
    if (key == 0 || (seen & key) != 0) {
      return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", out->name, out->n_name, j->base + t.offset,
                         "%s: %s key in a tensor's entry", j->what, key == 0 ? "an unknown" : "a repeated");
    }
    seen |= key;
    if (key == DTYPE) SLM2_TRY(read_dtype(j, out, error));
    if (key == SHAPE) SLM2_TRY(read_shape(j, out, error));
    if (key == OFFSETS) SLM2_TRY(read_offsets(j, offsets, error));
  }
  if (seen != (DTYPE | SHAPE | OFFSETS)) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", out->name, out->n_name, j->base + t.offset,
                       "%s: a tensor lacks its %s", j->what,
                       (seen & DTYPE) == 0   ? "dtype"
                       : (seen & SHAPE) == 0 ? "shape"
                                             : "data_offsets");
  }
  if (offsets[0] > offsets[1]) {
    return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", out->name, out->n_name, j->base + t.offset,
                       "%s: data_offsets end at %u, before they begin at %u", j->what, offsets[1], offsets[0]);
  }
  out->bytes = offsets[1] - offsets[0];
  return check_size(j, out, out->bytes, j->base + t.offset, error);
}

/* --- order ------------------------------------------------------------------ */

typedef bool entry_less(const char *header, const slm2_st_entry *a, const slm2_st_entry *b);
static int compare_names(const char *header, const slm2_st_entry *a, const slm2_st_entry *b) {
  return text_compare(header + a->name_at, a->n_name, header + b->name_at, b->n_name);
}
static bool by_name(const char *header, const slm2_st_entry *a, const slm2_st_entry *b) {
  int order = compare_names(header, a, b);
  return order != 0 ? order < 0 : a->name_at < b->name_at;
}
static bool by_data(const char *header, const slm2_st_entry *a, const slm2_st_entry *b) {
  (void)header;
  return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
}

static void sift_down(const char *header, slm2_st_entry *e, size_t root, size_t n, entry_less *less) {
  slm2_st_entry moved = e[root];
  for (size_t child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && less(header, &e[child], &e[child + 1])) child++;
    if (!less(header, &moved, &e[child])) break;
    e[root] = e[child];
  }
  e[root] = moved;
}
/* Heapsort: n log n whatever the file holds, in place, without recursion. */
static void sort(const char *header, slm2_st_entry *e, size_t n, entry_less *less) {
  for (size_t i = n / 2; i > 0; i--) sift_down(header, e, i - 1, n, less);
  for (size_t last = n; last > 1; last--) {
    slm2_st_entry top = e[0];
    e[0] = e[last - 1];
    e[last - 1] = top;
    sift_down(header, e, 0, last - 1, less);
  }
}

/* Sorts by name and refuses a name that comes twice. */
static slm2_status sort_names(const slm2_safetensors *st, slm2_st_entry *e, size_t n, const char *what, slm2_error *error) {
  sort(st->header, e, n, by_name);
  for (size_t i = 1; i < n; i++) {
    if (compare_names(st->header, &e[i - 1], &e[i]) != 0) continue;
    return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", st->header + e[i].name_at, e[i].n_name, HEADER_AT + e[i].name_at,
                       "%s: a %s comes twice", st->file, what);
  }
  return SLM2_OK;
}

/* --- the header -------------------------------------------------------------- */

typedef struct header_reader {
  slm2_json json;
  char *text; /* lent, escapes in names are decoded in place */
  size_t capacity;
  slm2_safetensors st;
} header_reader;

static slm2_status add_entry(header_reader *r, const slm2_json_token *key, size_t n, slm2_st_entry **out, slm2_error *error) {
  if (n == r->capacity) {
    return slm2_fail(error, SLM2_E_FORMAT, "safetensors", r->st.file, HEADER_AT + key->offset,
                     "%s: more than %u names in one header", r->st.file, (uint64_t)r->capacity);
  }
  slm2_st_entry *e = &r->st.entries[n];
  char *name = r->text + (key->raw - r->st.header);
  *e = (slm2_st_entry){.name_at = (uint32_t)(key->raw - r->st.header), .n_name = (uint32_t)key->n_raw};
  if (key->escaped) e->n_name = (uint32_t)slm2_json_decode(key, name);
  *out = e;
  return SLM2_OK;
}

/* "__metadata__": strings by distinct names; kept nowhere. The free entries behind n serve to find repeated ones. */
static slm2_status read_metadata(header_reader *r, slm2_error *error) {
  slm2_json_token t;
  size_t n = r->st.n_tensors;
  SLM2_TRY(slm2_json_expect(&r->json, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(&r->json, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    slm2_st_entry *e;
    SLM2_TRY(add_entry(r, &t, n++, &e, error));
    SLM2_TRY(slm2_json_expect(&r->json, SLM2_JSON_STRING, &t, error));
  }
  return sort_names(&r->st, r->st.entries + r->st.n_tensors, n - r->st.n_tensors, "metadata key", error);
}

static slm2_status read_tensor(header_reader *r, const slm2_json_token *key, slm2_error *error) {
  slm2_st_entry *e = NULL;
  slm2_json_token t;
  uint64_t offsets[2];
  SLM2_TRY(add_entry(r, key, r->st.n_tensors, &e, error));
  SLM2_TRY(slm2_json_expect(&r->json, SLM2_JSON_OBJECT, &t, error));
  e->value_at = (uint32_t)t.offset;
  slm2_st_tensor tensor = {.name = r->st.header + e->name_at, .n_name = e->n_name};
  SLM2_TRY(read_entry(&r->json, &tensor, offsets, error));
  e->begin = offsets[0];
  e->end = offsets[1];
  r->st.n_tensors++;
  return SLM2_OK;
}

static slm2_status read_header(header_reader *r, slm2_error *error) {
  slm2_json_token t;
  bool metadata = false;
  SLM2_TRY(slm2_json_expect(&r->json, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(&r->json, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    if (!slm2_json_is(&t, "__metadata__")) {
      SLM2_TRY(read_tensor(r, &t, error));
      continue;
    }
    if (metadata) return refuse(error, r->st.file, HEADER_AT + t.offset, "__metadata__ comes twice");
    metadata = true;
    SLM2_TRY(read_metadata(r, error));
  }
  for (size_t i = t.offset + 1; i < r->st.header_bytes; i++) {
    if (r->st.header[i] != ' ')
      return refuse(error, r->st.file, HEADER_AT + i, "the header goes on after its JSON; only spaces may pad it");
  }
  return SLM2_OK;
}

/* The tensors, ordered by their data, must follow each other without holes or overlaps and fill the file. */
static slm2_status check_cover(const slm2_safetensors *st, slm2_error *error) {
  uint64_t at = 0;
  sort(st->header, st->entries, st->n_tensors, by_data);
  for (uint32_t i = 0; i < st->n_tensors; i++) {
    const slm2_st_entry *e = &st->entries[i];
    if (e->begin != at) {
      return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", st->header + e->name_at, e->n_name, HEADER_AT + e->value_at,
                         "%s: data of a tensor begins at %u, that before it ends at %u: %s", st->file, e->begin, at,
                         e->begin < at ? "they overlap" : "a hole");
    }
    at = e->end;
    if (at > st->data_bytes) {
      return slm2_fail_n(error, SLM2_E_FORMAT, "safetensors", st->header + e->name_at, e->n_name, HEADER_AT + e->value_at,
                         "%s: data of a tensor ends at %u, the file's data at %u: the file is truncated", st->file, at,
                         st->data_bytes);
    }
  }
  if (at == st->data_bytes) return SLM2_OK;
  return slm2_fail(error, SLM2_E_FORMAT, "safetensors", st->file, HEADER_AT + st->header_bytes + at,
                   "%s: %u bytes follow the last tensor", st->file, st->data_bytes - at);
}

slm2_status slm2_st_open(const char *file, char *header, size_t n, uint64_t file_bytes, void *mem, size_t mem_bytes,
                         slm2_safetensors *out, slm2_error *error) {
  if (!is_aligned(mem))
    return slm2_fail(error, SLM2_E_ARGUMENT, "safetensors", "mem", SLM2_NO_OFFSET, "mem is not 16-byte aligned");
  if (mem_bytes < slm2_st_bytes(n)) {
    return slm2_fail(error, SLM2_E_MEMORY, "safetensors", file, SLM2_NO_OFFSET, "%s: needs %u bytes of memory, got %u", file,
                     (uint64_t)slm2_st_bytes(n), (uint64_t)mem_bytes);
  }
  if (n == 0 || n > SLM2_ST_HEADER_MAX || n > file_bytes || file_bytes - n < 8)
    return refuse(error, file, 0, "the header does not fit the file");
  if (header[0] != '{') return refuse(error, file, HEADER_AT, "the header does not begin with '{'");
  header_reader r = {.text = header, .capacity = entry_capacity(n),
                     .st = {.file = file, .header = header, .header_bytes = n, .data_bytes = file_bytes - 8 - n, .entries = mem}};
  slm2_json_init(&r.json, header, n, file);
  r.json.base = HEADER_AT;
  SLM2_TRY(read_header(&r, error));
  SLM2_TRY(sort_names(&r.st, r.st.entries, r.st.n_tensors, "tensor name", error));
  SLM2_TRY(check_cover(&r.st, error));
  sort(header, r.st.entries, r.st.n_tensors, by_name);
  *out = r.st;
  return SLM2_OK;
}

void slm2_st_get(const slm2_safetensors *st, uint32_t i, slm2_st_tensor *out) {
  const slm2_st_entry *e = &st->entries[i];
  slm2_json j;
  slm2_json_token t;
  uint64_t offsets[2];
  *out = (slm2_st_tensor){.name = st->header + e->name_at, .n_name = e->n_name};
  /* The text was checked when it was opened: neither call can fail. */
  slm2_json_init(&j, st->header + e->value_at, st->header_bytes - e->value_at, st->file);
  if (slm2_json_next(&j, &t, NULL) == SLM2_OK && read_entry(&j, out, offsets, NULL) == SLM2_OK) {
    out->offset = HEADER_AT + st->header_bytes + offsets[0];
  }
}

uint32_t slm2_st_find(const slm2_safetensors *st, const char *name, size_t n_name) {
  uint32_t low = 0, high = st->n_tensors;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const slm2_st_entry *e = &st->entries[middle];
    int order = text_compare(st->header + e->name_at, e->n_name, name, n_name);
    if (order == 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return UINT32_MAX;
}
