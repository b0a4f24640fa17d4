/* convert/hf_added.c: the second list of added tokens, in tokenizer_config.json. */
#include "convert/byte_tokenizer.h"
#include "convert/hf.h"
#include "base/error.h"

#define WHAT "tokenizer_config.json"

static slm2_status refuse(slm2_error *error, const slm2_json_token *id, const char *why) {
  return slm2_fail_n(error, SLM2_E_UNSUPPORTED, "tokenizer", id->raw, id->n_raw, id->offset,
                     WHAT ": the added token of this id %s", why);
}

/* The id of a key: decimal digits without leading zeros. */
static bool read_id(const slm2_json_token *key, uint32_t *id) {
  uint64_t value = 0;
  if (key->n_raw == 0 || key->n_raw > 10 || (key->n_raw > 1 && key->raw[0] == '0')) return false;
  for (size_t i = 0; i < key->n_raw; i++) {
    if (key->raw[i] < '0' || key->raw[i] > '9') return false;
    value = 10 * value + (uint64_t)(key->raw[i] - '0');
  }
  *id = (uint32_t)value;
  return value < UINT32_MAX;
}

/* "151643": {"content": ..., "special": ..., ...}; the key was just read. */
static slm2_status check_token(slm2_json *j, const slm2_json_token *key, const uint8_t *section, char *scratch,
                               slm2_error *error) {
  slm2_json_token t, content = {.type = SLM2_JSON_END};
  bool special = false, is_special = false;
  uint32_t id;
  if (!read_id(key, &id)) return refuse(error, key, "has no id");
  SLM2_TRY(slm2_json_expect(j, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    if (slm2_json_is(&t, "content")) {
      SLM2_TRY(slm2_json_expect(j, SLM2_JSON_STRING, &content, error));
    } else if (slm2_json_is(&t, "special")) {
      SLM2_TRY(slm2_json_next(j, &t, error));
      SLM2_TRY(slm2_json_bool(j, &t, "special", &special, error));
    } else {
      SLM2_TRY(slm2_json_skip(j, &t, error));
    }
  }
  if (content.type == SLM2_JSON_END) return refuse(error, key, "has no content");
  size_t n = slm2_json_decode(&content, scratch);
  if (slm2_section_added_id(section, scratch, n, &is_special) != id) return refuse(error, key, "is not that of tokenizer.json");
  return special == is_special ? SLM2_OK : refuse(error, key, "is special in one file and not in tokenizer.json, or the reverse");
}

slm2_status slm2_hf_check_added(const char *json, size_t n, const uint8_t *section, char *scratch, slm2_error *error) {
  slm2_json j;
  slm2_json_token t;
  slm2_json_init(&j, json, n, WHAT);
  SLM2_TRY(slm2_json_expect(&j, SLM2_JSON_OBJECT, &t, error));
  for (;;) {
    SLM2_TRY(slm2_json_next(&j, &t, error));
    if (t.type == SLM2_JSON_OBJECT_END) break;
    bool added = slm2_json_is(&t, "added_tokens_decoder");
    if (added) SLM2_TRY(slm2_json_next(&j, &t, error));
    if (!added || t.type == SLM2_JSON_NULL) {
      SLM2_TRY(slm2_json_skip(&j, &t, error));
      continue;
    }
    if (t.type != SLM2_JSON_OBJECT) {
      return slm2_fail(error, SLM2_E_JSON, "tokenizer", "added_tokens_decoder", t.offset,
                       WHAT ": added_tokens_decoder is no object");
    }
    for (;;) {
      SLM2_TRY(slm2_json_next(&j, &t, error));
      if (t.type == SLM2_JSON_OBJECT_END) break;
      SLM2_TRY(check_token(&j, &t, section, scratch, error));
    }
  }
  return slm2_json_expect(&j, SLM2_JSON_END, &t, error);
}
