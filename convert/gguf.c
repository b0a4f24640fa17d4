/* convert/gguf.c: parses and checks GGUF headers. A border for weights from strangers: every number of the file is checked
 * before it bounds anything. One parser reads the header twice: first through a small window, to learn how long it is and
 * how much memory the rest will need, then whole. Rules: convert/gguf.h. */
#include "convert/gguf.h"
#include "convert/text.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/error.h"

#define HEAD_BYTES 24u
#define WINDOW_BYTES 2048u /* more than the longest piece that is taken at once; small for wasm's stack */

/* Bytes of the header in order. at: position in the file of the next one. */
typedef struct window {
  const slm2_input *input;
  uint8_t *bytes;
  size_t capacity, n;
  uint64_t begin, at, limit;
} window;

static slm2_status refuse(const slm2_input *in, uint64_t at, const char *why, uint64_t a, uint64_t b, slm2_error *error) {
  char text[160] = "%s: ";
  text_copy(text + 4, sizeof text - 4, why);
  return slm2_fail(error, SLM2_E_FORMAT, "gguf", in->name, at, text, in->name, a, b);
}

static slm2_status truncated(const window *w, uint64_t n, const char *what, slm2_error *error) {
  if (w->limit < w->input->bytes) {
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "gguf", w->input->name, w->at, "%s: the header is longer than %u bytes (at %s)",
                     w->input->name, w->limit, what);
  }
  return slm2_fail(error, SLM2_E_FORMAT, "gguf", w->input->name, w->at,
                   "%s: %s of %u bytes in a file of %u: the file is truncated or damaged", w->input->name, what, n, w->limit);
}

/* The next n <= WINDOW_BYTES bytes in one piece. The second pass takes only what the first one saw: *out stays valid. */
static slm2_status take(window *w, size_t n, const char *what, const uint8_t **out, slm2_error *error) {
  if (n > w->limit - w->at) return truncated(w, n, what, error);
  if (w->at + n > w->begin + w->n) {
    uint64_t left = w->limit - w->at;
    size_t fill = left < w->capacity ? (size_t)left : w->capacity;
    SLM2_TRY(w->input->read(w->input->user, w->at, w->bytes, fill, error));
    w->begin = w->at;
    w->n = fill;
  }
  *out = w->bytes + (w->at - w->begin);
  w->at += n;
  return SLM2_OK;
}
static slm2_status take_u32(window *w, const char *what, uint32_t *out, slm2_error *error) {
  const uint8_t *p = NULL;
  SLM2_TRY(take(w, 4, what, &p, error));
  *out = slm2_load_u32(p);
  return SLM2_OK;
}
static slm2_status take_u64(window *w, const char *what, uint64_t *out, slm2_error *error) {
  const uint8_t *p = NULL;
  SLM2_TRY(take(w, 8, what, &p, error));
  *out = slm2_load_u64(p);
  return SLM2_OK;
}
static slm2_status skip(window *w, uint64_t n, const char *what, slm2_error *error) {
  if (n > w->limit - w->at) return truncated(w, n, what, error);
  w->at += n;
  return SLM2_OK;
}

/* --- parts ------------------------------------------------------------------------------- */

static slm2_status read_head(window *w, uint32_t *version, uint32_t *n_tensors, uint32_t *n_values, slm2_error *error) {
  const slm2_input *in = w->input;
  const uint8_t *p = NULL;
  uint64_t tensors, values;
  if (in->bytes < HEAD_BYTES) return refuse(in, 0, "%u bytes long; a GGUF file has at least %u", in->bytes, HEAD_BYTES, error);
  SLM2_TRY(take(w, HEAD_BYTES, "head", &p, error));
  if (memcmp(p, "GGUF", 4) != 0) return refuse(in, 0, "does not begin with \"GGUF\"", 0, 0, error);
  uint32_t v = slm2_load_u32(p + 4);
  if (v != 2 && v != 3) {
    bool swapped = v == 0x02000000 || v == 0x03000000;
    return slm2_fail(error, SLM2_E_VERSION, "gguf", in->name, 4, "%s: GGUF version %u%s; this build reads 2 and 3, little-endian",
                     in->name, (uint64_t)(swapped ? v >> 24 : v), swapped ? " in big-endian" : "");
  }
  tensors = slm2_load_u64(p + 8);
  values = slm2_load_u64(p + 16);
  if (tensors > SLM2_GGUF_MAX_TENSORS) {
    return refuse(in, 8, "%u tensors; at most %u are possible", tensors, SLM2_GGUF_MAX_TENSORS, error);
  }
  if (values > SLM2_GGUF_MAX_VALUES) {
    return refuse(in, 16, "%u metadata values; at most %u are possible", values, SLM2_GGUF_MAX_VALUES, error);
  }
  *version = v;
  *n_tensors = (uint32_t)tensors;
  *n_values = (uint32_t)values;
  return SLM2_OK;
}

/* A string of 1 to max bytes that is kept in one piece. */
static slm2_status read_name(window *w, const char *what, uint32_t max, uint32_t *at, uint32_t *n, const uint8_t **text,
                             slm2_error *error) {
  uint64_t length, where = w->at;
  SLM2_TRY(take_u64(w, what, &length, error));
  if (length > w->limit - w->at) return truncated(w, length, what, error);
  if (length == 0 || length > max) {
    return slm2_fail(error, SLM2_E_FORMAT, "gguf", w->input->name, where, "%s: %s of %u bytes; possible are 1 to %u",
                     w->input->name, what, length, (uint64_t)max);
  }
  *at = (uint32_t)w->at;
  *n = (uint32_t)length;
  return take(w, (size_t)length, what, text, error);
}

static slm2_status read_array(window *w, slm2_gguf_value *v, const uint8_t *key, slm2_error *error) {
  uint64_t where = w->at, bytes;
  uint32_t item;
  SLM2_TRY(take_u32(w, "an array", &item, error));
  SLM2_TRY(take_u64(w, "an array", &v->count, error));
  v->at = (uint32_t)w->at;
  if (item != SLM2_GGUF_STRING && slm2_gguf_type_bytes(item) == 0) {
    return slm2_fail_n(error, item == SLM2_GGUF_ARRAY ? SLM2_E_UNSUPPORTED : SLM2_E_FORMAT, "gguf", (const char *)key, v->n_key,
                       where, "%s: an array of type %u; possible are numbers, bools and strings", w->input->name, (uint64_t)item);
  }
  v->item = (uint8_t)item;
  if (item != SLM2_GGUF_STRING) {
    if (!slm2_mul_u64(v->count, slm2_gguf_type_bytes(item), &bytes)) bytes = UINT64_MAX;
    return skip(w, bytes, "an array", error);
  }
  for (uint64_t i = 0; i < v->count; i++) { /* ends with the header's bytes, of which each string takes 8 */
    SLM2_TRY(take_u64(w, "a string in an array", &bytes, error));
    SLM2_TRY(skip(w, bytes, "a string in an array", error));
  }
  return SLM2_OK;
}

static slm2_status read_value(window *w, slm2_gguf_value *v, slm2_error *error) {
  uint8_t copy[SLM2_GGUF_MAX_KEY];
  const uint8_t *key;
  uint32_t type;
  SLM2_TRY(read_name(w, "a key", SLM2_GGUF_MAX_KEY, &v->key_at, &v->n_key, &key, error));
  memcpy(copy, key, v->n_key); /* the window moves on */
  uint64_t where = w->at;
  SLM2_TRY(take_u32(w, "a value", &type, error));
  v->type = (uint8_t)type;
  v->item = 0;
  v->count = 1;
  if (type == SLM2_GGUF_ARRAY) return read_array(w, v, copy, error);
  if (type == SLM2_GGUF_STRING) {
    SLM2_TRY(take_u64(w, "a string", &v->count, error));
    v->at = (uint32_t)w->at;
    return skip(w, v->count, "a string", error);
  }
  v->at = (uint32_t)w->at;
  if (slm2_gguf_type_bytes(type) != 0) return skip(w, slm2_gguf_type_bytes(type), "a value", error);
  return slm2_fail_n(error, SLM2_E_FORMAT, "gguf", (const char *)copy, v->n_key, where, "%s: a value of the unknown type %u",
                     w->input->name, (uint64_t)type);
}

static slm2_status refuse_tensor(const slm2_input *in, slm2_status code, const uint8_t *name, uint32_t n, uint64_t at,
                                 const char *why, uint64_t a, uint64_t b, slm2_error *error) {
  char text[160] = "%s: ";
  text_copy(text + 4, sizeof text - 4, why);
  return slm2_fail_n(error, code, "gguf", (const char *)name, n, at, text, in->name, a, b);
}

/* Bytes of the data of dims and type. */
static slm2_status tensor_size(const slm2_input *in, slm2_gguf_tensor *t, const uint8_t *name, const uint64_t *dims,
                               uint32_t type, slm2_error *error) {
  uint32_t elements, bytes;
  uint64_t n = 1;
  if (!slm2_ggml_block(type, &elements, &bytes)) {
    return refuse_tensor(in, SLM2_E_UNSUPPORTED_QUANTIZATION, name, t->n_name, t->dims_at + 8 * (uint64_t)t->rank,
                         "a tensor of the unknown type %u", type, 0, error);
  }
  for (uint32_t i = 0; i < t->rank; i++) {
    if (dims[i] == 0) {
      return refuse_tensor(in, SLM2_E_FORMAT, name, t->n_name, t->dims_at, "a tensor with a dimension 0", 0, 0, error);
    }
    if (!slm2_mul_u64(n, dims[i], &n) || n > INT64_MAX) {
      return refuse_tensor(in, SLM2_E_FORMAT, name, t->n_name, t->dims_at, "the size of a tensor overflows 63 bits", 0, 0, error);
    }
  }
  if (dims[0] % elements != 0) {
    return refuse_tensor(in, SLM2_E_DIMENSION_MISMATCH, name, t->n_name, t->dims_at,
                         "rows of %u values are no whole number of blocks of %u", dims[0], elements, error);
  }
  if (!slm2_mul_u64(n / elements, bytes, &t->bytes) || t->bytes > INT64_MAX) {
    return refuse_tensor(in, SLM2_E_FORMAT, name, t->n_name, t->dims_at, "the size of a tensor overflows 63 bits", 0, 0, error);
  }
  t->type = (uint16_t)type;
  return SLM2_OK;
}

/* One entry of the list; t->offset is relative to the data. dims: its dimensions. */
static slm2_status read_tensor(window *w, slm2_gguf_tensor *t, uint64_t dims[SLM2_GGUF_MAX_RANK], slm2_error *error) {
  uint8_t name[SLM2_GGUF_MAX_NAME];
  const uint8_t *p;
  uint32_t rank, type;
  SLM2_TRY(read_name(w, "a tensor's name", SLM2_GGUF_MAX_NAME, &t->name_at, &t->n_name, &p, error));
  memcpy(name, p, t->n_name); /* the window moves on */
  uint64_t where = w->at;
  SLM2_TRY(take_u32(w, "a tensor", &rank, error));
  if (rank == 0 || rank > SLM2_GGUF_MAX_RANK) {
    return refuse_tensor(w->input, SLM2_E_FORMAT, name, t->n_name, where, "a tensor of %u dimensions; possible are 1 to %u", rank,
                         SLM2_GGUF_MAX_RANK, error);
  }
  t->rank = (uint8_t)rank;
  t->dims_at = (uint32_t)w->at;
  SLM2_TRY(take(w, 8 * (size_t)rank, "a tensor", &p, error));
  for (uint32_t i = 0; i < rank; i++) dims[i] = slm2_load_u64(p + 8 * i);
  SLM2_TRY(take_u32(w, "a tensor", &type, error));
  SLM2_TRY(tensor_size(w->input, t, name, dims, type, error));
  t->bound = false;
  return take_u64(w, "a tensor", &t->offset, error);
}

/* --- first pass ---------------------------------------------------------------------------- */

slm2_status slm2_gguf_scan_header(const slm2_input *in, slm2_gguf_scan *out, slm2_error *error) {
  uint8_t bytes[WINDOW_BYTES];
  window w = {.input = in, .bytes = bytes, .capacity = sizeof bytes};
  w.limit = in->bytes < SLM2_GGUF_HEADER_MAX ? in->bytes : SLM2_GGUF_HEADER_MAX;
  slm2_gguf_scan s = {.version = 0};
  SLM2_TRY(read_head(&w, &s.version, &s.n_tensors, &s.n_values, error));
  for (uint32_t i = 0; i < s.n_values; i++) {
    slm2_gguf_value v;
    SLM2_TRY(read_value(&w, &v, error));
    if (v.type == SLM2_GGUF_ARRAY && v.item == SLM2_GGUF_STRING && v.count > s.max_strings) s.max_strings = (uint32_t)v.count;
  }
  for (uint32_t i = 0; i < s.n_tensors; i++) {
    slm2_gguf_tensor t;
    uint64_t dims[SLM2_GGUF_MAX_RANK];
    SLM2_TRY(read_tensor(&w, &t, dims, error));
    if (t.rank == 2 && dims[0] > s.max_cols) s.max_cols = dims[0];
  }
  s.header_bytes = (size_t)w.at;
  *out = s;
  return SLM2_OK;
}

/* --- second pass ---------------------------------------------------------------------------- */

static uint8_t *place(slm2_gguf *g, const slm2_gguf_scan *scan, slm2_arena *a) {
  uint8_t *header = slm2_arena_take(a, scan->header_bytes, 1);
  g->values = slm2_arena_take(a, scan->n_values, sizeof *g->values);
  g->tensors = slm2_arena_take(a, scan->n_tensors, sizeof *g->tensors);
  g->value_names = slm2_arena_take(a, scan->n_values, sizeof *g->value_names);
  g->tensor_names = slm2_arena_take(a, scan->n_tensors, sizeof *g->tensor_names);
  return header;
}

size_t slm2_gguf_bytes(const slm2_gguf_scan *scan) {
  slm2_gguf g;
  slm2_arena a;
  slm2_arena_init(&a, NULL, 0);
  (void)place(&g, scan, &a);
  return (size_t)a.used; /* header_bytes and the entries: far below 2^32 */
}

static bool name_less(const uint8_t *header, slm2_gguf_name a, slm2_gguf_name b) {
  return text_compare((const char *)header + a.at, a.n, (const char *)header + b.at, b.n) < 0;
}
static void sift_down(const uint8_t *header, slm2_gguf_name *names, size_t root, size_t n) {
  slm2_gguf_name moved = names[root];
  for (size_t child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && name_less(header, names[child], names[child + 1])) child++;
    if (!name_less(header, moved, names[child])) break;
    names[root] = names[child];
  }
  names[root] = moved;
}
/* Heapsort, for no recursion and n log n whatever the names; then equal neighbours are refused. */
static slm2_status sort_names(const slm2_gguf *g, slm2_gguf_name *names, size_t n, const char *what, slm2_error *error) {
  for (size_t i = n / 2; i > 0; i--) sift_down(g->header, names, i - 1, n);
  for (size_t last = n; last > 1; last--) {
    slm2_gguf_name top = names[0];
    names[0] = names[last - 1];
    names[last - 1] = top;
    sift_down(g->header, names, 0, last - 1);
  }
  for (size_t i = 1; i < n; i++) {
    if (name_less(g->header, names[i - 1], names[i])) continue;
    return slm2_fail_n(error, SLM2_E_FORMAT, "gguf", (const char *)g->header + names[i].at, names[i].n, names[i].at,
                       "%s: %s comes twice", g->input->name, what);
  }
  return SLM2_OK;
}

static slm2_status read_alignment(slm2_gguf *g, slm2_error *error) {
  g->alignment = SLM2_GGUF_ALIGNMENT;
  const char *key = "general.alignment";
  SLM2_TRY(slm2_gguf_u32(g, key, &g->alignment, error));
  if (g->alignment >= 8 && g->alignment <= SLM2_GGUF_ALIGNMENT_MAX && (g->alignment & (g->alignment - 1)) == 0) return SLM2_OK;
  return slm2_gguf_refuse(g, slm2_gguf_find(g, key), SLM2_E_FORMAT, key, "%s: %s is %u, no power of two from 8 to %u",
                          g->alignment, SLM2_GGUF_ALIGNMENT_MAX, error);
}

/* The only layout: one tensor behind the other. Then the file must end with the last one, or with its padding. */
static slm2_status check_layout(slm2_gguf *g, slm2_error *error) {
  const slm2_input *in = g->input;
  uint64_t end = 0, next = 0; /* of the tensor before, without and with its padding, relative to the data */
  g->data_at = (g->header_bytes + g->alignment - 1) & ~(uint64_t)(g->alignment - 1);
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    slm2_gguf_tensor *t = &g->tensors[i];
    const uint8_t *name = g->header + t->name_at;
    uint64_t where = t->dims_at + 8 * (uint64_t)t->rank + 4;
    if (t->offset != next) {
      return refuse_tensor(in, SLM2_E_FORMAT, name, t->n_name, where,
                           t->offset % g->alignment != 0 ? "a tensor at %u of the data, but the alignment is %u"
                           : t->offset < next            ? "a tensor at %u of the data, but the one before ends at %u"
                                                         : "a tensor at %u of the data leaves a hole behind %u",
                           t->offset, t->offset % g->alignment != 0 ? g->alignment : next, error);
    }
    if (t->bytes > in->bytes || g->data_at + next > in->bytes - t->bytes) {
      return refuse_tensor(in, SLM2_E_FORMAT, name, t->n_name, where, "a tensor of %u bytes reaches beyond the file's %u",
                           t->bytes, in->bytes, error);
    }
    end = next + t->bytes; /* inside the file, so the sums fit */
    next = (end + g->alignment - 1) & ~(uint64_t)(g->alignment - 1);
    t->offset += g->data_at;
  }
  uint64_t first = g->n_tensors > 0 ? g->data_at + end : g->header_bytes, last = g->data_at + next;
  if (in->bytes >= first && in->bytes <= last) return SLM2_OK;
  return refuse(in, last, "%u bytes long, but its tensors end at %u", in->bytes, first, error);
}

slm2_status slm2_gguf_open(const slm2_input *in, const slm2_gguf_scan *scan, void *mem, size_t mem_bytes, slm2_gguf *out,
                           slm2_error *error) {
  slm2_gguf g = {.input = in, .header_bytes = scan->header_bytes};
  slm2_arena a;
  uint64_t dims[SLM2_GGUF_MAX_RANK];
  if (!is_aligned(mem)) return slm2_fail(error, SLM2_E_ARGUMENT, "gguf", "mem", SLM2_NO_OFFSET, "mem is not 16-byte aligned");
  slm2_arena_init(&a, mem, mem_bytes);
  window w = {.input = in, .bytes = place(&g, scan, &a), .capacity = scan->header_bytes, .limit = scan->header_bytes};
  if (a.failed) {
    return slm2_fail(error, SLM2_E_MEMORY, "gguf", in->name, SLM2_NO_OFFSET, "needs %u bytes of memory, got %u",
                     (uint64_t)slm2_gguf_bytes(scan), (uint64_t)mem_bytes);
  }
  g.header = w.bytes;
  SLM2_TRY(read_head(&w, &g.version, &g.n_tensors, &g.n_values, error));
  if (g.n_tensors != scan->n_tensors || g.n_values != scan->n_values) {
    return refuse(in, 8, "changes while it is read", 0, 0, error);
  }
  for (uint32_t i = 0; i < g.n_values; i++) {
    SLM2_TRY(read_value(&w, &g.values[i], error));
    g.value_names[i] = (slm2_gguf_name){g.values[i].key_at, g.values[i].n_key, i};
  }
  for (uint32_t i = 0; i < g.n_tensors; i++) {
    SLM2_TRY(read_tensor(&w, &g.tensors[i], dims, error));
    g.tensor_names[i] = (slm2_gguf_name){g.tensors[i].name_at, g.tensors[i].n_name, i};
  }
  SLM2_TRY(sort_names(&g, g.value_names, g.n_values, "a key", error));
  SLM2_TRY(sort_names(&g, g.tensor_names, g.n_tensors, "a tensor", error));
  SLM2_TRY(read_alignment(&g, error));
  SLM2_TRY(check_layout(&g, error));
  *out = g;
  return SLM2_OK;
}
