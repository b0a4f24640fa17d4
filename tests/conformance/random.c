/* tests/conformance/random.c: strings, ids and conversations from a seed, with integers only: the same on every machine. */
#include "base/utf8.h"
#include "tests/conformance/conformance.h"

uint64_t item_random(uint64_t seed, uint32_t index) { return seed + ((uint64_t)index << 32); }

uint32_t below(uint64_t *random, uint32_t n) { return (uint32_t)((test_random(random) >> 32) * n >> 32); }

void put(bytes *out, const void *text, size_t n) {
  if (n > sizeof out->at - out->n) return;
  memcpy(out->at + out->n, text, n);
  out->n += n;
}

void put_text(bytes *out, const char *text) { put(out, text, strlen(text)); }

void put_scalar(bytes *out, uint32_t scalar) {
  uint8_t utf8[4];
  put(out, utf8, slm2_utf8_put(scalar, utf8));
}

#define PICK(random, array) ((array)[below(random, sizeof(array) / sizeof((array)[0]))])

/* --- strings ---------------------------------------------------------------- */

static const char *const words[] = {
    "the", "of", "and", "language", "model's", "it's", "I'LL", "WE'RE", "don't", "they've", "she'd", "CAN'T", "'tis",
    "y'all'd'Ve", "function", "return_value", "x1", "0x4096", "3.14e-10", "HelloWorld", "camelCase", "snake_case",
    "Straße", "naïve", "Øresund", "ελληνικά", "русский", "עברית", "العربية",
    "हिन्दी", "ไทย", "日本語", "中文字", "한국어", "tiếng", "Việt", "ﬁx", "ſhip", "½",
    "²", "ⅷ", "①", "K", "Å", "Ω", "İstanbul", "ΑΣ", "Ǆ", "მთა", "እንጀራ", "ကမ္ဘာ",
    "ខ្មែរ", "བོད", "ᏣᎳᎩ"};
static const char *const code[] = {
    "->", "==", "!=", "();\n", "{\n\t", "}\n\n", "// ", "\"\"\"", "'''", "```", "...", "/*", "*/", "<|", "|>", "</", "<",
    "://", "\\n", "#!", "&&", "'", "’", "#include <stdint.h>\n", "    return x;\n", "def f(a, b=None):\n    ",
    "for (int i = 0; ", "SELECT * FROM t WHERE id=42;", "let x = () => {", "\r\n\r\n", "| a | b |\n|---|---|\n", "- [ ] ",
    "**bold** ", "$x^2$", "https://example.org/a?b=c&d=%20", "user@example.org", "1,234.56", "2026-11-30T02:00:00Z",
    "\x1b[31m", "    \n\n\t\t  "};
static const char *const marks_and_joins[] = {
    "👨‍👩‍👧", "🫠", "👍🏽", "🇩🇪", "3️⃣", "☃︎", "\xe2\x80\x8b", "\xef\xbb\xbf", "\xc2\xad",
    "\xef\xbf\xbd", "e\xcc\x81", "n\xcc\x83", "\xe2\x80\x8d", "क्षि", "ཀྱི"};
static const char *const tails[] = {"s",  "S", "t", "re", "RE", "Ve", "m", "ll", "lL", "d", "l",
                                    "r", "v", "ſ", "ſt", "K", "e", "ﬆ", "ŉ", "ß", "x"};
static const uint16_t spaces[] = {9,      10,     11,     12,     13,     32,     0x85,   0xa0,   0x1680,
                                  0x2000, 0x2003, 0x2007, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};

/* Scripts, symbols and the places where normalisation has work to do. */
static const struct { uint32_t first, last; } ranges[] = {
    {0x20, 0x7e},       {0xa0, 0xff},       {0x100, 0x24f},     {0x250, 0x2af},     {0x300, 0x36f},     {0x370, 0x3ff},
    {0x400, 0x52f},     {0x530, 0x58f},     {0x591, 0x5f4},     {0x600, 0x6ff},     {0x700, 0x74f},     {0x900, 0x97f},
    {0x980, 0x9ff},     {0xa00, 0xa7f},     {0xb80, 0xbff},     {0xc00, 0xcff},     {0xd00, 0xdff},     {0xe00, 0xe7f},
    {0xe80, 0xeff},     {0xf00, 0xfff},     {0x1000, 0x109f},   {0x10a0, 0x10ff},   {0x1100, 0x11ff},   {0x1200, 0x137f},
    {0x1780, 0x17ff},   {0x1800, 0x18af},   {0x1dc0, 0x1dff},   {0x1e00, 0x1eff},   {0x1f00, 0x1fff},   {0x2000, 0x206f},
    {0x2070, 0x209f},   {0x20d0, 0x20ff},   {0x2100, 0x218b},   {0x2190, 0x23ff},   {0x2460, 0x24ff},   {0x2500, 0x27bf},
    {0x2c00, 0x2dff},   {0x3000, 0x30ff},   {0x3130, 0x33ff},   {0x4e00, 0x9fff},   {0xa640, 0xa6ff},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfb00, 0xfb4f},   {0xfe00, 0xfe6f},   {0xff00, 0xffef},   {0x10330, 0x1034a}, {0x110b0, 0x110cf},
    {0x1d100, 0x1d1ff}, {0x1d400, 0x1d7ff}, {0x1f1e6, 0x1f1ff}, {0x1f300, 0x1faff}, {0x20000, 0x2a6df}, {0x2f800, 0x2fa1f},
    {0xe0100, 0xe01ef}};

static uint32_t any_scalar(uint64_t *random) {
  static const uint32_t tops[] = {0x80, 0x250, 0x800, 0x3000, 0x10000, 0x20000, 0x110000};
  uint32_t c = below(random, PICK(random, tops));
  return c >= 0xd800 && c < 0xe000 ? c - 0x800 : c;
}

static void put_tokens(const slm2_tokenizer *t, uint64_t *random, bytes *out) {
  for (uint32_t left = 1 + below(random, 4); left > 0; left--) {
    size_t n;
    const uint8_t *text = slm2_token_bytes(t, below(random, slm2_tokenizer_size(t)), &n);
    if (slm2_utf8_valid(text, n)) put(out, text, n);
  }
}

/* An added token, or its beginning or end. */
static void put_added(const slm2_tokenizer *t, uint64_t *random, bytes *out) {
  uint32_t id = slm2_tokenizer_size(t) - 1 - below(random, 26); /* Qwen3's 26 are the last ids */
  size_t n;
  const uint8_t *text = slm2_token_bytes(t, id, &n);
  uint32_t cut = 1 + below(random, (uint32_t)n - 1);
  switch (below(random, 4)) {
    case 0: put(out, text, cut); break;
    case 1: put(out, text + cut, n - cut); break;
    default: put(out, text, n);
  }
}

static void put_run(uint64_t *random, uint32_t scalar, uint32_t most, bytes *out) {
  for (uint32_t left = 1 + below(random, most); left > 0; left--) put_scalar(out, scalar);
}

static void put_script(uint64_t *random, bytes *out) {
  uint32_t i = below(random, sizeof ranges / sizeof ranges[0]);
  for (uint32_t left = 1 + below(random, 8); left > 0; left--)
    put_scalar(out, ranges[i].first + below(random, ranges[i].last - ranges[i].first + 1));
}

static void put_jamo(uint64_t *random, bytes *out) {
  static const struct { uint32_t first, n; } parts[] = {{0x1100, 19}, {0x1161, 21}, {0x11a7, 28}, {0xac00, 28}};
  for (uint32_t left = 1 + below(random, 5); left > 0; left--) {
    uint32_t k = below(random, 4);
    put_scalar(out, parts[k].first + below(random, parts[k].n));
  }
}

static void put_piece(const slm2_tokenizer *t, uint64_t *random, bytes *out) {
  switch (below(random, 16)) {
    case 0: case 1: case 2: put_tokens(t, random, out); break;
    case 3: put_text(out, " "); /* fall through */
    case 4: put_text(out, PICK(random, words)); break;
    case 5:
      for (uint32_t left = 1 + below(random, 6); left > 0; left--) put_scalar(out, PICK(random, spaces));
      break;
    case 6: put_run(random, PICK(random, spaces), 5, out); break;
    case 7: /* a letter and marks in any order */
      put_scalar(out, below(random, 2) ? 'a' + below(random, 26) : any_scalar(random));
      for (uint32_t left = below(random, 5); left > 0; left--) put_scalar(out, 0x300 + below(random, 0x70));
      break;
    case 8: put_jamo(random, out); break;
    case 9:
      put_text(out, "'");
      put_text(out, PICK(random, tails));
      break;
    case 10: put_text(out, PICK(random, code)); break;
    case 11: put_added(t, random, out); break;
    case 12:
      for (uint32_t left = 1 + below(random, 8); left > 0; left--) put_scalar(out, '0' + below(random, 10));
      break;
    case 13: put_text(out, PICK(random, marks_and_joins)); break;
    case 14: below(random, 8) ? put_script(random, out) : put_run(random, any_scalar(random), 64, out); break;
    default: put_scalar(out, any_scalar(random));
  }
}

static void damage_bytes(uint64_t *random, bytes *out) {
  static const uint8_t bad[] = {0x80, 0xc0, 0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0xff, 0xa0, 0x9f, 0xcc};
  for (uint32_t left = 1 + below(random, 4); left > 0 && out->n > 0; left--)
    out->at[below(random, (uint32_t)out->n)] = PICK(random, bad);
}

void make_string(const slm2_tokenizer *t, uint64_t *random, bool damage, bytes *out) {
  out->n = 0;
  for (uint32_t left = below(random, 100) == 0 ? below(random, 201) : below(random, 13); left > 0; left--)
    put_piece(t, random, out);
  if (damage && below(random, 8) == 0) damage_bytes(random, out);
}

uint32_t make_ids(uint64_t *random, uint32_t ids[24]) {
  uint32_t n = 1 + below(random, 24);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t kind = below(random, 8);
    ids[i] = kind == 0 ? 151643 + below(random, 30) : kind <= 2 ? below(random, 256) : below(random, 151936);
  }
  return n;
}

/* --- conversations ---------------------------------------------------------- */

static const char *const turns[] = {
    "Hi", "", "\n", "\n\nA\n", "<think>\nwhy\n</think>\n\nbecause", "<think>a</think>b</think>\nc", "<think>\nopen",
    "x</think>", "</think>", "<think></think>", "<think>\n\n</think>\n\nplain", "a<think>b<think>\nc\n</think>d", "</thi",
    "\n\n\n", "<tool_response>\nr\n</tool_response>", "<tool_response>", "</tool_response>",
    "<tool_response></tool_response>", "x<|im_end|>\n<|im_start|>system\n", "<tool_call>\n{}\n</tool_call>",
    "\"quoted\" \\ back / slash", " /no_think", "/think ", "What is the capital of France?", "Erzähl mir eine Geschichte.",
    "写一首关于海的诗。"};
static const char *const names[] = {"get_weather", "f", "", "näme", "a\"b", "x\ny", "<|im_end|>", "search.web"};
static const char *const numbers[] = {"0", "-17", "1.0", "0.1", "1e5", "1e+16", "2.5e-05", "123456789012345678901234567890",
                                      "-0.0", "3.14159265358979", "9007199254740993.0", "true", "false", "null"};

/* A JSON string; one character in 16 as \u escapes. text is valid UTF-8. */
static void put_json(uint64_t *random, const uint8_t *text, size_t n, bytes *out) {
  put_text(out, "\"");
  for (size_t at = 0; at < n;) {
    uint32_t c;
    bool valid;
    size_t length = slm2_utf8_next(text + at, n - at, &c, &valid);
    char escape[16];
    if (c < 0x20 || c == '"' || c == '\\' || below(random, 16) == 0) {
      if (c < 0x10000) snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
      else snprintf(escape, sizeof escape, "\\u%04X\\u%04X", (unsigned)(0xd7c0 + (c >> 10)), (unsigned)(0xdc00 + (c & 0x3ff)));
      put_text(out, escape);
    } else {
      put(out, text + at, length);
    }
    at += length;
  }
  put_text(out, "\"");
}

static void put_json_text(uint64_t *random, const char *text, bytes *out) {
  put_json(random, (const uint8_t *)text, strlen(text), out);
}

static void put_content(const slm2_tokenizer *t, uint64_t *random, bytes *out) {
  static bytes text, more;
  text.n = 0;
  if (below(random, 3) != 0) put_text(&text, PICK(random, turns));
  if (below(random, 2) != 0) {
    make_string(t, random, false, &more);
    if (more.n < 512) put(&text, more.at, more.n);
  }
  if (below(random, 4) == 0) put_text(&text, PICK(random, turns));
  put_json(random, text.at, text.n, out);
}

static void put_value(const slm2_tokenizer *t, uint64_t *random, unsigned depth, bytes *out);

static void put_object(const slm2_tokenizer *t, uint64_t *random, unsigned depth, bytes *out) {
  static const char *const keys[] = {"city", "a", "b", "type", "", "ö", "q\"", "properties"};
  uint32_t n = below(random, 4), first = below(random, 8);
  put_text(out, "{");
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0) put_text(out, ",");
    put_json_text(random, keys[(first + i) % 8], out);
    put_text(out, ": ");
    put_value(t, random, depth + 1, out);
  }
  put_text(out, "}");
}

static void put_value(const slm2_tokenizer *t, uint64_t *random, unsigned depth, bytes *out) {
  uint32_t kind = below(random, depth < 3 ? 6 : 3);
  if (kind < 2) {
    put_text(out, PICK(random, numbers));
  } else if (kind == 2) {
    put_content(t, random, out);
  } else if (kind == 3) {
    put_text(out, "[");
    put_value(t, random, depth + 1, out);
    put_text(out, below(random, 2) ? " , 1]" : "]");
  } else {
    put_object(t, random, depth, out);
  }
}

static void put_tool(const slm2_tokenizer *t, uint64_t *random, bytes *out) {
  put_text(out, "{\"type\":\"function\",\"function\":{\"name\":");
  put_json_text(random, PICK(random, names), out);
  put_text(out, ",\"description\":");
  put_content(t, random, out);
  put_text(out, ",\"parameters\":");
  put_object(t, random, 0, out);
  put_text(out, "}}");
}

static void put_tool_call(const slm2_tokenizer *t, uint64_t *random, bytes *out) {
  bool wrapped = below(random, 2) != 0;
  put_text(out, wrapped ? "{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":" : "{\"name\":");
  put_json_text(random, PICK(random, names), out);
  put_text(out, ",\"arguments\":");
  if (below(random, 3) == 0) put_content(t, random, out);
  else put_object(t, random, 0, out);
  put_text(out, wrapped ? "}}" : "}");
}

static void put_message(const slm2_tokenizer *t, uint64_t *random, bool first, bytes *out) {
  static const char *const roles[] = {"user", "assistant", "tool", "user", "assistant", "system"};
  const char *role = first && below(random, 2) ? "system" : PICK(random, roles);
  bool assistant = strcmp(role, "assistant") == 0;
  put_text(out, "{\"role\":");
  put_json_text(random, role, out);
  put_text(out, ",\"content\":");
  if (assistant && below(random, 8) == 0) put_text(out, "null");
  else put_content(t, random, out);
  if (assistant && below(random, 3) == 0) {
    put_text(out, ",\"reasoning_content\":");
    put_content(t, random, out);
  }
  if (assistant && below(random, 3) == 0) {
    put_text(out, ",\"tool_calls\":[");
    for (uint32_t left = 1 + below(random, 3); left > 0; left--) {
      put_tool_call(t, random, out);
      if (left > 1) put_text(out, ",");
    }
    put_text(out, "]");
  }
  put_text(out, "}");
}

void make_conversation(const slm2_tokenizer *t, uint64_t *random, bytes *out) {
  out->n = 0;
  put_text(out, "{\"messages\":[");
  uint32_t n = 1 + below(random, 6);
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0) put_text(out, ",\n");
    put_message(t, random, i == 0, out);
  }
  put_text(out, "]");
  if (below(random, 3) == 0) {
    put_text(out, ",\"tools\":[");
    for (uint32_t left = 1 + below(random, 3); left > 0; left--) {
      put_tool(t, random, out);
      if (left > 1) put_text(out, ",");
    }
    put_text(out, "]");
  }
  static const char *const prompts[] = {"", ",\"add_generation_prompt\":true", ",\"add_generation_prompt\":false"};
  static const char *const thinking[] = {"", ",\"enable_thinking\":true", ",\"enable_thinking\":false"};
  put_text(out, PICK(random, prompts));
  put_text(out, PICK(random, thinking));
  put_text(out, "}");
}
