/* cli/run.c: `slm2 run`: one prompt, one answer. */
#include "cli/cli.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

static const char help[] =
  "slm2 run FILE: answer one prompt with a model and exit.\n"
  "\n"
  "Prompt (one of):\n"
  "  -p TEXT            one user message in the model's chat format\n"
  "  --messages FILE    a conversation as JSON: OpenAI-shaped messages, or an object with messages and tools; - is stdin\n"
  "  --raw TEXT         plain text to continue\n"
  "  --ids 1,2,3        token ids to continue\n"
  "  --system TEXT      a system message before -p\n"
  "  --no-think         ask for the answer without reasoning\n"
  "  --raw-specials     control tokens written in the text count as such, as in Hugging Face (a user can then forge turns)\n"
  "\n"
  "Sampling:\n" CLI_SAMPLING_HELP
  "\n"
  "Computing:\n" CLI_SETUP_HELP CLI_SPECULATE_HELP
  "\n"
  "Output: the answer, token by token. Reasoning is shown dimmed on a terminal and left out of a pipe.\n"
  "  --json             one JSON object a line: id, text, logprob and channel (answer, reasoning) for each token, then\n"
  "                     one with the whole text, reasoning, finish (stop, length, cancelled, error), token counts, seed,\n"
  "                     timings, drafted and accepted (tokens guessed, and the right ones), model (SHA-256 of the file's\n"
  "                     header), profile, kv, backend, threads and digest (SHA-256 over the id as u32 and the logprob as\n"
  "                     f32, little endian, of every sampled token)\n"
  "The seed is printed on stderr when one was drawn. Exit: 0, 1 failed, 2 bad usage, 130 cancelled.\n"
  "\n"
  "Examples:\n"
  "  slm2 run models/demo.slm2 -p \"What is the capital of France?\"\n"
  "  slm2 run models/demo.slm2 -p \"Tell me a story.\" --seed 7\n"
  "  slm2 run models/demo.slm2 --raw \"Once upon a time\" --temperature 0 --max-tokens 40 --json\n";

typedef struct run_options {
  const char *file, *prompt, *messages, *raw, *ids, *system;
  bool no_think, raw_specials, json;
  cli_sampling sampling;
  cli_setup setup;
} run_options;

static int parse(int argc, char **argv, run_options *o) {
  const cli_option options[] = {
    {.name = "-p", .kind = CLI_STRING, .target = &o->prompt},
    {.name = "--messages", .kind = CLI_STRING, .target = &o->messages},
    {.name = "--raw", .kind = CLI_STRING, .target = &o->raw},
    {.name = "--ids", .kind = CLI_STRING, .target = &o->ids},
    {.name = "--system", .kind = CLI_STRING, .target = &o->system},
    {.name = "--no-think", .kind = CLI_FLAG, .target = &o->no_think},
    {.name = "--raw-specials", .kind = CLI_FLAG, .target = &o->raw_specials},
    {.name = "--json", .kind = CLI_FLAG, .target = &o->json},
    CLI_SAMPLING_OPTIONS(&o->sampling),
    CLI_SETUP_OPTIONS(&o->setup),
    CLI_SPECULATE_OPTION(&o->sampling.speculate),
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &o->file, names, 1);
  if (code != CLI_CONTINUE) return code;
  int given = (o->prompt != NULL) + (o->messages != NULL) + (o->raw != NULL) + (o->ids != NULL);
  if (given != 1)
    return cli_complain(CLI_USAGE, "run", "give exactly one of -p, --messages, --raw and --ids, not %d; try slm2 run --help",
                        given);
  if (o->system != NULL && o->prompt == NULL)
    return cli_complain(CLI_USAGE, "--system", "goes with -p only; put it into the messages instead");
  if (o->no_think && (o->raw != NULL || o->ids != NULL))
    return cli_complain(CLI_USAGE, "--no-think", "goes with -p and --messages only");
  if (o->raw_specials && o->ids != NULL) return cli_complain(CLI_USAGE, "--raw-specials", "goes with text, not with --ids");
  o->setup.draft = cli_draft(o->sampling.speculate);
  code = cli_setup_finish(&o->setup);
  return code == CLI_OK ? CLI_CONTINUE : code;
}

static int chat_ids(const run_options *o, const cli_model *m, cli_ids *ids) {
  slm2_chat_options chat = {.generation_prompt = true, .thinking = !o->no_think};
  cli_text own = {0};
  slm2_mapping map = {0};
  const char *json = NULL;
  size_t n = 0;
  int code = CLI_OK;
  if (o->messages != NULL) {
    code = cli_read_input(o->messages, &map, &own, &json, &n);
  } else {
    cli_text_puts(&own, "[");
    if (o->system != NULL) cli_message_add(&own, "system", o->system, strlen(o->system));
    cli_message_add(&own, "user", o->prompt, strlen(o->prompt));
    cli_text_puts(&own, "]");
    json = own.bytes;
    n = own.n;
  }
  if (code == CLI_OK) code = cli_render(m, json, n, &chat, o->raw_specials, NULL, ids);
  cli_input_free(&map, &own);
  return code;
}

static int prompt_ids(const run_options *o, const cli_model *m, cli_ids *ids) {
  int code;
  if (o->ids != NULL) {
    code = cli_parse_ids("--ids", o->ids, ids);
    return code == CLI_OK ? cli_check_ids(m, "--ids", ids) : code;
  }
  code = cli_model_need_tokenizer(m, o->file);
  if (code != CLI_OK) return code;
  if (o->raw == NULL) return chat_ids(o, m, ids);
  code = cli_tokenize(m, o->raw, strlen(o->raw), o->raw_specials ? SLM2_SPECIALS_ON : SLM2_SPECIALS_OFF, NULL, ids);
  if (code == CLI_OK && ids->n == 0) code = cli_complain(CLI_USAGE, "--raw", "the text is empty: there is nothing to continue");
  return code;
}

static bool json_event(void *user, const slm2_token_event *e) {
  (void)user;
  if (e->id == SLM2_NO_TOKEN && e->n_text == 0) return true;
  cli_text line = {0};
  if (e->id == SLM2_NO_TOKEN) cli_text_puts(&line, "{\"id\":null,\"text\":");
  else cli_text_print(&line, "{\"id\":%u,\"text\":", e->id);
  cli_text_json(&line, e->text, e->n_text);
  cli_text_puts(&line, ",\"logprob\":");
  if (e->id == SLM2_NO_TOKEN) cli_text_puts(&line, "null");
  else cli_text_f32(&line, e->logprob);
  cli_text_print(&line, ",\"channel\":\"%s\"}\n", e->channel == SLM2_CHANNEL_REASONING ? "reasoning" : "answer");
  bool ok = cli_out(line.bytes, line.n);
  cli_text_free(&line);
  return ok;
}

static bool view_event(void *view, const slm2_token_event *e) { return cli_view_event(view, e); }

typedef struct run_result {
  cli_answer answer;
  slm2_status status;
  slm2_error error;
  uint32_t n_prompt;
  uint64_t prefill_ns;
} run_result;

static int json_result(const run_options *o, const cli_model *m, const run_result *r) {
  const cli_answer *a = &r->answer;
  cli_text t = {0};
  char digest[65];
  slm2_hex(a->digest, 32, digest);
  cli_text_puts(&t, "{\"text\":");
  cli_text_json(&t, a->text.bytes, a->text.n);
  cli_text_puts(&t, ",\"reasoning\":");
  cli_text_json(&t, a->reasoning.bytes, a->reasoning.n);
  cli_text_print(&t, ",\"finish\":\"%s\",\"prompt_tokens\":%u,\"cached_tokens\":0,\"completion_tokens\":%u,\"seed\":%llu",
                 slm2_finish_name(a->finish), r->n_prompt, a->n_tokens, (unsigned long long)o->sampling.params.seed);
  cli_text_print(&t, ",\"timings\":{\"load_ms\":%.3f,\"prefill_ms\":%.3f,\"decode_ms\":%.3f,\"tokens_per_second\":%.3f}",
                 cli_ms(m->load_ns), cli_ms(r->prefill_ns), cli_ms(a->decode_ns), cli_rate(a->n_tokens, a->decode_ns));
  cli_text_print(&t, ",\"drafted\":%u,\"accepted\":%u", a->drafted, a->accepted);
  cli_text_print(&t, ",\"model\":\"%s\",\"profile\":\"%s\",\"kv\":\"%s\"", m->identity,
                 slm2_profile_name((slm2_profile)o->setup.profile), slm2_kv_name((slm2_kv_type)o->setup.kv));
  cli_text_print(&t, ",\"backend\":\"%s\",\"threads\":%u,\"digest\":\"%s\"", slm2_backend_name(o->setup.backend),
                 o->setup.threads, digest);
  if (r->status != SLM2_OK && r->status != SLM2_E_CANCELLED) {
    cli_text_print(&t, ",\"error\":{\"code\":%d,\"name\":\"%s\",\"message\":", (int)r->status, slm2_status_name(r->status));
    cli_text_json(&t, r->error.message, strlen(r->error.message));
    cli_text_puts(&t, "}");
  }
  cli_text_puts(&t, "}\n");
  int code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

/* Prefill, then decode; whatever came is in r. */
static void compute(const run_options *o, slm2_session *session, const cli_ids *ids, run_result *r) {
  slm2_run run = {.cancel = &cli_cancel};
  cli_view view;
  cli_view_begin(&view);
  uint64_t start = slm2_clock_ns();
  r->n_prompt = (uint32_t)ids->n;
  r->status = slm2_session_append(session, ids->at, r->n_prompt, &run, &r->error);
  r->prefill_ns = slm2_clock_ns() - start;
  if (r->status != SLM2_OK) {
    r->answer.finish = r->status == SLM2_E_CANCELLED ? SLM2_FINISH_CANCELLED : SLM2_FINISH_ERROR;
    return;
  }
  if (o->sampling.params.temperature > 0.0f && !o->sampling.seed)
    fprintf(stderr, "seed %llu\n", (unsigned long long)o->sampling.params.seed);
  r->status = cli_generate(session, &o->sampling, o->sampling.params.seed, o->json ? json_event : view_event, &view, &r->answer,
                           &r->error);
  cli_view_end(&view);
}

static int finish(const run_options *o, const cli_model *m, uint32_t context, run_result *r) {
  int code = CLI_OK;
  if (o->json) code = json_result(o, m, r);
  else if (r->answer.n_tokens > 0) code = cli_out("\n", 1) ? CLI_OK : CLI_FAILED;
  if (code != CLI_OK) return code;
  if (r->status == SLM2_E_CANCELLED || r->answer.finish == SLM2_FINISH_CANCELLED) return CLI_CANCELLED;
  if (!o->json) cli_note_length(&r->answer, r->n_prompt, context);
  return r->status == SLM2_OK ? CLI_OK : cli_fail(&r->error);
}

static int run_model(run_options *o, const cli_model *m, cli_ids *ids) {
  uint32_t context;
  int code = cli_context(m->header, &o->setup, &context);
  if (code == CLI_OK) code = cli_sampling_finish(&o->sampling, &m->header->generation);
  if (code == CLI_OK) code = prompt_ids(o, m, ids);
  if (code == CLI_OK) code = cli_check_room(ids->n, context, m->header->config.max_positions);
  if (code != CLI_OK) return code;
  cli_session session;
  code = cli_session_open(&session, m, &o->setup, context);
  if (code != CLI_OK) return code;
  cli_catch_interrupts();
  run_result result = {0};
  cli_text_add(&result.answer.text, "", 0);
  cli_text_add(&result.answer.reasoning, "", 0);
  compute(o, session.session, ids, &result);
  code = finish(o, m, context, &result);
  cli_answer_free(&result.answer);
  cli_session_close(&session);
  return code;
}

int cli_cmd_run(int argc, char **argv) {
  run_options o = {.sampling = CLI_SAMPLING_DEFAULTS, .setup = CLI_SETUP_DEFAULTS};
  int code = parse(argc, argv, &o);
  if (code != CLI_CONTINUE) return code;
  cli_model model;
  code = cli_model_open(&model, o.file);
  if (code != CLI_OK) return code;
  cli_ids ids = {0};
  code = run_model(&o, &model, &ids);
  cli_ids_free(&ids);
  cli_model_close(&model);
  return code;
}
