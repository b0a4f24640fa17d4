/* format/metadata.c: the keys of __metadata__. One table says for each key where its value lies in slm2_header and
 * how it is written; the writer walks it, the parser follows it. Every value is a JSON string (a safetensors rule). */
#include "format/layout.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/sha256.h"
#include <float.h>

typedef enum field_type {
  CONSTANT, /* always the same text */
  TEXT,     /* a char array */
  U32,
  U64,
  F32,      /* shortest decimal that reads back */
  BOOL,     /* "true", "false" */
  ID,       /* uint32_t, UINT32_MAX = "none" */
  EOS,      /* "1,2", "none" */
  CHAT,
  FORM,
  HASHES,
} field_type;

typedef struct field {
  const char *key;
  field_type type;
  size_t offset; /* in slm2_header */
  const char *constant;
  slm2_status code; /* CONSTANT: what another value means */
} field;

#define AT(member) offsetof(slm2_header, member)
static const field fields[] = {
  {"format", CONSTANT, 0, "slm2", SLM2_E_FORMAT},
  {"format_version", CONSTANT, 0, "1", SLM2_E_VERSION},
  {"architecture", CONSTANT, 0, "qwen3", SLM2_E_UNSUPPORTED},
  {"license", TEXT, AT(license), NULL, SLM2_OK},
  {"source", TEXT, AT(source), NULL, SLM2_OK},
  {"source_revision", TEXT, AT(source_revision), NULL, SLM2_OK},
  {"chat_format", CHAT, AT(chat_format), NULL, SLM2_OK},
  {"hidden_size", U32, AT(config.hidden), NULL, SLM2_OK},
  {"intermediate_size", U32, AT(config.intermediate), NULL, SLM2_OK},
  {"num_hidden_layers", U32, AT(config.layers), NULL, SLM2_OK},
  {"num_attention_heads", U32, AT(config.heads), NULL, SLM2_OK},
  {"num_key_value_heads", U32, AT(config.kv_heads), NULL, SLM2_OK},
  {"head_dim", U32, AT(config.head_dim), NULL, SLM2_OK},
  {"vocab_size", U32, AT(config.vocab), NULL, SLM2_OK},
  {"max_position_embeddings", U32, AT(config.max_positions), NULL, SLM2_OK},
  {"rope_theta", U32, AT(config.rope_theta), NULL, SLM2_OK},
  {"rms_norm_eps", F32, AT(config.rms_eps), NULL, SLM2_OK},
  {"tie_word_embeddings", BOOL, AT(config.tied), NULL, SLM2_OK},
  {"weight_form", FORM, AT(form), NULL, SLM2_OK},
  {"do_sample", BOOL, AT(generation.do_sample), NULL, SLM2_OK},
  {"temperature", F32, AT(generation.temperature), NULL, SLM2_OK},
  {"top_k", U32, AT(generation.top_k), NULL, SLM2_OK},
  {"top_p", F32, AT(generation.top_p), NULL, SLM2_OK},
  {"repetition_penalty", F32, AT(generation.repeat_penalty), NULL, SLM2_OK},
  {"bos_token_id", ID, AT(generation.bos), NULL, SLM2_OK},
  {"eos_token_ids", EOS, 0, NULL, SLM2_OK},
  {"pad_token_id", ID, AT(generation.pad), NULL, SLM2_OK},
  {"tokenizer_bytes", U64, AT(tokenizer_bytes), NULL, SLM2_OK},
  {"chunk_bytes", CONSTANT, 0, "4194304", SLM2_E_UNSUPPORTED},
  {"chunk_sha256", HASHES, 0, NULL, SLM2_OK},
};
enum { FIELDS = sizeof fields / sizeof *fields };

uint32_t slm2_metadata_count(void) { return FIELDS; }
const char *slm2_metadata_key(uint32_t i) { return fields[i].key; }

static const char *const form_names[] = {"Q8_0", "Q8_0_P32"};
static const char *const chat_names[] = {"none", "qwen3"};

const char *slm2_dtype_name(slm2_dtype dtype, slm2_weight_form form) {
  return dtype == SLM2_DTYPE_U8 ? "U8" : dtype == SLM2_DTYPE_F32 ? "F32" : form_names[form];
}

/* Members of slm2_header by the table's offset; memcpy because the table knows no types. */
static uint32_t u32_of(const slm2_header *header, const field *f) {
  uint32_t v;
  memcpy(&v, (const char *)header + f->offset, sizeof v);
  return v;
}
static uint64_t u64_of(const slm2_header *header, const field *f) {
  uint64_t v;
  memcpy(&v, (const char *)header + f->offset, sizeof v);
  return v;
}
static float f32_of(const slm2_header *header, const field *f) { return slm2_float_from_bits(u32_of(header, f)); }
static bool bool_of(const slm2_header *header, const field *f) {
  bool v;
  memcpy(&v, (const char *)header + f->offset, sizeof v);
  return v;
}
static void store(slm2_header *header, const field *f, const void *value, size_t n) {
  memcpy((char *)header + f->offset, value, n);
}

/* --- emitting -------------------------------------------------------------- */

static void put(slm2_header_sink *sink, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++, sink->at++) {
    if (sink->at >= sink->capacity) continue;
    if (sink->out != NULL) sink->out[sink->at] = (uint8_t)text[i];
    if (sink->expected != NULL && sink->expected[sink->at] != (uint8_t)text[i] && sink->difference == UINT64_MAX) {
      sink->difference = sink->at;
    }
  }
}

void slm2_sink_text(slm2_header_sink *sink, const char *text) {
  size_t n = 0;
  while (text[n] != 0) n++;
  put(sink, text, n);
}

void slm2_sink_u64(slm2_header_sink *sink, uint64_t value) {
  char text[SLM2_DECIMAL_MAX];
  put(sink, text, slm2_u64_to_decimal(value, text));
}

static void emit_hashes(slm2_header_sink *sink, uint64_t n_chunks, const uint8_t *hashes) {
  sink->hashes_at = sink->at;
  if (hashes == NULL) {
    sink->at += 64 * n_chunks;
    return;
  }
  for (uint64_t i = 0; i < n_chunks; i++) {
    char hex[65];
    slm2_hex(hashes + 32 * i, 32, hex);
    put(sink, hex, 64);
  }
}

static void emit_id(slm2_header_sink *sink, uint32_t id) {
  if (id == UINT32_MAX) slm2_sink_text(sink, "none");
  else slm2_sink_u64(sink, id);
}

static void emit_f32(slm2_header_sink *sink, float value) {
  char text[SLM2_DECIMAL_MAX];
  put(sink, text, slm2_f32_to_decimal(value, text));
}

static void emit_eos(slm2_header_sink *sink, const slm2_generation *g) {
  if (g->n_eos == 0) slm2_sink_text(sink, "none");
  for (uint32_t i = 0; i < g->n_eos; i++) {
    if (i > 0) slm2_sink_text(sink, ",");
    slm2_sink_u64(sink, g->eos[i]);
  }
}

void slm2_emit_metadata_value(slm2_header_sink *sink, uint32_t i, const slm2_header *h, const uint8_t *hashes) {
  const field *f = &fields[i];
  switch (f->type) {
  case CONSTANT: slm2_sink_text(sink, f->constant); break;
  case TEXT: slm2_sink_text(sink, (const char *)h + f->offset); break;
  case U32: slm2_sink_u64(sink, u32_of(h, f)); break;
  case U64: slm2_sink_u64(sink, u64_of(h, f)); break;
  case F32: emit_f32(sink, f32_of(h, f)); break;
  case BOOL: slm2_sink_text(sink, bool_of(h, f) ? "true" : "false"); break;
  case ID: emit_id(sink, u32_of(h, f)); break;
  case EOS: emit_eos(sink, &h->generation); break;
  case CHAT: slm2_sink_text(sink, chat_names[h->chat_format]); break;
  case FORM: slm2_sink_text(sink, form_names[h->form]); break;
  case HASHES: emit_hashes(sink, h->n_chunks, hashes); break;
  }
}

void slm2_emit_metadata(slm2_header_sink *sink, const slm2_header *header, const uint8_t *hashes) {
  slm2_sink_text(sink, "{\"__metadata__\":{");
  for (uint32_t i = 0; i < FIELDS; i++) {
    if (i > 0) slm2_sink_text(sink, ",");
    slm2_sink_text(sink, "\"");
    slm2_sink_text(sink, fields[i].key);
    slm2_sink_text(sink, "\":\"");
    slm2_emit_metadata_value(sink, i, header, hashes);
    slm2_sink_text(sink, "\"");
  }
  slm2_sink_text(sink, "}");
}

/* --- reading --------------------------------------------------------------- */

/* A refusal that shows the key, what stood there (cut to 63 bytes) and what was wanted. */
static slm2_status refuse(slm2_status code, const field *f, const slm2_json_token *t, uint64_t base, const char *wanted,
                          slm2_error *error) {
  char shown[64] = {0};
  memcpy(shown, t->raw, t->n_raw < 63 ? t->n_raw : 63);
  return slm2_fail(error, code, "slm2 header", f->key, base + t->offset, "%s is \"%s\"; this build reads %s", f->key, shown,
                   wanted);
}

/* Digits without leading zeros, at most max. */
static bool parse_u64(const char *text, size_t n, uint64_t max, uint64_t *out) {
  if (n == 0 || (n > 1 && text[0] == '0')) return false;
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    unsigned digit = (unsigned)(text[i] - '0');
    if (v > max / 10 || v * 10 > max - digit) return false;
    v = v * 10 + digit;
  }
  *out = v;
  return true;
}

/* Each reader returns what it wanted, or NULL when *header has the value. */
static const char *read_text(const field *f, const slm2_json_token *t, slm2_header *h) {
  size_t room = f->offset == AT(source_revision) ? sizeof h->source_revision : sizeof h->license;
  if (t->n_raw >= room) return "a shorter text";
  char text[sizeof h->license] = {0};
  memcpy(text, t->raw, t->n_raw);
  store(h, f, text, room);
  return NULL;
}

static const char *read_integer(const field *f, const slm2_json_token *t, slm2_header *h) {
  uint64_t v64 = UINT32_MAX;
  if (f->type != ID || !slm2_json_is(t, "none")) {
    uint64_t max = f->type == U64 ? UINT64_MAX : f->type == ID ? UINT32_MAX - 1 : UINT32_MAX;
    if (!parse_u64(t->raw, t->n_raw, max, &v64)) return "a plain decimal integer in range";
  }
  uint32_t v32 = (uint32_t)v64;
  if (f->type == U64) store(h, f, &v64, sizeof v64);
  else store(h, f, &v32, sizeof v32);
  return NULL;
}

static const char *read_f32(const field *f, const slm2_json_token *t, slm2_header *h) {
  float v;
  if (!slm2_decimal_to_f32(t->raw, t->n_raw, &v) || v - v != 0) return "a finite decimal number";
  store(h, f, &v, sizeof v);
  return NULL;
}

static const char *read_bool(const field *f, const slm2_json_token *t, slm2_header *h) {
  bool v = slm2_json_is(t, "true");
  if (!v && !slm2_json_is(t, "false")) return "\"true\" or \"false\"";
  store(h, f, &v, sizeof v);
  return NULL;
}

static const char *read_eos(const slm2_json_token *t, slm2_generation *g) {
  g->n_eos = 0;
  if (slm2_json_is(t, "none")) return NULL;
  for (size_t from = 0; from <= t->n_raw;) {
    size_t to = from;
    while (to < t->n_raw && t->raw[to] != ',') to++;
    uint64_t id;
    if (g->n_eos == SLM2_MAX_EOS || !parse_u64(t->raw + from, to - from, UINT32_MAX - 1, &id)) {
      return "\"none\", or 1 to 8 ids with commas between them";
    }
    g->eos[g->n_eos++] = (uint32_t)id;
    from = to + 1;
  }
  return NULL;
}

/* Index of the token's text among two names; 2 when it is neither. */
static unsigned index_of(const slm2_json_token *t, const char *const names[2]) {
  return slm2_json_is(t, names[0]) ? 0 : slm2_json_is(t, names[1]) ? 1 : 2;
}

slm2_status slm2_metadata_read(uint32_t i, const slm2_json_token *t, uint64_t base, slm2_header *h, slm2_error *error) {
  const field *f = &fields[i];
  const char *wanted = NULL;
  slm2_status code = SLM2_E_FORMAT;
  unsigned index;
  switch (f->type) {
  case CONSTANT:
    if (slm2_json_is(t, f->constant)) return SLM2_OK;
    code = f->code;
    wanted = f->constant;
    break;
  case TEXT: wanted = read_text(f, t, h); break;
  case U32:
  case U64:
  case ID: wanted = read_integer(f, t, h); break;
  case F32: wanted = read_f32(f, t, h); break;
  case BOOL: wanted = read_bool(f, t, h); break;
  case EOS: wanted = read_eos(t, &h->generation); break;
  case CHAT:
    index = index_of(t, chat_names);
    if (index < 2) h->chat_format = (slm2_chat_format)index;
    else wanted = "\"none\" or \"qwen3\"";
    code = SLM2_E_UNSUPPORTED;
    break;
  case FORM:
    index = index_of(t, form_names);
    if (index < 2) h->form = (slm2_weight_form)index;
    else wanted = "\"Q8_0\" or \"Q8_0_P32\"";
    code = SLM2_E_UNSUPPORTED_QUANTIZATION;
    break;
  case HASHES: break;
  }
  return wanted == NULL ? SLM2_OK : refuse(code, f, t, base, wanted, error);
}

/* --- checking -------------------------------------------------------------- */

static slm2_status bad_field(const char *key, const char *why, slm2_error *error) {
  return slm2_fail(error, SLM2_E_FORMAT, "slm2 header", key, SLM2_NO_OFFSET, "%s %s", key, why);
}

/* Length of a text of allowed characters that is terminated inside its array of n; 0 when it is none. */
static size_t good_length(const char *text, size_t n, bool (*allowed)(char)) {
  size_t i = 0;
  while (i < n && text[i] != 0 && allowed(text[i])) i++;
  return i < n && text[i] == 0 ? i : 0;
}
static bool in_license(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-'; }
static bool in_source(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }
static bool in_revision(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

static bool revision_good(const char revision[48]) {
  return memcmp(revision, "unknown", 8) == 0 || good_length(revision, 48, in_revision) == 40;
}

static slm2_status check_id(const char *key, uint32_t id, uint32_t vocab, slm2_error *error) {
  if (id < vocab) return SLM2_OK;
  return slm2_fail(error, SLM2_E_TOKEN, "slm2 header", key, SLM2_NO_OFFSET, "%s is %u, but vocab_size is %u", key, (uint64_t)id,
                   (uint64_t)vocab);
}

slm2_status slm2_metadata_check(const slm2_header *h, slm2_error *error) {
  const slm2_generation *g = &h->generation;
  if (h->form > SLM2_FORM_PANELS) return bad_field("weight_form", "is none of the two forms", error);
  if (h->chat_format > SLM2_CHAT_QWEN3) return bad_field("chat_format", "is unknown", error);
  if (good_length(h->license, sizeof h->license, in_license) == 0) {
    return bad_field("license", "is not 1 to 63 of a-z 0-9 . + -", error);
  }
  if (good_length(h->source, sizeof h->source, in_source) == 0) {
    return bad_field("source", "is not 1 to 63 printable ASCII characters without quote and backslash", error);
  }
  if (!revision_good(h->source_revision)) {
    return bad_field("source_revision", "is neither \"unknown\" nor 40 lower-case hexadecimal digits", error);
  }
  if (!(g->temperature >= 0 && g->temperature <= FLT_MAX)) {
    return bad_field("temperature", "is not a finite number from 0", error);
  }
  if (!(g->top_p >= 0 && g->top_p <= 1)) return bad_field("top_p", "is not a number from 0 to 1", error);
  if (!(g->repeat_penalty > 0 && g->repeat_penalty <= FLT_MAX)) {
    return bad_field("repetition_penalty", "is not a finite number above 0", error);
  }
  if (g->n_eos > SLM2_MAX_EOS) return bad_field("eos_token_ids", "has more than 8 ids", error);
  if (g->bos != UINT32_MAX) SLM2_TRY(check_id("bos_token_id", g->bos, h->config.vocab, error));
  if (g->pad != UINT32_MAX) SLM2_TRY(check_id("pad_token_id", g->pad, h->config.vocab, error));
  for (uint32_t i = 0; i < g->n_eos; i++) SLM2_TRY(check_id("eos_token_ids", g->eos[i], h->config.vocab, error));
  if (h->tokenizer_bytes > SLM2_MAX_TOKENIZER_BYTES) {
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "slm2 header", "tokenizer_bytes", SLM2_NO_OFFSET,
                     "tokenizer_bytes is %u, more than %u", h->tokenizer_bytes, (uint64_t)SLM2_MAX_TOKENIZER_BYTES);
  }
  return SLM2_OK;
}
