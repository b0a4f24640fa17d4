/* What breaks is poisoned: the reason is told, what ran fails with its tokens, and a new engine gives the same bits again. */
import assert from "node:assert/strict";
import { test } from "./harness.mjs";
import { PROMPTS, keepMemories, modelServer, openPage } from "./engine.mjs";

const MODEL = { url: "/models/demo.slm2" };
const params = { messages: [{ role: "user", content: PROMPTS[1] }], seed: 7, ignoreEnd: true, maxTokens: 1500 };
const short = { ...params, maxTokens: 40 };

/** A page with the demo loaded, that keeps hold of the memories that the engine makes. */
async function begin(t, threads) {
  const { page, run } = await openPage(t, await modelServer(t));
  await keepMemories(page);
  await run("create", { threads });
  const { plan } = await run("load", MODEL);
  return { page, run, plan, right: (await run("answer", short)).digest };
}

/** Begins an answer, and while it runs writes bytes into the engine's memory until it has ended. */
const breakAt = (page, at, n, value) => page.evaluate(async (prompt, from, bytes, fill) => {
  let over = false;
  const answer = globalThis.run.tryAnswer(prompt).finally(() => { over = true; });
  for (let i = 0; !over && i < 5000; i++) {
    await new Promise((done) => setTimeout(done, 1));
    if (i >= 30) new Uint8Array(globalThis.memories.at(-1).buffer, from, bytes).fill(fill);
  }
  return answer;
}, params, at, n, value);

const CONTROL = 1048576;
const breaks = {
  "a head of the event ring that cannot be": { at: () => CONTROL + 40, n: 4, value: 3, why: /event ring|event head/ },
  "what the engine keeps of the model, overwritten": { at: (plan) => plan.atIndex, n: 4096, value: 0xee, why: /slm2 (engine|compute 1): / },
  "the stack of a compute worker that overflowed": { at: (plan) => plan.atStacks, n: 64, value: 0, why: /compute worker 1 overflowed/ },
};
for (const [what, { at, n, value, why }] of Object.entries(breaks))
  test(`poisoned: ${what}`, { timeout: 60 }, async (t) => {
    const { page, run, plan, right } = await begin(t, 2);
    page.expect(/./);
    const { error } = await breakAt(page, at(plan), n, value);
    assert.equal(error?.code, "POISONED", JSON.stringify(error));
    assert.match(error.message, why);
    assert.ok(Array.isArray(error.tokens.ids));
    assert.equal((await run("state")).state, "poisoned");
    assert.equal((await run("tryAnswer", short)).error.code, "POISONED");
    const { ms } = await run("tryLoad", MODEL);
    assert.equal((await run("answer", short)).digest, right);
    t.note(`a new engine was ready after ${ms.toFixed(0)} ms`);
  });

test("a value that is not finite ends the answer, not the engine", { timeout: 60 }, async (t) => {
  const { page, run, plan, right } = await begin(t, 1);
  const scratch = plan.atSession + plan.session - plan.kv - plan.scratch; /* f32 activations; 0xffffffff is a NaN */
  const { error } = await breakAt(page, scratch, plan.scratch - 64, 0xff);
  assert.equal(error?.code, "NUMERICAL", JSON.stringify(error));
  assert.equal((await run("state")).state, "ready");
  await run("load", MODEL);
  assert.equal((await run("answer", short)).digest, right);
});

test("an engine without a sign of life is ended after ten seconds", { timeout: 60 }, async (t) => {
  const server = await modelServer(t);
  server.rule("/engine/engine-worker.js", { to: "/test/stuck_worker.js" });
  const { page, run } = await openPage(t, server);
  page.expect(/./);
  await run("create", { threads: 1 });
  const { error, ms } = await run("tryLoad", MODEL);
  assert.equal(error?.code, "POISONED", JSON.stringify(error));
  assert.match(error.message, /no sign of life for 10 seconds/);
  assert.equal(error.details.silentMs, 10000); /* of its own looks: a machine that slept does not count */
  assert.ok(ms > 9000, `${ms} ms`);
  server.rule("/engine/engine-worker.js", null);
  const next = await run("tryLoad", MODEL);
  assert.ok(next.value, JSON.stringify(next.error));
});

for (const [what, script] of [["engine", "engine-worker"], ["compute worker", "compute-worker"], ["store", "store-worker"], ["trial", "trial-worker"]])
  test(`a worker that never says hello ends the load with its name: ${what}`, { timeout: 60 }, async (t) => {
    const server = await modelServer(t);
    server.rule(`/engine/${script}.js`, { to: "/test/mute_worker.js" });
    const { run } = await openPage(t, server);
    await run("create", { threads: what === "trial" ? "auto" : 2 });
    const { error, ms } = await run("tryLoad", MODEL);
    assert.equal(error?.code, "NO_START", JSON.stringify(error));
    assert.match(error.message, new RegExp(`^slm2 (${what}|compute 1) did not start within 15 seconds`));
    assert.ok(ms > 13000 && ms < 30000, `${ms} ms`);
    assert.equal((await run("state")).state, "empty");
    server.rule(`/engine/${script}.js`, null);
    const next = await run("tryLoad", MODEL);
    assert.ok(next.value, JSON.stringify(next.error));
  });
