/* tests/wasm/digest.c: the core in place of the browser's engine, in each kind of module [wasm/wasm.mk], driven by digest.mjs.
 * It makes the digests of tests/golden/digests.txt: synthetic files, logits, answers to chat messages. All memory comes from
 * one pointer that only rises; digest.mjs puts it back between the lines.
 */
#include "base/bytes.h"
#include "base/checked.h"
#include "base/sha256.h"
#include "convert/convert.h"
#include "slm2/chat.h"
#include "slm2/session.h"
#include "wasm/host.h"


static uintptr_t top;
static char hex[65];        /* the digest of the last call that gave 0 */
static slm2_error error;
static const slm2_pool *pool;

/* The rising pointer: 64-byte aligned, zeroed by nobody. Traps when memory is out. */
uint8_t *SLM2_EXPORT(take)(size_t n);
uint8_t *take(size_t n) {
  if (top == 0) top = slm2_web_stack(SLM2_WEB_THREADS_MAX - 1); /* the highest one */
  top = (top + 63) / 64 * 64;
  uint8_t *out = (uint8_t *)top;
  uint64_t end = (uint64_t)top + n;
  if (end > slm2_web_memory_bytes()) __builtin_trap();
  top = (uintptr_t)end;
  return out;
}
void SLM2_EXPORT(put_back)(uint8_t *to);
void put_back(uint8_t *to) { top = (uintptr_t)to; }
const char *SLM2_EXPORT(result)(void);
const char *result(void) { return hex; }
const char *SLM2_EXPORT(message)(void);
const char *message(void) { return error.message; }

/* n threads compute from now on: this one and the workers in slm2_web_thread. Whether there is a pool. */
bool SLM2_EXPORT(start_pool)(uint32_t n);
bool start_pool(uint32_t n) { return (pool = slm2_web_pool(n)) != NULL; }

static slm2_status done(slm2_sha256 *hash) {
  uint8_t sum[32];
  slm2_sha256_final(hash, sum);
  slm2_hex(sum, sizeof sum, hex);
  return slm2_web_broken_stack(SLM2_WEB_THREADS_MAX) == 0 ? SLM2_OK : SLM2_E_INTERNAL_INVARIANT;
}

slm2_status SLM2_EXPORT(file_digest)(const uint8_t *file, size_t n);
slm2_status file_digest(const uint8_t *file, size_t n) {
  slm2_sha256 hash;
  slm2_sha256_init(&hash);
  slm2_sha256_update(&hash, file, n);
  return done(&hash);
}

static slm2_status store(void *user, uint64_t offset, const void *bytes, size_t n, slm2_error *e) {
  (void)e;
  memcpy((uint8_t *)user + offset, bytes, n);
  return SLM2_OK;
}

/* A synthetic model with seed 1 into file (capacity bytes); *n_file bytes of it. */
slm2_status SLM2_EXPORT(synth)(const char *shape, slm2_weight_form form, uint8_t *file, size_t *n_file);
slm2_status synth(const char *shape, slm2_weight_form form, uint8_t *file, size_t *n_file) {
  slm2_synth_params params = {.form = form, .seed = 1};
  slm2_convert_report report;
  size_t bytes;
  slm2_status status = slm2_synth_shape(shape, 0, &params.config, &error);
  if (status == SLM2_OK) status = slm2_synth_bytes(&params, &bytes, &error);
  if (status != SLM2_OK) return status;
  slm2_sink sink = {.user = file, .write = store};
  status = slm2_synth(&params, &sink, take(bytes), bytes, &report, &error);
  if (status == SLM2_OK) *n_file = (size_t)(8 + report.header.header_bytes + report.header.data_bytes);
  return status;
}

/* context 0: that of `slm2 run`. */
static slm2_status open_session(const uint8_t *file, size_t n, slm2_session_params *params, slm2_session **out) {
  slm2_model *model;
  slm2_plan plan;
  size_t bytes;
  slm2_status status = slm2_model_bytes(file, n, &bytes, &error);
  if (status == SLM2_OK) status = slm2_model_init(take(bytes), bytes, file, n, &model, &error);
  if (status != SLM2_OK) return status;
  uint32_t longest = slm2_model_header(model)->config.max_positions;
  if (params->context == 0) params->context = longest < 4096 ? longest : 4096;
  status = slm2_session_plan(slm2_model_header(model), params, &plan, &error);
  if (status != SLM2_OK) return status;
  return slm2_session_init(take((size_t)plan.total), plan.total, model, params, out, &error);
}

typedef struct row_hash {
  slm2_sha256 sha;
  uint32_t vocab;
} row_hash;

static slm2_status hash_row(void *user, uint32_t position, const float *logits) {
  row_hash *h = user;
  (void)position;
  for (uint32_t i = 0; i < h->vocab; i++) {
    uint8_t bytes[4];
    slm2_store_f32(bytes, logits[i]);
    slm2_sha256_update(&h->sha, bytes, sizeof bytes);
  }
  return SLM2_OK;
}

/* Logits of n ids, chunk at a time, as `slm2 digest` hashes them. */
slm2_status SLM2_EXPORT(digest)(const uint8_t *file, size_t n_file, const uint32_t *ids, uint32_t n, slm2_profile profile,
                           slm2_kv_type kv, uint32_t chunk);
slm2_status digest(const uint8_t *file, size_t n_file, const uint32_t *ids, uint32_t n, slm2_profile profile, slm2_kv_type kv,
                   uint32_t chunk) {
  slm2_session_params params = {.context = n, .tile = SLM2_TILE_MAX, .profile = profile, .kv = kv, .pool = pool};
  slm2_session *session;
  row_hash hash;
  slm2_status status = open_session(file, n_file, &params, &session);
  if (status != SLM2_OK) return status;
  hash.vocab = slm2_model_header(slm2_session_model(session))->config.vocab;
  slm2_sha256_init(&hash.sha);
  slm2_run run = {.each_logits = hash_row, .user = &hash};
  for (uint32_t at = 0; at < n && status == SLM2_OK; at += chunk)
    status = slm2_session_append(session, ids + at, chunk < n - at ? chunk : n - at, &run, &error);
  return status == SLM2_OK ? done(&hash.sha) : status;
}

/* For mem.mjs: the functions of wasm/mem.c. */
void SLM2_EXPORT(mem_copy)(uint8_t *to, const uint8_t *from, size_t n);
void mem_copy(uint8_t *to, const uint8_t *from, size_t n) { memcpy(to, from, n); }
void SLM2_EXPORT(mem_move)(uint8_t *to, const uint8_t *from, size_t n);
void mem_move(uint8_t *to, const uint8_t *from, size_t n) { memmove(to, from, n); }
void SLM2_EXPORT(mem_set)(uint8_t *to, int byte, size_t n);
void mem_set(uint8_t *to, int byte, size_t n) { memset(to, byte, n); }
int SLM2_EXPORT(mem_compare)(const uint8_t *a, const uint8_t *b, size_t n);
int mem_compare(const uint8_t *a, const uint8_t *b, size_t n) { return memcmp(a, b, n); }
bool SLM2_EXPORT(mul_u64)(uint64_t a, uint64_t b, uint64_t *out);
bool mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return slm2_mul_u64(a, b, out); }

/* For bench.mjs: a session, and n more ids on it; logits of the last one. */
static slm2_session *timed;
slm2_status SLM2_EXPORT(start_timed)(const uint8_t *file, size_t n_file, uint32_t context, slm2_profile profile, slm2_kv_type kv);
slm2_status start_timed(const uint8_t *file, size_t n_file, uint32_t context, slm2_profile profile, slm2_kv_type kv) {
  slm2_session_params params = {.context = context, .tile = SLM2_TILE_MAX, .profile = profile, .kv = kv, .pool = pool};
  return open_session(file, n_file, &params, &timed);
}
slm2_status SLM2_EXPORT(append_timed)(const uint32_t *ids, uint32_t n);
slm2_status append_timed(const uint32_t *ids, uint32_t n) { return slm2_session_append(timed, ids, n, NULL, &error); }

/* The prompt of a conversation, by the model's template and tokenizer. */
static slm2_status prompt(const slm2_model *model, const char *json, size_t n, uint32_t **ids, size_t *n_ids) {
  slm2_chat_format format = slm2_model_header(model)->chat_format;
  size_t bytes, n_text;
  slm2_status status = slm2_chat_scratch_bytes(n, &bytes);
  if (status != SLM2_OK) return status;
  uint8_t *scratch = take(bytes);
  status = slm2_chat_render(format, json, n, NULL, scratch, bytes, NULL, NULL, 0, &n_text, &error);
  if (status != SLM2_E_MEMORY) return status;
  size_t capacity = (size_t)error.offset;
  uint8_t *text = take(capacity), *mask = take(capacity);
  status = slm2_chat_render(format, json, n, NULL, scratch, bytes, (char *)text, mask, capacity, &n_text, &error);
  if (status == SLM2_OK) status = slm2_tokenize_scratch_bytes(n_text, &bytes);
  if (status != SLM2_OK) return status;
  *ids = (uint32_t *)(void *)take((3 * n_text + 1) * sizeof **ids);
  return slm2_tokenize(slm2_model_tokenizer(model), text, n_text, SLM2_SPECIALS_MASKED, mask, take(bytes), bytes, *ids,
                       3 * n_text + 1, n_ids, &error);
}

static slm2_status generate(slm2_session *session, const slm2_generate_params *params) {
  slm2_generator *generator;
  slm2_token_event *event = (slm2_token_event *)(void *)take(sizeof *event);
  slm2_sha256 hash;
  slm2_sha256_init(&hash);
  size_t bytes = slm2_generator_bytes();
  slm2_status status = slm2_generator_init(take(bytes), bytes, session, params, &generator, &error);
  for (bool more = true; more && status == SLM2_OK;) {
    uint8_t row[8];
    status = slm2_generator_next(generator, NULL, event, &error);
    slm2_store_u32(row, event->id);
    slm2_store_f32(row + 4, event->logprob);
    slm2_sha256_update(&hash, row, sizeof row);
    more = event->finish == SLM2_FINISH_NONE;
  }
  return status == SLM2_OK ? done(&hash) : status;
}

/* The answer to a conversation, as `slm2 run --json` hashes it. sampler: NULL for the model's own sampling with this
 * seed, else {temperature, top_k, top_p, min_p, repeat_penalty}. */
slm2_status SLM2_EXPORT(answer)(const uint8_t *file, size_t n_file, const char *json, size_t n, slm2_profile profile,
                           uint32_t max_tokens, const float sampler[5], uint32_t seed);
slm2_status answer(const uint8_t *file, size_t n_file, const char *json, size_t n, slm2_profile profile, uint32_t max_tokens,
                   const float sampler[5], uint32_t seed) {
  slm2_session_params params = {.tile = SLM2_TILE_MAX, .profile = profile, .kv = SLM2_KV_F32, .pool = pool};
  slm2_session *session;
  uint32_t *ids;
  size_t n_ids;
  slm2_status status = open_session(file, n_file, &params, &session);
  if (status == SLM2_OK) status = prompt(slm2_session_model(session), json, n, &ids, &n_ids);
  if (status == SLM2_OK) status = slm2_session_append(session, ids, (uint32_t)n_ids, NULL, &error);
  if (status != SLM2_OK) return status;
  const slm2_generation *own = &slm2_model_header(slm2_session_model(session))->generation;
  slm2_generate_params p = {.max_tokens = max_tokens};
  p.sampler = (slm2_sampler_params){
    own->do_sample ? own->temperature : 0.0f, own->top_k, own->top_p, 0.0f, own->repeat_penalty, seed};
  if (sampler != NULL)
    p.sampler = (slm2_sampler_params){sampler[0], (uint32_t)sampler[1], sampler[2], sampler[3], sampler[4], seed};
  return generate(session, &p);
}
