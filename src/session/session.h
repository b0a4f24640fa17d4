/* session/session.h: a session from the inside. ids, logits and the KV block hold no pointers: with the length they are
 * all of it that a snapshot has to save. Contract: include/slm2/session.h.
 */
#ifndef SLM2_SESSION_INTERNAL_H
#define SLM2_SESSION_INTERNAL_H

#include "model/forward.h"
#include "slm2/session.h"

struct slm2_session {
  slm2_session_params params;
  slm2_forward forward;
  uint32_t length;
  bool has_logits;            /* logits belong to position length - 1 */
  uint32_t ahead_next, ahead_end; /* rows of logits for the positions from length on that are computed (session/speculate.h) */
  uint32_t *ids;              /* [context] */
  float *logits;              /* [1 + draft, vocab] the first row is the session's, the others are ahead */
  slm2_candidate *candidates; /* [vocab] the sampler's scratch */
  uint8_t *seen;              /* [vocab / 8 + 1] */
};

/* Forgets what was computed ahead: the timeline changes otherwise. */
static inline void slm2_session_drop_ahead(slm2_session *s) { s->ahead_next = s->ahead_end = 0; }

/* What has to be kept of an answer under way on s; SLM2_E_ARGUMENT when it is not. */
SLM2_NODISCARD slm2_status slm2_generator_save(const slm2_generator *g, const slm2_session *s, slm2_generator_state *state,
                                               slm2_error *error);

#endif
