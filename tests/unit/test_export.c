/* convert/export*.c: exports of a .slm2 file, and back again: the blocks, the tokenizer and, through GGUF, every byte. */
#include "base/json.h"
#include "kernel/weights.h"
#include "slm2/model.h"
#include "tests/unit/checkpoint.h"
#include "tests/unit/gguf_file.h"

static const slm2_convert_options forms[2] = {{.form = SLM2_FORM_ROWS}, {.form = SLM2_FORM_PANELS}};

/* A .slm2 file, 64-byte aligned. */
typedef struct model_file {
  uint8_t *bytes;
  size_t n;
  slm2_header header;
} model_file;

static model_file aligned(const uint8_t *bytes, size_t n, const slm2_header *h) {
  model_file f = {.bytes = aligned_alloc(64, padded(n, 64)), .n = n, .header = *h};
  memcpy(f.bytes, bytes, n);
  return f;
}
static model_file from_folder(const char *folder, int form) {
  checkpoint *c = checkpoint_load(folder);
  slm2_convert_report r;
  slm2_error e;
  CHECK_CASE(checkpoint_convert(c, &forms[form], &r, &e) == SLM2_OK, folder);
  model_file f = aligned(c->out, c->n_out, &r.header);
  checkpoint_free(c);
  return f;
}
static model_file synthetic(uint32_t theta, slm2_weight_form form, uint64_t seed) {
  slm2_synth_params p = {.form = form, .seed = seed};
  slm2_convert_report r;
  slm2_error e;
  size_t bytes;
  memory_sink s = {.bytes = NULL};
  slm2_sink sink = memory_begin(&s);
  CHECK(slm2_synth_shape("tiny", 0, &p.config, &e) == SLM2_OK);
  p.config.rope_theta = theta;
  CHECK(slm2_synth_bytes(&p, &bytes, &e) == SLM2_OK);
  void *mem = aligned_alloc(64, padded(bytes, 64));
  CHECK(slm2_synth(&p, &sink, mem, bytes, &r, &e) == SLM2_OK);
  free(mem);
  model_file f = aligned(s.bytes, s.n, &r.header);
  free(s.bytes);
  return f;
}

typedef struct opened {
  void *mem;
  size_t bytes;
  slm2_export *export;
  uint64_t progress;
} opened;

static void on_progress(void *user, const char *phase, uint64_t done, uint64_t total) {
  opened *o = user;
  CHECK(strcmp(phase, "verify") == 0 && done <= total && done >= o->progress);
  o->progress = done;
}

static slm2_status open_model(const model_file *f, opened *o, slm2_error *e) {
  *o = (opened){.mem = NULL};
  memset(e, 0, sizeof *e);
  slm2_status status = slm2_export_bytes(f->bytes, f->n, &o->bytes, e);
  if (status != SLM2_OK) return status;
  o->mem = aligned_alloc(64, padded(o->bytes, 64));
  memset(o->mem, 0xa5, o->bytes);
  return slm2_export_open(f->bytes, f->n, o->mem, o->bytes, on_progress, o, &o->export, e);
}

/* --- GGUF ------------------------------------------------------------------------------------ */

static void round_trip(const model_file *f, const char *label) {
  opened o;
  slm2_error e;
  memory_sink gguf = {.bytes = NULL}, back = {.bytes = NULL}, again = {.bytes = NULL};
  slm2_sink sink = memory_begin(&gguf);
  slm2_convert_report r;
  memory_file m;
  if (!CHECK_CASE(open_model(f, &o, &e) == SLM2_OK && o.progress == f->n, label)) {
    printf("  %s: %s\n", e.name, e.message);
    free(o.mem);
    return;
  }
  CHECK_CASE(slm2_export_gguf(o.export, &sink, &e) == SLM2_OK && gguf.in_order, label);
  slm2_sink second = memory_begin(&again); /* the export can be used again, and does the same */
  CHECK_CASE(slm2_export_gguf(o.export, &second, &e) == SLM2_OK && again.n == gguf.n, label);
  CHECK_CASE(memcmp(again.bytes, gguf.bytes, gguf.n) == 0, label);
  if (!CHECK_CASE(gguf_convert(memory_input(&m, gguf.bytes, gguf.n), &back, &forms[f->header.form], &r, &e) == SLM2_OK, label))
    printf("  %s\n", e.message);
  CHECK_CASE(back.n == f->n && memcmp(back.bytes, f->bytes, f->n) == 0, label);
  free(gguf.bytes);
  free(back.bytes);
  free(again.bytes);
  free(o.mem);
}

/* The same header with other settings, none of which GGUF states exactly. */
static void odd_settings(model_file *f) {
  slm2_header *h = &f->header;
  uint8_t *hashes = malloc(32 * (size_t)h->n_chunks), *text = malloc(SLM2_HEADER_MAX);
  for (uint64_t i = 0; i < h->n_chunks; i++)
    CHECK(slm2_header_chunk_hash(f->bytes + 8, (size_t)h->header_bytes, h, i, hashes + 32 * i) == SLM2_OK);
  uint64_t old = 8 + h->header_bytes;
  strcpy(h->license, "mit");
  strcpy(h->source, "somebody/some model, 2nd try");
  strcpy(h->source_revision, "0123456789abcdef0123456789abcdef01234567");
  h->chat_format = SLM2_CHAT_NONE;
  h->generation = (slm2_generation){.do_sample = false, .temperature = 0.1f, .top_k = UINT32_MAX, .top_p = 0.33333334f,
                                    .repeat_penalty = 1e-30f, .bos = UINT32_MAX, .pad = 3, .n_eos = 0};
  slm2_error e;
  if (!CHECK(slm2_header_layout(h, &e) == SLM2_OK)) printf("  %s\n", e.message);
  CHECK(slm2_header_write(h, hashes, text, SLM2_HEADER_MAX, NULL) == SLM2_OK);
  size_t n = (size_t)(8 + h->header_bytes + h->data_bytes);
  uint8_t *bytes = aligned_alloc(64, padded(n, 64));
  slm2_store_u64(bytes, h->header_bytes);
  memcpy(bytes + 8, text, (size_t)h->header_bytes);
  memcpy(bytes + 8 + h->header_bytes, f->bytes + old, (size_t)h->data_bytes);
  free(f->bytes);
  free(hashes);
  free(text);
  f->bytes = bytes;
  f->n = n;
}

static void test_gguf(void) {
  for (int form = 0; form < 2; form++) {
    model_file f = from_folder("tests/data/hf-tiny/tied", form);
    round_trip(&f, "tied");
    odd_settings(&f);
    round_trip(&f, "odd settings");
    free(f.bytes);
    f = from_folder("tests/data/hf-tiny/untied", form);
    round_trip(&f, "untied");
    free(f.bytes);
    f = synthetic(16777217 /* 2^24 + 1: no f32 */, (slm2_weight_form)form, 7);
    round_trip(&f, "synth");
    free(f.bytes);
  }
}

/* The tensors and values that llama.cpp looks for, against the file itself. */
static void test_gguf_content(void) {
  model_file f = from_folder("tests/data/hf-tiny/tied", 1);
  opened o;
  slm2_error e;
  memory_sink out = {.bytes = NULL};
  slm2_sink sink = memory_begin(&out);
  CHECK(open_model(&f, &o, &e) == SLM2_OK && slm2_export_gguf(o.export, &sink, &e) == SLM2_OK);
  memory_file m;
  slm2_input *in = memory_input(&m, out.bytes, out.n);
  slm2_gguf_scan scan;
  slm2_gguf g;
  CHECK(slm2_gguf_scan_header(in, &scan, &e) == SLM2_OK);
  void *mem = aligned_alloc(64, slm2_gguf_bytes(&scan));
  CHECK(slm2_gguf_open(in, &scan, mem, slm2_gguf_bytes(&scan), &g, &e) == SLM2_OK && g.version == 3 && g.n_tensors == 24);
  static const struct { const char *key; uint32_t value; } numbers[] = {
      {"general.file_type", 7}, {"general.quantization_version", 2}, {"qwen3.block_count", 2}, {"qwen3.context_length", 512},
      {"qwen3.embedding_length", 32}, {"qwen3.feed_forward_length", 64}, {"qwen3.attention.head_count", 2},
      {"qwen3.attention.head_count_kv", 1}, {"qwen3.attention.key_length", 32}, {"qwen3.attention.value_length", 32},
      {"tokenizer.ggml.eos_token_id", 292}, {"tokenizer.ggml.padding_token_id", 290}, {"tokenizer.ggml.bos_token_id", 290}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    uint32_t x = 0;
    CHECK_CASE(slm2_gguf_u32(&g, numbers[i].key, &x, &e) == SLM2_OK && x == numbers[i].value, numbers[i].key);
  }
  /* Tokens and types as the package gguf writes them for the same tokenizer, but for what llama.cpp's converter guesses. */
  gguf_file *right = gguf_load("tests/data/gguf/tied-q8_0.gguf");
  const slm2_gguf_value *tokens = slm2_gguf_find(&g, "tokenizer.ggml.tokens"),
                        *merges = slm2_gguf_find(&g, "tokenizer.ggml.merges"),
                        *types = slm2_gguf_find(&g, "tokenizer.ggml.token_type");
  const gguf_kv *kv = gguf_kv_named(right, "tokenizer.ggml.tokens");
  CHECK(memcmp(g.header + tokens->at - 12, kv->bytes, kv->n) == 0);
  kv = gguf_kv_named(right, "tokenizer.ggml.merges");
  CHECK(memcmp(g.header + merges->at - 12, kv->bytes, kv->n) == 0);
  kv = gguf_kv_named(right, "tokenizer.ggml.token_type");
  for (uint32_t id = 0; id < 320; id++) {
    uint32_t ours = slm2_load_u32(g.header + types->at + 4 * id), theirs = slm2_load_u32(kv->bytes + 12 + 4 * id);
    CHECK(ours == theirs || (ours == 4 && theirs == 3 && id >= 306 && id <= 311));
  }
  for (uint32_t i = 0; i < right->n_t; i++) { /* blocks of scale zero are zeros here */
    const slm2_gguf_tensor *t = slm2_gguf_find_tensor(&g, right->t[i].name);
    CHECK_CASE(t != NULL && t->type == right->t[i].type && t->bytes == right->t[i].bytes, right->t[i].name);
    if (strcmp(right->t[i].name, "blk.1.ffn_down.weight") != 0)
      CHECK_CASE(memcmp(out.bytes + t->offset, right->t[i].data, right->t[i].bytes) == 0, right->t[i].name);
  }
  gguf_free(right);
  free(mem);
  free(o.mem);
  free(out.bytes);
  free(f.bytes);
}

/* --- folder ------------------------------------------------------------------------------------ */

/* Exports into the texts and the shard of a checkpoint. */
static checkpoint *to_folder(slm2_export *x) {
  checkpoint *c = calloc(1, sizeof *c);
  slm2_error e;
  c->fail_read = c->fail_write = -1;
  strcpy(c->names[0], "model.safetensors");
  c->source.n_shards = 1;
  checkpoint_attach(c);
  for (uint32_t i = 0; i < slm2_export_files(x); i++) {
    memory_sink s = {.bytes = NULL};
    slm2_sink sink = memory_begin(&s);
    const char *name = slm2_export_file_name(i);
    CHECK_CASE(slm2_export_file(x, i, &sink, &e) == SLM2_OK && s.in_order, name);
    int known = strcmp(name, "model.safetensors") == 0;
    if (known) {
      c->shards[0] = s.bytes;
      c->shard_bytes[0] = s.n;
    } else {
      CHECK_CASE(slm2_json_check((const char *)s.bytes, s.n, name, &e) == SLM2_OK, name);
    }
    for (int t = 0; t < SLM2_SOURCE_TEXTS; t++) {
      if (strcmp(name, text_names[t]) != 0) continue;
      c->source.text[t] = (char *)s.bytes;
      c->source.text_bytes[t] = s.n;
      known = 1;
    }
    CHECK_CASE(known, name);
  }
  return c;
}

static void test_folder(void) {
  for (int form = 0; form < 2; form++) {
    for (int tied = 0; tied < 2; tied++) {
      model_file f = from_folder(tied ? "tests/data/hf-tiny/tied" : "tests/data/hf-tiny/untied", form);
      opened o;
      slm2_error e;
      slm2_convert_report r;
      slm2_convert_options how = {.form = (slm2_weight_form)form, .force_chat_qwen3 = true};
      CHECK(open_model(&f, &o, &e) == SLM2_OK);
      CHECK(slm2_export_inexact_blocks(o.export) == 0); /* blocks that came from floats come back */
      checkpoint *c = to_folder(o.export);
      if (!CHECK(checkpoint_convert(c, &how, &r, &e) == SLM2_OK)) printf("  %s\n", e.message);
      CHECK(c->n_out == f.n && memcmp(c->out, f.bytes, f.n) == 0);
      checkpoint_free(c);
      free(o.mem);
      free(f.bytes);
    }
  }
}

/* The invariant of a folder [D9]: for every scale that is a positive f16 and blocks whose largest |q| is 127, quantising
 * q * d gives q and d back; so does the zero block. inexact_blocks counts exactly the blocks that do not come back. */
static void test_requantise(void) {
  uint64_t seed = 3;
  for (uint32_t d = 0; d < 0x7c00; d++) {
    uint8_t block[34], back[34];
    float x[32];
    slm2_store_u16(block, (uint16_t)d);
    for (uint32_t k = 0; k < 32; k++) {
      int q = d == 0 ? 0 : (int)(test_random(&seed) % 255) - 127;
      block[2 + k] = (uint8_t)q;
    }
    if (d != 0) block[2 + test_random(&seed) % 32] = test_random(&seed) % 2 ? 127 : 0x81;
    for (uint32_t k = 0; k < 32; k++) x[k] = (float)(int8_t)block[2 + k] * slm2_f16_to_f32((uint16_t)d);
    CHECK(slm2_q8_quantize(x, back, NULL) == SLM2_OK && memcmp(block, back, 34) == 0);
  }
  model_file f = synthetic(1000000, SLM2_FORM_ROWS, 5);
  opened o;
  slm2_error e;
  uint64_t changed = 0;
  CHECK(open_model(&f, &o, &e) == SLM2_OK);
  checkpoint *c = to_folder(o.export);
  slm2_convert_report r;
  CHECK(checkpoint_convert(c, &forms[0], &r, &e) == SLM2_OK);
  slm2_section s, t;
  for (uint32_t i = 0; slm2_section_get(&f.header, i, &s) == SLM2_OK; i++) {
    CHECK(slm2_section_get(&r.header, i, &t) == SLM2_OK && t.bytes == s.bytes);
    const uint8_t *a = f.bytes + 8 + f.header.header_bytes + s.offset, *b = c->out + 8 + r.header.header_bytes + t.offset;
    if (s.n_dims == 1) CHECK_CASE(memcmp(a, b, (size_t)s.bytes) == 0, s.name);
    else for (uint64_t k = 0; k < s.bytes; k += 34) changed += memcmp(a + k, b + k, 34) != 0;
  }
  CHECK(changed > 100 && changed == slm2_export_inexact_blocks(o.export));
  checkpoint_free(c);
  free(o.mem);
  free(f.bytes);
}

/* --- faults --------------------------------------------------------------------------------------- */

static void test_faults(void) {
  model_file f = from_folder("tests/data/hf-tiny/tied", 1);
  opened o;
  slm2_error e;
  slm2_export *x;
  CHECK(open_model(&f, &o, &e) == SLM2_OK);
  CHECK(slm2_export_open(f.bytes, f.n, o.mem, o.bytes - 1, NULL, NULL, &x, &e) == SLM2_E_MEMORY);
  CHECK(slm2_export_open(f.bytes, f.n, (char *)o.mem + 32, o.bytes, NULL, NULL, &x, &e) == SLM2_E_ARGUMENT);
  CHECK(slm2_export_open(f.bytes, f.n, o.mem, o.bytes, NULL, NULL, &x, &e) == SLM2_OK);
  memory_sink s = {.bytes = NULL};
  slm2_sink sink = memory_begin(&s);
  CHECK(slm2_export_file(x, slm2_export_files(x), &sink, &e) == SLM2_E_ARGUMENT);
  CHECK(strcmp(slm2_export_file_name(99), "") == 0 && slm2_export_header(x)->config.hidden == 32);
  for (uint32_t i = 0; i <= slm2_export_files(x); i++) { /* each file, then GGUF: each write fails once */
    long writes = 1;
    for (long fail = -1; fail < writes; fail++) {
      sink = memory_begin(&s);
      s.fail_write = fail;
      slm2_status status = i < slm2_export_files(x) ? slm2_export_file(x, i, &sink, &e) : slm2_export_gguf(x, &sink, &e);
      CHECK(status == (fail < 0 ? SLM2_OK : SLM2_E_IO));
      if (fail < 0) writes = s.writes;
      else CHECK(s.writes == fail + 1); /* and nothing is written afterwards */
    }
  }
  free(o.mem);
  size_t tokenizer_end = (size_t)(8 + f.header.header_bytes + f.header.tokenizer_bytes);
  for (size_t at = (size_t)(8 + f.header.header_bytes); at < f.n; at += 131) { /* damage is not passed on */
    f.bytes[at] ^= 1;
    slm2_status status = open_model(&f, &o, &e);
    CHECK(at < tokenizer_end ? status != SLM2_OK : status == SLM2_E_INTEGRITY);
    free(o.mem);
    f.bytes[at] ^= 1;
  }
  for (size_t n = 0; n < f.n; n += 997) {
    model_file cut = {.bytes = aligned_alloc(64, padded(n + 1, 64)), .n = n};
    memcpy(cut.bytes, f.bytes, n);
    CHECK(open_model(&cut, &o, &e) == SLM2_E_FORMAT);
    free(o.mem);
    free(cut.bytes);
  }
  free(s.bytes);
  free(f.bytes);
}

int main(void) {
  test_gguf();
  test_gguf_content();
  test_folder();
  test_requantise();
  test_faults();
  return test_end("export");
}
