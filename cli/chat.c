/* cli/chat.c: `slm2 chat`: a conversation, one line a turn. The history is a JSON array of messages; each turn renders
 * it whole and lets the session keep the longest common prefix.
 */
#include "cli/cli.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
  "slm2 chat FILE: talk to a model. Each line is a message; the answer streams.\n"
  "\n"
  "  --system TEXT      a system message\n"
  "  --no-think         ask for answers without reasoning\n"
  "  --raw-specials     control tokens written in a message count as such\n"
  "\n"
  "Sampling:\n" CLI_SAMPLING_HELP
  "\n"
  "Computing:\n" CLI_SETUP_HELP CLI_SPECULATE_HELP
  "\n"
  "Inside: /help /reset /seed N /stats /save FILE /load FILE /quit. Ctrl-C stops the answer, Ctrl-D ends. Every answer\n"
  "starts from the same seed: the same conversation with the same seed gives the same answers, after /load too.\n"
  "When stdin or stdout is not a terminal: only the answers go to stdout, and the end of stdin ends the program.\n"
  "\n"
  "Examples:\n"
  "  slm2 chat models/demo.slm2\n"
  "  printf 'What is the capital of France?\\n' | slm2 chat models/demo.slm2\n";

static const char inside_help[] =
  "/reset    forget the conversation\n"
  "/seed N   seed of the answers from now on\n"
  "/stats    tokens, speed, finish, seed and right guesses of the last answer\n"
  "/save F   the conversation, with all that was computed for it, to the file F\n"
  "/load F   go on with the conversation in F, for this model, --profile and --kv\n"
  "/quit     end (or Ctrl-D)\n"
  "Ctrl-C stops an answer. Put a blank before a message that begins with /\n"
  "(/think and /no_think are part of a message).\n";

typedef struct chat_state {
  const char *file, *system;
  bool no_think, raw_specials, interactive;
  bool tell_seed; /* a drawn seed, once, where no banner showed it */
  cli_sampling sampling;
  cli_setup setup;
  cli_model model;
  cli_session session;
  uint32_t context;
  cli_text history; /* "[" and the messages, without the closing "]" */
  struct {          /* of the last answer */
    uint32_t prompt, cached, answer, drafted, accepted;
    uint64_t prefill_ns, decode_ns, seed;
    slm2_finish finish;
  } last;
} chat_state;

static int parse(int argc, char **argv, chat_state *c) {
  const cli_option options[] = {
    {.name = "--system", .kind = CLI_STRING, .target = &c->system},
    {.name = "--no-think", .kind = CLI_FLAG, .target = &c->no_think},
    {.name = "--raw-specials", .kind = CLI_FLAG, .target = &c->raw_specials},
    CLI_SAMPLING_OPTIONS(&c->sampling),
    CLI_SETUP_OPTIONS(&c->setup),
    CLI_SPECULATE_OPTION(&c->sampling.speculate),
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &c->file, names, 1);
  if (code != CLI_CONTINUE) return code;
  c->setup.draft = cli_draft(c->sampling.speculate);
  code = cli_setup_finish(&c->setup);
  return code == CLI_OK ? CLI_CONTINUE : code;
}

/* What was computed is forgotten too: /save must not keep what the user dropped. */
static void reset(chat_state *c) {
  slm2_status rewound = slm2_session_rewind(c->session.session, 0, NULL);
  (void)rewound; /* to 0 is always possible */
  cli_text_free(&c->history);
  cli_text_puts(&c->history, "[");
  if (c->system != NULL) cli_message_add(&c->history, "system", c->system, strlen(c->system));
}

/* --- one turn ------------------------------------------------------------------ */

static bool show_event(void *view, const slm2_token_event *e) { return cli_view_event(view, e); }

static void show_prefill(void *progress, uint32_t done, uint32_t total) { cli_progress_show(progress, "reading", done, total); }

static int history_ids(const chat_state *c, cli_ids *ids) {
  slm2_chat_options chat = {.generation_prompt = true, .thinking = !c->no_think};
  cli_text json = {0};
  cli_text_add(&json, c->history.bytes, c->history.n);
  cli_text_puts(&json, "]");
  int code = cli_render(&c->model, json.bytes, json.n, &chat, c->raw_specials, NULL, ids);
  cli_text_free(&json);
  return code;
}

/* The prompt into the session; what it already holds is kept. */
static slm2_status prefill(chat_state *c, const cli_ids *ids, slm2_error *error) {
  cli_progress progress;
  cli_progress_begin(&progress);
  progress.enabled = progress.enabled && c->interactive;
  slm2_run run = {.cancel = &cli_cancel, .progress = show_prefill, .user = &progress};
  uint64_t start = slm2_clock_ns();
  slm2_status status = slm2_session_sync(c->session.session, ids->at, (uint32_t)ids->n, &run, &c->last.cached, error);
  c->last.prefill_ns = slm2_clock_ns() - start;
  cli_progress_end(&progress);
  return status;
}

static void remember(chat_state *c, const cli_answer *a) {
  const char *text = a->text.bytes;
  size_t n = a->text.n;
  while (a->reasoning.n > 0 && n > 0 && *text == '\n') {
    text++;
    n--;
  }
  cli_message_add(&c->history, "assistant", text, n);
  c->last.answer = a->n_tokens;
  c->last.drafted = a->drafted;
  c->last.accepted = a->accepted;
  c->last.decode_ns = a->decode_ns;
  c->last.finish = a->finish;
}

static int answer(chat_state *c, const cli_ids *ids) {
  slm2_error error = {0};
  cli_answer a = {0};
  cli_view view;
  cli_view_begin(&view);
  c->last.prompt = (uint32_t)ids->n;
  c->last.seed = c->sampling.params.seed;
  slm2_status status = prefill(c, ids, &error);
  if (status == SLM2_OK) {
    if (c->tell_seed) fprintf(stderr, "seed %llu\n", (unsigned long long)c->last.seed);
    c->tell_seed = false;
    status = cli_generate(c->session.session, &c->sampling, c->last.seed, show_event, &view, &a, &error);
    cli_view_end(&view);
    if (a.n_tokens > 0) (void)cli_out("\n", 1);
  }
  bool cancelled = status == SLM2_E_CANCELLED || a.finish == SLM2_FINISH_CANCELLED;
  bool keep = a.text.n > 0 && (status == SLM2_OK || cancelled);
  if (keep) remember(c, &a);
  if (status == SLM2_OK) cli_note_length(&a, ids->n, c->context);
  cli_answer_free(&a);
  if (cancelled) return CLI_CANCELLED;
  return status == SLM2_OK ? CLI_OK : cli_fail(&error);
}

/* A turn that gives nothing to remember leaves the history as it was. */
static int turn(chat_state *c, const cli_text *line) {
  size_t mark = c->history.n;
  cli_ids ids = {0};
  cli_message_add(&c->history, "user", line->bytes, line->n);
  size_t with_user = c->history.n;
  int code = history_ids(c, &ids);
  if (code == CLI_OK) code = cli_check_room(ids.n, c->context, c->model.header->config.max_positions);
  if (code == CLI_OK) code = answer(c, &ids);
  if (c->history.n == with_user) {
    c->history.n = mark;
    c->history.bytes[mark] = 0;
  }
  cli_ids_free(&ids);
  return code;
}

/* --- commands ------------------------------------------------------------------ */

static void show_stats(const chat_state *c) {
  fprintf(stderr, "model %s, %s, kv %s, backend %s, threads %u\n", c->model.identity,
          slm2_profile_name((slm2_profile)c->setup.profile), slm2_kv_name((slm2_kv_type)c->setup.kv),
          slm2_backend_name(c->setup.backend), c->setup.threads);
  fprintf(stderr, "seed %llu, temperature %g\n", (unsigned long long)c->sampling.params.seed,
          (double)c->sampling.params.temperature);
  fprintf(stderr, "context: %u of %u positions in use\n", slm2_session_length(c->session.session), c->context);
  if (c->last.finish == SLM2_FINISH_NONE) return;
  fprintf(stderr, "last answer: seed %llu, prompt %u tokens (%u cached, %.0f ms), answer %u tokens (%.1f a second), finish %s\n",
          (unsigned long long)c->last.seed, c->last.prompt, c->last.cached, cli_ms(c->last.prefill_ns), c->last.answer,
          cli_rate(c->last.answer, c->last.decode_ns), slm2_finish_name(c->last.finish));
  fprintf(stderr, "speculation: %u tokens guessed, %u of them right\n", c->last.drafted, c->last.accepted);
}

static void set_seed(chat_state *c, const char *text) {
  uint64_t seed;
  if (cli_number(text, strlen(text), 0, UINT64_MAX, &seed)) c->sampling.params.seed = seed;
  else cli_complain(CLI_USAGE, "/seed", "\"%.100s\" is not a whole number from 0 to %llu", text, (unsigned long long)UINT64_MAX);
}

static int save(const chat_state *c, const char *path) {
  uint64_t bytes;
  char a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX];
  if (*path == 0) return cli_complain(CLI_USAGE, "/save", "needs the name of a file");
  int code = cli_snapshot_save(path, c->session.session, &c->history, c->sampling.params.seed, &bytes);
  if (code == CLI_OK)
    fprintf(stderr, "saved %s: %s tokens, %s bytes\n", path, cli_grouped(slm2_session_length(c->session.session), a),
            cli_grouped(bytes, b));
  return code;
}

static int load(chat_state *c, const char *path) {
  char a[CLI_GROUPED_MAX];
  if (*path == 0) return cli_complain(CLI_USAGE, "/load", "needs the name of a file");
  int code = cli_snapshot_load(path, &c->model, c->session.session, &c->history, &c->sampling.params.seed);
  if (code != CLI_OK) return code;
  c->last.finish = SLM2_FINISH_NONE;
  c->tell_seed = false;
  fprintf(stderr, "loaded %s: %s tokens, seed %llu\n", path, cli_grouped(slm2_session_length(c->session.session), a),
          (unsigned long long)c->sampling.params.seed);
  return CLI_OK;
}

/* Qwen3's switches inside a message are not ours. */
static bool is_command(const char *line) {
  size_t n = strcspn(line, " \t");
  return line[0] == '/' && !(n == 6 && memcmp(line, "/think", 6) == 0) && !(n == 9 && memcmp(line, "/no_think", 9) == 0);
}

/* Whether the chat goes on. *code: of a file that could not be saved or loaded; a script must not go on without it. */
static bool command(chat_state *c, char *line, int *code) {
  char *value = line + strcspn(line, " \t"), *end = line + strlen(line);
  while (end > value && strchr(" \t", end[-1]) != NULL) *--end = 0;
  if (*value != 0) *value++ = 0;
  value += strspn(value, " \t");
  if (strcmp(line, "/quit") == 0) return false;
  if (strcmp(line, "/help") == 0) fputs(inside_help, stderr);
  else if (strcmp(line, "/reset") == 0) reset(c);
  else if (strcmp(line, "/stats") == 0) show_stats(c);
  else if (strcmp(line, "/seed") == 0) set_seed(c, value);
  else if (strcmp(line, "/save") == 0) *code = save(c, value);
  else if (strcmp(line, "/load") == 0) *code = load(c, value);
  else cli_complain(CLI_USAGE, line, "is not a command; /help lists them");
  return true;
}

/* --- the conversation ------------------------------------------------------------- */

static void banner(const chat_state *c) {
  char a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX];
  fprintf(stderr, "slm2 " CLI_VERSION ": %s, %s parameters, %s, %s with threads %u, context %s, seed %llu\n", c->file,
          cli_grouped(slm2_parameter_count(&c->model.header->config), a), slm2_profile_name((slm2_profile)c->setup.profile),
          slm2_backend_name(c->setup.backend), c->setup.threads, cli_grouped(c->context, b),
          (unsigned long long)c->sampling.params.seed);
  fputs("Everything stays on this machine. /help lists the commands; Ctrl-C stops an answer, Ctrl-D ends.\n\n", stderr);
}

/* A terminal goes on after a failed turn; a script stops at it. */
static int talk(chat_state *c) {
  cli_lines *lines = cli_lines_open(c->interactive);
  cli_text line = {0};
  int code = CLI_OK;
  while (code == CLI_OK) {
    atomic_store(&cli_cancel, 0);
    cli_line_result result = cli_lines_next(lines, &line);
    if (result == CLI_LINE_END) {
      if (c->interactive) (void)cli_out("\n", 1);
      break;
    }
    if (result == CLI_LINE_FAILED) {
      code = CLI_FAILED;
      break;
    }
    if (result == CLI_LINE_INTERRUPTED) {
      if (!c->interactive) code = CLI_CANCELLED;
      continue;
    }
    while (line.n > 0 && strchr("\r\n", line.bytes[line.n - 1]) != NULL) line.bytes[--line.n] = 0;
    if (strspn(line.bytes, " \t") == line.n) continue;
    if (is_command(line.bytes)) {
      if (!command(c, line.bytes, &code)) break;
    } else {
      code = turn(c, &line);
    }
    if (ferror(stdout)) code = CLI_FAILED;
    else if (c->interactive) code = CLI_OK;
  }
  cli_lines_close(lines);
  cli_text_free(&line);
  return code;
}

int cli_cmd_chat(int argc, char **argv) {
  chat_state c = {.sampling = CLI_SAMPLING_DEFAULTS, .setup = CLI_SETUP_DEFAULTS};
  int code = parse(argc, argv, &c);
  if (code != CLI_CONTINUE) return code;
  code = cli_model_open(&c.model, c.file);
  if (code != CLI_OK) return code;
  c.interactive = slm2_is_terminal(0) && slm2_is_terminal(1);
  code = cli_model_need_tokenizer(&c.model, c.file);
  if (code == CLI_OK && c.model.header->chat_format == SLM2_CHAT_NONE)
    code = cli_complain(CLI_FAILED, c.file, "has no chat format that slm2 knows; slm2 run --raw works with it");
  if (code == CLI_OK) code = cli_context(c.model.header, &c.setup, &c.context);
  if (code == CLI_OK) code = cli_sampling_finish(&c.sampling, &c.model.header->generation);
  if (code == CLI_OK) code = cli_session_open(&c.session, &c.model, &c.setup, c.context);
  if (code == CLI_OK) {
    cli_catch_interrupts();
    if (c.interactive) banner(&c);
    else c.tell_seed = !c.sampling.seed && c.sampling.params.temperature > 0.0f;
    reset(&c);
    code = talk(&c);
    cli_session_close(&c.session);
  }
  cli_text_free(&c.history);
  cli_model_close(&c.model);
  return code;
}
