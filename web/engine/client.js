/**
 * client.js: the engine as a page sees it: which model is loaded, what runs, what waits. All arithmetic is done by workers;
 * nothing here blocks. Requests run one after the other in the order in which they were started.
 */
import { Slm2Error, aborted } from "./error.js";
import { admitted, lacks, probeFeatures } from "./features.js";
import { forgetFailedLoad, holdModel, lastFailedLoad, leaveLoad, markLoad } from "./lock.js";
import { Machine } from "./machine.js";
import { chooseModule, keepModule, knownModule, rememberedThreads } from "./measure.js";
import { countCommand, decode, digestCommand, generateCommand, integer, refuseUnknown, words } from "./messages.js";
import { Modules } from "./modules.js";
import { Completions, listModels } from "./openai.js";
import { COMMAND, KV_TYPES, MAX_PAGES, PROFILES, THREADS_MAX } from "./protocol.js";
import { giveUp, reclaimed } from "./reclaim.js";
import { Answer, Request } from "./request.js";
import { Store } from "./store.js";

const MAX_PAGES_DEFAULT = 24000; /* 1.5 GB */
const TILE = 128;
const MANY_CORES = 8; /* more threads than this gain nothing where memory is the bound */

/** @typedef {import("./features.js").Capabilities} Features
 *  @typedef {import("./modules.js").Kind} Kind
 *  @typedef {import("./store.js").ModelRef} ModelRef
 *  @typedef {import("./messages.js").GenerateParams} GenerateParams
 *  @typedef {{kind: Kind, threads: number, sha256: string, bytes: number, trials: {kind: Kind, ms: number}[],
 *    gains: {threads: number, gain: number}[]}} Chosen trials: of the modules; gains: work done beside
 *    one thread's; neither of what an earlier visit measured
 *  @typedef {{modules: Modules, kinds: Kind[], threads: "auto" | number, maxPages: number, base: string, features: Features,
 *    missing: import("./features.js").Lack[], lastLoadFailed: import("./lock.js").LoadMark | null}} Setup
 *  @typedef {Features & {chosen: Chosen | null, why: () => import("./features.js").Lack[]}} Capabilities
 *  @typedef {"empty" | "loading" | "ready" | "busy" | "poisoned" | "closed"} State
 *  @typedef {{context?: number, kv?: "f16" | "f32", profile?: "q8" | "f32"}} Shape context: default the model's own, at most
 *    4,096, less when only that fits. kv f16 (default) and f32, profile q8 (default) and f32 are different computations
 *  @typedef {{phase: "plan" | "read" | "verify" | "open", loaded: number, total: number}} LoadProgress
 *  @typedef {Shape & {takeOver?: boolean, signal?: AbortSignal, onProgress?: (p: LoadProgress) => void}} LoadOptions
 *  @typedef {import("./messages.js").Model & {id: string | null, name: string, bytes: number, sealed: boolean,
 *    plan: Record<string, number>}} LoadedModel */

/** An event with a detail. CustomEvent, which not every host of ES modules has. */
export class EngineEvent extends Event {
  /** @param {string} type @param {any} detail */
  constructor(type, detail) {
    super(type);
    this.detail = detail;
  }
}

/**
 * Events: "state" {state, previous}; "poisoned" {error}: the engine broke, restart() makes a new one; "taken" {error}:
 * another tab took the model over. Conversations are the page's and stay as they are.
 */
export class Engine extends EventTarget {
  /** @type {Setup} */ #setup;
  /** @type {import("./modules.js").CompiledModule | null} */ #compiled = null;
  /** @type {Machine | null} */ #machine = null;
  /** @type {Request[]} */ #queue = [];
  /** @type {Request | null} */ #current = null;
  #numbers = 0;
  /** @type {State} */ #state = "empty";
  /** @type {LoadedModel | null} */ #model = null;
  /** The model that no other tab may load. @type {{id: string, release: () => void} | null} */ #held = null;
  /** @type {{abort: AbortController, ended: Promise<unknown>} | null} */ #loading = null;
  /** @type {{model: ModelRef, options: LoadOptions} | null} */ #last = null;
  /** Of the load under way. @type {import("./lock.js").LoadMark | null} */ #mark = null;
  #onPageHide = () => {
    if (this.#mark !== null) leaveLoad(this.#mark);
    this.#loading?.abort.abort(new Slm2Error("ABORTED", "the page was left"));
    this.#drop(new Slm2Error("ABORTED", "the page was left"), "empty");
    this.store.close();
  };

  /** @param {Setup} setup made by createEngine */
  constructor(setup) {
    super();
    this.#setup = setup;
    const { modules, kinds, base, lastLoadFailed, features, missing } = setup;
    /** What the browser can do, what was chosen, and what is missing. @type {Capabilities} */
    this.capabilities = { ...features, chosen: null, why: () => missing };
    /** Models kept in this browser. */
    this.store = new Store({ base, module: async () => (await modules.get(kinds[0])).module });
    /** A load in this browser that never ended, as when it took too much memory; null: none. Nothing loads by itself. */
    this.lastLoadFailed = lastLoadFailed;
    /** The OpenAI-shaped face of the same engine. */ this.chat = { completions: new Completions(this) };
    this.models = { list: () => listModels(this) };
    globalThis.addEventListener?.("pagehide", this.#onPageHide);
  }

  get state() { return this.#state; }
  /** What is loaded; null: nothing. */
  get model() { return this.#model; }
  /** Requests that wait, without the one that runs. */
  get waiting() { return this.#queue.length; }

  /** @param {State} state */
  #set(state) {
    const previous = this.#state;
    if (state === previous) return;
    this.#state = state;
    this.dispatchEvent(new EngineEvent("state", { state, previous }));
  }

  /* --- loading -------------------------------------------------------------------- */

  /** @param {Shape & {maxPages?: number}} shape */
  #planRequest({ context = 0, kv = "f16", profile = "q8", maxPages = this.#setup.maxPages }) {
    if (!KV_TYPES.includes(kv)) throw new Slm2Error("ARGUMENT", `kv: "${kv}" is none of ${KV_TYPES.join(", ")}`);
    if (!PROFILES.includes(profile)) throw new Slm2Error("ARGUMENT", `profile: "${profile}" is none of ${PROFILES.join(", ")}`);
    return { context: integer(context, "context", 0xffffffff), profile: PROFILES.indexOf(profile), kv: KV_TYPES.indexOf(kv),
      tile: TILE, threads: this.capabilities.chosen?.threads ?? 1, pages: integer(maxPages, "maxPages", MAX_PAGES, 1) };
  }

  /** Which module and how many threads to use, as an earlier visit measured them, or measured the first time that a model is at
   * hand: the trial runs in the working memory that a plan has.
   * @param {ModelRef} model @param {AbortSignal} [signal] @returns {Promise<Chosen>} */
  async #choose(model, signal) {
    const { modules, kinds, threads } = this.#setup, features = this.capabilities;
    if (features.chosen !== null) return features.chosen;
    /* The plan is made with the first of them, whatever is chosen. */
    const [hashes] = await Promise.all([modules.hashes(kinds, signal), modules.get(kinds[0], signal)]);
    const known = knownModule(kinds, hashes);
    const all = await Promise.all((known === null ? kinds : [known]).map((kind) => modules.get(kind, signal)));
    const { named } = await this.store.plan(model, this.#planRequest({}), { signal });
    const { compiled, trials } = await chooseModule(all, named);
    keepModule(compiled, all);
    const most = Math.min(features.cores, MANY_CORES);
    const { count, gains } = threads === "auto" ? await rememberedThreads(compiled, features.cores, most, named)
      : { count: threads, gains: [] };
    signal?.throwIfAborted();
    this.#compiled = compiled;
    features.chosen ??= { kind: compiled.kind, threads: count, sha256: compiled.sha256, bytes: compiled.bytes, trials, gains };
    return features.chosen;
  }

  /** The memory that a model takes, term by term in bytes, before anything is loaded.
   * @param {ModelRef} model @param {Shape & {maxPages?: number, signal?: AbortSignal}} [options]
   * @returns {Promise<Record<string, number> & {fits: boolean, why?: string}>} */
  async plan(model, { signal, ...shape } = {}) {
    await this.#choose(model, signal);
    const { named, fits, why } = await this.store.plan(model, this.#planRequest(shape), { signal });
    return /** @type {any} */ ({ ...named, fits, ...(why === undefined ? {} : { why }) });
  }

  /** Contexts that fit, for either type of cache, largest first: what to offer when one does not fit.
   * @param {ModelRef} model @param {{profile?: "q8" | "f32", maxPages?: number, signal?: AbortSignal}} [options]
   * @returns {Promise<{kv: "f16" | "f32", context: number, pages: number, bytes: number}[]>} */
  async offers(model, options = {}) {
    const out = [];
    for (const kv of /** @type {const} */ (["f16", "f32"])) {
      const { largestContext } = await this.plan(model, { ...options, kv });
      const contexts = [largestContext, 16384, 8192, 4096, 2048, 1024, 512].filter((n) => n > 0 && n <= largestContext);
      for (const context of new Set(contexts)) {
        const { pages, total, fits } = await this.plan(model, { ...options, kv, context });
        if (fits) out.push({ kv, context, pages, bytes: total });
      }
    }
    return out;
  }

  /** Loads a model, after unloading what was loaded. Nothing is READY unless every byte is the model's.
   * @param {ModelRef} model the identity of a stored one, {url} of this origin, or {file}; the last two stay in memory only
   * @param {LoadOptions} [options] @returns {Promise<LoadedModel>} */
  async load(model, options = {}) {
    const { signal, onProgress, takeOver = false, ...shape } = options;
    refuseUnknown(shape, new Set(["context", "kv", "profile"]));
    if (this.#state === "closed") throw new Slm2Error("CLOSED", "the engine was closed");
    if (this.#loading !== null) throw new Slm2Error("BUSY", "a model is being loaded: await that, or unload() first");
    const abort = new AbortController(), onAbort = () => abort.abort(aborted("the load", signal));
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted) onAbort();
    const say = (/** @type {LoadProgress} */ p) => {
      try {
        onProgress?.(p);
      } catch (e) {
        reportError(e); /* the page's own, and no reason to stop */
      }
    };
    const ended = this.#load(model, shape, takeOver, say, abort);
    this.#loading = { abort, ended: ended.catch(() => {}) };
    try {
      await ended;
    } catch (e) {
      const error = /** @type {Slm2Error} */ (abort.signal.aborted ? abort.signal.reason : e);
      if (this.#state === "loading") {
        this.#teardown(error);
        this.#set("empty");
      }
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      this.#loading = null;
    }
    this.#last = { model, options: { ...shape } };
    this.#set("ready");
    return /** @type {LoadedModel} */ (/** @type {unknown} */ (this.#model));
  }

  /** @param {ModelRef} model @param {Shape} shape @param {boolean} takeOver @param {(p: LoadProgress) => void} say
   * @param {AbortController} abort */
  async #load(model, shape, takeOver, say, abort) {
    const { signal } = abort, stored = typeof model === "string", other = stored && this.#held?.id !== model;
    signal.throwIfAborted();
    this.#planRequest(shape); /* refuses what cannot be, before anything else */
    say({ phase: "plan", loaded: 0, total: 1 });
    /* That it is in use is told before anything is measured; it is taken over once it is known to fit. */
    let held = other && !takeOver ? await this.#hold(model, false, abort) : null;
    let fit;
    try {
      fit = await this.#fit(model, shape, signal);
      say({ phase: "plan", loaded: 1, total: 1 });
      if (other) held ??= await this.#hold(model, true, abort);
    } catch (e) {
      held?.release(); /* what cannot be loaded unloads nothing */
      throw e;
    }
    const { request, terms, named, about } = fit;
    await this.#unloadNow(stored && !other);
    if (!stored || other) this.#held = held;
    this.#set("loading");
    signal.throwIfAborted();
    this.#mark = { model: stored ? model : about.name, name: about.name, context: named.context,
      kv: KV_TYPES[request.kv], profile: PROFILES[request.profile], pages: named.pages, at: new Date().toISOString() };
    const unmark = await markLoad(this.#mark, this.store);
    try {
      await this.#fill(model, terms, named, about, say, signal);
    } finally {
      await unmark();
      this.#mark = null;
    }
    this.lastLoadFailed = null;
  }

  /** The plan of what is asked for, or why it cannot be. @param {ModelRef} model @param {Shape} shape @param {AbortSignal} signal */
  async #fit(model, shape, signal) {
    await this.#choose(model, signal);
    const request = this.#planRequest(shape), plan = await this.store.plan(model, request, { signal });
    if (!plan.fits) throw new Slm2Error("MEMORY", plan.why ?? "it does not fit", { ...plan.named });
    return { request, ...plan };
  }

  /** @param {string} id @param {boolean} takeOver @param {AbortController} abort */
  async #hold(id, takeOver, abort) {
    const held = { id, release: () => {} };
    held.release = await holdModel(id, takeOver, () => {
      if (this.#held === held) this.#taken(id);
      else abort.abort(new Slm2Error("TAKEN", "another tab took this model over", { id }));
    });
    return held;
  }

  /** @param {ModelRef} model @param {BigUint64Array} terms @param {Record<string, number>} named @param {any} about
   * @param {(p: LoadProgress) => void} say @param {AbortSignal} signal */
  async #fill(model, terms, named, about, say, signal) {
    await reclaimed();
    signal.throwIfAborted();
    const machine = new Machine(named.pages, terms, {
      event: (e) => this.#event(machine, e),
      broken: (e) => this.#broken(machine, e),
    });
    this.#machine = machine;
    this.#numbers = 0;
    const started = machine.start(/** @type {import("./modules.js").CompiledModule} */ (this.#compiled), named.threads);
    started.catch(() => {}); /* awaited below; a reader that fails first is the one to be told of */
    const read = await this.store.read(model, machine.memory, named.atFile,
      { signal, onProgress: ({ loaded, total }) => say({ phase: "read", loaded, total }) });
    await started;
    signal.throwIfAborted();
    const verify = read.sealed ? 0 : 1, total = named.file;
    const open = new Request(COMMAND.OPEN, words(verify, 0), "the load", signal,
      ({ done }) => say({ phase: "verify", loaded: Math.min(done, total), total }));
    if (verify === 0) say({ phase: "open", loaded: 0, total: 1 });
    open.submit({ enqueue: (r) => this.#run(r), cancel: (r) => machine.cancel(r.number), pause() {}, resume() {} });
    const facts = await open.outcome;
    if (verify === 1) say({ phase: "open", loaded: 0, total: 1 });
    say({ phase: "open", loaded: 1, total: 1 });
    this.#model = { ...facts, id: typeof model === "string" ? model : null, name: read.name ?? about.name, bytes: named.file,
      sealed: read.sealed, plan: named };
  }

  /** Ends the engine's workers and gives the memory back. What runs or waits is aborted. */
  async unload() {
    this.#loading?.abort.abort(aborted("the load"));
    await this.#loading?.ended;
    await this.#unloadNow();
    void reclaimed();
    if (this.#state !== "closed") this.#set("empty");
  }

  /** @param {boolean} [keepHold] */
  async #unloadNow(keepHold = false) {
    await this.#endMachine();
    if (!keepHold) this.#letGo();
  }

  /* A function of its own: what it knows of the machine ends with it. */
  async #endMachine() {
    const machine = this.#machine;
    if (machine !== null) giveUp(machine.memory);
    this.#machine = this.#model = null;
    this.#failAll(new Slm2Error("ABORTED", "the model was unloaded"));
    await machine?.end();
  }

  /** Unloads, and ends the store's workers too. */
  async close() {
    globalThis.removeEventListener?.("pagehide", this.#onPageHide);
    await this.unload();
    this.store.close();
    this.#set("closed");
  }

  /** A new engine with the same model and options, after poisoned or unloaded. @param {LoadOptions} [options] of this load */
  async restart(options = {}) {
    if (this.#last === null) throw new Slm2Error("NO_MODEL", "no model was loaded that could be loaded again");
    return this.load(this.#last.model, { ...this.#last.options, ...options });
  }

  /** The user has read it. */
  forgetFailedLoad() {
    this.lastLoadFailed = null;
    void forgetFailedLoad();
  }

  /* --- what breaks ----------------------------------------------------------------- */

  /** Lets go of everything at once. @param {Slm2Error} error for whatever runs or waits */
  #teardown(error) {
    const machine = this.#machine;
    if (machine !== null) giveUp(machine.memory);
    this.#machine = this.#model = null;
    machine?.kill();
    this.#failAll(error);
    this.#letGo();
  }

  #letGo() {
    this.#held?.release();
    this.#held = null;
  }

  /** @param {Slm2Error} error */
  #failAll(error) {
    const all = [...(this.#current === null ? [] : [this.#current]), ...this.#queue];
    this.#current = null;
    this.#queue = [];
    for (const request of all) request.fail(new Slm2Error(error.code, error.message, error.details));
  }

  /** @param {Slm2Error} error @param {State} state */
  #drop(error, state) {
    this.#teardown(error);
    if (this.#state === "loading") this.#loading?.abort.abort(error);
    else this.#set(state);
  }

  /** @param {Machine} machine @param {Slm2Error} cause */
  #broken(machine, cause) {
    if (machine !== this.#machine) return;
    const code = this.#state === "loading" ? cause.code : "POISONED";
    const error = new Slm2Error(code, cause.message, { cause: cause.code, ...cause.details });
    this.#drop(error, "poisoned");
    if (this.#state === "poisoned") this.dispatchEvent(new EngineEvent("poisoned", { error }));
  }

  /** @param {string} id */
  #taken(id) {
    const error = new Slm2Error("TAKEN", "another tab took this model over", { id });
    this.#held = null;
    this.#drop(error, "empty");
    this.dispatchEvent(new EngineEvent("taken", { error }));
  }

  /* --- requests -------------------------------------------------------------------- */

  /** @type {import("./request.js").Host} */
  #host = {
    enqueue: (request) => {
      if (this.#machine === null || this.#model === null) return request.fail(this.#noModel());
      this.#queue.push(request);
      this.#next();
    },
    cancel: (request) => {
      if (request === this.#current) return this.#machine?.cancel(request.number);
      const at = this.#queue.indexOf(request);
      if (at < 0) return;
      this.#queue.splice(at, 1);
      request.fail(aborted(request.what, request.signal));
    },
    pause: () => this.#machine?.pause(),
    resume: () => this.#machine?.resume(),
  };

  #noModel() {
    const why = { loading: "the model is still being loaded", poisoned: "the engine broke: restart() makes a new one",
      closed: "the engine was closed" };
    return new Slm2Error(this.#state === "poisoned" ? "POISONED" : this.#state === "closed" ? "CLOSED" : "NO_MODEL",
      /** @type {Record<string, string>} */ (why)[this.#state] ?? "no model is loaded");
  }

  #next() {
    if (this.#current !== null || this.#machine === null || this.#model === null) return;
    const request = this.#queue.shift();
    if (request === undefined) return this.#set("ready");
    this.#run(request);
    this.#set("busy");
  }

  /** @param {Request} request */
  #run(request) {
    const machine = /** @type {Machine} */ (this.#machine);
    this.#current = request;
    request.number = ++this.#numbers;
    void machine.send(request.op, request.number, request.payload);
    request.payload = new Uint8Array(0);
  }

  /** @param {Machine} machine @param {import("./ring.js").Event} event */
  #event(machine, event) {
    const request = this.#current, value = decode(event);
    if (machine !== this.#machine) return;
    if (value.error !== undefined && machine.poisoned) throw value.error;
    if (request === null || request.number !== event.request)
      throw new Slm2Error("INTERNAL_INVARIANT", `event ${event.op} is of request ${event.request}; ${request?.number ?? "none"} runs`);
    if (!request.take(event.op, value)) return;
    machine.finished();
    this.#current = null;
    this.#next();
  }

  /** @param {Request} request @returns {Promise<any>} */
  #ask(request) {
    request.submit(this.#host);
    return request.outcome;
  }

  /** An answer: iterate over its events, or await its `summary`. It starts when either is begun, and runs when those started
   * before it have ended. A loop that is left stops it; so does the signal, and then the error has the tokens so far.
   * @param {GenerateParams} params @param {{signal?: AbortSignal}} [options] @returns {Answer} */
  generate(params, { signal } = {}) {
    if (this.#model === null) throw this.#noModel();
    const { payload, seed } = generateCommand(params, this.#model);
    return new Answer(this.#host, payload, seed, signal);
  }

  /** The whole answer. @param {GenerateParams} params @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<import("./request.js").Summary>} */
  async complete(params, options) { return this.generate(params, options).summary; }

  /** How many tokens a prompt is, and bytes its text. @param {GenerateParams} params messages, text or ids, and what shapes them
   * @param {{signal?: AbortSignal}} [options] @returns {Promise<{tokens: number, bytes: number}>} */
  async count(params, { signal } = {}) { return this.#ask(new Request(COMMAND.COUNT, countCommand(params), "the count", signal)); }

  /** SHA-256 of the logits at every position, computed `chunk` ids at a time on an empty timeline, which stays empty.
   * @param {ArrayLike<number>} ids @param {number} [chunk] @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<{positions: number, digest: string}>} */
  async digest(ids, chunk = TILE, { signal } = {}) {
    return this.#ask(new Request(COMMAND.DIGEST, digestCommand(ids, chunk), "the digest", signal));
  }

  /** Forgets what was computed for earlier prompts; answers are the same with it and without. */
  async reset() { await this.#ask(new Request(COMMAND.RESET, new Uint8Array(0), "the reset")); }

  /** Stops what runs now: an answer ends with finish "cancelled" and all its text. Resolves when the engine is free. */
  async stop() {
    const request = this.#current;
    if (request === null || this.#model === null) return;
    request.stopping(false);
    this.#machine?.cancel(request.number);
    await request.outcome.catch(() => {});
  }
}

/** @typedef {object} EngineOptions
 *  @property {string | URL} [wasm] folder of the modules; default: beside this package's scripts, ../wasm/
 *  @property {string | URL} [base] what relative model addresses are relative to; default: the page
 *  @property {"auto" | Kind} [module] @property {"auto" | number} [threads]
 *  @property {number} [maxPages] of 65,536 bytes, that a model may take; default 24,000 (1.5 GB) */

/** @param {EngineOptions} [options] @returns {Promise<Engine>} */
export async function createEngine(options = {}) {
  const { module = "auto", threads = "auto", maxPages = MAX_PAGES_DEFAULT } = options;
  refuseUnknown(options, new Set(["wasm", "base", "module", "threads", "maxPages"]));
  integer(maxPages, "maxPages", MAX_PAGES, 1);
  if (threads !== "auto") integer(threads, "threads", THREADS_MAX, 1);
  const features = probeFeatures(), missing = lacks(features), fatal = missing.find((lack) => lack.fatal);
  if (fatal !== undefined) throw new Slm2Error("NOT_ISOLATED", `${fatal.why} ${fatal.todo}`, { missing, features });
  const kinds = admitted(features);
  if (module !== "auto" && !kinds.includes(module))
    throw new Slm2Error("UNSUPPORTED", `module: this browser does not run "${module}"; it runs ${kinds.join(", ")}`, { kinds });
  const page = globalThis.document?.baseURI ?? import.meta.url;
  return new Engine({
    modules: new Modules(new URL(options.wasm ?? new URL("../wasm/", import.meta.url), page)), features, missing, threads, maxPages,
    kinds: module !== "auto" ? [module] : kinds.length === 1 ? kinds : kinds.filter((kind) => kind !== "scalar"),
    base: new URL(options.base ?? page, page).href, lastLoadFailed: await lastFailedLoad(),
  });
}
