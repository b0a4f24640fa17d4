/* session/speculate.h: lossless speculation. Prefill equals decode, bit for bit [D8]; so the next tokens of an answer may be
 * guessed, computed in one pass, and used as far as they turn out to be what is sampled. A guess (a draft) is what followed
 * the last ids where they stood before on the timeline. Nothing but time depends on it. docs/MODEL.md, "Speculation".
 *
 * What was computed ahead belongs to the session (ahead_next, ahead_end): keys and values lie beyond its length, where
 * nothing else reads them; ids likewise; logits lie in the rows behind its own. It is dropped by everything else that
 * touches the timeline. How much is drafted belongs to the answer.
 */
#ifndef SLM2_SESSION_SPECULATE_H
#define SLM2_SESSION_SPECULATE_H

#include "session/session.h"

typedef struct slm2_speculation {
  uint32_t longest;           /* draft; 0: none are made */
  bool adaptive;              /* drafts are made as they pay */
  uint32_t drafted, accepted; /* ids computed ahead; those of them that came to be on the timeline */
  int32_t budget, per_draft, per_batch; /* in 1/64 of the time of one token */
  uint32_t guess;             /* of the id to come, whether it was drafted or not; or SLM2_NO_TOKEN */
} slm2_speculation;

/* speculate: as in slm2_generate_params, checked. Drops what the session has ahead. */
void slm2_speculation_init(slm2_speculation *p, slm2_session *s, uint32_t speculate);
/* slm2_session_append of one id, from what was computed ahead, or together with a draft of at most `room` ids. */
SLM2_NODISCARD slm2_status slm2_speculation_append(slm2_speculation *p, slm2_session *s, uint32_t id, uint32_t room,
                                                   const slm2_cancel *cancel, slm2_error *error);

#define SLM2_DRAFT_MATCH_MIN 2u /* ids of the timeline's end that have to have stood there before */
#define SLM2_DRAFT_MATCH_MAX 8u /* more are not compared */
#define SLM2_DRAFT_LOOKBACK 32768u /* so many ids back */
/* Where in ids[0..n) the ids stand that followed the longest match of its end, of two the later one; 0: there is none.
 * *matched: how long it is. */
uint32_t slm2_draft_find(const uint32_t *ids, uint32_t n, uint32_t *matched);

#endif
