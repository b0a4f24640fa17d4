/* tests/unit/test_generate.c: one answer, token by token. Most cases script the logits, so that the tokens are given and
 * the text, its channel, its hold-back and its end can be read off; the last ones sample for real. */
#include "session/session.h"
#include "session/stop.h"
#include "tests/unit/tiny_model.h"

enum { AB = 256, EMOJI_1, EMOJI_2, LONG_TEXT, BAD_BYTES, EOS = 300, OTHER, THINK, UNTHINK, TOOL, EOS_2 };
#define VOCAB 320u
static char bad_bytes[SLM2_MAX_TOKEN_BYTES + 1];
static const tiny_token tokens[] = {
    {AB, "ab", 0}, {EMOJI_1, "\xf0\x9f", 0}, {EMOJI_2, "\x98\x80", 0}, {LONG_TEXT, "one END two", 0}, {BAD_BYTES, bad_bytes, 0},
    {EOS, "<|end|>", 2}, {OTHER, "<|other|>", 2}, {THINK, "<think>", 1}, {UNTHINK, "</think>", 1}, {TOOL, "<tool_call>", 1},
    {EOS_2, "<|end2|>", 2}};
#define FFFD "\xef\xbf\xbd"

/* --- scripted logits ------------------------------------------------------------------ */

static struct {
  uint32_t ids[64], n;
  uint32_t at, fault_at; /* the logits product number; the one that becomes NaN */
} script;

static void scripted(float *y, size_t y_stride, const slm2_matrix *w, const float *x, uint32_t n, uint32_t r0, uint32_t r1) {
  if (w->rows != VOCAB) {
    slm2_backend_oracle.matmul_f32(y, y_stride, w, x, n, r0, r1);
    return;
  }
  uint32_t id = script.at < script.n ? script.ids[script.at] : 'z';
  for (uint32_t r = r0; r < r1; r++) y[r] = r == id ? 20.0f : 0.0f;
  if (r1 == VOCAB && script.at++ == script.fault_at) y[0] = slm2_float_from_bits(0x7fc00000);
}
static slm2_backend scripted_backend;

static slm2_session *scripted_session(const tiny_model *m, uint32_t context) {
  slm2_session_params p = {.context = context, .tile = 4, .backend = &scripted_backend};
  return tiny_session(m->model, &p);
}

static slm2_generator *generator(slm2_session *s, const slm2_generate_params *params) {
  slm2_generator *g = NULL;
  slm2_error error;
  slm2_status status = slm2_generator_init(tiny_memory(slm2_generator_bytes()), slm2_generator_bytes(), s, params, &g, &error);
  if (status != SLM2_OK) {
    printf("FAIL generator: %s: %s\n", error.name, error.message);
    exit(1);
  }
  return g; /* at the front of its block: free(g) releases it */
}

/* Another generator that goes on where *g stands, instead of it. */
static void move(slm2_session *s, const slm2_generate_params *params, slm2_generator **g) {
  slm2_generator_state state;
  slm2_generator *moved = NULL;
  slm2_error error = {0};
  CHECK(slm2_generator_save(*g, s, &state, &error) == SLM2_OK);
  CHECK_CASE(slm2_generator_resume(tiny_memory(slm2_generator_bytes()), slm2_generator_bytes(), s, params, &state, &moved,
                                   &error) == SLM2_OK, error.message);
  if (moved == NULL) exit(1);
  CHECK(slm2_generator_count(moved) == slm2_generator_count(*g));
  CHECK(slm2_generator_words_used(moved) == slm2_generator_words_used(*g));
  free(*g);
  *g = moved;
}

/* Each event as a or r (its channel), its text and ';', then how it ended. With s, saved and resumed before every step. */
static void run_to_end(slm2_generator **at_start, slm2_session *s, const slm2_generate_params *params, char trace[512]) {
  slm2_generator *g = *at_start;
  slm2_token_event e;
  slm2_error error;
  size_t at = 0;
  do {
    if (s != NULL) move(s, params, &g);
    memset(&e, 0xff, sizeof e);
    CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_OK);
    at += (size_t)snprintf(trace + at, 512 - at, "%c%.*s;", e.channel == SLM2_CHANNEL_ANSWER ? 'a' : 'r', (int)e.n_text, e.text);
  } while (e.finish == SLM2_FINISH_NONE && at < 500);
  snprintf(trace + at, 512 - at, "%s", slm2_finish_name(e.finish));
  slm2_token_event untouched = e;
  CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_E_ARGUMENT && memcmp(&e, &untouched, sizeof e) == 0);
  *at_start = g;
}

static const struct text_case {
  const char *label, *stops[4];
  uint32_t prompt[4], ids[12], max;
  bool ignore_eos;
  const char *trace;
} text_cases[] = {
    {"plain", {0}, {1}, {'h', 'i', EOS}, 9, false, "ah;ai;a;stop"},
    {"second end token", {0}, {1}, {'h', EOS_2}, 9, false, "ah;a;stop"},
    {"end tokens ignored", {0}, {1}, {'h', EOS, 'i'}, 3, true, "ah;a;ai;length"},
    {"one token", {0}, {1}, {'h'}, 1, false, "ah;length"},
    {"stop across tokens", {"END"}, {1}, {'x', 'E', 'N', 'D', 'y'}, 9, false, "ax;a;a;a;stop"},
    {"no stop after all", {"END"}, {1}, {'E', 'N', 'x'}, 3, false, "a;a;aENx;length"},
    {"held at max_tokens", {"END"}, {1}, {'x', 'E', 'N'}, 3, false, "ax;a;aEN;length"},
    {"held at the end token", {"END"}, {1}, {'E', EOS}, 9, false, "a;aE;stop"},
    {"stop inside a token", {"END"}, {1}, {LONG_TEXT}, 9, false, "aone ;stop"},
    {"stop at once", {"one"}, {1}, {LONG_TEXT}, 9, false, "a;stop"},
    {"restart inside the prefix", {"aab"}, {1}, {'a', 'a', 'a', 'b'}, 9, false, "a;a;aa;a;stop"},
    {"periodic", {"abab!"}, {1}, {AB, AB, AB, '!', 'x'}, 9, false, "a;a;aab;a;stop"},
    {"the first to end wins", {"abc", "b"}, {1}, {AB, 'c'}, 9, false, "aa;stop"},
    {"the longest of two that end together", {"b", "ab"}, {1}, {'x', AB}, 9, false, "ax;a;stop"},
    {"longest hold", {"xyz", "yq"}, {1}, {'x', 'y', 'p'}, 3, false, "a;a;axyp;length"},
    {"shorter hold takes over", {"xyz", "yq"}, {1}, {'x', 'y', 'q'}, 9, false, "a;a;ax;stop"},
    {"whole emoji", {0}, {1}, {EMOJI_1, EMOJI_2, 'x'}, 3, false, "a;a\xf0\x9f\x98\x80;ax;length"},
    {"stop is an emoji", {"\xf0\x9f\x98\x80"}, {1}, {'x', EMOJI_1, EMOJI_2}, 9, false, "ax;a;a;stop"},
    {"another code point of the same lead byte", {"\xc3\xa9!"}, {1}, {0xc3, 0xa8, 0xc3, 0xa9, '?'}, 5, false,
     "a;a\xc3\xa8;a;a;a\xc3\xa9?;length"},
    {"incomplete at the end", {0}, {1}, {'x', EMOJI_1}, 2, false, "ax;a" FFFD ";length"},
    {"incomplete at the end token", {0}, {1}, {EMOJI_1, EOS}, 9, false, "a;a" FFFD ";stop"},
    {"flush completes a stop", {"x" FFFD}, {1}, {'x', EMOJI_1}, 2, false, "a;a;stop"},
    {"special tokens give no text", {0}, {1}, {'x', OTHER, 'y'}, 3, false, "ax;a;ay;length"},
    {"an emoji around a special token", {0}, {1}, {EMOJI_1, OTHER, EMOJI_2}, 3, false, "a;a;a\xf0\x9f\x98\x80;length"},
    {"stop around a special token", {"xy"}, {1}, {'x', OTHER, 'y'}, 9, false, "a;a;a;stop"},
    {"added, not special", {0}, {1}, {TOOL, EOS}, 9, false, "a<tool_call>;a;stop"},
    {"thinking", {0}, {1}, {THINK, 't', UNTHINK, 'y', EOS}, 9, false, "a;rt;r;ay;a;stop"},
    {"prompt opens think", {0}, {THINK, 't'}, {'u', UNTHINK, 'y', EOS}, 9, false, "ru;r;ay;a;stop"},
    {"prompt closes think", {0}, {THINK, 't', UNTHINK}, {'y', EOS}, 9, false, "ay;a;stop"},
    {"an open think of an earlier turn", {0}, {THINK, 't', EOS}, {'y', EOS}, 9, false, "ay;a;stop"},
    {"an ignored end token leaves the channel", {0}, {THINK}, {'t', EOS, 'u', 'v'}, 4, true, "rt;r;ru;rv;length"},
    {"the text of the tag is text", {0}, {THINK}, {'<', '/', EOS}, 9, false, "r<;r/;r;stop"},
    {"incomplete at the border", {0}, {THINK}, {EMOJI_1, UNTHINK, EMOJI_2, 'x'}, 4, false,
     "r;r" FFFD ";a" FFFD FFFD ";ax;length"},
    {"no stop across the border", {"xy"}, {THINK}, {'x', UNTHINK, 'y', EOS}, 9, false, "r;rx;ay;a;stop"},
    {"stop in reasoning", {"xy"}, {THINK}, {'x', 'y'}, 9, false, "r;r;stop"},
    {"no special text to stop at", {"<|other|>"}, {1}, {OTHER, 'y'}, 2, false, "a;ay;length"},
    {"think text is no text", {"<think>"}, {1}, {THINK, 'y'}, 2, false, "a;ry;length"},
};

static void test_text(const tiny_model *m, bool moving) {
  for (size_t i = 0; i < sizeof text_cases / sizeof *text_cases; i++) {
    const struct text_case *c = &text_cases[i];
    slm2_session *s = scripted_session(m, 40);
    slm2_generate_params p = {.sampler = {.temperature = 0, .top_p = 1, .repeat_penalty = 1}, .max_tokens = c->max,
                              .ignore_eos = c->ignore_eos};
    uint32_t n_prompt = 0;
    while (n_prompt < 4 && c->prompt[n_prompt] != 0) n_prompt++;
    for (; c->stops[p.n_stop] != NULL; p.n_stop++) {
      p.stop[p.n_stop] = c->stops[p.n_stop];
      p.stop_bytes[p.n_stop] = strlen(c->stops[p.n_stop]);
    }
    memcpy(script.ids, c->ids, sizeof c->ids);
    script.n = 12, script.at = 0, script.fault_at = UINT32_MAX;
    CHECK_CASE(slm2_session_append(s, c->prompt, n_prompt, NULL, NULL) == SLM2_OK, c->label);
    slm2_generator *g = generator(s, &p);
    char trace[512];
    run_to_end(&g, moving ? s : NULL, &p, trace);
    if (!CHECK_CASE(strcmp(trace, c->trace) == 0, c->label)) printf("  got %s, not %s\n", trace, c->trace);
    uint32_t n = slm2_generator_count(g); /* the timeline: the prompt and all but the last token */
    CHECK_CASE(slm2_session_length(s) == n_prompt + n - 1, c->label);
    CHECK_CASE(memcmp(slm2_session_ids(s) + n_prompt, c->ids, 4 * (n - 1)) == 0, c->label);
    CHECK_CASE(slm2_generator_words_used(g) == 0, c->label);
    free(g), free(s);
  }
}

/* The matcher alone goes on after a match: overlapping ones are all found, and the hold is the longest border. */
static void test_matcher(void) {
  static const struct {
    const char *stop, *text, *matches, *pending;
  } cases[] = {{"aa", "aaaba", "02200", "11101"}, {"abab", "ababab", "000404", "123232"}, {"abc", "xabcab", "000300", "012012"}};
  for (size_t i = 0; i < 3; i++) {
    slm2_stop_matcher m;
    slm2_stop_init(&m);
    slm2_stop_add(&m, cases[i].stop, strlen(cases[i].stop));
    CHECK(slm2_stop_pending(&m) == 0);
    for (size_t k = 0; cases[i].text[k] != 0; k++) {
      CHECK_CASE(slm2_stop_push(&m, (uint8_t)cases[i].text[k]) == (size_t)(cases[i].matches[k] - '0'), cases[i].text);
      CHECK_CASE(slm2_stop_pending(&m) == (size_t)(cases[i].pending[k] - '0'), cases[i].text);
    }
    slm2_stop_reset(&m);
    CHECK(slm2_stop_pending(&m) == 0 && slm2_stop_push(&m, (uint8_t)cases[i].stop[1]) == 0);
  }
}

/* Random texts over a small alphabet against a direct reading of the rule: the text so far, cut before the first stop
 * string that is complete; else without the longest end that begins a stop string. */
static void test_random_stops(const tiny_model *m) {
  uint64_t state = 11;
  for (int round = 0; round < 400; round++) {
    char stops[SLM2_MAX_STOP_STRINGS][9], text[64] = "", out[64] = "";
    slm2_generate_params p = {.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 30,
                              .n_stop = 1 + (uint32_t)(test_random(&state) % 4)};
    for (uint32_t i = 0; i < p.n_stop; i++) {
      p.stop_bytes[i] = 2 + (size_t)(test_random(&state) % 6);
      for (size_t k = 0; k < p.stop_bytes[i]; k++) stops[i][k] = (char)('a' + test_random(&state) % 2);
      p.stop[i] = stops[i];
    }
    for (script.n = 0; script.n < 30; script.n++)
      script.ids[script.n] = test_random(&state) % 5 == 0 ? AB : 'a' + test_random(&state) % 2;
    script.at = 0, script.fault_at = UINT32_MAX;
    slm2_session *s = scripted_session(m, 40);
    CHECK(slm2_session_append(s, (const uint32_t[]){1}, 1, NULL, NULL) == SLM2_OK);
    slm2_generator *g = generator(s, &p);
    for (uint32_t i = 0; i < 30; i++) {
      slm2_token_event e;
      CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK);
      strncat(out, e.text, e.n_text);
      strcat(text, script.ids[i] == AB ? "ab" : script.ids[i] == 'a' ? "a" : "b");
      size_t n = strlen(text), first = SIZE_MAX, held = 0, start = 0;
      for (size_t end = 0; end <= n && first == SIZE_MAX; end++)
        for (uint32_t k = 0; k < p.n_stop; k++)
          if (end >= p.stop_bytes[k] && memcmp(text + end - p.stop_bytes[k], p.stop[k], p.stop_bytes[k]) == 0 &&
              (first == SIZE_MAX || end - p.stop_bytes[k] < start))
            first = end, start = end - p.stop_bytes[k];
      for (uint32_t k = 0; k < p.n_stop; k++)
        for (size_t h = 1; h < p.stop_bytes[k] && h <= n; h++)
          if (memcmp(text + n - h, p.stop[k], h) == 0 && h > held) held = h;
      size_t shown = first != SIZE_MAX ? start : i == 29 ? n : n - held;
      CHECK(strlen(out) == shown && memcmp(out, text, shown) == 0);
      CHECK(e.finish == (first != SIZE_MAX ? SLM2_FINISH_STOP : i == 29 ? SLM2_FINISH_LENGTH : SLM2_FINISH_NONE));
      if (e.finish != SLM2_FINISH_NONE) break;
    }
    free(g), free(s);
  }
}

/* The largest text one step can give: 255 bytes held, then a token of 1,024 bytes that all become U+FFFD. */
static void test_largest_text(const tiny_model *m) {
  char stop[SLM2_MAX_STOP_BYTES];
  for (int i = 0; i < 255; i++) stop[i] = FFFD[i % 3];
  stop[255] = 'x';
  slm2_session *s = scripted_session(m, 100);
  slm2_generate_params p = {.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 100, .n_stop = 1, .stop = {stop},
                            .stop_bytes = {256}};
  script.n = 0, script.at = 0, script.fault_at = UINT32_MAX;
  for (script.n = 0; script.n < 43; script.n++) script.ids[script.n] = 0xff; /* 43 * 3 = 129 bytes */
  script.ids[script.n++] = BAD_BYTES;
  script.ids[script.n++] = 'y';
  CHECK(slm2_session_append(s, (const uint32_t[]){1}, 1, NULL, NULL) == SLM2_OK);
  slm2_generator *g = generator(s, &p);
  slm2_token_event e;
  for (int i = 0; i < 43; i++) CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK && e.n_text == 0);
  CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK && e.n_text == 129 + 3 * 1024 - 255);
  CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK && e.n_text == 256 && e.text[255] == 'y');
  free(g), free(s);
}

/* --- ends that are not the model's ------------------------------------------------------- */

static void begin_script(slm2_session *s, uint32_t fault_at) {
  static const uint32_t ids[] = {'h', 'E', 'N', 'x', 'y'};
  memcpy(script.ids, ids, sizeof ids);
  script.n = 5, script.at = 0, script.fault_at = fault_at;
  CHECK(slm2_session_rewind(s, 0, NULL) == SLM2_OK);
  CHECK(slm2_session_append(s, (const uint32_t[]){1, 2}, 2, NULL, NULL) == SLM2_OK);
}

static void test_cancel_and_error(const tiny_model *m) {
  slm2_session *s = scripted_session(m, 40);
  slm2_generate_params p = {.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 9, .n_stop = 1, .stop = {"END"},
                            .stop_bytes = {3}};
  for (uint32_t steps = 0; steps < 4; steps++)
    for (int cancelled = 0; cancelled < 2; cancelled++) {
      slm2_cancel word;
      atomic_init(&word, 0);
      slm2_error error;
      slm2_token_event e = {0};
      if (!cancelled && steps == 0) continue; /* then the prompt itself fails */
      begin_script(s, cancelled ? UINT32_MAX : steps);
      slm2_generator *g = generator(s, &p);
      for (uint32_t i = 0; i < steps; i++) CHECK(slm2_generator_next(g, &word, &e, &error) == SLM2_OK &&
                                                 e.finish == SLM2_FINISH_NONE);
      uint32_t length = slm2_session_length(s);
      CHECK(length == 2 + (steps > 0 ? steps - 1 : 0));
      if (cancelled) atomic_store(&word, 1);
      slm2_status status = slm2_generator_next(g, &word, &e, &error);
      CHECK(status == (cancelled ? SLM2_OK : SLM2_E_NUMERICAL) &&
            e.finish == (cancelled ? SLM2_FINISH_CANCELLED : SLM2_FINISH_ERROR));
      static const char *const held[] = {"", "", "E", "EN"};
      CHECK(e.id == SLM2_NO_TOKEN && e.n_text == strlen(held[steps]) && memcmp(e.text, held[steps], e.n_text) == 0);
      CHECK(e.position == length && slm2_session_length(s) == length && slm2_generator_count(g) == steps);
      CHECK(slm2_generator_next(g, &word, &e, &error) == SLM2_E_ARGUMENT);
      free(g);
    }
  free(s);
}

/* [SAM-4] The answer fills the context to the last position, then ends; nothing is shifted or lost. */
static void test_full_context(const tiny_model *m) {
  slm2_session *s = scripted_session(m, 5);
  slm2_generate_params p = {.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 100};
  slm2_error error;
  begin_script(s, UINT32_MAX);
  slm2_generator *g = generator(s, &p);
  slm2_token_event e;
  for (uint32_t i = 0; i < 3; i++) {
    CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_OK && e.position == 2 + i);
    CHECK(e.finish == (i == 2 ? SLM2_FINISH_LENGTH : SLM2_FINISH_NONE));
  }
  CHECK(slm2_session_length(s) == 4 && memcmp(slm2_session_ids(s), (const uint32_t[]){1, 2, 'h', 'E'}, 16) == 0);
  free(g);
  CHECK(slm2_session_append(s, (const uint32_t[]){'N'}, 1, NULL, NULL) == SLM2_OK);
  void *mem = tiny_memory(slm2_generator_bytes());
  g = NULL;
  CHECK(slm2_generator_init(mem, slm2_generator_bytes(), s, &p, &g, &error) == SLM2_E_CONTEXT_OVERFLOW && g == NULL);
  CHECK(strstr(error.message, "5 tokens") != NULL && strstr(error.message, "context of 5") != NULL);
  free(mem), free(s);
}

static void test_refusals(const tiny_model *m, const tiny_model *mute) {
  static char long_stop[SLM2_MAX_STOP_BYTES + 1];
  memset(long_stop, 'x', sizeof long_stop);
  const slm2_generate_params good = {.sampler = {.temperature = 1, .top_p = 1, .repeat_penalty = 1}, .max_tokens = 1,
                                     .n_stop = 1, .stop = {"x"}, .stop_bytes = {1}};
  slm2_session *s = scripted_session(m, 9), *no_tokenizer = scripted_session(mute, 9);
  uint8_t *mem = tiny_memory(slm2_generator_bytes() + 16);
  const size_t n = slm2_generator_bytes();
  slm2_generator *g = NULL;
  slm2_error error;
  CHECK(slm2_generator_init(mem, n, s, &good, &g, &error) == SLM2_E_ARGUMENT && strstr(error.message, "no logits") != NULL);
  CHECK(slm2_session_append(s, (const uint32_t[]){1}, 1, NULL, NULL) == SLM2_OK);
  CHECK(slm2_session_append(no_tokenizer, (const uint32_t[]){1}, 1, NULL, NULL) == SLM2_OK);
  CHECK(slm2_generator_init(mem, n - 1, s, &good, &g, &error) == SLM2_E_MEMORY);
  CHECK(slm2_generator_init(mem + 8, n, s, &good, &g, &error) == SLM2_E_ARGUMENT && strcmp(error.name, "mem") == 0);
  CHECK(slm2_generator_init(mem, n, no_tokenizer, &good, &g, &error) == SLM2_E_ARGUMENT && strcmp(error.name, "stop") == 0);
  for (int i = 0; i < 7; i++) {
    slm2_generate_params p = good;
    if (i == 0) p.max_tokens = 0;
    if (i == 1) p.n_stop = SLM2_MAX_STOP_STRINGS + 1;
    if (i == 2) p.stop_bytes[0] = 0;
    if (i == 3) p.stop[0] = long_stop, p.stop_bytes[0] = sizeof long_stop;
    if (i == 4) p.stop[0] = "\x98\x80", p.stop_bytes[0] = 2; /* could cut a code point in two */
    if (i == 5) p.sampler.temperature = -1;
    if (i == 6) p.sampler.repeat_penalty = 0;
    CHECK(slm2_generator_init(mem, n, s, &p, &g, &error) == SLM2_E_ARGUMENT);
    CHECK(error.name[0] != 0 && error.message[0] != 0 && g == NULL);
  }
  CHECK(slm2_generator_init(mem, n, s, &good, &g, &error) == SLM2_OK);
  slm2_token_event e;
  CHECK(slm2_session_append(s, (const uint32_t[]){2}, 1, NULL, NULL) == SLM2_OK); /* behind the generator's back */
  CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_E_ARGUMENT && strstr(error.message, "changed") != NULL);
  CHECK(slm2_session_rewind(s, 1, &error) == SLM2_OK); /* right length, but no logits */
  CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_E_ARGUMENT);
  free(mem), free(s), free(no_tokenizer);
}

/* After "hE" of "hENxy" behind a prompt of two. */
static void test_resume_refusals(const tiny_model *m) {
  const slm2_generate_params good = {.sampler = {.top_p = 1, .repeat_penalty = 1, .seed = 7}, .max_tokens = 9};
  const slm2_generator_state state = {.seed = 7, .words_used = 0, .count = 2, .last = 'E'};
  slm2_session *s = scripted_session(m, 5), *full = scripted_session(m, 4);
  static const struct {
    const char *label, *name, *message;
    slm2_generator_state state;
    uint32_t max_tokens;
    const char *stop;
    slm2_status status;
  } cases[] = {
      {"good", "", "", {7, 0, 2, 'E'}, 9, NULL, SLM2_OK},
      {"all words", "", "", {7, 2, 2, 'E'}, 9, NULL, SLM2_OK},
      {"not begun", "", "", {7, 0, 0, SLM2_NO_TOKEN}, 9, NULL, SLM2_OK},
      {"the longest answer", "", "", {7, 0, 3, 'E'}, 9, NULL, SLM2_OK},
      {"another seed", "seed", "seed 8, not 7", {8, 0, 2, 'E'}, 9, NULL, SLM2_E_ARGUMENT},
      {"no prompt", "state", "timeline of 3", {7, 0, 4, 'E'}, 9, NULL, SLM2_E_ARGUMENT},
      {"more words than tokens", "state", "3 random words", {7, 3, 2, 'E'}, 9, NULL, SLM2_E_ARGUMENT},
      {"no last token", "state", "2 tokens", {7, 0, 2, SLM2_NO_TOKEN}, 9, NULL, SLM2_E_ARGUMENT},
      {"a last token of none", "state", "0 tokens", {7, 0, 0, 'E'}, 9, NULL, SLM2_E_ARGUMENT},
      {"beyond the vocabulary", "state", "2 tokens", {7, 0, 2, VOCAB}, 9, NULL, SLM2_E_ARGUMENT},
      {"enough tokens", "max_tokens", "has 2 tokens, and 2", {7, 0, 2, 'E'}, 2, NULL, SLM2_E_ARGUMENT},
      {"a stop string before the last", "params", "token 1 of 2", {7, 0, 2, 'E'}, 9, "h", SLM2_E_ARGUMENT},
      {"a stop string at the last", "params", "token 2 of 2", {7, 0, 2, 'E'}, 9, "hE", SLM2_E_ARGUMENT},
      {"an end token", "params", "token 2 of 2", {7, 0, 2, EOS_2}, 9, NULL, SLM2_E_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_generate_params p = good;
    slm2_generator *g = NULL;
    slm2_error error = {0};
    p.max_tokens = cases[i].max_tokens;
    if (cases[i].stop != NULL) p.n_stop = 1, p.stop[0] = cases[i].stop, p.stop_bytes[0] = strlen(cases[i].stop);
    begin_script(s, UINT32_MAX);
    CHECK(slm2_session_append(s, (const uint32_t[]){'h'}, 1, NULL, NULL) == SLM2_OK);
    void *mem = tiny_memory(slm2_generator_bytes());
    CHECK_CASE(slm2_generator_resume(mem, slm2_generator_bytes(), s, &p, &cases[i].state, &g, &error) == cases[i].status,
               cases[i].label);
    CHECK_CASE((g != NULL) == (cases[i].status == SLM2_OK) && strcmp(error.name, cases[i].name) == 0 &&
               strstr(error.message, cases[i].message) != NULL, cases[i].label);
    free(mem);
  }
  slm2_generator *g = NULL;
  slm2_error error;
  uint8_t *mem = tiny_memory(slm2_generator_bytes());
  CHECK(slm2_generator_resume(mem, slm2_generator_bytes() - 1, s, &good, &state, &g, &error) == SLM2_E_MEMORY);
  CHECK(slm2_session_rewind(s, 2, NULL) == SLM2_OK); /* no logits */
  CHECK(slm2_generator_resume(mem, slm2_generator_bytes(), s, &good, &state, &g, &error) == SLM2_E_ARGUMENT);
  begin_script(full, UINT32_MAX);
  CHECK(slm2_session_append(full, (const uint32_t[]){'h'}, 1, NULL, NULL) == SLM2_OK);
  CHECK(slm2_generator_resume(mem, slm2_generator_bytes(), full, &good, &state, &g, &error) == SLM2_E_CONTEXT_OVERFLOW);
  CHECK(g == NULL && strstr(error.message, "3 tokens") != NULL && strstr(error.message, "context of 4") != NULL);
  free(mem), free(s), free(full);
}

/* --- sampling for real --------------------------------------------------------------------- */

/* The generator against append and sampler called by hand [D19] [D20] [D26], and a second turn that reuses the first. */
static void test_sampling(const tiny_model *m, slm2_profile profile) {
  static const uint32_t prompt[] = {5, 9, 100, 7};
  const slm2_generate_params p = {.sampler = {.temperature = 0.9f, .top_k = 40, .top_p = 0.95f, .min_p = 0.01f,
                                              .repeat_penalty = 1.3f, .seed = 42},
                                  .max_tokens = 12, .ignore_eos = true};
  const slm2_session_params sp = {.context = 20, .tile = 3, .profile = profile};
  slm2_session *s = tiny_session(m->model, &sp), *hand = tiny_session(m->model, &sp);
  slm2_error error;
  CHECK(slm2_session_append(s, prompt, 4, NULL, &error) == SLM2_OK && slm2_session_append(hand, prompt, 4, NULL,
                                                                                          &error) == SLM2_OK);
  slm2_generator *g = generator(s, &p);
  slm2_rng rng;
  slm2_rng_init(&rng, 42);
  uint32_t sampled[12];
  for (uint32_t i = 0; i < 12; i++) {
    slm2_token_event e;
    slm2_logprob_base base;
    CHECK(slm2_generator_next(g, NULL, &e, &error) == SLM2_OK && e.position == 4 + i);
    CHECK(slm2_sampler_next(&p.sampler, slm2_session_logits(hand), VOCAB, slm2_model_token_mask(m->model),
                            slm2_session_ids(hand), 4 + i,
                            hand->seen, hand->candidates, &rng, &sampled[i], &error) == SLM2_OK);
    CHECK(slm2_logprob_prepare(NULL, slm2_session_logits(hand), VOCAB, &base, &error) == SLM2_OK);
    CHECK(e.id == sampled[i] && e.logprob == slm2_logprob(&base, slm2_session_logits(hand)[sampled[i]]) && e.logprob < 0);
    CHECK(slm2_token_exists(slm2_model_tokenizer(m->model), e.id));
    CHECK(slm2_session_append(hand, &sampled[i], 1, NULL, &error) == SLM2_OK);
  }
  CHECK(slm2_generator_words_used(g) == 12 && slm2_generator_count(g) == 12);
  uint32_t turn[20], reused; /* the next prompt: everything so far and something new */
  memcpy(turn, prompt, sizeof prompt);
  memcpy(turn + 4, sampled, sizeof sampled);
  turn[16] = EOS, turn[17] = 3;
  CHECK(slm2_session_sync(s, turn, 18, NULL, &reused, &error) == SLM2_OK && reused == 15);
  CHECK(slm2_session_append(hand, turn + 16, 2, NULL, &error) == SLM2_OK);
  CHECK(memcmp(slm2_session_logits(s), slm2_session_logits(hand), VOCAB * sizeof(float)) == 0);
  free(g), free(s), free(hand);
}

/* A model without a tokenizer generates ids and no text. */
static void test_without_tokenizer(const tiny_model *mute) {
  const slm2_generate_params p = {.sampler = {.temperature = 0, .top_p = 1, .repeat_penalty = 1}, .max_tokens = 5};
  const slm2_session_params sp = {.context = 20, .tile = 3};
  slm2_session *s = tiny_session(mute->model, &sp);
  CHECK(slm2_session_append(s, (const uint32_t[]){5}, 1, NULL, NULL) == SLM2_OK);
  slm2_generator *g = generator(s, &p);
  char trace[512];
  run_to_end(&g, s, &p, trace);
  CHECK_CASE(strcmp(trace, "a;a;a;a;a;length") == 0, trace);
  free(g), free(s);
}

int main(void) {
  scripted_backend = slm2_backend_oracle;
  scripted_backend.matmul_f32 = scripted;
  memset(bad_bytes, 0xff, SLM2_MAX_TOKEN_BYTES);
  size_t n;
  uint8_t *section = tiny_tokenizer(tokens, sizeof tokens / sizeof *tokens, &n);
  tiny_file f = tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, section, n, EOS);
  tiny_model m = tiny_load(f), mute = tiny_load(tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  m.model->header.generation.n_eos = 2;
  m.model->header.generation.eos[1] = EOS_2;
  test_text(&m, false);
  test_text(&m, true);
  test_matcher();
  test_random_stops(&m);
  test_largest_text(&m);
  test_cancel_and_error(&m);
  test_full_context(&m);
  test_refusals(&m, &mute);
  test_resume_refusals(&m);
  test_sampling(&m, SLM2_PROFILE_F32);
  test_sampling(&m, SLM2_PROFILE_Q8);
  test_without_tokenizer(&mute);
  CHECK(strcmp(slm2_finish_name(SLM2_FINISH_NONE), "none") == 0 && strcmp(slm2_finish_name(SLM2_FINISH_ERROR), "error") == 0);
  tiny_free(&m), tiny_free(&mute);
  free(section);
  return test_end("generate");
}
