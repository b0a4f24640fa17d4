/* cli/convert.h: what the files behind `slm2 convert` share: HF folders (convert.c), GGUF (gguf.c), exports (export.c). */
#ifndef SLM2_CLI_CONVERT_H
#define SLM2_CLI_CONVERT_H

#include "cli/cli.h"

/* A file open for reading at any place; Ctrl-C ends a read. The struct stays where it is. */
typedef struct cli_input {
  slm2_file *file;
  slm2_input input; /* points back here */
} cli_input;
SLM2_NODISCARD slm2_status cli_input_open(cli_input *in, const char *path, slm2_error *error);
void cli_input_close(cli_input *in);
/* Whether the file says so, or only its name. */
bool cli_is_gguf(const char *path);

int cli_convert_gguf(const char *path, const slm2_convert_options *options, const char *out);
/* A .slm2 file to a GGUF file or, for any other name, to a Hugging Face folder. */
int cli_export(const char *path, const char *out);
/* Prints what was made, and warns of an unknown chat template. */
int cli_convert_report(const char *out, const slm2_convert_report *report);
slm2_status cli_inspect_gguf(const char *path, bool json, cli_text *t, slm2_error *error);

/* Whether path ends so, and with something before it. */
bool cli_ends_with(const char *path, const char *end);

#endif
