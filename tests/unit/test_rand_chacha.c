/* tests/unit/test_rand_chacha.c: the random stream and the uniform draw [D20] against the Rust crates rand_chacha and rand
 * themselves. tests/data/num/rand_chacha.txt is what tests/conformance/rand_chacha prints; its lines are explained there.
 */
#include "base/sha256.h"
#include "slm2/sampler.h"
#include "tests/test.h"

enum { WORDS = 1000 };

static void digest_of(const uint32_t values[WORDS], char hex[65]) {
  uint8_t bytes[4 * WORDS], sha[32];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(values[i / 4] >> 8 * (i % 4));
  slm2_sha256_of(bytes, sizeof bytes, sha);
  slm2_hex(sha, 32, hex);
}

/* The rest of a "stream" or "uniform" line: the digest of all values, then values 0 .. 7 and 999. */
static void check_values(const uint32_t values[WORDS], const char *rest, const char *label) {
  char hex[65], text[160];
  digest_of(values, hex);
  int n = snprintf(text, sizeof text, "%s", hex);
  for (unsigned i = 0; i < 9; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, " %08x", (unsigned)values[i < 8 ? i : WORDS - 1]);
  CHECK_CASE(strcmp(rest, text) == 0, label);
}

/* Candidates {u, 1 - u}: the draw gives the first one exactly when the first probability is above u. */
static uint32_t drawn(float p, slm2_rng rng) {
  const slm2_candidate pair[2] = {{0.0f, p, 0}, {0.0f, 1.0f - p, 1}};
  return slm2_sampler_draw(pair, 2, &rng);
}

static void check_uniform(uint64_t seed, const char *rest, const char *label) {
  uint32_t bits[WORDS];
  slm2_rng rng;
  slm2_rng_init(&rng, seed);
  for (int i = 0; i < WORDS; i++) {
    slm2_rng before = rng;
    float u = (float)(slm2_rng_next(&rng) >> 8) * 0x1p-24f;
    memcpy(&bits[i], &u, 4);
    CHECK_CASE(drawn(u, before) == 1, label); /* u is not above itself: the sampler's draw is not below u ... */
    CHECK_CASE(u + 0x1p-24f > 1.0f - 0x1p-24f || drawn(u + 0x1p-24f, before) == 0, label); /* ... and below the next value */
  }
  check_values(bits, rest, label);
}

static void check_stream(uint64_t seed, const char *rest, const char *label) {
  uint32_t words[WORDS];
  slm2_rng rng;
  slm2_rng_init(&rng, seed);
  for (int i = 0; i < WORDS; i++) words[i] = slm2_rng_next(&rng);
  CHECK_CASE(rng.words_used == WORDS, label);
  check_values(words, rest, label);
}

static void check_seek(uint64_t seed, const char *rest, const char *label) {
  char *end, text[64];
  uint64_t position = strtoull(rest, &end, 16);
  slm2_rng rng;
  slm2_rng_init(&rng, seed);
  slm2_rng_seek(&rng, position);
  int n = 0;
  for (int i = 0; i < 4; i++) n += snprintf(text + n, sizeof text - (size_t)n, " %08x", (unsigned)slm2_rng_next(&rng));
  CHECK_CASE(strcmp(end, text) == 0 && rng.words_used == position + 4, label);
}

int main(void) {
  static const struct {
    const char *name;
    void (*check)(uint64_t seed, const char *rest, const char *label);
    unsigned lines;
  } kinds[] = {{"stream ", check_stream, 32}, {"uniform ", check_uniform, 32}, {"seek ", check_seek, 32 * 13}};
  unsigned seen[3] = {0};
  char *file = test_read_file("tests/data/num/rand_chacha.txt", NULL);
  for (char *line = strtok(file, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    for (size_t k = 0; k < 3; k++) {
      size_t n = strlen(kinds[k].name);
      if (strncmp(line, kinds[k].name, n) != 0) continue;
      char *rest;
      uint64_t seed = strtoull(line + n, &rest, 16);
      kinds[k].check(seed, rest + 1, line);
      seen[k]++;
    }
  }
  for (size_t k = 0; k < 3; k++) CHECK_CASE(seen[k] == kinds[k].lines, kinds[k].name);
  free(file);
  return test_end("rand_chacha");
}
