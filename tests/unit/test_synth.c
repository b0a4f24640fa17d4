/* tests/unit/test_synth.c: synthetic models [D27]. Right bytes: the Python definition in tests/gen/synth_reference.py, an
 * independent reading of "Synthetic models" in docs/FORMAT.md, gives the hashes below. */
#include "base/sha256.h"
#include "slm2/tokenizer.h"
#include "tests/unit/checkpoint.h"

static checkpoint *made(const slm2_synth_params *params, slm2_convert_report *report, slm2_status want) {
  checkpoint *c = calloc(1, sizeof *c);
  slm2_sink sink = checkpoint_sink(c);
  slm2_error error;
  size_t bytes;
  c->fail_write = -1;
  c->progress = UINT64_MAX;
  slm2_status status = slm2_synth_bytes(params, &bytes, &error);
  if (status == SLM2_OK) {
    void *mem = malloc(bytes);
    memset(mem, 0xa5, bytes);
    status = slm2_synth(params, &sink, mem, bytes, report, &error);
    free(mem);
  }
  if (!CHECK(status == want)) printf("  %s: %s\n", slm2_status_name(status), error.message);
  return c;
}

static int verifies(const uint8_t *file, size_t n) {
  void *mem = malloc(slm2_reader_bytes()), *header = malloc(SLM2_HEADER_MAX);
  slm2_reader *reader;
  slm2_status status = slm2_reader_init(mem, slm2_reader_bytes(), header, SLM2_HEADER_MAX, n, &reader, NULL);
  if (status == SLM2_OK) status = slm2_reader_push(reader, file, n, NULL);
  free(mem);
  free(header);
  return status == SLM2_OK;
}

static void check_hash(const uint8_t *bytes, size_t n, const char *digits, const char *label) {
  uint8_t sha[32];
  char hex[65];
  slm2_sha256_of(bytes, n, sha);
  slm2_hex(sha, 32, hex);
  if (!CHECK_CASE(strcmp(hex, digits) == 0, label)) printf("  %s\n", hex);
}

/* The data (everything behind the header) of a model whose config is not in any table. */
static void test_reference(void) {
  static const struct {
    bool tied;
    uint64_t seed;
    slm2_weight_form form;
    const char *data_sha256;
  } rows[] = {
      {true, 1, SLM2_FORM_ROWS, "9ca393d223b88c3cccaf94ae88634276ff1f5734d4df5d32686f0da5f7b3d315"},
      {true, 1, SLM2_FORM_PANELS, "0857142b8dd407fbcb4c6914d2450ff6612ad2e04256aa9ae8323766f13cf558"},
      {false, UINT64_C(0xfedcba9876543210), SLM2_FORM_ROWS, "7c2517aea3cf4ca3fccc3f091b8979841b22adde9a8223f57a1266581b0e2b57"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    slm2_synth_params p = {
        .config = {96, 160, 2, 4, 2, 48, 288, 100, 10000, 1e-5f, rows[i].tied}, .form = rows[i].form, .seed = rows[i].seed};
    slm2_convert_report r;
    checkpoint *c = made(&p, &r, SLM2_OK);
    CHECK(verifies(c->out, c->n_out) && c->n_out == 8 + r.header.header_bytes + r.header.data_bytes && c->progress_faults == 0);
    check_hash(c->out + 8 + r.header.header_bytes, (size_t)r.header.data_bytes, rows[i].data_sha256, rows[i].data_sha256);
    checkpoint_free(c);
  }
}

static const struct {
  const char *name;
  uint64_t tensor_bytes, parameters; /* FACTS of the published models; 0: not of one */
} shapes[] = {
    {"qwen3-0.6b", 633495552, 596049920}, {"qwen3-1.7b", 1828474880, 1720574976}, {"qwen3-4b", 4274448384, 4022468096},
    {"qwen3-8b", 8703561728, 8190735360}, {"qwen3-0.6b-4layer", 232194048, 218507264}, {"small", 0, 0}, {"tiny", 0, 0},
};

static void test_shapes(void) {
  slm2_config config;
  slm2_error error;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    CHECK_CASE(slm2_synth_shape(shapes[i].name, 0, &config, &error) == SLM2_OK && slm2_config_check(&config, &error) == SLM2_OK,
               shapes[i].name);
    slm2_header h = {.config = config, .form = SLM2_FORM_PANELS};
    if (shapes[i].parameters == 0) {
      CHECK_CASE(config.vocab == 288, shapes[i].name);
      continue;
    }
    CHECK_CASE(slm2_tensor_bytes(&h) == shapes[i].tensor_bytes && slm2_parameter_count(&config) == shapes[i].parameters,
               shapes[i].name);
  }
  CHECK(slm2_synth_shape("tiny", 151669, &config, &error) == SLM2_OK && config.vocab == 151680);
  CHECK(slm2_synth_shape("tiny", 320, &config, &error) == SLM2_OK && config.vocab == 320);
  CHECK(slm2_synth_shape("tiny", UINT32_MAX, &config, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_synth_shape("huge", 0, &config, &error) == SLM2_E_ARGUMENT && strstr(error.message, "qwen3-0.6b") != NULL);
  CHECK(slm2_synth_shape("", 0, &config, &error) == SLM2_E_ARGUMENT);
}

static void test_tokenizers(void) {
  slm2_synth_params p = {.form = SLM2_FORM_PANELS, .seed = 3};
  slm2_convert_report r;
  slm2_error error;
  CHECK(slm2_synth_shape("tiny", 0, &p.config, &error) == SLM2_OK);
  checkpoint *c = made(&p, &r, SLM2_OK);
  CHECK(r.header.chat_format == SLM2_CHAT_QWEN3 && strcmp(r.header.source, "synth") == 0);
  const slm2_generation *g = &r.header.generation;
  CHECK(g->do_sample && g->n_eos == 2 && g->eos[0] == 258 && g->eos[1] == 256 && g->bos == 256 && g->pad == 256 &&
        g->top_k == 20);
  /* the byte tokenizer opens, and gives a byte a token */
  const uint8_t *section = c->out + 8 + r.header.header_bytes;
  size_t bytes, n = (size_t)r.header.tokenizer_bytes;
  uint32_t n_tokens;
  slm2_tokenizer *t;
  CHECK(slm2_tokenizer_section_tokens(section, n, &n_tokens, &error) == SLM2_OK && n_tokens == 282);
  CHECK(slm2_tokenizer_bytes(section, n, &bytes, &error) == SLM2_OK);
  void *mem = malloc(bytes);
  CHECK(slm2_tokenizer_init(mem, bytes, section, n, &t, &error) == SLM2_OK);
  free(mem);
  /* a converted one */
  size_t n_json, scratch_bytes, capacity;
  char *json = test_read_file("tests/data/hf-tiny/tied/tokenizer.json", &n_json);
  CHECK(slm2_tokenizer_convert_bytes(json, n_json, &scratch_bytes, &capacity, &error) == SLM2_OK);
  void *scratch = malloc(scratch_bytes);
  uint8_t *real = malloc(capacity);
  CHECK(slm2_tokenizer_convert(json, n_json, scratch, scratch_bytes, real, capacity, &p.tokenizer_bytes, &error) == SLM2_OK);
  p.tokenizer = real;
  checkpoint_free(made(&p, &r, SLM2_E_DIMENSION_MISMATCH)); /* 316 tokens, 288 rows */
  CHECK(slm2_synth_shape("tiny", 316, &p.config, &error) == SLM2_OK);
  checkpoint *d = made(&p, &r, SLM2_OK);
  CHECK(verifies(d->out, d->n_out) && r.header.config.vocab == 320 && g->eos[0] == 292 && g->eos[1] == 290 && g->bos == 290);
  CHECK(memcmp(d->out + 8 + r.header.header_bytes, real, p.tokenizer_bytes) == 0);
  /* not a section; each length of it */
  for (size_t cut = 0; cut < p.tokenizer_bytes; cut += cut < 40 ? 1 : 97) {
    if (slm2_tokenizer_section_tokens(real, cut, &n_tokens, &error) != SLM2_E_FORMAT) CHECK(false);
  }
  /* no added tokens: no chat, no end */
  uint32_t added = slm2_load_u32(real + 16), tokens = slm2_load_u32(real + 8), merges = slm2_load_u32(real + 12);
  size_t list = 32 + 4 * (size_t)tokens + 12 * (size_t)merges;
  memmove(real + list, real + list + 8 * added, p.tokenizer_bytes - list - 8 * added);
  slm2_store_u32(real + 16, 0);
  p.tokenizer_bytes -= 8 * added;
  checkpoint *e = made(&p, &r, SLM2_OK);
  CHECK(r.header.chat_format == SLM2_CHAT_NONE && g->n_eos == 0 && g->bos == UINT32_MAX && g->pad == UINT32_MAX);
  free(scratch);
  free(real);
  free(json);
  checkpoint_free(c);
  checkpoint_free(d);
  checkpoint_free(e);
}

/* Statistics of a matrix: all values of q but -128, scales around a power of two with rare signs and subnormals. */
static void test_distribution(void) {
  slm2_synth_params p = {.form = SLM2_FORM_ROWS, .seed = 9};
  slm2_convert_report r;
  slm2_section s;
  slm2_error error;
  CHECK(slm2_synth_shape("small", 0, &p.config, &error) == SLM2_OK);
  checkpoint *c = made(&p, &r, SLM2_OK);
  unsigned count[256] = {0}, negative = 0, subnormal = 0, blocks = 0, exponent[32] = {0};
  for (uint32_t i = 3; i < slm2_section_count(&p.config); i++) {
    CHECK(slm2_section_get(&r.header, i, &s) == SLM2_OK);
    const uint8_t *bytes = c->out + 8 + r.header.header_bytes + s.offset;
    if (s.n_dims == 1) {
      for (uint64_t k = 0; k < s.dims[0]; k++) {
        float v = slm2_load_f32(bytes + 4 * k) * 1024.0f;
        if (!(v >= 896.0f && v <= 1151.0f && v == (float)(int)v)) CHECK(false);
      }
      continue;
    }
    for (uint64_t b = 0; b < s.bytes / 34; b++, blocks++) {
      uint16_t d = slm2_load_u16(bytes + 34 * b);
      negative += d >> 15;
      subnormal += (d >> 10 & 31) == 0;
      exponent[d >> 10 & 31]++;
      for (int k = 0; k < 32; k++) count[bytes[34 * b + 2 + (uint64_t)k]]++;
    }
  }
  CHECK(count[0x80] == 0 && blocks > 20000);
  for (int v = 0; v < 256; v++) {
    double expected = (double)blocks * 32 / 256 * (v == 0 ? 2 : v == 0x80 ? 0 : 1);
    if ((double)count[v] < 0.8 * expected || (double)count[v] > 1.2 * expected) CHECK(false);
  }
  CHECK(negative > blocks / 2048 && negative < blocks / 512 && subnormal > blocks / 2048 && subnormal < blocks / 512);
  CHECK(exponent[4] > blocks / 2); /* 256 columns */
  checkpoint_free(c);
}

static void test_faults(void) {
  slm2_synth_params p = {.form = SLM2_FORM_PANELS, .seed = 5};
  slm2_convert_report r = {.zero_blocks = 99};
  slm2_error error;
  size_t bytes = 0;
  CHECK(slm2_synth_shape("tiny", 0, &p.config, &error) == SLM2_OK && slm2_synth_bytes(&p, &bytes, &error) == SLM2_OK);
  void *mem = malloc(bytes);
  checkpoint *c = calloc(1, sizeof *c);
  slm2_sink sink = checkpoint_sink(c);
  c->fail_write = -1;
  CHECK(slm2_synth(&p, &sink, mem, bytes - 64, &r, &error) == SLM2_E_MEMORY && c->writes == 0 && r.zero_blocks == 99);
  CHECK(slm2_synth(&p, &sink, (uint8_t *)mem + 4, bytes - 4, &r, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_synth(&p, &sink, mem, bytes, &r, &error) == SLM2_OK);
  long writes = c->writes;
  for (c->fail_write = 0; c->fail_write < writes; c->fail_write++) {
    c->writes = 0;
    if (slm2_synth(&p, &sink, mem, bytes, &r, &error) != SLM2_E_IO) CHECK(false);
  }
  p.config.hidden = 65;
  CHECK(slm2_synth_bytes(&p, &bytes, &error) == SLM2_E_DIMENSION_MISMATCH);
  free(mem);
  checkpoint_free(c);
}

int main(void) {
  test_reference();
  test_shapes();
  test_tokenizers();
  test_distribution();
  test_faults();
  return test_end("synth");
}
