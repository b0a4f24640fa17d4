/* How fast memory is read here by 1, 2 .. threads with one stream each or with two: globalThis.run.read, as in slm2.js. */
const BYTES = 1 << 29, PAGE = 65536, FIRST = 1 << 20; /* more than caches hold; what lies below FIRST is the module's own */

function worker(setup) {
  const own = new Worker("read-worker.js", { type: "module" });
  const ask = (message) => new Promise((done, fail) => {
    own.onmessage = ({ data }) => (data.error === undefined ? done(data) : fail(new Error(data.error)));
    own.onerror = ({ message: text }) => fail(new Error(text || "read-worker.js was refused"));
    own.postMessage(message);
  });
  return { ready: ask(setup), ask };
}

/** All of it, modulo 2^32: 64-bit words of which the k-th is 2k and, 32 bits up, 2k + 1. */
const RIGHT = Number(BigInt.asUintN(32, BigInt(BYTES / 8) * BigInt(BYTES / 8 - 1)));

globalThis.run = {
  /** @param {number} most threads @param {number} ms for each figure
   * @returns {Promise<{threads: number, streams: number, rate: number}[]>} bytes a second, the best of the passes */
  async read(most, ms) {
    const pages = (BYTES + FIRST) / PAGE, memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const words = new Uint32Array(memory.buffer, FIRST);
    for (let i = 0; i < words.length; i++) words[i] = i;
    const module = await WebAssembly.compile(await (await fetch("/wasm/simd/read.wasm")).arrayBuffer());
    const workers = Array.from({ length: most }, () => worker({ module, memory })), out = [];
    await Promise.all(workers.map(({ ready }) => ready));
    for (let threads = 1; threads <= most; threads++)
      for (const streams of [1, 2]) {
        let best = Infinity;
        const part = BYTES / threads - BYTES / threads % (1 << 20);
        for (const start = performance.now(); performance.now() - start < ms;) {
          const gate = new Int32Array(new SharedArrayBuffer(8));
          const parts = await Promise.all(workers.slice(0, threads).map(({ ask }, i) => ask({ streams, gate, n: threads,
            at: FIRST + i * part, bytes: i === threads - 1 ? BYTES - i * part : part })));
          if (parts.reduce((sum, { sum: more }) => (sum + more) >>> 0, 0) !== RIGHT) throw new Error("the sum is wrong");
          best = Math.min(best, ...[Math.max(...parts.map((one) => one.ms))]);
        }
        out.push({ threads, streams, rate: 1000 * BYTES / best });
      }
    return out;
  },
};
