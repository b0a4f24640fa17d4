/**
 * store.js: the models that this origin keeps in the browser, as the page sees them. All work is done in store-worker.js;
 * a conversion's arithmetic in convert-worker.js. Both are started here, because workers never start workers.
 */
import { START_SECONDS, Slm2Error, aborted, mute } from "./error.js";
import { inTime } from "./wait.js";

const CONVERT_PAGES = 4096; /* 256 MiB of address space; only what a conversion touches is ever resident */

/**
 * A stored model, or an import that was not finished (sealed false; importing again goes on where it stopped).
 * @typedef {object} StoredModel
 * @property {string} id the model's identity: SHA-256 of its header
 * @property {string} name
 * @property {number} bytes
 * @property {number} have bytes that are stored
 * @property {boolean} sealed every chunk was verified when it was imported
 * @property {boolean} [already] it was stored before this import
 * @property {string} [license] @property {string} [source] @property {number} [parameters] @property {number} [maxPositions]
 * @property {string} [imported] ISO date
 *
 * @typedef {string | {url: string} | {file: File}} ModelRef identity of a stored model; an address of this origin; a picked file
 * @typedef {{phase: string, loaded: number, total: number, chunk?: number}} Progress bytes; phases: check (what an earlier
 *   import left), import, again (a damaged chunk is fetched once more), convert, verify, read
 * @typedef {{signal?: AbortSignal, onProgress?: (progress: Progress) => void}} TaskOptions
 */
export class Store {
  #base;
  #module;
  /** @type {Promise<Worker> | null} */ #worker = null;
  #next = 1;
  /** @type {Map<number, {done: (v: any) => void, fail: (e: any) => void, say?: (p: Progress) => void, convert?: Worker,
   *  broken?: Slm2Error}>} */
  #asked = new Map();

  /** @param {{base: string, module: () => Promise<WebAssembly.Module>}} options base: what relative model addresses are
   * relative to, normally the page's; module: any of the core's modules that this browser accepts */
  constructor({ base, module }) {
    this.#base = base;
    this.#module = module;
  }

  /** @returns {Promise<Worker>} */
  #start() {
    if (this.#worker !== null) return this.#worker;
    const started = this.#module().then((module) => this.#spawn(module));
    this.#worker = started;
    started.catch(() => {
      if (this.#worker === started) this.#worker = null; /* another call tries again */
    });
    return started;
  }

  /** @param {WebAssembly.Module} module @returns {Promise<Worker>} */
  #spawn(module) {
    const worker = new Worker(new URL("./store-worker.js", import.meta.url), { type: "module", name: "slm2 store" });
    const hello = new Promise((done, fail) => {
      const broken = (/** @type {string} */ why) => {
        const error = new Slm2Error("POISONED", `the store worker ended: ${why}`, {});
        for (const asked of this.#asked.values()) asked.fail(error);
        this.close();
        fail(error);
      };
      worker.onerror = (e) => broken(e.message || "its script was refused (are the isolation headers on it?)");
      worker.onmessage = ({ data }) => {
        if (data.started === true) done(worker);
        else if (data.started === false) broken(data.error.message);
        else this.#take(worker, module, data);
      };
      worker.postMessage({ start: { base: this.#base, module } });
    });
    return inTime(hello, START_SECONDS, () => {
      worker.terminate();
      return mute("slm2 store");
    });
  }

  /** @param {Worker} worker @param {WebAssembly.Module} module @param {any} data */
  #take(worker, module, data) {
    const asked = this.#asked.get(data.id);
    if (asked === undefined) return;
    if (data.say) return void asked.say?.(data.say);
    if (data.need === "convert") {
      const memory = new WebAssembly.Memory({ initial: CONVERT_PAGES, maximum: CONVERT_PAGES, shared: true });
      const { port1, port2 } = new MessageChannel();
      asked.convert = new Worker(new URL("./convert-worker.js", import.meta.url), { type: "module", name: "slm2 convert" });
      asked.convert.onerror = (e) => {
        asked.broken = new Slm2Error("POISONED", `the convert worker ended: ${e.message}`, {});
        worker.postMessage({ abort: data.id, dead: true });
      };
      asked.convert.postMessage({ module, memory, port: port1 }, [port1]);
      return worker.postMessage({ given: data.id, value: { memory, port: port2 } }, [port2]);
    }
    this.#asked.delete(data.id);
    asked.convert?.terminate();
    if (data.error) asked.fail(asked.broken ?? Slm2Error.from(data.error));
    else asked.done(data.value);
  }

  /** @param {string} op @param {object} args @param {TaskOptions} [options] @returns {Promise<any>} */
  async #ask(op, args, { signal, onProgress } = {}) {
    const stopped = () => (signal?.reason instanceof Slm2Error ? signal.reason : aborted(`${op} of a model`, signal));
    if (signal?.aborted) throw stopped();
    const worker = await this.#start(), id = this.#next++;
    const abort = () => worker.postMessage({ abort: id });
    signal?.addEventListener("abort", abort);
    try {
      return await new Promise((done, fail) => {
        this.#asked.set(id, { done, fail, say: onProgress });
        worker.postMessage({ id, op, args });
      });
    } catch (e) {
      throw signal?.aborted ? stopped() : e;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** What is stored, unfinished imports too. @returns {Promise<StoredModel[]>} */
  list() { return this.#ask("list", {}); }

  /** Imports a .slm2 or .gguf file, verifying every chunk. An import that was stopped goes on where it stopped.
   * persist (default true): asks the browser to keep the storage, which may ask the user.
   * @param {{url: string} | {file: File}} model @param {TaskOptions & {name?: string, persist?: boolean}} [options]
   * @returns {Promise<StoredModel>} */
  async import(model, { name, persist = true, ...options } = {}) {
    const out = await this.#ask("import", { model, options: { name } }, options);
    /* Never awaited: Firefox asks the user and may never answer. */
    if (persist && !out.already) void navigator.storage?.persist?.().catch(() => {});
    return out;
  }

  /** A stored model as a file, for other uses of its bytes. @param {string} id @returns {Promise<File>} */
  file(id) { return this.#ask("file", { id }); }

  /** Reads and hashes every byte again. A damaged model is removed, and the error says so.
   * @param {string} id @param {TaskOptions} [options] @returns {Promise<{id: string, verified: true, bytes: number}>} */
  verify(id, options) { return this.#ask("verify", { id }, options); }

  /** Frees its space. IN_USE while it is loaded. @param {string} id @returns {Promise<void>} */
  remove(id) { return this.#ask("remove", { id }); }

  /** What the browser says of its storage; quota is what the page may use, not what the disk has.
   * @returns {Promise<{quota?: number, usage?: number, persisted?: boolean}>} */
  estimate() { return this.#ask("estimate", {}); }

  /** @returns {Promise<{opfs: boolean, syncAccess: boolean, locks: boolean}>} */
  capabilities() { return this.#ask("capabilities", {}); }

  /** What a model is, from its header. @param {ModelRef} model @param {TaskOptions} [options] */
  describe(model, options) { return this.#ask("describe", { model }, options); }

  /** The memory it takes, before anything is loaded. @param {ModelRef} model
   * @param {import("./core.js").PlanRequest} request @param {TaskOptions} [options]
   * @returns {Promise<{terms: BigUint64Array, named: Record<string, number>, fits: boolean, why?: string, about: any}>} */
  plan(model, request, options) { return this.#ask("plan", { model, request }, options); }

  /** Puts the model's bytes at an address of an engine's memory.
   * @param {ModelRef} model @param {WebAssembly.Memory} memory @param {number} at @param {TaskOptions} [options]
   * @returns {Promise<{sealed: boolean, identity: string, bytes: number, name: string}>} */
  async read(model, memory, at, options) {
    /* A worker that was given a memory holds it until it happens to collect its garbage: this one ends with its only task. */
    const reader = new Store({ base: this.#base, module: this.#module });
    try {
      return await reader.#ask("read", { model, memory, at }, options);
    } finally {
      reader.close();
    }
  }

  /** Writes down, to the disk, that a model is being loaded; null: that it is not. Not kept waiting by what else runs.
   * @param {import("./lock.js").LoadMark | null} mark @returns {Promise<void>} */
  mark(mark) { return this.#ask("mark", { mark }); }

  /** Ends the workers; what was asked fails. Another call starts them again. */
  close() {
    const error = new Slm2Error("ABORTED", "the store was closed", {});
    for (const asked of this.#asked.values()) {
      asked.convert?.terminate();
      asked.fail(error);
    }
    this.#asked.clear();
    void this.#worker?.then((worker) => worker.terminate(), () => {});
    this.#worker = null;
  }
}
