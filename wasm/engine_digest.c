/* wasm/engine_digest.c: COUNT, and DIGEST: the hash of `slm2 digest` over the logits of given ids. */
#include "base/bytes.h"
#include "base/error.h"
#include "wasm/engine.h"

slm2_status slm2_web_count(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  const uint8_t *payload = slm2_web_command_payload(e);
  size_t n_text;
  if (e->n_payload < 8) return slm2_web_refuse(e, "bytes", e->n_payload, "bytes; COUNT has a head of 8");
  const uint32_t kind = slm2_load_u32(payload), flags = slm2_load_u32(payload + 4);
  if (flags > 3) return slm2_web_refuse(e, "flags", flags, "has bits that are none");
  SLM2_TRY(slm2_web_prompt(e, kind, flags, payload + 8, (size_t)(e->n_payload - 8), &n_text));
  SLM2_TRY(slm2_web_event_words(e, SLM2_EVENT_COUNTED, (const uint32_t[]){e->n_ids, (uint32_t)n_text}, 2));
  return slm2_web_done(e);
}

/* --- DIGEST ------------------------------------------------------------------------- */

static slm2_status hash_row(void *self, uint32_t position, const float *logits) {
  (void)position;
  slm2_web_engine *e = self;
  uint8_t bytes[1024];
  for (uint32_t i = 0; i < e->digest.vocab;) { /* vocab is a multiple of 32 */
    uint32_t n = 0;
    for (; n < sizeof bytes && i < e->digest.vocab; i++, n += 4) slm2_store_f32(bytes + n, logits[i]);
    slm2_sha256_update(&e->digest.sha, bytes, n);
  }
  return SLM2_OK;
}

/* Whatever happened: the timeline is empty. */
static slm2_status leave(slm2_web_engine *e, slm2_status status) {
  slm2_error ignored;
  slm2_status rewound = slm2_session_rewind(e->session, 0, &ignored);
  return status == SLM2_OK ? rewound : status;
}

static slm2_status chunk(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  slm2_web_digest *d = &e->digest;
  const slm2_run run = {.cancel = &e->halt, .progress = slm2_web_prefill_progress, .each_logits = hash_row, .user = e};
  const uint32_t left = e->n_ids - e->done, n = d->chunk < left ? d->chunk : left;
  slm2_status status = slm2_session_append(e->session, e->ids + e->done, n, &run, e->error);
  if (status != SLM2_OK) return leave(e, status);
  e->done += n;
  if (e->done < e->n_ids) return SLM2_OK;
  uint8_t sum[32];
  slm2_sha256_final(&d->sha, sum);
  SLM2_TRY(leave(e, SLM2_OK));
  SLM2_TRY(slm2_web_check_seals(e));
  SLM2_TRY(slm2_web_event_digested(e, sum));
  return slm2_web_done(e);
}

slm2_status slm2_web_digest_begin(slm2_web_engine *e, double now_ms) {
  (void)now_ms;
  const uint8_t *payload = slm2_web_command_payload(e);
  size_t n_text;
  if (e->n_payload < 8) return slm2_web_refuse(e, "bytes", e->n_payload, "bytes; DIGEST has a head of 8");
  const uint32_t wish = slm2_load_u32(payload), n = slm2_load_u32(payload + 4);
  if (e->n_payload != 8 + 4 * (uint64_t)n)
    return slm2_fail(e->error, SLM2_E_ARGUMENT, "digest", "ids", SLM2_NO_OFFSET, "%u ids take %u bytes, %u follow the head",
                     (uint64_t)n, 4 * (uint64_t)n, e->n_payload - 8);
  if (n == 0) return slm2_web_refuse(e, "ids", n, "ids have no logits");
  if (n > e->plan.context)
    return slm2_fail(e->error, SLM2_E_CONTEXT_OVERFLOW, "digest", "ids", SLM2_NO_OFFSET, "%u ids do not fit the context of %u",
                     (uint64_t)n, e->plan.context);
  SLM2_TRY(slm2_web_prompt(e, SLM2_KIND_IDS, 0, payload + 8, 4 * (size_t)n, &n_text));
  SLM2_TRY(slm2_session_rewind(e->session, 0, e->error));
  e->digest.chunk = wish == 0 ? n : wish;
  e->digest.vocab = slm2_model_header(e->model)->config.vocab;
  slm2_sha256_init(&e->digest.sha);
  e->done = 0;
  e->task = chunk;
  return SLM2_OK;
}
