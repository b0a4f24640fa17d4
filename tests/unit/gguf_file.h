/* tests/unit/gguf_file.h: a GGUF file taken apart into values and tensors, to be changed and put together again; and files
 * in memory as inputs and sinks whose calls can be made to fail. */
#ifndef SLM2_TEST_GGUF_FILE_H
#define SLM2_TEST_GGUF_FILE_H

#include "base/bytes.h"
#include "convert/gguf.h"
#include "tests/test.h"

#define MAX_KV 80
#define MAX_GT 64

typedef struct gguf_kv {
  char key[64];
  uint32_t type;
  size_t n;
  uint8_t *bytes; /* behind the type */
} gguf_kv;

typedef struct gguf_t {
  char name[72];
  uint32_t rank, type;
  uint64_t dims[4];
  size_t bytes;
  uint8_t *data;
} gguf_t;

typedef struct gguf_file {
  uint32_t version, n_kv, n_t, alignment;
  gguf_kv kv[MAX_KV];
  gguf_t t[MAX_GT];
} gguf_file;

/* --- in memory ---------------------------------------------------------------------------- */

typedef struct memory_file {
  uint8_t *bytes;
  size_t n;
  const uint8_t *second; /* read instead from read number `switch_at` on: a file that changes */
  long reads, fail_read, switch_at;
  slm2_input input;
} memory_file;

static inline slm2_status memory_read(void *user, uint64_t offset, void *buffer, size_t n, slm2_error *error) {
  memory_file *f = user;
  long number = f->reads++;
  if (number == f->fail_read) {
    if (error != NULL) *error = (slm2_error){.code = SLM2_E_IO, .message = "test read fault"};
    return SLM2_E_IO;
  }
  if (offset > f->n || n > f->n - offset) {
    printf("FAIL read outside the file\n");
    exit(1);
  }
  memcpy(buffer, (f->second != NULL && number >= f->switch_at ? f->second : f->bytes) + offset, n);
  return SLM2_OK;
}
static inline slm2_input *memory_input(memory_file *f, uint8_t *bytes, size_t n) {
  *f = (memory_file){.bytes = bytes, .n = n, .fail_read = -1};
  f->input = (slm2_input){.user = f, .name = "m.gguf", .bytes = n, .read = memory_read};
  return &f->input;
}

typedef struct memory_sink {
  uint8_t *bytes;
  size_t n, capacity;
  int in_order; /* every write began where the one before ended */
  long writes, fail_write;
} memory_sink;

static inline slm2_status memory_write(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *error) {
  memory_sink *s = user;
  if (s->writes++ == s->fail_write) {
    if (error != NULL) *error = (slm2_error){.code = SLM2_E_IO, .message = "test write fault"};
    return SLM2_E_IO;
  }
  if (offset + n > s->capacity) {
    s->capacity = 2 * ((size_t)offset + n);
    s->bytes = realloc(s->bytes, s->capacity);
  }
  if (offset != s->n) s->in_order = 0;
  memcpy(s->bytes + offset, bytes, n);
  if (offset + n > s->n) s->n = (size_t)(offset + n);
  return SLM2_OK;
}
static inline slm2_sink memory_begin(memory_sink *s) {
  s->n = 0;
  s->in_order = 1;
  s->writes = 0;
  s->fail_write = -1;
  return (slm2_sink){.user = s, .write = memory_write};
}

/* --- taking apart -------------------------------------------------------------------------- */

static inline uint8_t *copy_bytes(const void *bytes, size_t n) {
  uint8_t *out = malloc(n + 1);
  memcpy(out, bytes, n);
  return out;
}

static inline gguf_file *gguf_load(const char *path) {
  memory_file m;
  size_t n;
  uint8_t *bytes = (uint8_t *)test_read_file(path, &n);
  slm2_input *in = memory_input(&m, bytes, n);
  slm2_gguf_scan scan;
  slm2_gguf g;
  if (slm2_gguf_scan_header(in, &scan, NULL) != SLM2_OK) exit(1);
  void *mem = aligned_alloc(64, slm2_gguf_bytes(&scan));
  if (slm2_gguf_open(in, &scan, mem, slm2_gguf_bytes(&scan), &g, NULL) != SLM2_OK) exit(1);
  gguf_file *f = calloc(1, sizeof *f);
  f->version = g.version;
  f->alignment = g.alignment;
  f->n_kv = g.n_values;
  f->n_t = g.n_tensors;
  for (uint32_t i = 0; i < g.n_values; i++) {
    const slm2_gguf_value *v = &g.values[i];
    size_t begin = v->key_at + v->n_key + 4;
    size_t end = i + 1 < g.n_values ? g.values[i + 1].key_at - 8 : g.tensors[0].name_at - 8;
    memcpy(f->kv[i].key, bytes + v->key_at, v->n_key);
    f->kv[i].type = v->type;
    f->kv[i].n = end - begin;
    f->kv[i].bytes = copy_bytes(bytes + begin, end - begin);
  }
  for (uint32_t i = 0; i < g.n_tensors; i++) {
    const slm2_gguf_tensor *t = &g.tensors[i];
    memcpy(f->t[i].name, bytes + t->name_at, t->n_name);
    f->t[i].rank = t->rank;
    f->t[i].type = t->type;
    for (uint32_t k = 0; k < t->rank; k++) f->t[i].dims[k] = slm2_gguf_dim(&g, t, k);
    f->t[i].bytes = (size_t)t->bytes;
    f->t[i].data = copy_bytes(bytes + t->offset, (size_t)t->bytes);
  }
  free(mem);
  free(bytes);
  return f;
}

static inline void gguf_free(gguf_file *f) {
  for (uint32_t i = 0; i < f->n_kv; i++) free(f->kv[i].bytes);
  for (uint32_t i = 0; i < f->n_t; i++) free(f->t[i].data);
  free(f);
}

static inline gguf_kv *gguf_kv_named(gguf_file *f, const char *key) {
  for (uint32_t i = 0; i < f->n_kv; i++)
    if (strcmp(f->kv[i].key, key) == 0) return &f->kv[i];
  return NULL;
}
static inline gguf_t *gguf_t_named(gguf_file *f, const char *name) {
  for (uint32_t i = 0; i < f->n_t; i++)
    if (strcmp(f->t[i].name, name) == 0) return &f->t[i];
  printf("FAIL no tensor %s\n", name);
  exit(1);
}

/* Sets or adds a value; NULL bytes removes it (a key that is not there is a defect of the test). */
static inline void gguf_set(gguf_file *f, const char *key, uint32_t type, const void *bytes, size_t n) {
  gguf_kv *kv = gguf_kv_named(f, key);
  if (bytes == NULL) {
    if (kv == NULL) {
      printf("FAIL nothing to remove: %s\n", key);
      exit(1);
    }
    free(kv->bytes);
    *kv = f->kv[--f->n_kv];
    return;
  }
  if (kv == NULL) {
    kv = &f->kv[f->n_kv++];
    snprintf(kv->key, sizeof kv->key, "%s", key);
  } else {
    free(kv->bytes);
  }
  kv->type = type;
  kv->n = n;
  kv->bytes = copy_bytes(bytes, n);
}
static inline void gguf_set_u32(gguf_file *f, const char *key, uint32_t value) {
  uint8_t b[4];
  slm2_store_u32(b, value);
  gguf_set(f, key, SLM2_GGUF_U32, b, 4);
}
static inline void gguf_set_f32(gguf_file *f, const char *key, float value) {
  uint8_t b[4];
  slm2_store_f32(b, value);
  gguf_set(f, key, SLM2_GGUF_F32, b, 4);
}
static inline void gguf_set_bool(gguf_file *f, const char *key, uint8_t value) { gguf_set(f, key, SLM2_GGUF_BOOL, &value, 1); }
static inline void gguf_set_text(gguf_file *f, const char *key, const char *text) {
  size_t n = strlen(text);
  uint8_t *b = malloc(n + 8);
  slm2_store_u64(b, n);
  memcpy(b + 8, text, n);
  gguf_set(f, key, SLM2_GGUF_STRING, b, n + 8);
  free(b);
}

/* The string i of an array of strings replaced by n bytes. */
static inline void gguf_set_item(gguf_file *f, const char *key, uint32_t i, const char *text, size_t n) {
  gguf_kv *kv = gguf_kv_named(f, key);
  size_t at = 12;
  for (uint32_t k = 0; k < i; k++) at += 8 + (size_t)slm2_load_u64(kv->bytes + at);
  size_t old = (size_t)slm2_load_u64(kv->bytes + at), rest = kv->n - (at + 8 + old);
  uint8_t *b = malloc(kv->n - old + n);
  memcpy(b, kv->bytes, at);
  slm2_store_u64(b + at, n);
  memcpy(b + at + 8, text, n);
  memcpy(b + at + 8 + n, kv->bytes + at + 8 + old, rest);
  free(kv->bytes);
  kv->bytes = b;
  kv->n = at + 8 + n + rest;
}

/* --- putting together ------------------------------------------------------------------------- */

static inline size_t padded(size_t n, size_t to) { return (n + to - 1) / to * to; }

static inline void put_u32(uint8_t **p, uint32_t x) {
  slm2_store_u32(*p, x);
  *p += 4;
}
static inline void put_u64(uint8_t **p, uint64_t x) {
  slm2_store_u64(*p, x);
  *p += 8;
}
static inline void put_bytes(uint8_t **p, const void *bytes, size_t n) {
  memcpy(*p, bytes, n);
  *p += n;
}
static inline void put_name(uint8_t **p, const char *name) {
  put_u64(p, strlen(name));
  put_bytes(p, name, strlen(name));
}

static inline uint8_t *gguf_build(const gguf_file *f, size_t *n) {
  size_t capacity = 4096;
  for (uint32_t i = 0; i < f->n_kv; i++) capacity += f->kv[i].n + 128;
  for (uint32_t i = 0; i < f->n_t; i++) capacity += f->t[i].bytes + 256 + f->alignment;
  uint8_t *out = calloc(1, capacity), *p = out;
  put_bytes(&p, "GGUF", 4);
  put_u32(&p, f->version);
  put_u64(&p, f->n_t);
  put_u64(&p, f->n_kv);
  for (uint32_t i = 0; i < f->n_kv; i++) {
    put_name(&p, f->kv[i].key);
    put_u32(&p, f->kv[i].type);
    put_bytes(&p, f->kv[i].bytes, f->kv[i].n);
  }
  uint64_t offset = 0;
  for (uint32_t i = 0; i < f->n_t; i++) {
    put_name(&p, f->t[i].name);
    put_u32(&p, f->t[i].rank);
    for (uint32_t k = 0; k < f->t[i].rank; k++) put_u64(&p, f->t[i].dims[k]);
    put_u32(&p, f->t[i].type);
    put_u64(&p, offset);
    offset += padded(f->t[i].bytes, f->alignment);
  }
  p = out + padded((size_t)(p - out), f->alignment);
  for (uint32_t i = 0; i < f->n_t; i++) {
    memcpy(p, f->t[i].data, f->t[i].bytes);
    p += padded(f->t[i].bytes, f->alignment);
  }
  *n = (size_t)(p - out);
  return out;
}

/* Converts a file in memory, in memory of exactly the announced size. */
static inline slm2_status gguf_convert(slm2_input *in, memory_sink *out, const slm2_convert_options *options,
                                       slm2_convert_report *report, slm2_error *error) {
  size_t bytes;
  slm2_sink sink = memory_begin(out);
  memset(error, 0, sizeof *error);
  slm2_status status = slm2_convert_gguf_bytes(in, &bytes, error);
  if (status != SLM2_OK) return status;
  void *mem = aligned_alloc(64, padded(bytes, 64));
  status = slm2_convert_gguf(in, &sink, options, mem, bytes, report, error);
  free(mem);
  return status;
}

#endif
