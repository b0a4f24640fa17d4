/* cli/convert.c: `slm2 convert`: which way to go, and a Hugging Face folder to one .slm2 file. Opens the files; convert/
 * does the work. */
#include "cli/convert.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sha256.h"

static const char help[] =
  "slm2 convert SRC OUT: a model from one format to another. What SRC is decides its content, what OUT becomes its name.\n"
  "\n"
  "  HF_DIR OUT.slm2       a Hugging Face folder of a Qwen3 model\n"
  "  FILE.gguf OUT.slm2    a GGUF file of one, in Q8_0, F16, BF16 or F32; Q8_0 is taken over as it is\n"
  "  FILE.slm2 OUT.gguf    for llama.cpp; converting it back gives FILE.slm2 again\n"
  "  FILE.slm2 OUT         a new Hugging Face folder with the weights in F32\n"
  "\n"
  "HF_DIR holds config.json, tokenizer.json and model.safetensors (or its shards and model.safetensors.index.json);\n"
  "generation_config.json, tokenizer_config.json and chat_template.jinja are used when they are there.\n"
  "\n"
  "For OUT.slm2:\n"
  "  --layout panels|rows  storage of the 2-D weights (default panels); both give the same bits\n"
  "  --chat-format qwen3   use Qwen3's chat format although the template is an unknown one, or missing\n"
  "\n"
  "OUT appears whole or not at all; an older file is replaced, an older folder is not. The same source gives the same\n"
  "bytes everywhere.\n"
  "\n"
  "Examples:\n"
  "  slm2 convert Qwen3-0.6B qwen3-0.6b.slm2\n"
  "  slm2 convert Qwen3-0.6B-Q8_0.gguf qwen3-0.6b.slm2\n"
  "  slm2 convert models/demo.slm2 demo.gguf\n"
  "  slm2 convert models/demo.slm2 demo-hf\n";

static const char *const text_names[SLM2_SOURCE_TEXTS] = {"config.json", "generation_config.json", "tokenizer.json",
                                                          "tokenizer_config.json", "chat_template.jinja"};

typedef struct convert_input {
  const char *folder;
  slm2_source source;
  slm2_mapping texts[SLM2_SOURCE_TEXTS], index;
  char (*names)[SLM2_SHARD_NAME_MAX];                      /* of shards named by the index */
  const char *shard_names[SLM2_MAX_SHARDS];
  uint64_t shard_bytes[SLM2_MAX_SHARDS];
  slm2_file *shards[SLM2_MAX_SHARDS];
} convert_input;

static slm2_status read_shard(void *user, uint32_t shard, uint64_t offset, void *buffer, size_t n, slm2_error *error) {
  convert_input *in = user;
  if (cli_cancelled()) return slm2_fail(error, SLM2_E_CANCELLED, "convert", NULL, SLM2_NO_OFFSET, "cancelled");
  return slm2_file_read(in->shards[shard], offset, buffer, n, error);
}

static char *path_in(const char *folder, const char *name) {
  cli_text path = {0};
  cli_text_print(&path, "%s/%s", folder, name);
  return path.bytes;
}

/* An absent file is no error here: convert/ knows which ones are required. */
static slm2_status map_optional(const char *folder, const char *name, slm2_mapping *map, const char **text, size_t *n,
                                slm2_error *error) {
  char *path = path_in(folder, name);
  slm2_status status = SLM2_OK;
  if (slm2_file_exists(path)) {
    status = slm2_map(path, map, error);
    *text = map->n == 0 ? "" : (const char *)map->bytes;
    *n = (size_t)map->n;
  }
  free(path);
  return status;
}

/* Shard names come from the index, an untrusted text: none may lead out of the folder [FIL-7]. */
static slm2_status open_shard(convert_input *in, uint32_t i, bool from_index, slm2_error *error) {
  const char *name = in->shard_names[i];
  char *path = path_in(in->folder, name);
  slm2_status status = SLM2_OK;
  if (from_index && slm2_file_exists(path) && !slm2_is_inside(in->folder, name))
    status = slm2_fail(error, SLM2_E_IO, "convert", name, SLM2_NO_OFFSET,
                       "is a link that leads out of the folder; put the file itself into the folder");
  if (status == SLM2_OK) status = slm2_file_open(path, &in->shards[i], &in->shard_bytes[i], error);
  free(path);
  return status;
}

static slm2_status open_shards(convert_input *in, slm2_error *error) {
  slm2_source *s = &in->source;
  bool from_index = s->index != NULL;
  if (from_index) {
    in->names = cli_alloc(SLM2_MAX_SHARDS, sizeof *in->names);
    size_t bytes = slm2_index_bytes(s->index_bytes);
    void *scratch = cli_alloc(bytes, 1);
    slm2_status status =
        slm2_index_shards(s->index, s->index_bytes, scratch, bytes, in->names, SLM2_MAX_SHARDS, &s->n_shards, error);
    free(scratch);
    SLM2_TRY(status);
    for (uint32_t i = 0; i < s->n_shards; i++) in->shard_names[i] = in->names[i];
  } else {
    in->shard_names[0] = "model.safetensors";
    s->n_shards = 1;
  }
  s->shard_names = in->shard_names;
  s->shard_bytes = in->shard_bytes;
  for (uint32_t i = 0; i < s->n_shards; i++) SLM2_TRY(open_shard(in, i, from_index, error));
  return SLM2_OK;
}

static slm2_status open_input(convert_input *in, slm2_error *error) {
  slm2_source *s = &in->source;
  s->user = in;
  s->read = read_shard;
  for (int i = 0; i < SLM2_SOURCE_TEXTS; i++)
    SLM2_TRY(map_optional(in->folder, text_names[i], &in->texts[i], &s->text[i], &s->text_bytes[i], error));
  SLM2_TRY(map_optional(in->folder, "model.safetensors.index.json", &in->index, &s->index, &s->index_bytes, error));
  return open_shards(in, error);
}

static void close_input(convert_input *in) {
  for (int i = 0; i < SLM2_SOURCE_TEXTS; i++) slm2_unmap(&in->texts[i]);
  slm2_unmap(&in->index);
  for (uint32_t i = 0; i < SLM2_MAX_SHARDS; i++) slm2_file_close(in->shards[i]);
  free(in->names);
}

int cli_convert_report(const char *out, const slm2_convert_report *r) {
  cli_text t = {0};
  char a[CLI_GROUPED_MAX], hex[65];
  cli_text_report(&t, out, r);
  if (r->zero_blocks > 0)
    cli_text_print(&t, "  note      %s blocks of 32 weights are zero in Q8_0\n", cli_grouped(r->zero_blocks, a));
  if (r->lm_head_duplicate) cli_text_puts(&t, "  note      lm_head.weight equals the tied embedding and is stored once\n");
  int code = cli_out_text(&t);
  cli_text_free(&t);
  if (r->chat_template_unknown) {
    static const uint8_t none[32] = {0};
    slm2_hex(r->chat_template_sha256, 32, hex);
    bool absent = memcmp(r->chat_template_sha256, none, 32) == 0;
    cli_complain(code, "warning", "%s%s%s: run --raw works, chat and -p refuse; --chat-format qwen3 forces Qwen3's",
                 absent ? "the source has no chat template" : "the chat template (SHA-256 ", absent ? "" : hex,
                 absent ? "" : ") is unknown");
  }
  return code;
}

static int convert_opened(convert_input *in, const slm2_convert_options *options, const char *out) {
  slm2_error error = {0};
  size_t bytes = 0;
  void *memory = NULL;
  slm2_status status = open_input(in, &error);
  if (status == SLM2_OK) status = slm2_convert_bytes(&in->source, &bytes, &error);
  if (status == SLM2_OK) status = slm2_memory_reserve(bytes, &memory, &error);
  if (status != SLM2_OK) return cli_fail(&error);
  slm2_convert_report result;
  cli_maker maker;
  int code = cli_maker_begin(&maker, out);
  if (code == CLI_OK) {
    status = slm2_convert_hf(&in->source, &maker.sink, options, memory, bytes, &result, &error);
    code = cli_maker_end(&maker, status, &error);
  }
  slm2_memory_release(memory, bytes);
  return code == CLI_OK ? cli_convert_report(out, &result) : code;
}

static int convert_folder(const char *folder, const slm2_convert_options *options, const char *out) {
  convert_input *in = cli_alloc(1, sizeof *in);
  in->folder = folder;
  int code = convert_opened(in, options, out);
  close_input(in);
  free(in);
  return code;
}

int cli_cmd_convert(int argc, char **argv) {
  unsigned rows = 0, chat = 0;
  bool chat_given = false;
  const char *paths[2];
  const cli_option options[] = {
    {.name = "--layout", .kind = CLI_CHOICE, .target = &rows, .expects = "panels|rows"},
    {.name = "--chat-format", .kind = CLI_CHOICE, .target = &chat, .expects = "qwen3", .given = &chat_given},
  };
  static const char *const names[] = {"a SRC model", "an OUT"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), paths, names, 2);
  if (code != CLI_CONTINUE) return code;
  const char *src = paths[0], *out = paths[1];
  bool folder = slm2_is_directory(src), gguf = !folder && cli_is_gguf(src);
  slm2_convert_options how = {.form = rows ? SLM2_FORM_ROWS : SLM2_FORM_PANELS, .force_chat_qwen3 = chat_given};
  if (slm2_same_file(src, out)) return cli_complain(CLI_USAGE, out, "is the source itself");
  bool to_slm2 = cli_ends_with(out, ".slm2");
  if ((folder || gguf) && !to_slm2) /* so that no source file can be its own output */
    return cli_complain(CLI_USAGE, out, "the output's name must end with .slm2");
  if (folder) return convert_folder(src, &how, out);
  if (gguf) return cli_convert_gguf(src, &how, out);
  if (to_slm2)
    return cli_complain(CLI_FAILED, src, "is not a folder and not a GGUF file, from which a .slm2 file is made");
  if (rows || chat_given) return cli_complain(CLI_USAGE, out, "--layout and --chat-format belong to a .slm2 output");
  return cli_export(src, out);
}
