/* cli/positions.c: the logits of given ids at every position, as little-endian bytes: what digest, logits and trace share. */
#include "cli/cli.h"

#include <stdlib.h>

#include "base/bytes.h"

typedef struct rows {
  const cli_taker *taker;
  uint8_t *bytes; /* one position's row */
  uint32_t vocab;
  slm2_error *error;
} rows;

static slm2_status take_logits(void *user, uint32_t position, const float *logits) {
  rows *r = user;
  for (uint32_t i = 0; i < r->vocab; i++) slm2_store_f32(r->bytes + 4 * (size_t)i, logits[i]);
  return r->taker->each(r->taker->user, position, r->bytes, (size_t)r->vocab * 4, r->error);
}

/* Appends chunk ids at a time. */
static int compute(const cli_model *m, const cli_setup *setup, const cli_ids *ids, const cli_taker *taker) {
  slm2_error error = {0};
  cli_setup fitting = *setup;
  if (setup->context == 0) fitting.context = ids->n < UINT32_MAX ? (uint32_t)ids->n : UINT32_MAX;
  uint32_t context;
  int code = cli_context(m->header, &fitting, &context);
  if (code == CLI_OK && ids->n > context)
    code = cli_complain(CLI_USAGE, "--ids", "%zu ids do not fit in a context of %u", ids->n, context);
  if (code != CLI_OK) return code;
  cli_session session;
  code = cli_session_open(&session, m, setup, context);
  if (code != CLI_OK) return code;
  if (taker->begin != NULL) code = taker->begin(taker->user, m, ids);
  if (code != CLI_OK) {
    cli_session_close(&session);
    return code;
  }
  uint32_t vocab = m->header->config.vocab;
  rows r = {.taker = taker, .bytes = cli_alloc(vocab, 4), .vocab = vocab, .error = &error};
  slm2_run run = {
    .cancel = &cli_cancel, .each_logits = take_logits, .user = &r, .tap = taker->tap, .tap_user = taker->user};
  uint32_t n = (uint32_t)ids->n, chunk = setup->chunk == 0 ? n : setup->chunk;
  slm2_status status = SLM2_OK;
  for (uint32_t at = 0; at < n && status == SLM2_OK;) {
    uint32_t piece = chunk < n - at ? chunk : n - at;
    status = slm2_session_append(session.session, ids->at + at, piece, &run, &error);
    at += piece;
  }
  free(r.bytes);
  cli_session_close(&session);
  return status == SLM2_OK ? CLI_OK : cli_fail(&error);
}

int cli_positions(const char *file, const char *ids_text, cli_setup *setup, const cli_taker *taker, size_t *n_positions) {
  int code = cli_setup_finish(setup);
  if (code != CLI_OK) return code;
  cli_ids ids = {0};
  cli_model m = {0};
  code = cli_parse_ids("--ids", ids_text, &ids);
  if (code == CLI_OK) code = cli_model_open(&m, file);
  if (code == CLI_OK) {
    code = cli_check_ids(&m, "--ids", &ids);
    cli_catch_interrupts();
    if (code == CLI_OK) code = compute(&m, setup, &ids, taker);
    cli_model_close(&m);
  }
  *n_positions = ids.n;
  cli_ids_free(&ids);
  return code;
}
