/* wasm/web.h: the WebAssembly core as its workers see it: docs/PROTOCOL.md in C. One memory, lent by the host; no import
 * but that memory; no allocation but the regions of a plan. Exported functions take and give numbers and addresses, and
 * check every one of them: what a worker passes wrongly is refused, never followed.
 */
#ifndef SLM2_WASM_WEB_H
#define SLM2_WASM_WEB_H

#include <stdint.h>
#include "slm2/pool.h"
#include "slm2/session.h"

#define SLM2_WEB_VERSION 1u
#define SLM2_WEB_MAGIC 0x324d4c53u /* "SLM2" */
#define SLM2_WEB_PAGE 65536u
#define SLM2_WEB_MAX_PAGES 65520u /* 4 GiB less 1 MiB: below address 0, where a first stack overflows to, there is no memory */

#define SLM2_WEB_CONTROL 1048576u
#define SLM2_WEB_CONTROL_BYTES 4096u
#define SLM2_WEB_RING_BYTES 524288u
#define SLM2_WEB_COMMANDS (SLM2_WEB_CONTROL + SLM2_WEB_CONTROL_BYTES)
#define SLM2_WEB_EVENTS (SLM2_WEB_COMMANDS + SLM2_WEB_RING_BYTES)
#define SLM2_WEB_STACKS (SLM2_WEB_EVENTS + SLM2_WEB_RING_BYTES)
#define SLM2_WEB_STACK_BYTES 65536u
#define SLM2_WEB_PAYLOAD_MAX 65536u
#define SLM2_WEB_SCRATCH_MAX 67108864u /* scratch and work together [R93] */
#define SLM2_WEB_THREADS_MAX 64u

enum slm2_web_word {
  SLM2_WORD_MAGIC = 0, SLM2_WORD_VERSION = 1, SLM2_WORD_STATE = 2, SLM2_WORD_CANCEL = 3, SLM2_WORD_HEARTBEAT = 4,
  SLM2_WORD_QUIT = 5, SLM2_WORD_DOORBELL = 6, SLM2_WORD_EVENT_BELL = 7, SLM2_WORD_COMMAND_HEAD = 8, SLM2_WORD_COMMAND_TAIL = 9,
  SLM2_WORD_EVENT_HEAD = 10, SLM2_WORD_EVENT_TAIL = 11, SLM2_WORD_INSIDE = 12, SLM2_WORD_LOADED = 13,
  SLM2_WORD_START_BELL = 14, SLM2_WORD_END_BELL = 15,
  SLM2_WORD_MAIL_STATE = 16, SLM2_WORD_MAIL_OP = 17, SLM2_WORD_MAIL_OFFSET = 18, SLM2_WORD_MAIL_ADDRESS = 20,
  SLM2_WORD_MAIL_BYTES = 21, SLM2_WORD_MAIL_DONE = 22, SLM2_WORD_MAIL_TOTAL = 24, SLM2_WORD_MAIL_PHASE = 26,
  SLM2_WORD_PLAN = 64,
};

/* Every term in bytes. The names of docs/PROTOCOL.md, in that order. */
typedef struct slm2_web_plan_terms {
  uint64_t version, pages, total, file, index, kv, scratch, logits, sampler, tokens, state, session, work, stacks, rings, low;
  uint64_t at_stacks, at_work, at_file, at_index, at_session;
  uint64_t context, profile, kv_type, tile, threads, input_max, max_positions, largest_context, limit, drafts, draft;
} slm2_web_plan_terms;
_Static_assert(sizeof(slm2_web_plan_terms) == 32 * 8, "docs/PROTOCOL.md");

/* Exports are called by these names; natively, by unit tests. */
#ifdef __wasm__
#define SLM2_EXPORT(name) __attribute__((export_name(#name), visibility("default"))) name
#else
#define SLM2_EXPORT(name) name
#endif

/* --- exports for every instance ------------------------------------------------- */

uint32_t SLM2_EXPORT(slm2_web_version)(void);
/* R115: what it was built with: 1 atomics, 2 bulk memory, 4 SIMD128, 8 relaxed SIMD, 16 saturating conversion, 32 sign
 * extension, 64 mutable globals. */
uint32_t SLM2_EXPORT(probe_features)(void);
/* Address of the last call's slm2_error: u32 code at 0, operation[32] at 4, name[160] at 36, message[256] at 196, u64 offset
 * at 456. */
uint32_t SLM2_EXPORT(slm2_web_error)(void);
/* First byte that belongs to the caller, 64-byte aligned, on a memory without a map. */
uint32_t SLM2_EXPORT(slm2_web_heap)(void);

/* Headers, plans, verification; on a memory of the store's own, where [heap, end) is lent as the caller likes. Each returns
 * an slm2_status; what it is given must lie in there. */

/* From the first 8 bytes of a file: u64 at out = bytes from the file's start that slm2_web_header and slm2_web_plan read
 * (the header, and the head of the tokenizer after it). */
uint32_t SLM2_EXPORT(slm2_web_header_need)(uint32_t at, uint32_t n, uint64_t file_bytes, uint32_t out);
/* Checks those bytes (64-byte aligned). out, 256 bytes: identity[32], u64 header_bytes, data_bytes, n_chunks, tensor_bytes,
 * parameters; u32 max_positions, layers, hidden, vocab; license[64]; source[64] (both NUL-terminated). */
uint32_t SLM2_EXPORT(slm2_web_header)(uint32_t at, uint32_t n, uint64_t file_bytes, uint32_t out);
/* The 32 bytes that the header states for a chunk of the data. */
uint32_t SLM2_EXPORT(slm2_web_chunk_hash)(uint32_t at, uint32_t n, uint64_t file_bytes, uint64_t chunk, uint32_t out);
/* slm2_web_plan_terms at out. context 0: the model's own, at most 4,096, or less when only that fits pages.
 * largest_context: for these pages (0: none fits). SLM2_E_MEMORY, out written, when the plan needs more than pages. */
uint32_t SLM2_EXPORT(slm2_web_plan)(uint32_t at, uint32_t n, uint64_t file_bytes, uint32_t context, uint32_t profile, uint32_t kv,
                                    uint32_t tile, uint32_t threads, uint32_t pages, uint32_t out);
uint32_t SLM2_EXPORT(slm2_web_reader_bytes)(void);
/* at: 64-byte aligned, n >= reader_bytes of memory. */
uint32_t SLM2_EXPORT(slm2_web_reader_start)(uint32_t at, uint32_t n, uint64_t file_bytes);
/* slm2_reader_push: SLM2_NEED_MORE until the file is complete. */
uint32_t SLM2_EXPORT(slm2_web_reader_push)(uint32_t at, uint32_t bytes_at, uint32_t n);

/* --- exports for the memory of a map: an engine and its compute workers ---------- */

/* Checks magic, version, plan and memory size, and that the rings are fresh; state becomes "empty". An slm2_status. */
uint32_t SLM2_EXPORT(slm2_web_start)(void);
/* One slice of work: an slm2_web_turn. */
uint32_t SLM2_EXPORT(slm2_web_step)(double now_ms);
/* Some matrix products on the work region, after slm2_web_start, before anything is loaded: the caller times it to choose
 * between modules. Returns a checksum, the same for every module; negative when it may not run. */
double SLM2_EXPORT(slm2_web_trial)(uint32_t rounds);
/* Where the stack of a compute worker (1 ..) begins: for its instance's __stack_pointer, before slm2_web_thread. */
uint32_t SLM2_EXPORT(slm2_web_stack)(uint32_t thread);
/* A compute worker's life, from before there is a pool; returns after quit. */
void SLM2_EXPORT(slm2_web_thread)(uint32_t thread);

/* --- export for the memory of a conversion ---------------------------------------- */

/* Asks through the mailbox, ends with a status. Its memory is all behind the control block; SLM2_E_MEMORY tells in the error's
 * offset how many bytes all of it must have. On OK the report's header is at slm2_web_result(): identity[32], u64 file bytes,
 * u64 zero blocks, u32 unknown template. */
uint32_t SLM2_EXPORT(slm2_web_convert)(uint64_t gguf_bytes);
uint32_t SLM2_EXPORT(slm2_web_result)(void);

typedef enum slm2_web_turn {
  SLM2_TURN_IDLE = 0,  /* nothing to do until the doorbell rings */
  SLM2_TURN_MORE = 1,  /* call again */
  SLM2_TURN_FULL = 2,  /* the event ring is full: call again after the doorbell has rung */
  SLM2_TURN_CLOSED = 3,
  SLM2_TURN_POISONED = 4, /* slm2_web_error says why */
} slm2_web_turn;

enum slm2_web_command { SLM2_COMMAND_OPEN = 1, SLM2_COMMAND_GENERATE, SLM2_COMMAND_COUNT, SLM2_COMMAND_DIGEST,
                        SLM2_COMMAND_RESET, SLM2_COMMAND_CLOSE };
enum slm2_web_event { SLM2_EVENT_READY = 1, SLM2_EVENT_BEGUN, SLM2_EVENT_PROGRESS, SLM2_EVENT_TOKEN, SLM2_EVENT_DONE,
                      SLM2_EVENT_FAILED, SLM2_EVENT_COUNTED, SLM2_EVENT_DIGESTED, SLM2_EVENT_RESET, SLM2_EVENT_CLOSED };
#define SLM2_FLAG_MORE 1u
#define SLM2_WEB_CANCEL_ALL UINT32_MAX /* for the cancel word: whatever runs */

/* The pool of wasm/pool.c over the compute workers of this memory; n_threads from the plan, the same at each call (else NULL).
 * It works with those who have arrived, which may be nobody but the caller. */
const slm2_pool *slm2_web_pool(uint32_t n_threads);
/* 0, or the number of the compute worker whose canary is broken. */
uint32_t slm2_web_broken_stack(uint32_t n_threads);

#endif
