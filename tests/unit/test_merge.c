/* Byte pair encoding: against a reference that merges the lowest, leftmost pair again and again, and its cost,
 * counted in groups of ranks read, not in time. */
static unsigned long long steps;
#define COUNT_STEP() (steps++)
#include "tokenizer/merge.c"
#include "tests/tiny_tokenizer.h"

static tiny_section section;

static uint32_t rank_of(uint32_t left, uint32_t right) {
  for (uint32_t rank = 0; rank < TINY_MERGES; rank++) {
    const uint8_t *row = section.bytes + section.merges + 12 * rank;
    if (slm2_load_u32(row) == left && slm2_load_u32(row + 4) == right) return rank;
  }
  return UINT32_MAX;
}

static size_t reference(const uint8_t *word, size_t n, uint32_t *ids) {
  size_t count = n;
  for (size_t i = 0; i < n; i++) ids[i] = word[i] ^ 0x55u;
  for (;;) {
    uint32_t best = UINT32_MAX;
    size_t at = 0;
    for (size_t i = 0; i + 1 < count; i++) {
      uint32_t rank = rank_of(ids[i], ids[i + 1]);
      if (rank >= best) continue;
      best = rank;
      at = i;
    }
    if (best == UINT32_MAX) return count;
    ids[at] = slm2_load_u32(section.bytes + section.merges + 12 * best + 8);
    memmove(ids + at + 1, ids + at + 2, (count - at - 2) * sizeof *ids);
    count--;
  }
}

static void compare_random(const slm2_tokenizer *t) {
  static const size_t sizes[] = {1, 2, 3, 15, 16, 17, 18, 31, 32, 33, 100, 255, 256, 257, 258, 300, 700};
  uint64_t seed = 11;
  for (size_t round = 0; round < 40; round++) {
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      size_t n = sizes[k];
      uint8_t *word = malloc(n);
      uint32_t *want = malloc(4 * n), *got = malloc(4 * n), *scratch = malloc(4 * SLM2_MERGE_SCRATCH(n));
      for (size_t i = 0; i < n; i++) word[i] = (uint8_t)"aaabbcc "[test_random(&seed) % (round % 2 == 0 ? 8 : 5)];
      size_t count = reference(word, n, want), found = slm2_merge_word(t, word, n, scratch, got, n);
      CHECK(count == found && memcmp(want, got, 4 * count) == 0);
      memset(got, 0xee, 4 * n);
      found = slm2_merge_word(t, word, n, scratch, got, count - 1);
      CHECK(found == count && got[count - 1] == 0xeeeeeeeeu && memcmp(want, got, 4 * (count - 1)) == 0);
      free(word), free(want), free(got), free(scratch);
    }
  }
}

static unsigned long long cost(const slm2_tokenizer *t, size_t n, const char *alphabet) {
  uint64_t seed = 5;
  uint8_t *word = calloc(n, 1);
  uint32_t *scratch = malloc(4 * SLM2_MERGE_SCRATCH(n)), *ids = malloc(4 * n);
  for (size_t i = 0; i < n; i++) word[i] = (uint8_t)alphabet[test_random(&seed) % strlen(alphabet)];
  steps = 0;
  size_t count = slm2_merge_word(t, word, n, scratch, ids, n), bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += section.length[ids[i]];
  CHECK(bytes == n);
  free(word), free(scratch), free(ids);
  return steps;
}

int main(void) {
  slm2_error error;
  tiny_init(&section);
  tiny_handle h = tiny_open(section.bytes, section.n, &error);
  if (!CHECK(h.status == SLM2_OK)) return test_end("merge");
  compare_random(h.t);
  static const char *const alphabets[] = {"a", "ab", "abc", "abcdefghijklmnopqrstuvwxyz", "bc", "\x01"};
  for (size_t i = 0; i < sizeof alphabets / sizeof *alphabets; i++) {
    unsigned long long once = cost(h.t, 1u << 16, alphabets[i]), twice = cost(h.t, 1u << 17, alphabets[i]);
    CHECK_CASE(2 * twice <= 5 * once, alphabets[i]);
    CHECK_CASE(once <= 32ull << 16, alphabets[i]); /* at most 32 groups of 16 ranks per byte */
  }
  tiny_close(&h);
  return test_end("merge");
}
