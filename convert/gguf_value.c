/* convert/gguf_value.c: looking up names in a checked GGUF header, and reading values as the type that is asked for. */
#include "convert/gguf.h"
#include "convert/text.h"
#include "base/error.h"

/* Index of a name among n sorted ones, or UINT32_MAX. */
static uint32_t find(const uint8_t *header, const slm2_gguf_name *names, uint32_t n, const char *name) {
  uint32_t low = 0, high = n;
  size_t n_name = text_length(name);
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = text_compare((const char *)header + names[middle].at, names[middle].n, name, n_name);
    if (order == 0) return names[middle].index;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return UINT32_MAX;
}

const slm2_gguf_value *slm2_gguf_find(const slm2_gguf *g, const char *key) {
  uint32_t i = find(g->header, g->value_names, g->n_values, key);
  return i == UINT32_MAX ? NULL : &g->values[i];
}

slm2_gguf_tensor *slm2_gguf_find_tensor(const slm2_gguf *g, const char *name) {
  uint32_t i = find(g->header, g->tensor_names, g->n_tensors, name);
  return i == UINT32_MAX ? NULL : &g->tensors[i];
}

uint64_t slm2_gguf_dim(const slm2_gguf *g, const slm2_gguf_tensor *t, uint32_t i) {
  return slm2_load_u64(g->header + t->dims_at + 8 * (size_t)i);
}

slm2_status slm2_gguf_refuse(const slm2_gguf *g, const slm2_gguf_value *v, slm2_status code, const char *key, const char *fmt,
                             uint64_t a, uint64_t b, slm2_error *error) {
  return slm2_fail(error, code, "gguf", key, v == NULL ? SLM2_NO_OFFSET : v->at, fmt, g->input->name, key, a, b);
}

static slm2_status wrong_type(const slm2_gguf *g, const slm2_gguf_value *v, const char *key, const char *wanted,
                              slm2_error *error) {
  return slm2_fail(error, SLM2_E_FORMAT, "gguf", key, v->at, "%s: %s is of type %s%s%s; it must be %s", g->input->name, key,
                   slm2_gguf_type_name(v->type), v->type == SLM2_GGUF_ARRAY ? " of " : "",
                   v->type == SLM2_GGUF_ARRAY ? slm2_gguf_type_name(v->item) : "", wanted);
}

slm2_status slm2_gguf_u32(const slm2_gguf *g, const char *key, uint32_t *out, slm2_error *error) {
  const slm2_gguf_value *v = slm2_gguf_find(g, key);
  if (v == NULL) return SLM2_OK;
  const uint8_t *p = g->header + v->at;
  uint64_t x;
  switch (v->type) {
  case SLM2_GGUF_U8: x = p[0]; break;
  case SLM2_GGUF_I8: x = (uint64_t)(int64_t)(int8_t)p[0]; break;
  case SLM2_GGUF_U16: x = slm2_load_u16(p); break;
  case SLM2_GGUF_I16: x = (uint64_t)(int64_t)(int16_t)slm2_load_u16(p); break;
  case SLM2_GGUF_U32: x = slm2_load_u32(p); break;
  case SLM2_GGUF_I32: x = (uint64_t)(int64_t)(int32_t)slm2_load_u32(p); break;
  case SLM2_GGUF_U64:
  case SLM2_GGUF_I64: x = slm2_load_u64(p); break;
  default: return wrong_type(g, v, key, "a whole number", error);
  }
  if (x > UINT32_MAX) { /* negative ones too */
    return slm2_gguf_refuse(g, v, SLM2_E_UNSUPPORTED, key, "%s: %s is no number from 0 to %u", UINT32_MAX, 0, error);
  }
  *out = (uint32_t)x;
  return SLM2_OK;
}

slm2_status slm2_gguf_f32(const slm2_gguf *g, const char *key, float *out, slm2_error *error) {
  const slm2_gguf_value *v = slm2_gguf_find(g, key);
  if (v == NULL) return SLM2_OK;
  if (v->type != SLM2_GGUF_F32) return wrong_type(g, v, key, "f32", error);
  *out = slm2_load_f32(g->header + v->at);
  return SLM2_OK;
}

slm2_status slm2_gguf_bool(const slm2_gguf *g, const char *key, bool *out, slm2_error *error) {
  const slm2_gguf_value *v = slm2_gguf_find(g, key);
  if (v == NULL) return SLM2_OK;
  if (v->type != SLM2_GGUF_BOOL) return wrong_type(g, v, key, "bool", error);
  uint8_t byte = g->header[v->at];
  if (byte > 1) return slm2_gguf_refuse(g, v, SLM2_E_FORMAT, key, "%s: %s is a bool of %u, neither 0 nor 1", byte, 0, error);
  *out = byte == 1;
  return SLM2_OK;
}

slm2_status slm2_gguf_string(const slm2_gguf *g, const char *key, const char **out, size_t *n, slm2_error *error) {
  const slm2_gguf_value *v = slm2_gguf_find(g, key);
  if (v == NULL) return SLM2_OK;
  if (v->type != SLM2_GGUF_STRING) return wrong_type(g, v, key, "a string", error);
  *out = (const char *)g->header + v->at;
  *n = (size_t)v->count;
  return SLM2_OK;
}

slm2_status slm2_gguf_array(const slm2_gguf *g, const char *key, slm2_gguf_type item, const slm2_gguf_value **out,
                            slm2_error *error) {
  const slm2_gguf_value *v = slm2_gguf_find(g, key);
  *out = NULL;
  if (v == NULL) return SLM2_OK;
  if (v->type != SLM2_GGUF_ARRAY || v->item != item) {
    return wrong_type(g, v, key, item == SLM2_GGUF_STRING ? "an array of strings" : "an array of i32", error);
  }
  *out = v;
  return SLM2_OK;
}

const char *slm2_gguf_next_string(const slm2_gguf *g, uint32_t *at, size_t *n) {
  *n = (size_t)slm2_load_u64(g->header + *at); /* inside the header: slm2_gguf_open stepped the same way */
  const char *text = (const char *)g->header + *at + 8;
  *at += 8 + (uint32_t)*n;
  return text;
}
