/* The engine's end of the rings, by docs/PROTOCOL.md: reads commands, writes events, in JavaScript. For tests alone. */
import { COMMANDS, CONTROL, EVENTS, RING_BYTES, STACKS, WORD } from "../../web/engine/protocol.js";

export const newMemory = () => new WebAssembly.Memory({ initial: Math.ceil(STACKS / 65536), maximum: 64, shared: true });

export class FakeEngine {
  constructor(memory) {
    this.words = new Int32Array(memory.buffer, CONTROL, 1024);
    this.commands = new DataView(memory.buffer, COMMANDS, RING_BYTES);
    this.events = new DataView(memory.buffer, EVENTS, RING_BYTES);
    this.sequence = 0;
    this.due = 0;
  }
  /** Starts both rings at this place, as after many bytes. */
  startAt(bytes) {
    for (const word of [WORD.COMMAND_HEAD, WORD.COMMAND_TAIL, WORD.EVENT_HEAD, WORD.EVENT_TAIL]) this.words[word] = bytes | 0;
  }
  /** The next complete record, or null. */
  read() {
    for (;;) {
      const head = this.words[WORD.COMMAND_HEAD] >>> 0, tail = this.words[WORD.COMMAND_TAIL] >>> 0, at = tail % RING_BYTES;
      if (head === tail) return null;
      const n = this.commands.getUint32(at, true), op = this.commands.getUint16(at + 4, true);
      const flags = this.commands.getUint16(at + 6, true), request = this.commands.getUint32(at + 8, true);
      if (this.commands.getUint32(at + 12, true) !== this.due++) throw new Error("sequence");
      const size = 16 + Math.ceil(n / 16) * 16;
      if (at + size > RING_BYTES || size > ((head - tail) >>> 0)) throw new Error("record beyond its ring");
      const from = this.commands.byteOffset + at + 16, payload = new Uint8Array(this.commands.buffer).slice(from, from + n);
      for (let i = from + n; i < from - 16 + size; i++) if (new Uint8Array(this.commands.buffer)[i] !== 0) throw new Error("padding");
      this.words[WORD.COMMAND_TAIL] = (tail + size) | 0;
      if (op !== 0) return { op, flags, request, payload };
      if (at + size !== RING_BYTES) throw new Error("filler that does not fill");
    }
  }
  /** Writes an event if it fits. change: what to break in its head before it is seen. */
  write(op, request, payload = new Uint8Array(0), change = () => {}) {
    const head = this.words[WORD.EVENT_HEAD] >>> 0, used = (head - this.words[WORD.EVENT_TAIL]) >>> 0, at = head % RING_BYTES;
    const size = 16 + Math.ceil(payload.length / 16) * 16, skip = at + size > RING_BYTES ? RING_BYTES - at : 0;
    if (used + skip + size > RING_BYTES) return false;
    if (skip > 0) this.put(at, 0, 0, new Uint8Array(skip - 16));
    this.put((at + skip) % RING_BYTES, op, request, payload);
    change(this.events, (at + skip) % RING_BYTES);
    this.words[WORD.EVENT_HEAD] = (head + skip + size) | 0;
    return true;
  }
  put(at, op, request, payload) {
    this.events.setUint32(at, payload.length, true);
    this.events.setUint16(at + 4, op, true);
    this.events.setUint16(at + 6, 0, true);
    this.events.setUint32(at + 8, request, true);
    this.events.setUint32(at + 12, this.sequence++, true);
    new Uint8Array(this.events.buffer).set(payload, this.events.byteOffset + at + 16);
  }
}
