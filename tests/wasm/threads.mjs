// A module of wasm/wasm.mk in node, as in a browser: one shared memory, an instance here and one in each compute worker.
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, workerData } from "node:worker_threads";

const CONTROL = 1 << 20, QUIT = 5, INSIDE = 12; // docs/PROTOCOL.md

// What no module may ask of its host.
export function checkImports(module) {
  const imports = WebAssembly.Module.imports(module).map((i) => `${i.module}.${i.name} ${i.kind}`);
  if (imports.join() !== "env.memory memory") throw new Error(`imports: ${imports}`);
}

// {c: the exports, at(address, n): bytes of the memory, arrive(index): another worker, close(): all of them leave}. For heads
// that export start_pool. arrive: how many of the threads - 1 compute workers do; pool: false for none.
export async function open(bytes, threads, { arrive = threads - 1, pool = true, pages = 16384 } = {}) {
  const module = await WebAssembly.compile(bytes);
  checkImports(module);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const c = (await WebAssembly.instantiate(module, { env: { memory } })).exports;
  const at = (address, n) => new Uint8Array(memory.buffer, address >>> 0, n);
  const words = new Int32Array(memory.buffer, CONTROL, 16), ended = [];
  async function start(index) {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { module, memory, index } });
    ended.push(new Promise((resolve, reject) => worker.on("exit", resolve).on("error", reject)));
    while (Atomics.load(words, INSIDE) < ended.length) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  for (let index = 1; index <= arrive; index++) await start(index);
  if (pool && !c.start_pool(threads)) throw new Error(`no pool of ${threads} threads`);
  async function close() {
    Atomics.store(words, QUIT, 1);
    const codes = await Promise.all(ended);
    if (codes.some((code) => code !== 0)) throw new Error(`compute threads ended with ${codes}`);
  }
  return { c, at, arrive: start, close };
}

if (!isMainThread && workerData?.index) {
  const { module, memory, index } = workerData;
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  exports.__stack_pointer.value = exports.slm2_web_stack(index);
  exports.slm2_web_thread(index);
}
