/* tests/unit/test_q8_block.c: the quantiser [D9] against hand values, every f16 border and a second quantiser in
 * double precision with exact halves; and the two weight forms against each other. */
#include "base/error.h"
#include "kernel/weights.h"
#include "base/bytes.h"
#include "num/math.h"
#include "slm2/format.h"
#include "tests/test.h"

static int quant(const uint8_t block[34], int i) { return (int8_t)block[2 + i]; }

/* x = +-(i + 1) / 32, alternating: d and q of ggml's reference quantiser. */
static void test_alternating(void) {
  static const int expected[32] = {4, -8, 12, -16, 20, -24, 28, -32, 36, -40, 44, -48, 52, -56, 60, -64,
                                   67, -71, 75, -79, 83, -87, 91, -95, 99, -103, 107, -111, 115, -119, 123, -127};
  float x[32];
  uint8_t block[34];
  for (int i = 0; i < 32; i++) x[i] = (float)(i % 2 == 0 ? i + 1 : -(i + 1)) / 32.0f;
  CHECK(slm2_q8_quantize(x, block, NULL) == SLM2_OK && slm2_load_u16(block) == 0x2008);
  for (int i = 0; i < 32; i++) CHECK(quant(block, i) == expected[i]);
}

/* amax 127 gives d = 1: q is x itself, halves away from zero. */
static void test_ties(void) {
  static const struct {
    float x;
    int q;
  } cases[] = {{0, 0}, {-0.0f, 0}, {0.5f, 1}, {-0.5f, -1}, {1.5f, 2}, {2.5f, 3}, {-2.5f, -3}, {126.5f, 127}, {-126.5f,
    -127}, {126.49999f, 126},
               {0x1.fffffep-2f, 0}, {-0x1.fffffep-2f, 0}, {1.4999999f, 1}, {127, 127}, {-127, -127}, {0x1p-149f, 0},
               {63.5f, 64}, {64.5f, 65}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float x[32] = {127.0f, cases[i].x};
    uint8_t block[34];
    CHECK(slm2_q8_quantize(x, block, NULL) == SLM2_OK && slm2_load_u16(block) == 0x3c00 && quant(block, 0) == 127);
    CHECK(quant(block, 1) == cases[i].q && quant(block, 2) == 0);
  }
}

/* The scale at its borders: amax = 127 * scale, or the extreme. */
static void test_scales(void) {
  static const struct {
    const char *what;
    float amax;
    uint16_t d;
    int q;
  } cases[] = {
    {"zero", 0, 0, 0}, {"smallest f32", 0x1p-149f, 0, 0}, {"amax 1e-9: the scale underflows", 1e-9f, 0, 0},
    {"a tie at half the smallest f16 goes to even: 0", 127 * 0x1p-25f, 0, 0}, {"just above", 127 * 0x1.000002p-25f, 1, 127},
    {"smallest f16", 127 * 0x1p-24f, 1, 127}, {"smallest normal f16", 127 * 0x1p-14f, 0x0400, 127}, {"one", 127, 0x3c00, 127},
    {"largest f16", 127 * 65504.0f, 0x7bff, 127}, {"below the tie to infinity", 127 * 65519.996f, 0x7bff, 127},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int sign = 1; sign >= -1; sign -= 2) {
      float x[32] = {0};
      uint8_t block[34];
      memset(block, 0xee, sizeof block);
      x[17] = (float)sign * cases[i].amax;
      CHECK_CASE(slm2_q8_quantize(x, block, NULL) == SLM2_OK, cases[i].what);
      CHECK_CASE(slm2_load_u16(block) == cases[i].d && quant(block, 17) == sign * cases[i].q && quant(block, 0) == 0,
        cases[i].what);
    }
  }
}

static void test_refusals(void) {
  static const struct {
    uint32_t bits;
    const char *words;
  } cases[] = {
    {0x7f800000, "not finite"}, {0xff800000, "not finite"}, {0x7fc00000, "not finite"}, {0xffffffff, "not finite"},
    {0x7f800001, "not finite"},
    {0x7f7fffff, "does not fit f16"}, {0xff7fffff, "does not fit f16"}, {0x4afdfe10, "does not fit f16"}, /* 127 * 65520 */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (uint32_t at = 0; at < 32; at += 31) {
      float x[32];
      uint8_t block[34];
      slm2_error e = {0};
      for (int k = 0; k < 32; k++) x[k] = (float)k;
      x[at] = slm2_float_from_bits(cases[i].bits);
      memset(block, 0xee, sizeof block);
      CHECK_CASE(slm2_q8_quantize(x, block, &e) == SLM2_E_WEIGHT && e.offset == at && block[0] == 0xee, cases[i].words);
      CHECK_CASE(strstr(e.message, cases[i].words) != NULL, cases[i].words);
    }
  }
  float x[32] = {0};
  uint8_t block[34];
  slm2_error e;
  x[5] = x[9] = slm2_float_from_bits(0x7f800000);
  CHECK(slm2_q8_quantize(x, block, &e) == SLM2_E_WEIGHT && e.offset == 5); /* the first one is named */
}

/* Random blocks of every magnitude: q never leaves -127..127, the largest is +-127, and each q is the nearest integer
 * of the f32 product, judged in double (exact), halves away from zero. */
static void test_random_blocks(void) {
  uint64_t seed = 11; /* seed 11 */
  unsigned bad = 0, large = 0;
  for (int n = 0; n < 200000; n++) {
    float x[32];
    uint8_t block[34];
    uint32_t exponent = 100 + (uint32_t)(test_random(&seed) % 56); /* amax from 2^-27 to over 127 * 65520 */
    float amax = 0;
    for (int i = 0; i < 32; i++) {
      uint64_t r = test_random(&seed);
      uint32_t e = exponent - (uint32_t)(r >> 40) % 9;
      x[i] = slm2_float_from_bits((uint32_t)(r & 0x807fffff) | e << 23);
      float a = x[i] < 0 ? -x[i] : x[i];
      if (a > amax) amax = a;
    }
    slm2_status status = slm2_q8_quantize(x, block, NULL);
    float d32 = amax / 127.0f, id = 1.0f / d32;
    uint16_t d = slm2_f32_to_f16(d32);
    if (d == 0x7c00) {
      bad += status != SLM2_E_WEIGHT;
      large++;
      continue;
    }
    bad += status != SLM2_OK || slm2_load_u16(block) != d;
    int most = 0;
    for (int i = 0; i < 32; i++) {
      double v = (double)(x[i] * id), q = quant(block, i);
      double apart = v - q;
      int half = (apart == 0.5 && v < 0) || (apart == -0.5 && v > 0); /* away from zero */
      if (d != 0) bad += !(apart < 0.5 && apart > -0.5) && !half;
      else bad += q != 0;
      if (abs((int)q) > most) most = abs((int)q);
    }
    bad += most != (d == 0 ? 0 : 127);
  }
  CHECK(bad == 0 && large > 0);
}

static void test_forms(void) {
  static const uint32_t widths[] = {32, 64, 96, 1024};
  uint64_t seed = 12; /* seed 12 */
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
    uint32_t cols = widths[w];
    size_t n = (size_t)cols * 34;
    uint8_t *rows = malloc(n), *panels = malloc(n), *back = malloc(n);
    for (size_t i = 0; i < n; i++) rows[i] = (uint8_t)test_random(&seed);
    slm2_panels_from_rows(rows, cols, panels);
    slm2_rows_from_panels(panels, cols, back);
    CHECK(memcmp(rows, back, n) == 0);
    unsigned bad = 0;
    for (uint32_t r = 0; r < 32; r++) { /* the layout in words: 1,088 bytes a panel, 16 dwords of scales,
      then groups of four columns */
      for (uint32_t c = 0; c < cols; c++) {
        const uint8_t *panel = panels + c / 32 * 1088, *block = rows + (r * (cols / 32) + c / 32) * 34;
        uint32_t dword = slm2_load_u32(panel + 4 * (r % 16));
        bad += (uint16_t)(r < 16 ? dword : dword >> 16) != slm2_load_u16(block);
        bad += panel[64 + (c % 32 / 4 * 32 + r) * 4 + c % 4] != block[2 + c % 32];
      }
    }
    CHECK(bad == 0);
    free(rows);
    free(panels);
    free(back);
  }
}

int main(void) {
  test_alternating();
  test_ties();
  test_scales();
  test_refusals();
  test_random_blocks();
  test_forms();
  return test_end("q8_block");
}
