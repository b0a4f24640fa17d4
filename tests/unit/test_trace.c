/* tests/unit/test_trace.c: what a tap sees. The values of every stage of tests/golden/tiny_stages.txt, which an independent
 * numpy program computed token by token, come out of every tile and chunking, each stage once per position and in its
 * order; looking changes nothing. */
#include "tests/unit/tiny_model.h"

#define N_IDS 10
#define N_CHUNKINGS 6
static const uint32_t ids[N_IDS] = {7, 1, 63, 0, 7, 7, 20, 9, 33, 2}; /* forward_reference.py, IDS */

/* --- names and widths ------------------------------------------------------------ */

static void test_names(void) {
  static const struct {
    slm2_stage stage;
    int value;
    const char *name;
    uint32_t width; /* for the config below */
  } cases[] = {
      {SLM2_STAGE_EMBED, 0, "embed", 64},
      {SLM2_STAGE_ATTENTION_NORM, 1, "attention_norm", 64},
      {SLM2_STAGE_Q_PROJ, 2, "q_proj", 128},
      {SLM2_STAGE_K_PROJ, 3, "k_proj", 32},
      {SLM2_STAGE_V_PROJ, 4, "v_proj", 32},
      {SLM2_STAGE_Q_ROPE, 5, "q_rope", 128},
      {SLM2_STAGE_K_ROPE, 6, "k_rope", 32},
      {SLM2_STAGE_ATTENTION, 7, "attention", 128},
      {SLM2_STAGE_O_PROJ, 8, "o_proj", 64},
      {SLM2_STAGE_ATTENTION_RESIDUAL, 9, "attention_residual", 64},
      {SLM2_STAGE_MLP_NORM, 10, "mlp_norm", 64},
      {SLM2_STAGE_GATE_PROJ, 11, "gate_proj", 96},
      {SLM2_STAGE_UP_PROJ, 12, "up_proj", 96},
      {SLM2_STAGE_SWIGLU, 13, "swiglu", 96},
      {SLM2_STAGE_DOWN_PROJ, 14, "down_proj", 64},
      {SLM2_STAGE_RESIDUAL, 15, "residual", 64},
      {SLM2_STAGE_FINAL_NORM, 16, "final_norm", 64},
      {SLM2_STAGE_LOGITS, 17, "logits", 320},
  };
  const slm2_config config = {.hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 1, .head_dim = 32,
                              .vocab = 320};
  CHECK(sizeof cases / sizeof *cases == SLM2_STAGES);
  for (uint32_t i = 0; i < SLM2_STAGES; i++) {
    CHECK_CASE(cases[i].stage == (slm2_stage)cases[i].value, cases[i].name);
    CHECK_CASE(strcmp(slm2_stage_name(cases[i].stage), cases[i].name) == 0, cases[i].name);
    CHECK_CASE(slm2_stage_width(&config, cases[i].stage) == cases[i].width, cases[i].name);
  }
  CHECK(slm2_stage_name((slm2_stage)SLM2_STAGES) == NULL && slm2_stage_name((slm2_stage)-1) == NULL);
  CHECK(slm2_stage_width(&config, (slm2_stage)SLM2_STAGES) == 0);
}

/* --- what the tap saw -------------------------------------------------------------- */

#define MAX_LAYERS 2u
#define MAX_WIDTH 512u

typedef struct seen {
  const slm2_config *config;
  const char *label;
  uint32_t calls[N_IDS]; /* stages seen at a position */
  uint32_t logits_calls;
  float *values; /* [MAX_LAYERS + 1][SLM2_STAGES][N_IDS][MAX_WIDTH] */
} seen;

static float *row(const seen *s, uint32_t layer, slm2_stage stage, uint32_t position) {
  return s->values + (((size_t)layer * SLM2_STAGES + stage) * N_IDS + position) * MAX_WIDTH;
}

/* Stage number i of a position: embed, the layers' stages layer by layer, final_norm, logits. */
static void expected_stage(uint32_t layers, uint32_t i, uint32_t *layer, slm2_stage *stage) {
  *layer = i == 0 ? 0 : (i - 1) / SLM2_LAYER_STAGES;
  *stage = i == 0 ? SLM2_STAGE_EMBED : (slm2_stage)(1 + (i - 1) % SLM2_LAYER_STAGES);
  if (*layer == layers) *stage = (slm2_stage)(*stage + SLM2_LAYER_STAGES);
}

static void look(void *user, slm2_stage stage, uint32_t layer, uint32_t position, const float *values, uint32_t n) {
  seen *s = user;
  uint32_t wanted_layer;
  slm2_stage wanted;
  if (!CHECK_CASE(position < N_IDS && n <= MAX_WIDTH, s->label)) return;
  expected_stage(s->config->layers, s->calls[position]++, &wanted_layer, &wanted);
  if (!CHECK_CASE(stage == wanted && layer == wanted_layer, s->label)) return;
  CHECK_CASE(n == slm2_stage_width(s->config, stage), s->label);
  memcpy(row(s, layer, stage, position), values, n * sizeof *values);
}

/* Each position's logits come right after their tap, and are the same. */
static slm2_status compare_logits(void *user, uint32_t position, const float *logits) {
  seen *s = user;
  s->logits_calls++;
  CHECK_CASE(s->calls[position] == 3 + SLM2_LAYER_STAGES * s->config->layers, s->label);
  CHECK_CASE(memcmp(row(s, s->config->layers, SLM2_STAGE_LOGITS, position), logits, s->config->vocab * sizeof *logits) == 0,
             s->label);
  return SLM2_OK;
}

/* --- goldens ------------------------------------------------------------------------ */

static void digest(const seen *s, uint32_t layer, slm2_stage stage, char hex[65]) {
  slm2_sha256 hash;
  uint8_t bytes[4], sum[32];
  slm2_sha256_init(&hash);
  for (uint32_t position = 0; position < N_IDS; position++)
    for (uint32_t i = 0; i < slm2_stage_width(s->config, stage); i++) {
      slm2_store_f32(bytes, row(s, layer, stage, position)[i]);
      slm2_sha256_update(&hash, bytes, 4);
    }
  slm2_sha256_final(&hash, sum);
  slm2_hex(sum, 32, hex);
}

/* Compares with the golden lines that begin with key ("gqa2 f32 f32 "). */
static void check_goldens(const seen *s, const char *golden, const char *key) {
  const uint32_t total = 3 + SLM2_LAYER_STAGES * s->config->layers;
  uint32_t n = 0;
  for (const char *line = golden; *line != 0; line = strchr(line, '\n') + 1) {
    if (strncmp(line, key, strlen(key)) != 0) continue;
    uint32_t layer;
    slm2_stage stage;
    char expected[160], hex[65];
    expected_stage(s->config->layers, n++, &layer, &stage);
    if (!CHECK_CASE(n <= total, key)) return;
    digest(s, layer, stage, hex);
    snprintf(expected, sizeof expected, "%s%u %s %s\n", key, layer, slm2_stage_name(stage), hex);
    CHECK_CASE(strncmp(line, expected, strlen(expected)) == 0, expected);
  }
  CHECK_CASE(n == total, key);
}

static void test_values(const tiny_model *m, int model, int form, const char *golden) {
  static const struct {
    uint32_t tile, chunk;
  } chunkings[N_CHUNKINGS] = {{1, 1}, {128, N_IDS}, {3, N_IDS}, {3, 7}, {128, 4}, {1, 3}};
  const slm2_config *config = &slm2_model_header(m->model)->config;
  seen s = {.config = config};
  const size_t bytes = (MAX_LAYERS + 1) * SLM2_STAGES * (size_t)N_IDS * MAX_WIDTH * sizeof *s.values;
  s.values = malloc(bytes);
  for (int way = 0; way < 4 * N_CHUNKINGS; way++) {
    const slm2_profile profile = (slm2_profile)(way & 1);
    const slm2_kv_type kv = (slm2_kv_type)(way >> 1 & 1);
    const uint32_t chunk = chunkings[way / 4].chunk;
    slm2_session_params params = {.context = N_IDS, .tile = chunkings[way / 4].tile, .profile = profile, .kv = kv};
    char key[40], label[80];
    snprintf(key, sizeof key, "%s %s %s ", tiny_specs[model].name, slm2_profile_name(profile), slm2_kv_name(kv));
    snprintf(label, sizeof label, "%sform %d, tile %u, chunk %u", key, form, params.tile, chunk);
    s.label = label;
    s.logits_calls = 0;
    memset(s.calls, 0, sizeof s.calls);
    memset(s.values, 0xff, bytes);
    slm2_session *session = tiny_session(m->model, &params);
    const slm2_run run = {.each_logits = compare_logits, .user = &s, .tap = look, .tap_user = &s};
    for (uint32_t at = 0; at < N_IDS; at += chunk)
      CHECK_CASE(slm2_session_append(session, ids + at, at + chunk < N_IDS ? chunk : N_IDS - at, &run, NULL) == SLM2_OK, label);
    CHECK_CASE(s.logits_calls == N_IDS, label);
    check_goldens(&s, golden, key);
    free(session);
  }
  free(s.values);
}

/* --- which stages are seen when few logits are asked for ------------------------------- */

typedef struct counts {
  uint32_t stages[SLM2_STAGES];
} counts;
static void count(void *user, slm2_stage stage, uint32_t layer, uint32_t position, const float *values, uint32_t n) {
  (void)layer, (void)position, (void)values, (void)n;
  ((counts *)user)->stages[stage]++;
}

static void test_few_logits(const tiny_model *m) {
  const uint32_t layers = slm2_model_header(m->model)->config.layers;
  for (int no_logits = 0; no_logits < 2; no_logits++) {
    slm2_session_params params = {.context = N_IDS, .tile = 3, .profile = SLM2_PROFILE_Q8};
    slm2_session *session = tiny_session(m->model, &params);
    counts c = {{0}};
    const slm2_run run = {.tap = count, .tap_user = &c, .no_logits = no_logits};
    CHECK(slm2_session_append(session, ids, N_IDS, &run, NULL) == SLM2_OK);
    CHECK(c.stages[SLM2_STAGE_EMBED] == N_IDS && c.stages[SLM2_STAGE_RESIDUAL] == N_IDS * layers);
    CHECK(c.stages[SLM2_STAGE_FINAL_NORM] == (no_logits ? 0u : 1u) && c.stages[SLM2_STAGE_LOGITS] == (no_logits ? 0u : 1u));
    free(session);
  }
}

int main(void) {
  test_names();
  char *golden = test_read_file("tests/golden/tiny_stages.txt", NULL);
  for (int model = 0; model < N_TINY; model++)
    for (int form = 0; form < 2; form++) {
      tiny_model m = tiny_load(tiny_build(&tiny_specs[model], (slm2_weight_form)form, NULL, 0, SLM2_NO_TOKEN));
      test_values(&m, model, form, golden);
      test_few_logits(&m);
      tiny_free(&m);
    }
  free(golden);
  return test_end("trace");
}
