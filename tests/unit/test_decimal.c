/* base/decimal: against CPython (tests/data/num/decimal.txt, tests/gen/decimal_cases.py) and against the C library. */
#include "base/bytes.h"
#include "base/decimal.h"
#include "tests/test.h"

static void check_read(char *text, const char *hex64, const char *hex32) {
  double d = 0;
  float f = 0;
  size_t n = strlen(text);
  char label[48];
  snprintf(label, sizeof label, "%.40s", text);
  CHECK_CASE(slm2_decimal_to_f64(text, n, &d) && slm2_double_bits(d) == strtoull(hex64, NULL, 16), label);
  CHECK_CASE(slm2_decimal_to_f32(text, n, &f) && slm2_float_bits(f) == strtoul(hex32, NULL, 16), label);
  char *e = strchr(text, 'e');
  if (e == NULL) return;
  *e = 'E';
  CHECK_CASE(slm2_decimal_to_f64(text, n, &d) && slm2_double_bits(d) == strtoull(hex64, NULL, 16), label);
}

static void check_refuse(const char *text) {
  double d = 42;
  float f = 42;
  CHECK_CASE(!slm2_decimal_to_f64(text, strlen(text), &d) && slm2_double_bits(d) == slm2_double_bits(42.0), text);
  CHECK_CASE(!slm2_decimal_to_f32(text, strlen(text), &f) && slm2_float_bits(f) == slm2_float_bits(42.0f), text);
}

static void table(void) {
  size_t n;
  char *file = test_read_file("tests/data/num/decimal.txt", &n), out[SLM2_DECIMAL_MAX];
  unsigned long rows = 0;
  for (char *line = strtok(file, "\n"); line != NULL; line = strtok(NULL, "\n"), rows++) {
    char *word[4] = {line, "", "", ""};
    for (int i = 1; i < 4; i++) {
      char *space = strchr(word[i - 1], ' ');
      if (space == NULL) break;
      *space = 0;
      word[i] = space + 1;
    }
    if (strcmp(word[0], "read") == 0) {
      check_read(word[1], word[2], word[3]);
    } else if (strcmp(word[0], "refuse") == 0) {
      check_refuse(word[1]);
    } else if (strcmp(word[0], "repr") == 0) {
      size_t len = slm2_f64_to_decimal(slm2_double_from_bits(strtoull(word[1], NULL, 16)), out);
      CHECK_CASE(len == strlen(out) && strcmp(out, word[2]) == 0, word[2]);
    } else if (CHECK(strcmp(word[0], "repr32") == 0)) {
      size_t len = slm2_f32_to_decimal(slm2_float_from_bits((uint32_t)strtoul(word[1], NULL, 16)), out);
      CHECK_CASE(len == strlen(out) && strcmp(out, word[2]) == 0, word[2]);
    }
  }
  CHECK(rows > 3000);
  free(file);
}

/* Any bit pattern: read what the C library wrote, let it read what we wrote, and no shorter text would do. */
static void random_f64(uint64_t *seed) {
  char text[64], out[SLM2_DECIMAL_MAX];
  for (int i = 0; i < 20000; i++) {
    uint64_t bits = test_random(seed);
    if (i % 4 == 1) bits &= ~((uint64_t)0x7ff << 52);                                       /* subnormal */
    if (i % 4 == 2) bits = slm2_double_bits((double)(int64_t)(bits >> (bits & 63)));       /* whole numbers */
    if ((bits >> 52 & 0x7ff) == 0x7ff) continue;
    double x = slm2_double_from_bits(bits), y = 0;
    int len = snprintf(text, sizeof text, "%.*e", 16 + (int)(bits % 20), x);
    CHECK_CASE(slm2_decimal_to_f64(text, (size_t)len, &y) && slm2_double_bits(y) == bits, text);
    len = snprintf(text, sizeof text, "%.*e", (int)(bits % 16), x);
    CHECK_CASE(slm2_decimal_to_f64(text, (size_t)len, &y) && slm2_double_bits(y) == slm2_double_bits(strtod(text, NULL)), text);
    size_t n = slm2_f64_to_decimal(x, out);
    CHECK_CASE(n < SLM2_DECIMAL_MAX && slm2_double_bits(strtod(out, NULL)) == bits, out);
    int digits = 0, zeros = 0;
    for (const char *p = out; *p != 0 && *p != 'e'; p++) {
      if (*p < '0' || *p > '9' || (*p == '0' && digits == 0)) continue;
      digits++;
      zeros = *p == '0' ? zeros + 1 : 0;
    }
    if (digits - zeros > 1) {
      snprintf(text, sizeof text, "%.*e", digits - zeros - 2, x);
      CHECK_CASE(slm2_double_bits(strtod(text, NULL)) != bits, text);
    }
  }
}

static void random_f32(uint64_t *seed) {
  char text[64], out[SLM2_DECIMAL_MAX];
  for (int i = 0; i < 20000; i++) {
    uint32_t bits = (uint32_t)test_random(seed);
    if (i % 4 == 1) bits &= 0x807fffff;
    if ((bits >> 23 & 0xff) == 0xff) continue;
    float y = 0;
    size_t n = slm2_f32_to_decimal(slm2_float_from_bits(bits), out);
    CHECK_CASE(slm2_float_bits((float)strtod(out, NULL)) == bits, out);
    CHECK_CASE(slm2_decimal_to_f32(out, n, &y) && slm2_float_bits(y) == bits, out);
    int len = snprintf(text, sizeof text, "%.*e", (int)(bits % 24), (double)slm2_float_from_bits(bits));
    float want = (float)strtod(text, NULL);
    CHECK_CASE(slm2_decimal_to_f32(text, (size_t)len, &y) && slm2_float_bits(y) == slm2_float_bits(want), text);
  }
}

/* Text is counted, not terminated, and may be very long; the work grows with the length alone. */
static void lengths(void) {
  double d = 0;
  CHECK(slm2_decimal_to_f64("1234", 2, &d) && slm2_double_bits(d) == slm2_double_bits(12.0));
  CHECK(!slm2_decimal_to_f64("", 0, &d));
  CHECK(!slm2_decimal_to_f64("1\0", 2, &d));
  size_t n = 1000000;
  char *text = malloc(n + 32);
  if (!CHECK(text != NULL)) return;
  memset(text, '9', n);
  memcpy(text + n, "e-1000000", 9);
  CHECK(slm2_decimal_to_f64(text, n + 9, &d) && slm2_double_bits(d) == slm2_double_bits(1.0));
  memset(text, '0', n);
  text[1] = '.';
  memcpy(text + n, "25e999998", 9); /* 0.000…025e999998 = 0.25 */
  CHECK(slm2_decimal_to_f64(text, n + 9, &d) && slm2_double_bits(d) == slm2_double_bits(0.25));
  memset(text, '9', n);
  text[0] = '1';
  text[1] = 'e';
  CHECK(slm2_decimal_to_f64(text, n, &d) && slm2_double_bits(d) == (uint64_t)0x7ff << 52);
  text[0] = '0';
  CHECK(slm2_decimal_to_f64(text, n, &d) && slm2_double_bits(d) == 0);
  free(text);
}

static void integers(void) {
  static const uint64_t values[] = {0, 1, 9, 10, 99, 100, 4294967295u, 4294967296u, 18446744073709551615u};
  char out[SLM2_DECIMAL_MAX], want[32];
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    int n = snprintf(want, sizeof want, "%llu", (unsigned long long)values[i]);
    CHECK_CASE(slm2_u64_to_decimal(values[i], out) == (size_t)n && strcmp(out, want) == 0, want);
  }
}

int main(void) {
  uint64_t seed = 11;
  table();
  random_f64(&seed);
  random_f32(&seed);
  lengths();
  integers();
  return test_end("decimal");
}
