/* tests/unit/test_snapshot.c: a session saved and restored goes on bit for bit like one that never stopped: prompts,
 * answers, random words [D20], the committed logits [D23]; and the bytes are those of docs/FORMAT.md. What is refused is
 * test_snapshot_hostile.c's matter. */
#include "tests/unit/snapshot_file.h"

#define N_IDS 10
static const uint32_t ids[N_IDS] = {7, 1, 63, 0, 7, 7, 20, 9, 33, 2};

/* --- the committed logits [D23] ----------------------------------------------------- */

static char golden[N_TINY][2][2][N_IDS][65];

static void read_goldens(void) {
  char *text = test_read_file("tests/golden/tiny_forward.txt", NULL);
  int n = 0;
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    char name[16], profile[8], kv[8], digest[80];
    int position;
    if (line[0] == '#' || sscanf(line, "%15s %7s %7s %d %79s", name, profile, kv, &position, digest) != 5) continue;
    for (int i = 0; i < N_TINY; i++)
      if (strcmp(name, tiny_specs[i].name) == 0 && position < N_IDS && ++n)
        memcpy(golden[i][strcmp(profile, "q8") == 0][strcmp(kv, "f16") == 0][position], digest, 65);
  }
  CHECK(n == N_TINY * 2 * 2 * N_IDS);
  free(text);
}

typedef struct way {
  int model;
  slm2_profile profile;
  slm2_kv_type kv;
  uint32_t context, tile;
} way;

static slm2_session *session(const tiny_model *m, const way *w) {
  slm2_session_params params = {.context = w->context, .tile = w->tile, .profile = w->profile, .kv = w->kv};
  return tiny_session(m->model, &params);
}

static void check_row(const way *w, uint32_t position, const float *logits, const char *path) {
  uint32_t vocab = tiny_specs[w->model].config.vocab;
  uint8_t bytes[4 * 320], sum[32];
  char hex[65];
  for (uint32_t i = 0; i < vocab; i++) slm2_store_f32(bytes + 4 * i, logits[i]);
  slm2_sha256_of(bytes, 4 * vocab, sum);
  slm2_hex(sum, 32, hex);
  CHECK_CASE(strcmp(hex, golden[w->model][w->profile][w->kv][position]) == 0, path);
}

typedef struct check {
  const way *w;
  const char *path;
  uint32_t n;
} check;
static slm2_status check_logits(void *user, uint32_t position, const float *logits) {
  check *c = user;
  check_row(c->w, position, logits, c->path);
  c->n++;
  return SLM2_OK;
}

/* The rest of the ids; every position's logits are the committed ones. */
static void go_on(slm2_session *s, const way *w, const char *path) {
  check c = {w, path, 0};
  slm2_run run = {.each_logits = check_logits, .user = &c};
  uint32_t length = slm2_session_length(s);
  CHECK_CASE(memcmp(slm2_session_ids(s), ids, 4 * length) == 0, path);
  CHECK_CASE((slm2_session_logits(s) != NULL) == (length > 0), path);
  if (length > 0) check_row(w, length - 1, slm2_session_logits(s), path);
  if (length < N_IDS) CHECK_CASE(slm2_session_append(s, ids + length, N_IDS - length, &run, NULL) == SLM2_OK, path);
  CHECK_CASE(c.n == N_IDS - length && slm2_session_length(s) == N_IDS, path);
}

static void go_on_restored(const slm2_session *s, const tiny_model *m, const way *w, const char *path) {
  slm2_session *t = session(m, w);
  slm2_snapshot p;
  slm2_error error = {0};
  blob b = blob_of(s, NULL);
  CHECK_CASE(blob_restore(&b, t, &p, &error) == SLM2_OK, error.message);
  blob again = blob_of(t, NULL); /* whatever the context and tile, a timeline has one snapshot */
  CHECK_CASE(again.n == b.n && memcmp(again.bytes, b.bytes, (size_t)b.n) == 0, path);
  go_on(t, w, path);
  free(b.bytes), free(again.bytes), free(t);
}

/* Cold, reused, restored and after a cancel, at every length: before, at and after the borders of a tile. */
static void test_paths(const tiny_model *m, const way *small, const way *large) {
  for (uint32_t length = 0; length <= N_IDS; length++) {
    slm2_session *s = session(m, small);
    if (length > 0) CHECK(slm2_session_append(s, ids, length, NULL, NULL) == SLM2_OK);
    go_on_restored(s, m, small, "cold, restored");
    go_on_restored(s, m, large, "cold, restored with a larger context");
    uint32_t other[2] = {5, 5}, reused;
    if (length + 2 <= N_IDS) {
      CHECK(slm2_session_append(s, other, 2, NULL, NULL) == SLM2_OK);
      if (length > 0) CHECK(slm2_session_sync(s, ids, length, NULL, &reused, NULL) == SLM2_OK && reused == length - 1);
      else CHECK(slm2_session_rewind(s, 0, NULL) == SLM2_OK);
      go_on_restored(s, m, large, "reused, restored");
    }
    slm2_cancel stop;
    atomic_init(&stop, 1);
    slm2_run run = {.cancel = &stop};
    if (length < N_IDS)
      CHECK(slm2_session_append(s, ids + length, N_IDS - length, &run, NULL) == SLM2_E_CANCELLED);
    go_on_restored(s, m, large, "after a cancel, restored");
    go_on(s, small, "the session that was saved");
    free(s);
  }
}

/* Restoring over a longer and a shorter timeline; what was there before does not shine through. */
static void test_over_another(const tiny_model *m, const way *w) {
  slm2_session *s = session(m, w), *t = session(m, w);
  slm2_snapshot p;
  uint32_t reused;
  CHECK(slm2_session_append(s, ids, 4, NULL, NULL) == SLM2_OK);
  CHECK(slm2_session_append(t, (const uint32_t[]){9, 9, 9, 9, 9, 9, 9}, 7, NULL, NULL) == SLM2_OK);
  blob four = blob_of(s, NULL), seven = blob_of(t, NULL);
  CHECK(blob_restore(&four, t, &p, NULL) == SLM2_OK && slm2_session_length(t) == 4);
  CHECK(slm2_session_sync(t, ids, 7, NULL, &reused, NULL) == SLM2_OK && reused == 4);
  check_row(w, 6, slm2_session_logits(t), "over a longer one");
  CHECK(blob_restore(&seven, s, &p, NULL) == SLM2_OK && slm2_session_length(s) == 7);
  blob b = blob_of(s, NULL);
  CHECK(b.n == seven.n && memcmp(b.bytes, seven.bytes, (size_t)b.n) == 0);
  free(b.bytes), free(four.bytes), free(seven.bytes), free(s), free(t);
}

/* --- the bytes --------------------------------------------------------------------- */

/* A snapshot put together after docs/FORMAT.md, value by value. */
static blob expected_blob(const tiny_model *m, const slm2_session *s, const char *attachment) {
  const slm2_config *c = &m->file.header.config;
  const size_t size = s->params.kv == SLM2_KV_F16 ? 2 : 4, n_kv = (size_t)2 * c->layers * c->kv_heads * s->length * c->head_dim;
  const size_t logits = s->has_logits ? 4 * (size_t)c->vocab : 0;
  const size_t front = HEAD_BYTES + 4 * (size_t)s->length + logits + strlen(attachment);
  blob b = NO_BLOB;
  b.n = front + 32 + n_kv * size;
  b.bytes = calloc(1, (size_t)b.n);
  memcpy(b.bytes, "SLM2SNAP", 8);
  const uint32_t numbers[] = {1, s->params.profile, s->params.kv, c->layers, c->kv_heads, c->head_dim, c->vocab, s->length,
                              s->has_logits, 0, UINT32_MAX};
  for (size_t i = 0; i < 11; i++) slm2_store_u32(b.bytes + 8 + 4 * i, numbers[i]);
  slm2_store_u64(b.bytes + AT_ATTACHMENT, strlen(attachment));
  slm2_sha256_of(m->file.bytes + 8, (size_t)m->file.header.header_bytes, b.bytes + AT_MODEL);
  slm2_section t;
  const uint8_t *tokenizer = tiny_section(&m->file, "tokenizer", &t);
  slm2_sha256_of(tokenizer, (size_t)t.bytes, b.bytes + AT_TOKENIZER);
  for (uint32_t i = 0; i < s->length; i++) slm2_store_u32(b.bytes + HEAD_BYTES + 4 * i, s->ids[i]);
  for (uint32_t i = 0; 4 * i < logits; i++) slm2_store_f32(b.bytes + HEAD_BYTES + 4 * (s->length + i), s->logits[i]);
  memcpy(b.bytes + front - strlen(attachment), attachment, strlen(attachment));
  uint8_t *at = b.bytes + front + 32;
  for (int half = 0; half < 2; half++)
    for (uint32_t layer = 0; layer < c->layers; layer++)
      for (uint32_t head = 0; head < c->kv_heads; head++)
        for (uint32_t position = 0; position < s->length; position++)
          for (uint32_t d = 0; d < c->head_dim; d++, at += size) {
            size_t i = (((size_t)layer * c->kv_heads + head) * s->params.context + position) * c->head_dim + d;
            const void *block = half == 0 ? s->forward.kv.keys : s->forward.kv.values;
            if (size == 2) slm2_store_u16(at, ((const uint16_t *)block)[i]);
            else slm2_store_f32(at, ((const float *)block)[i]);
          }
  blob_seal(&b);
  return b;
}

static void test_bytes(const tiny_model *m, const way *w) {
  for (uint32_t length = 0; length <= 9; length += 3)
    for (int with_logits = 0; with_logits < 2; with_logits++) {
      slm2_session *s = session(m, w);
      slm2_run run = {.no_logits = !with_logits};
      if (length > 0) CHECK(slm2_session_append(s, ids, length, &run, NULL) == SLM2_OK);
      const char *attachment = length == 6 ? "some text" : "";
      slm2_snapshot_extras extras = {.attachment = attachment, .attachment_bytes = strlen(attachment)};
      blob b = blob_of(s, &extras), expected = expected_blob(m, s, attachment);
      CHECK(b.n == expected.n && memcmp(b.bytes, expected.bytes, (size_t)b.n) == 0);
      free(b.bytes), free(expected.bytes), free(s);
    }
}

/* Nothing beyond a shortened timeline gets into the file, and logits that are not there stay away. */
static void test_rewound(const tiny_model *m, const way *w) {
  slm2_session *s = session(m, w), *fresh = session(m, w), *t = session(m, w);
  slm2_run run = {.no_logits = true};
  slm2_snapshot p;
  CHECK(slm2_session_append(s, ids, 9, NULL, NULL) == SLM2_OK && slm2_session_rewind(s, 5, NULL) == SLM2_OK);
  CHECK(slm2_session_append(fresh, ids, 5, &run, NULL) == SLM2_OK);
  blob a = blob_of(s, NULL), b = blob_of(fresh, NULL);
  CHECK(a.n == b.n && memcmp(a.bytes, b.bytes, (size_t)a.n) == 0);
  CHECK(blob_restore(&a, t, &p, NULL) == SLM2_OK);
  CHECK(!p.has_logits && slm2_session_logits(t) == NULL && slm2_session_length(t) == 5);
  CHECK(slm2_session_append(t, ids + 5, 5, NULL, NULL) == SLM2_OK);
  check_row(w, 9, slm2_session_logits(t), "rewound, restored");
  free(a.bytes), free(b.bytes), free(s), free(fresh), free(t);
}

static void test_attachment(const tiny_model *m, const way *w) {
  static const uint64_t sizes[] = {0, 1, 2560, 4095, 4096, 4097, 10000};
  slm2_session *s = session(m, w), *t = session(m, w);
  slm2_error error;
  CHECK(slm2_session_append(s, ids, 3, NULL, NULL) == SLM2_OK);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uint8_t *text = malloc((size_t)sizes[i] + 1), *out = malloc((size_t)sizes[i] + 1);
    uint64_t state = i;
    for (uint64_t k = 0; k < sizes[i]; k++) text[k] = (uint8_t)test_random(&state);
    slm2_snapshot_extras extras = {.attachment = text, .attachment_bytes = sizes[i]};
    blob b = blob_of(s, &extras);
    slm2_snapshot p;
    CHECK(blob_restore(&b, t, &p, NULL) == SLM2_OK && p.attachment_bytes == sizes[i]);
    CHECK(slm2_snapshot_attachment(&p, out, sizes[i], NULL) == SLM2_OK && memcmp(text, out, (size_t)sizes[i]) == 0);
    if (sizes[i] > 0) CHECK(slm2_snapshot_attachment(&p, out, sizes[i] - 1, &error) == SLM2_E_MEMORY);
    free(text), free(out), free(b.bytes);
  }
  blob b = NO_BLOB;
  slm2_snapshot_sink sink = {&b, blob_write};
  slm2_snapshot_extras extras = {.attachment = ids, .attachment_bytes = (uint64_t)SLM2_SNAPSHOT_MAX_ATTACHMENT + 1};
  CHECK(slm2_snapshot_write(s, &extras, &sink, &error) == SLM2_E_ARGUMENT && b.calls == 0);
  CHECK(strcmp(error.name, "attachment") == 0);
  CHECK(strstr(error.message, "1073741825") != NULL && strstr(error.message, "1073741824") != NULL);
  free(s), free(t);
}

/* --- answers ------------------------------------------------------------------------ */

enum { EOS = 300, THINK, UNTHINK };
static const tiny_token tokens[] = {{256, "ab", 0}, {257, "\xf0\x9f", 0}, {EOS, "<|end|>", 2}, {THINK, "<think>", 1},
                                    {UNTHINK, "</think>", 1}};
#define N_STEPS 14

static slm2_generator *generator(slm2_session *s, const slm2_generate_params *params, const slm2_generator_state *state) {
  slm2_generator *g = NULL;
  slm2_error error;
  void *mem = tiny_memory(slm2_generator_bytes());
  slm2_status status = state == NULL ? slm2_generator_init(mem, slm2_generator_bytes(), s, params, &g, &error)
                                     : slm2_generator_resume(mem, slm2_generator_bytes(), s, params, state, &g, &error);
  if (status != SLM2_OK) {
    printf("FAIL generator: %s: %s\n", error.name, error.message);
    exit(1);
  }
  return g;
}

static bool same_event(const slm2_token_event *a, const slm2_token_event *b) {
  return a->id == b->id && a->position == b->position && slm2_float_bits(a->logprob) == slm2_float_bits(b->logprob) &&
         a->channel == b->channel && a->finish == b->finish && a->n_text == b->n_text && memcmp(a->text, b->text, a->n_text) == 0;
}

/* Saved after every number of steps, restored elsewhere, resumed: event by event what would have come. */
static void test_answer(const tiny_model *m, const slm2_session_params *sp, const slm2_generate_params *gp) {
  static slm2_token_event whole[N_STEPS];
  slm2_session_params larger = *sp;
  larger.context += 30;
  larger.tile = 1;
  uint32_t n = 0;
  for (uint32_t stop = 0; stop == 0 || stop < n; stop++) {
    slm2_session *s = tiny_session(m->model, sp), *t = tiny_session(m->model, &larger);
    CHECK(slm2_session_append(s, (const uint32_t[]){5, 9, 100, 7}, 4, NULL, NULL) == SLM2_OK);
    slm2_generator *g = generator(s, gp, NULL);
    slm2_token_event e;
    for (uint32_t i = 0; i < stop; i++) CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK && same_event(&e, &whole[i]));
    slm2_snapshot_extras extras = {.answer = g};
    slm2_snapshot p;
    slm2_error error = {0};
    blob b = blob_of(s, &extras);
    CHECK_CASE(blob_restore(&b, t, &p, &error) == SLM2_OK, error.message);
    CHECK(p.has_answer && p.answer.seed == gp->sampler.seed && p.answer.count == stop);
    CHECK(p.answer.words_used == slm2_generator_words_used(g) && p.answer.words_used == (gp->sampler.temperature > 0 ? stop : 0));
    slm2_generator *h = generator(t, gp, &p.answer);
    for (uint32_t i = stop; i == stop || e.finish == SLM2_FINISH_NONE; i++) {
      slm2_token_event f;
      CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK && slm2_generator_next(h, NULL, &f, NULL) == SLM2_OK);
      CHECK(same_event(&e, &f) && slm2_generator_words_used(g) == slm2_generator_words_used(h));
      if (stop == 0) whole[n++] = e;
    }
    CHECK(slm2_generator_count(h) == n && slm2_session_length(t) == slm2_session_length(s));
    blob end = blob_of(s, NULL), other = blob_of(t, NULL);
    CHECK(end.n == other.n && memcmp(end.bytes, other.bytes, (size_t)end.n) == 0);
    free(b.bytes), free(end.bytes), free(other.bytes), free(g), free(h), free(s), free(t);
  }
  CHECK(n > 3);
}

/* An answer that has ended, or that is not this session's, cannot be saved. */
static void test_no_answer(const tiny_model *m, const slm2_session_params *sp) {
  const slm2_generate_params gp = {.sampler = {.top_p = 1, .repeat_penalty = 1}, .max_tokens = 1};
  slm2_session *s = tiny_session(m->model, sp), *t = tiny_session(m->model, sp);
  CHECK(slm2_session_append(s, ids, 4, NULL, NULL) == SLM2_OK && slm2_session_append(t, ids, 4, NULL, NULL) == SLM2_OK);
  slm2_generator *g = generator(s, &gp, NULL);
  slm2_snapshot_extras extras = {.answer = g};
  blob b = NO_BLOB;
  slm2_snapshot_sink sink = {&b, blob_write};
  slm2_token_event e;
  slm2_error error;
  CHECK(slm2_snapshot_write(t, &extras, &sink, &error) == SLM2_E_ARGUMENT && strstr(error.message, "another session") != NULL);
  CHECK(slm2_session_append(s, ids, 1, NULL, NULL) == SLM2_OK);
  CHECK(slm2_snapshot_write(s, &extras, &sink, &error) == SLM2_E_ARGUMENT && strstr(error.message, "changed") != NULL);
  CHECK(slm2_session_rewind(s, 4, NULL) == SLM2_OK); /* the right length, but no logits */
  CHECK(slm2_snapshot_write(s, &extras, &sink, &error) == SLM2_E_ARGUMENT && strstr(error.message, "changed") != NULL);
  free(g);
  extras.answer = g = generator(t, &gp, NULL);
  CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK && e.finish == SLM2_FINISH_LENGTH);
  CHECK(slm2_snapshot_write(t, &extras, &sink, &error) == SLM2_E_ARGUMENT && strstr(error.message, "ended") != NULL);
  CHECK(b.calls == 0 && strcmp(error.name, "answer") == 0);
  free(g), free(s), free(t);
}

static void test_answers(void) {
  size_t n;
  uint8_t *section = tiny_tokenizer(tokens, sizeof tokens / sizeof *tokens, &n);
  tiny_model m = tiny_load(tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, section, n, EOS));
  const slm2_generate_params greedy = {.sampler = {.temperature = 0, .top_p = 1, .repeat_penalty = 1.2f},
                                       .max_tokens = N_STEPS, .ignore_eos = true};
  const slm2_generate_params sampled = {.sampler = {.temperature = 0.9f, .top_k = 40, .top_p = 0.95f, .min_p = 0.01f,
                                                    .repeat_penalty = 1.3f, .seed = UINT64_MAX - 5},
                                        .max_tokens = N_STEPS, .ignore_eos = true, .n_stop = 1, .stop = {"never"},
                                        .stop_bytes = {5}};
  for (int profile = 0; profile < 2; profile++)
    for (int kv = 0; kv < 2; kv++) {
      const slm2_session_params sp = {.context = 20, .tile = 3, .profile = (slm2_profile)profile, .kv = (slm2_kv_type)kv};
      test_answer(&m, &sp, &greedy);
      test_answer(&m, &sp, &sampled);
      if (profile == 0 && kv == 0) test_no_answer(&m, &sp);
    }
  free(section);
  tiny_free(&m);
}

int main(void) {
  read_goldens();
  for (int model = 0; model < N_TINY; model++) {
    tiny_model m = tiny_load(tiny_build(&tiny_specs[model], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
    for (int profile = 0; profile < 2; profile++)
      for (int kv = 0; kv < 2; kv++) {
        const way small = {model, (slm2_profile)profile, (slm2_kv_type)kv, N_IDS, 4};
        const way large = {model, (slm2_profile)profile, (slm2_kv_type)kv, 37, 3};
        test_paths(&m, &small, &large);
        test_over_another(&m, &small);
        test_bytes(&m, &large);
        test_rewound(&m, &small);
        if (model == 0) test_attachment(&m, &small);
      }
    tiny_free(&m);
  }
  test_answers();
  return test_end("snapshot");
}
