/**
 * convert-worker.js: one conversion of a GGUF file: the core, on a memory of its own, asking the store worker for every
 * read and write. Started and ended by store.js.
 */
import { Slm2Error } from "./error.js";
import { coreError } from "./messages.js";
import { STATUS_NAMES } from "./protocol.js";

self.onmessage = ({ data: { module, memory, port } }) => {
  port.onmessage = (/** @type {MessageEvent} */ { data: { bytes, where } }) => {
    try {
      const core = /** @type {any} */ (new WebAssembly.Instance(module, { env: { memory } }).exports);
      const status = core.slm2_web_convert(BigInt(bytes));
      if (status === 0) return port.postMessage({});
      const { code: _, message, ...details } = coreError(memory, core.slm2_web_error() >>> 0);
      port.postMessage({
        error: Slm2Error.plain(new Slm2Error(STATUS_NAMES[status] ?? "UNKNOWN", `${where}: ${message}`, { where, ...details })),
      });
    } catch (e) {
      port.postMessage({ error: Slm2Error.plain(e) });
    }
  };
};
