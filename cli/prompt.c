/* cli/prompt.c: what the user gives (stdin, files, conversations) to text and ids. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cli_read_stdin(cli_text *out) {
  char piece[65536];
  cli_text_add(out, "", 0);
  for (;;) {
    size_t n = fread(piece, 1, sizeof piece, stdin);
    cli_text_add(out, piece, n);
    if (n == sizeof piece) continue;
    if (ferror(stdin)) return cli_complain(CLI_FAILED, "stdin", "%s", strerror(errno));
    return CLI_OK;
  }
}

int cli_read_input(const char *path, slm2_mapping *map, cli_text *own, const char **text, size_t *n) {
  *map = (slm2_mapping){NULL, 0, NULL};
  if (strcmp(path, "-") == 0) {
    int code = cli_read_stdin(own);
    *text = own->bytes;
    *n = own->n;
    return code;
  }
  slm2_error error = {0};
  if (slm2_map(path, map, &error) != SLM2_OK) return cli_fail(&error);
  *text = map->n == 0 ? "" : (const char *)map->bytes;
  *n = (size_t)map->n;
  return CLI_OK;
}

void cli_input_free(slm2_mapping *map, cli_text *own) {
  slm2_unmap(map);
  cli_text_free(own);
}

int cli_tokenize(const cli_model *m, const char *text, size_t n, slm2_specials specials, const uint8_t *mask, cli_ids *ids) {
  slm2_error error = {0};
  size_t scratch_bytes = 0, n_ids = 0;
  slm2_status status = slm2_tokenize_scratch_bytes(n, &scratch_bytes);
  if (status != SLM2_OK || n > (SIZE_MAX / sizeof(uint32_t) - 1) / 3)
    return cli_complain(CLI_FAILED, "text", "%zu bytes are too many to tokenize", n);
  void *scratch = cli_alloc(scratch_bytes, 1);
  uint32_t *fresh = cli_alloc(3 * n + 1, sizeof *fresh);
  status = slm2_tokenize(m->tokenizer, (const uint8_t *)text, n, specials, mask, scratch, scratch_bytes, fresh, 3 * n + 1, &n_ids,
                         &error);
  free(scratch);
  if (status == SLM2_OK)
    for (size_t i = 0; i < n_ids; i++) cli_ids_add(ids, fresh[i]);
  free(fresh);
  return status == SLM2_OK ? CLI_OK : cli_fail(&error);
}

/* Measures with capacity 0, then renders. *text and *mask are cli_alloc'ed on CLI_OK. */
static int render_text(const cli_model *m, const char *json, size_t n, const slm2_chat_options *options, char **text,
                       uint8_t **mask, size_t *n_text) {
  slm2_error error = {0};
  slm2_chat_format format = m->header->chat_format;
  size_t scratch_bytes = 0, capacity = 0;
  if (slm2_chat_scratch_bytes(n, &scratch_bytes) != SLM2_OK)
    return cli_complain(CLI_FAILED, "messages", "%zu bytes are too many to render", n);
  void *scratch = cli_alloc(scratch_bytes, 1);
  slm2_status status = slm2_chat_render(format, json, n, options, scratch, scratch_bytes, NULL, NULL, 0, n_text, &error);
  *text = NULL;
  *mask = NULL;
  if (status == SLM2_E_MEMORY && error.offset != UINT64_MAX && error.offset < SIZE_MAX) {
    capacity = (size_t)error.offset;
    *text = cli_alloc(capacity, 1);
    *mask = cli_alloc(capacity, 1);
    status = slm2_chat_render(format, json, n, options, scratch, scratch_bytes, *text, *mask, capacity, n_text, &error);
  }
  free(scratch);
  if (status == SLM2_OK) return CLI_OK;
  free(*text);
  free(*mask);
  return cli_fail(&error);
}

int cli_render(const cli_model *m, const char *json, size_t n, const slm2_chat_options *options, bool raw_specials,
               cli_text *text, cli_ids *ids) {
  char *bytes;
  uint8_t *mask;
  size_t n_text = 0;
  int code = render_text(m, json, n, options, &bytes, &mask, &n_text);
  if (code != CLI_OK) return code;
  if (text != NULL) cli_text_add(text, bytes, n_text);
  if (ids != NULL)
    code =
        cli_tokenize(m, bytes, n_text, raw_specials ? SLM2_SPECIALS_ON : SLM2_SPECIALS_MASKED, raw_specials ? NULL : mask, ids);
  free(bytes);
  free(mask);
  return code;
}

void cli_message_add(cli_text *t, const char *role, const char *content, size_t n) {
  if (t->n > 0 && t->bytes[t->n - 1] != '[') cli_text_puts(t, ",");
  cli_text_print(t, "{\"role\":\"%s\",\"content\":", role);
  cli_text_json(t, content, n);
  cli_text_puts(t, "}");
}
