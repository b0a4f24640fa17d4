/* tests/unit/test_safetensors.c: the safetensors and index borders against the malformed files of tests/data/files
 * (verdicts: its manifests), hand-made headers, every truncation and random mutations. */
#include "convert/convert.h"
#include "convert/safetensors.h"
#include "tests/test.h"

typedef struct opened {
  char *header; /* exactly as large as it may be: sanitizers see any step outside */
  void *entries;
  slm2_safetensors st;
  slm2_error error;
} opened;

/* Opens a whole file in memory; the status of the first step that refuses. */
static slm2_status open_file(opened *o, const char *name, const uint8_t *file, uint64_t n) {
  size_t header_bytes = 0;
  memset(o, 0, sizeof *o);
  slm2_status status = slm2_st_header_length(name, file, n, &header_bytes, &o->error);
  if (status != SLM2_OK) return status;
  o->header = malloc(header_bytes);
  o->entries = malloc(slm2_st_bytes(header_bytes));
  memcpy(o->header, file + 8, header_bytes);
  return slm2_st_open(name, o->header, header_bytes, n, o->entries, slm2_st_bytes(header_bytes), &o->st, &o->error);
}
static void close_file(opened *o) {
  free(o->header);
  free(o->entries);
}

/* A file of this header text and n_data zero bytes. */
static uint8_t *make_file(const char *header, size_t n_header, size_t n_data, size_t *n) {
  uint8_t *file = calloc(1, 8 + n_header + n_data);
  for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)n_header >> (8 * i));
  memcpy(file + 8, header, n_header);
  *n = 8 + n_header + n_data;
  return file;
}

/* --- the files of the manifest ------------------------------------------------------------------- */

static const struct {
  const char *id;
  slm2_status status;
  const char *message; /* part of it */
} parser_files[] = {
    {"P01", SLM2_OK, ""},
    {"P02", SLM2_E_FORMAT, "0 bytes long"},
    {"P03", SLM2_E_FORMAT, "7 bytes long"},
    {"P04", SLM2_E_FORMAT, "18446744073709551615"},
    {"P05", SLM2_E_FORMAT, "9223372036854775807"},
    {"P06", SLM2_E_FORMAT, "header of 100000001 bytes; the limit is 100000000"},
    {"P07", SLM2_E_FORMAT, "header of 63 bytes in a file of 70"},
    {"P08", SLM2_E_FORMAT, "empty"},
    {"P09", SLM2_OK, ""}, /* no tensors: a container all the same */
    {"P10", SLM2_E_FORMAT, "begin with '{'"},
    {"P11", SLM2_E_FORMAT, "only spaces"},
    {"P12", SLM2_E_FORMAT, "only spaces"},
    {"P13", SLM2_E_FORMAT, "twice"},
    {"P15", SLM2_E_FORMAT, "overlap"},
    {"P16", SLM2_E_FORMAT, "hole"},
    {"P17", SLM2_E_FORMAT, "truncated"},
    {"P18", SLM2_E_FORMAT, "4 bytes follow"},
    {"P19", SLM2_E_FORMAT, "end at 0, before they begin at 8"},
    {"P20", SLM2_E_JSON, "data_offsets"},
    {"P21", SLM2_E_JSON, "data_offsets"},
    {"P22", SLM2_E_FORMAT, "overflows"},
    {"P23", SLM2_E_FORMAT, "overflows"},
    {"P24", SLM2_OK, ""},
    {"P25", SLM2_E_FORMAT, "unknown dtype"},
    {"P26", SLM2_E_FORMAT, "need 12 bytes, data_offsets hold 8"},
    {"P27", SLM2_E_JSON, "data_offsets"},
    {"P29", SLM2_E_JSON, "UTF-8"},
    {"P30", SLM2_E_JSON, "surrogate"},
    {"P32", SLM2_E_JSON, "a string was expected"},
    {"P33", SLM2_E_FORMAT, "more than 8 dimensions"},
    {"P34", SLM2_OK, ""},
    {"P35", SLM2_OK, ""},
    {"P36", SLM2_OK, ""},
    {"P38", SLM2_OK, ""},
    {"P39", SLM2_OK, ""},
    {"P40", SLM2_E_FORMAT, "begin with '{'"},
};

static void test_parser_files(void) {
  for (size_t i = 0; i < sizeof parser_files / sizeof parser_files[0]; i++) {
    char path[64];
    size_t n;
    opened o;
    snprintf(path, sizeof path, "tests/data/files/parser/%s.safetensors", parser_files[i].id);
    char *file = test_read_file(path, &n);
    slm2_status status = open_file(&o, parser_files[i].id, (const uint8_t *)file, n);
    CHECK_CASE(status == parser_files[i].status, parser_files[i].id);
    if (!CHECK_CASE(strstr(o.error.message, parser_files[i].message) != NULL, parser_files[i].id))
      printf("  %s\n", o.error.message);
    CHECK_CASE(status == SLM2_OK || (o.error.code == status && strstr(o.error.name, "") != NULL && o.error.operation[0] != 0),
               parser_files[i].id);
    close_file(&o);
    free(file);
  }
}

/* --- headers by hand ----------------------------------------------------------------------------------- */

#define ENTRY(dtype, shape, begin, end) "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"

static const struct {
  const char *header;
  size_t n_data;
  slm2_status status;
  const char *name, *message;
} headers[] = {
    {"{\"a\":" ENTRY("U8", "2", 0, 2) "}", 2, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("U8", "", 0, 1) "}", 1, SLM2_OK, "", ""},                                   /* rank 0 */
    {"{\"b\":" ENTRY("U8", "2", 2, 4) ",\"a\":" ENTRY("U8", "2", 0, 2) "}", 4, SLM2_OK, "", ""}, /* any order */
    {"{\"e\":" ENTRY("U8", "0", 2, 2) ",\"b\":" ENTRY("U8", "2", 2, 4) ",\"a\":" ENTRY("U8", "2", 0, 2) "}", 4, SLM2_OK, "", ""},
    {"{\"__metadata__\":{\"x\":\"y\"},\"a\":" ENTRY("U8", "2", 0, 2) "}", 2, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("F4", "4", 0, 2) "}   ", 2, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("F4", "3", 0, 2) "}", 2, SLM2_E_FORMAT, "a", "12 bits"},
    {"{\"a\":" ENTRY("F6_E2M3", "4", 0, 3) "}", 3, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("C64", "1", 0, 8) "}", 8, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("f32", "1", 0, 4) "}", 4, SLM2_E_FORMAT, "a", "unknown dtype"},
    {"{\"\\u0061\":" ENTRY("U8", "2", 0, 2) ",\"a\":" ENTRY("U8", "2", 2, 4) "}", 4, SLM2_E_FORMAT, "a",
     "twice"}, /* decoded names count */
    {"{\"a\":" ENTRY("U8", "2", 0, 2) ",\"a\":" ENTRY("U8", "2", 0, 2) "}", 2, SLM2_E_FORMAT, "a", "twice"},
    {"{\"a\":" ENTRY("U8", "2", 1, 3) "}", 3, SLM2_E_FORMAT, "a", "a hole"},
    {"{\"a\":" ENTRY("U8", "18446744073709551615,0", 0, 0) "}", 0, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("U8", "0,18446744073709551615,2", 0, 0) "}", 0, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("U8", "18446744073709551616", 0, 0) "}", 0, SLM2_E_JSON, "", "shape"},
    {"{\"a\":" ENTRY("U8", "-1", 0, 0) "}", 0, SLM2_E_JSON, "", "shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2]}}", 2, SLM2_E_FORMAT, "a", "lacks its data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,2]}}", 2, SLM2_E_FORMAT, "a", "lacks its shape"},
    {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,2]}}", 2, SLM2_E_FORMAT, "a", "lacks its dtype"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, SLM2_E_FORMAT, "a", "repeated key"},
    {"{\"a\":{\"dtype\":\"U8\",\"x\":0,\"shape\":[2],\"data_offsets\":[0,2]}}", 2, SLM2_E_FORMAT, "a", "unknown key"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2,4]}}", 2, SLM2_E_JSON, "", ""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0]}}", 2, SLM2_E_JSON, "", ""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":2,\"data_offsets\":[0,2]}}", 2, SLM2_E_JSON, "", ""},
    {"{\"a\":{\"dtype\":8,\"shape\":[2],\"data_offsets\":[0,2]}}", 2, SLM2_E_JSON, "", ""},
    {"{\"a\":[]}", 0, SLM2_E_JSON, "", ""},
    {"{\"__metadata__\":{\"x\":\"y\",\"x\":\"z\"}}", 0, SLM2_E_FORMAT, "x", "metadata key comes twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, SLM2_E_FORMAT, "", "__metadata__ comes twice"},
    {"{\"__metadata__\":null}", 0, SLM2_E_JSON, "", ""},
    {"{\"a\":" ENTRY("U8", "2", 0, 2) "}\n", 2, SLM2_E_FORMAT, "", "only spaces"},
    {"{\"a\":" ENTRY("U8", "1,1,1,1,1,1,1,1", 0, 1) "}", 1, SLM2_OK, "", ""},
    {"{\"a\":" ENTRY("U8", "1,1,1,1,1,1,1,1,1", 0, 1) "}", 1, SLM2_E_FORMAT, "a", "more than 8 dimensions"},
    {"{\"a\":" ENTRY("U8", "2", 0, 2), 2, SLM2_E_JSON, "", "ends early"},
    {"{\"a\\u0000b\":" ENTRY("U8", "2", 0, 2) "}", 2, SLM2_OK, "", ""},
};

static void test_headers(void) {
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
    size_t n;
    opened o;
    uint8_t *file = make_file(headers[i].header, strlen(headers[i].header), headers[i].n_data, &n);
    slm2_status status = open_file(&o, "F", file, n);
    bool good = status == headers[i].status && strstr(o.error.message, headers[i].message) != NULL &&
                (headers[i].name[0] == 0 || strcmp(o.error.name, headers[i].name) == 0);
    if (!CHECK_CASE(good, headers[i].header)) printf("  %s: %s: %s\n", slm2_status_name(status), o.error.name, o.error.message);
    close_file(&o);
    free(file);
  }
}

static void test_values(void) {
  static const char header[] =
      "{\"w\\u002eb\":" ENTRY("BF16", "2,3", 4, 16) ",\"w.a\":" ENTRY("F32", "1", 0, 4) ",\"w\":" ENTRY("I64", "0", 16, 16) "}";
  size_t n;
  opened o;
  slm2_st_tensor t;
  uint8_t *file = make_file(header, sizeof header - 1, 16, &n);
  CHECK(open_file(&o, "F", file, n) == SLM2_OK && o.st.n_tensors == 3 && o.st.data_bytes == 16);
  slm2_st_get(&o.st, 0, &t);
  CHECK(t.n_name == 1 && t.name[0] == 'w' && t.bytes == 0 && t.dtype == SLM2_ST_I64 && t.rank == 1 && t.dims[0] == 0);
  slm2_st_get(&o.st, 1, &t);
  CHECK(t.n_name == 3 && memcmp(t.name, "w.a", 3) == 0 && t.offset == 8 + sizeof header - 1 && t.bytes == 4);
  slm2_st_get(&o.st, 2, &t);
  CHECK(t.n_name == 3 && memcmp(t.name, "w.b", 3) == 0 && t.offset == 8 + sizeof header - 1 + 4 && t.bytes == 12);
  CHECK(t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 3 && t.dtype == SLM2_ST_BF16);
  CHECK(slm2_st_find(&o.st, "w.b", 3) == 2 && slm2_st_find(&o.st, "w", 1) == 0 && slm2_st_find(&o.st, "w.", 2) == UINT32_MAX);
  CHECK(slm2_st_find(&o.st, "", 0) == UINT32_MAX && slm2_st_find(&o.st, "x", 1) == UINT32_MAX);
  CHECK(strcmp(slm2_st_dtype_name(SLM2_ST_F8_E4M3), "F8_E4M3") == 0 &&
        strcmp(slm2_st_dtype_name((slm2_st_dtype)99), "unknown") == 0);
  /* offsets of errors count from the start of the file */
  static const struct {
    const char *id;
    uint64_t offset;
  } at[] = {{"P13", 63}, {"P16", 66}, {"P18", 70}, {"P25", 22}, {"P29", 11}};
  for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
    char path[64];
    size_t n_bad;
    opened bad;
    snprintf(path, sizeof path, "tests/data/files/parser/%s.safetensors", at[i].id);
    char *bytes = test_read_file(path, &n_bad);
    CHECK(open_file(&bad, "F", (const uint8_t *)bytes, n_bad) != SLM2_OK);
    if (!CHECK_CASE(bad.error.offset == at[i].offset, at[i].id)) printf("  %llu\n", (unsigned long long)bad.error.offset);
    close_file(&bad);
    free(bytes);
  }
  /* too little memory */
  slm2_error error;
  slm2_safetensors st;
  CHECK(slm2_st_open("F", o.header, sizeof header - 1, n, (char *)o.entries + 8, SIZE_MAX, &st, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_index_shards("{}", 2, (char *)o.entries + 8, SIZE_MAX, NULL, 0, NULL, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_index_shards("{}", 2, o.entries, 0, NULL, 0, NULL, &error) == SLM2_E_MEMORY);
  CHECK(slm2_st_open("F", o.header, sizeof header - 1, n, o.entries, slm2_st_bytes(sizeof header - 1) - 1, &st, &error) ==
        SLM2_E_MEMORY);
  close_file(&o);
  free(file);
}

/* n tensors of one byte in one header; sorted backwards. */
static char *many_tensors(uint32_t count, size_t *n) {
  char *text = malloc((size_t)count * 80 + 16);
  size_t at = (size_t)sprintf(text, "{");
  for (uint32_t i = 0; i < count; i++) {
    at += (size_t)sprintf(text + at, "%s\"t%08u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}", i == 0 ? "" : ",",
                          count - i, i, i + 1);
  }
  at += (size_t)sprintf(text + at, "}");
  *n = at;
  return text;
}

static void test_many(void) {
  static const struct {
    uint32_t count;
    slm2_status status;
  } rows[] = {{SLM2_ST_MAX_TENSORS, SLM2_OK}, {SLM2_ST_MAX_TENSORS + 1, SLM2_E_FORMAT}};
  for (size_t i = 0; i < 2; i++) {
    size_t n_header, n;
    opened o;
    char *header = many_tensors(rows[i].count, &n_header);
    uint8_t *file = make_file(header, n_header, rows[i].count, &n);
    CHECK(open_file(&o, "F", file, n) == rows[i].status);
    if (rows[i].status == SLM2_OK)
      CHECK(slm2_st_find(&o.st, "t00000001", 9) == 0 && slm2_st_find(&o.st, "t00032000", 9) == 31999);
    close_file(&o);
    free(file);
    free(header);
  }
  CHECK(slm2_st_bytes(SLM2_ST_HEADER_MAX) <= 1048576); /* FIL-2 */
}

/* Random changes of a good header: refused, or a file whose tensors lie inside it. No step outside the lent memory. */
static void test_mutations(int runs) {
  static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},\"model.a\":" ENTRY(
      "BF16", "2,3", 4, 16) ",\"w.\\u00e4\":" ENTRY("F32", "1", 0, 4) "}  ";
  static const char alphabet[] = "{}[]\",:0123456789\\u-e. ab\xff\x01";
  uint64_t state = 20;
  unsigned accepted = 0;
  size_t n;
  uint8_t *good = make_file(header, sizeof header - 1, 16, &n);
  for (int run = 0; run < runs; run++) {
    uint8_t *file = malloc(n);
    memcpy(file, good, n);
    for (uint64_t k = 1 + test_random(&state) % 3; k > 0; k--) {
      size_t at = (size_t)(test_random(&state) % n);
      file[at] = test_random(&state) % 2 == 0 ? (uint8_t)test_random(&state)
                                              : (uint8_t)alphabet[test_random(&state) % (sizeof alphabet - 1)];
    }
    size_t cut = run % 4 == 0 ? (size_t)(test_random(&state) % (n + 1)) : n;
    opened o;
    if (open_file(&o, "F", file, cut) == SLM2_OK) {
      accepted++;
      uint64_t bytes = 0;
      for (uint32_t i = 0; i < o.st.n_tensors; i++) {
        slm2_st_tensor t;
        slm2_st_get(&o.st, i, &t);
        bytes += t.bytes;
        if (t.offset + t.bytes > cut || slm2_st_find(&o.st, t.name, t.n_name) != i) CHECK(false);
      }
      if (bytes != o.st.data_bytes) CHECK(false);
    } else if (o.error.message[0] == 0) {
      CHECK(false);
    }
    close_file(&o);
    free(file);
  }
  for (size_t cut = 0; cut < n; cut++) {
    opened o;
    uint8_t *file = malloc(cut + 1);
    memcpy(file, good, cut);
    if (open_file(&o, "F", file, cut) == SLM2_OK) CHECK(false);
    close_file(&o);
    free(file);
  }
  printf("test_safetensors: mutations from seed 20, %u of %d still good\n", accepted, runs);
  CHECK((int)accepted > runs / 200 && (int)accepted < runs);
  free(good);
}

/* --- indexes ------------------------------------------------------------------------------------------------ */

static slm2_status shards_of(const char *json, size_t n, char (*names)[SLM2_SHARD_NAME_MAX], uint32_t capacity, uint32_t *count,
                             slm2_error *error) {
  void *mem = malloc(slm2_index_bytes(n));
  char *text = malloc(n);
  memcpy(text, json, n);
  memset(error, 0, sizeof *error);
  slm2_status status = slm2_index_shards(text, n, mem, slm2_index_bytes(n), names, capacity, count, error);
  free(text);
  free(mem);
  return status;
}

static const struct {
  const char *file;
  slm2_status names, check; /* of slm2_index_shards, and of slm2_index_check against P01 and P15 */
  const char *tensor, *message;
} index_files[] = {
    {"I01", SLM2_E_FORMAT, SLM2_E_FORMAT, "model.norm.weight", "plain file name"},
    {"I02", SLM2_E_FORMAT, SLM2_E_FORMAT, "model.norm.weight", "plain file name"},
    {"I03", SLM2_OK, SLM2_E_FORMAT, "model.norm.weight", "model-00001-of-00002.safetensors"},
    {"I04", SLM2_E_FORMAT, SLM2_E_FORMAT, "a", "plain file name"},
    {"I05", SLM2_E_FORMAT, SLM2_E_FORMAT, "a", ""},
    {"I06", SLM2_OK, SLM2_E_FORMAT, "zzz", "P01.safetensors"},
    {"I07", SLM2_OK, SLM2_E_FORMAT, "", "total_size says 1 bytes, the shards hold 8"},
    {"I08", SLM2_E_FORMAT, SLM2_E_FORMAT, "a", "not a string"},
};

static void test_index_files(void) {
  char names[4][SLM2_SHARD_NAME_MAX];
  uint32_t count;
  slm2_error error;
  for (size_t i = 0; i < sizeof index_files / sizeof index_files[0]; i++) {
    char path[64];
    size_t n, n_shard;
    opened o;
    snprintf(path, sizeof path, "tests/data/files/index/%s.index.json", index_files[i].file);
    char *json = test_read_file(path, &n);
    char *shard = test_read_file("tests/data/files/parser/P01.safetensors", &n_shard);
    CHECK_CASE(shards_of(json, n, names, 4, &count, &error) == index_files[i].names, index_files[i].file);
    CHECK(open_file(&o, "P01.safetensors", (const uint8_t *)shard, n_shard) == SLM2_OK);
    slm2_status status = slm2_index_check(json, n, &o.st, 1, &error);
    CHECK_CASE(status == index_files[i].check && strstr(error.message, index_files[i].message) != NULL, index_files[i].file);
    if (index_files[i].tensor[0] != 0) CHECK_CASE(strcmp(error.name, index_files[i].tensor) == 0, index_files[i].file);
    close_file(&o);
    free(shard);
    free(json);
  }
}

static const struct {
  const char *json;
  slm2_status status;
  uint32_t count;
  const char *first;
} indexes[] = {
    {"{\"weight_map\":{\"a\":\"x.safetensors\",\"b\":\"y\",\"c\":\"x.safetensors\"}}", SLM2_OK, 2, "x.safetensors"},
    {"{\"weight_map\":{}}", SLM2_E_FORMAT, 0, ""},
    {"{\"metadata\":{}}", SLM2_E_FORMAT, 0, ""},
    {"[]", SLM2_E_JSON, 0, ""},
    {"{\"weight_map\":{\"a\":\"x\"},\"weight_map\":{\"b\":\"x\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"metadata\":{\"total_size\":1,\"total_size\":1},\"weight_map\":{\"b\":\"x\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"metadata\":{\"total_size\":-1},\"weight_map\":{\"b\":\"x\"}}", SLM2_E_JSON, 0, ""},
    {"{\"weight_map\":{\"b\":\"x\",\"a\":\"x\",\"b\":\"x\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\".\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"..\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"a/b\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"a\\u002fb\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"a b\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"\xc3\xa4\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":null}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"\\u0061\":\"x\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\"}}", SLM2_OK, 4, "1"},
    {"{\"weight_map\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\",\"e\":\"5\"}}", SLM2_E_FORMAT, 0, ""},
    {"{\"weight_map\":{\"a\":\"x\"}} x", SLM2_E_JSON, 0, ""},
    {"{\"weight_map\":{\"a\":\"x\"}", SLM2_E_JSON, 0, ""},
};

static void test_indexes(void) {
  char names[4][SLM2_SHARD_NAME_MAX];
  slm2_error error;
  for (size_t i = 0; i < sizeof indexes / sizeof indexes[0]; i++) {
    uint32_t count = 0;
    slm2_status status = shards_of(indexes[i].json, strlen(indexes[i].json), names, 4, &count, &error);
    CHECK_CASE(status == indexes[i].status && count == indexes[i].count, indexes[i].json);
    if (status == SLM2_OK) CHECK_CASE(strcmp(names[0], indexes[i].first) == 0, indexes[i].json);
  }
  /* names of 127 and 128 letters */
  for (size_t letters = 127; letters <= 128; letters++) {
    char json[256] = "{\"weight_map\":{\"a\":\"";
    size_t at = strlen(json);
    uint32_t count;
    memset(json + at, 'a', letters);
    strcpy(json + at + letters, "\"}}");
    CHECK(shards_of(json, strlen(json), names, 4, &count, &error) == (letters == 127 ? SLM2_OK : SLM2_E_FORMAT));
  }
}

/* 200,000 keys, one repeated at the far end: found without comparing all pairs. */
static void test_long_index(void) {
  char names[4][SLM2_SHARD_NAME_MAX];
  slm2_error error;
  uint32_t count;
  char *json = malloc(200002 * 24);
  size_t at = (size_t)sprintf(json, "{\"weight_map\":{");
  for (uint32_t i = 0; i < 200000; i++)
    at += (size_t)sprintf(json + at, "%s\"k%u\":\"%c\"", i == 0 ? "" : ",", i * 7919 % 200003, "xyz"[i % 3]);
  size_t good = at + (size_t)sprintf(json + at, "}}");
  CHECK(shards_of(json, good, names, 4, &count, &error) == SLM2_OK && count == 3);
  at += (size_t)sprintf(json + at, ",\"k7919\":\"x\"}}");
  CHECK(shards_of(json, at, names, 4, &count, &error) == SLM2_E_FORMAT && strcmp(error.name, "k7919") == 0);
  free(json);
}

static void test_index_check(void) {
  static const char two[] = "{\"a\":" ENTRY("U8", "2", 0, 2) ",\"b\":" ENTRY("U8", "2", 2, 4) "}",
                    one[] = "{\"c\":" ENTRY("U8", "3", 0, 3) "}";
  static const struct {
    const char *json;
    slm2_status status;
    const char *name, *message;
  } rows[] = {
      {"{\"metadata\":{\"total_size\":7},\"weight_map\":{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s2\"}}", SLM2_OK, "", ""},
      {"{\"weight_map\":{\"c\":\"s2\",\"b\":\"s1\",\"a\":\"s1\"}}", SLM2_OK, "", ""},
      {"{\"weight_map\":{\"a\":\"s1\",\"c\":\"s2\"}}", SLM2_E_FORMAT, "b", "not in the index"},
      {"{\"weight_map\":{\"a\":\"s1\",\"b\":\"s2\",\"c\":\"s2\"}}", SLM2_E_FORMAT, "b", "not in s2"},
      {"{\"weight_map\":{\"a\":\"s1\",\"b\":\"s1\"}}", SLM2_E_FORMAT, "c", "not in the index"},
      {"{\"weight_map\":{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s3\"}}", SLM2_E_FORMAT, "c", "shard s3"},
      {"{\"weight_map\":{\"a\":\"s1\",\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s2\"}}", SLM2_E_FORMAT, "a", "twice"},
      {"{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s2\"}}", SLM2_E_FORMAT,
       "model.safetensors.index.json", "total_size says 8 bytes, the shards hold 7"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    size_t n[2];
    opened o[2];
    slm2_error error = {.code = SLM2_OK};
    uint8_t *file[2] = {make_file(two, sizeof two - 1, 4, &n[0]), make_file(one, sizeof one - 1, 3, &n[1])};
    CHECK(open_file(&o[0], "s1", file[0], n[0]) == SLM2_OK && open_file(&o[1], "s2", file[1], n[1]) == SLM2_OK);
    slm2_safetensors shards[2] = {o[0].st, o[1].st};
    slm2_status status = slm2_index_check(rows[i].json, strlen(rows[i].json), shards, 2, &error);
    if (!CHECK_CASE(status == rows[i].status && strcmp(error.name, rows[i].name) == 0 &&
                        strstr(error.message, rows[i].message) != NULL,
                    rows[i].json))
      printf("  %s: %s\n", error.name, error.message);
    for (int k = 0; k < 2; k++) {
      close_file(&o[k]);
      free(file[k]);
    }
  }
}

int main(int argc, char **argv) {
  test_parser_files();
  test_headers();
  test_values();
  test_many();
  test_mutations(argc > 1 ? atoi(argv[1]) : 20000);
  test_index_files();
  test_indexes();
  test_long_index();
  test_index_check();
  return test_end("safetensors");
}
