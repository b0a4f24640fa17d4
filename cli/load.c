/* cli/load.c: from a path to a model and a session, with the memory they need. */
#include "cli/cli.h"

#include "base/sha256.h"

int cli_model_open(cli_model *m, const char *path) {
  slm2_error error = {0};
  uint64_t start = slm2_clock_ns();
  *m = (cli_model){0};
  slm2_status status = slm2_map(path, &m->file, &error);
  size_t bytes = 0;
  if (status == SLM2_OK) status = slm2_model_bytes(m->file.bytes, m->file.n, &bytes, &error);
  if (status == SLM2_OK) status = slm2_memory_reserve(bytes, &m->memory, &error);
  if (status == SLM2_OK) {
    m->memory_bytes = bytes;
    status = slm2_model_init(m->memory, bytes, m->file.bytes, m->file.n, &m->model, &error);
  }
  if (status != SLM2_OK) {
    cli_model_close(m);
    return cli_fail_in(path, &error);
  }
  uint8_t identity[32];
  slm2_model_identity(m->model, identity);
  slm2_hex(identity, sizeof identity, m->identity);
  m->header = slm2_model_header(m->model);
  m->tokenizer = slm2_model_tokenizer(m->model);
  m->load_ns = slm2_clock_ns() - start;
  return CLI_OK;
}

int cli_model_need_tokenizer(const cli_model *m, const char *path) {
  if (m->tokenizer != NULL) return CLI_OK;
  return cli_complain(CLI_FAILED, path, "has no tokenizer: only token ids work with it (--ids)");
}

void cli_model_close(cli_model *m) {
  slm2_memory_release(m->memory, m->memory_bytes);
  slm2_unmap(&m->file);
  *m = (cli_model){0};
}

int cli_context(const slm2_header *header, const cli_setup *setup, uint32_t *context) {
  uint32_t longest = header->config.max_positions;
  if (setup->context > longest)
    return cli_complain(CLI_USAGE, "--context", "%u positions are more than the %u this model was made for", setup->context,
                        longest);
  *context = setup->context != 0 ? setup->context : longest < CLI_CONTEXT ? longest : CLI_CONTEXT;
  return CLI_OK;
}

int cli_session_open(cli_session *s, const cli_model *m, const cli_setup *setup, uint32_t context) {
  uint32_t tile = setup->chunk == 0 ? CLI_TILE : setup->chunk;
  slm2_error error = {0};
  *s = (cli_session){0};
  if (slm2_threads_create(setup->threads, &s->threads, &error) != SLM2_OK) return cli_fail(&error);
  slm2_session_params params = {
    .context = context,
    .tile = tile < SLM2_TILE_MAX ? tile : SLM2_TILE_MAX,
    .draft = setup->draft,
    .profile = (slm2_profile)setup->profile,
    .kv = (slm2_kv_type)setup->kv,
    .backend = setup->backend,
    .pool = slm2_threads_pool(s->threads),
  };
  slm2_status status = slm2_session_plan(m->header, &params, &s->plan, &error);
  if (status == SLM2_OK) status = slm2_memory_reserve(s->plan.total, &s->memory, &error);
  if (status == SLM2_OK) status = slm2_session_init(s->memory, s->plan.total, m->model, &params, &s->session, &error);
  if (status == SLM2_OK) return CLI_OK;
  cli_session_close(s);
  return cli_fail(&error);
}

void cli_session_close(cli_session *s) {
  slm2_memory_release(s->memory, s->plan.total);
  slm2_threads_destroy(s->threads);
  *s = (cli_session){0};
}

int cli_check_ids(const cli_model *m, const char *what, const cli_ids *ids) {
  uint32_t vocab = m->header->config.vocab;
  for (size_t i = 0; i < ids->n; i++)
    if (ids->at[i] >= vocab)
      return cli_complain(CLI_USAGE, what, "id %u (number %zu of the list) is not below the vocabulary of %u", ids->at[i], i + 1,
                          vocab);
  return CLI_OK;
}

int cli_check_room(size_t n_ids, uint32_t context, uint32_t max_positions) {
  if (n_ids < context) return CLI_OK;
  return cli_complain(CLI_FAILED, "prompt",
                      "%zu tokens and one to answer need %zu positions, but the context has %u (--context allows up to %u)",
                      n_ids, n_ids + 1, context, max_positions);
}
