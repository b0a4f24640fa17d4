/* cli/plan.c: `slm2 plan`: the memory equation, term by term, before anything is loaded. */
#include "cli/cli.h"

#include <stdio.h>

static const char help[] =
  "slm2 plan FILE --context N: the memory that answering with N positions takes, term by term, before anything is loaded.\n"
  "\n"
  "  --context N        positions (default: the model's, at most 4096)\n"
  "  --kv f32|f16       storage of keys and values (default f32)\n"
  "  --profile f32|q8   numeric profile (default q8)\n"
  "  --chunk N          prompt tokens computed side by side (default and at most 128)\n"
  "  --speculate HOW    auto (default), off, or 1 to 15: tokens of an answer that may be computed ahead\n"
  "  --threads N        threads, each with scores of its own (default: this process's cores)\n"
  "  --pages P          a budget of P WebAssembly pages of 65,536 bytes, the file included: the largest context that fits\n"
  "  --json             the terms as one JSON object, in bytes\n"
  "\n"
  "Examples:\n"
  "  slm2 plan models/demo.slm2 --context 2048\n"
  "  slm2 plan model.slm2 --pages 24000 --kv f16\n";

#define PAGE_BYTES 65536u
#define MAX_PAGES 65536u

typedef struct plan_options {
  const char *file;
  cli_setup setup;
  uint32_t pages; /* 0: no budget */
  bool json;
} plan_options;

/* Everything that is the same for every context. */
typedef struct plan_model {
  slm2_mapping map;
  slm2_header header;
  size_t index_bytes; /* what slm2_model_init takes */
} plan_model;

static slm2_status open_header(plan_model *p, const char *file, slm2_error *error) {
  slm2_status status = slm2_map(file, &p->map, error);
  if (status == SLM2_OK) status = slm2_model_bytes(p->map.bytes, p->map.n, &p->index_bytes, error);
  uint64_t n = 0;
  if (status == SLM2_OK) status = slm2_header_length(p->map.bytes, p->map.n, &n, error);
  if (status == SLM2_OK) status = slm2_header_parse(p->map.bytes + 8, (size_t)n, p->map.n, &p->header, error);
  return status;
}

static slm2_status plan_at(const plan_model *p, const cli_setup *setup, uint32_t context, slm2_plan *plan, slm2_error *error) {
  uint32_t tile = setup->chunk == 0 ? CLI_TILE : setup->chunk;
  const slm2_pool pool = {.n_threads = setup->threads};
  slm2_session_params params = {
    .context = context,
    .tile = tile < SLM2_TILE_MAX ? tile : SLM2_TILE_MAX,
    .draft = setup->draft,
    .profile = (slm2_profile)setup->profile,
    .kv = (slm2_kv_type)setup->kv,
    .backend = setup->backend,
    .pool = &pool,
  };
  return slm2_session_plan(&p->header, &params, plan, error);
}

static uint64_t total_bytes(const plan_model *p, const slm2_plan *plan) { return p->map.n + p->index_bytes + plan->total; }

/* The largest context whose total is within budget, or 0. The total rises with the context, so halving finds it. */
static uint32_t largest_context(const plan_model *p, const cli_setup *setup, uint64_t budget) {
  uint32_t low = 0, high = p->header.config.max_positions;
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    slm2_plan plan;
    bool fits = plan_at(p, setup, middle, &plan, NULL) == SLM2_OK && total_bytes(p, &plan) <= budget;
    if (fits) low = middle;
    else high = middle - 1;
  }
  return low;
}

static void term(cli_text *t, const char *name, uint64_t bytes, const char *note) {
  char unit[16];
  if (bytes >= (uint64_t)1 << 30) snprintf(unit, sizeof unit, "%.2f GiB", (double)bytes / (1 << 30));
  else if (bytes >= 1 << 20) snprintf(unit, sizeof unit, "%.1f MiB", (double)bytes / (1 << 20));
  else snprintf(unit, sizeof unit, "%.1f KiB", (double)bytes / 1024);
  char digits[CLI_GROUPED_MAX];
  cli_text_print(t, "  %-8s %16s  %10s  %s\n", name, cli_grouped(bytes, digits), unit, note);
}

static void print_terms(cli_text *t, const plan_options *o, const plan_model *p, const slm2_plan *plan, uint32_t context) {
  const slm2_config *c = &p->header.config;
  char note[128], a[CLI_GROUPED_MAX];
  cli_text_print(t, "memory of %s in bytes, context %s, kv %s, profile %s\n", o->file, cli_grouped(context, a),
                 slm2_kv_name((slm2_kv_type)o->setup.kv), slm2_profile_name((slm2_profile)o->setup.profile));
  snprintf(note, sizeof note, "tensors %s", cli_grouped(slm2_tensor_bytes(&p->header), a));
  term(t, "file", p->map.n, note);
  term(t, "index", p->index_bytes, "header and tokenizer index");
  snprintf(note, sizeof note, "2 x %u layers x %u kv heads x %u x %u positions x %u bytes", c->layers, c->kv_heads, c->head_dim,
           context, o->setup.kv == SLM2_KV_F32 ? 4u : 2u);
  term(t, "kv", plan->kv, note);
  snprintf(note, sizeof note, "activations of one tile, attention scores of %u threads", o->setup.threads);
  term(t, "scratch", plan->scratch, note);
  term(t, "logits", plan->logits, "of one position");
  snprintf(note, sizeof note, "logits of %u positions that are computed ahead", o->setup.draft);
  if (o->setup.draft > 0) term(t, "drafts", plan->drafts, note);
  term(t, "sampler", plan->sampler, "candidates and seen ids");
  term(t, "tokens", plan->tokens, "ids of the timeline");
  term(t, "state", plan->state, "the rest, with alignment");
  term(t, "session", plan->total, "kv to state");
  term(t, "total", total_bytes(p, plan), "file, index and session");
}

static void print_json(cli_text *t, const plan_options *o, const plan_model *p, const slm2_plan *plan, uint32_t context) {
  cli_text_puts(t, "{\"file\":");
  cli_text_print(t, "%llu,\"tensor_bytes\":%llu,\"index\":%llu", (unsigned long long)p->map.n,
                 (unsigned long long)slm2_tensor_bytes(&p->header), (unsigned long long)p->index_bytes);
  cli_text_print(t, ",\"context\":%u,\"max_positions\":%u,\"kv_type\":\"%s\",\"profile\":\"%s\"", context,
                 p->header.config.max_positions, slm2_kv_name((slm2_kv_type)o->setup.kv),
                 slm2_profile_name((slm2_profile)o->setup.profile));
  cli_text_print(t, ",\"kv\":%llu,\"scratch\":%llu,\"logits\":%llu,\"drafts\":%llu,\"sampler\":%llu",
                 (unsigned long long)plan->kv, (unsigned long long)plan->scratch, (unsigned long long)plan->logits,
                 (unsigned long long)plan->drafts, (unsigned long long)plan->sampler);
  cli_text_print(t, ",\"tokens\":%llu,\"state\":%llu,\"session\":%llu,\"total\":%llu", (unsigned long long)plan->tokens,
                 (unsigned long long)plan->state, (unsigned long long)plan->total, (unsigned long long)total_bytes(p, plan));
}

static int report(const plan_options *o, const plan_model *p, uint32_t context) {
  slm2_error error = {0};
  slm2_plan plan;
  if (plan_at(p, &o->setup, context, &plan, &error) != SLM2_OK) return cli_fail(&error);
  cli_text t = {0};
  if (o->json) print_json(&t, o, p, &plan, context);
  else print_terms(&t, o, p, &plan, context);
  if (o->pages != 0) {
    uint64_t budget = (uint64_t)o->pages * PAGE_BYTES;
    uint32_t largest = largest_context(p, &o->setup, budget);
    char a[CLI_GROUPED_MAX], b[CLI_GROUPED_MAX], c[CLI_GROUPED_MAX];
    if (o->json)
      cli_text_print(&t, ",\"pages\":%u,\"budget\":%llu,\"largest_context\":%u", o->pages, (unsigned long long)budget, largest);
    else if (largest == 0)
      cli_text_print(&t, "budget of %s pages = %s bytes: no context fits\n", cli_grouped(o->pages, a), cli_grouped(budget, b));
    else cli_text_print(&t, "budget of %s pages = %s bytes: the largest context that fits is %s\n", cli_grouped(o->pages, a),
                        cli_grouped(budget, b), cli_grouped(largest, c));
  }
  if (o->json) cli_text_puts(&t, "}\n");
  int code = cli_out_text(&t);
  cli_text_free(&t);
  return code;
}

int cli_cmd_plan(int argc, char **argv) {
  plan_options o = {.setup = CLI_SETUP_DEFAULTS};
  uint32_t speculate = SLM2_SPECULATE_AUTO;
  const cli_option options[] = {
    {.name = "--pages", .kind = CLI_U32, .target = &o.pages, .low = 1, .high = MAX_PAGES},
    {.name = "--json", .kind = CLI_FLAG, .target = &o.json},
    CLI_SETUP_OPTIONS(&o.setup),
    CLI_SPECULATE_OPTION(&speculate),
  };
  static const char *const names[] = {"a model FILE"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), &o.file, names, 1);
  if (code != CLI_CONTINUE) return code;
  o.setup.draft = cli_draft(speculate);
  code = cli_setup_finish(&o.setup);
  if (code != CLI_OK) return code;
  slm2_error error = {0};
  plan_model p = {0};
  if (open_header(&p, o.file, &error) != SLM2_OK) code = cli_fail_in(o.file, &error);
  uint32_t context = 0;
  if (code == CLI_OK) code = cli_context(&p.header, &o.setup, &context);
  if (code == CLI_OK) code = report(&o, &p, context);
  slm2_unmap(&p.map);
  return code;
}
