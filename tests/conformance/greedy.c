/* tests/conformance/greedy.c: greedy answers of the demo against PyTorch's [D24].
 *
 * A line of greedy.txt: NUMBER KIND PROMPT ANSWER NEAR. PROMPT and ANSWER are ids; NEAR lists the steps at which PyTorch's
 * best two logits are close, as STEP:MARGIN ("-" for none). slm2 computes the prompt, then each step takes the best id that
 * has a token. Where it is not PyTorch's, the step must be a near one with a margin below LIMIT_MARGIN times the largest
 * difference of logits measured on this checkpoint; slm2 then goes on with PyTorch's id, so every step is compared.
 */
#include "tests/conformance/conformance.h"

enum { MAX_IDS = 1024 };

typedef struct prompt {
  unsigned number;
  char kind[32], near[1024];
  uint32_t ids[MAX_IDS], n_ids, answer[MAX_IDS], n_answer;
} prompt;

typedef struct tally {
  unsigned prompts, same_prompts, steps, same_steps;
} tally;

static const char *read_ids(const char *text, uint32_t ids[MAX_IDS], uint32_t *n) {
  char *end;
  *n = 0;
  do {
    if (*n == MAX_IDS) exit(1);
    ids[(*n)++] = (uint32_t)strtoul(text, &end, 10);
    text = end + 1;
  } while (*end == ',');
  return text;
}

static bool prompt_next(const char **text, prompt *p) {
  int used;
  if (sscanf(*text, "%u %31s %n", &p->number, p->kind, &used) != 2) return false;
  *text = read_ids(*text + used, p->ids, &p->n_ids);
  *text = read_ids(*text, p->answer, &p->n_answer);
  if (sscanf(*text, "%1023s\n%n", p->near, &used) != 1) return false;
  *text += used;
  return true;
}

/* PyTorch's margin at a step, or -1 when it is not a near one. */
static double margin_at(const prompt *p, uint32_t step) {
  const char *at = p->near;
  unsigned number;
  double margin;
  int used;
  while (sscanf(at, "%u:%lf%n", &number, &margin, &used) == 2) {
    if (number == step) return margin;
    at += used;
    if (*at++ != ',') break;
  }
  return -1;
}

static void run_prompt(machine *m, const golden *g, const prompt *p, tally *all, void *candidates, uint8_t *seen) {
  static const slm2_sampler_params greedy = {.temperature = 0, .top_p = 1, .repeat_penalty = 1};
  slm2_rng rng;
  slm2_error error;
  char label[64];
  uint32_t id, vocab = slm2_model_header(m->model)->config.vocab, same = 0;
  slm2_rng_init(&rng, 0);
  slm2_status status = slm2_session_rewind(m->session, 0, &error);
  if (status == SLM2_OK) status = slm2_session_append(m->session, p->ids, p->n_ids, NULL, &error);
  for (uint32_t step = 0; step < p->n_answer && status == SLM2_OK; step++) {
    status = slm2_sampler_next(&greedy, slm2_session_logits(m->session), vocab, slm2_model_token_mask(m->model), NULL, 0, seen,
                               candidates, &rng, &id, &error);
    if (status != SLM2_OK) break;
    same += id == p->answer[step];
    if (id != p->answer[step]) {
      double margin = margin_at(p, step);
      snprintf(label, sizeof label, "prompt %u step %u", p->number, (unsigned)step);
      printf("  %s: slm2 %u, PyTorch %u, margin %g, allowed below %g\n", label, (unsigned)id, (unsigned)p->answer[step], margin,
             LIMIT_MARGIN * g->delta);
      expect(margin >= 0 && margin < LIMIT_MARGIN * g->delta, label);
    }
    status = slm2_session_append(m->session, &p->answer[step], 1, NULL, &error);
  }
  snprintf(label, sizeof label, "prompt %u", p->number);
  if (!expect(status == SLM2_OK, label)) printf("  %s\n", error.message);
  expect(p->n_answer >= 32, label);
  all->prompts++;
  all->same_prompts += same == p->n_answer;
  all->steps += p->n_answer;
  all->same_steps += same;
}

void check_greedy(const char *folder, const char *models, unsigned step) {
  static golden g;
  static prompt p;
  char path[512];
  machine m = {0};
  tally all = {0};
  snprintf(path, sizeof path, "%s/models.txt", folder);
  char *file = test_read_file(path, NULL);
  const char *at = file;
  while (golden_next(&at, &g) && strcmp(g.name, "demo") != 0) continue;
  free(file);
  snprintf(path, sizeof path, "%s/demo.slm2", models);
  machine_open(&m, path, 2 * MAX_IDS);
  if (expect(strcmp(g.name, "demo") == 0 && strcmp(g.identity, m.identity) == 0, path)) {
    uint32_t vocab = slm2_model_header(m.model)->config.vocab, n = 0;
    void *candidates = malloc(vocab * sizeof(slm2_candidate));
    uint8_t *seen = malloc(vocab / 8 + 1);
    snprintf(path, sizeof path, "%s/greedy.txt", folder);
    at = file = test_read_file(path, NULL);
    for (; prompt_next(&at, &p); n++)
      if (p.number % step == 0) run_prompt(&m, &g, &p, &all, candidates, seen);
    expect(n == 1000 && all.prompts == 1000 / step, "greedy.txt has 1,000 prompts");
    free(file), free(candidates), free(seen);
  }
  printf("%-24s %10u prompts, %u identical; %u tokens, %u identical\n", "greedy, demo", all.prompts, all.same_prompts, all.steps,
         all.same_steps);
  machine_close(&m);
}
