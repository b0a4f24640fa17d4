/* base/error.c: fills an slm2_error without stdio, and the pinned names of the statuses. Everything that comes
 * from arguments is made safe for a terminal here, once: control characters (C0, DEL, C1) and ill-formed
 * UTF-8 become '?'. */
#include "base/error.h"
#include "base/utf8.h"
#include "base/bytes.h"

/* A string being built in a fixed buffer; once a code point did not fit, nothing more is added. */
typedef struct text_out {
  char *chars;
  size_t capacity, n;
  bool full;
} text_out;

static void put_code_point(text_out *out, uint32_t cp) {
  uint8_t bytes[4];
  size_t n = slm2_utf8_put(cp, bytes);
  if (out->full || n >= out->capacity - out->n) { /* one byte stays for the NUL */
    out->full = true;
    return;
  }
  memcpy(out->chars + out->n, bytes, n);
  out->n += n;
}

static void put_untrusted(text_out *out, const char *s, size_t n) {
  for (size_t i = 0; i < n && !out->full;) {
    uint32_t cp;
    bool valid = true;
    i += slm2_utf8_next((const uint8_t *)s + i, n - i, &cp, &valid);
    if (!valid || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) cp = '?';
    put_code_point(out, cp);
  }
}

static void put_number(text_out *out, uint64_t value, unsigned base) {
  char digits[20]; /* UINT64_MAX has 20 decimal digits */
  size_t n = 0;
  do {
    digits[n++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  while (n > 0) put_code_point(out, (uint8_t)digits[--n]);
}

static void put_signed(text_out *out, int64_t value) {
  if (value < 0) put_code_point(out, '-');
  put_number(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
}

/* strlen and strnlen in one: the core may not call libc for them. */
static size_t text_length(const char *s) {
  size_t n = 0;
  while (s[n] != 0) n++;
  return n;
}

static void put_format(text_out *out, const char *fmt, va_list *args) {
  for (size_t i = 0; fmt[i] != 0; i++) {
    if (fmt[i] != '%') {
      size_t n = 1;
      while (fmt[i + n] != 0 && fmt[i + n] != '%') n++;
      put_untrusted(out, fmt + i, n);
      i += n - 1;
      continue;
    }
    switch (fmt[++i]) {
    case 's': {
      const char *s = va_arg(*args, const char *);
      put_untrusted(out, s, text_length(s));
      break;
    }
    case 'u': put_number(out, va_arg(*args, uint64_t), 10); break;
    case 'x': put_number(out, va_arg(*args, uint64_t), 16); break;
    case 'd': put_signed(out, va_arg(*args, int64_t)); break;
    case '%': put_code_point(out, '%'); break;
    default: return; /* not a directive: the rest of the arguments cannot be trusted */
    }
  }
}

static void fill(slm2_error *error, slm2_status code, const char *operation, const char *name, size_t n_name,
                 uint64_t offset, const char *fmt, va_list *args) {
  slm2_error filled; /* built aside: an argument may point into *error */
  memset(&filled, 0, sizeof filled);
  filled.code = code;
  filled.offset = offset;
  text_out op = {filled.operation, sizeof filled.operation, 0, false};
  text_out who = {filled.name, sizeof filled.name, 0, false};
  text_out message = {filled.message, sizeof filled.message, 0, false};
  put_untrusted(&op, operation, text_length(operation));
  if (name != NULL) put_untrusted(&who, name, n_name);
  put_format(&message, fmt, args);
  *error = filled;
}

slm2_status slm2_fail(slm2_error *error, slm2_status code, const char *operation, const char *name, uint64_t offset,
                      const char *fmt, ...) {
  if (error == NULL) return code;
  va_list args;
  va_start(args, fmt);
  fill(error, code, operation, name, name == NULL ? 0 : text_length(name), offset, fmt, &args);
  va_end(args);
  return code;
}

slm2_status slm2_fail_n(slm2_error *error, slm2_status code, const char *operation, const char *name, size_t n_name,
                        uint64_t offset, const char *fmt, ...) {
  if (error == NULL) return code;
  va_list args;
  va_start(args, fmt);
  fill(error, code, operation, name, n_name, offset, fmt, &args);
  va_end(args);
  return code;
}

const char *slm2_status_name(slm2_status status) {
  switch (status) {
  case SLM2_OK: return "OK";
  case SLM2_NEED_MORE: return "NEED_MORE";
  case SLM2_E_ARGUMENT: return "ARGUMENT";
  case SLM2_E_MEMORY: return "MEMORY";
  case SLM2_E_IO: return "IO";
  case SLM2_E_FORMAT: return "FORMAT";
  case SLM2_E_JSON: return "JSON";
  case SLM2_E_VERSION: return "VERSION";
  case SLM2_E_INTEGRITY: return "INTEGRITY";
  case SLM2_E_UNSUPPORTED: return "UNSUPPORTED";
  case SLM2_E_UNSUPPORTED_QUANTIZATION: return "UNSUPPORTED_QUANTIZATION";
  case SLM2_E_DIMENSION_MISMATCH: return "DIMENSION_MISMATCH";
  case SLM2_E_WEIGHT: return "WEIGHT";
  case SLM2_E_TOKEN: return "TOKEN";
  case SLM2_E_CHAT: return "CHAT";
  case SLM2_E_CONTEXT_OVERFLOW: return "CONTEXT_OVERFLOW";
  case SLM2_E_NUMERICAL: return "NUMERICAL";
  case SLM2_E_CANCELLED: return "CANCELLED";
  case SLM2_E_INTERNAL_INVARIANT: return "INTERNAL_INVARIANT";
  }
  return "UNKNOWN";
}
