/* convert/emit.c: writes a file through a sink, in order. */
#include "convert/emit.h"
#include "convert/output.h"
#include "convert/section.h"
#include "convert/text.h"
#include "base/decimal.h"
#include "base/json.h"
#include "base/utf8.h"

void slm2_emit_begin(slm2_emitter *e, const slm2_sink *sink, slm2_error *error) {
  e->sink = sink;
  e->error = error;
  e->status = SLM2_OK;
  e->at = e->total = e->reported = 0;
  e->phase = "export";
  e->n = 0;
}

/* Writes n bytes that end at e->at. */
static void write(slm2_emitter *e, const void *bytes, size_t n) {
  if (e->sink == NULL || e->status != SLM2_OK || n == 0) return;
  e->status = e->sink->write(e->sink->user, e->at - n, bytes, n, e->error);
  if (e->status == SLM2_OK && e->total != 0) slm2_report(e->sink, e->phase, e->at, e->total, &e->reported);
}

static void flush(slm2_emitter *e) {
  write(e, e->buffer, e->n);
  e->n = 0;
}

slm2_status slm2_emit_end(slm2_emitter *e) {
  flush(e);
  return e->status;
}

void slm2_emit_bytes(slm2_emitter *e, const void *bytes, size_t n) {
  if (n > sizeof e->buffer - e->n) flush(e);
  e->at += n;
  if (n >= sizeof e->buffer) {
    write(e, bytes, n);
    return;
  }
  memcpy(e->buffer + e->n, bytes, n);
  e->n += n;
}

void slm2_emit_u32(slm2_emitter *e, uint32_t value) {
  uint8_t bytes[4];
  slm2_store_u32(bytes, value);
  slm2_emit_bytes(e, bytes, sizeof bytes);
}
void slm2_emit_u64(slm2_emitter *e, uint64_t value) {
  uint8_t bytes[8];
  slm2_store_u64(bytes, value);
  slm2_emit_bytes(e, bytes, sizeof bytes);
}
void slm2_emit_fill(slm2_emitter *e, uint8_t byte, uint64_t align) {
  while (e->at % align != 0) slm2_emit_bytes(e, &byte, 1);
}

void slm2_emit_text(slm2_emitter *e, const char *text) { slm2_emit_bytes(e, text, text_length(text)); }
void slm2_emit_decimal(slm2_emitter *e, uint64_t value) {
  char text[SLM2_DECIMAL_MAX];
  slm2_emit_bytes(e, text, slm2_u64_to_decimal(value, text));
}
void slm2_emit_float(slm2_emitter *e, float value) {
  char text[SLM2_DECIMAL_MAX];
  slm2_emit_bytes(e, text, slm2_f32_to_decimal(value, text));
}

void slm2_emit_string(slm2_emitter *e, const void *text, size_t n) {
  const char *s = text;
  slm2_emit_text(e, "\"");
  for (size_t i = 0; i < n; i++) { /* escapes are of single bytes, so pieces may end anywhere */
    char out[8];
    slm2_emit_bytes(e, out, slm2_json_escape(s + i, 1, out, sizeof out));
  }
  slm2_emit_text(e, "\"");
}

size_t slm2_symbols_length(const uint8_t *bytes, size_t n) {
  size_t length = 0;
  for (size_t i = 0; i < n; i++) length += slm2_byte_symbol(bytes[i]) < 0x80 ? 1 : 2;
  return length;
}

void slm2_emit_symbols(slm2_emitter *e, const uint8_t *bytes, size_t n, bool json) {
  for (size_t i = 0; i < n; i++) {
    uint8_t out[4];
    size_t length = slm2_utf8_put(slm2_byte_symbol(bytes[i]), out);
    if (json && (out[0] == '"' || out[0] == '\\')) slm2_emit_text(e, "\\");
    slm2_emit_bytes(e, out, length);
  }
}
