// tests/kernelcheck as a module: every slot of the module's backends against the oracle, to the bit.
// Usage: node tests/wasm/kernelcheck.mjs kernelcheck.wasm [--bench]. DEMO names another model.
import { readFileSync } from "node:fs";

const [path, bench] = process.argv.slice(2);
const memory = new WebAssembly.Memory({ initial: 8192, maximum: 8192, shared: true });
const write = (at, n) => process.stdout.write(new Uint8Array(memory.buffer, at >>> 0, n).slice());
const { instance } = await WebAssembly.instantiate(readFileSync(path), { env: { memory, write, now: () => performance.now() } });
if (!bench) {
  const model = readFileSync(process.env.DEMO || "models/demo.slm2");
  new Uint8Array(memory.buffer, instance.exports.lend_model(model.length) >>> 0, model.length).set(model);
}
process.exitCode = instance.exports.kernelcheck(bench === "--bench" ? 1 : 0);
