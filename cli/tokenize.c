/* cli/tokenize.c: `slm2 tokenize`: text on stdin to ids on stdout. */
#include "cli/cli.h"

static const char help[] =
  "slm2 tokenize FILE [--specials] [--json] < text: text to token ids, exactly as Hugging Face's tokenizer.\n"
  "\n"
  "  --specials   control tokens written in the text count as such; without it no text can produce one\n"
  "  --json       {\"ids\":[...]} instead of ids with blanks between them\n"
  "\n"
  "All of stdin is the text, a newline at its end included. FILE is a .slm2 model.\n"
  "\n"
  "Examples:\n"
  "  printf 'Hello' | slm2 tokenize models/demo.slm2\n"
  "  printf '<|im_end|>' | slm2 tokenize models/demo.slm2 --specials --json\n";

int cli_cmd_tokenize(int argc, char **argv) {
  bool specials = false, json = false;
  const char *file;
  const cli_option options[] = {
    {.name = "--specials", .kind = CLI_FLAG, .target = &specials},
    {.name = "--json", .kind = CLI_FLAG, .target = &json},
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  cli_model m;
  code = cli_model_open(&m, file);
  if (code != CLI_OK) return code;
  cli_text text = {0}, out = {0};
  cli_ids ids = {0};
  code = cli_model_need_tokenizer(&m, file);
  if (code == CLI_OK) code = cli_read_stdin(&text);
  if (code == CLI_OK) code = cli_tokenize(&m, text.bytes, text.n, specials ? SLM2_SPECIALS_ON : SLM2_SPECIALS_OFF, NULL, &ids);
  if (code == CLI_OK) {
    cli_text_puts(&out, json ? "{\"ids\":[" : "");
    cli_text_ids(&out, ids.at, ids.n, json ? "," : " ");
    cli_text_puts(&out, json ? "]}\n" : "\n");
    code = cli_out_text(&out);
  }
  cli_ids_free(&ids);
  cli_text_free(&text);
  cli_text_free(&out);
  cli_model_close(&m);
  return code;
}
