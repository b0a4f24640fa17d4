/* base/error.h: filling an slm2_error without stdio. */
#ifndef SLM2_BASE_ERROR_H
#define SLM2_BASE_ERROR_H

#include <stdarg.h>
#include "slm2/status.h"

#define SLM2_NO_OFFSET UINT64_MAX

/* Fills *error (may be NULL) and returns code. fmt knows %s (const char *), %u (uint64_t, cast every
 * argument!), %d (int64_t), %x (uint64_t, hexadecimal) and %%. name may be NULL. Bytes below 0x20, 0x7f and
 * invalid UTF-8 from arguments become '?'. Output is always terminated and cut at a code point border. */
slm2_status slm2_fail(slm2_error *error, slm2_status code, const char *operation, const char *name, uint64_t offset,
                      const char *fmt, ...);
/* The same with a counted, untrusted name. */
slm2_status slm2_fail_n(slm2_error *error, slm2_status code, const char *operation, const char *name, size_t n_name,
                        uint64_t offset, const char *fmt, ...);

/* The only control-flow macro: returns a failure to the caller. */
#define SLM2_TRY(expr)                       \
  do {                                       \
    slm2_status try_status_ = (expr);        \
    if (try_status_ != SLM2_OK) return try_status_; \
  } while (0)

#endif
