/* The page of the laboratory: globalThis.run[name](...args) does one thing with the package as a page would, and gives its
 * times in milliseconds. Times of an answer are the worker's own clock; stops are seen by looking at the control block.
 */
import { createEngine } from "/engine/index.js";
import { PAGE, STATE, WORD } from "/engine/protocol.js";
import { controlWords, ringBell } from "/engine/ring.js";

/** @type {import("/engine/index.js").Engine} */ let engine;

/* The engine's memory, known without keeping it. */
/** @type {WeakRef<WebAssembly.Memory>} */ let latest;
const Memory = WebAssembly.Memory;
WebAssembly.Memory = class extends Memory {
  constructor(wish) {
    super(wish);
    latest = new WeakRef(this);
  }
};
const words = () => controlWords(latest.deref());

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
async function timed(work) {
  const start = performance.now();
  const value = await work();
  return { ms: performance.now() - start, value };
}

/** An answer, and the time to its first token as the page sees it. */
async function answer(params, signal) {
  const start = performance.now();
  let first = 0;
  let summary = null;
  for await (const event of engine.generate({ temperature: 0, ignoreEnd: true, speculate: 0, seed: 1, ...params }, { signal })) {
    if (event.type === "token") first ||= performance.now() - start;
    if (event.type === "done") summary = event;
  }
  const { promptTokens, completionTokens, prefillMs, decodeMs, finish, digest } = summary;
  return { promptTokens, completionTokens, prefillMs, decodeMs, finish, digest, firstMs: first, ms: performance.now() - start };
}

/** Waits for the engine's own word of what it does, a second at most. */
async function state(name) {
  for (const start = performance.now(); engine.state !== name && performance.now() - start < 1000;) await sleep(0);
}

/** Waits for the state to leave BUSY, and gives when it has. At most 100 ms, as the page can do nothing else meanwhile. */
function spin(until) {
  const control = words();
  for (const start = performance.now(); performance.now() - start < until;)
    if (Atomics.load(control, WORD.STATE) !== STATE.BUSY) break;
  return performance.now();
}

/* What keeps the page's own thread from its frames: tasks of more than 50 ms, where the browser tells of them, and the longest
 * time between two frames. Frames are asked for only while somebody watches. */
const watch = { on: false, last: 0, gap: 0, /** @type {number[]} */ tasks: [] };
const keep = (entries) => watch.tasks.push(...entries.map((entry) => entry.duration));
const observer = PerformanceObserver.supportedEntryTypes.includes("longtask")
  ? new PerformanceObserver((list) => keep(list.getEntries())) : null;
observer?.observe({ type: "longtask" });
function look() {
  const now = performance.now();
  watch.gap = Math.max(watch.gap, now - watch.last);
  watch.last = now;
  if (watch.on) requestAnimationFrame(look);
}

globalThis.run = {
  /** Begins to watch. */
  watch() {
    observer?.takeRecords();
    Object.assign(watch, { on: true, last: performance.now(), gap: 0, tasks: [] });
    requestAnimationFrame(look);
  },
  /** What was seen since. tasks: milliseconds of each; null: this browser does not tell. */
  async watched() {
    const { gap } = watch;
    watch.on = false;
    await sleep(100);
    keep(observer?.takeRecords() ?? []);
    return { gap, tasks: observer ? watch.tasks : null };
  },
  /** Of a module that is not compiled yet: a section that says nothing makes its bytes new each time. */
  async compile(kind, times) {
    const bytes = new Uint8Array(await (await fetch(`/wasm/slm2-${kind}.wasm`)).arrayBuffer());
    const out = [];
    for (let i = 0; i < times; i++) {
      const name = new TextEncoder().encode(`lab ${crypto.randomUUID()}`);
      const other = new Uint8Array([...bytes, 0, name.length + 1, name.length, ...name]);
      out.push((await timed(() => WebAssembly.compile(other))).ms);
    }
    return { bytes: bytes.length, ms: out };
  },
  /** What an earlier engine chose. */
  forget: () => ["slm2:module", "slm2:threads"].forEach((key) => localStorage.removeItem(key)),
  async create(options) {
    const { ms } = await timed(async () => { engine = await createEngine({ wasm: "/wasm/", ...options }); });
    return { ms, kinds: engine.capabilities };
  },
  async import(url) {
    const { ms, value } = await timed(() => engine.store.import({ url }, { persist: false }));
    return { ms, id: value.id, bytes: value.bytes, sealed: value.sealed };
  },
  async verify(id) {
    const { ms, value } = await timed(() => engine.store.verify(id));
    return { ms, bytes: value.bytes };
  },
  /** To READY. */
  async load(id, shape) {
    const { ms, value } = await timed(() => engine.load(id, shape));
    return { ms, plan: value.plan, sealed: value.sealed, vocab: value.vocab, chosen: engine.capabilities.chosen,
      backend: value.backend };
  },
  /** The same model again and again, each time with another memory. */
  async again(id, shape, times) {
    const out = [];
    for (let i = 0; i < times; i++) out.push((await timed(() => engine.load(id, shape))).ms);
    return out;
  },
  async count(text) { return (await engine.count({ text })).tokens; },
  /** On an empty timeline. */
  async speed(ids, tokens) {
    await engine.reset();
    return answer({ ids, maxTokens: tokens });
  },
  prompt: (params) => answer(params),
  /** What each of many steps takes, of a module that has run nothing yet. firstMs: to the first token. */
  async settle(id, steps) {
    const out = [];
    let firstMs = 0;
    while (out.length < steps) {
      await engine.reset();
      const one = await answer({ ids: [id], maxTokens: 2 });
      firstMs ||= one.firstMs;
      out.push(one.prefillMs, one.decodeMs);
    }
    return { firstMs, steps: out };
  },
  /** As `slm2 run --ids` answers. */
  async steps(ids, maxTokens) {
    await engine.reset();
    return answer({ ids, maxTokens, ignoreEnd: false });
  },

  /** Stops answers at random moments, half of them in the prompt. left: from the store of the cancel word to the moment when
   * the engine's state says that it has left its kernels; done: to the moment when the page has the answer's last event. */
  async stops(n, ids, seed) {
    const out = [];
    let x = seed;
    const random = () => (x = (x * 1103515245 + 12345) % 2147483648) / 2147483648;
    await engine.reset();
    for (let i = 0; i < n; i++) {
      const short = i % 2 === 1;
      const running = answer({ ids: short ? ids.slice(0, 4) : ids.map((id) => id ^ (i & 7)), maxTokens: 200 });
      await state("busy");
      await sleep((short ? 60 : 10) + 80 * random());
      if (Atomics.load(words(), WORD.STATE) !== STATE.BUSY) {
        await running; /* it had ended by itself */
        continue;
      }
      const start = performance.now();
      const stopped = engine.stop();
      const left = spin(100) - start;
      await stopped;
      const done = performance.now() - start;
      const { finish, completionTokens } = await running;
      if (finish !== "cancelled") throw new Error(`stop ${i}: the answer ended with ${finish}`);
      out.push({ left, done, phase: completionTokens > 0 ? "decode" : "prefill" });
    }
    return out;
  },

  /** Breaks the engine while it answers, and starts it again. The engine writes its own head again with each event, so the bell
   * makes the page look at once. */
  async recover(ids) {
    const poisoned = new Promise((done) => engine.addEventListener("poisoned", () => done(performance.now()), { once: true }));
    const ended = answer({ ids, maxTokens: 200 }).then(({ finish }) => finish, ({ code }) => code);
    await sleep(150);
    const start = performance.now();
    let how = null;
    while (how === null) {
      words()[WORD.EVENT_HEAD] = 0x03030303;
      ringBell(words(), WORD.EVENT_BELL);
      how = await Promise.race([ended, sleep(1).then(() => null)]);
    }
    if (how !== "POISONED") throw new Error(`the broken answer ended with ${how}`);
    const seen = await poisoned;
    await engine.restart();
    return { noticed: seen - start, ready: performance.now() - seen };
  },

  /** Whether the memory has the size that it was made with. */
  constant() {
    const pages = engine.model.plan.pages, bytes = latest.deref().buffer.byteLength;
    return { same: bytes === pages * PAGE, heap: performance.memory?.usedJSHeapSize ?? null };
  },
  close: () => engine.close(),
};
