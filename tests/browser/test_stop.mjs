/* Stopping: whatever is stopped, whenever and however, the next answer has the bits of a fresh engine's. */
import assert from "node:assert/strict";
import { random, test } from "./harness.mjs";
import { PROMPTS, keepMemories, modelServer, native, openPage } from "./engine.mjs";

const user = (content) => [{ role: "user", content }];
const LONG = "Once upon a time there was a fox. ".repeat(60);

/** Native digests of short answers to all prompts: what every answer after a stop must be. */
async function expected(t) {
  return Promise.all(PROMPTS.map((content) =>
    native(t, "models/demo.slm2", "-p", content, "--seed", "3", "--max-tokens", "12").then((answer) => answer.digest)));
}

for (const threads of [1, 2]) {
  test(`after each of 100 random stops the next answer is right: ${threads} threads`, { timeout: 300 }, async (t) => {
    const seed = 20261130 + threads;
    const next = random(seed);
    const pick = (list) => list[Math.floor(next() * list.length)];
    const { page, run } = await openPage(t, await modelServer(t));
    await run("create", { threads });
    await run("load", { url: "/models/demo.slm2" });
    const right = await expected(t);
    const took = [];
    const ended = {};
    for (let i = 0; i < 100; i++) {
      const how = pick(["stop", "signal", "leave", "twice"]);
      const when = next() < 0.5 ? { ms: Math.floor(next() * 120) } : { tokens: 1 + Math.floor(next() * 12) };
      const params = next() < 0.3 ? { text: LONG, maxTokens: 200, seed: i } : { messages: user(pick(PROMPTS)), maxTokens: 200, seed: i };
      const what = `stop ${i} of seed ${seed}: ${how} at ${JSON.stringify(when)}`;
      const out = await run("stopped", { ignoreEnd: true, ...params }, how, when);
      const key = out.code || out.finish || "left";
      ended[key] = (ended[key] ?? 0) + 1;
      if (out.ms) took.push(out.ms);
      if (how === "signal" || how === "twice") assert.ok(["ABORTED", ""].includes(out.code), `${what}: ${out.code}`);
      else assert.equal(out.code, "", what);
      assert.deepEqual(await run("state"), { state: "ready", waiting: 0 }, what);
      const which = Math.floor(next() * PROMPTS.length);
      const after = await run("answer", { messages: user(PROMPTS[which]), maxTokens: 12, seed: 3 });
      assert.equal(after.digest, right[which], `${what}: the answer after it`);
    }
    took.sort((a, b) => a - b);
    t.note(`seed ${seed}; ended: ${JSON.stringify(ended)}; stop to free: median ${took[took.length >> 1].toFixed(0)} ms, `
      + `longest ${took.at(-1).toFixed(0)} ms; ${await page.evaluate(() => globalThis.state.longTasks)} long tasks`);
  });
}

test("a stopped answer keeps what it had, and those bits are the answer's first", { timeout: 120 }, async (t) => {
  const { run } = await openPage(t, await modelServer(t));
  await run("create");
  await run("load", { url: "/models/demo.slm2" });
  const params = { messages: user(PROMPTS[1]), seed: 11, maxTokens: 200, ignoreEnd: true };
  const whole = await run("answer", params);
  for (const tokens of [1, 5, 20]) {
    const part = await run("stopped", params, "stop", { tokens });
    assert.equal(part.finish, "cancelled");
    assert.ok(part.ids.length >= tokens && part.ids.length < whole.ids.length, `${part.ids.length} tokens`);
    assert.deepEqual(part.ids, whole.ids.slice(0, part.ids.length));
  }
});

test("the number of another request stops nothing, whenever it is stored", { timeout: 120 }, async (t) => {
  const { page, run } = await openPage(t, await modelServer(t));
  await keepMemories(page);
  await run("create", { threads: 2 });
  await run("load", { url: "/models/demo.slm2" });
  const [right] = await expected(t);
  const out = await page.evaluate(async (content) => {
    const words = new Int32Array(globalThis.memories.at(-1).buffer, 1048576, 16), digests = [];
    let stored = 0;
    for (let i = 0; i < 30; i++) { /* request 1 was the load */
      const store = () => { Atomics.store(words, 3, [i + 1, i + 100, 1, -2][i % 4]), stored++; };
      const timer = setInterval(store, 1);
      digests.push((await globalThis.run.answer({ messages: [{ role: "user", content }], maxTokens: 12, seed: 3 })).digest);
      clearInterval(timer);
    }
    const all = globalThis.run.answer({ text: "Once", ignoreEnd: true, maxTokens: 1000, seed: 1 });
    await globalThis.run.pause(50);
    Atomics.store(words, 3, -1);
    return { stored, digests: [...new Set(digests)], finish: (await all).finish };
  }, PROMPTS[0]);
  assert.ok(out.stored > 30, `stored ${out.stored} times`);
  assert.deepEqual([out.digests, out.finish], [[right], "cancelled"]);
});

test("waiting requests: one is taken back, the others run", { timeout: 120 }, async (t) => {
  const { page, run } = await openPage(t, await modelServer(t));
  await run("create");
  await run("load", { url: "/models/demo.slm2" });
  const right = await expected(t);
  const out = await page.evaluate(async (prompts) => {
    const ask = (content) => globalThis.run.tryAnswer({ messages: [{ role: "user", content }], maxTokens: 12, seed: 3 });
    const first = globalThis.run.stopped({ text: "Once", ignoreEnd: true, maxTokens: 300, seed: 1 }, "signal", { tokens: 30 });
    const taken = globalThis.run.stopped({ text: "Twice", maxTokens: 300, seed: 1 }, "signal", { ms: 0 });
    const others = prompts.map(ask);
    return { first: await first, taken: await taken, others: await Promise.all(others) };
  }, PROMPTS);
  assert.equal(out.first.code, "ABORTED");
  assert.deepEqual([out.taken.code, out.taken.ids.length], ["ABORTED", 0]);
  assert.deepEqual(out.others.map((o) => o.value?.digest ?? o.error), right);
});

test("a load is stopped, and the next one works", { timeout: 120 }, async (t) => {
  const server = await modelServer(t);
  const { page, run } = await openPage(t, server);
  await run("create");
  server.rule("/models/demo.slm2", { slow: 2000000 });
  const out = await page.evaluate(async () => {
    const loading = globalThis.run.tryLoad({ url: "/models/demo.slm2" });
    await globalThis.run.pause(700);
    await globalThis.run.unload();
    return loading;
  });
  assert.equal(out.error?.code, "ABORTED");
  server.rule("/models/demo.slm2", null);
  assert.equal((await run("state")).state, "empty");
  await run("load", { url: "/models/demo.slm2" });
  const [right] = await expected(t);
  assert.equal((await run("answer", { messages: user(PROMPTS[0]), maxTokens: 12, seed: 3 })).digest, right);
});

test("an engine that sleeps is unloaded at once", { timeout: 120 }, async (t) => {
  const { run } = await openPage(t, await modelServer(t));
  await run("create", { threads: 3 });
  const took = [];
  for (let i = 0; i < 10; i++) {
    await run("load", { url: "/models/demo.slm2" });
    await run("answer", { ids: [1, 2, 3], maxTokens: 2 });
    await run("pause", 20 + 25 * i); /* the threads sleep in periods of a quarter of a second */
    took.push((await run("tryUnload")).ms);
  }
  took.sort((a, b) => a - b);
  t.note(`median ${took[5].toFixed(0)} ms, longest ${took.at(-1).toFixed(0)} ms`);
  assert.ok(took[5] < 60, `${took.map(Math.round)} ms`);
});
