// The pool over workers [wasm/pool.c]: workers that come late or never, more of them than processors, an overflowed stack, quit.
// Usage: node tests/wasm/pool.mjs digest.wasm
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./threads.mjs";

const STACKS = (1 << 20) + 4096 + (1 << 20), STACK = 65536, CANARY = 4096, INTERNAL_INVARIANT = 18, Q8 = 1, F32 = 0, PANELS = 1;
const bytes = readFileSync(process.argv[2]);

// The logits of 40 ids of the tiny model, or the status.
function logits({ c, at }) {
  const place = (source) => {
    const address = c.take(source.length);
    at(address, source.length).set(source);
    return address;
  };
  const file = c.take(8 << 20), n = c.take(4), start = c.take(0);
  assert.equal(c.synth(place(new TextEncoder().encode("tiny\0")), PANELS, file, n), 0);
  const ids = place(new Uint8Array(Uint32Array.from({ length: 40 }, (_, i) => 3 * i).buffer));
  const status = c.digest(file, new DataView(at(n, 4).slice().buffer).getUint32(0, true), ids, 40, Q8, F32, 7);
  const hex = new TextDecoder().decode(at(c.result(), 64).slice());
  c.put_back(start);
  return status === 0 ? hex : status;
}

const alone = await open(bytes, 1);
const right = logits(alone);
assert.match(right, /^[0-9a-f]{64}$/);

for (const [threads, arrive] of [[2, 0], [3, 1], [8, 7], [64, 2]]) {
  const some = await open(bytes, threads, { arrive });
  for (let i = 0; i < 3; i++) assert.equal(logits(some), right, `${arrive} of ${threads - 1} workers`);
  const used = (i) => STACK - some.at(STACKS + (i - 1) * STACK, STACK).findIndex((byte, k) => k >= CANARY && byte !== 0);
  const works = (i) => used(i) <= STACK;
  for (let i = 0; i < 100 && arrive > 0 && !works(1); i++) assert.equal(logits(some), right);
  if (arrive > 0) assert.ok(works(1), "the first compute worker never computed");
  for (let i = 1; i <= arrive; i++) {
    assert.ok(some.at(STACKS + (i - 1) * STACK, CANARY).every((byte) => byte === 0xa5), "a canary is in place");
    if (works(i)) assert.ok(used(i) < STACK / 2, `compute thread ${i} used ${used(i)} bytes of its stack`);
  }
  await some.close();
  assert.equal(logits(some), right, "the pool has ended: the caller does it alone");
}

const late = await open(bytes, 3, { arrive: 0 });
assert.equal(logits(late), right);
await late.arrive(1);
await late.arrive(2);
assert.equal(logits(late), right);
late.at(STACKS + STACK + CANARY - 1, 1)[0] ^= 1; // of compute worker 2, the last byte that an overflow meets first
assert.equal(logits(late), INTERNAL_INVARIANT);
await late.close();

const idle = await open(bytes, 2, { pool: false });
await idle.close(); // a worker for which there never was a pool leaves too
console.log("ok wasm pool: late and absent workers, 64 threads, canaries, quit");
