/**
 * engine-worker.js: the thread that runs the model: an instance of the core on the one memory, and slm2_web_step in a loop.
 * It says hello, and after that nothing but how it ended: everything else goes through the rings.
 */
import { coreError } from "./messages.js";
import { TURN, VERSION, WORD } from "./protocol.js";
import { controlWords } from "./ring.js";
import { HAS_WAIT_ASYNC, changed, turn } from "./wait.js";

const SLICE_MS = 50; /* of computing between two looks at the event loop */
let over = false;

/** @param {string} message @param {object} [rest] */
function end(message, rest = {}) {
  if (!over) self.postMessage({ type: "failed", message, ...rest });
  over = true;
}
self.onerror = (e) => end(typeof e === "string" ? e : /** @type {ErrorEvent} */ (e).message);
self.onunhandledrejection = (e) => end(String(e.reason?.message ?? e.reason));

/** Without Atomics.waitAsync the page's message is the bell. @type {(() => void) | null} */ let rung = null;

/** @param {Int32Array} words @param {number} bell */
async function doorbell(words, bell) {
  if (HAS_WAIT_ASYNC) return changed(words, WORD.DOORBELL, bell);
  if (Atomics.load(words, WORD.DOORBELL) !== bell) return turn();
  return new Promise((done) => { rung = /** @type {() => void} */ (done); });
}

/** @param {WebAssembly.Memory} memory @param {any} core */
async function run(memory, core) {
  const words = controlWords(memory);
  for (let since = performance.now(); Atomics.load(words, WORD.QUIT) === 0;) {
    const bell = Atomics.load(words, WORD.DOORBELL), now = performance.now();
    const what = core.slm2_web_step(now);
    if (what === TURN.CLOSED) return;
    if (what === TURN.POISONED) {
      const { code, message, ...details } = coreError(memory, core.slm2_web_error() >>> 0);
      return end(message, { code: "POISONED", details: { code, ...details } });
    }
    if (what === TURN.MORE && now - since < SLICE_MS) continue;
    await (what === TURN.MORE ? turn() : doorbell(words, bell));
    since = performance.now();
  }
}

self.onmessage = async ({ data }) => {
  if (data.ring) {
    const wake = rung;
    rung = null;
    return wake?.();
  }
  const { module, memory, sha256 } = data;
  try {
    const core = /** @type {any} */ (new WebAssembly.Instance(module, { env: { memory } }).exports);
    const status = core.slm2_web_start();
    if (status !== 0) {
      const { code, message, ...details } = coreError(memory, core.slm2_web_error() >>> 0);
      return end(message, { code, details });
    }
    self.postMessage({ type: "hello", version: VERSION, protocol: core.slm2_web_version(), sha256 });
    await run(memory, core);
    self.postMessage({ type: "left" });
  } catch (e) {
    const error = /** @type {Error} */ (e);
    end(`${error.name}: ${error.message}`, { details: { stack: error.stack } });
  }
};
