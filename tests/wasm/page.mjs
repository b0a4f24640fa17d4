// A page for the browser engine in node, small enough to be read beside docs/PROTOCOL.md: plan, memory, workers, rings. It is
// a second reader of that page and shares no code with web/engine.
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, workerData } from "node:worker_threads";

const CONTROL = 1 << 20, RING = 524288, COMMANDS = CONTROL + 4096, EVENTS = COMMANDS + RING, PAYLOAD = 65536;
const STATE = 2, CANCEL = 3, HEARTBEAT = 4, QUIT = 5, DOORBELL = 6, EVENT_BELL = 7, COMMAND_HEAD = 8, COMMAND_TAIL = 9;
const EVENT_HEAD = 10, EVENT_TAIL = 11, INSIDE = 12, MAIL_STATE = 16, PLAN = 64;
export const OP = { OPEN: 1, GENERATE: 2, COUNT: 3, DIGEST: 4, RESET: 5, CLOSE: 6 };
const EVENT = ["", "READY", "BEGUN", "PROGRESS", "TOKEN", "DONE", "FAILED", "COUNTED", "DIGESTED", "RESET", "CLOSED"];
const TURN = { IDLE: 0, MORE: 1, FULL: 2, CLOSED: 3, POISONED: 4 };
const TERMS = ["version", "pages", "total", "file", "index", "kv", "scratch", "logits", "sampler", "tokens", "state", "session",
  "work", "stacks", "rings", "low", "at_stacks", "at_work", "at_file", "at_index", "at_session", "context", "profile", "kv_type",
  "tile", "threads", "input_max", "max_positions", "largest_context", "limit", "drafts", "draft"];
const text = new TextDecoder("utf-8", { fatal: true });
export const hex = (bytes) => Buffer.from(bytes).toString("hex");
const words = (memory) => new Int32Array(memory.buffer, CONTROL, 1024);
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const sharedMemory = (pages) => new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
const instance = (module, memory) => new WebAssembly.Instance(module, { env: { memory } }).exports;

export function errorOf(core, memory) {
  const at = core.slm2_web_error() >>> 0, bytes = Buffer.from(memory.buffer, at, 464);
  const string = (from, n) => bytes.toString("utf8", from, from + n).split("\0")[0];
  return { code: bytes.readUInt32LE(0), operation: string(4, 32), name: string(36, 160), message: string(196, 256),
    offset: Number(bytes.readBigUInt64LE(456)) };
}

// What a store does before there is an engine: from the first bytes of a file of n bytes.
export function plan(module, file, n, { context = 0, profile = 1, kv = 0, tile = 64, threads = 1, pages = 24000 } = {}) {
  const memory = sharedMemory(64), core = instance(module, memory), heap = core.slm2_web_heap() >>> 0;
  const at = heap + 1024, bytes = new Uint8Array(memory.buffer), size = BigInt(n);
  const check = (status) => {
    if (status !== 0) throw Object.assign(new Error(errorOf(core, memory).message), errorOf(core, memory));
  };
  bytes.set(file.subarray(0, 8), at);
  check(core.slm2_web_header_need(at, 8, size, heap));
  const need = Number(new DataView(memory.buffer).getBigUint64(heap, true));
  bytes.set(file.subarray(0, need), at);
  const status = core.slm2_web_plan(at, need, size, context, profile, kv, tile, threads, pages, heap);
  const raw = bytes.slice(heap, heap + 256), view = new DataView(raw.buffer);
  const terms = Object.fromEntries(TERMS.map((name, i) => [name, Number(view.getBigUint64(8 * i, true))]));
  return { status, raw, terms, error: status === 0 ? null : errorOf(core, memory) };
}

// --- a running engine ---------------------------------------------------------------

function string(view, at) {
  const n = view.readUInt32LE(at);
  return [text.decode(view.subarray(at + 4, at + 4 + n)), at + 4 + n];
}

const decoders = {
  READY(b) {
    const [license, at] = string(b, 112), [source, next] = string(b, at), [backend] = string(b, next);
    return { identity: hex(b.subarray(0, 32)), vocab: b.readUInt32LE(32), threads: b.readUInt32LE(76),
      verified: b.readUInt32LE(108), license, source, backend };
  },
  BEGUN: (b) => ({ prompt: b.readUInt32LE(0), reused: b.readUInt32LE(4) }),
  PROGRESS: (b) => ({ phase: b.readUInt32LE(0), done: b.readUInt32LE(4), total: b.readUInt32LE(8) }),
  TOKEN(b) {
    const n = b.readUInt32LE(20);
    if (b.length !== 24 + n) throw new Error(`a token event of ${b.length} bytes with ${n} of text`);
    return { id: b.readUInt32LE(0), position: b.readUInt32LE(4), logprob: b.readFloatLE(8), channel: b.readUInt32LE(12),
      finish: b.readUInt32LE(16), text: text.decode(b.subarray(24)) };
  },
  DONE: (b) => ({ finish: b.readUInt32LE(0), prompt: b.readUInt32LE(4), reused: b.readUInt32LE(8), completion: b.readUInt32LE(12),
    prefillMs: b.readDoubleLE(16), decodeMs: b.readDoubleLE(24), drafted: b.readUInt32LE(32), accepted: b.readUInt32LE(36),
    digest: hex(b.subarray(40, 72)) }),
  FAILED(b) {
    const [operation, at] = string(b, 16), [name, next] = string(b, at), [message] = string(b, next);
    return { status: b.readUInt32LE(0), operation, name, message };
  },
  COUNTED: (b) => ({ tokens: b.readUInt32LE(0), bytes: b.readUInt32LE(4) }),
  DIGESTED: (b) => ({ positions: b.readUInt32LE(0), digest: hex(b.subarray(4, 36)) }),
  RESET: () => ({}), CLOSED: () => ({}),
};

export class Page {
  #head = 0; #sequence = 0; #tail = 0; #due = 0; #ended = [];
  request = 0;

  // file: the model's bytes; threads - 1 compute workers are made.
  static async start(module, file, wishes = {}) {
    const page = new Page(), p = plan(module, file, file.length, wishes);
    if (p.status !== 0) throw new Error(p.error.message);
    page.plan = p.terms;
    page.memory = sharedMemory(p.terms.pages);
    page.words = words(page.memory);
    page.bytes = Buffer.from(page.memory.buffer);
    page.bytes.set(file, p.terms.at_file);
    page.bytes.set(p.raw, CONTROL + 4 * PLAN);
    page.words[0] = 0x324d4c53;
    page.words[1] = 1;
    page.#spawn("engine", module, 0);
    for (let i = 1; i < p.terms.threads; i++) page.#spawn("compute", module, i);
    while (Atomics.load(page.words, INSIDE) < p.terms.threads - 1) await sleep(1);
    return page;
  }
  #spawn(role, module, index) {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { role, module, memory: this.memory, index } });
    worker.on("message", (message) => { this.ended = message; });
    worker.on("error", (e) => { this.ended = { error: String(e) }; });
    this.#ended.push(new Promise((done) => worker.on("exit", done)));
  }
  get state() { return Atomics.load(this.words, STATE); }
  get heartbeat() { return Atomics.load(this.words, HEARTBEAT); }
  #bell() {
    Atomics.add(this.words, DOORBELL, 1);
    Atomics.notify(this.words, DOORBELL);
  }

  putRecord(op, request, flags, payload, sequence = this.#sequence++) {
    const size = 16 + ((payload.length + 15) & ~15);
    let at = this.#head % RING, skip = size > RING - at ? RING - at : 0;
    if (this.#head + skip + size - (Atomics.load(this.words, COMMAND_TAIL) >>> 0) > RING) {
      this.#sequence--;
      return false;
    }
    if (skip > 0) {
      this.#record(at, skip - 16, 0, 0, 0, sequence++);
      this.#sequence++;
      at = 0;
    }
    this.#record(at, payload.length, op, flags, request, sequence);
    this.bytes.set(payload, COMMANDS + at + 16);
    this.bytes.fill(0, COMMANDS + at + 16 + payload.length, COMMANDS + at + size);
    this.#head += skip + size;
    Atomics.store(this.words, COMMAND_HEAD, this.#head | 0);
    this.#bell();
    return true;
  }
  #record(at, n, op, flags, request, sequence) {
    this.bytes.writeUInt32LE(n, COMMANDS + at);
    this.bytes.writeUInt16LE(op, COMMANDS + at + 4);
    this.bytes.writeUInt16LE(flags, COMMANDS + at + 6);
    this.bytes.writeUInt32LE(request, COMMANDS + at + 8);
    this.bytes.writeUInt32LE(sequence >>> 0, COMMANDS + at + 12);
  }
  async send(op, payload = Buffer.alloc(0)) {
    const request = ++this.request;
    for (let at = 0; at === 0 || at < payload.length; at += PAYLOAD) {
      const more = at + PAYLOAD < payload.length ? 1 : 0;
      while (!this.putRecord(op, request, more, payload.subarray(at, at + PAYLOAD))) await sleep(1);
    }
    return request;
  }
  cancel(request = this.request) {
    Atomics.store(this.words, CANCEL, request);
    this.#bell();
  }

  // The next event that is there, or null.
  take() {
    while (this.#tail !== Atomics.load(this.words, EVENT_HEAD) >>> 0) {
      const at = EVENTS + this.#tail % RING, n = this.bytes.readUInt32LE(at), op = this.bytes.readUInt16LE(at + 4);
      const request = this.bytes.readUInt32LE(at + 8), sequence = this.bytes.readUInt32LE(at + 12), size = 16 + ((n + 15) & ~15);
      if (sequence !== this.#due++ || op > 10 || size > RING - this.#tail % RING || n > PAYLOAD)
        throw new Error(`event ${sequence}, op ${op}, ${n} bytes, where ${this.#due - 1} is due`);
      const payload = Buffer.from(this.bytes.subarray(at + 16, at + 16 + n));
      this.#tail = (this.#tail + size) >>> 0;
      Atomics.store(this.words, EVENT_TAIL, this.#tail | 0);
      this.#bell();
      if (op !== 0) return { type: EVENT[op], request, ...decoders[EVENT[op]](payload) };
    }
    return null;
  }
  // Waits for the next event; null when the engine has ended.
  async next() {
    for (;;) {
      const bell = Atomics.load(this.words, EVENT_BELL), event = this.take();
      if (event !== null) return event;
      if (this.ended) return this.take();
      const wait = Atomics.waitAsync(this.words, EVENT_BELL, bell, 50);
      if (wait.async) await wait.value;
    }
  }
  // All events of a request up to its last one. each: sees them as they come.
  async finish(each = () => {}) {
    const events = [];
    for (let event; (event = await this.next()) !== null;) {
      if (event.request !== this.request) throw new Error(`an event of request ${event.request}, not of ${this.request}`);
      await each(event);
      if (event.type !== "PROGRESS") events.push(event);
      if (["READY", "DONE", "FAILED", "COUNTED", "DIGESTED", "RESET", "CLOSED"].includes(event.type)) break;
    }
    return events;
  }
  async ask(op, payload, each) {
    await this.send(op, payload);
    return this.finish(each);
  }
  open(verify = 1) { return this.ask(OP.OPEN, Buffer.from([verify, 0, 0, 0, 0, 0, 0, 0])); }
  generate(question, each) { return this.ask(OP.GENERATE, generatePayload(question), each); }
  async close() {
    Atomics.store(this.words, QUIT, 1);
    this.#bell();
    await Promise.all(this.#ended);
  }
}

export function generatePayload({ kind = 0, flags = 0, temperature = 0, topK = 0, topP = 1, minP = 0, repeatPenalty = 1,
  maxTokens = 100, seed = 0n, speculate = 0, stop = [], text: body = "" }) {
  const head = Buffer.alloc(96), stops = stop.map((s) => {
    const bytes = Buffer.from(s), n = Buffer.alloc(4);
    n.writeUInt32LE(bytes.length);
    return Buffer.concat([n, bytes]);
  });
  const stopBytes = Buffer.concat(stops);
  [[0, kind], [4, flags], [12, topK], [28, maxTokens], [40, speculate], [44, stop.length], [48, stopBytes.length]]
    .forEach(([at, x]) => head.writeUInt32LE(x >>> 0, at));
  [[8, temperature], [16, topP], [20, minP], [24, repeatPenalty]].forEach(([at, x]) => head.writeFloatLE(x, at));
  head.writeBigUInt64LE(BigInt(seed), 32);
  return Buffer.concat([head, stopBytes, Buffer.from(body)]);
}

// --- a conversion -----------------------------------------------------------------------

// read(offset, n): bytes of the GGUF; write(offset, bytes); both may throw. stop(question): true cancels.
export async function convert(module, ggufBytes, { read, write, stop = () => false, pages = 1024 }) {
  const memory = sharedMemory(pages), w = words(memory), bytes = Buffer.from(memory.buffer);
  const data = { role: "convert", module, memory, index: ggufBytes };
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: data });
  let result = null, phases = 0;
  const u64 = (word) => (w[word] >>> 0) + (w[word + 1] >>> 0) * 2 ** 32;
  worker.on("message", (message) => { result = message; }).on("error", (e) => { result = { error: String(e) }; });
  for (let question = 0; result === null;) {
    if (Atomics.load(w, MAIL_STATE) !== 1) {
      await sleep(0);
      continue;
    }
    if (stop(question++)) Atomics.store(w, CANCEL, 1);
    const [op, at, n] = [w[17], w[20] >>> 0, w[21] >>> 0];
    let answer = 2;
    try {
      if (op === 1) bytes.set(read(u64(18), n), at);
      else if (op === 2) write(u64(18), Buffer.from(bytes.subarray(at, at + n)));
      else phases |= 1 << w[26];
    } catch {
      answer = 3;
    }
    Atomics.store(w, MAIL_STATE, answer);
    Atomics.notify(w, MAIL_STATE);
  }
  return { ...result, phases };
}

// --- in the workers ------------------------------------------------------------------------

function engine(core, memory) {
  const w = words(memory), status = core.slm2_web_start(), trial = core.slm2_web_trial(3);
  if (status !== 0) return { started: false, ...errorOf(core, memory) };
  for (;;) {
    const bell = Atomics.load(w, DOORBELL), turn = core.slm2_web_step(performance.now());
    if (turn === TURN.POISONED) return { turn, again: core.slm2_web_step(0), ...errorOf(core, memory) };
    if (turn === TURN.CLOSED || Atomics.load(w, QUIT) !== 0) return { turn, trial };
    if (turn !== TURN.MORE) Atomics.wait(w, DOORBELL, bell, 250);
  }
}

if (!isMainThread && workerData?.role) {
  const { parentPort } = await import("node:worker_threads");
  const { role, module, memory, index } = workerData, core = instance(module, memory);
  if (role === "engine") parentPort.postMessage(engine(core, memory));
  else if (role === "convert") {
    const status = core.slm2_web_convert(BigInt(index)), at = core.slm2_web_result() >>> 0;
    const result = Buffer.from(new Uint8Array(memory.buffer).slice(at, at + 52));
    const report = { status, identity: hex(result.subarray(0, 32)), bytes: Number(result.readBigUInt64LE(32)),
      zeroBlocks: Number(result.readBigUInt64LE(40)), unknown: result.readUInt32LE(48) };
    parentPort.postMessage(status === 0 ? report : { status, ...errorOf(core, memory) });
  } else {
    core.__stack_pointer.value = core.slm2_web_stack(index);
    core.slm2_web_thread(index);
  }
}
