/* slm2/status.h: how every operation of the library reports what happened.
 *
 * Every fallible function returns an slm2_status. On anything but SLM2_OK (and
 * SLM2_NEED_MORE where a function documents it) its outputs are unwritten and
 * its objects are unchanged. The optional slm2_error receives the details; the
 * library itself never prints, exits or aborts.
 *
 * The numeric values are part of the ABI: they are pinned, never reused, and
 * appear unchanged in WebAssembly and in JSON output.
 */
#ifndef SLM2_STATUS_H
#define SLM2_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define SLM2_NODISCARD __attribute__((warn_unused_result))
#else
#define SLM2_NODISCARD
#endif

/* C linkage where a C++ program includes these headers. */
#ifdef __cplusplus
#define SLM2_C_BEGIN extern "C" {
#define SLM2_C_END }
#else
#define SLM2_C_BEGIN
#define SLM2_C_END
#endif

SLM2_C_BEGIN

typedef enum slm2_status {
  SLM2_OK = 0,
  SLM2_NEED_MORE = 1, /* not an error: push more bytes (streaming readers) */

  SLM2_E_ARGUMENT = 2,  /* a parameter outside its documented range */
  SLM2_E_MEMORY = 3,    /* the caller-lent memory, or the host's, is too small */
  SLM2_E_IO = 4,        /* the host could not read, write, sync or rename */
  SLM2_E_FORMAT = 5,    /* bytes that break their format's rules */
  SLM2_E_JSON = 6,      /* text that is not strict JSON, or not the expected shape */
  SLM2_E_VERSION = 7,   /* a format version this build does not read */
  SLM2_E_INTEGRITY = 8, /* a hash that does not match its bytes */
  SLM2_E_UNSUPPORTED = 9,               /* an architecture, pre-tokenizer, rope scaling ... not implemented */
  SLM2_E_UNSUPPORTED_QUANTIZATION = 10, /* a dtype or quantisation not implemented */
  SLM2_E_DIMENSION_MISMATCH = 11,       /* a shape that differs from what the config demands */
  SLM2_E_WEIGHT = 12,             /* a weight or scale that is not finite, or is out of range [D9] */
  SLM2_E_TOKEN = 13,              /* a token id outside the vocabulary */
  SLM2_E_CHAT = 14,               /* a conversation the chat template cannot render */
  SLM2_E_CONTEXT_OVERFLOW = 15,   /* the context is full; nothing is ever shifted or dropped */
  SLM2_E_NUMERICAL = 16,          /* a NaN or infinity at a stage border [D5] */
  SLM2_E_CANCELLED = 17,          /* the caller's cancel word was set */
  SLM2_E_INTERNAL_INVARIANT = 18, /* a bug in slm2: please report it */
} slm2_status;

/* Details of a failure, in caller-lent memory. All strings are NUL-terminated
 * UTF-8, cut at a code point border when too long, with control bytes from
 * untrusted input replaced by '?'. */
typedef struct slm2_error {
  slm2_status code;
  char operation[32]; /* the stage that refused, e.g. "slm2 header", "rope" */
  char name[160];     /* the tensor, key, file or parameter concerned; may be empty */
  char message[256];  /* one line, plain words, with the numbers in it */
  uint64_t offset;    /* byte offset in the input, or UINT64_MAX when there is none */
} slm2_error;

/* The pinned upper-case name of a status, e.g. "CONTEXT_OVERFLOW"; "UNKNOWN" for
 * a value that is none. Never NULL; static storage. */
const char *slm2_status_name(slm2_status status);

SLM2_C_END

#endif
