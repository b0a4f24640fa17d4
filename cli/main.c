/* cli/main.c: finds the subcommand and lists them. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

typedef struct command {
  const char *name, *arguments, *summary;
  int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
  {"run", "FILE -p TEXT", "answer one prompt and exit", cli_cmd_run},
  {"chat", "FILE", "talk to a model", cli_cmd_chat},
  {"convert", "HF_DIR OUT.slm2", "a Hugging Face folder to one .slm2 file", cli_cmd_convert},
  {"inspect", "FILE", "what a .slm2 or .safetensors file holds", cli_cmd_inspect},
  {"verify", "FILE", "check every hash and every weight of a .slm2 file", cli_cmd_verify},
  {"tokenize", "FILE < text", "text to token ids", cli_cmd_tokenize},
  {"detokenize", "FILE < ids", "token ids to text", cli_cmd_detokenize},
  {"render", "FILE < messages.json", "a conversation to the exact prompt", cli_cmd_render},
  {"digest", "FILE --ids 1,2,3", "SHA-256 of the logits at every position", cli_cmd_digest},
  {"logits", "FILE --ids 1,2,3 --out F", "the logits at every position as raw f32", cli_cmd_logits},
  {"trace", "FILE --ids 1,2,3", "every stage of the computation; two runs compared", cli_cmd_trace},
  {"check", "FILE [--quick]", "every way of computing against the oracle, bit by bit", cli_cmd_check},
  {"plan", "FILE --context N", "the memory a context needs, term by term", cli_cmd_plan},
  {"bench", "FILE", "speed and memory on this machine", cli_cmd_bench},
  {"serve", "[FILE...]", "the web app and models for the browsers of this machine", cli_cmd_serve},
  {"synth", "OUT.slm2 --shape NAME --seed N", "a file with real shapes and synthetic weights", cli_cmd_synth},
};

static int print_help(void) {
  cli_text t = {0};
  cli_text_puts(&t, "slm2 runs Qwen3 models on any CPU, offline, and gives the same bits everywhere.\n\nUsage:\n");
  for (size_t i = 0; i < CLI_COUNT(commands); i++) {
    char usage[64];
    snprintf(usage, sizeof usage, "%s %s", commands[i].name, commands[i].arguments);
    cli_text_print(&t, "  slm2 %-38s %s\n", usage, commands[i].summary);
  }
  cli_text_puts(&t,
                "\n`slm2 COMMAND --help` explains a command, with examples. `slm2 --version` tells the version.\n"
                "Exit codes: 0, 1 failed operation, 2 bad usage, 130 cancelled.\n"
                "\nTry:\n  slm2 chat models/demo.slm2\n  slm2 run models/demo.slm2 -p \"What is the capital of France?\"\n");
  int code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

static const char version[] = "slm2 " CLI_VERSION "\n";

static const command *find(const char *name) {
  for (size_t i = 0; i < CLI_COUNT(commands); i++)
    if (strcmp(commands[i].name, name) == 0) return &commands[i];
  return NULL;
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) return cli_complain(CLI_USAGE, "usage", "slm2 COMMAND ...; try slm2 --help");
  const char *name = argv[1];
  if (strcmp(name, "--version") == 0) return cli_out(version, sizeof version - 1) ? CLI_OK : CLI_FAILED;
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return print_help();
  if (strcmp(name, "help") == 0) {
    if (argc == 2) return print_help();
    name = argv[2];
    if (argc > 3) return cli_complain(CLI_USAGE, "help", "explains one command at a time");
    const command *c = find(name);
    char *help[] = {argv[2], (char[]){"--help"}, NULL};
    if (c != NULL) return c->run(2, help);
  } else {
    const command *c = find(name);
    if (c != NULL) return c->run(argc - 1, argv + 1);
  }
  return cli_complain(CLI_USAGE, name, "is not a command; slm2 --help lists them");
}

int main(int argc, char **argv) {
  slm2_platform_start(&argc, &argv);
  return dispatch(argc, argv);
}
