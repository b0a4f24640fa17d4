/* tests/unit/test_error.c: the formatter of base/error.h and the pinned status names. */
#include "base/error.h"
#include "tests/test.h"

static void test_status_names(void) {
  static const char *const names[] = {"OK", "NEED_MORE", "ARGUMENT", "MEMORY", "IO", "FORMAT", "JSON", "VERSION", "INTEGRITY",
                                      "UNSUPPORTED", "UNSUPPORTED_QUANTIZATION", "DIMENSION_MISMATCH", "WEIGHT", "TOKEN", "CHAT",
                                      "CONTEXT_OVERFLOW", "NUMERICAL", "CANCELLED", "INTERNAL_INVARIANT"};
  for (int i = 0; i < 19; i++) CHECK_CASE(strcmp(slm2_status_name((slm2_status)i), names[i]) == 0, names[i]);
  CHECK(strcmp(slm2_status_name((slm2_status)19), "UNKNOWN") == 0);
  CHECK(strcmp(slm2_status_name((slm2_status)1000), "UNKNOWN") == 0);
  CHECK(SLM2_E_INTERNAL_INVARIANT == 18);
}

static void test_directives(void) {
  slm2_error e;
  memset(&e, 0xee, sizeof e);
  CHECK(slm2_fail(&e, SLM2_E_FORMAT, "slm2 header", "a.b", 7, "%s has %u of %u, %d, 0x%x, 100%%", "it", (uint64_t)0,
    UINT64_MAX, INT64_MIN,
                  (uint64_t)0xdeadbeefcafe) == SLM2_E_FORMAT);
  CHECK(e.code == SLM2_E_FORMAT && e.offset == 7);
  CHECK(strcmp(e.operation, "slm2 header") == 0 && strcmp(e.name, "a.b") == 0);
  CHECK(strcmp(e.message, "it has 0 of 18446744073709551615, -9223372036854775808, 0xdeadbeefcafe, 100%") == 0);
  CHECK(slm2_fail(&e, SLM2_E_IO, "x", NULL, SLM2_NO_OFFSET, "%d %d %x", (int64_t)-1, INT64_MAX, (uint64_t)0) == SLM2_E_IO);
  CHECK(strcmp(e.message, "-1 9223372036854775807 0") == 0 && e.name[0] == 0 && e.offset == UINT64_MAX);
  CHECK(slm2_fail(NULL, SLM2_E_MEMORY, "x", "y", 0, "z %s", "w") == SLM2_E_MEMORY);
  CHECK(slm2_fail_n(NULL, SLM2_E_MEMORY, "x", "y", 1, 0, "z") == SLM2_E_MEMORY);
  /* Arguments may come from the error that is being replaced. */
  CHECK(slm2_fail(&e, SLM2_E_CHAT, e.message, e.message, 0, "(%s)", e.message) == SLM2_E_CHAT);
  CHECK(strcmp(e.message, "(-1 9223372036854775807 0)") == 0 && strcmp(e.name, "-1 9223372036854775807 0") == 0);
}

static void test_untrusted_text(void) {
  static const struct {
    const char *in;
    size_t n;
    const char *out;
  } cases[] = {
    {"plain", 5, "plain"}, {"caf\xc3\xa9 \xf0\x9f\x8d\x8e", 10, "caf\xc3\xa9 \xf0\x9f\x8d\x8e"},
    {"a\nb\tc\x1b[31m\x7f", 11, "a?b?c?[31m?"}, {"a\0b", 3, "a?b"},
    {"\xc2\x9b" "31m", 5, "?31m"}, /* C1: a terminal may read U+009B as a control sequence */
    {"\xff\xfe", 2, "??"}, {"\xe2\x82", 2, "?"}, {"\xed\xa0\x80", 3, "???"}, {"cut", 2, "cu"}, {"", 0, ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_error e;
    CHECK(slm2_fail_n(&e, SLM2_E_FORMAT, "op", cases[i].in, cases[i].n, 0, "m") == SLM2_E_FORMAT);
    CHECK_CASE(strcmp(e.name, cases[i].out) == 0, cases[i].in);
  }
  slm2_error e;
  CHECK(slm2_fail(&e, SLM2_E_FORMAT, "o\np", "n\rm", 0, "[%s]", "\x1b") == SLM2_E_FORMAT);
  CHECK(strcmp(e.operation, "o?p") == 0 && strcmp(e.name, "n?m") == 0 && strcmp(e.message, "[?]") == 0);
}

/* Long text is cut, terminated, and never inside a code point; nothing follows the cut. */
static void test_cut(void) {
  char text[600];
  for (size_t lead = 0; lead < 4; lead++) {
    memset(text, 'a', lead);
    for (size_t i = lead; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 4);
    slm2_error e;
    CHECK(slm2_fail(&e, SLM2_E_FORMAT, text, text, 0, "%s tail", text) == SLM2_E_FORMAT);
    CHECK(strlen(e.message) == lead + (255 - lead) / 3 * 3 && strlen(e.name) == lead + (159 - lead) / 3 * 3);
    CHECK(strlen(e.operation) == lead + (31 - lead) / 3 * 3);
    CHECK(memcmp(e.message, text, strlen(e.message)) == 0 && memcmp(e.name, text, strlen(e.name)) == 0);
  }
}

int main(void) {
  test_status_names();
  test_directives();
  test_untrusted_text();
  test_cut();
  return test_end("error");
}
