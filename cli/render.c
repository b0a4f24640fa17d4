/* cli/render.c: `slm2 render`: a conversation to the exact prompt. */
#include "cli/cli.h"

static const char help[] =
  "slm2 render FILE < messages.json: the exact prompt of a conversation, as Hugging Face's chat template writes it.\n"
  "\n"
  "stdin is an array of OpenAI-shaped messages, or an object with messages, tools, add_generation_prompt and\n"
  "enable_thinking (the last two win over the options).\n"
  "\n"
  "  --no-think               end with an empty think block: the model answers at once\n"
  "  --no-generation-prompt   do not end with the assistant's opening\n"
  "  --json                   {\"text\":...,\"ids\":[...]}\n"
  "  --raw-specials           with --json: control tokens inside messages count as such (Hugging Face's ids)\n"
  "\n"
  "Example:\n"
  "  echo '[{\"role\":\"user\",\"content\":\"Hi\"}]' | slm2 render models/demo.slm2 --json\n";

int cli_cmd_render(int argc, char **argv) {
  bool no_think = false, no_prompt = false, raw_specials = false, json = false;
  const char *file;
  const cli_option options[] = {
    {.name = "--no-think", .kind = CLI_FLAG, .target = &no_think},
    {.name = "--no-generation-prompt", .kind = CLI_FLAG, .target = &no_prompt},
    {.name = "--raw-specials", .kind = CLI_FLAG, .target = &raw_specials},
    {.name = "--json", .kind = CLI_FLAG, .target = &json},
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  cli_model m;
  code = cli_model_open(&m, file);
  if (code != CLI_OK) return code;
  slm2_chat_options chat = {.generation_prompt = !no_prompt, .thinking = !no_think};
  cli_text input = {0}, text = {0}, out = {0};
  cli_ids ids = {0};
  code = cli_model_need_tokenizer(&m, file);
  if (code == CLI_OK) code = cli_read_stdin(&input);
  if (code == CLI_OK) code = cli_render(&m, input.bytes, input.n, &chat, raw_specials, &text, json ? &ids : NULL);
  if (code == CLI_OK && json) {
    cli_text_puts(&out, "{\"text\":");
    cli_text_json(&out, text.bytes, text.n);
    cli_text_puts(&out, ",\"ids\":[");
    cli_text_ids(&out, ids.at, ids.n, ",");
    cli_text_puts(&out, "]}\n");
  }
  if (code == CLI_OK) code = cli_out_text(json ? &out : &text);
  cli_ids_free(&ids);
  cli_text_free(&input);
  cli_text_free(&text);
  cli_text_free(&out);
  cli_model_close(&m);
  return code;
}
