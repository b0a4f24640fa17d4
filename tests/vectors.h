/* tests/vectors.h: test vectors in JSON: arrays or lines of objects, read with the product's own pull reader
 * (tests/unit/test_json.c tests that one against files). Exits when a file is not what it should be.
 */
#ifndef SLM2_TEST_VECTORS_H
#define SLM2_TEST_VECTORS_H

#include "base/json.h"
#include "tests/test.h"

/* The text of one JSON value. */
typedef struct vector_value {
  const char *text;
  size_t n;
} vector_value;

static inline void vector_broken(const char *what) {
  printf("FAIL broken test data: %s\n", what);
  exit(1);
}

static inline slm2_json_token vector_token(slm2_json *j) {
  slm2_json_token token;
  slm2_error error;
  if (slm2_json_next(j, &token, &error) != SLM2_OK) vector_broken(error.message);
  return token;
}

/* The rest of the value that begins with this token. */
static inline vector_value vector_rest(slm2_json *j, slm2_json_token first) {
  slm2_error error;
  if (slm2_json_skip(j, &first, &error) != SLM2_OK) vector_broken(error.message);
  return (vector_value){j->text + first.offset, j->at - first.offset};
}

/* Member of an object; text NULL when there is none. */
static inline vector_value vector_find(vector_value object, const char *key) {
  slm2_json j;
  slm2_json_init(&j, object.text, object.n, key);
  if (vector_token(&j).type != SLM2_JSON_OBJECT) vector_broken(key);
  for (slm2_json_token name = vector_token(&j); name.type == SLM2_JSON_KEY; name = vector_token(&j)) {
    vector_value value = vector_rest(&j, vector_token(&j));
    if (slm2_json_is(&name, key)) return value;
  }
  return (vector_value){NULL, 0};
}
static inline vector_value vector_get(vector_value object, const char *key) {
  vector_value value = vector_find(object, key);
  if (value.text == NULL) vector_broken(key);
  return value;
}

/* Elements of an array, or lines of a JSON-lines text, in order: false at the end. *at starts as 0. */
static inline int vector_next(vector_value array, size_t *at, vector_value *element) {
  while (*at < array.n && strchr("[, \n", array.text[*at]) != NULL) ++*at;
  if (*at >= array.n || array.text[*at] == ']') return 0;
  slm2_json j;
  slm2_json_init(&j, array.text + *at, array.n - *at, "element");
  *element = vector_rest(&j, vector_token(&j));
  *at += (size_t)(element->text - (array.text + *at)) + element->n;
  return 1;
}

/* A string, decoded and NUL-terminated; malloc'ed. */
static inline char *vector_string(vector_value value, size_t *n) {
  slm2_json j;
  slm2_json_init(&j, value.text, value.n, "string");
  slm2_json_token token = vector_token(&j);
  char *text = malloc(token.n_raw + 1);
  if (token.type != SLM2_JSON_STRING || text == NULL) vector_broken("a string is missing");
  *n = slm2_json_decode(&token, text);
  text[*n] = '\0';
  return text;
}

/* A string of hexadecimal digits, as bytes; malloc'ed. */
static inline uint8_t *vector_hex(vector_value value, size_t *n) {
  size_t digits;
  char *text = vector_string(value, &digits);
  uint8_t *bytes = (uint8_t *)text;
  for (*n = 0; 2 * *n < digits; ++*n) {
    char pair[3] = {text[2 * *n], text[2 * *n + 1], '\0'};
    bytes[*n] = (uint8_t)strtoul(pair, NULL, 16);
  }
  return bytes;
}

/* An array of non-negative integers; malloc'ed. */
static inline uint32_t *vector_ids(vector_value value, size_t *n) {
  uint32_t *ids = malloc((value.n + 1) * sizeof *ids);
  vector_value element;
  if (ids == NULL) vector_broken("no memory");
  *n = 0;
  for (size_t at = 0; vector_next(value, &at, &element);) ids[(*n)++] = (uint32_t)strtoul(element.text, NULL, 10);
  return ids;
}

static inline vector_value vector_file(const char *path) {
  vector_value file;
  file.text = test_read_file(path, &file.n);
  return file;
}
static inline void vector_close(vector_value file) { free((char *)(uintptr_t)file.text); }

#endif
