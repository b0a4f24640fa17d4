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
  uint32_t *ids;              /* [context] */
  float *logits;              /* [vocab] */
  slm2_candidate *candidates; /* [vocab] the sampler's scratch */
  uint8_t *seen;              /* [vocab / 8 + 1] */
};

/* What has to be kept of an answer under way on s; SLM2_E_ARGUMENT when it is not. */
SLM2_NODISCARD slm2_status slm2_generator_save(const slm2_generator *g, const slm2_session *s, slm2_generator_state *state,
                                               slm2_error *error);

#endif
