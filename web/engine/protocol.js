/** protocol.js: the numbers of docs/PROTOCOL.md and wasm/web.h. A test compares the three. */

export const VERSION = 1;
export const MAGIC = 0x324d4c53;
export const PAGE = 65536;
export const MAX_PAGES = 65520;
export const CONTROL = 1048576;
export const CONTROL_BYTES = 4096;
export const RING_BYTES = 524288;
export const COMMANDS = CONTROL + CONTROL_BYTES;
export const EVENTS = COMMANDS + RING_BYTES;
export const STACKS = EVENTS + RING_BYTES;
export const STACK_BYTES = 65536;
export const PAYLOAD_MAX = 65536;
export const SCRATCH_MAX = 67108864;
export const THREADS_MAX = 64;
export const HEAD_BYTES = 16;
export const FLAG_MORE = 1;
export const CANCEL_ALL = 0xffffffff;
export const NO_TOKEN = 0xffffffff;
export const AS_IT_PAYS = 0xffffffff;

/** Beside the stored models: the load that is under way (lock.js). */
export const MARK_FILE = "loading.mark";

/** 32-bit words of the control block. */
export const WORD = Object.freeze({
  MAGIC: 0, VERSION: 1, STATE: 2, CANCEL: 3, HEARTBEAT: 4, QUIT: 5, DOORBELL: 6, EVENT_BELL: 7, COMMAND_HEAD: 8,
  COMMAND_TAIL: 9, EVENT_HEAD: 10, EVENT_TAIL: 11, INSIDE: 12, LOADED: 13, START_BELL: 14, END_BELL: 15, MAIL_STATE: 16,
  MAIL_OP: 17, MAIL_OFFSET: 18, MAIL_ADDRESS: 20, MAIL_BYTES: 21, MAIL_DONE: 22, MAIL_TOTAL: 24, MAIL_PHASE: 26, PLAN: 64,
});

export const STATE = Object.freeze({ EMPTY: 0, OPENING: 1, READY: 2, BUSY: 3, POISONED: 4, CLOSED: 5 });

/** The word of the mailbox that says whose turn it is. */
export const MAIL = Object.freeze({ FREE: 0, ASKED: 1, ANSWERED: 2, FAILED: 3 });

export const TURN = Object.freeze({ IDLE: 0, MORE: 1, FULL: 2, CLOSED: 3, POISONED: 4 });

export const COMMAND = Object.freeze({ OPEN: 1, GENERATE: 2, COUNT: 3, DIGEST: 4, RESET: 5, CLOSE: 6 });

export const EVENT = Object.freeze({
  READY: 1, BEGUN: 2, PROGRESS: 3, TOKEN: 4, DONE: 5, FAILED: 6, COUNTED: 7, DIGESTED: 8, RESET: 9, CLOSED: 10,
});

export const KIND = Object.freeze({ MESSAGES: 0, TEXT: 1, IDS: 2 });
export const GENERATE_FLAG = Object.freeze({ NO_THINKING: 1, SPECIALS: 2, IGNORE_END: 4 });
export const GENERATE_HEAD = 96;
export const PROFILES = Object.freeze(["f32", "q8"]);
export const KV_TYPES = Object.freeze(["f32", "f16"]);
export const CHANNELS = Object.freeze(["answer", "reasoning"]);
export const FINISHES = Object.freeze(["none", "stop", "length", "cancelled", "error"]);

/** Names of slm2_status, by value. */
export const STATUS_NAMES = Object.freeze([
  "OK", "NEED_MORE", "ARGUMENT", "MEMORY", "IO", "FORMAT", "JSON", "VERSION", "INTEGRITY", "UNSUPPORTED",
  "UNSUPPORTED_QUANTIZATION", "DIMENSION_MISMATCH", "WEIGHT", "TOKEN", "CHAT", "CONTEXT_OVERFLOW", "NUMERICAL", "CANCELLED",
  "INTERNAL_INVARIANT",
]);

/** The terms of a plan, in order: one u64 each. */
export const PLAN_TERMS = Object.freeze([
  "version", "pages", "total", "file", "index", "kv", "scratch", "logits", "sampler", "tokens", "state", "session", "work",
  "stacks", "rings", "low", "atStacks", "atWork", "atFile", "atIndex", "atSession", "context", "profile", "kvType", "tile",
  "threads", "inputMax", "maxPositions", "largestContext", "limit", "drafts", "draft",
]);
