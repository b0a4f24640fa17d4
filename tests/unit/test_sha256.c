/* tests/unit/test_sha256.c: the vectors of FIPS 180-4's examples and Python's hashlib, in every chunking. */
#include "base/sha256.h"
#include "tests/test.h"

static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
static const char four_blocks[] =
  "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";

static void check_hex(const uint8_t hash[32], const char *expected, const char *label) {
  char hex[65];
  slm2_hex(hash, 32, hex);
  CHECK_CASE(strcmp(hex, expected) == 0, label);
}

static void test_vectors(void) {
  static const struct {
    const char *text, *hash;
  } cases[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {two_blocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {four_blocks, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t hash[32];
    slm2_sha256_of(cases[i].text, strlen(cases[i].text), hash);
    check_hex(hash, cases[i].hash, cases[i].text);
  }
}

static void test_million(void) {
  static char a[1000];
  memset(a, 'a', sizeof a);
  slm2_sha256 s;
  slm2_sha256_init(&s);
  for (int i = 0; i < 1000; i++) slm2_sha256_update(&s, a, sizeof a);
  uint8_t hash[32];
  slm2_sha256_final(&s, hash);
  check_hex(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "million a");
}

/* SHA-256 over the concatenated hashes of the first n bytes of i * 7 + 3 mod 256, n = 0..256: padding at every
 * length. Value by Python: h(b"".join(h(bytes((i*7+3)%256 for i in range(n))) for n in range(257))). */
static void test_lengths(void) {
  uint8_t bytes[256], hash[32];
  for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)(i * 7 + 3);
  slm2_sha256 all;
  slm2_sha256_init(&all);
  for (size_t n = 0; n <= 256; n++) {
    slm2_sha256_of(bytes, n, hash);
    slm2_sha256_update(&all, hash, 32);
  }
  slm2_sha256_final(&all, hash);
  check_hex(hash, "a2ffce5711a9abde1c229b9d0d1aabc85d4ab792e68b482ed48061854426f40a", "lengths");
}

static void test_chunkings(void) {
  uint8_t bytes[300], whole[32], hash[32];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * i + 1);
  slm2_sha256_of(bytes, sizeof bytes, whole);
  slm2_sha256 s;
  for (size_t chunk = 1; chunk <= sizeof bytes; chunk++) {
    slm2_sha256_init(&s);
    for (size_t at = 0; at < sizeof bytes; at += chunk) {
      slm2_sha256_update(&s, bytes + at, sizeof bytes - at < chunk ? sizeof bytes - at : chunk);
      slm2_sha256_update(&s, NULL, 0);
    }
    slm2_sha256_final(&s, hash);
    CHECK(memcmp(hash, whole, 32) == 0);
  }
}

int main(void) {
  test_vectors();
  test_million();
  test_lengths();
  test_chunkings();
  char hex[3] = "zz";
  slm2_hex(NULL, 0, hex);
  CHECK(hex[0] == 0);
  return test_end("sha256");
}
