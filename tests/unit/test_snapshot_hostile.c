/* tests/unit/test_snapshot_hostile.c: snapshots that are not this session's, not whole, not true, or cannot be read. Each
 * is refused by name, and the live session stays as it was, to the last byte of its memory. */
#include "tests/unit/snapshot_file.h"

static const uint32_t ids[8] = {7, 1, 63, 0, 7, 7, 20, 9};

static slm2_session *session(const tiny_model *m, uint32_t context, slm2_profile profile, slm2_kv_type kv) {
  slm2_session_params p = {.context = context, .tile = 3, .profile = profile, .kv = kv};
  return tiny_session(m->model, &p);
}

/* A session with something to lose. */
static slm2_session *live_session(const tiny_model *m, slm2_profile profile, slm2_kv_type kv) {
  slm2_session *s = session(m, 9, profile, kv);
  CHECK(slm2_session_append(s, (const uint32_t[]){2, 3, 4, 5, 6, 7}, 6, NULL, NULL) == SLM2_OK);
  return s;
}

/* --- another session's -------------------------------------------------------------- */

static void expect(blob *b, slm2_session *s, slm2_status status, const char *name, const char *first, const char *second,
                   const char *label) {
  slm2_snapshot p;
  slm2_error error = {0};
  memory before = memory_of(s);
  slm2_status got = blob_restore(b, s, &p, &error);
  CHECK_CASE(got == status, label);
  bool good = CHECK_CASE(error.code == status && strcmp(error.operation, "snapshot") == 0, label) &&
              CHECK_CASE(strcmp(error.name, name) == 0, label) &&
              CHECK_CASE(strstr(error.message, first) != NULL && strstr(error.message, second) != NULL, label);
  if (!good) printf("  got %s, %s: %s\n", slm2_status_name(got), error.name, error.message);
  CHECK_CASE(memory_same(&before, s), label);
  CHECK_CASE(blob_restore(b, s, &p, NULL) == status, label); /* without anyone to tell */
  free(before.bytes);
}

static void identity_of(const tiny_model *m, char hex[65]) {
  uint8_t identity[32];
  slm2_model_identity(m->model, identity);
  slm2_hex(identity, 32, hex);
}

static void test_foreign(const tiny_model *m) {
  tiny_spec other_spec = tiny_specs[0];
  other_spec.seed = 99; /* the same geometry */
  tiny_model other = tiny_load(tiny_build(&other_spec, SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  char mine[65], theirs[65], made_up[65] = "";
  identity_of(m, mine);
  identity_of(&other, theirs);
  for (int profile = 0; profile < 2; profile++)
    for (int kv = 0; kv < 2; kv++) {
      slm2_session *s = session(m, 12, (slm2_profile)profile, (slm2_kv_type)kv);
      CHECK(slm2_session_append(s, ids, 8, NULL, NULL) == SLM2_OK);
      blob b = blob_of(s, NULL), c = blob_copy(&b);
      for (int i = 0; i < 4; i++) {
        slm2_session *t = live_session(m, (slm2_profile)(i & 1), (slm2_kv_type)(i >> 1));
        if ((i & 1) != profile)
          expect(&b, t, SLM2_E_ARGUMENT, "profile", profile == 0 ? "with f32" : "with q8", profile == 0 ? "has q8" : "has f32",
                 "another profile");
        else if (i >> 1 != kv)
          expect(&b, t, SLM2_E_ARGUMENT, "kv", kv == 0 ? "with f32" : "with f16", kv == 0 ? "has f16" : "has f32",
                 "another KV type");
        else CHECK(blob_restore(&b, t, &(slm2_snapshot){0}, NULL) == SLM2_OK);
        free(t);
      }
      slm2_session *t = live_session(&other, (slm2_profile)profile, (slm2_kv_type)kv);
      expect(&b, t, SLM2_E_ARGUMENT, "model", mine, theirs, "another model");
      free(t);
      t = session(m, 7, (slm2_profile)profile, (slm2_kv_type)kv);
      CHECK(slm2_session_append(t, ids, 2, NULL, NULL) == SLM2_OK);
      expect(&b, t, SLM2_E_CONTEXT_OVERFLOW, "", "8 tokens", "context of 7", "a smaller context");
      memset(c.bytes + AT_TOKENIZER, 0x5a, 32);
      memset(made_up, '5', 64);
      for (int i = 1; i < 64; i += 2) made_up[i] = 'a';
      blob_seal(&c);
      expect(&c, t, SLM2_E_ARGUMENT, "tokenizer", made_up, "e3b0c44298fc1c14", "another tokenizer"); /* SHA-256 of nothing */
      free(b.bytes), free(c.bytes), free(s), free(t);
    }
  tiny_free(&other);
}

/* --- against the rules, with hashes that are right -------------------------------------- */

/* Offsets behind the head are from there; `tail` ones from the first byte of keys and values. */
enum { HEAD, BODY, KV_PART };
static const struct rule {
  const char *label;
  int part;
  uint32_t at, value;
  slm2_status status;
  const char *name, *message;
} rules[] = {
    {"not a snapshot", HEAD, 0, 0, SLM2_E_FORMAT, "magic", "SLM2SNAP"},
    {"the other half of the magic", HEAD, 4, 0, SLM2_E_FORMAT, "magic", "SLM2SNAP"},
    {"version 0", HEAD, AT_VERSION, 0, SLM2_E_VERSION, "version", "version 0, and this build reads version 1"},
    {"version 2", HEAD, AT_VERSION, 2, SLM2_E_VERSION, "version", "version 2, and this build reads version 1"},
    {"profile", HEAD, AT_PROFILE, 2, SLM2_E_FORMAT, "profile", "2 is outside 0 .. 1"},
    {"KV type", HEAD, AT_KV, 2, SLM2_E_FORMAT, "kv", "2 is outside 0 .. 1"},
    {"no layers", HEAD, AT_LAYERS, 0, SLM2_E_FORMAT, "layers", "0 is outside 1 .. 256"},
    {"layers", HEAD, AT_LAYERS, 257, SLM2_E_FORMAT, "layers", "257 is outside 1 .. 256"},
    {"no heads", HEAD, AT_KV_HEADS, 0, SLM2_E_FORMAT, "kv_heads", "0 is outside 1 .. 1024"},
    {"heads", HEAD, AT_KV_HEADS, 1025, SLM2_E_FORMAT, "kv_heads", "1025 is outside"},
    {"head_dim 0", HEAD, AT_HEAD_DIM, 0, SLM2_E_FORMAT, "head_dim", "0 is outside 1 .. 512"},
    {"head_dim", HEAD, AT_HEAD_DIM, 513, SLM2_E_FORMAT, "head_dim", "513 is outside"},
    {"no vocabulary", HEAD, AT_VOCAB, 0, SLM2_E_FORMAT, "vocab", "0 is outside 1 .. 1048576"},
    {"vocabulary", HEAD, AT_VOCAB, 1048577, SLM2_E_FORMAT, "vocab", "1048577 is outside"},
    {"length", HEAD, AT_LENGTH, 16777217, SLM2_E_FORMAT, "length", "16777217 is outside 0 .. 16777216"},
    {"the longest length", HEAD, AT_LENGTH, 16777216, SLM2_E_FORMAT, "size", "16777216 tokens"},
    {"one token more", HEAD, AT_LENGTH, 4, SLM2_E_FORMAT, "size", "4 tokens"},
    {"flags", HEAD, AT_FLAGS, 5, SLM2_E_FORMAT, "flags", "5 is outside 0 .. 3"},
    {"logits that are not there", HEAD, AT_FLAGS, 0, SLM2_E_FORMAT, "size", "demands"},
    {"no answer with a count", HEAD, AT_COUNT, 1, SLM2_E_FORMAT, "answer", "1 tokens"},
    {"no answer with a last token", HEAD, AT_LAST, 3, SLM2_E_FORMAT, "answer", "last token 3"},
    {"no answer with a seed", HEAD, AT_SEED, 1, SLM2_E_FORMAT, "answer", "do not belong"},
    {"the seed's other half", HEAD, AT_SEED + 4, 1, SLM2_E_FORMAT, "answer", "do not belong"},
    {"no answer with words", HEAD, AT_WORDS, 1, SLM2_E_FORMAT, "answer", "1 random words"},
    {"the words' other half", HEAD, AT_WORDS + 4, 1, SLM2_E_FORMAT, "answer", "4294967296 random words"},
    {"attachment", HEAD, AT_ATTACHMENT, 1, SLM2_E_FORMAT, "size", "attachment of 1"},
    {"attachment of 1 GiB and a byte", HEAD, AT_ATTACHMENT, 0x40000001, SLM2_E_FORMAT, "attachment", "0 .. 1073741824"},
    {"attachment of 4 GiB", HEAD, AT_ATTACHMENT + 4, 1, SLM2_E_FORMAT, "attachment", "4294967296 is outside"},
    {"attachment of half of everything", HEAD, AT_ATTACHMENT + 4, 0x80000000, SLM2_E_FORMAT, "attachment", "is outside"},
    {"an id", BODY, 4, 320, SLM2_E_TOKEN, "ids", "token 1 has id 320, but the vocabulary ends at 319"},
    {"the largest id", BODY, 8, UINT32_MAX, SLM2_E_TOKEN, "ids", "token 2 has id 4294967295"},
    {"an infinite logit", BODY, 12, 0x7f800000, SLM2_E_NUMERICAL, "logits", "logit 0 is not finite"},
    {"a NaN at the end", BODY, 12 + 4 * 319, 0xffc00001, SLM2_E_NUMERICAL, "logits", "logit 319 is not finite"},
    {"an infinite key", KV_PART, 0, 0x7f800000, SLM2_E_NUMERICAL, "keys", "layer 0, head 0, position 0"},
    {"a signalling NaN in a key", KV_PART, 4 * 95, 0x7fa00001, SLM2_E_NUMERICAL, "keys", "layer 0, head 0, position 2"},
    {"an infinite value", KV_PART, 4 * (384 + 32), 0xff800000, SLM2_E_NUMERICAL, "values", "layer 0, head 0, position 1"},
    {"the last value", KV_PART, 4 * 767, 0xffffffff, SLM2_E_NUMERICAL, "values", "layer 1, head 1, position 2"},
};

/* f16 has half the bytes: the same element by number, and a value of the same kind. */
static void spoil(blob *b, const struct rule *r, slm2_kv_type kv) {
  size_t at = r->at;
  if (r->part == BODY) at += HEAD_BYTES;
  if (r->part == KV_PART) at = front_bytes(b) + 32 + (kv == SLM2_KV_F16 ? at / 2 : at);
  uint32_t half = (r->value >> 16 & 0x8000) | 0x7c00 | ((r->value & 0x7fffff) != 0);
  if (r->part == KV_PART && kv == SLM2_KV_F16) slm2_store_u16(b->bytes + at, (uint16_t)half);
  else slm2_store_u32(b->bytes + at, r->value);
}

/* Keys and values of 3 tokens: 2 * 2 layers * 2 heads * 3 positions * 32 = 768 numbers, the first half of them keys. */
static void test_rules(const tiny_model *m, slm2_kv_type kv) {
  slm2_session *s = session(m, 12, SLM2_PROFILE_F32, kv), *t = live_session(m, SLM2_PROFILE_F32, kv);
  CHECK(slm2_session_append(s, ids, 3, NULL, NULL) == SLM2_OK);
  blob b = blob_of(s, NULL);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const struct rule *r = &rules[i];
    blob c = blob_copy(&b);
    spoil(&c, r, kv);
    if (r->part != HEAD) /* of damaged bytes it is said that they are damaged, whatever they mean */
      expect(&c, t, SLM2_E_INTEGRITY, r->part == KV_PART ? "keys and values" : "front", "damaged", "SHA-256", r->label);
    if (front_bytes(&c) == front_bytes(&b)) blob_seal(&c);
    expect(&c, t, r->status, r->name, r->message, r->message, r->label);
    free(c.bytes);
  }
  free(b.bytes), free(s), free(t);
}

/* The fields of an answer, in a snapshot that has one: 2 tokens sampled, seed 7. */
static void test_answer_rules(const tiny_model *m) {
  static const struct {
    const char *label;
    uint32_t at, value;
    const char *message;
  } cases[] = {{"no logits", AT_FLAGS, 2, "demands"},
               {"none sampled", AT_COUNT, 0, "0 tokens"},
               {"more than the timeline", AT_COUNT, 5, "5 tokens"},
               {"no last token", AT_LAST, UINT32_MAX, "last token 4294967295"},
               {"beyond the vocabulary", AT_LAST, 320, "last token 320"},
               {"more words than tokens", AT_WORDS, 3, "3 random words"}};
  const slm2_generate_params gp = {.sampler = {.temperature = 1, .top_p = 1, .repeat_penalty = 1, .seed = 7}, .max_tokens = 9};
  slm2_session *s = session(m, 12, SLM2_PROFILE_F32, SLM2_KV_F32), *t = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F32);
  slm2_generator *g = NULL;
  void *mem = tiny_memory(slm2_generator_bytes());
  slm2_token_event e;
  CHECK(slm2_session_append(s, ids, 3, NULL, NULL) == SLM2_OK);
  CHECK(slm2_generator_init(mem, slm2_generator_bytes(), s, &gp, &g, NULL) == SLM2_OK);
  for (int i = 0; i < 2; i++) CHECK(slm2_generator_next(g, NULL, &e, NULL) == SLM2_OK);
  slm2_snapshot_extras extras = {.answer = g};
  blob b = blob_of(s, &extras);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    blob c = blob_copy(&b);
    slm2_store_u32(c.bytes + cases[i].at, cases[i].value);
    if (cases[i].at != AT_FLAGS) blob_seal(&c);
    expect(&c, t, SLM2_E_FORMAT, cases[i].at == AT_FLAGS ? "size" : "answer", cases[i].message, "", cases[i].label);
    free(c.bytes);
  }
  blob c = blob_of(s, NULL); /* an answer of no tokens, but without logits */
  size_t front = front_bytes(&c), logits = 4 * 320;
  slm2_store_u32(c.bytes + AT_FLAGS, 2);
  memmove(c.bytes + front - logits, c.bytes + front, (size_t)c.n - front);
  c.n -= logits;
  blob_seal(&c);
  expect(&c, t, SLM2_E_FORMAT, "flags", "without logits", "", "an answer without logits");
  slm2_store_u32(c.bytes + AT_FLAGS, 1); /* logits of an empty timeline */
  slm2_store_u32(c.bytes + AT_LENGTH, 0);
  c.n = HEAD_BYTES + 4 * 320 + 32;
  memset(c.bytes + HEAD_BYTES, 0, 4 * 320);
  blob_seal(&c);
  expect(&c, t, SLM2_E_FORMAT, "flags", "without a token", "", "logits without a token");
  free(b.bytes), free(c.bytes), free(mem), free(s), free(t);
}

/* The geometry belongs to the model; a file that says otherwise is refused whatever its size. */
static void test_geometry(const tiny_model *m) {
  slm2_session *s = session(m, 12, SLM2_PROFILE_F32, SLM2_KV_F32), *t = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F32);
  static const struct {
    uint32_t at, value;
    const char *message;
  } cases[] = {{AT_LAYERS, 1, "1 layers"}, {AT_KV_HEADS, 1, "1 kv heads"}, {AT_HEAD_DIM, 16, "heads of 16"},
               {AT_VOCAB, 352, "vocabulary 352"}, {AT_VOCAB, 288, "vocabulary 288"}};
  blob b = blob_of(s, NULL); /* an empty timeline: no size depends on the geometry */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    blob c = blob_copy(&b);
    slm2_store_u32(c.bytes + cases[i].at, cases[i].value);
    blob_seal(&c);
    expect(&c, t, SLM2_E_DIMENSION_MISMATCH, "geometry", cases[i].message, "its model has 2, 2, 32, 320", "geometry");
    free(c.bytes);
  }
  free(b.bytes), free(s), free(t);
}

/* --- damaged, cut, unreadable ------------------------------------------------------------ */

static void test_damage(const tiny_model *m, slm2_kv_type kv) {
  slm2_session *s = session(m, 12, SLM2_PROFILE_Q8, kv), *t = live_session(m, SLM2_PROFILE_Q8, kv);
  slm2_snapshot_extras extras = {.attachment = "attached", .attachment_bytes = 8};
  slm2_snapshot p;
  CHECK(slm2_session_append(s, ids, 2, NULL, NULL) == SLM2_OK);
  blob b = blob_of(s, &extras);
  memory before = memory_of(t);
  slm2_error error;
  const uint64_t n = b.n;
  unsigned accepted = 0, silent = 0;
  for (uint64_t i = 0; i < n; i++) /* each byte; of the head each bit */
    for (int bit = i < HEAD_BYTES ? 0 : (int)(i % 8); bit < 8; bit += i < HEAD_BYTES ? 1 : 8) {
      error = (slm2_error){0};
      b.bytes[i] ^= (uint8_t)(1 << bit);
      accepted += blob_restore(&b, t, &p, &error) == SLM2_OK;
      silent += error.message[0] == 0 || error.name[0] == 0;
      b.bytes[i] ^= (uint8_t)(1 << bit);
    }
  CHECK(accepted == 0 && silent == 0 && memory_same(&before, t));
  uint8_t *exact = malloc((size_t)n + 7); /* each length in memory of its own: nothing is read beyond it */
  for (uint64_t cut = 0; cut < n; cut++) {
    blob c = b;
    c.n = cut;
    c.bytes = realloc(exact, (size_t)cut + (cut == 0));
    exact = c.bytes;
    memcpy(c.bytes, b.bytes, (size_t)cut);
    slm2_status status = blob_restore(&c, t, &p, &error);
    accepted += status != SLM2_E_FORMAT || strcmp(error.name, "size") != 0;
  }
  CHECK(accepted == 0 && memory_same(&before, t));
  for (uint64_t extra = 1; extra <= 7; extra += 3) {
    blob c = b;
    c.n = n + extra;
    c.bytes = exact = realloc(exact, (size_t)c.n);
    memcpy(c.bytes, b.bytes, (size_t)n);
    memset(c.bytes + n, 0, (size_t)extra);
    CHECK(blob_restore(&c, t, &p, &error) == SLM2_E_FORMAT && strcmp(error.name, "size") == 0);
  }
  CHECK(memory_same(&before, t));
  CHECK(blob_restore(&b, t, &p, &error) == SLM2_OK); /* and yet it was a good one */
  free(exact), free(before.bytes), free(b.bytes), free(s), free(t);
}

/* What one head says against another file's body. */
static void test_spliced(const tiny_model *m) {
  slm2_session *s = session(m, 12, SLM2_PROFILE_F32, SLM2_KV_F32), *t = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F32);
  CHECK(slm2_session_append(s, ids, 3, NULL, NULL) == SLM2_OK);
  blob a = blob_of(s, NULL);
  CHECK(slm2_session_rewind(s, 1, NULL) == SLM2_OK && slm2_session_append(s, ids + 4, 2, NULL, NULL) == SLM2_OK);
  blob b = blob_of(s, NULL);
  size_t kv = front_bytes(&a) + 32;
  CHECK(a.n == b.n && front_bytes(&b) + 32 == kv);
  memcpy(b.bytes + kv, a.bytes + kv, (size_t)a.n - kv);
  expect(&b, t, SLM2_E_INTEGRITY, "keys and values", "damaged", "SHA-256", "another file's keys and values");
  memcpy(b.bytes, a.bytes, HEAD_BYTES);
  expect(&b, t, SLM2_E_INTEGRITY, "front", "damaged", "SHA-256", "another file's head");
  free(a.bytes), free(b.bytes), free(s), free(t);
}

/* Every read fails once. Before the last check the session is as it was; then it is empty, and works. */
static void test_source_failures(const tiny_model *m) {
  slm2_session *s = session(m, 12, SLM2_PROFILE_F32, SLM2_KV_F16);
  slm2_snapshot p;
  CHECK(slm2_session_append(s, ids, 8, NULL, NULL) == SLM2_OK);
  blob b = blob_of(s, NULL), c = blob_copy(&b);
  for (uint64_t i = 0; i < c.n; i++) c.bytes[i] ^= 0x55;
  slm2_session *t = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F16);
  CHECK(blob_restore(&b, t, &p, NULL) == SLM2_OK);
  const long n_reads = b.calls;
  long n_empty = 0;
  free(t);
  for (long fail = 0; fail < 2 * n_reads; fail++) {
    bool swap = fail >= n_reads; /* from this read on, other bytes; else no bytes */
    b.fail_call = swap ? -1 : fail;
    b.swap_call = swap ? fail - n_reads : -1;
    b.other = c.bytes;
    t = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F16);
    memory before = memory_of(t);
    slm2_error error = {0};
    slm2_status status = blob_restore(&b, t, &p, &error);
    CHECK(swap ? status != SLM2_OK && status != SLM2_E_IO : status == SLM2_E_IO && strcmp(error.message, "as asked") == 0);
    bool empty = slm2_session_length(t) == 0;
    n_empty += empty;
    if (!empty) CHECK(memory_same(&before, t));
    else CHECK(slm2_session_logits(t) == NULL);
    uint32_t reused;
    CHECK(slm2_session_sync(t, ids, 8, NULL, &reused, NULL) == SLM2_OK);
    CHECK(memcmp(slm2_session_logits(s), slm2_session_logits(t), 320 * sizeof(float)) == 0);
    free(before.bytes), free(t);
  }
  CHECK(n_empty > 4 && n_empty < n_reads);
  free(b.bytes), free(c.bytes), free(s);
}

/* The file changes between open and restore: seen before anything is touched, whichever byte it is. */
static void test_changed_since(const tiny_model *m) {
  slm2_session *s = session(m, 12, SLM2_PROFILE_F32, SLM2_KV_F32), *t = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F32);
  CHECK(slm2_session_append(s, ids, 2, NULL, NULL) == SLM2_OK);
  blob b = blob_of(s, NULL);
  memory before = memory_of(t);
  slm2_snapshot p;
  slm2_snapshot_source source = blob_source(&b);
  CHECK(slm2_snapshot_open(&p, &source, NULL) == SLM2_OK);
  unsigned accepted = 0, hash = 0;
  for (uint64_t i = 0; i < b.n; i++) {
    b.bytes[i] ^= 0x10;
    bool first_hash = i >= front_bytes(&b) && i < front_bytes(&b) + 32; /* known already, and read no more */
    if (!first_hash) accepted += slm2_snapshot_restore(&p, t, NULL) != SLM2_E_INTEGRITY;
    if (i < HEAD_BYTES) hash += slm2_snapshot_attachment(&p, NULL, 0, NULL) == SLM2_E_INTEGRITY;
    b.bytes[i] ^= 0x10;
  }
  CHECK(accepted == 0 && hash == HEAD_BYTES && memory_same(&before, t));
  CHECK(slm2_snapshot_restore(&p, t, NULL) == SLM2_OK && slm2_session_length(t) == 2);
  free(before.bytes), free(b.bytes), free(s), free(t);
}

static void test_sink_failures(const tiny_model *m) {
  slm2_session *s = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F32);
  memory before = memory_of(s);
  blob whole = blob_of(s, NULL);
  CHECK(whole.calls == 3); /* the front; the hash with most of keys and values; the rest */
  for (long fail = 0; fail < whole.calls; fail++) {
    blob b = NO_BLOB;
    slm2_snapshot_sink sink = {&b, blob_write};
    slm2_error error;
    b.fail_call = fail;
    CHECK(slm2_snapshot_write(s, NULL, &sink, &error) == SLM2_E_IO && strcmp(error.message, "as asked") == 0);
    CHECK(b.calls == fail + 1); /* nothing after the failure */
    free(b.bytes);
  }
  CHECK(memory_same(&before, s));
  free(before.bytes), free(whole.bytes), free(s);
}

/* --- sizes beyond 32 bits ------------------------------------------------------------------ */

static uint8_t big_head[HEAD_BYTES], big_sum[32];
static uint64_t big_front;
static slm2_status big_read(void *user, uint64_t offset, void *out, size_t n, slm2_error *error) {
  (void)user, (void)error;
  memset(out, 0, n);
  if (offset == 0) memcpy(out, big_head, HEAD_BYTES);
  if (offset == big_front) memcpy(out, big_sum, 32);
  return SLM2_OK;
}

/* 40,960 positions of the 8B: 12,079,595,520 bytes of keys and values, which no 32-bit number holds. */
static void test_big(const tiny_model *m) {
  slm2_session *s = session(m, 1, SLM2_PROFILE_F32, SLM2_KV_F32);
  blob b = blob_of(s, NULL);
  slm2_session *t = live_session(m, SLM2_PROFILE_F32, SLM2_KV_F32);
  memcpy(big_head, b.bytes, HEAD_BYTES);
  slm2_store_u32(big_head + AT_LAYERS, 36);
  slm2_store_u32(big_head + AT_KV_HEADS, 8);
  slm2_store_u32(big_head + AT_HEAD_DIM, 128);
  slm2_store_u32(big_head + AT_VOCAB, 151936);
  slm2_store_u32(big_head + AT_LENGTH, 40960);
  slm2_store_u32(big_head + AT_FLAGS, 1);
  big_front = HEAD_BYTES + 4 * 40960 + 4 * 151936;
  uint8_t *front = calloc(1, (size_t)big_front);
  memcpy(front, big_head, HEAD_BYTES);
  slm2_sha256_of(front, (size_t)big_front, big_sum);
  slm2_snapshot_source source = {NULL, big_front + 32 + UINT64_C(12079595520), big_read};
  slm2_snapshot p;
  slm2_error error;
  CHECK(slm2_snapshot_open(&p, &source, &error) == SLM2_OK && p.length == 40960 && p.vocab == 151936);
  CHECK(slm2_snapshot_restore(&p, t, &error) == SLM2_E_DIMENSION_MISMATCH);
  source.bytes -= UINT64_C(8589934592); /* the same modulo 2^32 */
  CHECK(slm2_snapshot_open(&p, &source, &error) == SLM2_E_FORMAT && strstr(error.message, "demands 12080367") != NULL);
  free(front), free(b.bytes), free(s), free(t);
}

int main(void) {
  tiny_model m = tiny_load(tiny_build(&tiny_specs[0], SLM2_FORM_PANELS, NULL, 0, SLM2_NO_TOKEN));
  test_foreign(&m);
  for (int kv = 0; kv < 2; kv++) {
    test_rules(&m, (slm2_kv_type)kv);
    test_damage(&m, (slm2_kv_type)kv);
  }
  test_answer_rules(&m);
  test_geometry(&m);
  test_spliced(&m);
  test_source_failures(&m);
  test_changed_since(&m);
  test_sink_failures(&m);
  test_big(&m);
  tiny_free(&m);
  return test_end("snapshot_hostile");
}
