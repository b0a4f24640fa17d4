/* convert/gguf.c, gguf_value.c: GGUF headers as hostile input [FIL-2, FIL-3]. What a model makes of them:
 * test_gguf_import.c. */
#include "tests/unit/gguf_file.h"

static slm2_status open_bytes(uint8_t *bytes, size_t n, slm2_error *error) {
  memory_file m;
  slm2_input *in = memory_input(&m, bytes, n);
  slm2_gguf_scan scan;
  slm2_gguf g;
  memset(error, 0, sizeof *error);
  slm2_status status = slm2_gguf_scan_header(in, &scan, error);
  if (status != SLM2_OK) return status;
  void *mem = aligned_alloc(64, slm2_gguf_bytes(&scan));
  status = slm2_gguf_open(in, &scan, mem, slm2_gguf_bytes(&scan), &g, error);
  free(mem);
  return status;
}

/* --- the header ------------------------------------------------------------------------------ */

typedef struct draft {
  uint8_t bytes[16384];
  uint8_t *p;
} draft;
static void begin(draft *d, uint32_t version, uint64_t n_tensors, uint64_t n_values) {
  memset(d->bytes, 0, sizeof d->bytes);
  d->p = d->bytes;
  put_bytes(&d->p, "GGUF", 4);
  put_u32(&d->p, version);
  put_u64(&d->p, n_tensors);
  put_u64(&d->p, n_values);
}
static void add_key(draft *d, const char *key, uint32_t type) {
  put_name(&d->p, key);
  put_u32(&d->p, type);
}
static void add_tensor(draft *d, const char *name, uint32_t rank, uint64_t d0, uint64_t d1, uint32_t type, uint64_t offset) {
  put_name(&d->p, name);
  put_u32(&d->p, rank);
  for (uint32_t i = 0; i < rank && i < 8; i++) put_u64(&d->p, i == 0 ? d0 : i == 1 ? d1 : 1);
  put_u32(&d->p, type);
  put_u64(&d->p, offset);
}
/* Ends the header and adds n bytes of data. */
static size_t end(draft *d, size_t n) { return padded((size_t)(d->p - d->bytes), 32) + n; }

static void expect(draft *d, size_t n, slm2_status code, const char *text, uint64_t offset, const char *label) {
  slm2_error e;
  slm2_status status = open_bytes(d->bytes, n, &e);
  if (!CHECK_CASE(status == code && (code == SLM2_OK || e.code == code), label)) printf("  got %d: %s\n", status, e.message);
  if (status == SLM2_OK) return;
  if (!CHECK_CASE(strstr(e.message, text) != NULL && strstr(e.message, "m.gguf") != NULL, label)) printf("  %s\n", e.message);
  if (offset != 0) CHECK_CASE(e.offset == offset, label);
}

static void test_head(void) {
  draft d;
  for (uint32_t version = 2; version <= 3; version++) {
    begin(&d, version, 0, 0);
    expect(&d, 24, SLM2_OK, "", 0, "empty");
    expect(&d, 32, SLM2_OK, "", 0, "empty, padded");
    expect(&d, 33, SLM2_E_FORMAT, "tensors end at 24", 0, "a byte more");
    for (size_t n = 0; n < 24; n++) expect(&d, n, SLM2_E_FORMAT, "at least 24", 0, "short");
  }
  static const struct { uint32_t version; const char *text; } versions[] = {
      {0, "version 0;"}, {1, "version 1;"}, {4, "version 4;"}, {0x03000000, "version 3 in big-endian"},
      {0x02000000, "version 2 in big-endian"}, {0xffffffff, "version 4294967295;"}};
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    begin(&d, versions[i].version, 0, 0);
    expect(&d, 64, SLM2_E_VERSION, versions[i].text, 4, versions[i].text);
  }
  begin(&d, 3, 0, 0);
  d.bytes[3] = 'X';
  expect(&d, 24, SLM2_E_FORMAT, "does not begin with", 0, "magic");
  static const uint64_t counts[] = {SLM2_GGUF_MAX_TENSORS + 1, UINT64_C(1) << 32, UINT64_MAX};
  for (size_t i = 0; i < 3; i++) {
    begin(&d, 3, counts[i], 0);
    expect(&d, 64, SLM2_E_FORMAT, "at most 16384", 8, "tensors");
    begin(&d, 3, 0, counts[i]);
    expect(&d, 64, SLM2_E_FORMAT, "at most 4096", 16, "values");
  }
  begin(&d, 3, SLM2_GGUF_MAX_TENSORS, SLM2_GGUF_MAX_VALUES); /* counts alone bound no memory */
  expect(&d, 24, SLM2_E_FORMAT, "truncated", 24, "nothing behind the head");
}

static void test_values(void) {
  draft d;
  static const struct { uint32_t type; size_t bytes; } types[] = {{0, 1}, {1, 1}, {2, 2}, {3, 2}, {4, 4}, {5, 4}, {6, 4},
                                                                  {7, 1}, {10, 8}, {11, 8}, {12, 8}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    begin(&d, 3, 0, 1);
    add_key(&d, "k", types[i].type);
    d.p += types[i].bytes;
    size_t n = (size_t)(d.p - d.bytes);
    expect(&d, n, SLM2_OK, "", 0, "a scalar");
    for (size_t cut = 24; cut < n; cut++) expect(&d, cut, SLM2_E_FORMAT, "truncated", 0, "a cut scalar");
    begin(&d, 3, 0, 1);
    add_key(&d, "k", 9);
    put_u32(&d.p, types[i].type);
    put_u64(&d.p, 3);
    d.p += 3 * types[i].bytes;
    n = (size_t)(d.p - d.bytes);
    expect(&d, n, SLM2_OK, "", 0, "an array");
    for (size_t cut = 24; cut < n; cut++) expect(&d, cut, SLM2_E_FORMAT, "truncated", 0, "a cut array");
    slm2_store_u64(d.bytes + n - 3 * types[i].bytes - 8, UINT64_MAX / types[i].bytes);
    expect(&d, n, SLM2_E_FORMAT, "truncated", 0, "an array beyond the file");
    if (types[i].bytes == 1) continue;
    slm2_store_u64(d.bytes + n - 3 * types[i].bytes - 8, UINT64_MAX / types[i].bytes + 2); /* wraps to a few bytes */
    expect(&d, n, SLM2_E_FORMAT, "truncated", 0, "an array whose size wraps");
  }
}

static void test_lengths(void) {
  draft d;
  static const uint64_t lengths[] = {7, 1000, UINT64_C(1) << 32, UINT64_MAX - 40, UINT64_MAX};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    begin(&d, 3, 0, 1);
    add_key(&d, "k", 8);
    put_u64(&d.p, lengths[i]);
    d.p += 6;
    expect(&d, (size_t)(d.p - d.bytes), SLM2_E_FORMAT, "truncated", 0, "a string beyond the file");
    begin(&d, 3, 0, 1);
    add_key(&d, "k", 9);
    put_u32(&d.p, 8);
    put_u64(&d.p, 2);
    put_u64(&d.p, 0);
    put_u64(&d.p, lengths[i]);
    d.p += 6;
    expect(&d, (size_t)(d.p - d.bytes), SLM2_E_FORMAT, "a string in an array", 0, "a string of an array beyond the file");
    begin(&d, 3, 0, 1);
    put_u64(&d.p, lengths[i]);
    d.p += 6;
    expect(&d, (size_t)(d.p - d.bytes), SLM2_E_FORMAT, "a key of", 0, "a key beyond the file");
  }
}

static void test_types(void) {
  draft d;
  static const struct { uint32_t type; slm2_status code; const char *text; } items[] = {
      {9, SLM2_E_UNSUPPORTED, "array of type 9"}, {13, SLM2_E_FORMAT, "array of type 13"},
      {UINT32_MAX, SLM2_E_FORMAT, "4294967295"}};
  for (size_t i = 0; i < 3; i++) {
    begin(&d, 3, 0, 1);
    add_key(&d, "some.key", 9);
    put_u32(&d.p, items[i].type);
    put_u64(&d.p, 0);
    expect(&d, end(&d, 0), items[i].code, items[i].text, 44, items[i].text);
  }
  for (uint32_t type = 13; type < 300; type += 243) { /* 13, 256: not taken as its low byte */
    begin(&d, 3, 0, 1);
    add_key(&d, "some.key", type);
    d.p += 8;
    expect(&d, end(&d, 0), SLM2_E_FORMAT, "unknown type", 40, "a type that is none");
  }
}

static void test_names(void) {
  draft d;
  char name[300];
  for (size_t n = 0; n <= 257; n++) {
    if (n > 1 && n < 63) continue;
    memset(name, 'a', sizeof name);
    name[n] = 0;
    begin(&d, 3, 0, 1);
    add_key(&d, name, 0);
    d.p += 1;
    expect(&d, end(&d, 0), n == 0 || n > 255 ? SLM2_E_FORMAT : SLM2_OK, "a key of", 24, "length of a key");
    begin(&d, 3, 1, 0);
    add_tensor(&d, name, 1, 8, 0, 0, 0);
    expect(&d, end(&d, 32), n == 0 || n > 64 ? SLM2_E_FORMAT : SLM2_OK, "a tensor's name of", 24, "length of a name");
  }
  for (int many = 0; many < 2; many++) { /* two of the same, next to each other and among others */
    begin(&d, 3, 0, many ? 60 : 2);
    for (int i = 0; i < (many ? 60 : 2); i++) {
      snprintf(name, sizeof name, "key.%d", many ? (i == 59 ? 17 : i * 7 % 59) : 0);
      add_key(&d, name, 0);
      d.p += 1;
    }
    expect(&d, end(&d, 0), SLM2_E_FORMAT, "a key comes twice", 0, "a key twice");
    begin(&d, 3, many ? 60 : 2, 0);
    for (int i = 0; i < (many ? 60 : 2); i++) {
      snprintf(name, sizeof name, "t.%d", many ? (i == 59 ? 17 : i * 7 % 59) : 0);
      add_tensor(&d, name, 1, 8, 0, 0, 32 * (uint64_t)i);
    }
    expect(&d, end(&d, 32 * (many ? 60 : 2)), SLM2_E_FORMAT, "a tensor comes twice", 0, "a tensor twice");
  }
}

static void test_tensors(void) {
  static const struct {
    const char *label;
    uint32_t rank;
    uint64_t d0, d1;
    uint32_t type;
    uint64_t offset;
    size_t data;
    slm2_status code;
    const char *text;
  } cases[] = {
      {"F32", 1, 8, 0, 0, 0, 32, SLM2_OK, ""},
      {"Q8_0", 2, 32, 2, 8, 0, 68, SLM2_OK, ""},
      {"Q8_0, padded", 2, 32, 2, 8, 0, 96, SLM2_OK, ""},
      {"four dimensions", 4, 8, 1, 0, 0, 32, SLM2_OK, ""},
      {"a byte short", 2, 32, 2, 8, 0, 67, SLM2_E_FORMAT, "reaches beyond the file"},
      {"a byte more than the padding", 2, 32, 2, 8, 0, 97, SLM2_E_FORMAT, "tensors end at"},
      {"no dimensions", 0, 0, 0, 0, 0, 32, SLM2_E_FORMAT, "0 dimensions"},
      {"five dimensions", 5, 8, 1, 0, 0, 32, SLM2_E_FORMAT, "5 dimensions"},
      {"2^32 - 1 dimensions", UINT32_MAX, 8, 1, 0, 0, 32, SLM2_E_FORMAT, "4294967295 dimensions"},
      {"a dimension 0", 2, 8, 0, 0, 0, 32, SLM2_E_FORMAT, "dimension 0"},
      {"dims that wrap", 2, UINT64_C(1) << 33, UINT64_C(1) << 31, 0, 0, 32, SLM2_E_FORMAT, "overflows"},
      {"dims that wrap to 32", 2, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1, 0, 0, 32, SLM2_E_FORMAT, "overflows"},
      {"dims of 2^63", 1, UINT64_C(1) << 63, 0, 24, 0, 32, SLM2_E_FORMAT, "overflows"},
      {"bytes that overflow", 1, UINT64_C(1) << 62, 0, 0, 0, 32, SLM2_E_FORMAT, "overflows"},
      {"2^40 values", 2, 1 << 20, 1 << 20, 8, 0, 32, SLM2_E_FORMAT, "reaches beyond"},
      {"rows of 33", 2, 33, 2, 8, 0, 96, SLM2_E_DIMENSION_MISMATCH, "blocks of 32"},
      {"rows of 255", 2, 255, 2, 12, 0, 1024, SLM2_E_DIMENSION_MISMATCH, "blocks of 256"},
      {"a removed type", 1, 32, 0, 4, 0, 32, SLM2_E_UNSUPPORTED_QUANTIZATION, "unknown type 4"},
      {"a type to come", 1, 32, 0, 4000, 0, 32, SLM2_E_UNSUPPORTED_QUANTIZATION, "unknown type 4000"},
      {"a type of 2^16", 1, 32, 0, 65536, 0, 32, SLM2_E_UNSUPPORTED_QUANTIZATION, "unknown type 65536"},
      {"misaligned", 1, 8, 0, 0, 16, 64, SLM2_E_FORMAT, "the alignment is 32"},
      {"a hole", 1, 8, 0, 0, 32, 64, SLM2_E_FORMAT, "a hole behind 0"},
      {"an offset of 2^64 - 32", 1, 8, 0, 0, UINT64_MAX - 31, 64, SLM2_E_FORMAT, "a hole"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    draft d;
    begin(&d, 3, 1, 0);
    add_tensor(&d, "some.weight", cases[i].rank, cases[i].d0, cases[i].d1, cases[i].type, cases[i].offset);
    expect(&d, end(&d, cases[i].data), cases[i].code, cases[i].text, 0, cases[i].label);
    slm2_error e;
    if (cases[i].code == SLM2_OK || strcmp(cases[i].text, "tensors end at") == 0) continue;
    CHECK_CASE(open_bytes(d.bytes, end(&d, cases[i].data), &e) == cases[i].code, cases[i].label);
    CHECK_CASE(strcmp(e.name, "some.weight") == 0, cases[i].label);
  }
  draft d; /* two tensors: the second one at 0, 64 and, right, at 96 */
  for (uint64_t offset = 0; offset <= 128; offset += 32) {
    begin(&d, 3, 2, 0);
    add_tensor(&d, "a", 2, 32, 2, 8, 0);
    add_tensor(&d, "b", 1, 8, 0, 0, offset);
    const char *says = offset < 96 ? "ends at 96" : "a hole behind 96";
    expect(&d, end(&d, 128), offset == 96 ? SLM2_OK : SLM2_E_FORMAT, says, 0, "overlap");
  }
}

static void test_alignment(void) {
  static const struct { uint32_t alignment; slm2_status code; } cases[] = {
      {8, SLM2_OK}, {16, SLM2_OK}, {64, SLM2_OK}, {4096, SLM2_OK}, {0, SLM2_E_FORMAT}, {1, SLM2_E_FORMAT}, {4, SLM2_E_FORMAT},
      {24, SLM2_E_FORMAT}, {0x80000000, SLM2_E_FORMAT}, {2097152, SLM2_E_FORMAT}, {UINT32_MAX, SLM2_E_FORMAT}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    draft d;
    begin(&d, 3, 2, 1);
    add_key(&d, "general.alignment", 4);
    put_u32(&d.p, cases[i].alignment);
    size_t to = cases[i].code == SLM2_OK ? cases[i].alignment : 32;
    add_tensor(&d, "a", 1, 1, 0, 0, 0);
    add_tensor(&d, "b", 1, 1, 0, 0, to);
    size_t n = padded((size_t)(d.p - d.bytes), to) + to + 4;
    expect(&d, n < sizeof d.bytes ? n : sizeof d.bytes, cases[i].code, "general.alignment", 0, "alignment");
  }
}

static void test_getters(void) {
  draft d;
  begin(&d, 3, 0, 12);
  static const uint8_t minus[8] = {255, 255, 255, 255, 255, 255, 255, 255};
  static const struct { const char *key; uint32_t type; size_t bytes; } values[] = {
      {"u8", 0, 1}, {"i8", 1, 1}, {"u16", 2, 2}, {"i16", 3, 2}, {"u32", 4, 4}, {"i32", 5, 4}, {"u64", 10, 8}, {"i64", 11, 8}};
  for (size_t i = 0; i < 8; i++) {
    add_key(&d, values[i].key, values[i].type);
    put_bytes(&d.p, minus, values[i].bytes);
  }
  add_key(&d, "f32", 6);
  put_u32(&d.p, slm2_float_bits(0.5f));
  add_key(&d, "bool", 7);
  *d.p++ = 2;
  add_key(&d, "text", 8);
  put_name(&d.p, "abc");
  add_key(&d, "list", 9);
  put_u32(&d.p, 5);
  put_u64(&d.p, 1);
  put_u32(&d.p, 7);
  memory_file m;
  slm2_input *in = memory_input(&m, d.bytes, (size_t)(d.p - d.bytes));
  slm2_gguf_scan scan;
  slm2_gguf g;
  slm2_error e;
  CHECK(slm2_gguf_scan_header(in, &scan, &e) == SLM2_OK);
  void *mem = aligned_alloc(64, slm2_gguf_bytes(&scan) + 64);
  CHECK(slm2_gguf_open(in, &scan, (char *)mem + 1, slm2_gguf_bytes(&scan), &g, &e) == SLM2_E_ARGUMENT);
  CHECK(slm2_gguf_open(in, &scan, mem, slm2_gguf_bytes(&scan) - 1, &g, &e) == SLM2_E_MEMORY);
  CHECK(slm2_gguf_open(in, &scan, mem, slm2_gguf_bytes(&scan), &g, &e) == SLM2_OK);
  static const uint32_t right[] = {255, 0, 65535, 0, UINT32_MAX, 0, 0, 0}; /* 0: refused */
  for (size_t i = 0; i < 8; i++) {
    uint32_t x = 99;
    slm2_status status = slm2_gguf_u32(&g, values[i].key, &x, &e);
    CHECK_CASE(right[i] != 0 ? status == SLM2_OK && x == right[i] : status == SLM2_E_UNSUPPORTED && x == 99, values[i].key);
  }
  uint32_t x = 99;
  float f = 9;
  bool b = true;
  const char *text = NULL;
  size_t n = 0;
  const slm2_gguf_value *list;
  CHECK(slm2_gguf_u32(&g, "none", &x, &e) == SLM2_OK && x == 99);
  CHECK(slm2_gguf_u32(&g, "text", &x, &e) == SLM2_E_FORMAT && strstr(e.message, "type string") != NULL);
  CHECK(slm2_gguf_u32(&g, "list", &x, &e) == SLM2_E_FORMAT && strstr(e.message, "array of i32") != NULL);
  CHECK(slm2_gguf_f32(&g, "f32", &f, &e) == SLM2_OK && f == 0.5f);
  CHECK(slm2_gguf_f32(&g, "u32", &f, &e) == SLM2_E_FORMAT && f == 0.5f);
  CHECK(slm2_gguf_bool(&g, "bool", &b, &e) == SLM2_E_FORMAT && strstr(e.message, "neither 0 nor 1") != NULL);
  CHECK(slm2_gguf_bool(&g, "u8", &b, &e) == SLM2_E_FORMAT && b);
  CHECK(slm2_gguf_string(&g, "text", &text, &n, &e) == SLM2_OK && n == 3 && memcmp(text, "abc", 3) == 0);
  CHECK(slm2_gguf_string(&g, "list", &text, &n, &e) == SLM2_E_FORMAT);
  CHECK(slm2_gguf_array(&g, "list", SLM2_GGUF_I32, &list, &e) == SLM2_OK && list->count == 1);
  CHECK(slm2_gguf_array(&g, "list", SLM2_GGUF_STRING, &list, &e) == SLM2_E_FORMAT);
  CHECK(slm2_gguf_array(&g, "none", SLM2_GGUF_STRING, &list, &e) == SLM2_OK && list == NULL);
  free(mem);
}

int main(void) {
  test_head();
  test_values();
  test_lengths();
  test_types();
  test_names();
  test_tensors();
  test_alignment();
  test_getters();
  return test_end("gguf");
}
