/**
 * measure.js: which module and how many threads are fastest here. All give the same bits, so a few milliseconds of measuring
 * may choose [K11]; what the browser says of its cores may not (WebKitGTK says 4 on 2), and threads that have no core of
 * their own slow all others down.
 */
import { START_SECONDS, Slm2Error, mute } from "./error.js";
import { PAGE, PLAN_TERMS, STACKS } from "./protocol.js";
import { inTime } from "./wait.js";

const WARM_UP_MAX_MS = 200, STEADY = 4;
const TRIAL_MS = 6;
const TRIALS = 3, MORE_TRIALS = 10;
const WORTH = 1.03; /* how much faster a module must be than the one before it */
const COUNTS = [1, 2, 3, 4, 6, 8];
const SHARE = 0.5; /* of the gain that more cores could give, that more threads must give */

/** @typedef {import("./modules.js").CompiledModule} CompiledModule
 *  @typedef {import("./modules.js").Kind} Kind
 *  @typedef {{ms: number, checksum: number}} Trial */

/** A memory map without a model: a plan's work region and nothing behind it. @param {Record<string, number>} plan */
function trialPlan(plan) {
  const atFile = Math.ceil((STACKS + plan.work) / PAGE) * PAGE;
  const terms = { version: plan.version, threads: 1, inputMax: plan.inputMax, work: plan.work, atStacks: STACKS, atWork: STACKS,
    atFile, atIndex: atFile, atSession: atFile, total: atFile, pages: atFile / PAGE };
  const known = /** @type {Record<string, number>} */ (terms);
  return { pages: terms.pages, terms: new BigUint64Array(PLAN_TERMS.map((name) => BigInt(known[name] ?? 0))) };
}

class Runner {
  /** @param {CompiledModule} compiled @param {Record<string, number>} plan */
  constructor(compiled, plan) {
    this.kind = compiled.kind;
    this.worker = new Worker(new URL("./trial-worker.js", import.meta.url), { type: "module", name: "slm2 trial" });
    this.ready = inTime(this.#ask({ module: compiled.module, ...trialPlan(plan) }), START_SECONDS, () => mute("slm2 trial"));
    this.ready.catch(() => {});
  }
  /** @param {object} message @returns {Promise<any>} */
  #ask(message) {
    return new Promise((done, fail) => {
      const failed = (/** @type {string} */ why) => fail(new Slm2Error("INTERNAL_INVARIANT", `trial of ${this.kind}: ${why}`));
      this.worker.onerror = (e) => failed(e.message || "its script was refused (are the isolation headers on it?)");
      this.worker.onmessage = ({ data }) => (data.error === undefined ? done(data) : failed(data.error));
      this.worker.postMessage(message);
    });
  }
  /** @param {number} rounds @param {Int32Array} [gate] @param {number} [n] how many meet at the gate @returns {Promise<Trial>} */
  async run(rounds, gate = new Int32Array(new SharedArrayBuffer(8)), n = 1) {
    await this.ready;
    return this.#ask({ rounds, gate, n });
  }
  /** How many rounds take about TRIAL_MS, once the engine's compiler has come to its best code: when runs get no faster. */
  async warmUp() {
    let rounds = 1, best = Infinity, steady = 0;
    for (const since = performance.now(); steady < STEADY && performance.now() - since < WARM_UP_MAX_MS;) {
      const { ms } = await this.run(rounds);
      steady = ms / rounds < 0.8 * best ? 0 : steady + 1;
      best = Math.min(best, ms / rounds);
      rounds = Math.max(1, Math.round(TRIAL_MS / best));
    }
    return rounds;
  }
  end() { this.worker.terminate(); }
}

/** Milliseconds from the first begin to the last end of some at once. @param {Runner[]} runners @param {number} rounds */
async function together(runners, rounds) {
  const gate = new Int32Array(new SharedArrayBuffer(8));
  const trials = await Promise.all(runners.map((runner) => runner.run(rounds, gate, runners.length)));
  return Math.max(...trials.map((trial) => trial.ms));
}

/** The fastest of the modules, which are given from the most to the least promising.
 * @param {CompiledModule[]} all @param {Record<string, number>} plan of any model
 * @returns {Promise<{compiled: CompiledModule, trials: {kind: Kind, ms: number}[]}>} */
export async function chooseModule(all, plan) {
  if (all.length === 1) return { compiled: all[0], trials: [] };
  const runners = all.map((compiled) => new Runner(compiled, plan));
  try {
    const rounds = await runners[0].warmUp(), sums = new Set(), trials = all.map(({ kind }) => ({ kind, ms: Infinity }));
    for (const runner of runners.slice(1)) await runner.warmUp();
    for (let i = 0; i < TRIALS; i++)
      for (const [k, runner] of runners.entries()) {
        const { ms, checksum } = await runner.run(rounds);
        trials[k].ms = Math.min(trials[k].ms, ms);
        sums.add(checksum);
      }
    if (sums.size !== 1 || [...sums][0] < 0)
      throw new Slm2Error("INTERNAL_INVARIANT", `the modules do not agree: ${[...sums].join(", ")}`, { kinds: all.map((c) => c.kind) });
    let best = all.length - 1;
    for (let i = best - 1; i >= 0; i--) if (trials[i].ms * WORTH < trials[best].ms) best = i;
    return { compiled: all[best], trials };
  } finally {
    for (const runner of runners) runner.end();
  }
}

/* --- what earlier trials found ------------------------------------------------------------------ */

/** @param {string} key @returns {any} what was kept, {} for nothing */
function recall(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") ?? {};
  } catch {
    return {};
  }
}
/** @param {string} key @param {object} value */
function keep(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    /* A page without storage measures each time. */
  }
}

const MODULE = "slm2:module", THREADS = "slm2:threads";
const MODULE_DAYS = 7; /* then the modules are measured again: something else may have kept the machine busy */

/** The module that won the last trial, while the browser and every module's bytes are the same; null: none is known.
 * @param {Kind[]} kinds @param {Record<Kind, string>} hashes of their bytes @returns {Kind | null} */
export function knownModule(kinds, hashes) {
  const { kind, browser, at, modules } = recall(MODULE), age = Date.now() - at;
  const same = browser === navigator.userAgent && age >= 0 && age < MODULE_DAYS * 86400000 && kinds.includes(kind)
    && kinds.every((each) => modules?.[each] === hashes[each]) && Object.keys(modules).length === kinds.length;
  return same ? kind : null;
}
/** @param {CompiledModule} compiled that won @param {CompiledModule[]} all */
export function keepModule({ kind }, all) {
  if (all.length > 1)
    keep(MODULE, { kind, browser: navigator.userAgent, at: Date.now(), modules: Object.fromEntries(all.map((m) => [m.kind, m.sha256])) });
}

/* Other work on the machine can hide that threads gain, and cannot feign it. So the largest number that ever gained is remembered
   for this number of cores; fewer than there could be are measured again at the next start. */

/** The number of threads that gain, now or at an earlier start.
 * @param {CompiledModule} compiled @param {number} cores @param {number} most @param {Record<string, number>} plan of any model
 * @returns {Promise<{count: number, gains: {threads: number, gain: number}[]}>} */
export async function rememberedThreads(compiled, cores, most, plan) {
  const last = recall(THREADS), known = last.cores === cores && Number.isInteger(last.threads) ? Math.min(last.threads, most) : 1;
  if (known === most) return { count: most, gains: [] };
  const { count, gains } = await chooseThreads(compiled, most, plan), threads = Math.max(known, count);
  keep(THREADS, { cores, threads });
  return { count: threads, gains };
}

/** The number of threads that still gain.
 * @param {CompiledModule} compiled @param {number} most @param {Record<string, number>} plan of any model
 * @returns {Promise<{count: number, gains: {threads: number, gain: number}[]}>} */
export async function chooseThreads(compiled, most, plan) {
  const runners = /** @type {Runner[]} */ ([]), gains = [{ threads: 1, gain: 1 }];
  const grow = async (/** @type {number} */ n) => {
    while (runners.length < n) runners.push(new Runner(compiled, plan));
    await Promise.all(runners.map((runner) => runner.ready));
  };
  try {
    if (most <= 1) return { count: 1, gains };
    await grow(1);
    const rounds = await runners[0].warmUp();
    let best = gains[0], alone = Infinity;
    for (const n of COUNTS.filter((count) => count > 1 && count <= most)) {
      await grow(n);
      await together(runners, rounds);
      const worth = best.gain * (1 + SHARE * (n - best.threads) / best.threads);
      let all = Infinity, gain = 0;
      for (let i = 0; i < TRIALS || (gain < worth && i < MORE_TRIALS); i++) { /* others may be busy for a moment */
        alone = Math.min(alone, await together(runners.slice(0, 1), rounds));
        all = Math.min(all, await together(runners, rounds));
        gain = n * alone / all;
      }
      gains.push({ threads: n, gain });
      if (gain < worth) break;
      best = { threads: n, gain };
    }
    return { count: best.threads, gains };
  } finally {
    for (const runner of runners) runner.end();
  }
}
