/* format/header_parse.c: the strict reader of the header. The config fixes every byte, so the parser knows what must
 * come next and says what came instead. Last, the header is emitted again from the parsed fields and must be equal
 * byte for byte: whatever the checks before did not name, no other spelling gets through. */
#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"
#include "format/layout.h"

static const char operation[] = "slm2 header";
static const char use_convert[] = "`slm2 convert` makes an .slm2 file of it";
enum { TEXT_AT = 8 }; /* the JSON begins here in the file */

/* --- the length ------------------------------------------------------------ */

slm2_status slm2_header_length_check(uint64_t n, uint64_t file_bytes, slm2_error *error) {
  if (n > SLM2_HEADER_MAX) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, 0,
                     "not an slm2 file: its first 8 bytes give a header length of %u, more than %u", n,
                     (uint64_t)SLM2_HEADER_MAX);
  }
  if (n == 0 || (TEXT_AT + n) % SLM2_SECTION_ALIGN != 0) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, 0,
                     "header length %u: 8 + %u is not a multiple of 64; if this is a safetensors file, %s", n, n, use_convert);
  }
  if (file_bytes < TEXT_AT || n > file_bytes - TEXT_AT) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, 0, "header length %u goes beyond the end of the file of %u bytes", n,
                     file_bytes);
  }
  return SLM2_OK;
}

slm2_status slm2_header_length(const uint8_t first[8], uint64_t file_bytes, uint64_t *n, slm2_error *error) {
  if (memcmp(first, "GGUF", 4) == 0) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, 0, "this is a GGUF file, not an slm2 file; %s", use_convert);
  }
  if (memcmp(first, "version ", 8) == 0) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, 0,
                     "this looks like a Git LFS pointer, not the model itself: download the file it stands for");
  }
  if (file_bytes < TEXT_AT) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, 0,
                     "%u bytes are too few for an slm2 file: its header length alone takes 8", file_bytes);
  }
  uint64_t length = slm2_load_u64(first);
  SLM2_TRY(slm2_header_length_check(length, file_bytes, error));
  *n = length;
  return SLM2_OK;
}

/* --- tokens ---------------------------------------------------------------- */

typedef struct parser {
  slm2_json json;
  slm2_header header; /* filled as the text goes by */
  uint64_t n;
  slm2_error *error;
} parser;

static slm2_status expect(parser *p, slm2_json_type type, slm2_json_token *t) {
  return slm2_json_expect(&p->json, type, t, p->error);
}

/* A key or string without escapes: there is one spelling of everything. */
static slm2_status expect_text(parser *p, slm2_json_type type, slm2_json_token *t) {
  SLM2_TRY(expect(p, type, t));
  if (!t->escaped) return SLM2_OK;
  return slm2_fail_n(p->error, SLM2_E_FORMAT, operation, t->raw, t->n_raw, TEXT_AT + t->offset,
                     "an escape in a %s at byte %u: the header has none", type == SLM2_JSON_KEY ? "key" : "string",
                     (uint64_t)(TEXT_AT + t->offset));
}

/* Refuses key t (found) where `wanted` must stand. known: whether t is a key of this place; before: whether it came already. */
static slm2_status wrong_key(parser *p, const slm2_json_token *t, const char *wanted, bool known, bool before) {
  char found[64] = {0};
  uint64_t at = TEXT_AT + t->offset;
  memcpy(found, t->raw, t->n_raw < 63 ? t->n_raw : 63);
  if (!known) {
    return slm2_fail_n(p->error, SLM2_E_FORMAT, operation, t->raw, t->n_raw, at,
                       "unknown name \"%s\" at byte %u, where %s is expected", found, at, wanted);
  }
  if (before) return slm2_fail(p->error, SLM2_E_FORMAT, operation, found, at, "duplicate name \"%s\" at byte %u", found, at);
  return slm2_fail(p->error, SLM2_E_FORMAT, operation, wanted, at, "\"%s\" is missing before \"%s\" at byte %u", wanted, found,
                   at);
}

/* Reads the next key of an object, or its end where `wanted` is missing. */
static slm2_status next_key(parser *p, const char *wanted, slm2_json_token *t) {
  slm2_json before = p->json;
  SLM2_TRY(slm2_json_next(&p->json, t, p->error));
  if (t->type == SLM2_JSON_OBJECT_END) {
    uint64_t at = TEXT_AT + t->offset;
    return slm2_fail(p->error, SLM2_E_FORMAT, operation, wanted, at, "\"%s\" is missing: its object ends at byte %u", wanted, at);
  }
  p->json = before;
  return expect_text(p, SLM2_JSON_KEY, t);
}

/* --- __metadata__ ---------------------------------------------------------- */

static slm2_status wrong_metadata_key(parser *p, const slm2_json_token *t, uint32_t i) {
  uint32_t found = 0;
  while (found < slm2_metadata_count() && !slm2_json_is(t, slm2_metadata_key(found))) found++;
  return wrong_key(p, t, slm2_metadata_key(i), found < slm2_metadata_count(), found < i);
}

static slm2_status safetensors_instead(parser *p, const slm2_json_token *t) {
  return slm2_fail(p->error, SLM2_E_FORMAT, operation, "format", TEXT_AT + t->offset,
                   "not an slm2 file: __metadata__ does not begin with \"format\":\"slm2\"; if this is a safetensors file, %s",
                   use_convert);
}

static slm2_status read_metadata(parser *p, slm2_json_token *hashes) {
  slm2_json_token t;
  SLM2_TRY(expect(p, SLM2_JSON_OBJECT, &t));
  SLM2_TRY(slm2_json_next(&p->json, &t, p->error));
  if (!slm2_json_is(&t, "__metadata__")) return safetensors_instead(p, &t);
  SLM2_TRY(expect(p, SLM2_JSON_OBJECT, &t));
  for (uint32_t i = 0; i < slm2_metadata_count(); i++) {
    SLM2_TRY(next_key(p, slm2_metadata_key(i), &t));
    if (!slm2_json_is(&t, slm2_metadata_key(i))) return i == 0 ? safetensors_instead(p, &t) : wrong_metadata_key(p, &t, i);
    SLM2_TRY(expect_text(p, SLM2_JSON_STRING, &t));
    if (i == 0 && !slm2_json_is(&t, "slm2")) return safetensors_instead(p, &t);
    SLM2_TRY(slm2_metadata_read(i, &t, TEXT_AT, &p->header, p->error));
  }
  *hashes = t;
  SLM2_TRY(slm2_json_next(&p->json, &t, p->error));
  if (t.type == SLM2_JSON_KEY) return wrong_metadata_key(p, &t, slm2_metadata_count() - 1);
  return SLM2_OK;
}

/* The sizes follow from the fields; then the hashes can be counted. */
static slm2_status check_hashes(parser *p, const slm2_json_token *t) {
  SLM2_TRY(slm2_header_layout(&p->header, p->error));
  uint64_t at = TEXT_AT + t->offset, digits = 64 * p->header.n_chunks;
  if (t->n_raw != digits) {
    return slm2_fail(p->error, SLM2_E_FORMAT, operation, "chunk_sha256", at,
                     "chunk_sha256 has %u digits, but %u bytes of data are %u chunks: %u digits", (uint64_t)t->n_raw,
                     p->header.data_bytes, p->header.n_chunks, digits);
  }
  for (size_t i = 0; i < t->n_raw; i++) {
    char c = t->raw[i];
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) continue;
    return slm2_fail(p->error, SLM2_E_FORMAT, operation, "chunk_sha256", at + 1 + i,
                     "chunk_sha256 has a character that is no lower-case hexadecimal digit at byte %u", at + 1 + i);
  }
  return SLM2_OK;
}

/* --- sections -------------------------------------------------------------- */

static slm2_status wrong_section(parser *p, const slm2_json_token *t, uint32_t i, const char *wanted) {
  uint32_t found = 0;
  slm2_section s;
  while (slm2_section_get(&p->header, found, &s) == SLM2_OK && !slm2_json_is(t, s.name)) found++;
  return wrong_key(p, t, wanted, found < slm2_section_count(&p->header.config), found < i);
}

/* The member `name` of a section's entry. */
static slm2_status expect_member(parser *p, const slm2_section *s, const char *name) {
  slm2_json_token t;
  SLM2_TRY(next_key(p, name, &t));
  if (slm2_json_is(&t, name)) return SLM2_OK;
  return slm2_fail(p->error, SLM2_E_FORMAT, operation, s->name, TEXT_AT + t.offset,
                   "%s: its entry does not have \"%s\" at byte %u", s->name, name, (uint64_t)(TEXT_AT + t.offset));
}

static slm2_status read_dtype(parser *p, const slm2_section *s) {
  slm2_json_token t;
  SLM2_TRY(expect_member(p, s, "dtype"));
  SLM2_TRY(expect_text(p, SLM2_JSON_STRING, &t));
  const char *wanted = slm2_dtype_name(s->dtype, p->header.form);
  if (slm2_json_is(&t, wanted)) return SLM2_OK;
  char found[32] = {0};
  memcpy(found, t.raw, t.n_raw < 31 ? t.n_raw : 31);
  bool known = slm2_json_is(&t, "U8") || slm2_json_is(&t, "F32") || slm2_json_is(&t, "Q8_0") || slm2_json_is(&t, "Q8_0_P32");
  return slm2_fail(p->error, known ? SLM2_E_FORMAT : SLM2_E_UNSUPPORTED_QUANTIZATION, operation, s->name, TEXT_AT + t.offset,
                   "%s has dtype %s, but %s is demanded (weight_form is %s)", s->name, found, wanted,
                   slm2_dtype_name(SLM2_DTYPE_Q8, p->header.form));
}

/* An array of 1 or 2 integers; *n is how many it has (3: more than 2). */
static slm2_status read_integers(parser *p, const char *name, uint64_t v[2], uint32_t *n, uint64_t *at) {
  slm2_json_token t;
  SLM2_TRY(expect(p, SLM2_JSON_ARRAY, &t));
  *at = TEXT_AT + t.offset;
  for (*n = 0; *n < 3; ++*n) {
    SLM2_TRY(slm2_json_next(&p->json, &t, p->error));
    if (t.type == SLM2_JSON_ARRAY_END) return SLM2_OK;
    uint64_t value;
    SLM2_TRY(slm2_json_u64(&p->json, &t, name, &value, p->error));
    if (*n < 2) v[*n] = value;
  }
  return SLM2_OK;
}

static slm2_status read_shape(parser *p, const slm2_section *s) {
  uint64_t v[2] = {1, 1}, at;
  uint32_t n;
  SLM2_TRY(expect_member(p, s, "shape"));
  SLM2_TRY(read_integers(p, s->name, v, &n, &at));
  if (n == s->n_dims && v[0] == s->dims[0] && v[1] == s->dims[1]) return SLM2_OK;
  if (n != s->n_dims) {
    return slm2_fail(p->error, SLM2_E_DIMENSION_MISMATCH, operation, s->name, at, "%s has %s%u dimensions, but %u are demanded",
                     s->name, n > 2 ? "at least " : "", (uint64_t)n, (uint64_t)s->n_dims);
  }
  if (n == 1) {
    return slm2_fail(p->error, SLM2_E_DIMENSION_MISMATCH, operation, s->name, at,
                     "%s has shape [%u], but the config demands [%u]", s->name, v[0], s->dims[0]);
  }
  return slm2_fail(p->error, SLM2_E_DIMENSION_MISMATCH, operation, s->name, at,
                   "%s has shape [%u,%u], but the config demands [%u,%u]", s->name, v[0], v[1], s->dims[0], s->dims[1]);
}

static slm2_status check_offsets(parser *p, const slm2_section *s, uint64_t begin, uint64_t end, uint64_t at) {
  slm2_error *e = p->error;
  if (begin > end) {
    return slm2_fail(e, SLM2_E_FORMAT, operation, s->name, at, "%s begins at %u, after its end %u", s->name, begin, end);
  }
  if (begin % SLM2_SECTION_ALIGN != 0) {
    return slm2_fail(e, SLM2_E_FORMAT, operation, s->name, at, "%s begins at %u, which is not a multiple of 64", s->name, begin);
  }
  if (begin > s->offset) {
    return slm2_fail(e, SLM2_E_FORMAT, operation, s->name, at, "%s begins at %u: a hole of %u bytes before it", s->name, begin,
                     begin - s->offset);
  }
  if (begin < s->offset) {
    return slm2_fail(e, SLM2_E_FORMAT, operation, s->name, at, "%s begins at %u: it overlaps the %u bytes before %u", s->name,
                     begin, s->offset - begin, s->offset);
  }
  if (end - begin != s->padded_bytes) {
    return slm2_fail(e, SLM2_E_FORMAT, operation, s->name, at, "%s takes %u bytes, but its shape demands %u (%u padded to 64)",
                     s->name, end - begin, s->padded_bytes, s->bytes);
  }
  return SLM2_OK;
}

static slm2_status read_offsets(parser *p, const slm2_section *s) {
  uint64_t v[2], at;
  uint32_t n;
  SLM2_TRY(expect_member(p, s, "data_offsets"));
  SLM2_TRY(read_integers(p, s->name, v, &n, &at));
  if (n != 2) {
    return slm2_fail(p->error, SLM2_E_FORMAT, operation, s->name, at, "%s: data_offsets at byte %u are not two numbers",
                     s->name, at);
  }
  return check_offsets(p, s, v[0], v[1], at);
}

static slm2_status read_section(parser *p, uint32_t i) {
  slm2_section s;
  slm2_json_token t;
  SLM2_TRY(slm2_section_get(&p->header, i, &s));
  SLM2_TRY(next_key(p, s.name, &t));
  if (!slm2_json_is(&t, s.name)) return wrong_section(p, &t, i, s.name);
  SLM2_TRY(expect(p, SLM2_JSON_OBJECT, &t));
  SLM2_TRY(read_dtype(p, &s));
  SLM2_TRY(read_shape(p, &s));
  SLM2_TRY(read_offsets(p, &s));
  return expect(p, SLM2_JSON_OBJECT_END, &t);
}

static slm2_status read_sections(parser *p) {
  slm2_json_token t;
  uint32_t count = slm2_section_count(&p->header.config);
  for (uint32_t i = 0; i < count; i++) SLM2_TRY(read_section(p, i));
  SLM2_TRY(slm2_json_next(&p->json, &t, p->error));
  if (t.type == SLM2_JSON_KEY) return wrong_section(p, &t, count, "the end");
  return expect(p, SLM2_JSON_END, &t);
}

/* --- the whole ------------------------------------------------------------- */

static slm2_status check_canonical(parser *p, const uint8_t *json) {
  slm2_header_sink sink = {.expected = json, .capacity = p->n, .difference = UINT64_MAX};
  slm2_emit_header(&sink, &p->header, NULL);
  if (sink.difference != UINT64_MAX) {
    return slm2_fail(p->error, SLM2_E_FORMAT, operation, NULL, TEXT_AT + sink.difference,
                     "not the canonical header of this model: byte %u is spelled differently", TEXT_AT + sink.difference);
  }
  if (sink.at != p->n) {
    return slm2_fail(p->error, SLM2_E_FORMAT, operation, NULL, 0, "the header has %u bytes, but the canonical one has %u", p->n,
                     sink.at);
  }
  return SLM2_OK;
}

static slm2_status check_file_size(const slm2_header *h, uint64_t file_bytes, slm2_error *error) {
  uint64_t demanded = TEXT_AT + h->header_bytes + h->data_bytes;
  if (file_bytes == UINT64_MAX || file_bytes == demanded) return SLM2_OK;
  if (file_bytes < demanded) {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, file_bytes,
                     "the file is cut short: it has %u bytes, but its header demands %u", file_bytes, demanded);
  }
  return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, demanded, "%u bytes follow the end of the data at byte %u",
                   file_bytes - demanded, demanded);
}

slm2_status slm2_header_parse(const uint8_t *json, size_t n, uint64_t file_bytes, slm2_header *out, slm2_error *error) {
  SLM2_TRY(slm2_header_length_check(n, file_bytes, error));
  if (json[0] != '{') {
    return slm2_fail(error, SLM2_E_FORMAT, operation, NULL, TEXT_AT, "not an slm2 file: byte 8 is 0x%x, not '{'",
                     (uint64_t)json[0]);
  }
  parser p = {.n = n, .error = error};
  slm2_json_init(&p.json, (const char *)json, n, operation);
  p.json.base = TEXT_AT;
  slm2_json_token hashes = {SLM2_JSON_END, NULL, 0, false, 0};
  SLM2_TRY(read_metadata(&p, &hashes));
  SLM2_TRY(check_hashes(&p, &hashes));
  SLM2_TRY(read_sections(&p));
  SLM2_TRY(check_canonical(&p, json));
  SLM2_TRY(check_file_size(&p.header, file_bytes, error));
  *out = p.header;
  return SLM2_OK;
}
