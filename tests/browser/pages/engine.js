/* The page of the tests of the engine. globalThis.run[name](...args) does one thing with the package as a page would use it
 * and gives what JSON can carry; an error is thrown with its code.
 */
import { createEngine } from "/engine/index.js";

/** @type {import("/engine/index.js").Engine} */ let engine;
const state = { progress: [], result: null, longTasks: 0 };
globalThis.state = state;

if (globalThis.PerformanceObserver?.supportedEntryTypes.includes("longtask")) {
  new PerformanceObserver((list) => { state.longTasks += list.getEntries().length; }).observe({ entryTypes: ["longtask"] });
}

const plain = (value) => JSON.parse(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v)));
const outcome = (error) => ({ error: { name: error.name, code: error.code, message: error.message, details: error.details,
  tokens: error.tokens } });

/** Does something and gives {value} or {error}, with the milliseconds that it took. */
async function attempt(work) {
  const start = performance.now();
  const end = (result) => plain({ ...result, ms: performance.now() - start });
  try {
    return end({ value: await work() });
  } catch (error) {
    return end(outcome(error));
  }
}
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

globalThis.run = {
  async create(options = {}) {
    await engine?.close();
    engine = await createEngine({ wasm: "/wasm/", ...options });
    return plain({ ...engine.capabilities, lastLoadFailed: engine.lastLoadFailed, state: engine.state });
  },
  state: () => ({ state: engine.state, waiting: engine.waiting }),
  capabilities: () => plain(engine.capabilities),
  async load(model, options = {}) {
    state.progress = [];
    return plain(await engine.load(model, { ...options, onProgress: (p) => state.progress.push(p) }));
  },
  unload: () => engine.unload(),
  tryUnload: () => attempt(() => engine.unload()),
  close: () => engine.close(),
  digest: (ids, chunk) => engine.digest(ids, chunk),
  async answer(params) { return plain(await engine.complete(params)); },
  count: (params) => engine.count(params),
  tryLoad: (model, options) => attempt(() => engine.load(model, options)),
  tryAnswer: (params) => attempt(() => engine.complete(params)),

  /** An answer that is stopped. how: "stop" (engine.stop), "signal", "leave" (the loop is left), "twice" (signal and stop).
   * when: {ms} after its start or {tokens} that have come. Gives what came and how long the stop took. */
  async stopped(params, how, when) {
    const abort = new AbortController();
    const answer = engine.generate(params, { signal: how === "leave" || how === "stop" ? undefined : abort.signal });
    const out = { ids: [], finish: "", code: "", ms: 0 };
    let asked = 0;
    let stopping = null;
    const stop = () => {
      if (asked) return;
      asked = performance.now();
      if (how === "signal" || how === "twice") abort.abort();
      if (how === "stop" || how === "twice") stopping = engine.stop();
    };
    const timer = when.ms !== undefined && how !== "leave" ? setTimeout(stop, when.ms) : undefined;
    const until = performance.now() + (when.ms ?? Infinity);
    try {
      for await (const event of answer) {
        if (event.type === "token" && event.id !== null) out.ids.push(event.id);
        if (event.type === "done") out.finish = event.finish;
        if (how === "leave" ? performance.now() >= until || out.ids.length >= when.tokens : out.ids.length >= when.tokens) {
          if (how !== "leave") stop();
          else {
            asked = performance.now();
            break;
          }
        }
      }
    } catch (error) {
      out.code = error.code ?? String(error);
    }
    clearTimeout(timer); /* or it would stop the next one */
    await stopping;
    out.ms = asked ? performance.now() - asked : 0;
    return out;
  },

  /* The store. */
  import: (url, options = {}) => attempt(async () => {
    state.progress = [];
    return engine.store.import({ url }, { ...options, onProgress: (p) => state.progress.push(p) });
  }),
  /** The same with a file that was picked: fetched here, as a test has no picker. */
  importFile: (url, name) => attempt(async () => {
    const file = new File([await (await fetch(url)).blob()], name);
    return engine.store.import({ file }, { onProgress: (p) => state.progress.push(p) });
  }),
  /** Starts it and does not wait: state.result has how it ended. */
  startImport(url) {
    state.result = null;
    globalThis.run.import(url).then((result) => { state.result = result; });
  },
  async abortImport(url, ms) {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), ms);
    return attempt(() => engine.store.import({ url }, { signal: abort.signal }));
  },
  list: () => engine.store.list(),
  verify: (id) => attempt(() => engine.store.verify(id)),
  remove: (id) => attempt(() => engine.store.remove(id)),
  estimate: () => engine.store.estimate(),

  /** Files in OPFS under slm2/models, with their sizes. */
  async files() {
    const out = {};
    const folder = await (await (await navigator.storage.getDirectory()).getDirectoryHandle("slm2")).getDirectoryHandle("models");
    for await (const [name, handle] of folder.entries()) out[name] = (await handle.getFile()).size;
    return out;
  },
  /** Changes one bit of a stored file, as a bad disk would. */
  async damage(name, at) {
    const folder = await (await (await navigator.storage.getDirectory()).getDirectoryHandle("slm2")).getDirectoryHandle("models");
    const handle = await folder.getFileHandle(name);
    const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
    bytes[at] ^= 1;
    const writer = await handle.createWritable();
    await writer.write(bytes);
    await writer.close();
  },
  pause: sleep,
};
