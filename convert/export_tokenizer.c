/* convert/export_tokenizer.c: a tokenizer section to the tokenizer.json of Hugging Face's `tokenizers`: Qwen's pipeline,
 * the vocabulary in byte symbols, merges as "left right", which every version reads, and the added tokens. */
#include "convert/export.h"
#include "convert/hf_pipeline.h"
#include "convert/text.h"

static void put_added(const slm2_tokenizer *t, slm2_emitter *out) {
  const char *between = "\n";
  slm2_emit_text(out, "  \"added_tokens\": [");
  for (uint32_t id = 0; id < slm2_tokenizer_size(t); id++) {
    if (!slm2_token_is_added(t, id)) continue;
    size_t n;
    const uint8_t *text = slm2_token_bytes(t, id, &n);
    slm2_emit_text(out, between);
    slm2_emit_text(out, "    {\"id\": ");
    slm2_emit_decimal(out, id);
    slm2_emit_text(out, ", \"content\": ");
    slm2_emit_string(out, text, n);
    slm2_emit_text(out, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": ");
    slm2_emit_text(out, slm2_token_is_special(t, id) ? "true}" : "false}");
    between = ",\n";
  }
  slm2_emit_text(out, "\n  ],\n");
}

static void put_pipeline(slm2_emitter *out) {
  static const char byte_level[] =
      "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false, \"use_regex\": false}";
  slm2_emit_text(out, "  \"normalizer\": {\"type\": \"NFC\"},\n"
                      "  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"
                      "    {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
  slm2_emit_string(out, slm2_qwen_pattern, text_length(slm2_qwen_pattern));
  slm2_emit_text(out, "}, \"behavior\": \"Isolated\", \"invert\": false},\n    ");
  slm2_emit_text(out, byte_level);
  slm2_emit_text(out, "\n  ]},\n  \"post_processor\": ");
  slm2_emit_text(out, byte_level);
  slm2_emit_text(out, ",\n  \"decoder\": ");
  slm2_emit_text(out, byte_level);
}

/* Added tokens get the ids behind the vocabulary, so one that has another id must be listed in it too. */
static void put_vocab(const slm2_tokenizer *t, slm2_emitter *out) {
  uint32_t end = 0;
  const char *between = "\n";
  for (uint32_t id = 0; id < slm2_tokenizer_size(t); id++) {
    if (slm2_token_exists(t, id) && !slm2_token_is_added(t, id)) end = id + 1;
  }
  slm2_emit_text(out, "    \"vocab\": {");
  for (uint32_t id = 0; id < end; id++) {
    size_t n;
    const uint8_t *bytes = slm2_token_bytes(t, id, &n);
    if (n == 0) continue;
    slm2_emit_text(out, between);
    if (slm2_token_is_added(t, id)) {
      slm2_emit_text(out, "      ");
      slm2_emit_string(out, bytes, n);
      slm2_emit_text(out, ": ");
    } else {
      slm2_emit_text(out, "      \"");
      slm2_emit_symbols(out, bytes, n, true);
      slm2_emit_text(out, "\": ");
    }
    slm2_emit_decimal(out, id);
    between = ",\n";
  }
  slm2_emit_text(out, "\n    },\n");
}

static void put_side(const slm2_export *e, const uint8_t *id, slm2_emitter *out) {
  size_t n;
  const uint8_t *bytes = slm2_token_bytes(e->tokenizer, slm2_load_u32(id), &n);
  slm2_emit_symbols(out, bytes, n, true);
}

static void put_merges(const slm2_export *e, slm2_emitter *out) {
  slm2_emit_text(out, "    \"merges\": [");
  for (uint32_t rank = 0; rank < e->n_merges; rank++) {
    const uint8_t *row = e->merges + 12 * (size_t)rank;
    slm2_emit_text(out, rank == 0 ? "\n      \"" : ",\n      \"");
    put_side(e, row, out);
    slm2_emit_text(out, " ");
    put_side(e, row + 4, out);
    slm2_emit_text(out, "\"");
  }
  slm2_emit_text(out, "\n    ]\n");
}

void slm2_export_tokenizer(const slm2_export *e, slm2_emitter *out) {
  slm2_emit_text(out, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
  put_added(e->tokenizer, out);
  put_pipeline(out);
  slm2_emit_text(out, ",\n  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
                      "    \"continuing_subword_prefix\": \"\",\n    \"end_of_word_suffix\": \"\",\n    \"fuse_unk\": false,\n"
                      "    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n");
  put_vocab(e->tokenizer, out);
  put_merges(e, out);
  slm2_emit_text(out, "  }\n}\n");
}
