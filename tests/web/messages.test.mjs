/* Commands are made to the byte, events read to the byte; what callers may not ask is refused by name. */
import assert from "node:assert/strict";
import test from "node:test";
import { countCommand, decode, digestCommand, drawSeed, generateCommand, hex, shortest } from "../../web/engine/messages.js";
import { EVENT } from "../../web/engine/protocol.js";

const model = { context: 2048, defaults: { doSample: true, temperature: 0.6, topK: 20, topP: 0.95, minP: 0, repeatPenalty: 1 } };
const text = (s) => new TextEncoder().encode(s);
const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

test("GENERATE: every field in its place", () => {
  const { payload, seed } = generateCommand({ messages: [{ role: "user", content: "hé" }], thinking: false, specials: true,
    ignoreEnd: true, temperature: 0.5, topK: 7, topP: 0.25, minP: 0.125, repeatPenalty: 1.5, maxTokens: 9, seed: 2n ** 64n - 1n,
    stop: ["é", "ab"], speculate: 4 }, model);
  const v = view(payload);
  assert.deepEqual([0, 4, 12, 28, 40, 44, 48].map((at) => v.getUint32(at, true)), [0, 7, 7, 9, 4, 2, 12]);
  assert.deepEqual([8, 16, 20, 24].map((at) => v.getFloat32(at, true)), [0.5, 0.25, 0.125, 1.5]);
  assert.equal(v.getBigUint64(32, true), 2n ** 64n - 1n);
  assert.equal(seed, 2n ** 64n - 1n);
  assert.ok(payload.subarray(52, 96).every((b) => b === 0));
  assert.deepEqual([...payload.subarray(96, 108)], [2, 0, 0, 0, ...text("é"), 2, 0, 0, 0, ...text("ab")]);
  assert.equal(new TextDecoder().decode(payload.subarray(108)), '[{"role":"user","content":"hé"}]');
});

test("GENERATE: the model's defaults, greedy where it does not sample, drafts as they pay", () => {
  const v = view(generateCommand({ text: "a" }, model).payload);
  assert.deepEqual([8, 16, 20, 24].map((at) => v.getFloat32(at, true)), [0.6, 0.95, 0, 1].map(Math.fround));
  assert.deepEqual([0, 4, 12, 28, 40].map((at) => v.getUint32(at, true)), [1, 0, 20, 2048, 0xffffffff]);
  const greedy = generateCommand({ text: "a" }, { ...model, defaults: { ...model.defaults, doSample: false } });
  assert.equal(view(greedy.payload).getFloat32(8, true), 0);
});

test("tools go with the messages, ids as words", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const payload = generateCommand({ messages: [], tools, seed: 1 }, model).payload;
  assert.deepEqual(JSON.parse(new TextDecoder().decode(payload.subarray(96))), { messages: [], tools });
  const ids = generateCommand({ ids: [1, 70000], seed: 1 }, model).payload;
  assert.deepEqual([...new Uint32Array(ids.slice(96).buffer)], [1, 70000]);
  assert.deepEqual([...new Uint32Array(countCommand({ ids: new Uint32Array([5]) }).buffer)], [2, 0, 5]);
  assert.deepEqual([...new Uint32Array(digestCommand([3, 4], 2).buffer)], [2, 2, 3, 4]);
});

const bad = { nothing: {}, "two prompts": { text: "a", ids: [1] }, "no text": { text: 5 }, "no ids": { ids: 5 }, "an id": { ids: [1.5] },
  "a negative id": { ids: [-1] }, "no messages": { messages: null }, "tools without messages": { text: "a", tools: [] },
  temperature: { text: "a", temperature: "1" }, NaN: { text: "a", topP: NaN }, topK: { text: "a", topK: -1 }, maxTokens: { text: "a", maxTokens: 0 },
  "seed below 0": { text: "a", seed: -1 }, "seed beyond 2^53": { text: "a", seed: 2 ** 53 }, "seed beyond 2^64": { text: "a", seed: 2n ** 64n },
  "half a seed": { text: "a", seed: 1.5 }, "stop no list": { text: "a", stop: "x" }, "empty stop": { text: "a", stop: [""] },
  "long stop": { text: "a", stop: ["é".repeat(129)] }, "17 stops": { text: "a", stop: Array(17).fill("x") }, unknown: { text: "a", top_k: 1 } };
for (const [what, params] of Object.entries(bad))
  test(`refused: ${what}`, () => assert.throws(() => generateCommand(params, model), { name: "Slm2Error", code: "ARGUMENT" }));

test("drawn seeds differ, and JSON keeps them", () => {
  const seeds = Array.from({ length: 100 }, () => drawSeed());
  assert.equal(new Set(seeds).size, 100);
  assert.ok(seeds.every((seed) => seed < 2n ** 53n) && seeds.some((seed) => seed > 2n ** 48n));
});

test("an f32 is shown as the decimal it came from", () => {
  for (const value of [0, 0.6, 0.95, 1, 1.05, 20, 1e-10, 3.4e38, 0.1234567]) assert.equal(shortest(Math.fround(value)), value);
});

/** A payload from parts: numbers are u32, {f32}, {f64}, {u64}, strings with their length, Uint8Arrays as they are. */
function build(...parts) {
  const bytes = parts.flatMap((part) => {
    if (part instanceof Uint8Array) return [...part];
    if (typeof part === "string") return [...new Uint8Array(new Uint32Array([text(part).length]).buffer), ...text(part)];
    const one = typeof part === "number" ? new Uint32Array([part]) : "f32" in part ? new Float32Array([part.f32])
      : "f64" in part ? new Float64Array([part.f64]) : new BigUint64Array([part.u64]);
    return [...new Uint8Array(one.buffer)];
  });
  return Uint8Array.from(bytes);
}
const hash = Uint8Array.from({ length: 32 }, (_, i) => i * 8);
const event = (op, ...parts) => ({ op, request: 1, payload: build(...parts) });

test("READY", () => {
  const words = [2816, 5, 4, 2, 64, 256, 768, 2048, 1024, 1, 1, 2, 1, 2810, 1, 20];
  const e = event(EVENT.READY, hash, ...words, { f32: 0.6 }, { f32: 0.95 }, { f32: 1 }, 0, "apache-2.0", "unknown", "wasm128");
  assert.deepEqual(decode(e), { identity: hex(hash), vocab: 2816, layers: 5, heads: 4, kvHeads: 2, headDim: 64, hidden: 256, intermediate: 768,
    maxPositions: 2048, context: 1024, profile: "q8", kv: "f16", threads: 2, chatFormat: 1, tokens: 2810, verified: false,
    license: "apache-2.0", source: "unknown", backend: "wasm128",
    defaults: { doSample: true, temperature: 0.6, topK: 20, topP: 0.95, minP: 0, repeatPenalty: 1 } });
});

test("TOKEN, DONE, FAILED, PROGRESS, COUNTED", () => {
  assert.deepEqual(decode(event(EVENT.TOKEN, 7, 3, { f32: -0.5 }, 1, 0, "é")),
    { id: 7, position: 3, logprob: -0.5, channel: "reasoning", finish: null, text: "é" });
  assert.deepEqual(decode(event(EVENT.TOKEN, 0xffffffff, 3, { f32: 0 }, 0, 3, "")),
    { id: null, position: 3, logprob: 0, channel: "answer", finish: "cancelled", text: "" });
  assert.deepEqual(decode(event(EVENT.DONE, 2, 10, 4, 5, { f64: 1.5 }, { f64: 2.5 }, 3, 1, hash)), { finish: "length", promptTokens: 10,
    reusedTokens: 4, completionTokens: 5, prefillMs: 1.5, decodeMs: 2.5, drafted: 3, accepted: 1, digest: hex(hash) });
  const { error } = decode(event(EVENT.FAILED, 15, 0, { u64: 2n ** 64n - 1n }, "prompt", "ids", "too long"));
  assert.deepEqual([error.code, error.message, error.details], ["CONTEXT_OVERFLOW", "ids: too long", { operation: "prompt", name: "ids" }]);
  assert.equal(decode(event(EVENT.FAILED, 5, 0, { u64: 9n }, "a", "", "b")).error.details.offset, 9);
  assert.deepEqual(decode(event(EVENT.PROGRESS, 2, 3, 4, 0)), { phase: "verify", done: 3072, total: 4096 });
  assert.deepEqual(decode(event(EVENT.COUNTED, 3, 4)), { tokens: 3, bytes: 4 });
});

test("a payload that is too short or too long is the engine's fault", () => {
  for (const parts of [[7], [7, 8, 9]]) assert.throws(() => decode(event(EVENT.COUNTED, ...parts)), { code: "INTERNAL_INVARIANT" });
  assert.throws(() => decode(event(EVENT.TOKEN, 7, 3, 0, 0, 0, 100)), { code: "INTERNAL_INVARIANT" });
});
