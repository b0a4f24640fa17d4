/* slm2/session.h: one mutable timeline of tokens over an immutable model.
 *
 * A session lives in one caller-lent block: keys and values, scratch, token ids,
 * logits. The bits of its results depend on the model, the profile, the KV type
 * and the ids alone: never on how the ids were cut into calls, on the tile, on
 * what was computed and rewound before, on the backend, or on the threads [D8].
 */
#ifndef SLM2_SESSION_H
#define SLM2_SESSION_H

#include <stdbool.h>
#include "slm2/backend.h"
#include "slm2/model.h"
#include "slm2/pool.h"
#include "slm2/sampler.h"
#include "slm2/status.h"
#include "slm2/trace.h"

/* The caller stores non-zero to stop: polled before each piece of work, by every thread [K14]. The same word in C++. */
#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint32_t> slm2_cancel;
#else
#include <stdatomic.h>
typedef _Atomic(uint32_t) slm2_cancel;
#endif

SLM2_C_BEGIN

typedef struct slm2_session slm2_session;

#define SLM2_TILE_MAX 128u /* tokens computed side by side in prefill [D23] */
#define SLM2_DRAFT_MAX 15u /* ids of an answer that may be computed ahead */

typedef struct slm2_session_params {
  uint32_t context; /* positions, 1 .. max_positions of the model */
  uint32_t tile;    /* prefill tokens per pass, 1 .. SLM2_TILE_MAX; changes memory and speed, never bits */
  uint32_t draft;   /* 0 .. SLM2_DRAFT_MAX: memory for speculation with drafts of so many ids; never changes bits */
  slm2_profile profile;
  slm2_kv_type kv;
  const slm2_backend *backend; /* NULL = slm2_backend_default() */
  const slm2_pool *pool;       /* NULL = the calling thread alone. Kept; sessions may share it, one call at a time. For
                                  slm2_session_plan n_threads alone has to be set */
} slm2_session_params;

/* The memory equation, term by term, in bytes. total = the block slm2_session_init takes. */
typedef struct slm2_plan {
  uint64_t kv;      /* 2 * layers * kv_heads * head_dim * context * (4 or 2) */
  uint64_t scratch; /* activations of one tile, or of 1 + draft tokens if more; per thread, scores of 32 rows of the context */
  uint64_t logits;  /* vocab * 4 */
  uint64_t drafts;  /* draft * vocab * 4: logits of what is computed ahead */
  uint64_t sampler; /* candidates and seen bits */
  uint64_t tokens;  /* context * 4 */
  uint64_t state;   /* the session struct and alignment */
  uint64_t total;
} slm2_plan;

SLM2_NODISCARD slm2_status slm2_session_plan(const slm2_header *header, const slm2_session_params *params, slm2_plan *plan,
                                             slm2_error *error);
/* mem: 64-byte aligned, plan.total bytes, kept; it need not be zeroed. */
SLM2_NODISCARD slm2_status slm2_session_init(void *mem, uint64_t mem_bytes, const slm2_model *model,
                                             const slm2_session_params *params,
                                             slm2_session **out, slm2_error *error);

uint32_t slm2_session_length(const slm2_session *s);  /* tokens computed */
uint32_t slm2_session_context(const slm2_session *s); /* capacity */
const uint32_t *slm2_session_ids(const slm2_session *s);
const slm2_model *slm2_session_model(const slm2_session *s);

/* Called after each prefill tile with the new length and the one to come; for progress only. */
typedef void slm2_progress_fn(void *user, uint32_t done, uint32_t total);
/* Called with the logits [vocab] of every position in order; valid during the call. */
typedef slm2_status slm2_logits_fn(void *user, uint32_t position, const float *logits);

typedef struct slm2_run {
  const slm2_cancel *cancel;   /* may be NULL */
  slm2_progress_fn *progress;  /* may be NULL */
  slm2_logits_fn *each_logits; /* NULL: only the last position's logits are computed. A status it returns ends the call
                                  and is returned; details in error are then the callback's matter. */
  void *user;
  bool no_logits; /* without each_logits: not even the last ones. For a chunk that is not the last of its text: logits that
                     nobody asked for cannot overflow, so the status does not depend on how the text was cut [D5b] */
  slm2_tap_fn *tap; /* NULL, or sees every stage of every token; logits where they are computed */
  void *tap_user;
} slm2_run;

/* Computes n >= 1 more tokens. On OK the logits of the last one are ready. On any error or cancel the
 * length is what it was before the call [D5b]; so are the logits, unless the next ones were already being
 * written: then there are none. SLM2_E_CONTEXT_OVERFLOW before any work when length + n exceeds the
 * context; SLM2_E_TOKEN for an id >= vocab. run may be NULL; ids may lie in slm2_session_ids. */
SLM2_NODISCARD slm2_status slm2_session_append(slm2_session *s, const uint32_t *ids, uint32_t n, const slm2_run *run,
                                               slm2_error *error);
/* Forgets the tokens from position length on (length <= current). No memory is cleared; old data is unreachable. */
SLM2_NODISCARD slm2_status slm2_session_rewind(slm2_session *s, uint32_t length, slm2_error *error);
/* Makes the timeline equal ids[0..n): keeps the longest common prefix (at most n - 1 tokens, so that the
 * logits are fresh), rewinds, appends the rest. *n_reused tells how many were kept. Refusals of the ids or
 * of their number come before any work and change nothing; after any later error the timeline is at the
 * common prefix. */
SLM2_NODISCARD slm2_status slm2_session_sync(slm2_session *s, const uint32_t *ids, uint32_t n, const slm2_run *run,
                                             uint32_t *n_reused, slm2_error *error);
/* Logits [vocab] after the last token, or NULL when there are none: nothing computed yet, just rewound,
 * appended with no_logits, or an append failed while it was writing them. */
const float *slm2_session_logits(const slm2_session *s);

/* --- generating ----------------------------------------------------------- */

typedef enum slm2_finish {
  SLM2_FINISH_NONE = 0,
  SLM2_FINISH_STOP = 1,   /* an end token of the model, or a stop string */
  SLM2_FINISH_LENGTH = 2, /* max_tokens, or the context is full */
  SLM2_FINISH_CANCELLED = 3,
  SLM2_FINISH_ERROR = 4,
} slm2_finish;
const char *slm2_finish_name(slm2_finish finish); /* "stop", "length", "cancelled", "error", "none" */

/* Which part of an answer a text belongs to. The border is the model's <think> and </think> TOKENS, never their text;
 * they give no text themselves. An answer starts as REASONING when the prompt ends inside an open <think>: looking
 * back from its end, <think> comes before any </think> or end token. */
typedef enum slm2_channel { SLM2_CHANNEL_ANSWER = 0, SLM2_CHANNEL_REASONING = 1 } slm2_channel;

#define SLM2_MAX_STOP_STRINGS 16u
#define SLM2_MAX_STOP_BYTES 256u
#define SLM2_TEXT_MAX 4096u /* text of one step: longest token, decoder and released stop prefix */

/* Speculation: what the answer repeats from its timeline is guessed by looking up its last ids there, and computed in one
 * pass with the token it follows. Guesses that turn out wrong are dropped. AUTO makes drafts, up to the session's longest,
 * only as their past success pays for them: text that repeats nothing takes at most 3 % longer. */
#define SLM2_SPECULATE_AUTO UINT32_MAX

typedef struct slm2_generate_params {
  slm2_sampler_params sampler;
  uint32_t max_tokens; /* >= 1 */
  bool ignore_eos;     /* true: end tokens do not end (digests, benchmarks) */
  uint32_t speculate;  /* 0: off; N: drafts of N ids, at most the session's draft; or SLM2_SPECULATE_AUTO. Time alone
                          depends on it: events, timeline, logits and random words are the same */
  uint32_t n_stop;     /* stop strings, matched on bytes across tokens; never emitted */
  const char *stop[SLM2_MAX_STOP_STRINGS];
  size_t stop_bytes[SLM2_MAX_STOP_STRINGS]; /* 1 .. SLM2_MAX_STOP_BYTES each */
} slm2_generate_params;

/* One step's outcome. text is UTF-8, complete code points, what became certain with this step. It may be
 * empty, and may belong to earlier tokens. What could still become a stop string is held back until it is
 * decided, so no part of a stop string is ever emitted. */
typedef struct slm2_token_event {
  uint32_t id;            /* the end token too; SLM2_NO_TOKEN in a final event without a token (cancel, error) */
  uint32_t position;      /* of id on the timeline; without a token, the session's length */
  float logprob;          /* [D26]; 0 without a token */
  slm2_channel channel;   /* of text. The event of a <think> or </think> token is the last of the channel it leaves */
  slm2_finish finish;     /* != NONE: the last event */
  size_t n_text;
  char text[SLM2_TEXT_MAX];
} slm2_token_event;

/* State of one answer: caller-lent, about 10 KB, no interior pointers into itself. Starts at word 0 of
 * its seed's stream [D20]. Special tokens give no text; stop strings are matched within each channel. */
typedef struct slm2_generator slm2_generator;
size_t slm2_generator_bytes(void);
/* mem: 16-byte aligned, kept. The session must have logits, and room for one token more: else
 * SLM2_E_CONTEXT_OVERFLOW. Stop strings must be UTF-8. params is copied, stop strings included. */
SLM2_NODISCARD slm2_status slm2_generator_init(void *mem, size_t mem_bytes, slm2_session *s, const slm2_generate_params *params,
                                               slm2_generator **out, slm2_error *error);
/* Appends the token of the step before to the timeline, samples the next one, releases text. The penalty's context is
 * the whole timeline. So the last token of an answer (stop, length) is not on the timeline: slm2_session_sync with the
 * next prompt computes it. A full context ends the answer with LENGTH: its last token has the last position, and
 * timeline, keys and values stay. After the final event, or when somebody else changed the session's timeline, it is an
 * SLM2_E_ARGUMENT and the event is unwritten. On cancel: SLM2_OK with finish CANCELLED and all held text; on error: that
 * status, the event filled with finish ERROR and all held text; in both cases the tokens on the timeline stay [D5b]. */
SLM2_NODISCARD slm2_status slm2_generator_next(slm2_generator *g, const slm2_cancel *cancel, slm2_token_event *event,
                                               slm2_error *error);
uint32_t slm2_generator_count(const slm2_generator *g); /* tokens sampled, the end token included */
uint64_t slm2_generator_words_used(const slm2_generator *g);
/* Ids computed ahead so far, and those of them that came to be on the timeline. */
uint32_t slm2_generator_drafted(const slm2_generator *g);
uint32_t slm2_generator_accepted(const slm2_generator *g);

/* Where an answer under way stands: what a snapshot keeps of a generator (slm2/snapshot.h). */
typedef struct slm2_generator_state {
  uint64_t seed, words_used; /* of the random stream [D20] */
  uint32_t count;            /* tokens sampled; all but the last one are the end of the timeline */
  uint32_t last;             /* sampled last, not yet on the timeline; SLM2_NO_TOKEN when count is 0 */
} slm2_generator_state;
/* As slm2_generator_init, for an answer that was under way: the next event is the one that would have come. params are
 * those it began with, seed included; text, channel and stop strings follow from its tokens, which are read again.
 * SLM2_E_ARGUMENT for a state that does not fit the timeline or the seed, or an answer that params would have ended. */
SLM2_NODISCARD slm2_status slm2_generator_resume(void *mem, size_t mem_bytes, slm2_session *s, const slm2_generate_params *params,
                                                 const slm2_generator_state *state, slm2_generator **out, slm2_error *error);

SLM2_C_END

#endif
