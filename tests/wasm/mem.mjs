// What the compiler calls by itself [wasm/mem.c], against JavaScript's: memory functions at every small length and distance,
// products of 64-bit numbers against BigInt. Usage: node tests/wasm/mem.mjs digest.wasm
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./threads.mjs";

const { c, at } = await open(readFileSync(process.argv[2]), 1);
const N = 96, base = c.take(4 * N), memory = at(base, 4 * N);
const fresh = () => memory.set(Uint8Array.from(memory, (_, i) => (i * 7 + 3) % 251));
let checks = 0;
const same = (expected, what) => {
  assert.deepEqual(memory.slice(), expected, what);
  checks += 1;
};
for (let n = 0; n <= 40; n++)
  for (let to = 60; to <= 100; to++) {
    fresh();
    const expected = memory.slice().copyWithin(to, 80, 80 + n);
    c.mem_move(base + to, base + 80, n);
    same(expected, `memmove of ${n} from 80 to ${to}`);
    fresh();
    const copied = memory.slice().copyWithin(to + 2 * N, 80, 80 + n);
    c.mem_copy(base + to + 2 * N, base + 80, n);
    same(copied, `memcpy of ${n}`);
    const filled = memory.slice().fill(to + 200 & 255, to, to + n);
    c.mem_set(base + to, to + 200 - 256, n); // as an unsigned byte
    same(filled, `memset of ${n}`);
  }
for (let n = 0; n <= 40; n++)
  for (let differs = 0; differs <= n; differs++)
    for (const [a, b] of [[1, 255], [255, 1], [127, 128]]) {
      memory.fill(9);
      if (differs < n) memory[differs] = a, memory[N + differs] = b;
      const sign = Math.sign(c.mem_compare(base, base + N, n));
      assert.equal(sign, differs < n ? Math.sign(a - b) : 0, `memcmp of ${n} at ${differs}`);
      checks += 1;
    }

const edges = [0n, 1n, 2n, 3n, 0xffffn, 0x7fffffffn, 0x80000000n, 0xffffffffn, 0x100000000n, 0x100000001n, 0x5555555555555555n,
  0x7fffffffffffffffn, 0x8000000000000000n, 0xfffffffffffffffen, 0xffffffffffffffffn];
for (const a of edges)
  for (const b of edges.concat(Array.from({ length: 64 }, (_, k) => 1n << BigInt(k)))) {
    const out = c.take(8), fits = c.mul_u64(a, b, out) === 1;
    assert.equal(fits, a * b < 1n << 64n, `${a} * ${b}`);
    if (fits) assert.equal(new DataView(at(out, 8).slice().buffer).getBigUint64(0, true), a * b);
    c.put_back(out);
    checks += 1;
  }
console.log(`ok wasm mem: ${checks} checks`);
