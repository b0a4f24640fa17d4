/* slm2/backend.h: which kernels compute. Every backend gives the bits of the oracle;
 * the choice is made once, before a session exists, and never changes under it.
 */
#ifndef SLM2_BACKEND_H
#define SLM2_BACKEND_H

#include "slm2/status.h"

SLM2_C_BEGIN

typedef struct slm2_backend slm2_backend; /* immutable table of kernels, static storage */

/* The best backend this CPU may use. Never NULL: at least the oracle. */
const slm2_backend *slm2_backend_default(void);
/* By name: "oracle", "avx2", ..., or "auto" for the default. SLM2_E_ARGUMENT says why not, and names what exists. */
SLM2_NODISCARD slm2_status slm2_backend_find(const char *name, const slm2_backend **out, slm2_error *error);
const char *slm2_backend_name(const slm2_backend *backend);
/* Backends of this build that this CPU may use, in rising order of preference; NULL past the end. */
const slm2_backend *slm2_backend_at(uint32_t i);

SLM2_C_END

#endif
