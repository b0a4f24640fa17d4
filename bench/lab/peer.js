/* wllama in a page of its own: globalThis.run[name](...args), as in slm2.js. It gets text: lists of ids fail in 3.13.0, and so
 * does an answer that is not valid UTF-8, as one of synthetic weights may be: then its timings are of no use either. */
import { Wllama } from "/peer/esm/index.js";

const quiet = { debug() {}, log() {}, warn() {}, error() {} };
const MODEL = "/models/peer.gguf";
/** @type {Wllama} */ let wllama;

globalThis.run = {
  /** From the files of this browser when it was loaded before. @returns {Promise<{ms: number, version: string}>} */
  async load(threads, context) {
    const start = performance.now();
    wllama = new Wllama({ default: "/peer/esm/wasm/wllama.wasm" }, { logger: quiet, allowOffline: true });
    await wllama.loadModelFromUrl(location.origin + MODEL, { n_threads: threads, n_ctx: context, n_batch: 512, n_ubatch: 512,
      n_gpu_layers: 0, n_parallel: 1, flash_attn: false, warmup: false, cache_type_k: "f16", cache_type_v: "f16" });
    return { ms: performance.now() - start, version: Wllama.getLibllamaVersion(), threads: wllama.getNumThreads() };
  },
  /** The times that it reports itself. */
  async speed(prompt, tokens) {
    const start = performance.now();
    const answer = await wllama.createCompletion({ prompt, max_tokens: tokens, temperature: 0, ignore_eos: true,
      cache_prompt: false });
    const { prompt_n: promptTokens, prompt_ms: prefillMs, predicted_n: n, predicted_ms: decodeMs } = answer.timings;
    return { promptTokens, prefillMs, completionTokens: n, decodeMs, ms: performance.now() - start };
  },
  exit: () => wllama.exit(),
};
