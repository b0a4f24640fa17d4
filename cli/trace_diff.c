/* cli/trace_diff.c: `slm2 trace --diff`: where two traces first differ. A trace is a file that may hold anything: both forms
 * are checked whole before they are compared. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "convert/safetensors.h"

/* --- the stages of a position, numbered ------------------------------------------------ */

uint32_t cli_stage_count(uint32_t layers) { return SLM2_STAGES + SLM2_LAYER_STAGES * layers - SLM2_LAYER_STAGES; }

slm2_stage cli_stage_at(uint32_t layers, uint32_t i, uint32_t *layer) {
  *layer = i == 0 ? 0 : (i - 1) / SLM2_LAYER_STAGES;
  return (slm2_stage)(*layer < layers ? i - *layer * SLM2_LAYER_STAGES : i + SLM2_LAYER_STAGES - *layer * SLM2_LAYER_STAGES);
}

static bool in_layer(slm2_stage stage) { return stage >= SLM2_STAGE_ATTENTION_NORM && stage <= SLM2_STAGE_RESIDUAL; }

void cli_stage_label(uint32_t layers, uint32_t i, char out[CLI_STAGE_LABEL_MAX]) {
  uint32_t layer;
  slm2_stage stage = cli_stage_at(layers, i, &layer);
  if (in_layer(stage)) snprintf(out, CLI_STAGE_LABEL_MAX, "layers.%u.%s", layer, slm2_stage_name(stage));
  else snprintf(out, CLI_STAGE_LABEL_MAX, "%s", slm2_stage_name(stage));
}

/* --- reading a trace -------------------------------------------------------------------- */

#define HASH_DIGITS 64u

typedef struct view {
  const char *path;
  slm2_mapping map;
  bool text;
  uint32_t positions, layers, n_stages;
  uint32_t *widths;     /* [n_stages] */
  const uint8_t **rows; /* values: [n_stages] of position 0. Text: [positions, n_stages], where the hash stands */
} view;

static int refuse_line(const view *v, uint64_t line, const char *expected) {
  return cli_complain(CLI_FAILED, v->path, "is not a whole trace: line %llu should be \"%s\"", (unsigned long long)line,
                      expected);
}

/* The blank-terminated word at *at, below end; false: there is none. */
static bool next_word(const char **at, const char *end, const char **word, size_t *n) {
  const char *stop = memchr(*at, ' ', (size_t)(end - *at));
  if (stop == NULL || stop == *at) return false;
  *word = *at;
  *n = (size_t)(stop - *at);
  *at = stop + 1;
  return true;
}

/* "NAME=NUMBER " */
static bool take_count(const char **at, const char *end, const char *name, uint64_t high, uint32_t *out) {
  const char *word;
  size_t n, length = strlen(name);
  uint64_t value;
  if (!next_word(at, end, &word, &n) || n <= length || memcmp(word, name, length) != 0) return false;
  if (!cli_number(word + length, n - length, 1, high, &value)) return false;
  *out = (uint32_t)value;
  return true;
}

static bool is_hash(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f')) return false;
  return n == HASH_DIGITS;
}

/* A line "POSITION LABEL WIDTH MAX HASH\n" at *at. */
static bool take_line(view *v, const char **at, const char *end, uint32_t position, uint32_t i, const char *label) {
  const char *line_end = memchr(*at, '\n', (size_t)(end - *at)), *word;
  size_t n;
  uint64_t number;
  if (line_end == NULL) return false;
  if (!next_word(at, line_end, &word, &n) || !cli_number(word, n, position, position, &number)) return false;
  if (!next_word(at, line_end, &word, &n) || n != strlen(label) || memcmp(word, label, n) != 0) return false;
  if (!next_word(at, line_end, &word, &n) || !cli_number(word, n, 1, UINT32_MAX, &number)) return false;
  if (position > 0 && v->widths[i] != number) return false;
  v->widths[i] = (uint32_t)number;
  if (!next_word(at, line_end, &word, &n) || !is_hash(*at, (size_t)(line_end - *at))) return false;
  v->rows[(size_t)position * v->n_stages + i] = (const uint8_t *)*at;
  *at = line_end + 1;
  return true;
}

static int open_text(view *v) {
  const char *at = (const char *)v->map.bytes + strlen(CLI_TRACE_HEAD), *end = (const char *)v->map.bytes + v->map.n;
  const char *line_end = memchr(at, '\n', (size_t)(end - at));
  v->text = true;
  if (line_end == NULL || !take_count(&at, line_end, "positions=", SLM2_MAX_POSITIONS, &v->positions) ||
      !take_count(&at, line_end, "layers=", SLM2_MAX_LAYERS, &v->layers))
    return refuse_line(v, 1, CLI_TRACE_HEAD "positions=N layers=N ...");
  v->n_stages = cli_stage_count(v->layers);
  uint64_t lines = (uint64_t)v->positions * v->n_stages;
  if (v->map.n / HASH_DIGITS < lines)
    return cli_complain(CLI_FAILED, v->path, "is not a whole trace: %llu bytes cannot hold %llu lines",
                        (unsigned long long)v->map.n, (unsigned long long)lines);
  v->widths = cli_alloc(v->n_stages, sizeof *v->widths);
  v->rows = cli_alloc((size_t)lines, sizeof *v->rows);
  at = line_end + 1;
  for (uint32_t p = 0; p < v->positions; p++)
    for (uint32_t i = 0; i < v->n_stages; i++) {
      char label[CLI_STAGE_LABEL_MAX], expected[CLI_STAGE_LABEL_MAX + 40];
      cli_stage_label(v->layers, i, label);
      if (take_line(v, &at, end, p, i, label)) continue;
      snprintf(expected, sizeof expected, "%u %s VALUES MAX SHA256", p, label);
      return refuse_line(v, 2 + (uint64_t)p * v->n_stages + i, expected);
    }
  return at == end ? CLI_OK : refuse_line(v, 2 + lines, "");
}

/* The tensor of every stage, of one number of positions, and no other. */
static int bind_tensors(view *v, const slm2_safetensors *st) {
  if (st->n_tensors < SLM2_STAGES || (st->n_tensors - SLM2_STAGES) % SLM2_LAYER_STAGES != 0)
    return cli_complain(CLI_FAILED, v->path, "is not a trace: no model has %u stages", st->n_tensors);
  v->n_stages = st->n_tensors;
  v->layers = 1 + (st->n_tensors - SLM2_STAGES) / SLM2_LAYER_STAGES;
  v->widths = cli_alloc(v->n_stages, sizeof *v->widths);
  v->rows = cli_alloc(v->n_stages, sizeof *v->rows);
  for (uint32_t i = 0; i < v->n_stages; i++) {
    char label[CLI_STAGE_LABEL_MAX];
    slm2_st_tensor t;
    cli_stage_label(v->layers, i, label);
    uint32_t found = slm2_st_find(st, label, strlen(label));
    if (found == UINT32_MAX) return cli_complain(CLI_FAILED, v->path, "is not a trace: it has no %s", label);
    slm2_st_get(st, found, &t);
    if (t.dtype != SLM2_ST_F32 || t.rank != 2 || t.dims[0] == 0 || t.dims[0] > UINT32_MAX || t.dims[1] == 0 ||
        t.dims[1] > UINT32_MAX || (i > 0 && t.dims[0] != v->positions))
      return cli_complain(CLI_FAILED, v->path, "is not a trace: %s is not F32 [positions, values]", label);
    v->positions = (uint32_t)t.dims[0];
    v->widths[i] = (uint32_t)t.dims[1];
    v->rows[i] = v->map.bytes + t.offset;
  }
  return CLI_OK;
}

static int open_values(view *v) {
  uint8_t first[8] = {0};
  size_t n;
  slm2_error error = {0};
  if (v->map.n > 0) memcpy(first, v->map.bytes, v->map.n < 8 ? (size_t)v->map.n : 8);
  if (slm2_st_header_length(v->path, first, v->map.n, &n, &error) != SLM2_OK) return cli_fail(&error);
  char *header = cli_alloc(n, 1);
  void *memory = cli_alloc(slm2_st_bytes(n), 1);
  memcpy(header, v->map.bytes + 8, n);
  slm2_safetensors st;
  slm2_status status = slm2_st_open(v->path, header, n, v->map.n, memory, slm2_st_bytes(n), &st, &error);
  int code = status == SLM2_OK ? bind_tensors(v, &st) : cli_fail(&error);
  free(memory);
  free(header);
  return code;
}

static int open_view(view *v, const char *path) {
  slm2_error error = {0};
  *v = (view){.path = path};
  if (slm2_map(path, &v->map, &error) != SLM2_OK) return cli_fail_in(path, &error);
  const size_t n = strlen(CLI_TRACE_HEAD);
  return v->map.n >= n && memcmp(v->map.bytes, CLI_TRACE_HEAD, n) == 0 ? open_text(v) : open_values(v);
}

static void close_view(view *v) {
  free(v->widths);
  free(v->rows);
  slm2_unmap(&v->map);
}

/* --- comparing ------------------------------------------------------------------------------ */

static int check_comparable(const view *a, const view *b) {
  if (a->text != b->text)
    return cli_complain(CLI_FAILED, "trace --diff", "one is a trace in text, the other holds values; make both in one way");
  if (a->positions != b->positions || a->layers != b->layers)
    return cli_complain(CLI_FAILED, "trace --diff", "%u positions and %u layers cannot be compared with %u and %u", a->positions,
                        a->layers, b->positions, b->layers);
  for (uint32_t i = 0; i < a->n_stages; i++) {
    char label[CLI_STAGE_LABEL_MAX];
    cli_stage_label(a->layers, i, label);
    if (a->widths[i] != b->widths[i])
      return cli_complain(CLI_FAILED, "trace --diff", "%s has %u values in one and %u in the other", label, a->widths[i],
                          b->widths[i]);
  }
  return CLI_OK;
}

/* The bytes that stand for stage i at a position. */
static const uint8_t *row_of(const view *v, uint32_t position, uint32_t i, size_t *n) {
  *n = v->text ? HASH_DIGITS : (size_t)v->widths[i] * 4;
  return v->text ? v->rows[(size_t)position * v->n_stages + i] : v->rows[i] + position * *n;
}

static void print_value(cli_text *t, const uint8_t *at) {
  uint32_t bits = slm2_load_u32(at);
  if ((bits & 0x7fffffffu) < 0x7f800000u) cli_text_f32(t, slm2_float_from_bits(bits));
  else cli_text_puts(t, "not finite");
  cli_text_print(t, " (0x%08x)", bits);
}

static void print_difference(cli_text *t, const view *a, const view *b, uint32_t position, uint32_t i) {
  size_t n, first = 0;
  const uint8_t *x = row_of(a, position, i, &n), *y = row_of(b, position, i, &n);
  uint32_t layer, differing = 0;
  slm2_stage stage = cli_stage_at(a->layers, i, &layer);
  cli_text_print(t, "first difference: position %u, ", position);
  if (in_layer(stage)) cli_text_print(t, "layer %u, ", layer);
  cli_text_print(t, "stage %s", slm2_stage_name(stage));
  if (a->text) {
    cli_text_print(t, ": SHA-256 %.64s and %.64s\n", (const char *)x, (const char *)y);
    return;
  }
  for (size_t at = n; at > 0; at -= 4)
    if (memcmp(x + at - 4, y + at - 4, 4) != 0) {
      first = at - 4;
      differing++;
    }
  cli_text_print(t, ", index %zu: ", first / 4);
  print_value(t, x + first);
  cli_text_puts(t, " and ");
  print_value(t, y + first);
  cli_text_print(t, "\n%u of the %u values there differ\n", differing, a->widths[i]);
}

static int compare(const view *a, const view *b) {
  int code = check_comparable(a, b);
  if (code != CLI_OK) return code;
  cli_text t = {0};
  for (uint32_t p = 0; p < a->positions && code == CLI_OK; p++)
    for (uint32_t i = 0; i < a->n_stages && code == CLI_OK; i++) {
      size_t n;
      const uint8_t *x = row_of(a, p, i, &n), *y = row_of(b, p, i, &n);
      if (memcmp(x, y, n) == 0) continue;
      print_difference(&t, a, b, p, i);
      code = CLI_FAILED;
    }
  if (code == CLI_OK) cli_text_print(&t, "identical: %u positions, %u stages each\n", a->positions, a->n_stages);
  int printed = cli_out_text(&t);
  cli_text_free(&t);
  return printed == CLI_OK ? code : printed;
}

int cli_trace_diff(int argc, char **argv, const char *help) {
  bool diff; /* given: that is why we are here */
  const char *paths[2];
  const cli_option options[] = {{.name = "--diff", .kind = CLI_FLAG, .target = &diff}};
  static const char *const names[] = {"two traces, A and B", "a second trace, B"};
  int code = cli_parse(argc, argv, help, options, CLI_COUNT(options), paths, names, 2);
  if (code != CLI_CONTINUE) return code;
  view a, b = {0};
  code = open_view(&a, paths[0]);
  if (code == CLI_OK) code = open_view(&b, paths[1]);
  if (code == CLI_OK) code = compare(&a, &b);
  close_view(&a);
  close_view(&b);
  return code;
}
