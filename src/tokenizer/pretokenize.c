/* tokenizer/pretokenize.c: Qwen's split, a regular expression there, one pass here:
 *
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N} |  ?[^\s\p{L}\p{N}]+[\r\n]*
 *   | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * Alternatives are tried in order and the first that matches wins, however long a later one would be. Letters,
 * numbers, spaces and the rest are disjoint, so each alternative is decided by the runs that follow; a space
 * run is read at most twice (its part after the last line break again).
 */
#include "tokenizer/internal.h"
#include "tokenizer/unicode.h"

/* Class of the character at text[at] and its length; text is valid UTF-8. */
static uint32_t class_at(const uint8_t *text, size_t at, size_t *length) {
  const uint8_t *p = text + at;
  uint32_t cp = p[0];
  if (cp < 0x80) {
    *length = 1;
  } else if (cp < 0xe0) {
    *length = 2;
    cp = (cp & 0x1f) << 6 | (p[1] & 0x3fu);
  } else if (cp < 0xf0) {
    *length = 3;
    cp = (cp & 0x0f) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
  } else {
    *length = 4;
    cp = (cp & 0x07) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
  }
  return slm2_unicode_kind(cp) & 3u;
}

static size_t skip_class(const uint8_t *text, size_t n, size_t at, uint32_t class) {
  size_t length;
  while (at < n && class_at(text, at, &length) == class) at += length;
  return at;
}

static bool is_line_break(uint8_t byte) { return byte == '\r' || byte == '\n'; }

/* Length of a contraction after an apostrophe, or 0. Case folding makes U+017F (long s) an s; no other
 * character folds to one of these letters. */
static size_t contraction(const uint8_t *p, size_t n) {
  if (n >= 2 && p[0] == 0xc5 && p[1] == 0xbf) return 2;
  if (n == 0) return 0;
  uint8_t a = p[0] | 0x20, b = n >= 2 ? p[1] | 0x20 : 0;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 1;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 2 : 0;
}

/* \s*[\r\n]+ | \s+(?!\S) | \s+ at a space character of the given length. */
static size_t space_end(const uint8_t *text, size_t n, size_t at, size_t length) {
  size_t end = at, last = at, after_break = at;
  while (end < n && class_at(text, end, &length) == SLM2_CLASS_SPACE) {
    last = end;
    end += length;
    if (is_line_break(text[last])) after_break = end;
  }
  if (after_break != at) return after_break;
  return end == n || last == at ? end : last; /* leave one space to the word that follows */
}

size_t slm2_pretoken_end(const uint8_t *text, size_t n, size_t at) {
  size_t length, next_length;
  uint32_t class = class_at(text, at, &length);
  if (class == SLM2_CLASS_LETTER) return skip_class(text, n, at + length, SLM2_CLASS_LETTER);
  if (class == SLM2_CLASS_NUMBER) return at + length;
  if (text[at] == '\'') {
    size_t tail = contraction(text + at + 1, n - at - 1);
    if (tail != 0) return at + 1 + tail;
  }
  size_t next = at + length;
  uint32_t next_class = next < n ? class_at(text, next, &next_length) : (uint32_t)SLM2_CLASS_SPACE;
  if (next_class == SLM2_CLASS_LETTER && !is_line_break(text[at])) return skip_class(text, n, next, SLM2_CLASS_LETTER);
  if (class == SLM2_CLASS_OTHER || (text[at] == ' ' && next_class == SLM2_CLASS_OTHER)) {
    size_t end = skip_class(text, n, next, SLM2_CLASS_OTHER);
    while (end < n && is_line_break(text[end])) end++;
    return end;
  }
  return space_end(text, n, at, length);
}
