/**
 * compute-worker.js: a thread of the core's pool: another instance of the same module on the same memory, with a stack of its
 * own. It works inside slm2_web_thread until the page sets the word "quit".
 */
import { VERSION, WORD } from "./protocol.js";
import { controlWords } from "./ring.js";
import { sleep } from "./wait.js";

let over = false;
/** @param {string} message */
function end(message) {
  if (!over) self.postMessage({ type: "failed", message });
  over = true;
}
self.onerror = (e) => end(typeof e === "string" ? e : /** @type {ErrorEvent} */ (e).message);
self.onunhandledrejection = (e) => end(String(e.reason?.message ?? e.reason));

self.onmessage = async ({ data: { module, memory, index, sha256 } }) => {
  try {
    const core = /** @type {any} */ (new WebAssembly.Instance(module, { env: { memory } }).exports);
    core.__stack_pointer.value = core.slm2_web_stack(index);
    self.postMessage({ type: "hello", version: VERSION, protocol: core.slm2_web_version(), sha256 });
    const words = controlWords(memory);
    while (Atomics.load(words, WORD.QUIT) === 0) {
      core.slm2_web_thread(index);
      await sleep(10); /* the pool is not there yet, or not any more */
    }
    self.postMessage({ type: "left" });
  } catch (e) {
    const error = /** @type {Error} */ (e);
    end(`${error.name}: ${error.message}`);
  }
};
