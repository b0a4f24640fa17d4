/* tests/unit/test_web_plan.c: headers, plans and verification as the store asks for them: from the prefix of a file alone; every
 * address checked; regions that do not overlap and hold what they are for; the largest context really the largest. */
#include "base/sha256.h"
#include "slm2/chat.h"
#include "tests/unit/web_engine.h"

static tiny_file file;
#define PREFIX (slm2_web_heap() + 1024)

/* --- headers ---------------------------------------------------------------------------- */

static uint64_t load_prefix(void) {
  web_lend(SLM2_WEB_CONTROL);
  memcpy(slm2_web_at(PREFIX), file.bytes, 8);
  CHECK(slm2_web_header_need(PREFIX, 8, file.n, slm2_web_heap()) == SLM2_OK);
  uint64_t need = slm2_load_u64(slm2_web_at(slm2_web_heap()));
  memset(slm2_web_at(PREFIX), 0xff, SLM2_WEB_CONTROL - PREFIX);
  memcpy(slm2_web_at(PREFIX), file.bytes, (size_t)need);
  return need;
}

static void test_header(void) {
  const uint32_t heap = slm2_web_heap();
  const uint64_t need = load_prefix();
  uint8_t identity[32];
  CHECK(slm2_web_version() == 1 && heap % 64 == 0);
  CHECK(need == 8 + file.header.header_bytes + 32);
  CHECK(slm2_web_header(PREFIX, (uint32_t)need, file.n, heap) == SLM2_OK);
  const uint8_t *out = slm2_web_at(heap);
  slm2_header_identity(file.bytes + 8, (size_t)file.header.header_bytes, identity);
  CHECK(memcmp(out, identity, 32) == 0 && slm2_load_u64(out + 32) == file.header.header_bytes);
  CHECK(slm2_load_u64(out + 40) == file.header.data_bytes && slm2_load_u64(out + 48) == file.header.n_chunks);
  CHECK(slm2_load_u64(out + 56) == slm2_tensor_bytes(&file.header));
  CHECK(slm2_load_u64(out + 64) == slm2_parameter_count(&file.header.config));
  CHECK(slm2_load_u32(out + 72) == 256 && slm2_load_u32(out + 76) == 2 && slm2_load_u32(out + 80) == 64 &&
        slm2_load_u32(out + 84) == 320);
  CHECK(strcmp((const char *)out + 88, "unknown") == 0 && strcmp((const char *)out + 152, "unknown") == 0);
  for (uint32_t i = 0; i < file.header.n_chunks; i++) {
    uint64_t at = (uint64_t)i * SLM2_CHUNK_BYTES, left = file.header.data_bytes - at;
    uint8_t hash[32];
    slm2_sha256_of(tiny_data(&file) + at, (size_t)(left < SLM2_CHUNK_BYTES ? left : SLM2_CHUNK_BYTES), hash);
    CHECK(slm2_web_chunk_hash(PREFIX, (uint32_t)need, file.n, i, heap) == SLM2_OK && memcmp(out, hash, 32) == 0);
  }
  CHECK(slm2_web_chunk_hash(PREFIX, (uint32_t)need, file.n, file.header.n_chunks, heap) == SLM2_E_ARGUMENT);
  CHECK(slm2_web_chunk_hash(PREFIX, (uint32_t)need, file.n, UINT64_MAX, heap) == SLM2_E_ARGUMENT);
}

static void test_bad_header(void) {
  const uint32_t heap = slm2_web_heap(), need = (uint32_t)load_prefix();
  CHECK(slm2_web_header_need(PREFIX, 7, file.n, heap) == SLM2_E_FORMAT);
  for (uint32_t n = 0; n < need; n += 1 + need / 50) CHECK(slm2_web_header(PREFIX, n, file.n, heap) == SLM2_E_FORMAT);
  CHECK(slm2_web_header(PREFIX, need - 1, file.n, heap) == SLM2_E_FORMAT);
  CHECK(slm2_web_header(PREFIX, need, file.n + 1, heap) != SLM2_OK && slm2_web_header(PREFIX, need, file.n - 1, heap) != SLM2_OK);
  CHECK(slm2_web_plan(PREFIX, need - 1, file.n, 0, 1, 0, 8, 1, 1000, heap) == SLM2_E_FORMAT);
  slm2_web_at(PREFIX)[8] ^= 1;
  CHECK(slm2_web_header(PREFIX, need, file.n, heap) != SLM2_OK && slm2_web_failure()->message[0] != 0);
  memset(slm2_web_at(PREFIX), '<', 8); /* HTML instead of a model */
  CHECK(slm2_web_header_need(PREFIX, 8, file.n, heap) == SLM2_E_FORMAT);
  load_prefix();
  slm2_store_u32(slm2_web_at(PREFIX) + 8 + file.header.header_bytes + 8, 1000000); /* n_tokens */
  CHECK(slm2_web_header(PREFIX, need, file.n, heap) == SLM2_OK);
  CHECK(slm2_web_plan(PREFIX, need, file.n, 0, 1, 0, 8, 1, 1000, heap) == SLM2_E_FORMAT);
}

/* Blocks that are not all between the heap and the end of memory. */
static void test_addresses(void) {
  const uint32_t heap = slm2_web_heap(), need = (uint32_t)load_prefix(), end = SLM2_WEB_CONTROL;
  const struct { uint32_t at, n, out; } cases[] = {
      {0, need, heap}, {heap - 64, need, heap}, {end - 64, need, heap}, {PREFIX, end, heap}, {PREFIX, UINT32_MAX, heap},
      {0xffffffc0u, need, heap}, {PREFIX + 1, need, heap}, {PREFIX + 32, need, heap}, {PREFIX, need, heap - 1}, {PREFIX, need, 0},
      {PREFIX, need, end - 31}, {PREFIX, need, 0xffffffffu}, {PREFIX, need, 0xffffff00u}};
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const uint32_t at = cases[i].at, n = cases[i].n, out = cases[i].out;
    CHECK(slm2_web_header(at, n, file.n, out) == SLM2_E_ARGUMENT &&
          slm2_web_chunk_hash(at, n, file.n, 0, out) == SLM2_E_ARGUMENT);
    CHECK(slm2_web_plan(at, n, file.n, 0, 1, 0, 8, 1, 1000, out) == SLM2_E_ARGUMENT);
    CHECK(strcmp(slm2_web_failure()->name, out == heap ? "at" : "out") == 0);
  }
  CHECK(slm2_web_header_need(end - 7, 8, file.n, heap) == SLM2_E_ARGUMENT);
  CHECK(slm2_web_header_need(PREFIX, 8, file.n, end - 7) == SLM2_E_ARGUMENT);
  CHECK(slm2_web_header_need(PREFIX, 8, file.n, end - 8) == SLM2_OK);
}

/* --- verification --------------------------------------------------------------------------- */

static slm2_status verify(uint32_t reader, uint64_t n, uint32_t piece) {
  const uint32_t at = reader + slm2_web_reader_bytes();
  slm2_status status = SLM2_NEED_MORE;
  for (uint64_t done = 0; done < n && status == SLM2_NEED_MORE; done += piece) {
    uint32_t take = (uint32_t)(n - done < piece ? n - done : piece);
    memcpy(slm2_web_at(at), file.bytes + done, take);
    status = slm2_web_reader_push(reader, at, take);
  }
  return status;
}

static void test_reader(void) {
  const uint32_t heap = slm2_web_heap(), bytes = slm2_web_reader_bytes(), other = heap + bytes + 65536;
  web_lend((uint64_t)heap + 2 * (bytes + 65536));
  CHECK(bytes % 64 == 0);
  CHECK(slm2_web_reader_start(heap, bytes - 1, file.n) == SLM2_E_MEMORY &&
        slm2_web_reader_start(heap + 8, bytes, file.n) == SLM2_E_ARGUMENT);
  CHECK(slm2_web_reader_start(other, bytes + 65537, file.n) == SLM2_E_ARGUMENT);
  CHECK(slm2_web_reader_push(heap, heap + bytes, 8) == SLM2_E_ARGUMENT); /* none was started */
  CHECK(slm2_web_reader_start(heap, bytes, 7) == SLM2_E_FORMAT && slm2_web_reader_start(heap, bytes, file.n) == SLM2_OK);
  CHECK(verify(heap, file.n, 4096) == SLM2_OK);
  CHECK(slm2_web_reader_start(heap, bytes, file.n) == SLM2_OK && slm2_web_reader_start(other, bytes, file.n) == SLM2_OK);
  CHECK(verify(heap, file.n - 1, 65536) == SLM2_NEED_MORE && verify(other, file.n, 777) == SLM2_OK); /* two at a time */
  CHECK(slm2_web_reader_push(heap, heap, 8) == SLM2_E_ARGUMENT &&
        slm2_web_reader_push(heap, heap + bytes - 1, 8) == SLM2_E_ARGUMENT);
  CHECK(slm2_web_reader_push(heap, 0, 8) == SLM2_E_ARGUMENT && slm2_web_reader_push(heap, other, UINT32_MAX) == SLM2_E_ARGUMENT);
  CHECK(slm2_web_reader_push(heap + 64, other, 8) == SLM2_E_ARGUMENT);
  file.bytes[file.n - 1000] ^= 1;
  CHECK(slm2_web_reader_start(heap, bytes, file.n) == SLM2_OK && verify(heap, file.n, 65536) == SLM2_E_INTEGRITY);
  CHECK(slm2_web_reader_push(heap, heap + bytes, 8) == SLM2_E_INTEGRITY); /* for ever */
  file.bytes[file.n - 1000] ^= 1;
}

/* --- plans ------------------------------------------------------------------------------------ */

static void check_map(const slm2_web_plan_terms *t, const web_setup *s) {
  size_t index;
  slm2_error error;
  CHECK(slm2_model_bytes(file.bytes, file.n, &index, &error) == SLM2_OK && t->index == index && t->file == file.n);
  CHECK(t->version == 1 && t->profile == s->profile && t->kv_type == s->kv && t->tile == s->tile && t->threads == s->threads);
  CHECK(t->kv == 2 * 2 * 2 * 32 * t->context * (s->kv == SLM2_KV_F32 ? 4 : 2) && t->tokens == 4 * t->context &&
        t->logits == 1280);
  CHECK(t->session == t->kv + t->scratch + t->logits + t->drafts + t->sampler + t->tokens + t->state);
  CHECK(t->low == 1048576 && t->rings == 4096 + 2 * 524288 && t->at_stacks == t->low + t->rings);
  CHECK(t->stacks == (s->threads - 1) * (uint64_t)SLM2_WEB_STACK_BYTES && t->at_work == t->at_stacks + t->stacks);
  CHECK(t->at_file % 65536 == 0 && t->at_file >= t->at_work + t->work && t->at_index >= t->at_file + t->file);
  CHECK(t->at_index % 64 == 0 && t->at_session % 64 == 0 && t->at_session >= t->at_index + t->index);
  CHECK(t->total == t->at_session + t->session && t->pages == (t->total + 65535) / 65536);
  CHECK(t->total < t->low + t->rings + t->stacks + t->work + t->file + t->index + t->session + 131072);
  CHECK(t->scratch + t->work <= SLM2_WEB_SCRATCH_MAX && t->input_max == 65536 + 16 * t->context && t->max_positions == 256);
}

/* The regions of a request hold what it needs for any text of input_max bytes. */
static void test_work(void) {
  static const uint32_t sizes[] = {1, 65536, 187136, 1000000};
  for (uint32_t i = 0; i < 4; i++) {
    const slm2_web_work w = slm2_web_work_place(sizes[i]);
    size_t chat, tokenizer;
    CHECK(slm2_chat_scratch_bytes(sizes[i], &chat) == SLM2_OK);
    CHECK(slm2_tokenize_scratch_bytes((size_t)w.text_max, &tokenizer) == SLM2_OK);
    CHECK(w.zone_bytes >= sizes[i] + chat && w.zone_bytes >= tokenizer + 4 * w.text_max && w.text_max > sizes[i]);
    CHECK(w.event >= w.generator + slm2_generator_bytes() && w.text >= w.event + sizeof(slm2_token_event));
    CHECK(w.mask >= w.text + w.text_max && w.zone >= w.mask + w.text_max && w.bytes >= w.zone + w.zone_bytes);
    CHECK(w.zone % 64 == 0 && w.bytes < 36 * (uint64_t)sizes[i] + 36 * 4096 + 32768);
    CHECK(w.zone_bytes > slm2_reader_bytes() + SLM2_HEADER_MAX || sizes[i] < 65536); /* OPEN verifies there */
  }
}

static void test_plans(void) {
  static const web_setup setups[] = {{1, 0, 0, 1, 1}, {48, 1, 0, 8, 1}, {256, 1, 1, 128, 2}, {256, 0, 1, 128, 64},
                                     {100, 1, 0, 33, 3}};
  for (uint32_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
    CHECK(web_make_plan(file.bytes, file.n, &setups[i], 4000) == SLM2_OK);
    check_map(&web_plan_terms, &setups[i]);
    CHECK(web_plan_terms.context == setups[i].context && web_plan_terms.largest_context == 256 && web_plan_terms.limit == 4000);
  }
  web_setup s = {0, 1, 0, 8, 1};
  CHECK(web_make_plan(file.bytes, file.n, &s, 4000) == SLM2_OK && web_plan_terms.context == 256);
  uint64_t pages = web_plan_terms.pages; /* the same with just as many, not with one less */
  CHECK(web_make_plan(file.bytes, file.n, &s, (uint32_t)pages) == SLM2_OK && web_plan_terms.context == 256);
  CHECK(web_make_plan(file.bytes, file.n, &s, (uint32_t)pages - 1) == SLM2_OK);
  uint32_t largest = (uint32_t)web_plan_terms.context;
  CHECK(largest < 256 && largest == web_plan_terms.largest_context && web_plan_terms.pages == pages - 1);
  s.context = largest;
  CHECK(web_make_plan(file.bytes, file.n, &s, (uint32_t)pages - 1) == SLM2_OK);
  s.context = largest + 1;
  CHECK(web_make_plan(file.bytes, file.n, &s, (uint32_t)pages - 1) == SLM2_E_MEMORY);
  CHECK(web_plan_terms.context == largest + 1 && web_plan_terms.pages == pages && web_plan_terms.largest_context == largest);
  s.context = 0;
  CHECK(web_make_plan(file.bytes, file.n, &s, 10) == SLM2_E_MEMORY);
  CHECK(web_plan_terms.largest_context == 0 && web_plan_terms.context == 256);
}

static void test_bad_plans(void) {
  static const struct { web_setup s; uint32_t pages; const char *name; } cases[] = {
      {{257, 1, 0, 8, 1}, 4000, "context"}, {{UINT32_MAX, 1, 0, 8, 1}, 4000, "context"}, {{48, 2, 0, 8, 1}, 4000, "profile"},
      {{48, 1, 2, 8, 1}, 4000, "kv"},       {{48, 1, 0, 0, 1}, 4000, "tile"},            {{48, 1, 0, 129, 1}, 4000, "tile"},
      {{48, 1, 0, 8, 0}, 4000, "threads"},  {{48, 1, 0, 8, 65}, 4000, "threads"},        {{48, 1, 0, 8, 1}, 0, "pages"},
      {{48, 1, 0, 8, 1}, SLM2_WEB_MAX_PAGES + 1, "pages"}};
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_CASE(web_make_plan(file.bytes, file.n, &cases[i].s, cases[i].pages) == SLM2_E_ARGUMENT, cases[i].name);
    CHECK_CASE(strcmp(slm2_web_failure()->name, cases[i].name) == 0, cases[i].name);
  }
}

/* A header alone, as of a model that is not there: scratch and work stay within 64 MiB, whatever is asked for. */
static slm2_status plan_big(uint32_t context, uint32_t threads, uint32_t pages) {
  static uint8_t prefix[1 << 20];
  slm2_header h = {.config = {4096, 24576, 36, 32, 8, 128, 151936, 262144, 1000000, 1e-6f, false}, .form = SLM2_FORM_PANELS};
  slm2_error error;
  strcpy(h.license, "unknown"), strcpy(h.source, "unknown"), strcpy(h.source_revision, "unknown");
  h.generation = (slm2_generation){.top_p = 1.0f, .repeat_penalty = 1.0f, .bos = UINT32_MAX, .pad = UINT32_MAX};
  CHECK(slm2_header_layout(&h, &error) == SLM2_OK);
  uint8_t *hashes = calloc((size_t)h.n_chunks, 32);
  slm2_store_u64(prefix, h.header_bytes);
  CHECK(slm2_header_write(&h, hashes, prefix + 8, sizeof prefix - 8, &error) == SLM2_OK);
  free(hashes);
  web_lend(2 * SLM2_WEB_CONTROL);
  memcpy(slm2_web_at(PREFIX), prefix, sizeof prefix);
  const uint64_t n = 8 + h.header_bytes + h.data_bytes;
  slm2_status status =
      slm2_web_plan(PREFIX, (uint32_t)(8 + h.header_bytes + 32), n, context, 1, 1, 128, threads, pages, slm2_web_heap());
  slm2_web_plan_load(&web_plan_terms, slm2_web_at(slm2_web_heap()));
  return status;
}

static void test_scratch_limit(void) {
  const slm2_web_plan_terms *t = &web_plan_terms;
  if (sizeof(size_t) == 4) { /* 8.7 GB have no addresses there */
    CHECK(plan_big(1000, 1, 65520) == SLM2_E_MEMORY);
    return;
  }
  CHECK(plan_big(131072, 1, 65520) == SLM2_E_MEMORY && t->input_max < 65536 + 16 * 131072);
  CHECK(t->scratch + t->work <= SLM2_WEB_SCRATCH_MAX && t->scratch + t->work > SLM2_WEB_SCRATCH_MAX - 4096 &&
        t->largest_context == 0);
  CHECK(plan_big(131072, 64, 65520) == SLM2_E_MEMORY && strcmp(slm2_web_failure()->name, "scratch") == 0);
  CHECK(t->input_max == 65536 && t->scratch + t->work > SLM2_WEB_SCRATCH_MAX);
}

/* The prefix is all that slm2_model_bytes looks at: behind it nothing is mapped (a sanitizer sees it). */
static void test_prefix(void) {
  const size_t need = (size_t)(8 + file.header.header_bytes + 32);
  size_t whole, part;
  slm2_error error;
  uint8_t *prefix = aligned_alloc(64, (need + 63) & ~(size_t)63), *exact = prefix;
  memset(prefix, 0xff, (need + 63) & ~(size_t)63);
  memcpy(exact, file.bytes, need);
  CHECK(slm2_model_bytes(file.bytes, file.n, &whole, &error) == SLM2_OK);
  CHECK(slm2_model_bytes(exact, file.n, &part, &error) == SLM2_OK && whole == part);
  free(prefix);
}

int main(void) {
  file = web_text_model();
  test_header();
  test_bad_header();
  test_addresses();
  test_reader();
  test_work();
  test_plans();
  test_bad_plans();
  test_scratch_limit();
  test_prefix();
  web_return();
  free(file.bytes);
  return test_end("web_plan");
}
