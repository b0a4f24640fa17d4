/* A thread of read.js. It reads in small pieces, as engines put a better translation of a function in its place only when the
 * function is called again. */
const PIECE = 1 << 20;
let core;

function meet(gate, word, n) {
  Atomics.add(gate, word, 1);
  Atomics.notify(gate, word);
  for (let come; (come = Atomics.load(gate, word)) < n;) Atomics.wait(gate, word, come, 100);
}

self.onmessage = ({ data: { module, memory, streams, gate, n, at, bytes } }) => {
  try {
    if (module !== undefined) {
      core = new WebAssembly.Instance(module, { env: { memory } }).exports;
      return self.postMessage({});
    }
    const read = streams === 1 ? core.read_one : core.read_two;
    meet(gate, 0, n);
    const start = performance.now();
    let sum = 0;
    for (let from = at, end = at + bytes; from < end; from += PIECE) sum = (sum + read(from, PIECE)) >>> 0;
    meet(gate, 1, n);
    self.postMessage({ ms: performance.now() - start, sum });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
