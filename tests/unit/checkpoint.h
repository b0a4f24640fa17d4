/* tests/unit/checkpoint.h: a Hugging Face folder in memory, to be changed and converted; reads and writes can be made to
 * fail. Its tensors can be taken apart and written again in any dtype, order and number of shards. */
#ifndef SLM2_TEST_CHECKPOINT_H
#define SLM2_TEST_CHECKPOINT_H

#include "base/bytes.h"
#include "base/sha256.h"
#include "convert/convert.h"
#include "convert/safetensors.h"
#include "num/math.h"
#include "tests/test.h"

#define MAX_TEST_SHARDS 8
#define MAX_TEST_TENSORS 64

static const char *const text_names[SLM2_SOURCE_TEXTS] = {"config.json", "generation_config.json", "tokenizer.json",
                                                          "tokenizer_config.json", "chat_template.jinja"};

typedef struct checkpoint {
  slm2_source source;
  uint8_t *shards[MAX_TEST_SHARDS];
  uint64_t shard_bytes[MAX_TEST_SHARDS];
  char names[MAX_TEST_SHARDS][SLM2_SHARD_NAME_MAX];
  const char *name_list[MAX_TEST_SHARDS];
  /* the sink */
  uint8_t *out;
  size_t n_out, capacity;
  /* faults: the call with this number fails; -1 never */
  long reads, writes, fail_read, fail_write;
  uint64_t progress;
  unsigned progress_faults;
} checkpoint;

static inline slm2_status checkpoint_read(void *user, uint32_t shard, uint64_t offset, void *buffer, size_t n,
                                          slm2_error *error) {
  checkpoint *c = user;
  if (c->reads++ == c->fail_read) {
    if (error != NULL) *error = (slm2_error){.code = SLM2_E_IO, .message = "test read fault"};
    return SLM2_E_IO;
  }
  if (shard >= c->source.n_shards || offset > c->shard_bytes[shard] || n > c->shard_bytes[shard] - offset) {
    printf("FAIL read outside shard %u\n", shard);
    exit(1);
  }
  memcpy(buffer, c->shards[shard] + offset, n);
  return SLM2_OK;
}
static inline slm2_status checkpoint_write(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *error) {
  checkpoint *c = user;
  if (c->writes++ == c->fail_write) {
    if (error != NULL) *error = (slm2_error){.code = SLM2_E_IO, .message = "test write fault"};
    return SLM2_E_IO;
  }
  if (offset + n > c->capacity) {
    size_t capacity = (size_t)offset + n + 65536;
    c->out = realloc(c->out, capacity);
    memset(c->out + c->capacity, 0xee, capacity - c->capacity);
    c->capacity = capacity;
  }
  memcpy(c->out + offset, bytes, n);
  if (offset + n > c->n_out) c->n_out = (size_t)(offset + n);
  return SLM2_OK;
}
static inline void checkpoint_progress(void *user, const char *phase, uint64_t done, uint64_t total) {
  checkpoint *c = user;
  if (done > total || (done < c->progress && strcmp(phase, "convert") == 0 && c->progress != UINT64_MAX)) c->progress_faults++;
  c->progress = done == total ? 0 : done;
}

static inline slm2_sink checkpoint_sink(checkpoint *c) {
  return (slm2_sink){.user = c, .write = checkpoint_write, .progress = checkpoint_progress};
}

static inline void checkpoint_attach(checkpoint *c) {
  c->source.user = c;
  c->source.read = checkpoint_read;
  c->source.shard_names = c->name_list;
  c->source.shard_bytes = c->shard_bytes;
  for (int i = 0; i < MAX_TEST_SHARDS; i++) c->name_list[i] = c->names[i];
}

static inline int file_exists(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f != NULL) fclose(f);
  return f != NULL;
}

static inline checkpoint *checkpoint_load(const char *folder) {
  checkpoint *c = calloc(1, sizeof *c);
  char path[256];
  c->fail_read = c->fail_write = -1;
  for (int i = 0; i < SLM2_SOURCE_TEXTS; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, text_names[i]);
    if (file_exists(path)) c->source.text[i] = test_read_file(path, &c->source.text_bytes[i]);
  }
  snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
  if (file_exists(path)) {
    uint32_t n;
    c->source.index = test_read_file(path, &c->source.index_bytes);
    void *mem = malloc(slm2_index_bytes(c->source.index_bytes));
    if (slm2_index_shards(c->source.index, c->source.index_bytes, mem, slm2_index_bytes(c->source.index_bytes), c->names,
                          MAX_TEST_SHARDS, &n, NULL) != SLM2_OK)
      exit(1);
    free(mem);
    c->source.n_shards = n;
  } else {
    strcpy(c->names[0], "model.safetensors");
    c->source.n_shards = 1;
  }
  for (uint32_t i = 0; i < c->source.n_shards; i++) {
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, c->names[i]);
    c->shards[i] = (uint8_t *)test_read_file(path, &n);
    c->shard_bytes[i] = n;
  }
  checkpoint_attach(c);
  return c;
}

static inline void checkpoint_free_shards(checkpoint *c) {
  for (int i = 0; i < MAX_TEST_SHARDS; i++) {
    free(c->shards[i]);
    c->shards[i] = NULL;
  }
  free((char *)(uintptr_t)c->source.index);
  c->source.index = NULL;
}
static inline void checkpoint_free(checkpoint *c) {
  checkpoint_free_shards(c);
  for (int i = 0; i < SLM2_SOURCE_TEXTS; i++) free((char *)(uintptr_t)c->source.text[i]);
  free(c->out);
  free(c);
}

/* Replaces a text; NULL removes it. */
static inline void checkpoint_set_text(checkpoint *c, slm2_source_file file, const char *text) {
  free((char *)(uintptr_t)c->source.text[file]);
  c->source.text[file] = NULL;
  c->source.text_bytes[file] = 0;
  if (text == NULL) return;
  size_t n = strlen(text);
  char *copy = malloc(n + 1);
  memcpy(copy, text, n + 1);
  c->source.text[file] = copy;
  c->source.text_bytes[file] = n;
}

/* A copy of text with its first `from` replaced; exits when there is none: a test that changes nothing is a defect. */
static inline char *replaced(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  if (at == NULL) {
    printf("FAIL nothing to replace: %s\n", from);
    exit(1);
  }
  size_t before = (size_t)(at - text), n = strlen(text) - strlen(from) + strlen(to);
  char *out = malloc(n + 1);
  memcpy(out, text, before);
  strcpy(out + before, to);
  strcat(out, at + strlen(from));
  return out;
}

/* Converts into c->out, in memory of exactly the announced size. */
static inline slm2_status checkpoint_convert(checkpoint *c, const slm2_convert_options *options, slm2_convert_report *report,
                                             slm2_error *error) {
  size_t bytes;
  slm2_sink sink = checkpoint_sink(c);
  c->n_out = 0;
  c->reads = c->writes = 0;
  c->progress = UINT64_MAX;
  memset(error, 0, sizeof *error);
  slm2_status status = slm2_convert_bytes(&c->source, &bytes, error);
  if (status != SLM2_OK) return status;
  void *mem = malloc(bytes);
  memset(mem, 0xa5, bytes);
  status = slm2_convert_hf(&c->source, &sink, options, mem, bytes, report, error);
  free(mem);
  return status;
}

/* --- tensors ------------------------------------------------------------------------------------------------ */

typedef struct test_tensor {
  char name[96];
  slm2_st_dtype dtype; /* to be written as */
  uint32_t rank, shard; /* to be written in */
  uint64_t dims[2], n;
  float *values;
} test_tensor;

typedef struct tensor_list {
  test_tensor t[MAX_TEST_TENSORS];
  uint32_t n;
} tensor_list;

static inline float test_value(slm2_st_dtype dtype, const uint8_t *raw, size_t i) {
  if (dtype == SLM2_ST_F32) return slm2_load_f32(raw + 4 * i);
  uint16_t half = slm2_load_u16(raw + 2 * i);
  return dtype == SLM2_ST_BF16 ? slm2_float_from_bits((uint32_t)half << 16) : slm2_f16_to_f32(half);
}

static inline tensor_list *checkpoint_tensors(const checkpoint *c) {
  tensor_list *list = calloc(1, sizeof *list);
  for (uint32_t s = 0; s < c->source.n_shards; s++) {
    size_t n;
    slm2_safetensors st;
    if (slm2_st_header_length("s", c->shards[s], c->shard_bytes[s], &n, NULL) != SLM2_OK) exit(1);
    char *header = malloc(n);
    memcpy(header, c->shards[s] + 8, n);
    void *mem = malloc(slm2_st_bytes(n));
    if (slm2_st_open("s", header, n, c->shard_bytes[s], mem, slm2_st_bytes(n), &st, NULL) != SLM2_OK) exit(1);
    for (uint32_t i = 0; i < st.n_tensors; i++) {
      slm2_st_tensor in;
      test_tensor *out = &list->t[list->n++];
      slm2_st_get(&st, i, &in);
      memcpy(out->name, in.name, in.n_name);
      out->dtype = in.dtype;
      out->rank = in.rank;
      out->n = 1;
      for (uint32_t d = 0; d < in.rank; d++) out->n *= out->dims[d] = in.dims[d];
      out->values = malloc((size_t)out->n * sizeof(float));
      for (size_t k = 0; k < out->n; k++) out->values[k] = test_value(in.dtype, c->shards[s] + in.offset, k);
    }
    free(header);
    free(mem);
  }
  return list;
}
static inline void tensors_free(tensor_list *list) {
  for (uint32_t i = 0; i < list->n; i++) free(list->t[i].values);
  free(list);
}
static inline test_tensor *tensor_named(tensor_list *list, const char *name) {
  for (uint32_t i = 0; i < list->n; i++) {
    if (strcmp(list->t[i].name, name) == 0) return &list->t[i];
  }
  printf("FAIL no tensor %s\n", name);
  exit(1);
}
static inline test_tensor *tensor_copy(tensor_list *list, const char *from, const char *name) {
  test_tensor *t = &list->t[list->n];
  *t = *tensor_named(list, from);
  t->values = malloc((size_t)t->n * sizeof(float));
  memcpy(t->values, tensor_named(list, from)->values, (size_t)t->n * sizeof(float));
  memset(t->name, 0, sizeof t->name);
  strcpy(t->name, name);
  list->n++;
  return t;
}

static inline size_t test_dtype_bytes(slm2_st_dtype d) {
  return d == SLM2_ST_F32 ? 4 : d == SLM2_ST_F64 || d == SLM2_ST_I64 ? 8 : d == SLM2_ST_I8 ? 1 : 2;
}

/* Writes the tensors as this checkpoint's shards, with an index when there is more than one or `indexed`. */
static inline void checkpoint_write_tensors(checkpoint *c, const tensor_list *list, uint32_t n_shards, int indexed) {
  char *index = malloc(65536);
  size_t at = (size_t)sprintf(index, "{\"metadata\": {}, \"weight_map\": {"), first = at;
  checkpoint_free_shards(c);
  c->source.n_shards = n_shards;
  for (uint32_t s = 0; s < n_shards; s++) {
    char *header = malloc(65536);
    size_t n = (size_t)sprintf(header, "{"), offset = 0;
    snprintf(c->names[s], SLM2_SHARD_NAME_MAX, "part-%u.safetensors", s);
    for (uint32_t i = 0; i < list->n; i++) {
      const test_tensor *t = &list->t[i];
      if (t->shard != s) continue;
      size_t bytes = (size_t)t->n * test_dtype_bytes(t->dtype);
      n += (size_t)sprintf(header + n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", n == 1 ? "" : ",", t->name,
                           slm2_st_dtype_name(t->dtype));
      for (uint32_t d = 0; d < t->rank; d++)
        n += (size_t)sprintf(header + n, "%s%llu", d == 0 ? "" : ",", (unsigned long long)t->dims[d]);
      n += (size_t)sprintf(header + n, "],\"data_offsets\":[%zu,%zu]}", offset, offset + bytes);
      at += (size_t)sprintf(index + at, "%s\"%s\":\"%s\"", at == first ? "" : ",", t->name, c->names[s]);
      offset += bytes;
    }
    n += (size_t)sprintf(header + n, "}");
    c->shard_bytes[s] = 8 + n + offset;
    uint8_t *out = c->shards[s] = calloc(1, 8 + n + offset);
    slm2_store_u64(out, n);
    memcpy(out + 8, header, n);
    out += 8 + n;
    for (uint32_t i = 0; i < list->n; i++) {
      const test_tensor *t = &list->t[i];
      if (t->shard != s) continue;
      for (uint64_t k = 0; k < t->n; k++, out += test_dtype_bytes(t->dtype)) {
        if (t->dtype == SLM2_ST_F32) slm2_store_f32(out, t->values[k]);
        if (t->dtype == SLM2_ST_BF16) slm2_store_u16(out, (uint16_t)(slm2_float_bits(t->values[k]) >> 16));
        if (t->dtype == SLM2_ST_F16) slm2_store_u16(out, slm2_f32_to_f16(t->values[k]));
      }
    }
    free(header);
  }
  at += (size_t)sprintf(index + at, "}}");
  if (n_shards > 1 || indexed) {
    c->source.index = index;
    c->source.index_bytes = at;
  } else {
    free(index);
  }
}

#endif
