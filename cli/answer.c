/* cli/answer.c: sampling parameters, the generating loop, and the view of an answer that run and chat share. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/utf8.h"

int cli_sampling_finish(cli_sampling *s, const slm2_generation *defaults) {
  slm2_error error = {0};
  slm2_sampler_params *p = &s->params;
  if (!s->temperature) p->temperature = defaults->do_sample ? defaults->temperature : 0.0f;
  if (!s->top_k) p->top_k = defaults->top_k;
  if (!s->top_p) p->top_p = defaults->top_p;
  if (!s->min_p) p->min_p = 0.0f;
  if (!s->repeat_penalty) p->repeat_penalty = defaults->repeat_penalty;
  for (uint32_t i = 0; i < s->stop.n; i++) {
    size_t n = strlen(s->stop.at[i]);
    if (n == 0 || n > SLM2_MAX_STOP_BYTES)
      return cli_complain(CLI_USAGE, "--stop", "%zu bytes; a stop text has 1 to %u", n, SLM2_MAX_STOP_BYTES);
    if (!slm2_utf8_valid((const uint8_t *)s->stop.at[i], n))
      return cli_complain(CLI_USAGE, "--stop", "text %u is not UTF-8", i + 1);
  }
  if (!s->seed && p->temperature > 0.0f && slm2_random_seed(&p->seed, &error) != SLM2_OK) return cli_fail(&error);
  if (slm2_sampler_check(p, &error) != SLM2_OK) return cli_complain(CLI_USAGE, "sampling", "%s", error.message);
  return CLI_OK;
}

uint32_t cli_draft(uint32_t speculate) { return speculate == SLM2_SPECULATE_AUTO ? SLM2_DRAFT_MAX : speculate; }

static slm2_generate_params generate_params(const cli_sampling *s, uint64_t seed) {
  slm2_generate_params p = {
    .sampler = s->params, .max_tokens = s->max_tokens, .speculate = s->speculate, .n_stop = s->stop.n};
  p.sampler.seed = seed;
  for (uint32_t i = 0; i < s->stop.n; i++) {
    p.stop[i] = s->stop.at[i];
    p.stop_bytes[i] = strlen(s->stop.at[i]);
  }
  return p;
}

static void take_event(cli_answer *a, slm2_sha256 *hash, const slm2_token_event *e) {
  cli_text_add(e->channel == SLM2_CHANNEL_REASONING ? &a->reasoning : &a->text, e->text, e->n_text);
  a->finish = e->finish;
  if (e->id == SLM2_NO_TOKEN) return;
  uint8_t bytes[8];
  slm2_store_u32(bytes, e->id);
  slm2_store_f32(bytes + 4, e->logprob);
  slm2_sha256_update(hash, bytes, sizeof bytes);
}

slm2_status cli_generate(slm2_session *session, const cli_sampling *sampling, uint64_t seed, cli_event_fn *each, void *user,
                         cli_answer *answer, slm2_error *error) {
  cli_text_add(&answer->text, "", 0);
  cli_text_add(&answer->reasoning, "", 0);
  slm2_generate_params params = generate_params(sampling, seed);
  slm2_sha256 hash;
  slm2_sha256_init(&hash);
  void *memory = cli_alloc(slm2_generator_bytes(), 1);
  slm2_token_event *event = cli_alloc(1, sizeof *event);
  slm2_generator *generator = NULL;
  uint64_t start = slm2_clock_ns();
  slm2_status status = slm2_generator_init(memory, slm2_generator_bytes(), session, &params, &generator, error);
  bool begun = status == SLM2_OK;
  while (status == SLM2_OK && answer->finish == SLM2_FINISH_NONE) {
    event->id = SLM2_NO_TOKEN;
    event->n_text = 0;
    event->finish = SLM2_FINISH_ERROR;
    status = slm2_generator_next(generator, &cli_cancel, event, error);
    take_event(answer, &hash, event);
    if (!each(user, event)) atomic_store(&cli_cancel, 1);
  }
  answer->decode_ns = slm2_clock_ns() - start;
  if (begun) {
    answer->n_tokens = slm2_generator_count(generator);
    answer->drafted = slm2_generator_drafted(generator);
    answer->accepted = slm2_generator_accepted(generator);
  }
  slm2_sha256_final(&hash, answer->digest);
  free(event);
  free(memory);
  return status;
}

void cli_answer_free(cli_answer *a) {
  cli_text_free(&a->text);
  cli_text_free(&a->reasoning);
}

void cli_note_length(const cli_answer *a, size_t n_prompt, uint32_t context) {
  if (a->finish != SLM2_FINISH_LENGTH) return;
  if (n_prompt + a->n_tokens >= context)
    fprintf(stderr, "[the context of %u positions is full; --context N gives more]\n", context);
  else fprintf(stderr, "[stopped after %u tokens; --max-tokens N allows more]\n", a->n_tokens);
}

double cli_ms(uint64_t ns) { return (double)ns / 1e6; }

double cli_rate(uint32_t tokens, uint64_t ns) { return ns == 0 ? 0.0 : (double)tokens * 1e9 / (double)ns; }

/* --- view ------------------------------------------------------------------- */

void cli_view_begin(cli_view *v) { *v = (cli_view){.terminal = slm2_is_terminal(1)}; }

/* A terminal obeys control characters, and an answer must not command it: all but line break and tab are shown as
 * U+FFFD. A pipe gets the bytes as they are. */
static bool show(const cli_view *v, const char *text, size_t n) {
  if (!v->terminal) return cli_out(text, n);
  cli_text safe = {0};
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i], next = i + 1 < n ? (unsigned char)text[i + 1] : 0;
    bool c1 = c == 0xc2 && next >= 0x80 && next < 0xa0; /* U+0080 to U+009F */
    if (c1 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) cli_text_puts(&safe, "\xef\xbf\xbd");
    else cli_text_add(&safe, text + i, 1);
    i += c1;
  }
  bool ok = cli_out_text(&safe) == CLI_OK;
  cli_text_free(&safe);
  return ok;
}

static bool show_reasoning(cli_view *v, const char *text, size_t n) {
  size_t kept = n;
  while (kept > 0 && text[kept - 1] == '\n') kept--;
  if (!v->terminal) return true;
  if (kept == 0) {
    v->held += n;
    return true;
  }
  bool ok = v->dim || cli_out("\033[2m", 4);
  v->dim = true;
  for (; ok && v->held > 0; v->held--) ok = cli_out("\n", 1);
  v->held = n - kept;
  return ok && show(v, text, kept);
}

/* The template puts line breaks around the reasoning; a person needs one blank line after it. */
bool cli_view_event(cli_view *v, const slm2_token_event *e) {
  bool reasoning = e->channel == SLM2_CHANNEL_REASONING;
  const char *text = e->text;
  size_t n = e->n_text;
  if (reasoning != v->reasoning) v->at_start = true;
  v->reasoned = v->reasoned || reasoning;
  v->reasoning = reasoning;
  if (v->reasoned && v->at_start)
    while (n > 0 && *text == '\n') {
      text++;
      n--;
    }
  if (n == 0) return true;
  v->at_start = false;
  if (reasoning) return show_reasoning(v, text, n);
  bool ok = !v->dim || cli_out("\033[0m\n\n", 6);
  v->dim = false;
  return ok && show(v, text, n);
}

void cli_view_end(cli_view *v) {
  if (v->dim) (void)cli_out("\033[0m", 4);
  v->dim = false;
}
