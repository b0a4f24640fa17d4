/**
 * trial-worker.js: times the core's trial on a memory of its own: {module, pages, terms} to begin with, then {rounds, gate, n}
 * as often as wanted; answers are {ready: true}, {ms, checksum} or {error}. n workers with the same gate (two shared words)
 * begin together and end together: the longest of their times is from the first begin to the last end.
 */
import { coreError } from "./messages.js";
import { MAGIC, VERSION, WORD } from "./protocol.js";
import { controlWords } from "./ring.js";

/** @type {any} */ let core;

/** @param {WebAssembly.Module} module @param {number} pages @param {BigUint64Array} terms */
function start(module, pages, terms) {
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const words = controlWords(memory);
  words[WORD.MAGIC] = MAGIC;
  words[WORD.VERSION] = VERSION;
  new BigUint64Array(memory.buffer, words.byteOffset + 4 * WORD.PLAN, terms.length).set(terms);
  core = new WebAssembly.Instance(module, { env: { memory } }).exports;
  if (core.slm2_web_start() !== 0) throw new Error(coreError(memory, core.slm2_web_error() >>> 0).message);
}

const PATIENCE_MS = 1000; /* for a worker that has died */

/** Waits until n workers have come here. @param {Int32Array} gate @param {number} word @param {number} n */
function meet(gate, word, n) {
  Atomics.add(gate, word, 1);
  Atomics.notify(gate, word);
  const end = performance.now() + PATIENCE_MS;
  for (let come; (come = Atomics.load(gate, word)) < n && performance.now() < end;) Atomics.wait(gate, word, come, 100);
}

self.onmessage = ({ data }) => {
  try {
    if (data.module !== undefined) {
      start(data.module, data.pages, data.terms);
      self.postMessage({ ready: true });
    } else {
      meet(data.gate, 0, data.n);
      const since = performance.now(), checksum = core.slm2_web_trial(data.rounds);
      meet(data.gate, 1, data.n);
      self.postMessage({ ms: performance.now() - since, checksum });
    }
  } catch (e) {
    self.postMessage({ error: String(/** @type {Error} */ (e).message ?? e) });
  }
};
