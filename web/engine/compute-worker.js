/**
 * compute-worker.js: a thread of the core's pool: another instance of the same module on the same memory, with a stack of its
 * own. It works inside slm2_web_thread until the page sets the word "quit".
 */
import { VERSION } from "./protocol.js";

let over = false;
/** @param {string} message */
function end(message) {
  if (!over) self.postMessage({ type: "failed", message });
  over = true;
}
self.onerror = (e) => end(typeof e === "string" ? e : /** @type {ErrorEvent} */ (e).message);
self.onunhandledrejection = (e) => end(String(e.reason?.message ?? e.reason));

self.onmessage = ({ data: { module, memory, index, sha256 } }) => {
  try {
    const core = /** @type {any} */ (new WebAssembly.Instance(module, { env: { memory } }).exports);
    core.__stack_pointer.value = core.slm2_web_stack(index);
    self.postMessage({ type: "hello", version: VERSION, protocol: core.slm2_web_version(), sha256 });
    core.slm2_web_thread(index);
    self.postMessage({ type: "left" });
  } catch (e) {
    const error = /** @type {Error} */ (e);
    end(`${error.name}: ${error.message}`);
  }
};
