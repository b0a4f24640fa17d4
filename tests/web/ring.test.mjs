/* Rings: nothing lost, nothing twice, whatever the sizes and wherever they wrap; what cannot be is refused for good. */
import assert from "node:assert/strict";
import test from "node:test";
import { COMMAND, EVENT, FLAG_MORE, PAYLOAD_MAX, RING_BYTES, WORD } from "../../web/engine/protocol.js";
import { CommandWriter, EventReader, controlWords, parts } from "../../web/engine/ring.js";
import { FakeEngine, newMemory } from "./fake_engine.mjs";

const bytes = (n, seed) => Uint8Array.from({ length: n }, (_, i) => (i * 31 + seed * 7) & 255);
/** Sizes in [0, PAYLOAD_MAX] of all kinds, small ones more often, always the same. */
function sizes(n) {
  let state = 12345;
  return Array.from({ length: n }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return [state % 40, state % 5000, state % (PAYLOAD_MAX + 1), PAYLOAD_MAX, 0][(state >>> 20) % 5];
  });
}

for (const start of [0, RING_BYTES - 16, 2 ** 32 - RING_BYTES, 2 ** 32 - 48])
  test(`commands arrive whole and in order from ${start} on`, () => {
    const memory = newMemory(), engine = new FakeEngine(memory);
    let rings = 0, read = 0;
    engine.startAt(start);
    const writer = new CommandWriter(memory, () => rings++), sent = sizes(3000);
    const take = () => {
      for (let got; (got = engine.read()) !== null; read++) {
        assert.equal(got.request, read + 1);
        assert.equal(got.op, 1 + read % 6);
        assert.deepEqual(got.payload, bytes(sent[read], read));
      }
    };
    for (const [i, n] of sent.entries()) {
      while (!writer.write(1 + i % 6, i + 1, 0, bytes(n, i))) take();
      if (i % 7 === 0) take();
    }
    take();
    assert.equal(read, sent.length);
    assert.equal(rings, sent.length);
  });

for (const start of [0, RING_BYTES - 16, 2 ** 32 - 32])
  test(`events arrive whole and in order from ${start} on`, () => {
    const memory = newMemory(), engine = new FakeEngine(memory), words = controlWords(memory);
    engine.startAt(start);
    let rings = 0, read = 0, full = 0;
    const reader = new EventReader(memory, () => rings++), sent = sizes(3000);
    const take = (limit) => {
      for (const got of reader.read(limit)) {
        assert.equal(got.request, read);
        assert.deepEqual(got.payload, bytes(sent[read], read));
        assert.ok(!(got.payload.buffer instanceof SharedArrayBuffer));
        read++;
      }
    };
    for (const [i, n] of sent.entries()) {
      while (!engine.write(1 + i % 10, i, bytes(n, i))) {
        const before = rings;
        full++;
        take(3);
        assert.ok(rings > before, "the doorbell rings after a read of a full ring");
      }
    }
    while (reader.used > 0) take(64);
    assert.equal(read, sent.length);
    assert.ok(full > 100);
    assert.equal(words[WORD.EVENT_HEAD], words[WORD.EVENT_TAIL]);
    engine.write(1, 9);
    const before = rings;
    assert.equal(reader.read(9).length, 1);
    assert.equal(rings, before, "no doorbell after a read of a ring that is nearly empty");
  });

test("a long command is parts, of which all but the last say more", () => {
  for (const n of [0, 1, PAYLOAD_MAX - 1, PAYLOAD_MAX, PAYLOAD_MAX + 1, 3 * PAYLOAD_MAX, 3 * PAYLOAD_MAX + 5]) {
    const whole = bytes(n, 1), cut = parts(whole);
    assert.equal(cut.length, Math.max(1, Math.ceil(n / PAYLOAD_MAX)));
    assert.ok(cut.every(({ flags }, i) => flags === (i < cut.length - 1 ? FLAG_MORE : 0)));
    assert.deepEqual(Uint8Array.from(cut.flatMap(({ part }) => [...part])), whole);
  }
});

test("a full ring takes nothing more, and loses nothing", () => {
  const memory = newMemory(), engine = new FakeEngine(memory), writer = new CommandWriter(memory, () => {});
  let n = 0;
  while (writer.write(COMMAND.COUNT, n + 1, 0, bytes(1000, n))) n++;
  assert.equal(n, Math.floor(RING_BYTES / 1024));
  assert.equal(writer.write(COMMAND.COUNT, n + 1, 0, bytes(0, 0)), false);
  for (let i = 0; i < n; i++) assert.deepEqual(engine.read().payload, bytes(1000, i));
  assert.equal(engine.read(), null);
});

const broken = {
  "an op that is none": (view, at) => view.setUint16(at + 4, 11, true),
  "flags": (view, at) => view.setUint16(at + 6, 1, true),
  "a payload longer than any": (view, at) => view.setUint32(at, PAYLOAD_MAX + 1, true),
  "a payload beyond the head": (view, at) => view.setUint32(at, 64, true),
  "a sequence that jumps": (view, at) => view.setUint32(at + 12, 2, true),
  "a sequence that repeats": (view, at) => view.setUint32(at + 12, 0, true),
  "a filler in the middle": (view, at) => view.setUint16(at + 4, 0, true),
};
for (const [what, change] of Object.entries(broken))
  test(`${what} is refused`, () => {
    const memory = newMemory(), engine = new FakeEngine(memory), reader = new EventReader(memory, () => {});
    engine.write(EVENT.RESET, 1);
    engine.write(EVENT.TOKEN, 1, bytes(40, 2), change);
    assert.equal(reader.read(1).length, 1);
    for (let i = 0; i < 2; i++) assert.throws(() => reader.read(1), { code: "INTERNAL_INVARIANT" });
  });

for (const head of [8, RING_BYTES + 16, -16])
  test(`a head of ${head} is refused`, () => {
    const memory = newMemory(), reader = new EventReader(memory, () => {});
    controlWords(memory)[WORD.EVENT_HEAD] = head;
    assert.throws(() => reader.read(9), { code: "INTERNAL_INVARIANT" });
  });
