/* cli/snapshot.c: /save and /load: a conversation, with the session that computed it, as one file. The attachment of the
 * snapshot is {"seed":S,"messages":[...]}; docs/FORMAT.md, "Snapshot". */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

/* A file on its way in or out. */
typedef struct transfer {
  slm2_output *output;
  slm2_file *file;
  uint64_t at, done, total; /* done and total: of the progress */
  cli_progress progress;
} transfer;

static slm2_status cancelled(slm2_error *error) {
  return slm2_fail(error, SLM2_E_CANCELLED, "snapshot", NULL, SLM2_NO_OFFSET, "cancelled");
}

static slm2_status write_piece(void *user, const void *bytes, size_t n, slm2_error *error) {
  transfer *t = user;
  if (cli_cancelled()) return cancelled(error);
  slm2_status status = slm2_output_write(t->output, t->at, bytes, n, error);
  t->at += n;
  cli_progress_show(&t->progress, "saving", t->at, t->total);
  return status;
}

/* Everything is read twice; only the first reading can be cancelled without harm. */
static slm2_status read_piece(void *user, uint64_t offset, void *out, size_t n, slm2_error *error) {
  transfer *t = user;
  if (cli_cancelled() && t->done < t->total / 2) return cancelled(error);
  t->done += n;
  cli_progress_show(&t->progress, "loading", t->done, t->total);
  return slm2_file_read(t->file, offset, out, n, error);
}

/* --- saving ---------------------------------------------------------------- */

/* Only what cannot be missed is replaced: a snapshot, or nothing at all. */
static int check_target(const char *path) {
  if (!slm2_file_exists(path)) return CLI_OK;
  slm2_error error = {0};
  slm2_file *file;
  uint64_t n;
  char magic[8] = "";
  slm2_status status = slm2_file_open(path, &file, &n, &error);
  if (status == SLM2_OK) {
    if (n >= sizeof magic) status = slm2_file_read(file, 0, magic, sizeof magic, &error);
    slm2_file_close(file);
  }
  if (status != SLM2_OK) return cli_fail_in(path, &error);
  if (n == 0 || memcmp(magic, "SLM2SNAP", sizeof magic) == 0) return CLI_OK;
  return cli_complain(CLI_FAILED, path, "exists and is no snapshot: choose another name");
}

int cli_snapshot_save(const char *path, const slm2_session *session, const cli_text *history, uint64_t seed, uint64_t *bytes) {
  int code = check_target(path);
  if (code != CLI_OK) return code;
  cli_text json = {0};
  cli_text_print(&json, "{\"seed\":%llu,\"messages\":", (unsigned long long)seed);
  cli_text_add(&json, history->bytes, history->n);
  cli_text_puts(&json, "]}");
  slm2_snapshot_extras extras = {.attachment = json.bytes, .attachment_bytes = json.n};
  slm2_error error = {0};
  transfer t = {.total = slm2_snapshot_bytes(session, &extras)};
  slm2_snapshot_sink sink = {&t, write_piece};
  slm2_status status = slm2_output_create(path, &t.output, &error);
  if (status == SLM2_OK) {
    cli_progress_begin(&t.progress);
    status = slm2_snapshot_write(session, &extras, &sink, &error);
    cli_progress_end(&t.progress);
    if (status == SLM2_OK) status = slm2_output_commit(t.output, &error);
    else slm2_output_abandon(t.output);
  }
  cli_text_free(&json);
  *bytes = t.total;
  return status == SLM2_OK ? CLI_OK : cli_fail_in(path, &error);
}

/* --- loading --------------------------------------------------------------- */

/* The array of messages without its end, as chat keeps it; an empty one is "[". */
static slm2_status take_messages(slm2_json *j, cli_text *history, slm2_error *error) {
  slm2_json_token t;
  SLM2_TRY(slm2_json_expect(j, SLM2_JSON_ARRAY, &t, error));
  size_t start = t.offset, end = start + 1;
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_ARRAY_END) break;
    SLM2_TRY(slm2_json_skip(j, &t, error));
    end = j->at;
  }
  cli_text_add(history, j->text + start, end - start);
  return SLM2_OK;
}

static slm2_status parse_conversation(const char *text, size_t n, cli_text *history, uint64_t *seed, slm2_error *error) {
  slm2_json j;
  slm2_json_token t;
  bool has_seed = false;
  slm2_json_init(&j, text, n, "conversation");
  SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(&j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    if (!has_seed && slm2_json_is(&t, "seed")) {
      has_seed = true;
      SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_NUMBER, &t, error));
      SLM2_TRY(slm2_json_u64(&j, &t, "seed", seed, error));
    } else if (history->n == 0 && slm2_json_is(&t, "messages")) {
      SLM2_TRY(take_messages(&j, history, error));
    } else {
      return slm2_fail_n(error, SLM2_E_JSON, "conversation", t.raw, t.n_raw, SLM2_NO_OFFSET, "is unknown, or there twice");
    }
  }
  if (!has_seed || history->n == 0)
    return slm2_fail(error, SLM2_E_JSON, "conversation", NULL, SLM2_NO_OFFSET, "seed and messages are both needed");
  return slm2_json_expect(&j, SLM2_JSON_END, &t, error);
}

/* The messages must be ones that the template takes: the next turn renders them. */
static int check_messages(const cli_model *m, const cli_text *history) {
  if (history->n == 1) return CLI_OK;
  slm2_chat_options chat = {.thinking = true};
  cli_text json = {0}, text = {0};
  cli_text_add(&json, history->bytes, history->n);
  cli_text_puts(&json, "]");
  int code = cli_render(m, json.bytes, json.n, &chat, false, &text, NULL);
  cli_text_free(&json);
  cli_text_free(&text);
  return code;
}

/* Everything is checked before the session is touched. */
static int load(const char *path, transfer *t, const cli_model *m, slm2_session *session, cli_text *history, uint64_t *seed) {
  slm2_error error = {0};
  slm2_snapshot snapshot;
  slm2_snapshot_source source = {t, t->total / 2, read_piece};
  if (slm2_snapshot_open(&snapshot, &source, &error) != SLM2_OK) return cli_fail_in(path, &error);
  if (snapshot.attachment_bytes == 0) return cli_complain(CLI_FAILED, path, "holds a session without a conversation");
  char *text = cli_alloc((size_t)snapshot.attachment_bytes, 1);
  slm2_status status = slm2_snapshot_attachment(&snapshot, text, snapshot.attachment_bytes, &error);
  if (status == SLM2_OK) status = parse_conversation(text, (size_t)snapshot.attachment_bytes, history, seed, &error);
  free(text);
  if (status != SLM2_OK) return cli_fail_in(path, &error);
  int code = check_messages(m, history);
  if (code != CLI_OK) return code;
  return slm2_snapshot_restore(&snapshot, session, &error) == SLM2_OK ? CLI_OK : cli_fail_in(path, &error);
}

int cli_snapshot_load(const char *path, const cli_model *m, slm2_session *session, cli_text *history, uint64_t *seed) {
  slm2_error error = {0};
  transfer t = {0};
  uint64_t bytes, loaded_seed = 0;
  cli_text loaded = {0};
  if (slm2_file_open(path, &t.file, &bytes, &error) != SLM2_OK) return cli_fail_in(path, &error);
  t.total = 2 * bytes;
  cli_progress_begin(&t.progress);
  int code = load(path, &t, m, session, &loaded, &loaded_seed);
  cli_progress_end(&t.progress);
  slm2_file_close(t.file);
  if (code != CLI_OK) {
    cli_text_free(&loaded);
    return code;
  }
  cli_text_free(history);
  *history = loaded;
  *seed = loaded_seed;
  return CLI_OK;
}
