/* cli/bench.c: `slm2 bench`: speed and memory of one model on this machine, beside what the machine could do. The order
 * of the steps matters: peak memory is read before anything but the model and its session has taken any, and the
 * machine is measured between the repeats of the model, because shared machines change from second to second. */
#include "cli/bench.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
  "slm2 bench FILE: how fast this machine runs a model: prompt and answer speed, time to the first token, memory, and\n"
  "which share of the memory's own speed that is. Every figure is the median of its repeats.\n"
  "\n"
  "  --quick            a shorter run: less of everything, 3 repeats\n"
  "  --prefill LIST     prompt lengths (default 128,512,2048, as far as the context allows)\n"
  "  --decode LIST      tokens before the answer (default 0,512,4096, as far as the context allows)\n"
  "  --tokens N         tokens of an answer (default 32)\n"
  "  --repeats N        3 to 99 (default 5)\n"
  "  --json             all figures as one JSON object\n"
  "  --context N        positions in the context (default: what the two lists need)\n" CLI_COMPUTING_HELP
  "\n"
  "A token of an answer costs reading the weights and the keys and values so far, once each. The bound is how fast the same\n"
  "number of threads read this much when they do nothing else, just before or after: the best of several passes over the\n"
  "file and over other memory.\n"
  "First tokens: \"cold\" reads the file from the disk (where the system can be made to forget it), \"warm\" finds it in\n"
  "memory and maps it, both from opening the file on; \"again\" is a prompt of one token when all is open.\n"
  "Subnormal numbers have been timed on x86-64 only; nobody has tried arm64 yet.\n"
  "\n"
  "Examples:\n"
  "  slm2 bench models/demo.slm2 --quick\n"
  "  slm2 bench m.slm2 --threads 1 --kv f16 --decode 0,4096,16384 --json\n";

#define MEMORY_BYTES ((uint64_t)512 << 20) /* larger than caches */
#define QUICK_MEMORY_BYTES ((uint64_t)128 << 20)
#define MIN_REPEATS 3u

typedef struct bench {
  const bench_options *o;
  bench_result *r;
  cli_model model;
  cli_session session;
  uint32_t *ids; /* [context] arbitrary */
  cli_progress progress;
  const char *phase;
  slm2_tlb_counter *tlb;
} bench;

double bench_median(double *values, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    double x = values[i];
    uint32_t k = i;
    for (; k > 0 && values[k - 1] > x; k--) values[k] = values[k - 1];
    values[k] = x;
  }
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* --- what to measure ----------------------------------------------------------- */

/* Ascending, each once. */
static void list_add(bench_list *list, uint32_t x) {
  uint32_t k = 0;
  while (k < list->n && list->at[k] < x) k++;
  if (k < list->n && list->at[k] == x) return;
  for (uint32_t i = list->n++; i > k; i--) list->at[i] = list->at[i - 1];
  list->at[k] = x;
}

/* The lengths given, from low to limit, or those of the default that are below limit, else limit itself. */
static int list_make(bench_list *list, const char *what, const char *text, const bench_list *defaults, uint32_t low,
                     uint32_t limit) {
  for (uint32_t i = 0; text == NULL && i < defaults->n; i++)
    list_add(list, defaults->at[i] < limit ? defaults->at[i] : limit);
  for (const char *at = text; at != NULL;) {
    size_t n = strcspn(at, ",");
    uint64_t x;
    if (!cli_number(at, n, low, UINT32_MAX, &x))
      return cli_complain(CLI_USAGE, what, "\"%.*s\" is not a number of tokens from %u up; write a list like 128,512",
                          (int)(n < 100 ? n : 100), at, low);
    if (x > limit)
      return cli_complain(CLI_USAGE, what, "%u tokens do not fit: this context allows %u", (uint32_t)x, limit);
    if (list->n == BENCH_POINTS) return cli_complain(CLI_USAGE, what, "more than %u lengths", BENCH_POINTS);
    list_add(list, (uint32_t)x);
    at = at[n] == 0 ? NULL : at + n + 1;
  }
  return CLI_OK;
}

static int make_plan(const bench_options *o, const slm2_header *header, bench_result *r) {
  static const bench_list prefill = {{128, 512, 2048}, 3}, decode = {{0, 512, 4096}, 3};
  static const bench_list quick_prefill = {{128}, 1}, quick_decode = {{0, 512}, 2};
  uint32_t limit = header->config.max_positions;
  int code = CLI_OK;
  if (o->setup.context != 0) code = cli_context(header, &o->setup, &limit);
  r->repeats = o->repeats != 0 ? o->repeats : o->quick ? MIN_REPEATS : 5;
  r->tokens = o->tokens != 0 ? o->tokens : o->quick ? 8 : 32;
  if (code == CLI_OK && r->tokens > limit && o->tokens != 0)
    code = cli_complain(CLI_USAGE, "--tokens", "%u tokens do not fit: this context allows %u", r->tokens, limit);
  if (r->tokens > limit) r->tokens = limit;
  if (code == CLI_OK) code = list_make(&r->prefill, "--prefill", o->prefill, o->quick ? &quick_prefill : &prefill, 1, limit);
  if (code == CLI_OK)
    code = list_make(&r->decode, "--decode", o->decode, o->quick ? &quick_decode : &decode, 0, limit - r->tokens);
  if (code != CLI_OK) return code;
  uint32_t most = r->prefill.at[r->prefill.n - 1], last = r->decode.at[r->decode.n - 1] + r->tokens;
  r->context = o->setup.context != 0 ? limit : most > last ? most : last;
  return CLI_OK;
}

/* What a token reads of the file: all but the embedding when the logits have a matrix of their own. */
static uint64_t weight_bytes(const slm2_header *header) {
  slm2_section embedding;
  uint64_t all = slm2_tensor_bytes(header);
  if (header->config.tied || slm2_section_get(header, 0, &embedding) != SLM2_OK) return all;
  return all - embedding.bytes;
}

/* Keys and values read by one token at position. */
static double kv_bytes(const bench *b, double position) {
  const slm2_config *c = &b->model.header->config;
  double width = b->o->setup.kv == SLM2_KV_F16 ? 2 : 4;
  return 2.0 * c->layers * c->kv_heads * c->head_dim * width * (position + 1);
}

/* --- steps ----------------------------------------------------------------------- */

static void show_tiles(void *user, uint32_t done, uint32_t total) {
  bench *b = user;
  cli_progress_show(&b->progress, b->phase, done, total);
}

static int append(bench *b, const uint32_t *ids, uint32_t n, bool no_logits) {
  slm2_error error = {0};
  const slm2_run run = {.cancel = &cli_cancel, .progress = show_tiles, .user = b, .no_logits = no_logits};
  return slm2_session_append(b->session.session, ids, n, &run, &error) == SLM2_OK ? CLI_OK : cli_fail(&error);
}

static int rewind_to(bench *b, uint32_t length) {
  slm2_error error = {0};
  return slm2_session_rewind(b->session.session, length, &error) == SLM2_OK ? CLI_OK : cli_fail(&error);
}

static uint32_t best(const bench *b) {
  const float *logits = slm2_session_logits(b->session.session);
  const uint32_t n = b->model.header->config.vocab;
  float most = logits[0];
  uint32_t top = 0;
  for (uint32_t i = 1; i < n; i++)
    if (logits[i] > most) most = logits[top = i];
  return top;
}

static void close_model(bench *b) {
  if (b->session.memory != NULL) cli_session_close(&b->session);
  if (b->model.model != NULL) cli_model_close(&b->model);
}

/* From a path to a first token; the model and session stay open. */
static int open_and_answer(bench *b, double *load, double *first) {
  close_model(b);
  uint64_t start = slm2_clock_ns();
  int code = cli_model_open(&b->model, b->o->file);
  if (code == CLI_OK) code = cli_session_open(&b->session, &b->model, &b->o->setup, b->r->context);
  *load = cli_ms(slm2_clock_ns() - start);
  if (code == CLI_OK) code = append(b, b->ids, 1, false);
  if (code == CLI_OK) (void)best(b);
  *first = cli_ms(slm2_clock_ns() - start);
  return code;
}

static int measure_first_token(bench *b) {
  bench_result *r = b->r;
  double cold[BENCH_REPEATS], load[BENCH_REPEATS], warm[BENCH_REPEATS], again[BENCH_REPEATS];
  int code = CLI_OK;
  r->cold = true;
  for (uint32_t i = 0; i < r->repeats && r->cold && code == CLI_OK; i++) {
    close_model(b);
    r->cold = slm2_forget_file(b->o->file);
    if (r->cold) code = open_and_answer(b, &load[i], &cold[i]);
  }
  for (uint32_t i = 0; i < r->repeats && code == CLI_OK; i++) code = open_and_answer(b, &load[i], &warm[i]);
  for (uint32_t i = 0; i < r->repeats && code == CLI_OK; i++) {
    uint64_t start = slm2_clock_ns();
    code = rewind_to(b, 0);
    if (code == CLI_OK) code = append(b, b->ids, 1, false);
    if (code == CLI_OK) (void)best(b);
    again[i] = cli_ms(slm2_clock_ns() - start);
  }
  if (code != CLI_OK) return code;
  r->first_cold_ms = r->cold ? bench_median(cold, r->repeats) : 0;
  r->load_ms = bench_median(load, r->repeats);
  r->first_warm_ms = bench_median(warm, r->repeats);
  r->first_again_ms = bench_median(again, r->repeats);
  return CLI_OK;
}

static int measure_prefill(bench *b) {
  bench_result *r = b->r;
  double rates[BENCH_REPEATS];
  b->phase = "prefill";
  for (uint32_t k = 0; k < r->prefill.n; k++) {
    for (uint32_t i = 0; i < r->repeats; i++) {
      int code = rewind_to(b, 0);
      uint64_t start = slm2_clock_ns();
      if (code == CLI_OK) code = append(b, b->ids, r->prefill.at[k], false);
      if (code != CLI_OK) return code;
      rates[i] = cli_rate(r->prefill.at[k], slm2_clock_ns() - start);
    }
    r->prefill_rate[k] = bench_median(rates, r->repeats);
  }
  return CLI_OK;
}

/* r->tokens tokens, each the best after the one before. */
static int decode(bench *b, uint32_t from, double *rate) {
  int code = rewind_to(b, from);
  uint32_t id = b->ids[from];
  uint64_t start = slm2_clock_ns();
  for (uint32_t i = 0; i < b->r->tokens && code == CLI_OK; i++) {
    code = append(b, &id, 1, false);
    if (code == CLI_OK) id = best(b);
  }
  *rate = cli_rate(b->r->tokens, slm2_clock_ns() - start);
  return code;
}

/* Fills the longest context asked for, so that all memory that ever is needed is taken. */
static int measure_memory(bench *b) {
  bench_result *r = b->r;
  uint32_t from = r->decode.at[r->decode.n - 1], length = slm2_session_length(b->session.session);
  double rate;
  int code = CLI_OK;
  b->phase = "context";
  if (from < length) length = from;
  code = rewind_to(b, length);
  if (code == CLI_OK && from > length) code = append(b, b->ids + length, from - length, true);
  if (code == CLI_OK) code = decode(b, from, &rate);
  r->usage = slm2_usage_now();
  r->index_bytes = b->model.memory_bytes;
  r->session_bytes = b->session.plan.total;
  return code;
}

/* From the longest context down: what is before a shorter one stays. Reading memory and decoding take turns. */
static int measure_decode(bench *b, const bench_memory *memory) {
  bench_result *r = b->r;
  double rates[BENCH_REPEATS], reads[BENCH_REPEATS], shares[BENCH_REPEATS];
  uint64_t faults = 0, misses = 0, before = 0, after = 0, n = 0;
  r->tlb_counted = b->tlb != NULL;
  for (uint32_t k = r->decode.n; k-- > 0;) {
    double bytes = (double)r->weight_bytes + kv_bytes(b, r->decode.at[k] + (r->tokens - 1) / 2.0);
    double read = bench_memory_read(memory, b->session.threads);
    for (uint32_t i = 0; i < r->repeats; i++) {
      cli_progress_show(&b->progress, "decode", (r->decode.n - 1 - k) * r->repeats + i, r->decode.n * r->repeats);
      slm2_usage usage = slm2_usage_now();
      r->tlb_counted = r->tlb_counted && slm2_tlb_read(b->tlb, &before);
      int code = decode(b, r->decode.at[k], &rates[i]);
      if (code != CLI_OK) return code;
      r->tlb_counted = r->tlb_counted && slm2_tlb_read(b->tlb, &after);
      faults += slm2_usage_now().minor_faults - usage.minor_faults;
      misses += after - before;
      n += r->tokens;
      double next = bench_memory_read(memory, b->session.threads);
      reads[i] = read > next ? read : next;
      shares[i] = rates[i] * bytes / reads[i];
      read = next;
    }
    r->decode_at[k] = (bench_decode){
      .tokens_per_second = bench_median(rates, r->repeats),
      .bytes_per_token = bytes,
      .bytes_per_second = bench_median(reads, r->repeats),
      .share = bench_median(shares, r->repeats),
    };
  }
  r->faults_per_token = (double)faults / (double)n;
  r->tlb_per_token = r->tlb_counted ? (double)misses / (double)n : 0.0;
  return CLI_OK;
}

static int measure(bench *b) {
  const bench_options *o = b->o;
  bench_result *r = b->r;
  b->phase = "load";
  int code = cli_model_open(&b->model, o->file);
  if (code == CLI_OK) code = make_plan(o, b->model.header, r);
  if (code != CLI_OK) return code;
  memcpy(r->identity, b->model.identity, sizeof r->identity);
  r->file_bytes = b->model.file.n;
  r->weight_bytes = weight_bytes(b->model.header);
  uint32_t vocab = b->model.header->config.vocab;
  b->ids = cli_alloc(r->context, sizeof *b->ids);
  for (uint32_t i = 0; i < r->context; i++) b->ids[i] = (uint32_t)((i + 1) * (uint64_t)2654435761 % vocab);
  code = measure_first_token(b);
  if (code == CLI_OK) code = measure_prefill(b);
  if (code == CLI_OK) code = measure_memory(b);
  if (code != CLI_OK) return code;
  bench_memory memory;
  code = bench_memory_open(&memory, &b->model.file, o->quick ? QUICK_MEMORY_BYTES : MEMORY_BYTES, b->session.threads);
  if (code != CLI_OK) return code;
  code = measure_decode(b, &memory);
  if (code == CLI_OK) code = bench_measure_bandwidth(o, r, &memory);
  bench_memory_close(&memory);
  if (code == CLI_OK) code = bench_measure_subnormal(o, r);
  return code;
}

int cli_cmd_bench(int argc, char **argv) {
  bench_options o = {.setup = CLI_SETUP_DEFAULTS};
  const cli_option options[] = {
    {.name = "--quick", .kind = CLI_FLAG, .target = &o.quick},
    {.name = "--json", .kind = CLI_FLAG, .target = &o.json},
    {.name = "--prefill", .kind = CLI_STRING, .target = &o.prefill},
    {.name = "--decode", .kind = CLI_STRING, .target = &o.decode},
    {.name = "--tokens", .kind = CLI_U32, .target = &o.tokens, .low = 1, .high = UINT32_MAX},
    {.name = "--repeats", .kind = CLI_U32, .target = &o.repeats, .low = MIN_REPEATS, .high = BENCH_REPEATS},
    CLI_SETUP_OPTIONS(&o.setup),
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &o.file, names, 1);
  if (code != CLI_CONTINUE) return code;
  code = cli_setup_finish(&o.setup);
  if (code != CLI_OK) return code;
  bench_result r = {0};
  bench b = {.o = &o, .r = &r, .tlb = slm2_tlb_open()}; /* before any thread is made */
  cli_catch_interrupts();
  cli_progress_begin(&b.progress);
  code = measure(&b);
  cli_progress_end(&b.progress);
  close_model(&b);
  free(b.ids);
  slm2_tlb_close(b.tlb);
  if (code != CLI_OK) return code;
  cli_text t = {0};
  if (o.json) bench_print_json(&t, &o, &r);
  else bench_print_table(&t, &o, &r);
  code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}
