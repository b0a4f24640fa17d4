/**
 * convert-worker.js: one conversion of a GGUF file: the core, on a memory of its own, asking the store worker for every
 * read and write. Started and ended by store.js.
 */
import { Slm2Error } from "./error.js";
import { STATUS_NAMES } from "./protocol.js";

self.onmessage = ({ data: { module, memory, port } }) => {
  port.onmessage = (/** @type {MessageEvent} */ { data: { bytes, where } }) => {
    try {
      const core = /** @type {any} */ (new WebAssembly.Instance(module, { env: { memory } }).exports);
      const status = core.slm2_web_convert(BigInt(bytes));
      if (status === 0) return port.postMessage({});
      const at = core.slm2_web_error() >>> 0;
      const text = (/** @type {number} */ from, /** @type {number} */ n) => {
        const copy = new Uint8Array(memory.buffer).slice(at + from, at + from + n), end = copy.indexOf(0);
        return new TextDecoder().decode(copy.subarray(0, end < 0 ? n : end));
      };
      const name = text(36, 160);
      port.postMessage({
        error: Slm2Error.plain(new Slm2Error(STATUS_NAMES[status] ?? "UNKNOWN",
          `${where}: ${name === "" ? "" : name + ": "}${text(196, 256)}`, { where, name, operation: text(4, 32) })),
      });
    } catch (e) {
      port.postMessage({ error: Slm2Error.plain(e) });
    }
  };
};
