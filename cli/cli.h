/* cli/cli.h: what the subcommands of `slm2` share. Each subcommand has a file of its name; all use the public headers,
 * convert/, platform/ and a few of base/'s helpers. Every function that returns int returns an exit code
 * and has printed the reason when it is not CLI_OK.
 */
#ifndef SLM2_CLI_H
#define SLM2_CLI_H

#ifdef __MINGW32__
#define __USE_MINGW_ANSI_STDIO 1 /* before any system header: C99's %zu and %llu */
#endif

#include <stdbool.h>
#include "convert/convert.h"
#include "platform/platform.h"
#include "slm2/backend.h"
#include "slm2/chat.h"
#include "slm2/model.h"
#include "slm2/session.h"
#include "slm2/snapshot.h"

#define CLI_VERSION "0.1.0"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_CANCELLED = 130 };

#if defined(__MINGW32__)
#define CLI_PRINTF(fmt, first) __attribute__((format(gnu_printf, fmt, first)))
#elif defined(__GNUC__) || defined(__clang__)
#define CLI_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define CLI_PRINTF(fmt, first)
#endif

/* --- text.c: growing buffers ---------------------------------------------- */

void *cli_alloc(size_t count, size_t size); /* zeroed; ends the program with exit 1 when memory is out */
typedef struct cli_text {
  char *bytes; /* NUL-terminated once anything was added */
  size_t n, capacity;
} cli_text;
void cli_text_add(cli_text *t, const void *bytes, size_t n);
void cli_text_puts(cli_text *t, const char *s);
void cli_text_print(cli_text *t, const char *fmt, ...) CLI_PRINTF(2, 3);
void cli_text_json(cli_text *t, const char *s, size_t n); /* with quotes; ill-formed UTF-8 becomes U+FFFD */
void cli_text_f32(cli_text *t, float x);                  /* shortest decimal that reads back */
#define CLI_GROUPED_MAX 28u
const char *cli_grouped(uint64_t x, char out[CLI_GROUPED_MAX]); /* 1,879,048,192; returns out */
void cli_text_free(cli_text *t);
typedef struct cli_ids {
  uint32_t *at;
  size_t n, capacity;
} cli_ids;
void cli_ids_add(cli_ids *ids, uint32_t id);
void cli_ids_free(cli_ids *ids);
void cli_text_ids(cli_text *t, const uint32_t *ids, size_t n, const char *between);

/* --- report.c: stdout, stderr, progress, Ctrl-C ----------------------------- */

/* Writes to stdout and flushes. false once stdout has failed: said on stderr, except for a closed pipe. */
bool cli_out(const char *bytes, size_t n);
int cli_out_text(const cli_text *t); /* CLI_OK, or CLI_FAILED when stdout has failed */
/* "slm2: what: why" on stderr; control bytes become '?'. Returns code. */
int cli_complain(int code, const char *what, const char *fmt, ...) CLI_PRINTF(3, 4);
/* The same for an error of the library. Cancelled gives CLI_CANCELLED, everything else CLI_FAILED. */
int cli_fail(const slm2_error *error);
int cli_fail_in(const char *path, const slm2_error *error); /* an error about what the file at path holds */

/* A bar on stderr, at most ten times a second and on a terminal only. */
typedef struct cli_progress {
  bool shown, enabled;
  uint64_t last_ns;
} cli_progress;
void cli_progress_begin(cli_progress *p);
void cli_progress_show(cli_progress *p, const char *phase, uint64_t done, uint64_t total);
void cli_progress_end(cli_progress *p); /* clears the line */

extern slm2_cancel cli_cancel;         /* non-zero after a Ctrl-C */
void cli_catch_interrupts(void);       /* from now on Ctrl-C sets cli_cancel instead of ending the program */
bool cli_cancelled(void);

/* --- options.c: the command line ------------------------------------------- */

typedef enum cli_kind { CLI_FLAG, CLI_STRING, CLI_STRINGS, CLI_U32, CLI_U64, CLI_AUTO_U32, CLI_F32, CLI_CHOICE } cli_kind;

#define CLI_MAX_STRINGS 16u
typedef struct cli_strings {
  const char *at[CLI_MAX_STRINGS];
  uint32_t n;
} cli_strings;

typedef struct cli_option {
  const char *name; /* "--seed" */
  cli_kind kind;
  void *target;     /* bool, const char *, cli_strings, uint32_t, uint64_t, float, unsigned */
  uint64_t low, high;         /* of integers; CLI_AUTO_U32 also takes off (0) and auto (CLI_AUTO) */
  float low_f32, high_f32;    /* of CLI_F32 */
  const char *expects;        /* of CLI_F32: "a number from 0 up"; of CLI_CHOICE: the names, "f32|q8" */
  bool *given;                /* may be NULL */
} cli_option;

#define CLI_AUTO UINT32_MAX
#define CLI_CONTINUE (-1)
/* Reads argv[1..): options anywhere, exactly n_operands operands with the names given. CLI_CONTINUE, or the
 * exit code: CLI_OK after --help (the help went to stdout), CLI_USAGE after a complaint. */
int cli_parse(int argc, char **argv, const char *help, const cli_option *options, size_t n_options,
              const char **operands, const char *const *operand_names, size_t n_operands);
/* The same for any number of operands, up to CLI_MAX_STRINGS. */
int cli_parse_list(int argc, char **argv, const char *help, const cli_option *options, size_t n_options, cli_strings *operands,
                   const char *operand_name);
/* Whole number in [low, high]; digits only. */
bool cli_number(const char *text, size_t n, uint64_t low, uint64_t high, uint64_t *out);
/* "1,2,3": at least one id, decimal, each below 2^32 - 1; complains by the name of the option. */
int cli_parse_ids(const char *what, const char *text, cli_ids *ids);

/* The options of everything that computes. */
typedef struct cli_setup {
  uint32_t context;  /* 0: min(max_positions, CLI_CONTEXT) */
  uint32_t threads;  /* 0: the cores this process may use; set by cli_setup_finish */
  uint32_t chunk;    /* 0: CLI_TILE */
  uint32_t draft;    /* ids that an answer may have computed ahead: cli_draft */
  const char *backend_name;
  unsigned profile, kv;
  const slm2_backend *backend; /* found by cli_setup_finish */
} cli_setup;
#define CLI_CONTEXT 4096u
#define CLI_TILE 128u
#define CLI_SETUP_DEFAULTS {.backend_name = "auto", .profile = SLM2_PROFILE_Q8, .kv = SLM2_KV_F32}
#define CLI_SETUP_OPTIONS(s)                                                                             \
  {.name = "--context", .kind = CLI_U32, .target = &(s)->context, .low = 1, .high = UINT32_MAX},         \
  {.name = "--threads", .kind = CLI_U32, .target = &(s)->threads, .low = 1, .high = SLM2_THREADS_MAX},               \
  {.name = "--chunk", .kind = CLI_U32, .target = &(s)->chunk, .low = 1, .high = UINT32_MAX},             \
  {.name = "--backend", .kind = CLI_STRING, .target = &(s)->backend_name},                               \
  {.name = "--profile", .kind = CLI_CHOICE, .target = &(s)->profile, .expects = "f32|q8"},               \
  {.name = "--kv", .kind = CLI_CHOICE, .target = &(s)->kv, .expects = "f32|f16"}
#define CLI_SETUP_HELP                                                                                   \
  "  --context N        positions in the context (default: the model's, at most 4096)\n"                 \
  CLI_COMPUTING_HELP
#define CLI_POSITIONS_HELP /* of commands that go through cli_positions */                               \
  "  --context N        positions in the context (default: the number of ids)\n"                         \
  CLI_COMPUTING_HELP
#define CLI_COMPUTING_HELP                                                                               \
  "  --profile f32|q8   numeric profile (default q8; f32 is the authority)\n"                            \
  "  --kv f32|f16       storage of keys and values (default f32)\n"                                      \
  "  --chunk N          prompt tokens computed side by side; never changes a bit\n"                      \
  "  --threads N        1 to 1024; never changes a bit (default: this process's cores)\n"                \
  "  --backend NAME     kernels: auto (default), oracle, or another that this processor can run\n"
int cli_setup_finish(cli_setup *s);

/* --- load.c: model and session ---------------------------------------------- */

typedef struct cli_model {
  slm2_mapping file;
  void *memory;
  uint64_t memory_bytes;
  slm2_model *model;
  const slm2_header *header;
  const slm2_tokenizer *tokenizer; /* NULL when the file has none */
  char identity[65];
  uint64_t load_ns;
} cli_model;
int cli_model_open(cli_model *m, const char *path);
int cli_model_need_tokenizer(const cli_model *m, const char *path);
void cli_model_close(cli_model *m);

typedef struct cli_session {
  void *memory;
  slm2_threads *threads;
  slm2_plan plan;
  slm2_session *session;
} cli_session;
/* The context that setup asks for, checked against the model's; CLI_USAGE with both numbers when it is too long. */
int cli_context(const slm2_header *header, const cli_setup *setup, uint32_t *context);
int cli_session_open(cli_session *s, const cli_model *m, const cli_setup *setup, uint32_t context);
void cli_session_close(cli_session *s);
/* Every id must be below the vocabulary; CLI_USAGE names the first that is not. */
int cli_check_ids(const cli_model *m, const char *what, const cli_ids *ids);

/* --- positions.c: logits at every position ------------------------------------- */

/* One position's logits as f32 little-endian bytes. */
typedef slm2_status cli_row_fn(void *user, uint32_t position, const uint8_t *row, size_t n, slm2_error *error);
typedef struct cli_taker {
  int (*begin)(void *user, const cli_model *m, const cli_ids *ids); /* may be NULL; before any work, CLI_OK goes on */
  cli_row_fn *each;
  slm2_tap_fn *tap; /* may be NULL; a position's stages come before its logits */
  void *user;
} cli_taker;
/* Opens file and gives each row in order, setup->chunk ids at a time; the context defaults to the number of ids. */
int cli_positions(const char *file, const char *ids_text, cli_setup *setup, const cli_taker *taker, size_t *n_positions);

/* --- trace_diff.c ------------------------------------------------------------------ */

/* The stages of one position, numbered in the order of computation. */
uint32_t cli_stage_count(uint32_t layers);
slm2_stage cli_stage_at(uint32_t layers, uint32_t i, uint32_t *layer);
#define CLI_STAGE_LABEL_MAX 48u
void cli_stage_label(uint32_t layers, uint32_t i, char out[CLI_STAGE_LABEL_MAX]); /* "embed", "layers.3.q_proj" */
#define CLI_TRACE_HEAD "slm2 trace 1: " /* how a trace in text begins */
/* `slm2 trace --diff A B`. CLI_FAILED when they differ, too. */
int cli_trace_diff(int argc, char **argv, const char *help);

/* --- output.c: a .slm2 file in the making --------------------------------------- */

typedef struct cli_maker {
  const char *path;
  slm2_output *output;
  cli_progress progress;
  slm2_sink sink; /* points back here: the struct stays where it is */
} cli_maker;
int cli_maker_begin(cli_maker *maker, const char *path); /* from now on Ctrl-C cancels */
/* Commits on SLM2_OK; otherwise nothing stays, and the error is printed. */
int cli_maker_end(cli_maker *maker, slm2_status status, slm2_error *error);
void cli_text_report(cli_text *t, const char *path, const slm2_convert_report *report);
const char *cli_chat_name(slm2_chat_format format);

/* --- prompt.c: input text to ids -------------------------------------------- */

int cli_read_stdin(cli_text *out);
/* "-" reads stdin; else maps the file. text is lent by *map or *own, one of which holds it. */
int cli_read_input(const char *path, slm2_mapping *map, cli_text *own, const char **text, size_t *n);
void cli_input_free(slm2_mapping *map, cli_text *own);
int cli_tokenize(const cli_model *m, const char *text, size_t n, slm2_specials specials, const uint8_t *mask, cli_ids *ids);
/* Messages as JSON to prompt text and ids; either output may be NULL. */
int cli_render(const cli_model *m, const char *json, size_t n, const slm2_chat_options *options, bool raw_specials,
               cli_text *text, cli_ids *ids);
/* Appends {"role":role,"content":content}, with a comma before it when t does not end with '['. */
void cli_message_add(cli_text *t, const char *role, const char *content, size_t n);

/* --- answer.c: sampling options and the generating loop ---------------------- */

typedef struct cli_sampling {
  slm2_sampler_params params;
  bool temperature, top_k, top_p, min_p, repeat_penalty, seed; /* given */
  uint32_t max_tokens;
  cli_strings stop;
  uint32_t speculate; /* 0: off; N; or SLM2_SPECULATE_AUTO */
} cli_sampling;
#define CLI_MAX_TOKENS 1024u
#define CLI_SAMPLING_DEFAULTS {.max_tokens = CLI_MAX_TOKENS, .speculate = SLM2_SPECULATE_AUTO}
#define CLI_SPECULATE_OPTION(target_) \
  {.name = "--speculate", .kind = CLI_AUTO_U32, .target = (target_), .low = 1, .high = SLM2_DRAFT_MAX}
#define CLI_SPECULATE_HELP                                                                               \
  "  --speculate HOW    auto (default), off, or 1 to 15: how many tokens of an answer to guess, where the text\n" \
  "                     repeats itself, and to compute with the one before; never changes a bit\n"
_Static_assert(SLM2_DRAFT_MAX == 15 && SLM2_SPECULATE_AUTO == CLI_AUTO, "what the help says");
/* The session's draft that this speculation needs. */
uint32_t cli_draft(uint32_t speculate);
#define CLI_SAMPLING_OPTIONS(s)                                                                                        \
  {.name = "--temperature", .kind = CLI_F32, .target = &(s)->params.temperature, .high_f32 = FLT_MAX,                  \
   .expects = "a finite number from 0 up", .given = &(s)->temperature},                                                \
  {.name = "--top-k", .kind = CLI_U32, .target = &(s)->params.top_k, .high = UINT32_MAX, .given = &(s)->top_k},        \
  {.name = "--top-p", .kind = CLI_F32, .target = &(s)->params.top_p, .high_f32 = 1.0f,                                 \
   .expects = "a number from 0 to 1", .given = &(s)->top_p},                                                           \
  {.name = "--min-p", .kind = CLI_F32, .target = &(s)->params.min_p, .high_f32 = 1.0f,                                 \
   .expects = "a number from 0 to 1", .given = &(s)->min_p},                                                           \
  {.name = "--repeat-penalty", .kind = CLI_F32, .target = &(s)->params.repeat_penalty, .low_f32 = FLT_TRUE_MIN,        \
   .high_f32 = FLT_MAX, .expects = "a finite number above 0", .given = &(s)->repeat_penalty},                          \
  {.name = "--seed", .kind = CLI_U64, .target = &(s)->params.seed, .high = UINT64_MAX, .given = &(s)->seed},           \
  {.name = "--max-tokens", .kind = CLI_U32, .target = &(s)->max_tokens, .low = 1, .high = UINT32_MAX},                 \
  {.name = "--stop", .kind = CLI_STRINGS, .target = &(s)->stop}
#define CLI_SAMPLING_HELP                                                                                \
  "  --temperature T    0 is greedy; the defaults of these five are the model's own\n"                   \
  "  --top-k K          keep the K best (0: off)\n"                                                      \
  "  --top-p P          keep the best whose sum exceeds P (1: off)\n"                                    \
  "  --min-p M          keep those with at least M times the best (0: off)\n"                            \
  "  --repeat-penalty R (1: off)\n"                                                                      \
  "  --seed N           the same seed gives the same answer (default: the system's randomness)\n"        \
  "  --max-tokens N     end the answer after N tokens (default 1024)\n"                                  \
  "  --stop TEXT        end the answer before TEXT; may be repeated\n"
/* Fills what was not given from the model's generation defaults; draws the seed; checks stop strings. */
int cli_sampling_finish(cli_sampling *s, const slm2_generation *defaults);

typedef struct cli_answer {
  cli_text text, reasoning; /* whole, by channel */
  slm2_finish finish;
  uint32_t n_tokens;        /* sampled, the end token included */
  uint32_t drafted, accepted; /* of speculation */
  uint64_t decode_ns;
  uint8_t digest[32];       /* SHA-256 over each sampled token's id (u32 LE) and logprob (f32 LE bits) */
} cli_answer;
/* Called for every event, before the next token is computed; false stops as a cancel does. */
typedef bool cli_event_fn(void *user, const slm2_token_event *event);
/* Samples until an end. answer starts zeroed and holds what came so far whatever the status [R57]. */
slm2_status cli_generate(slm2_session *session, const cli_sampling *sampling, uint64_t seed, cli_event_fn *each, void *user,
                         cli_answer *answer, slm2_error *error);
void cli_answer_free(cli_answer *a);
/* Says on stderr why an answer with finish LENGTH ends there. */
void cli_note_length(const cli_answer *a, size_t n_prompt, uint32_t context);
/* The tokens of ids and one more must fit: refuses with both numbers, before any work [SAM-4]. */
int cli_check_room(size_t n_ids, uint32_t context, uint32_t max_positions);
double cli_ms(uint64_t ns);
double cli_rate(uint32_t tokens, uint64_t ns);

/* An answer as a person reads it: dim reasoning on a terminal, none in a pipe. */
typedef struct cli_view {
  bool terminal, dim;
  bool reasoned, reasoning; /* ever; the last text */
  bool at_start;            /* of a part: its line breaks are dropped */
  size_t held; /* line breaks of the reasoning, shown once more of it follows */
} cli_view;
void cli_view_begin(cli_view *v);
bool cli_view_event(cli_view *v, const slm2_token_event *event);
void cli_view_end(cli_view *v);

/* --- snapshot.c: a conversation and its session as a file -------------------------- */

/* history: as chat keeps it, "[" and the messages. A file that is there is replaced only when it is a snapshot. */
int cli_snapshot_save(const char *path, const slm2_session *session, const cli_text *history, uint64_t seed, uint64_t *bytes);
/* Nothing changes unless all of it is good. */
int cli_snapshot_load(const char *path, const cli_model *m, slm2_session *session, cli_text *history, uint64_t *seed);

/* --- line.c: lines from the user ------------------------------------------------- */

typedef enum cli_line_result { CLI_LINE, CLI_LINE_END, CLI_LINE_INTERRUPTED, CLI_LINE_FAILED } cli_line_result;
typedef struct cli_lines cli_lines;
cli_lines *cli_lines_open(bool interactive); /* with a prompt, and with editing where libedit was built in */
cli_line_result cli_lines_next(cli_lines *l, cli_text *line); /* without its newline; any length. Says why it failed */
void cli_lines_close(cli_lines *l);

/* --- the subcommands --------------------------------------------------------- */

int cli_cmd_run(int argc, char **argv);
int cli_cmd_chat(int argc, char **argv);
int cli_cmd_convert(int argc, char **argv);
int cli_cmd_inspect(int argc, char **argv);
int cli_cmd_verify(int argc, char **argv);
int cli_cmd_tokenize(int argc, char **argv);
int cli_cmd_detokenize(int argc, char **argv);
int cli_cmd_render(int argc, char **argv);
int cli_cmd_check(int argc, char **argv);
int cli_cmd_digest(int argc, char **argv);
int cli_cmd_logits(int argc, char **argv);
int cli_cmd_trace(int argc, char **argv);
int cli_cmd_plan(int argc, char **argv);
int cli_cmd_synth(int argc, char **argv);
int cli_cmd_bench(int argc, char **argv);
int cli_cmd_serve(int argc, char **argv);

#define CLI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
