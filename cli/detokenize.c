/* cli/detokenize.c: `slm2 detokenize`: ids on stdin to text on stdout. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
  "slm2 detokenize FILE < ids: token ids to text, exactly as Hugging Face's decoder (control tokens are shown).\n"
  "\n"
  "stdin holds decimal ids with blanks, newlines or commas between them; the output of tokenize with or without\n"
  "--json will do. The text is printed as it is, without a newline after it.\n"
  "\n"
  "Example:\n"
  "  printf 'Hello' | slm2 tokenize models/demo.slm2 | slm2 detokenize models/demo.slm2\n";

static const char blanks[] = " \t\r\n,";

/* Ids between blanks; an enclosing [ ] or {"ids":[ ]} is allowed. */
static int parse_list(const cli_text *input, cli_ids *ids) {
  const char *at = input->bytes, *end = at + input->n;
  static const char head[] = "{\"ids\":[";
  const char *tail = "";
  if (input->n >= sizeof head - 1 && memcmp(at, head, sizeof head - 1) == 0) {
    at += sizeof head - 1;
    tail = "]}";
  } else if (at < end && *at == '[') {
    at++;
    tail = "]";
  }
  while (end > at && end[-1] != 0 && strchr(blanks, end[-1]) != NULL) end--;
  size_t n_tail = strlen(tail);
  if ((size_t)(end - at) < n_tail || memcmp(end - n_tail, tail, n_tail) != 0)
    return cli_complain(CLI_FAILED, "ids", "the list does not end with %s", tail);
  end -= n_tail;
  while (at < end) {
    const char *from = at;
    while (at < end && (*at == 0 || strchr(blanks, *at) == NULL)) at++;
    uint64_t id;
    size_t n = (size_t)(at - from);
    if (n > 0 && !cli_number(from, n, 0, SLM2_NO_TOKEN - 1, &id))
      return cli_complain(CLI_FAILED, "ids", "\"%.*s\" (byte %zu of the input) is not a token id", (int)(n < 100 ? n : 100), from,
                          (size_t)(from - input->bytes));
    if (n > 0) cli_ids_add(ids, (uint32_t)id);
    if (at < end) at++;
  }
  return CLI_OK;
}

static int decode(const cli_model *m, const cli_ids *ids, cli_text *text) {
  slm2_decoder decoder;
  slm2_decoder_init(&decoder);
  uint8_t *out = NULL;
  size_t capacity = 0;
  int code = CLI_OK;
  for (size_t i = 0; i <= ids->n && code == CLI_OK; i++) {
    size_t n = 0;
    const uint8_t *bytes = i < ids->n ? slm2_token_bytes(m->tokenizer, ids->at[i], &n) : NULL;
    if (i < ids->n && bytes == NULL) {
      code = cli_complain(CLI_FAILED, "ids", "%u (number %zu of the list) has no token; the tokenizer has %u", ids->at[i], i + 1,
                          slm2_tokenizer_size(m->tokenizer));
      break;
    }
    if (SLM2_DECODE_MAX(n) > capacity) {
      free(out);
      capacity = SLM2_DECODE_MAX(n);
      out = cli_alloc(capacity, 1);
    }
    size_t written = i < ids->n ? slm2_decoder_push(&decoder, bytes, n, out) : slm2_decoder_flush(&decoder, out);
    cli_text_add(text, out, written);
  }
  free(out);
  return code;
}

int cli_cmd_detokenize(int argc, char **argv) {
  const char *file;
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, NULL, 0, &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  cli_model m;
  code = cli_model_open(&m, file);
  if (code != CLI_OK) return code;
  cli_text input = {0}, text = {0};
  cli_ids ids = {0};
  code = cli_model_need_tokenizer(&m, file);
  if (code == CLI_OK) code = cli_read_stdin(&input);
  if (code == CLI_OK) code = parse_list(&input, &ids);
  if (code == CLI_OK) code = decode(&m, &ids, &text);
  if (code == CLI_OK && slm2_is_terminal(1)) cli_text_puts(&text, "\n");
  if (code == CLI_OK && text.n > 0) code = cli_out_text(&text);
  cli_ids_free(&ids);
  cli_text_free(&input);
  cli_text_free(&text);
  cli_model_close(&m);
  return code;
}
