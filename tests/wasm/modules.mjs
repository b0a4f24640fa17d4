// What the browser's modules are made of: no import but a shared memory, no way to grow it, the instructions of their kind and
// no others, the exports of wasm/web.h, and data that only the first instance on a memory puts in place.
// Usage: node tests/wasm/modules.mjs FOLDER
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { inspect } from "./opcodes.mjs";

const GROW = "40", DOT = "fd 275", FILL = "fc 11", COPY = "fc 10", WAIT = "fe 1", NOTIFY = "fe 0";
const FEATURES = { scalar: 1 + 2 + 32 + 64, simd: 1 + 2 + 4 + 16 + 32 + 64, relaxed: 1 + 2 + 4 + 8 + 16 + 32 + 64 };
const MAX_PAGES = 65520;
const folder = process.argv[2];
const declared = [...readFileSync("wasm/web.h", "utf8").matchAll(/SLM2_EXPORT\((\w+)\)\(/g)].map((match) => match[1]);
assert.ok(declared.length > 10);

// The reader sees what it must not miss.
const module = (...code) =>
  new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 10, code.length + 4, 1, code.length + 2, 0, ...code, 11]);
assert.deepEqual([...inspect(module(0x41, 1, 0x40, 0, 0x1a)).opcodes.keys()], ["41", GROW, "1a", "b"]);
assert.ok(inspect(module(0xfd, 0x93, 2)).opcodes.has(DOT));
assert.throws(() => inspect(module(0xfd, 0x94, 2)), /instruction fd 276/);

for (const [kind, features] of Object.entries(FEATURES)) {
  const bytes = readFileSync(`${folder}/slm2-${kind}.wasm`), m = inspect(bytes);
  const vectors = [...m.opcodes.keys()].filter((name) => name.startsWith("fd ")).map((name) => Number(name.slice(3)));
  assert.deepEqual(m.imports, [{ name: "env.memory", kind: 2, shared: true, min: 16, max: MAX_PAGES }]);
  assert.ok(!m.sections.includes(5), "a memory of its own");
  assert.deepEqual(m.custom.filter((name) => name !== "target_features"), [], "names or debugging");
  assert.ok(m.segments.length > 0 && m.segments.every((segment) => segment?.passive));
  assert.ok(!m.opcodes.has(GROW), "memory.grow");
  for (const name of [FILL, COPY, WAIT, NOTIFY]) assert.ok(m.opcodes.has(name), name);
  if (kind === "scalar") assert.deepEqual(vectors, []);
  else assert.deepEqual(vectors.filter((n) => n >= 256), kind === "relaxed" ? [275] : []);
  const functions = m.exports.filter((e) => e.kind === 0).map((e) => e.name);
  assert.deepEqual(functions.sort(), [...declared].sort());
  assert.deepEqual(m.exports.filter((e) => e.kind !== 0).map((e) => e.name).sort(), ["__heap_base", "__stack_pointer"]);

  let instances = "not compiled by this node";
  if (WebAssembly.validate(bytes)) {
    checkInstances(new WebAssembly.Module(bytes), features);
    instances = "two instances on one memory";
  }
  const size = [...m.opcodes.values()].reduce((a, b) => a + b);
  console.log(`ok module ${kind}: ${bytes.length} bytes, ${m.functions} functions, ${size} instructions, ${instances}`);
}

function checkInstances(compiled, features) {
  const on = (memory) => new WebAssembly.Instance(compiled, { env: { memory } }).exports;
  const shared = (initial, maximum) => new WebAssembly.Memory({ initial, maximum, shared: true });
  for (const pages of [16, 24000, MAX_PAGES]) assert.equal(on(shared(pages, pages)).probe_features(), features);
  assert.throws(() => on(shared(15, 15)), WebAssembly.LinkError);
  assert.throws(() => on(shared(16, MAX_PAGES + 1)), WebAssembly.LinkError);
  assert.throws(() => on(new WebAssembly.Memory({ initial: 16, maximum: 16 })), WebAssembly.LinkError);
  const memory = shared(32, 32), bytes = new Uint8Array(memory.buffer);
  const first = on(memory), data = bytes.findIndex((byte) => byte !== 0), end = first.__heap_base.value;
  assert.ok(data >= 262144 && data < end && end <= 1 << 20, "data lies between the stack and the first MiB");
  bytes[data] ^= 255; // data, and then what was zero, as the first instance may leave them
  bytes[end - 1] ^= 255;
  const before = bytes.slice();
  const second = on(memory);
  assert.ok(before.every((byte, i) => byte === bytes[i]), "the second instance touched the memory of the first");
  second.__stack_pointer.value = 1 << 21;
  assert.equal(first.__stack_pointer.value, 262144, "each instance has a stack pointer of its own");
}
