/* tests/conformance/conformance.h: the parts of build/tests/conformance, the program that compares slm2 with what Hugging
 * Face's software made of the same inputs (docs/CONFORMANCE.md). It needs no Python: right values are in
 * tests/data/conformance, written by tests/conformance/refresh.py.
 *
 * Inputs are not stored but made again from their number. Item i of a set has a SplitMix64 of its own (test_random in
 * tests/test.h) that starts at state SEED + (i << 32); below(n) is ((word >> 32) * n) >> 32.
 */
#ifndef SLM2_CONFORMANCE_H
#define SLM2_CONFORMANCE_H

#include <stdbool.h>
#include "slm2/session.h"
#include "slm2/tokenizer.h"
#include "platform/platform.h"
#include "tests/test.h"
#undef CHECK /* counts in one file only; this program has several */
#undef CHECK_CASE

/* Counts a check; prints what did not hold. Returns whether it held. */
bool expect(bool holds, const char *what);

/* Limits of [D24]; tolerances exist here and nowhere else. */
#define LIMIT_ONE_MINUS_COSINE 1e-9
#define LIMIT_ULP 256.0         /* at the scale of max |logit| of the position; above it fails */
#define EXPLAIN_ULP 128.0       /* above it needs an explanation in docs/CONFORMANCE.md */
#define LIMIT_MARGIN 2.0        /* a greedy mismatch needs PyTorch's top-2 margin below this times max |difference of logits| */

/* --- generator: random.c ---------------------------------------------------- */

enum { STRING_MAX = 1 << 16 };

typedef struct bytes {
  uint8_t at[STRING_MAX];
  size_t n;
} bytes;

uint32_t below(uint64_t *random, uint32_t n); /* n >= 1 */
uint64_t item_random(uint64_t seed, uint32_t index);
void put(bytes *out, const void *text, size_t n); /* what does not fit is dropped whole */
void put_text(bytes *out, const char *text);
void put_scalar(bytes *out, uint32_t scalar);
/* A text of up to 12 pieces (one in 100: up to 200): tokens of the vocabulary, words, scripts, marks, code, added tokens
 * and parts of them, spaces; with damaged UTF-8 in one of 8 when damage is true. */
void make_string(const slm2_tokenizer *t, uint64_t *random, bool damage, bytes *out);
/* Token ids to decode: any below 151,936, those without a token too. Returns their number, 1 .. 24. */
uint32_t make_ids(uint64_t *random, uint32_t ids[24]);
/* A conversation as JSON: an object with messages and perhaps tools, add_generation_prompt and enable_thinking. */
void make_conversation(const slm2_tokenizer *t, uint64_t *random, bytes *out);

/* --- text.c: tokenizer and chat against Hugging Face ------------------------- */

slm2_tokenizer *open_tokenizer(const char *json_path); /* one at a time */
void close_tokenizer(void);
void check_text(const char *folder, const slm2_tokenizer *t);
/* For refresh.py: items first .. first + count - 1 of a set ("strings", "ids", "conversations"), one a line, in fields
 * with a space between: bytes in hexadecimal ("-" for none), ids with commas ("-" for none).
 *   strings         text   ids with added tokens on   ids with them off
 *   ids             ids    text of all   text without special tokens
 *   conversations   JSON   prompt   ids of the prompt with added tokens on everywhere */
void print_set(const slm2_tokenizer *t, const char *set, uint32_t first, uint32_t count);

/* --- logits.c, greedy.c: the numbers ---------------------------------------- */

typedef struct machine {
  slm2_mapping file;
  void *model_memory, *session_memory;
  uint64_t session_bytes;
  const slm2_model *model;
  slm2_session *session;
  char identity[65];
} machine;
void machine_open(machine *m, const char *path, uint32_t context); /* profile f32, keys and values f32 */
void machine_close(machine *m);

/* One line of models.txt. */
typedef struct golden {
  char name[32], identity[65];
  double delta;             /* max |logit of slm2 - logit of PyTorch| over everything the refresh compared */
  uint32_t stride;          /* values are of ids 0, stride, 2 stride ... */
  uint32_t ids[4096], n_ids, positions[8];
} golden;
bool golden_next(const char **text, golden *g);
void check_logits(const char *folder, const char *models);
/* Every prompt of greedy.txt whose number is a multiple of step. */
void check_greedy(const char *folder, const char *models, unsigned step);

#endif
