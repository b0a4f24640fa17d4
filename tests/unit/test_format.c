/* tests/unit/test_format.c: geometry and canonical header of the SLM2 file, written, parsed and verified: known sizes
 * of the Qwen3 family, a header written out by hand, round trips in pieces of every size, refused contents by place. */
#include "tests/unit/format_file.h"

static const size_t pieces[] = {1, 7, 64, 4096, SIZE_MAX};
#define N_PIECES (sizeof pieces / sizeof *pieces)

/* Parameter counts and Q8_0 sizes of Hugging Face's configs (docs/FORMAT.md, "Sizes"). */
static void test_family(void) {
  static const struct {
    const char *name;
    slm2_config config;
    uint64_t parameters, tensor_bytes;
    uint32_t sections;
  } cases[] = {
    {"0.6B", {1024, 3072, 28, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true}, 596049920, 633495552, 3 + 28 * 11 + 1},
    {"1.7B", {2048, 6144, 28, 16, 8, 128, 151936, 40960, 1000000, 1e-6f, true}, 1720574976, 1828474880, 3 + 28 * 11 + 1},
    {"4B", {2560, 9728, 36, 32, 8, 128, 151936, 40960, 1000000, 1e-6f, true}, 4022468096, 4274448384, 3 + 36 * 11 + 1},
    {"8B", {4096, 12288, 36, 32, 8, 128, 151936, 40960, 1000000, 1e-6f, false}, 8190735360, 8703561728, 3 + 36 * 11 + 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int form = 0; form < 2; form++) {
      slm2_header h = format_header(&cases[i].config, (slm2_weight_form)form, 5000001);
      slm2_error e;
      CHECK_CASE(slm2_header_layout(&h, &e) == SLM2_OK, cases[i].name);
      CHECK_CASE(slm2_parameter_count(&h.config) == cases[i].parameters, cases[i].name);
      CHECK_CASE(slm2_tensor_bytes(&h) == cases[i].tensor_bytes, cases[i].name);
      CHECK_CASE(slm2_section_count(&h.config) == cases[i].sections, cases[i].name);
      /* the tokenizer (5,000,001 bytes) and the 64 frequencies, padded, are all the rest */
      CHECK_CASE(h.data_bytes == cases[i].tensor_bytes + 5000064 + 256, cases[i].name);
      CHECK_CASE(h.n_chunks == (h.data_bytes + 4194303) / 4194304 && (8 + h.header_bytes) % 64 == 0, cases[i].name);
    }
  }
}

static void test_sections(void) {
  slm2_header h = format_header(&format_tiny, SLM2_FORM_PANELS, 5);
  h.config.layers = 256;
  h.config.tied = false;
  static const struct {
    uint32_t i;
    const char *name;
    slm2_dtype dtype;
    uint32_t n_dims;
    uint64_t dims[2], bytes;
  } cases[] = {
    {0, "tokenizer", SLM2_DTYPE_U8, 1, {5, 1}, 5},
    {1, "rope.inv_freq", SLM2_DTYPE_F32, 1, {4, 1}, 16},
    {2, "model.embed_tokens.weight", SLM2_DTYPE_Q8, 2, {32, 32}, 1088},
    {3, "model.layers.0.input_layernorm.weight", SLM2_DTYPE_F32, 1, {32, 1}, 128},
    {8, "model.layers.0.self_attn.q_norm.weight", SLM2_DTYPE_F32, 1, {8, 1}, 32},
    {3 + 255 * 11 + 7, "model.layers.255.post_attention_layernorm.weight", SLM2_DTYPE_F32, 1, {32, 1}, 128},
    {3 + 255 * 11 + 8, "model.layers.255.mlp.gate_proj.weight", SLM2_DTYPE_Q8, 2, {64, 32}, 2176},
    {3 + 255 * 11 + 10, "model.layers.255.mlp.down_proj.weight", SLM2_DTYPE_Q8, 2, {32, 64}, 2176},
    {3 + 256 * 11, "model.norm.weight", SLM2_DTYPE_F32, 1, {32, 1}, 128},
    {3 + 256 * 11 + 1, "lm_head.weight", SLM2_DTYPE_Q8, 2, {32, 32}, 1088},
  };
  slm2_section s;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK(slm2_section_get(&h, cases[i].i, &s) == SLM2_OK);
    CHECK_CASE(strcmp(s.name, cases[i].name) == 0 && s.dtype == cases[i].dtype && s.n_dims == cases[i].n_dims, cases[i].name);
    CHECK_CASE(s.dims[0] == cases[i].dims[0] && s.dims[1] == cases[i].dims[1] && s.bytes == cases[i].bytes, cases[i].name);
  }
  uint64_t end = 0;
  uint32_t count = slm2_section_count(&h.config);
  for (uint32_t i = 0; i < count; i++) {
    CHECK(slm2_section_get(&h, i, &s) == SLM2_OK);
    CHECK_CASE(s.offset == end && s.offset % 64 == 0 && s.padded_bytes == (s.bytes + 63) / 64 * 64, s.name);
    end += s.padded_bytes;
  }
  CHECK(slm2_section_get(&h, count, &s) == SLM2_E_ARGUMENT && slm2_section_get(&h, UINT32_MAX, &s) == SLM2_E_ARGUMENT);
}

static void test_config_check(void) {
  static const struct {
    const char *key;
    size_t offset;
    uint32_t value;
    slm2_status status;
  } cases[] = {
#define AT(m) offsetof(slm2_config, m)
    {"hidden_size", AT(hidden), 48, SLM2_E_DIMENSION_MISMATCH}, {"hidden_size", AT(hidden), 0, SLM2_E_UNSUPPORTED},
    {"hidden_size", AT(hidden), 65568, SLM2_E_UNSUPPORTED}, {"hidden_size", AT(hidden), 65536, SLM2_OK},
    {"intermediate_size", AT(intermediate), 33, SLM2_E_DIMENSION_MISMATCH},
    {"intermediate_size", AT(intermediate), 0, SLM2_E_UNSUPPORTED},
    {"intermediate_size", AT(intermediate), 4294967264u, SLM2_E_UNSUPPORTED},
    {"intermediate_size", AT(intermediate), 262144, SLM2_OK},
    {"num_hidden_layers", AT(layers), 0, SLM2_E_UNSUPPORTED}, {"num_hidden_layers", AT(layers), 257, SLM2_E_UNSUPPORTED},
    {"num_hidden_layers", AT(layers), UINT32_MAX, SLM2_E_UNSUPPORTED}, {"num_hidden_layers", AT(layers), 256, SLM2_OK},
    {"num_attention_heads", AT(heads), 0, SLM2_E_UNSUPPORTED}, {"num_attention_heads", AT(heads), 1028, SLM2_E_UNSUPPORTED},
    {"num_attention_heads", AT(heads), 6, SLM2_E_DIMENSION_MISMATCH}, {"num_attention_heads", AT(heads), 1024, SLM2_OK},
    {"num_key_value_heads", AT(kv_heads), 0, SLM2_E_UNSUPPORTED},
    {"num_key_value_heads", AT(kv_heads), 3, SLM2_E_DIMENSION_MISMATCH},
    {"num_key_value_heads", AT(kv_heads), 2, SLM2_E_DIMENSION_MISMATCH},
    {"num_key_value_heads", AT(kv_heads), 8, SLM2_E_DIMENSION_MISMATCH},
    {"head_dim", AT(head_dim), 12, SLM2_E_DIMENSION_MISMATCH}, {"head_dim", AT(head_dim), 0, SLM2_E_UNSUPPORTED},
    {"head_dim", AT(head_dim), 520, SLM2_E_UNSUPPORTED}, {"head_dim", AT(head_dim), 512, SLM2_OK},
    {"vocab_size", AT(vocab), 31, SLM2_E_DIMENSION_MISMATCH}, {"vocab_size", AT(vocab), 0, SLM2_E_UNSUPPORTED},
    {"vocab_size", AT(vocab), 1048608, SLM2_E_UNSUPPORTED}, {"vocab_size", AT(vocab), 1048576, SLM2_OK},
    {"max_position_embeddings", AT(max_positions), 0, SLM2_E_UNSUPPORTED},
    {"max_position_embeddings", AT(max_positions), 16777217, SLM2_E_UNSUPPORTED},
    {"max_position_embeddings", AT(max_positions), 16777216, SLM2_OK},
    {"rope_theta", AT(rope_theta), 1, SLM2_E_UNSUPPORTED}, {"rope_theta", AT(rope_theta), 2147483649u, SLM2_E_UNSUPPORTED},
    {"rope_theta", AT(rope_theta), 2147483648u, SLM2_OK}, {"rms_norm_eps", AT(rms_eps), 0x00000000, SLM2_E_UNSUPPORTED},
    {"rms_norm_eps", AT(rms_eps), 0xbf800000, SLM2_E_UNSUPPORTED}, {"rms_norm_eps", AT(rms_eps), 0x7f800000, SLM2_E_UNSUPPORTED},
    {"rms_norm_eps", AT(rms_eps), 0x7fc00000, SLM2_E_UNSUPPORTED}, {"rms_norm_eps", AT(rms_eps), 0x3f800001, SLM2_E_UNSUPPORTED},
    {"rms_norm_eps", AT(rms_eps), 0x3f800000, SLM2_OK}, {"rms_norm_eps", AT(rms_eps), 0x00000001, SLM2_OK},
#undef AT
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_config c = format_tiny;
    slm2_error e = {0};
    memcpy((char *)&c + cases[i].offset, &cases[i].value, 4);
    CHECK_CASE(slm2_config_check(&c, &e) == cases[i].status, cases[i].key);
    /* a ratio is refused under the name of its numerator */
    bool ratio = cases[i].offset == offsetof(slm2_config, kv_heads) && (cases[i].value == 3 || cases[i].value == 8);
    if (cases[i].status != SLM2_OK) CHECK_CASE(strcmp(e.name, ratio ? "num_attention_heads" : cases[i].key) == 0, cases[i].key);
  }
  slm2_config largest = {65536, 262144, 256, 1024, 1024, 512, 1048576, 16777216, 1000000, 1e-6f, false};
  slm2_error e;
  slm2_header h = format_header(&largest, SLM2_FORM_ROWS, 268435456);
  CHECK(slm2_config_check(&largest, &e) == SLM2_OK);
  CHECK(slm2_header_layout(&h, &e) == SLM2_E_UNSUPPORTED && strstr(e.message,
    "1048576") != NULL); /* too many chunks for a header */
}

static const struct {
  const char *name;
  size_t offset;
  const char *text; /* into a char array; NULL: */
  uint64_t bits;    /* into a member of n bytes */
  size_t n;
  slm2_status status;
} field_cases[] = {
#define AT(m) offsetof(slm2_header, m)
  {"license", AT(license), "", 0, 0, SLM2_E_FORMAT},
  {"license", AT(license), "MIT", 0, 0, SLM2_E_FORMAT},
  {"license", AT(license), "mit", 0, 0, SLM2_OK},
  {"source", AT(source), "", 0, 0, SLM2_E_FORMAT},
  {"source", AT(source), "a\"b", 0, 0, SLM2_E_FORMAT},
  {"source", AT(source), "a\\b", 0, 0, SLM2_E_FORMAT},
  {"source", AT(source), "a\nb", 0, 0, SLM2_E_FORMAT},
  {"source", AT(source), "a\xc3\xa9", 0, 0, SLM2_E_FORMAT},
  {"source", AT(source), "0123456789012345678901234567890123456789012345678901234567890123", 0, 0, SLM2_E_FORMAT}, /* no NUL */
  {"source", AT(source), "012345678901234567890123456789012345678901234567890123456789012", 0, 0, SLM2_OK},
  {"source_revision", AT(source_revision), "abc", 0, 0, SLM2_E_FORMAT},
  {"source_revision", AT(source_revision), "unknown", 0, 0, SLM2_OK},
  {"source_revision", AT(source_revision), "C1899de289a04d12100db370d81485cdf75e47ca", 0, 0, SLM2_E_FORMAT},
  {"source_revision", AT(source_revision), "c1899de289a04d12100db370d81485cdf75e47ca0", 0, 0, SLM2_E_FORMAT},
  {"temperature", AT(generation.temperature), NULL, 0x7f800000, 4, SLM2_E_FORMAT},
  {"temperature", AT(generation.temperature), NULL, 0xbf800000, 4, SLM2_E_FORMAT},
  {"temperature", AT(generation.temperature), NULL, 0x00000000, 4, SLM2_OK},
  {"top_p", AT(generation.top_p), NULL, 0x7fc00000, 4, SLM2_E_FORMAT},
  {"top_p", AT(generation.top_p), NULL, 0xbf800000, 4, SLM2_E_FORMAT},
  {"top_p", AT(generation.top_p), NULL, 0x3f800001, 4, SLM2_E_FORMAT}, /* above 1: the sampler would refuse it */
  {"repetition_penalty", AT(generation.repeat_penalty), NULL, 0x00000000, 4, SLM2_E_FORMAT},
  {"repetition_penalty", AT(generation.repeat_penalty), NULL, 0x7f800000, 4, SLM2_E_FORMAT},
  {"bos_token_id", AT(generation.bos), NULL, 32, 4, SLM2_E_TOKEN},
  {"bos_token_id", AT(generation.bos), NULL, 31, 4, SLM2_OK},
  {"pad_token_id", AT(generation.pad), NULL, 32, 4, SLM2_E_TOKEN},
  {"eos_token_ids", AT(generation.eos), NULL, 32, 4, SLM2_E_TOKEN},
  {"eos_token_ids", AT(generation.n_eos), NULL, 9, 4, SLM2_E_FORMAT},
  {"eos_token_ids", AT(generation.n_eos), NULL, 0, 4, SLM2_OK},
  {"tokenizer_bytes", AT(tokenizer_bytes), NULL, 268435457, 8, SLM2_E_UNSUPPORTED},
  {"tokenizer_bytes", AT(tokenizer_bytes), NULL, 268435456, 8, SLM2_OK},
  {"weight_form", AT(form), NULL, 2, 4, SLM2_E_FORMAT},
  {"chat_format", AT(chat_format), NULL, 2, 4, SLM2_E_FORMAT},
#undef AT
};

static void test_field_check(void) {
  for (size_t i = 0; i < sizeof field_cases / sizeof *field_cases; i++) {
    slm2_header h = format_header(&format_tiny, SLM2_FORM_ROWS, 5);
    slm2_error e = {0};
    char *member = (char *)&h + field_cases[i].offset;
    uint32_t bits32 = (uint32_t)field_cases[i].bits;
    if (field_cases[i].text != NULL) {
      size_t n = strlen(field_cases[i].text) + 1;
      memcpy(member, field_cases[i].text, n > 64 ? 64 : n);
    } else if (field_cases[i].n == 4) {
      memcpy(member, &bits32, 4);
    } else {
      memcpy(member, &field_cases[i].bits, 8);
    }
    CHECK_CASE(slm2_header_layout(&h, &e) == field_cases[i].status, field_cases[i].name);
    if (field_cases[i].status == SLM2_OK) continue;
    CHECK_CASE(strcmp(e.name, field_cases[i].name) == 0 && h.header_bytes == 0 && h.n_chunks == 0, field_cases[i].name);
  }
}

/* The whole header of the tiny model, by hand. */
static const char expected_header[] =
  "{\"__metadata__\":{\"format\":\"slm2\",\"format_version\":\"1\",\"architecture\":\"qwen3\",\"license\":\"apache-2.0\","
  "\"source\":\"Qwen/Qwen3-0.6B\",\"source_revision\":\"c1899de289a04d12100db370d81485cdf75e47ca\",\"chat_format\":\"qwen3\","
  "\"hidden_size\":\"32\",\"intermediate_size\":\"64\",\"num_hidden_layers\":\"1\",\"num_attention_heads\":\"4\","
  "\"num_key_value_heads\":\"4\",\"head_dim\":\"8\",\"vocab_size\":\"32\",\"max_position_embeddings\":\"64\","
  "\"rope_theta\":\"10000\","
  "\"rms_norm_eps\":\"1e-06\",\"tie_word_embeddings\":\"false\",\"weight_form\":\"Q8_0_P32\",\"do_sample\":\"true\","
  "\"temperature\":\"0.6\",\"top_k\":\"20\",\"top_p\":\"0.95\",\"repetition_penalty\":\"1.0\",\"bos_token_id\":\"none\","
  "\"eos_token_ids\":\"5,3\",\"pad_token_id\":\"3\",\"tokenizer_bytes\":\"5\",\"chunk_bytes\":\"4194304\","
  "\"chunk_sha256\":\"00070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9\"},"
  "\"tokenizer\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,64]},"
  "\"rope.inv_freq\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[64,128]},"
  "\"model.embed_tokens.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[32,32],\"data_offsets\":[128,1216]},"
  "\"model.layers.0.input_layernorm.weight\":{\"dtype\":\"F32\",\"shape\":[32],\"data_offsets\":[1216,1344]},"
  "\"model.layers.0.self_attn.q_proj.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[32,32],\"data_offsets\":[1344,2432]},"
  "\"model.layers.0.self_attn.k_proj.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[32,32],\"data_offsets\":[2432,3520]},"
  "\"model.layers.0.self_attn.v_proj.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[32,32],\"data_offsets\":[3520,4608]},"
  "\"model.layers.0.self_attn.o_proj.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[32,32],\"data_offsets\":[4608,5696]},"
  "\"model.layers.0.self_attn.q_norm.weight\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[5696,5760]},"
  "\"model.layers.0.self_attn.k_norm.weight\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[5760,5824]},"
  "\"model.layers.0.post_attention_layernorm.weight\":{\"dtype\":\"F32\",\"shape\":[32],\"data_offsets\":[5824,5952]},"
  "\"model.layers.0.mlp.gate_proj.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[64,32],\"data_offsets\":[5952,8128]},"
  "\"model.layers.0.mlp.up_proj.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[64,32],\"data_offsets\":[8128,10304]},"
  "\"model.layers.0.mlp.down_proj.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[32,64],\"data_offsets\":[10304,12480]},"
  "\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[32],\"data_offsets\":[12480,12608]},"
  "\"lm_head.weight\":{\"dtype\":\"Q8_0_P32\",\"shape\":[32,32],\"data_offsets\":[12608,13696]}}";

static void test_expected_header(void) {
  slm2_config config = format_tiny;
  config.tied = false;
  slm2_header h = format_header(&config, SLM2_FORM_PANELS, 5), back;
  slm2_error e;
  uint8_t hash[32], out[4096], got[32], identity[32], direct[32];
  for (int i = 0; i < 32; i++) hash[i] = (uint8_t)(7 * i);
  CHECK(slm2_header_layout(&h, &e) == SLM2_OK);
  size_t text = sizeof expected_header - 1, n = (8 + text + 63) / 64 * 64 - 8;
  CHECK(h.header_bytes == n && h.data_bytes == 13696 && h.n_chunks == 1);
  memset(out, '#', sizeof out);
  CHECK(slm2_header_write(&h, hash, out, n - 1, &e) == SLM2_E_MEMORY && out[0] == '#');
  CHECK(slm2_header_write(&h, hash, out, sizeof out, &e) == SLM2_OK && out[n] == '#');
  CHECK(memcmp(out, expected_header, text) == 0);
  for (size_t i = text; i < n; i++) CHECK(out[i] == ' ');
  CHECK(slm2_header_parse(out, n, 8 + n + 13696, &back, &e) == SLM2_OK && format_same(&back, &h));
  CHECK(slm2_header_chunk_hash(out, n, &back, 0, got) == SLM2_OK && memcmp(got, hash, 32) == 0);
  CHECK(slm2_header_chunk_hash(out, n, &back, 1, got) == SLM2_E_ARGUMENT);
  CHECK(slm2_header_chunk_hash(out, n - 1, &back, 0, got) == SLM2_E_ARGUMENT);
  slm2_header_identity(out, n, identity);
  slm2_sha256_of(out, n, direct);
  CHECK(memcmp(identity, direct, 32) == 0);
  h.config.vocab = 64; /* a config edited after its layout */
  CHECK(slm2_header_write(&h, hash, out, sizeof out, &e) == SLM2_E_ARGUMENT);
}

static void test_round_trips(void) {
  static const slm2_config configs[] = {
    {32, 64, 1, 4, 4, 8, 32, 64, 10000, 1e-6f, true},
    {64, 96, 2, 4, 2, 32, 320, 256, 1000000, 1e-5f, false},
    {96, 32, 3, 6, 1, 64, 64, 40960, 5000000, 1e-6f, true},
  };
  for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
    for (unsigned k = 0; k < 4; k++) {
      format_file f = format_build(&configs[i], k & 1 ? SLM2_FORM_PANELS : SLM2_FORM_ROWS, k & 2 ? 1000 + i : 0, i);
      slm2_header back;
      slm2_error e;
      CHECK(slm2_header_parse(f.bytes + 8, (size_t)f.header.header_bytes, f.n, &back, &e) == SLM2_OK);
      CHECK(format_same(&back, &f.header));
      for (size_t p = 0; p < N_PIECES; p++) {
        CHECK(format_read(f.bytes, f.n, pieces[p], f.n, &e) == SLM2_OK);
        CHECK(format_read(f.bytes, f.n, pieces[p], UINT64_MAX, &e) == SLM2_OK);
        CHECK(format_read(f.bytes, f.n - 1, pieces[p], UINT64_MAX, &e) == SLM2_NEED_MORE);
      }
      free(f.bytes);
    }
  }
}

static void test_reader_states(void) {
  format_file f = format_build(&format_tiny, SLM2_FORM_PANELS, 0, 1);
  _Alignas(16) uint8_t mem[2048];
  uint8_t buffer[4096];
  slm2_reader *r = NULL;
  slm2_error e;
  CHECK(slm2_reader_bytes() <= sizeof mem);
  CHECK(slm2_reader_init(mem, slm2_reader_bytes() - 1, buffer, sizeof buffer, f.n, &r, &e) == SLM2_E_MEMORY && r == NULL);
  for (uint64_t n = 0; n < 8; n++) CHECK(slm2_reader_init(mem, sizeof mem, buffer, sizeof buffer, n, &r, &e) == SLM2_E_FORMAT);
  CHECK(slm2_reader_init(mem, sizeof mem, buffer, (size_t)f.header.header_bytes - 1, f.n, &r, &e) == SLM2_OK);
  CHECK(slm2_reader_push(r, f.bytes, f.n, &e) == SLM2_E_MEMORY && slm2_reader_header(r) == NULL);
  CHECK(slm2_reader_init(mem, sizeof mem, buffer, sizeof buffer, f.n, &r, &e) == SLM2_OK);
  CHECK(slm2_reader_push(r, NULL, 0, &e) == SLM2_NEED_MORE && slm2_reader_position(r) == 0);
  CHECK(slm2_reader_push(r, f.bytes, 7, &e) == SLM2_NEED_MORE && slm2_reader_position(r) == 7 && slm2_reader_header(r) == NULL);
  size_t head = 8 + (size_t)f.header.header_bytes;
  CHECK(slm2_reader_push(r, f.bytes + 7, head - 8, &e) == SLM2_NEED_MORE && slm2_reader_header(r) == NULL);
  CHECK(slm2_reader_push(r, f.bytes + head - 1, 1, &e) == SLM2_NEED_MORE && slm2_reader_header(r) != NULL);
  CHECK(format_same(slm2_reader_header(r), &f.header));
  CHECK(slm2_reader_push(r, f.bytes + head, f.n - head, NULL) == SLM2_OK && slm2_reader_position(r) == f.n);
  CHECK(slm2_reader_push(r, NULL, 0, &e) == SLM2_OK);
  CHECK(slm2_reader_push(r, f.bytes, 3, &e) == SLM2_E_FORMAT && strstr(e.message, "follow the end") != NULL && e.offset == f.n);
  memset(&e, 0, sizeof e);
  CHECK(slm2_reader_push(r, NULL, 0, &e) == SLM2_E_FORMAT && e.offset == f.n); /* repeated */
  CHECK(slm2_reader_push(r, f.bytes, 3, NULL) == SLM2_E_FORMAT);
  /* trailing bytes in the same piece, the size unknown */
  uint8_t *longer = calloc(1, f.n + 1);
  memcpy(longer, f.bytes, f.n);
  CHECK(format_read(longer, f.n + 1, SIZE_MAX, UINT64_MAX, &e) == SLM2_E_FORMAT && e.offset == f.n);
  CHECK(format_read(longer, f.n + 1, SIZE_MAX, f.n + 1, &e) == SLM2_E_FORMAT && strstr(e.message, "1 bytes follow") != NULL);
  free(longer);
  free(f.bytes);
}

/* Two chunks: damage is found in the chunk where it is, whatever else the damaged byte breaks. */
static void test_chunks(void) {
  slm2_config config = {512, 512, 1, 8, 4, 32, 8192, 64, 10000, 1e-6f, true};
  format_file f = format_build(&config, SLM2_FORM_PANELS, 100, 3);
  slm2_error e;
  CHECK(f.header.n_chunks == 2);
  uint8_t *data = format_data(&f);
  uint64_t head = 8 + f.header.header_bytes;
  for (size_t p = 1; p < N_PIECES; p++) CHECK(format_read(f.bytes, f.n, pieces[p], f.n, &e) == SLM2_OK);
  static const uint64_t places[] = {0, 5000, SLM2_CHUNK_BYTES - 1, SLM2_CHUNK_BYTES, SLM2_CHUNK_BYTES + 1,
    SLM2_CHUNK_BYTES + 77777};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    uint8_t before = data[places[i]];
    data[places[i]] = before == 0x80 ? 0x7f : 0x80; /* -128 where it is a weight */
    uint64_t chunk = places[i] / SLM2_CHUNK_BYTES;
    CHECK(format_read(f.bytes, f.n, 4099, f.n, &e) == SLM2_E_INTEGRITY && e.offset == head + chunk * SLM2_CHUNK_BYTES);
    CHECK(strstr(e.message, chunk == 0 ? "chunk 0" : "chunk 1") != NULL);
    data[places[i]] = before;
  }
  CHECK(format_read(f.bytes, f.n, SLM2_CHUNK_BYTES + 1, f.n, &e) == SLM2_OK);
  free(f.bytes);
}

/* Changes bytes of a section's payload under right hashes and expects a refusal that names the place. */
static void check_content(format_file *f, const char *name, uint64_t at, const char *bytes, size_t n, slm2_status status,
  uint64_t offset,
                          const char *words) {
  slm2_section s = format_section(f, name);
  uint8_t before[8], *p = format_data(f) + s.offset + at;
  memcpy(before, p, n);
  memcpy(p, bytes, n);
  format_seal(f);
  for (size_t i = 0; i < N_PIECES; i++) {
    slm2_error e = {0};
    CHECK_CASE(format_read(f->bytes, f->n, pieces[i], f->n, &e) == status, words);
    if (status == SLM2_OK) continue;
    CHECK_CASE(strcmp(e.name, name) == 0 && strstr(e.message, words) != NULL, words);
    CHECK_CASE(e.offset == 8 + f->header.header_bytes + s.offset + offset, words);
  }
  memcpy(p, before, n);
}

static void test_contents(void) {
  slm2_config config = {64, 96, 2, 4, 2, 32, 320, 256, 10000, 1e-6f, false};
  for (int form = 0; form < 2; form++) {
    format_file f = format_build(&config, (slm2_weight_form)form, 70, 4);
    static const uint32_t rows[] = {0, 15, 16, 31, 32, 63};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      const char *down = "model.layers.1.mlp.down_proj.weight"; /* [64, 96] */
      uint32_t block = (uint32_t)i % 3, k = (uint32_t)(i * 7) % 32;
      size_t scale = slm2_scale_at(f.header.form, 96, rows[i], block), weight = slm2_weight_at(f.header.form, 96, rows[i],
        block, k);
      char words[96];
      snprintf(words, sizeof words, "the scale of row %u, columns %u to %u is not finite", rows[i], 32 * block, 32 * block + 31);
      check_content(&f, down, scale, "\x00\x7c", 2, SLM2_E_WEIGHT, scale + 1, words);
      check_content(&f, down, scale, "\x00\xfc", 2, SLM2_E_WEIGHT, scale + 1, words);
      check_content(&f, down, scale, "\x01\x7e", 2, SLM2_E_WEIGHT, scale + 1, words);
      check_content(&f, down, scale, "\xff\x7b", 2, SLM2_OK, 0, "65504");
      check_content(&f, down, scale, "\x01\x80", 2, SLM2_OK, 0, "negative subnormal");
      check_content(&f, down, scale, "\x00\x80", 2, SLM2_OK, 0, "-0");
      check_content(&f, down, scale, "\x80\x3c", 2, SLM2_OK, 0, "0x80 in a scale");
      snprintf(words, sizeof words, "the weight of row %u, column %u is -128", rows[i], 32 * block + k);
      check_content(&f, down, weight, "\x80", 1, SLM2_E_WEIGHT, weight, words);
      check_content(&f, down, weight, "\x81", 1, SLM2_OK, 0, "-127");
      check_content(&f, down, weight, "\x7f", 1, SLM2_OK, 0, "127");
    }
    check_content(&f, "lm_head.weight", 2 + 62 * (size_t)form, "\x80", 1, SLM2_E_WEIGHT, 2 + 62 * (size_t)form,
      "row 0, column 0 is -128");
    check_content(&f, "model.norm.weight", 4 * 63, "\x00\x00\x80\x7f", 4, SLM2_E_WEIGHT, 4 * 63,
      "weight[63] is not finite (bits 0x7f800000");
    check_content(&f, "model.norm.weight", 0, "\x01\x00\x80\xff", 4, SLM2_E_WEIGHT, 0,
      "weight[0] is not finite (bits 0xff800001");
    check_content(&f, "model.norm.weight", 8, "\xff\xff\x7f\xff", 4, SLM2_OK, 0, "-FLT_MAX");
    check_content(&f, "model.layers.0.self_attn.k_norm.weight", 4, "\x00\x00\xc0\x7f", 4, SLM2_E_WEIGHT, 4,
      "weight[1] is not finite");
    check_content(&f, "rope.inv_freq", 4, "\x00\x00\x00\x00", 4, SLM2_E_WEIGHT, 4,
      "inv_freq[1] is not a frequency above 0 and at most 1");
    check_content(&f, "rope.inv_freq", 4, "\x00\x00\x00\xbf", 4, SLM2_E_WEIGHT, 4, "inv_freq[1]");
    check_content(&f, "rope.inv_freq", 4, "\x01\x00\x80\x3f", 4, SLM2_E_WEIGHT, 4, "inv_freq[1]");
    check_content(&f, "rope.inv_freq", 4, "\x00\x00\xc0\x7f", 4, SLM2_E_WEIGHT, 4, "inv_freq[1]");
    check_content(&f, "rope.inv_freq", 4, "\x00\x00\x80\x3f", 4, SLM2_OK, 0, "1");
    check_content(&f, "tokenizer", 70, "\x01", 1, SLM2_E_FORMAT, 70, "padding byte");
    check_content(&f, "tokenizer", 127, "\xff", 1, SLM2_E_FORMAT, 127, "0xff, not zero");
    check_content(&f, "tokenizer", 69, "\xff", 1, SLM2_OK, 0, "payload");
    free(f.bytes);
  }
}

int main(void) {
  test_family();
  test_sections();
  test_config_check();
  test_field_check();
  test_expected_header();
  test_round_trips();
  test_reader_states();
  test_chunks();
  test_contents();
  return test_end("format");
}
