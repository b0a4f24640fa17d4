/**
 * ring.js: the two rings of docs/PROTOCOL.md as the page sees them: commands are written here, events read. What is read is
 * copied out of the shared memory before anything looks at it, because the other side could still write there.
 */
import { Slm2Error } from "./error.js";
import { COMMANDS, CONTROL, CONTROL_BYTES, EVENT, EVENTS, FLAG_MORE, HEAD_BYTES, PAYLOAD_MAX, RING_BYTES, WORD }
  from "./protocol.js";

const OPS = Math.max(...Object.values(EVENT));

/** @typedef {{op: number, request: number, payload: Uint8Array<ArrayBuffer>}} Event */

/** Bytes of a record in its ring. @param {number} payload */
const recordBytes = (payload) => HEAD_BYTES + ((payload + 15) & ~15);

/** @param {WebAssembly.Memory} memory */
export const controlWords = (memory) => new Int32Array(memory.buffer, CONTROL, CONTROL_BYTES / 4);

/** @param {Int32Array} words @param {number} word */
export function ringBell(words, word) {
  Atomics.add(words, word, 1);
  Atomics.notify(words, word);
}

export class CommandWriter {
  #words;
  #bytes;
  #view;
  #ring;
  #sequence = 0;

  /** @param {WebAssembly.Memory} memory @param {() => void} ring wakes the engine */
  constructor(memory, ring) {
    this.#ring = ring;
    this.#words = controlWords(memory);
    this.#bytes = new Uint8Array(memory.buffer, COMMANDS, RING_BYTES);
    this.#view = new DataView(memory.buffer, COMMANDS, RING_BYTES);
  }

  /** Writes one record if it fits, and rings. @param {number} op @param {number} request @param {number} flags
   * @param {Uint8Array} payload at most PAYLOAD_MAX bytes @returns {boolean} */
  write(op, request, flags, payload) {
    const size = recordBytes(payload.length), head = Atomics.load(this.#words, WORD.COMMAND_HEAD) >>> 0;
    const used = (head - Atomics.load(this.#words, WORD.COMMAND_TAIL)) >>> 0, at = head % RING_BYTES;
    const skip = at + size > RING_BYTES ? RING_BYTES - at : 0;
    if (used + skip + size > RING_BYTES) return false;
    if (skip > 0) this.#record(at, skip, 0, 0, 0, new Uint8Array(skip - HEAD_BYTES));
    this.#record((at + skip) % RING_BYTES, size, op, request, flags, payload);
    Atomics.store(this.#words, WORD.COMMAND_HEAD, (head + skip + size) | 0);
    this.#ring();
    return true;
  }

  /** @param {number} at @param {number} size @param {number} op @param {number} request @param {number} flags
   * @param {Uint8Array} payload */
  #record(at, size, op, request, flags, payload) {
    this.#view.setUint32(at, payload.length, true);
    this.#view.setUint16(at + 4, op, true);
    this.#view.setUint16(at + 6, flags, true);
    this.#view.setUint32(at + 8, request, true);
    this.#view.setUint32(at + 12, this.#sequence, true);
    this.#sequence = (this.#sequence + 1) >>> 0;
    this.#bytes.set(payload, at + HEAD_BYTES);
    this.#bytes.fill(0, at + HEAD_BYTES + payload.length, at + size);
  }
}

/** A command's records. @param {Uint8Array} payload of any length @returns {{flags: number, part: Uint8Array}[]} */
export function parts(payload) {
  const out = [];
  for (let at = 0; at === 0 || at < payload.length; at += PAYLOAD_MAX)
    out.push({ flags: at + PAYLOAD_MAX < payload.length ? FLAG_MORE : 0, part: payload.subarray(at, at + PAYLOAD_MAX) });
  return out;
}

export class EventReader {
  #words;
  #bytes;
  #ring;
  #sequence = 0;

  /** @param {WebAssembly.Memory} memory @param {() => void} ring wakes the engine */
  constructor(memory, ring) {
    this.#ring = ring;
    this.#words = controlWords(memory);
    this.#bytes = new Uint8Array(memory.buffer, EVENTS, RING_BYTES);
  }

  /** Bytes waiting. */
  get used() {
    return (Atomics.load(this.#words, WORD.EVENT_HEAD) - Atomics.load(this.#words, WORD.EVENT_TAIL)) >>> 0;
  }

  /** Only then the engine may be waiting for room. */
  get nearlyFull() { return this.used > RING_BYTES / 2; }

  /** Copies up to `limit` events out. A record that cannot be is an error, and nothing is read ever after: see PROTOCOL.
   * @param {number} limit @returns {Event[]} */
  read(limit) {
    const out = /** @type {Event[]} */ ([]), wasFull = this.nearlyFull;
    const head = Atomics.load(this.#words, WORD.EVENT_HEAD) >>> 0;
    let tail = Atomics.load(this.#words, WORD.EVENT_TAIL) >>> 0;
    const used = (head - tail) >>> 0;
    if (used > RING_BYTES || used % HEAD_BYTES !== 0) throw broken(`head ${head} and tail ${tail}`);
    while (tail !== head && out.length < limit) {
      const { size, event } = this.#record(tail % RING_BYTES, (head - tail) >>> 0);
      if (event !== null) out.push(event);
      tail = (tail + size) >>> 0;
      Atomics.store(this.#words, WORD.EVENT_TAIL, tail | 0);
    }
    if (wasFull) this.#ring();
    return out;
  }

  /** @param {number} at @param {number} waiting */
  #record(at, waiting) {
    const view = new DataView(this.#bytes.slice(at, at + HEAD_BYTES).buffer);
    const n = view.getUint32(0, true), op = view.getUint16(4, true), size = recordBytes(n);
    const sequence = view.getUint32(12, true);
    if (sequence !== this.#sequence) throw broken(`event ${sequence} came where ${this.#sequence} is due`);
    this.#sequence = (this.#sequence + 1) >>> 0;
    if (op > OPS || view.getUint16(6, true) !== 0) throw broken(`event ${sequence} has op ${op}, flags ${view.getUint16(6, true)}`);
    if (n > PAYLOAD_MAX || size > waiting || at + size > RING_BYTES || (op === 0 && at + size !== RING_BYTES))
      throw broken(`event ${sequence} (op ${op}) of ${n} bytes at ${at}, ${waiting} waiting`);
    if (op === 0) return { size, event: null };
    const payload = this.#bytes.slice(at + HEAD_BYTES, at + HEAD_BYTES + n);
    return { size, event: { op, request: view.getUint32(8, true), payload: /** @type {Uint8Array<ArrayBuffer>} */ (payload) } };
  }
}

/** @param {string} why */
const broken = (why) => new Slm2Error("INTERNAL_INVARIANT", `the event ring is broken: ${why}`);
