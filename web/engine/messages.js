/** messages.js: payloads of commands, made from what callers ask for, and of events, made into objects. docs/PROTOCOL.md. */
import { Slm2Error } from "./error.js";
import { AS_IT_PAYS, CHANNELS, EVENT, FINISHES, GENERATE_FLAG, GENERATE_HEAD, KIND, KV_TYPES, NO_TOKEN, PROFILES, STATUS_NAMES }
  from "./protocol.js";

/** @typedef {import("./ring.js").Event} Event */

/**
 * @typedef {object} GenerateParams
 * @property {object[] | object} [messages] OpenAI-shaped messages, or an object with them (docs/MODEL.md)
 * @property {string} [text] plain text to continue, instead of messages
 * @property {ArrayLike<number>} [ids] token ids to continue, instead of messages
 * @property {object[]} [tools] function signatures for the chat template
 * @property {boolean} [thinking] false: the model answers at once. Default true
 * @property {boolean} [specials] control tokens written in the content count. Default false: they are plain text
 * @property {number} [temperature] 0 is greedy. This and the next ones default to the model's own
 * @property {number} [topK]
 * @property {number} [topP]
 * @property {number} [minP] default 0, off
 * @property {number} [repeatPenalty]
 * @property {number} [maxTokens] default: what the context holds
 * @property {number | bigint} [seed] 0 .. 2^64 - 1 (a bigint beyond 2^53 - 1). Drawn and reported when absent
 * @property {string[]} [stop] up to 16 texts of up to 256 bytes that end the answer
 * @property {number | "auto"} [speculate] length of the drafts computed ahead, 0 none; changes speed, never the answer.
 *   Default "auto": as they pay
 * @property {boolean} [ignoreEnd] end tokens do not end the answer
 */

/**
 * @typedef {object} Model
 * @property {string} identity SHA-256 of the file's header, which commits to all of it
 * @property {number} vocab
 * @property {number} layers
 * @property {number} heads
 * @property {number} kvHeads
 * @property {number} headDim
 * @property {number} hidden
 * @property {number} intermediate
 * @property {number} maxPositions
 * @property {number} context positions that this session has
 * @property {string} profile "q8" or "f32"
 * @property {string} kv "f16" or "f32"
 * @property {number} threads
 * @property {number} chatFormat 0: the model has no known chat template, only text and ids work
 * @property {number} tokens ids that the tokenizer has
 * @property {boolean} verified every byte was hashed in this load; else the seal of the import stands for it
 * @property {{doSample: boolean, temperature: number, topK: number, topP: number, minP: number, repeatPenalty: number}} defaults
 * @property {string} license
 * @property {string} source
 * @property {string} backend
 */

const UTF8 = new TextEncoder();
const NEVER = 0xffffffffffffffffn; /* the offset of an error that has none */
const argument = (/** @type {string} */ message, details = {}) => new Slm2Error("ARGUMENT", message, details);

/** @param {Uint8Array} bytes */
export const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/** The shortest decimal of an f32, so that 0.6 comes back as 0.6. @param {number} value */
export function shortest(value) {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

/* --- commands ---------------------------------------------------------------------- */

/** @param {...number} words */
export const words = (...words) => new Uint8Array(new Uint32Array(words).buffer);

/** @param {unknown} value @param {string} name @param {number} max @param {number} [min] */
export function integer(value, name, max, min = 0) {
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max)
    throw argument(`${name}: ${String(value)} is no whole number from ${min} to ${max}`, { name });
  return value;
}
/** @param {unknown} value @param {string} name */
function finite(value, name) {
  if (typeof value !== "number" || !Number.isFinite(value)) throw argument(`${name}: ${String(value)} is no finite number`, { name });
  return value;
}

/** @param {unknown} seed @returns {bigint} */
export function seedOf(seed) {
  if (typeof seed === "bigint" && seed >= 0n && seed < 1n << 64n) return seed;
  if (typeof seed === "number" && Number.isSafeInteger(seed) && seed >= 0) return BigInt(seed);
  throw argument(`seed: ${String(seed)} is no whole number from 0 to 2^53 - 1, nor a bigint to 2^64 - 1`, { name: "seed" });
}

/** 53 random bits: every language's JSON keeps them. */
export function drawSeed() {
  const [low, high] = crypto.getRandomValues(new Uint32Array(2));
  return BigInt(high & 0x1fffff) << 32n | BigInt(low);
}

/** The prompt of a command: exactly one of messages, text and ids. @param {GenerateParams} p */
function prompt(p) {
  const given = /** @type {const} */ (["messages", "text", "ids"]).filter((name) => p[name] !== undefined);
  if (given.length !== 1) throw argument(`give one of messages, text and ids; ${given.length === 0 ? "none" : given.join(" and ")} given`);
  if (p.tools !== undefined && given[0] !== "messages") throw argument(`tools: need messages, not ${given[0]}`, { name: "tools" });
  if (p.text !== undefined) {
    if (typeof p.text !== "string") throw argument("text: is no string", { name: "text" });
    return { kind: KIND.TEXT, bytes: UTF8.encode(p.text) };
  }
  if (p.ids !== undefined) return { kind: KIND.IDS, bytes: idBytes(p.ids) };
  if (typeof p.messages !== "object" || p.messages === null) throw argument("messages: are no list", { name: "messages" });
  const value = p.tools === undefined ? p.messages : { messages: p.messages, tools: p.tools };
  return { kind: KIND.MESSAGES, bytes: UTF8.encode(JSON.stringify(value)) };
}

/** @param {ArrayLike<number>} ids */
function idBytes(ids) {
  if (typeof ids !== "object" || ids === null || !Number.isInteger(ids.length)) throw argument("ids: are no list", { name: "ids" });
  const out = new DataView(new ArrayBuffer(4 * ids.length));
  for (let i = 0; i < ids.length; i++) out.setUint32(4 * i, integer(ids[i], `ids[${i}]`, NO_TOKEN), true);
  return new Uint8Array(out.buffer);
}

/** @param {GenerateParams} p */
const flagsOf = (p) => (p.thinking === false ? GENERATE_FLAG.NO_THINKING : 0) | (p.specials === true ? GENERATE_FLAG.SPECIALS : 0) |
  (p.ignoreEnd === true ? GENERATE_FLAG.IGNORE_END : 0);

/** @param {unknown} stop */
function stopBytes(stop) {
  if (!Array.isArray(stop)) throw argument("stop: is no list of texts", { name: "stop" });
  const texts = stop.map((text, i) => {
    if (typeof text !== "string") throw argument(`stop[${i}]: is no text`, { name: "stop" });
    const bytes = UTF8.encode(text);
    if (bytes.length < 1 || bytes.length > 256) throw argument(`stop[${i}]: ${bytes.length} bytes; a stop text has 1 to 256`, { name: "stop" });
    return bytes;
  });
  if (texts.length > 16) throw argument(`stop: ${texts.length} texts; at most 16`, { name: "stop" });
  return concat(texts.flatMap((bytes) => [words(bytes.length), bytes]));
}

/** @param {Uint8Array[]} pieces */
function concat(pieces) {
  const out = new Uint8Array(pieces.reduce((n, piece) => n + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

const KNOWN = new Set(["messages", "text", "ids", "tools", "thinking", "specials", "temperature", "topK", "topP", "minP",
  "repeatPenalty", "maxTokens", "seed", "stop", "speculate", "ignoreEnd"]);

/** @param {object} params @param {Set<string>} known */
export function refuseUnknown(params, known) {
  for (const [name, value] of Object.entries(params))
    if (value !== undefined && !known.has(name)) throw argument(`${name}: is not known; known are ${[...known].join(", ")}`, { name });
}

/** A GENERATE command. @param {GenerateParams} params @param {Model} model @returns {{payload: Uint8Array, seed: bigint}} */
export function generateCommand(params, model) {
  if (typeof params !== "object" || params === null) throw argument("give an object with messages, text or ids");
  refuseUnknown(params, KNOWN);
  const d = model.defaults, { kind, bytes } = prompt(params), stop = stopBytes(params.stop ?? []);
  const seed = params.seed === undefined || params.seed === null ? drawSeed() : seedOf(params.seed);
  const head = new DataView(new ArrayBuffer(GENERATE_HEAD));
  head.setUint32(0, kind, true);
  head.setUint32(4, flagsOf(params), true);
  head.setFloat32(8, finite(params.temperature ?? (d.doSample ? d.temperature : 0), "temperature"), true);
  head.setUint32(12, integer(params.topK ?? d.topK, "topK", NO_TOKEN), true);
  head.setFloat32(16, finite(params.topP ?? d.topP, "topP"), true);
  head.setFloat32(20, finite(params.minP ?? d.minP, "minP"), true);
  head.setFloat32(24, finite(params.repeatPenalty ?? d.repeatPenalty, "repeatPenalty"), true);
  head.setUint32(28, integer(params.maxTokens ?? model.context, "maxTokens", NO_TOKEN, 1), true);
  head.setBigUint64(32, seed, true);
  head.setUint32(40, (params.speculate ?? "auto") === "auto" ? AS_IT_PAYS : integer(params.speculate, "speculate", NO_TOKEN - 1), true);
  head.setUint32(44, (params.stop ?? []).length, true);
  head.setUint32(48, stop.length, true);
  return { payload: concat([new Uint8Array(head.buffer), stop, bytes]), seed };
}

/** A COUNT command. @param {GenerateParams} params */
export function countCommand(params) {
  refuseUnknown(params, new Set(["messages", "text", "ids", "tools", "thinking", "specials"]));
  const { kind, bytes } = prompt(params);
  return concat([words(kind, flagsOf(params)), bytes]);
}

/** A DIGEST command. @param {ArrayLike<number>} ids @param {number} chunk */
export function digestCommand(ids, chunk) {
  const bytes = idBytes(ids);
  return concat([words(integer(chunk, "chunk", NO_TOKEN), bytes.length / 4), bytes]);
}

/* --- events ------------------------------------------------------------------------- */

/** Reads a payload in order; one that is too short, or longer than what it should hold, is a broken engine's. */
class Cursor {
  /** @param {Event} event */
  constructor(event) {
    this.event = event;
    this.view = new DataView(event.payload.buffer);
    this.at = 0;
  }
  /** @param {number} n */
  take(n) {
    if (this.at + n > this.event.payload.length)
      throw new Slm2Error("INTERNAL_INVARIANT", `event ${this.event.op} has ${this.event.payload.length} bytes, needs ${this.at + n}`);
    return (this.at += n) - n;
  }
  u32() { return this.view.getUint32(this.take(4), true); }
  u64() { return this.view.getBigUint64(this.take(8), true); }
  f32() { return this.view.getFloat32(this.take(4), true); }
  f64() { return this.view.getFloat64(this.take(8), true); }
  hash() { return hex(this.event.payload.subarray(this.take(32), this.at)); }
  text() {
    const n = this.u32(), from = this.take(n);
    return new TextDecoder().decode(this.event.payload.subarray(from, from + n));
  }
  end() {
    if (this.at !== this.event.payload.length)
      throw new Slm2Error("INTERNAL_INVARIANT", `event ${this.event.op} has ${this.event.payload.length} bytes, of which ${this.at} are known`);
  }
}

/** @param {Cursor} c @returns {Model} */
function ready(c) {
  const identity = c.hash(), vocab = c.u32(), layers = c.u32(), heads = c.u32(), kvHeads = c.u32(), headDim = c.u32();
  const hidden = c.u32(), intermediate = c.u32(), maxPositions = c.u32(), context = c.u32(), profile = PROFILES[c.u32()];
  const kv = KV_TYPES[c.u32()], threads = c.u32(), chatFormat = c.u32(), tokens = c.u32(), doSample = c.u32() !== 0;
  const topK = c.u32(), temperature = shortest(c.f32()), topP = shortest(c.f32()), repeatPenalty = shortest(c.f32());
  const verified = c.u32() !== 0, license = c.text(), source = c.text(), backend = c.text();
  return { identity, vocab, layers, heads, kvHeads, headDim, hidden, intermediate, maxPositions, context, profile, kv, threads,
    chatFormat, tokens, verified, license, source, backend,
    defaults: { doSample, temperature, topK, topP, minP: 0, repeatPenalty } };
}

/** @param {Cursor} c */
function failed(c) {
  const status = c.u32();
  c.u32();
  const offset = c.u64(), operation = c.text(), name = c.text(), message = c.text();
  const details = { operation, name, ...(offset === NEVER ? {} : { offset: Number(offset) }) };
  return { error: new Slm2Error(STATUS_NAMES[status] ?? "UNKNOWN", name === "" ? message : `${name}: ${message}`, details) };
}

/** @param {Cursor} c */
function token(c) {
  const id = c.u32(), position = c.u32(), logprob = c.f32(), channel = CHANNELS[c.u32()], finish = FINISHES[c.u32()];
  return { id: id === NO_TOKEN ? null : id, position, logprob, channel, finish: finish === "none" ? null : finish, text: c.text() };
}

/** @param {Cursor} c */
function done(c) {
  const finish = FINISHES[c.u32()], promptTokens = c.u32(), reusedTokens = c.u32(), completionTokens = c.u32();
  const prefillMs = c.f64(), decodeMs = c.f64(), drafted = c.u32(), accepted = c.u32();
  return { finish, promptTokens, reusedTokens, completionTokens, prefillMs, decodeMs, drafted, accepted, digest: c.hash() };
}

/** @param {Cursor} c */
function progress(c) {
  const phase = c.u32() === 2 ? "verify" : "prefill", done = c.u32(), total = c.u32();
  c.u32();
  return phase === "verify" ? { phase, done: done * 1024, total: total * 1024 } : { phase, done, total };
}

/** @type {Record<number, (c: Cursor) => any>} */
const DECODERS = {
  [EVENT.READY]: ready,
  [EVENT.BEGUN]: (c) => ({ promptTokens: c.u32(), reusedTokens: c.u32() }),
  [EVENT.PROGRESS]: progress,
  [EVENT.TOKEN]: token,
  [EVENT.DONE]: done,
  [EVENT.FAILED]: failed,
  [EVENT.COUNTED]: (c) => ({ tokens: c.u32(), bytes: c.u32() }),
  [EVENT.DIGESTED]: (c) => ({ positions: c.u32(), digest: c.hash() }),
  [EVENT.RESET]: () => ({}),
  [EVENT.CLOSED]: () => ({}),
};

/** @param {Event} event @returns {any} */
export function decode(event) {
  const cursor = new Cursor(event), value = DECODERS[event.op](cursor);
  cursor.end();
  return value;
}

/** The slm2_error of a core's last refusal. @param {WebAssembly.Memory} memory @param {number} at slm2_web_error() */
export function coreError(memory, at) {
  const bytes = new Uint8Array(memory.buffer).slice(at, at + 464), view = new DataView(bytes.buffer);
  const text = (/** @type {number} */ from, /** @type {number} */ n) => {
    const part = bytes.subarray(from, from + n), end = part.indexOf(0);
    return new TextDecoder().decode(part.subarray(0, end < 0 ? n : end));
  };
  const name = text(36, 160), message = text(196, 256), offset = view.getBigUint64(456, true);
  return { code: STATUS_NAMES[view.getUint32(0, true)] ?? "UNKNOWN", message: name === "" ? message : `${name}: ${message}`,
    operation: text(4, 32), name, ...(offset === NEVER ? {} : { offset: Number(offset) }) };
}
