/* cli/serve.c: `slm2 serve`: the options, checked, and the parts of serve.h in order. */
#include "cli/serve.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
  "slm2 serve [FILE...]: serve the web app and models to the browsers of this machine, with the headers that give a page\n"
  "shared memory. The page computes; the server only hands out files. FILEs are .slm2 files, beside the demo model.\n"
  "\n"
  "  --port N     default 7562. Browsers keep stored models by address and port, so a busy port is refused; 0 takes any\n"
  "               free one\n"
  "  --root DIR   the folder of the page, with an index.html (default: what make web built)\n"
  "  --host ADDR  listen on this address (default 127.0.0.1); any but a loopback address needs TLS\n"
  "  --cert F     TLS certificate chain and\n"
  "  --key F      its private key, both PEM\n"
  "  --verbose    one line on stderr for each answer: seconds, status, method, target, bytes\n"
  "\n"
  "Prints one line with the URL once it listens. Ctrl-C ends it with exit code 0.\n"
  "\n"
  "Examples:\n"
  "  slm2 serve\n"
  "  slm2 serve qwen3-0.6b.slm2 --port 8080\n"
  "  slm2 serve --host 192.168.1.5 --cert box.pem --key box.key\n";

#define PEM_MAX 1048576u

/* A small text file, NUL-terminated, for --cert and --key. */
static int read_pem(const char *option, const char *path, cli_text *out) {
  slm2_error error = {0};
  slm2_file *file;
  uint64_t n;
  if (slm2_file_open(path, &file, &n, &error) != SLM2_OK) return cli_fail(&error);
  int code = CLI_OK;
  if (n == 0 || n > PEM_MAX) {
    code = cli_complain(CLI_FAILED, option, "%.300s has %llu bytes; a PEM file has 1 to %u", path, (unsigned long long)n,
                        PEM_MAX);
  } else {
    char *bytes = cli_alloc((size_t)n, 1);
    if (slm2_file_read(file, 0, bytes, (size_t)n, &error) != SLM2_OK) code = cli_fail(&error);
    else if (memchr(bytes, 0, (size_t)n) != NULL) code = cli_complain(CLI_FAILED, option, "%.300s is no PEM file", path);
    else cli_text_add(out, bytes, (size_t)n);
    free(bytes);
  }
  slm2_file_close(file);
  return code;
}

#ifdef SLM2_HAVE_LIBMICROHTTPD
static int serve(const serve_options *options, const char *root, const cli_strings *models, uint16_t port) {
  serve_files *files;
  serve_socket socket;
  int code = serve_files_open(root, models, &files);
  if (code != CLI_OK) return code;
  code = serve_listen(options->host, port, options->certificate != NULL, &socket);
  if (code == CLI_OK) code = serve_http(options, files, &socket);
  serve_files_close(files);
  return code;
}
#else
static int serve(const serve_options *options, const char *root, const cli_strings *models, uint16_t port) {
  (void)options;
  (void)root;
  (void)models;
  (void)port;
#ifdef _WIN32
  return cli_complain(CLI_FAILED, "serve", "is not available on Windows");
#else
  return cli_complain(CLI_FAILED, "serve", "this slm2 was built without libmicrohttpd: install it (on Debian: "
                      "libmicrohttpd-dev and pkg-config) and run make again");
#endif
}
#endif

int cli_cmd_serve(int argc, char **argv) {
  cli_strings models = {0};
  const char *root = NULL, *certificate = NULL, *key = NULL;
  uint32_t port = SERVE_PORT;
  serve_options options = {.host = "127.0.0.1"};
  const cli_option table[] = {
    {.name = "--port", .kind = CLI_U32, .target = &port, .high = UINT16_MAX},
    {.name = "--root", .kind = CLI_STRING, .target = &root},
    {.name = "--host", .kind = CLI_STRING, .target = &options.host},
    {.name = "--cert", .kind = CLI_STRING, .target = &certificate},
    {.name = "--key", .kind = CLI_STRING, .target = &key},
    {.name = "--verbose", .kind = CLI_FLAG, .target = &options.verbose},
  };
  int code = cli_parse_list(argc, argv, help, table, CLI_COUNT(table), &models, "a model FILE");
  if (code != CLI_CONTINUE) return code;
  if ((certificate == NULL) != (key == NULL))
    return cli_complain(CLI_USAGE, certificate == NULL ? "--key" : "--cert", "TLS needs both --cert and --key");
  cli_text certificate_text = {0}, key_text = {0};
  code = certificate != NULL ? read_pem("--cert", certificate, &certificate_text) : CLI_OK;
  if (code == CLI_OK && key != NULL) code = read_pem("--key", key, &key_text);
  options.certificate = certificate_text.bytes;
  options.key = key_text.bytes;
  if (code == CLI_OK) code = serve(&options, root, &models, (uint16_t)port);
  cli_text_free(&key_text);
  cli_text_free(&certificate_text);
  return code;
}
