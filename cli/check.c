/* cli/check.c: `slm2 check`: everything that must not change a bit, against the oracle [D8] [D22] [D23]. The oracle
 * computes first, alone: one thread, one id at a time, nothing reused. Then each way of computing gives its logits at
 * every position, and each row is compared with memcmp.
 *
 * --quick is for real geometries: two layers (a view of the model that ends there, with the final norm and the logits
 * after them: every width and every kernel of the whole, at a tenth of its time), fewer ids, and, instead of every way,
 * a set in which any two values of two axes meet once.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "model/model.h" /* the view */

static const char help[] =
  "slm2 check FILE [--quick]: computes the logits at every position in every way there is, and compares them bit by bit\n"
  "with the oracle's: every backend of this processor, 1, 2, 3 and 8 threads, 1, 7, 32 and 512 ids at a time, both\n"
  "profiles, both types of keys and values, and a timeline that is cold, reused after a rewind, or restored from a\n"
  "snapshot. Prints a table. Exit: 0 all equal, 1 one bit differs or failed, 2 bad usage, 130 cancelled.\n"
  "\n"
  "  --quick            for large files: the first two layers and the logits, 40 ids, and of all the ways a set in which\n"
  "                     any two values of two axes meet\n"
  "\n"
  "Examples:\n"
  "  slm2 check models/demo.slm2\n"
  "  slm2 check model.slm2 --quick\n";

enum { FULL_IDS = 130, QUICK_IDS = 40, QUICK_LAYERS = 2, ASIDE = 9, SHOWN = 5 };

/* A way of computing: one value of each axis. Profile and KV type come first: they are part of the result. */
enum { PROFILE, KV, BACKEND, THREADS, CHUNK, PATH, AXES };
enum { COLD, REUSED, RESTORED, PATHS };
enum { N_THREADS = 4, N_CHUNKS = 4, BACKENDS_MAX = 16, VALUES_MAX = 2 + 2 + BACKENDS_MAX + N_THREADS + N_CHUNKS + PATHS };
static const uint32_t thread_counts[N_THREADS] = {1, 2, 3, 8}, chunks[N_CHUNKS] = {1, 7, 32, 512};
static const char path_names[PATHS][12] = {"cold", "reused", "restored"};

typedef struct checker {
  slm2_model view; /* its layers may be fewer than the file's */
  const slm2_backend *backends[BACKENDS_MAX];
  slm2_threads *threads[N_THREADS];
  uint32_t counts[AXES], total; /* values of each axis, and their product */
  bool *chosen;                 /* [total] */
  uint32_t n_ids, vocab;
  uint32_t *ids;
  float *reference; /* [n_ids, vocab] of one profile and KV type */
  cli_text differences;
  uint32_t n_differences;
  slm2_error error;
} checker;

typedef struct way {
  uint32_t at[AXES];
} way;

static way way_of(const checker *c, uint32_t number) {
  way w;
  for (uint32_t axis = AXES; axis-- > 0;) {
    w.at[axis] = number % c->counts[axis];
    number /= c->counts[axis];
  }
  return w;
}

/* --- which ways ------------------------------------------------------------------ */

/* Pairs of values that w would be the first to bring together; marks them when asked to. */
static uint32_t new_pairs(const checker *c, const way *w, bool met[VALUES_MAX][VALUES_MAX], bool mark) {
  uint32_t value[AXES], first = 0, n = 0;
  for (uint32_t i = 0; i < AXES; i++) {
    value[i] = first + w->at[i];
    first += c->counts[i];
  }
  for (uint32_t i = 0; i < AXES; i++)
    for (uint32_t k = i + 1; k < AXES; k++) {
      n += !met[value[i]][value[k]];
      if (mark) met[value[i]][value[k]] = true;
    }
  return n;
}

/* Takes the way with the most new pairs until there are none; of equals the last one: its backend is the fastest. */
static void choose_pairwise(checker *c) {
  static bool met[VALUES_MAX][VALUES_MAX];
  for (;;) {
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < c->total; i++) {
      const way w = way_of(c, i);
      uint32_t n = new_pairs(c, &w, met, false);
      if (n >= most) best = i, most = n;
    }
    if (most == 0) return;
    const way w = way_of(c, best);
    (void)new_pairs(c, &w, met, true);
    c->chosen[best] = true;
  }
}

/* --- one way -------------------------------------------------------------------- */

/* Where the logits of a computation go: into the reference, or against it. */
typedef struct taking {
  checker *c;
  bool keep;
  uint32_t rows;
  bool differs;
  uint32_t position, id; /* of the first difference */
  float got;
} taking;

static slm2_status take_row(void *user, uint32_t position, const float *logits) {
  taking *t = user;
  float *row = t->c->reference + (size_t)position * t->c->vocab;
  t->rows++;
  if (t->keep) memcpy(row, logits, t->c->vocab * sizeof *row);
  else if (!t->differs && memcmp(row, logits, t->c->vocab * sizeof *row) != 0) {
    uint32_t id = 0;
    while (memcmp(row + id, logits + id, sizeof *row) == 0) id++;
    t->differs = true;
    t->position = position;
    t->id = id;
    t->got = logits[id];
  }
  return SLM2_OK;
}

/* Ids first .. end - 1 of the list, chunk at a time. */
static slm2_status feed(checker *c, slm2_session *s, uint32_t first, uint32_t end, uint32_t chunk, taking *t) {
  const slm2_run run = {.cancel = &cli_cancel, .each_logits = t == NULL ? NULL : take_row, .user = t};
  slm2_status status = SLM2_OK;
  for (uint32_t at = first; at < end && status == SLM2_OK; at += chunk)
    status = slm2_session_append(s, c->ids + at, end - at < chunk ? end - at : chunk, &run, &c->error);
  return status;
}

typedef struct room {
  void *memory;
  uint64_t bytes;
  slm2_session *session;
} room;

static slm2_status open_room(checker *c, const slm2_session_params *params, room *r) {
  slm2_plan plan;
  *r = (room){0};
  slm2_status status = slm2_session_plan(&c->view.header, params, &plan, &c->error);
  if (status == SLM2_OK) status = slm2_memory_reserve(plan.total, &r->memory, &c->error);
  if (status != SLM2_OK) return status;
  r->bytes = plan.total;
  return slm2_session_init(r->memory, r->bytes, &c->view, params, &r->session, &c->error);
}
static void close_room(room *r) { slm2_memory_release(r->memory, r->bytes); }

/* A snapshot in memory. */
static slm2_status take_bytes(void *user, const void *bytes, size_t n, slm2_error *error) {
  (void)error;
  cli_text_add(user, bytes, n);
  return SLM2_OK;
}
static slm2_status give_bytes(void *user, uint64_t offset, void *out, size_t n, slm2_error *error) {
  (void)error;
  memcpy(out, ((const cli_text *)user)->bytes + offset, n);
  return SLM2_OK;
}
static slm2_status carry_over(checker *c, const slm2_session *from, slm2_session *to) {
  cli_text bytes = {0};
  slm2_snapshot snapshot;
  slm2_status status = slm2_snapshot_write(from, NULL, &(slm2_snapshot_sink){&bytes, take_bytes}, &c->error);
  if (status == SLM2_OK)
    status = slm2_snapshot_open(&snapshot, &(slm2_snapshot_source){&bytes, bytes.n, give_bytes}, &c->error);
  if (status == SLM2_OK) status = slm2_snapshot_restore(&snapshot, to, &c->error);
  cli_text_free(&bytes);
  return status;
}

/* All ids from an empty timeline; on the way, halfway, what the path is about. */
static slm2_status compute(checker *c, const slm2_session_params *params, uint32_t chunk, uint32_t path, taking *t) {
  const uint32_t half = c->n_ids / 2;
  room first, second = {0};
  slm2_status status = open_room(c, params, &first);
  slm2_session *s = first.session;
  if (status == SLM2_OK && path == COLD) status = feed(c, s, 0, c->n_ids, chunk, t);
  else if (status == SLM2_OK) {
    status = feed(c, s, 0, half, chunk, t);
    if (status == SLM2_OK && path == REUSED) { /* other ids, forgotten again */
      status = feed(c, s, 0, ASIDE, chunk, NULL);
      if (status == SLM2_OK) status = slm2_session_rewind(s, half, &c->error);
    } else if (status == SLM2_OK) {
      status = open_room(c, params, &second);
      if (status == SLM2_OK) status = carry_over(c, s, second.session);
      s = second.session;
    }
    if (status == SLM2_OK) status = feed(c, s, half, c->n_ids, chunk, t);
  }
  close_room(&first);
  close_room(&second);
  return status;
}

static slm2_session_params params_of(const checker *c, const way *w) {
  const uint32_t chunk = chunks[w->at[CHUNK]];
  return (slm2_session_params){
    .context = c->n_ids + ASIDE,
    .tile = chunk < SLM2_TILE_MAX ? chunk : SLM2_TILE_MAX,
    .profile = (slm2_profile)w->at[PROFILE],
    .kv = (slm2_kv_type)w->at[KV],
    .backend = c->backends[w->at[BACKEND]],
    .pool = slm2_threads_pool(c->threads[w->at[THREADS]]),
  };
}

static slm2_status compute_reference(checker *c, const way *w) {
  slm2_session_params params = params_of(c, w);
  params.tile = 1;
  params.pool = NULL;
  slm2_status status = slm2_backend_find("oracle", &params.backend, &c->error);
  return status == SLM2_OK ? compute(c, &params, 1, COLD, &(taking){.c = c, .keep = true}) : status;
}

static void note_difference(checker *c, const way *w, const taking *t) {
  uint32_t got, expected;
  memcpy(&got, &t->got, sizeof got);
  memcpy(&expected, c->reference + (size_t)t->position * c->vocab + t->id, sizeof expected);
  if (c->n_differences++ < SHOWN)
    cli_text_print(&c->differences,
                   "differs: %s, kv %s, %s, threads %u, chunk %u, %s: position %u, id %u: bits %08x, oracle %08x\n",
                   slm2_profile_name((slm2_profile)w->at[PROFILE]), slm2_kv_name((slm2_kv_type)w->at[KV]),
                   slm2_backend_name(c->backends[w->at[BACKEND]]), thread_counts[w->at[THREADS]], chunks[w->at[CHUNK]],
                   path_names[w->at[PATH]], t->position, t->id, got, expected);
}

/* --- all of them --------------------------------------------------------------------- */

/* A line of the table: one profile, KV type and backend. */
typedef struct line {
  uint32_t runs, equal;
} line;

static slm2_status run_one(checker *c, uint32_t number, line *l, bool *fresh) {
  const way w = way_of(c, number);
  slm2_status status = SLM2_OK;
  if (!*fresh) status = compute_reference(c, &w);
  *fresh = true;
  if (status != SLM2_OK) return status;
  const slm2_session_params params = params_of(c, &w);
  taking t = {.c = c};
  status = compute(c, &params, chunks[w.at[CHUNK]], w.at[PATH], &t);
  l->runs++;
  if (status == SLM2_OK && !t.differs && t.rows == c->n_ids) l->equal++;
  else if (status == SLM2_OK) note_difference(c, &w, &t);
  return status;
}

static void print_line(cli_text *out, const checker *c, uint32_t number, const line *l) {
  const way w = way_of(c, number);
  cli_text_print(out, "%-8s %-4s %-12s %5u %6u%s\n", slm2_profile_name((slm2_profile)w.at[PROFILE]),
                 slm2_kv_name((slm2_kv_type)w.at[KV]), slm2_backend_name(c->backends[w.at[BACKEND]]), l->runs, l->equal,
                 l->runs == l->equal ? "" : "  DIFFERS");
}

static int run_all(checker *c) {
  const uint32_t per_backend = N_THREADS * N_CHUNKS * PATHS, per_result = per_backend * c->counts[BACKEND];
  uint32_t runs = 0, wanted = 0, done = 0;
  for (uint32_t i = 0; i < c->total; i++) wanted += c->chosen[i];
  const uint64_t start = slm2_clock_ns();
  cli_progress progress;
  cli_progress_begin(&progress);
  slm2_status status = SLM2_OK;
  line l = {0};
  bool fresh = false, printed = cli_out("profile  kv   backend       runs  equal\n", 40);
  for (uint32_t i = 0; i < c->total && status == SLM2_OK && printed; i++) {
    if (i % per_result == 0) fresh = false;
    if (c->chosen[i]) {
      status = run_one(c, i, &l, &fresh);
      cli_progress_show(&progress, "check", ++done, wanted);
    }
    if (status == SLM2_OK && (i + 1) % per_backend == 0) {
      cli_text out = {0};
      cli_progress_end(&progress);
      if (l.runs > 0) print_line(&out, c, i, &l);
      printed = l.runs == 0 || cli_out_text(&out) == CLI_OK;
      cli_text_free(&out);
      runs += l.runs;
      l = (line){0};
    }
  }
  cli_progress_end(&progress);
  if (status != SLM2_OK) return cli_fail(&c->error);
  if (c->n_differences > SHOWN) cli_text_print(&c->differences, "and %u more\n", c->n_differences - SHOWN);
  cli_text_print(&c->differences, "%s: %u runs of %u ids, %u of them differ from the oracle, %.1f s\n",
                 c->n_differences == 0 ? "ok" : "FAILED", runs, c->n_ids, c->n_differences,
                 (double)(slm2_clock_ns() - start) / 1e9);
  if (!printed || cli_out_text(&c->differences) != CLI_OK) return CLI_FAILED;
  return c->n_differences == 0 ? CLI_OK : CLI_FAILED;
}

/* --- the command ------------------------------------------------------------------------ */

static int prepare(checker *c, const cli_model *m, bool quick) {
  const slm2_config *config = &m->header->config;
  c->view = *m->model;
  if (quick && config->layers > QUICK_LAYERS) c->view.header.config.layers = QUICK_LAYERS;
  c->n_ids = quick ? QUICK_IDS : FULL_IDS;
  if (c->n_ids + ASIDE > config->max_positions)
    return cli_complain(CLI_FAILED, "check", "needs a model of at least %u positions; this one has %u", c->n_ids + ASIDE,
                        config->max_positions);
  c->vocab = config->vocab;
  c->ids = cli_alloc(c->n_ids, sizeof *c->ids);
  for (uint32_t i = 0; i < c->n_ids; i++) c->ids[i] = (uint32_t)(((uint64_t)i * i * 7919 + 104729 * (uint64_t)i + 5) % c->vocab);
  c->reference = cli_alloc((size_t)c->n_ids * c->vocab, sizeof *c->reference);
  uint32_t n = 0;
  while (n < BACKENDS_MAX && slm2_backend_at(n) != NULL) c->backends[n] = slm2_backend_at(n), n++;
  const uint32_t counts[AXES] = {2, 2, n, N_THREADS, N_CHUNKS, PATHS};
  memcpy(c->counts, counts, sizeof counts);
  c->total = 1;
  for (uint32_t i = 0; i < AXES; i++) c->total *= counts[i];
  c->chosen = cli_alloc(c->total, sizeof *c->chosen);
  if (quick) choose_pairwise(c);
  else memset(c->chosen, true, c->total);
  for (uint32_t i = 0; i < N_THREADS; i++)
    if (slm2_threads_create(thread_counts[i], &c->threads[i], &c->error) != SLM2_OK) return cli_fail(&c->error);
  return CLI_OK;
}

static void finish(checker *c) {
  for (uint32_t i = 0; i < N_THREADS; i++) slm2_threads_destroy(c->threads[i]);
  cli_text_free(&c->differences);
  free(c->chosen);
  free(c->ids);
  free(c->reference);
}

int cli_cmd_check(int argc, char **argv) {
  const char *file;
  bool quick = false;
  const cli_option options[] = {{.name = "--quick", .kind = CLI_FLAG, .target = &quick}};
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &file, names, 1);
  if (code != CLI_CONTINUE) return code;
  cli_model m = {0};
  code = cli_model_open(&m, file);
  if (code != CLI_OK) return code;
  cli_catch_interrupts();
  checker c = {0};
  code = prepare(&c, &m, quick);
  if (code == CLI_OK) code = run_all(&c);
  finish(&c);
  cli_model_close(&m);
  return code;
}
