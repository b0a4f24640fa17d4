/* wasm/plan.c: see the header. Sizes come from the functions that take the memory, never from formulas of our own; the largest
 * input and the largest context are found by bisection over them. */
#include "wasm/plan.h"

#include "base/bytes.h"
#include "base/error.h"
#include "slm2/chat.h"
#include "slm2/model.h"

static const char operation[] = "plan";

/* --- the work region ------------------------------------------------------------- */

#define TEMPLATE_ROOM 4096u /* what a template may add: the text of a turn is shorter than its JSON, that of tools is fixed */

static uint64_t take(uint64_t *used, uint64_t bytes) {
  uint64_t at = *used;
  *used += (bytes + 63) & ~(uint64_t)63;
  return at;
}

slm2_web_work slm2_web_work_place(uint32_t input_max) {
  slm2_web_work w = {.text_max = (uint64_t)input_max + TEMPLATE_ROOM};
  size_t chat = 0, tokenizer = 0; /* refused lengths are far above SLM2_WEB_SCRATCH_MAX */
  (void)!slm2_chat_scratch_bytes(input_max, &chat);
  (void)!slm2_tokenize_scratch_bytes((size_t)w.text_max, &tokenizer);
  const uint64_t collecting = (uint64_t)input_max + 64 + chat, ids = 4 * (w.text_max + 1), tokenizing = ids + 64 + tokenizer;
  w.zone_bytes = collecting > tokenizing ? collecting : tokenizing;
  w.generator = take(&w.bytes, slm2_generator_bytes());
  w.event = take(&w.bytes, sizeof(slm2_token_event));
  w.text = take(&w.bytes, w.text_max);
  w.mask = take(&w.bytes, w.text_max);
  w.zone = take(&w.bytes, w.zone_bytes);
  return w;
}

/* The largest input up to `most` whose work region has at most `room` bytes; 0 when not even the least has. */
static uint32_t fit_input(uint64_t most, uint64_t room) {
  uint32_t low = SLM2_WEB_INPUT_MIN, high = most < SLM2_WEB_SCRATCH_MAX ? (uint32_t)most : SLM2_WEB_SCRATCH_MAX;
  if (slm2_web_work_place(low).bytes > room) return 0;
  while (low < high) { /* low fits, what is above high does not */
    uint32_t middle = low + (high - low + 1) / 2;
    if (slm2_web_work_place(middle).bytes <= room) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* --- placing --------------------------------------------------------------------- */

#define TERM_MAX (UINT64_C(1) << 48)

bool slm2_web_plan_place(slm2_web_plan_terms *t) {
  if (t->stacks > TERM_MAX || t->work > TERM_MAX || t->file > TERM_MAX || t->index > TERM_MAX || t->session > TERM_MAX)
    return false;
  t->at_stacks = SLM2_WEB_STACKS;
  t->at_work = t->at_stacks + t->stacks; /* stacks are multiples of 64 */
  t->at_file = (t->at_work + t->work + SLM2_WEB_PAGE - 1) / SLM2_WEB_PAGE * SLM2_WEB_PAGE;
  t->at_index = (t->at_file + t->file + 63) / 64 * 64;
  t->at_session = (t->at_index + t->index + 63) / 64 * 64;
  t->total = t->at_session + t->session;
  t->pages = (t->total + SLM2_WEB_PAGE - 1) / SLM2_WEB_PAGE;
  return true;
}

/* --- terms ----------------------------------------------------------------------- */

/* What does not depend on the context. */
typedef struct basis {
  slm2_header header;
  slm2_web_plan_terms terms;
} basis;

static slm2_status begin(const uint8_t *file, uint64_t file_bytes, const slm2_web_wishes *wishes, basis *b, slm2_error *error) {
  size_t index;
  uint64_t n;
  if (wishes->threads == 0 || wishes->threads > SLM2_WEB_THREADS_MAX)
    return slm2_fail(error, SLM2_E_ARGUMENT, operation, "threads", SLM2_NO_OFFSET, "%u is outside 1 .. %u",
                     (uint64_t)wishes->threads, (uint64_t)SLM2_WEB_THREADS_MAX);
  if (wishes->pages == 0 || wishes->pages > SLM2_WEB_MAX_PAGES)
    return slm2_fail(error, SLM2_E_ARGUMENT, operation, "pages", SLM2_NO_OFFSET, "%u is outside 1 .. %u",
                     (uint64_t)wishes->pages, (uint64_t)SLM2_WEB_MAX_PAGES);
  SLM2_TRY(slm2_model_bytes(file, file_bytes, &index, error));
  SLM2_TRY(slm2_header_length(file, file_bytes, &n, error));
  SLM2_TRY(slm2_header_parse(file + 8, (size_t)n, file_bytes, &b->header, error));
  b->terms = (slm2_web_plan_terms){
      .version = SLM2_WEB_VERSION, .file = file_bytes, .index = index, .low = SLM2_WEB_CONTROL,
      .stacks = (uint64_t)(wishes->threads - 1) * SLM2_WEB_STACK_BYTES, .rings = SLM2_WEB_STACKS - SLM2_WEB_CONTROL,
      .profile = wishes->profile, .kv_type = wishes->kv, .tile = wishes->tile, .threads = wishes->threads,
      .max_positions = b->header.config.max_positions, .limit = wishes->pages, .draft = SLM2_WEB_DRAFT};
  return SLM2_OK;
}

/* All terms for this context; *fits: whether the memory that was asked for can hold them. */
static slm2_status plan_context(const basis *b, uint32_t context, slm2_web_plan_terms *t, bool *fits, slm2_error *error) {
  const slm2_pool pool = {.n_threads = (uint32_t)b->terms.threads};
  const slm2_session_params params = {.context = context, .tile = (uint32_t)b->terms.tile, .draft = SLM2_WEB_DRAFT,
                                      .profile = (slm2_profile)b->terms.profile, .kv = (slm2_kv_type)b->terms.kv_type,
                                      .pool = &pool};
  slm2_plan p;
  SLM2_TRY(slm2_session_plan(&b->header, &params, &p, error));
  *t = b->terms;
  t->context = context;
  t->kv = p.kv;
  t->scratch = p.scratch;
  t->logits = p.logits;
  t->drafts = p.drafts;
  t->sampler = p.sampler;
  t->tokens = p.tokens;
  t->state = p.state;
  t->session = p.total;
  uint64_t room = t->scratch < SLM2_WEB_SCRATCH_MAX ? SLM2_WEB_SCRATCH_MAX - t->scratch : 0;
  t->input_max = fit_input(SLM2_WEB_INPUT_MIN + 16 * (uint64_t)context, room);
  *fits = t->input_max != 0;
  if (!*fits) t->input_max = SLM2_WEB_INPUT_MIN;
  t->work = slm2_web_work_place((uint32_t)t->input_max).bytes;
  if (!slm2_web_plan_place(t))
    return slm2_fail(error, SLM2_E_MEMORY, operation, NULL, SLM2_NO_OFFSET, "the plan exceeds what a memory can have");
  *fits = *fits && t->total <= t->limit * SLM2_WEB_PAGE;
  return SLM2_OK;
}

/* All terms but the scores and the input rise with the context, and the work shrinks by no more than the scores grow: so
 * what fits is everything up to some context. 0: none fits. */
static slm2_status largest_context(const basis *b, uint32_t *out, slm2_error *error) {
  slm2_web_plan_terms t;
  bool fits;
  uint32_t low = 0, high = b->header.config.max_positions;
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    if (plan_context(b, middle, &t, &fits, NULL) == SLM2_OK && fits) low = middle;
    else high = middle - 1;
  }
  *out = low;
  return plan_context(b, 1, &t, &fits, error); /* what is refused whatever the context is named */
}

static slm2_status too_large(const slm2_web_plan_terms *t, slm2_error *error) {
  if (t->scratch + t->work > SLM2_WEB_SCRATCH_MAX)
    return slm2_fail(error, SLM2_E_MEMORY, operation, "scratch", SLM2_NO_OFFSET,
                     "%u bytes of scratch and %u of work exceed %u: a smaller context, tile or number of threads is needed",
                     t->scratch, t->work, (uint64_t)SLM2_WEB_SCRATCH_MAX);
  return slm2_fail(error, SLM2_E_MEMORY, operation, "pages", SLM2_NO_OFFSET,
                   "a context of %u needs %u pages of 64 KiB (%u bytes, %u of them the file, %u keys and values); there are %u "
                   "pages; the largest context for them is %u",
                   t->context, t->pages, t->total, t->file, t->kv, t->limit, t->largest_context);
}

slm2_status slm2_web_plan_make(const uint8_t *file, uint64_t file_bytes, const slm2_web_wishes *wishes, slm2_web_plan_terms *out,
                               slm2_error *error) {
  basis b;
  slm2_web_plan_terms t;
  uint32_t largest, context = wishes->context;
  bool fits;
  SLM2_TRY(begin(file, file_bytes, wishes, &b, error));
  SLM2_TRY(largest_context(&b, &largest, error));
  if (context == 0) {
    context = b.header.config.max_positions < SLM2_WEB_CONTEXT ? b.header.config.max_positions : SLM2_WEB_CONTEXT;
    if (largest != 0 && context > largest) context = largest;
  }
  SLM2_TRY(plan_context(&b, context, &t, &fits, error));
  t.largest_context = largest;
  *out = t;
  return fits ? SLM2_OK : too_large(&t, error);
}

/* --- as words -------------------------------------------------------------------- */

static const char names[SLM2_WEB_PLAN_WORDS][16] = {
    "version", "pages", "total", "file", "index", "kv", "scratch", "logits", "sampler", "tokens", "state", "session", "work",
    "stacks", "rings", "low", "at_stacks", "at_work", "at_file", "at_index", "at_session", "context", "profile", "kv_type",
    "tile", "threads", "input_max", "max_positions", "largest_context", "limit", "drafts", "draft"};

void slm2_web_plan_store(uint8_t *to, const slm2_web_plan_terms *terms) {
  const uint64_t *words = (const uint64_t *)(const void *)terms;
  for (uint32_t i = 0; i < SLM2_WEB_PLAN_WORDS; i++) slm2_store_u64(to + 8 * i, words[i]);
}

void slm2_web_plan_load(slm2_web_plan_terms *terms, const uint8_t *from) {
  uint64_t *words = (uint64_t *)(void *)terms;
  for (uint32_t i = 0; i < SLM2_WEB_PLAN_WORDS; i++) words[i] = slm2_load_u64(from + 8 * i);
}

const char *slm2_web_plan_difference(const slm2_web_plan_terms *a, const slm2_web_plan_terms *b) {
  const uint64_t *x = (const uint64_t *)(const void *)a, *y = (const uint64_t *)(const void *)b;
  for (uint32_t i = 0; i < SLM2_WEB_PLAN_WORDS; i++)
    if (x[i] != y[i]) return names[i];
  return NULL;
}
