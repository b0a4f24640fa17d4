/**
 * core.js: the WebAssembly core on a small memory of its own, for what comes before a model runs: headers, plans and
 * verification. Runs in the store worker. Addresses and records are those of wasm/web.h.
 */
import { Slm2Error } from "./error.js";
import { coreError, hex } from "./messages.js";
import { PLAN_TERMS, STATUS_NAMES } from "./protocol.js";

const PAGES = 192; /* 12 MiB: the module's low part, a header of at most 1 MiB, a reader with its own, one chunk */
export const CHUNK = 4194304;

/** What a header says of its file. @typedef {{identity: string, bytes: number, headerBytes: number, dataBytes: number,
 *  chunks: number, tensorBytes: number, parameters: number, maxPositions: number, layers: number, hidden: number,
 *  vocab: number, license: string, source: string}} Header */

/** @typedef {{context: number, profile: number, kv: number, tile: number, threads: number, pages: number}} PlanRequest */

export class Core {
  #memory;
  /** @type {any} */ #c;
  #heap = 0;
  #reader = 0;
  #chunk = 0;
  #prefixBytes = 0;

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    this.#memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true });
    this.#c = new WebAssembly.Instance(module, { env: { memory: this.#memory } }).exports;
    this.#heap = this.#c.slm2_web_heap() >>> 0;
    this.#chunk = this.#memory.buffer.byteLength - CHUNK;
    this.#reader = (this.#chunk - this.#c.slm2_web_reader_bytes()) & ~63;
    if (this.#reader < this.#heap + 1024 + (1 << 20) + 4096) throw new Error("core.js: PAGES is too small for this module");
  }

  /** Room for a prefix: after a kibibyte for answers. */
  get #prefix() { return this.#heap + 1024; }

  /** @param {number} status @param {string} where */
  #check(status, where) {
    if (status !== 0) throw this.#error(status, where);
  }

  /** The core's own words for what it refused. @param {number} status @param {string} where */
  #error(status, where) {
    const { code: _, message, ...details } = coreError(this.#memory, this.#c.slm2_web_error() >>> 0);
    return new Slm2Error(STATUS_NAMES[status] ?? "UNKNOWN", `${where}: ${message}`, { where, ...details });
  }

  /** How many bytes from the start of a file the header takes. @param {Uint8Array} first at least 8 bytes
   * @param {number} fileBytes @param {string} where */
  need(first, fileBytes, where) {
    new Uint8Array(this.#memory.buffer).set(first.subarray(0, 8), this.#prefix);
    this.#check(this.#c.slm2_web_header_need(this.#prefix, 8, BigInt(fileBytes), this.#heap), where);
    return Number(new DataView(this.#memory.buffer).getBigUint64(this.#heap, true));
  }

  /** Checks a header; chunkHash and plan then speak of this file.
   * @param {Uint8Array} prefix what need() asked for @param {number} fileBytes @param {string} where @returns {Header} */
  header(prefix, fileBytes, where) {
    const bytes = new Uint8Array(this.#memory.buffer), view = new DataView(this.#memory.buffer), out = this.#heap;
    bytes.set(prefix, this.#prefix);
    this.#prefixBytes = prefix.length;
    this.#check(this.#c.slm2_web_header(this.#prefix, prefix.length, BigInt(fileBytes), out), where);
    const u64 = (/** @type {number} */ at) => Number(view.getBigUint64(out + at, true));
    const text = (/** @type {number} */ at) => {
      const copy = bytes.slice(out + at, out + at + 64), end = copy.indexOf(0);
      return new TextDecoder().decode(copy.subarray(0, end < 0 ? 64 : end));
    };
    return {
      identity: hex(bytes.slice(out, out + 32)), bytes: fileBytes, headerBytes: u64(32), dataBytes: u64(40), chunks: u64(48),
      tensorBytes: u64(56), parameters: u64(64), maxPositions: view.getUint32(out + 72, true),
      layers: view.getUint32(out + 76, true), hidden: view.getUint32(out + 80, true), vocab: view.getUint32(out + 84, true),
      license: text(88), source: text(152),
    };
  }

  /** The SHA-256 that the header states for a chunk. @param {number} chunk @param {number} fileBytes @param {string} where */
  chunkHash(chunk, fileBytes, where) {
    const status = this.#c.slm2_web_chunk_hash(this.#prefix, this.#prefixBytes, BigInt(fileBytes), BigInt(chunk), this.#heap);
    this.#check(status, where);
    return hex(new Uint8Array(this.#memory.buffer).slice(this.#heap, this.#heap + 32));
  }

  /** @param {number} fileBytes @param {PlanRequest} p @param {string} where */
  plan(fileBytes, p, where) {
    const status = this.#c.slm2_web_plan(this.#prefix, this.#prefixBytes, BigInt(fileBytes), p.context, p.profile, p.kv, p.tile,
      p.threads, p.pages, this.#heap);
    const fits = status !== STATUS_NAMES.indexOf("MEMORY");
    if (fits) this.#check(status, where);
    const terms = new BigUint64Array(this.#memory.buffer.slice(this.#heap, this.#heap + 256));
    const named = Object.fromEntries(PLAN_TERMS.map((name, i) => [name, Number(terms[i])]));
    return { terms, named, fits, ...(fits ? {} : { why: this.#error(status, where).message }) };
  }

  /** Begins to verify a whole file. @param {number} fileBytes @param {string} where */
  readerStart(fileBytes, where) {
    const n = this.#memory.buffer.byteLength - CHUNK - this.#reader;
    this.#check(this.#c.slm2_web_reader_start(this.#reader, n, BigInt(fileBytes)), where);
  }

  /** At most CHUNK bytes; true when the file is complete and right. @param {Uint8Array} bytes @param {string} where */
  readerPush(bytes, where) {
    new Uint8Array(this.#memory.buffer).set(bytes, this.#chunk);
    const status = this.#c.slm2_web_reader_push(this.#reader, this.#chunk, bytes.length);
    if (status !== STATUS_NAMES.indexOf("NEED_MORE")) this.#check(status, where);
    return status === 0;
  }
}
