/* cli/text.c: the growing buffers of the command line. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/json.h"
#include "base/utf8.h"

void *cli_alloc(size_t count, size_t size) {
  void *p = calloc(count > 0 ? count : 1, size);
  if (p == NULL) exit(cli_complain(CLI_FAILED, "memory", "the system refuses %zu times %zu bytes", count, size));
  return p;
}

/* Doubles: adding n bytes one at a time stays linear. */
static void *grown(void *old, size_t used, size_t *capacity, size_t extra, size_t size) {
  size_t need = used + extra;
  if (need < used || need > SIZE_MAX / 2 / size)
    exit(cli_complain(CLI_FAILED, "memory", "%zu more items cannot be addressed", extra));
  if (need <= *capacity) return old;
  size_t next = *capacity < 64 ? 64 : *capacity;
  while (next < need) next *= 2;
  void *p = realloc(old, next * size);
  if (p == NULL) exit(cli_complain(CLI_FAILED, "memory", "the system refuses %zu bytes", next * size));
  *capacity = next;
  return p;
}

void cli_text_add(cli_text *t, const void *bytes, size_t n) {
  t->bytes = grown(t->bytes, t->n, &t->capacity, n + 1, 1);
  if (n > 0) memcpy(t->bytes + t->n, bytes, n);
  t->n += n;
  t->bytes[t->n] = 0;
}

void cli_text_puts(cli_text *t, const char *s) { cli_text_add(t, s, strlen(s)); }

void cli_text_print(cli_text *t, const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  if (n > 0) {
    t->bytes = grown(t->bytes, t->n, &t->capacity, (size_t)n + 1, 1);
    vsnprintf(t->bytes + t->n, (size_t)n + 1, fmt, again);
    t->n += (size_t)n;
  }
  va_end(again);
}

static void json_part(cli_text *t, const char *s, size_t n) {
  size_t need = slm2_json_escape(s, n, NULL, 0);
  t->bytes = grown(t->bytes, t->n, &t->capacity, need + 1, 1);
  slm2_json_escape(s, n, t->bytes + t->n, need);
  t->n += need;
  t->bytes[t->n] = 0;
}

void cli_text_json(cli_text *t, const char *s, size_t n) {
  cli_text_puts(t, "\"");
  size_t from = 0, at = 0;
  while (at < n) {
    uint32_t cp;
    bool valid = true;
    size_t length = slm2_utf8_next((const uint8_t *)s + at, n - at, &cp, &valid);
    if (!valid) {
      json_part(t, s + from, at - from);
      cli_text_puts(t, "\xef\xbf\xbd");
      from = at + length;
    }
    at += length;
  }
  json_part(t, s + from, n - from);
  cli_text_puts(t, "\"");
}

void cli_text_f32(cli_text *t, float x) {
  char digits[SLM2_DECIMAL_MAX];
  cli_text_add(t, digits, slm2_f32_to_decimal(x, digits));
}

const char *cli_grouped(uint64_t x, char out[CLI_GROUPED_MAX]) {
  char digits[SLM2_DECIMAL_MAX];
  size_t n = slm2_u64_to_decimal(x, digits), at = 0;
  for (size_t i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0) out[at++] = ',';
    out[at++] = digits[i];
  }
  out[at] = 0;
  return out;
}

void cli_text_free(cli_text *t) {
  free(t->bytes);
  *t = (cli_text){NULL, 0, 0};
}

void cli_ids_add(cli_ids *ids, uint32_t id) {
  ids->at = grown(ids->at, ids->n, &ids->capacity, 1, sizeof *ids->at);
  ids->at[ids->n++] = id;
}

void cli_ids_free(cli_ids *ids) {
  free(ids->at);
  *ids = (cli_ids){NULL, 0, 0};
}

void cli_text_ids(cli_text *t, const uint32_t *ids, size_t n, const char *between) {
  for (size_t i = 0; i < n; i++) {
    char digits[SLM2_DECIMAL_MAX];
    if (i > 0) cli_text_puts(t, between);
    cli_text_add(t, digits, slm2_u64_to_decimal(ids[i], digits));
  }
}
