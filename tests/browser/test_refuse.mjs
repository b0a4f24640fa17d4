/* Where the engine cannot work it says so in plain words, and what is asked wrongly is refused by name. */
import assert from "node:assert/strict";
import { test } from "./harness.mjs";
import { FULL, modelServer, openPage } from "./engine.mjs";

const refused = (run, ...args) => run(...args).then(() => assert.fail("it was not refused"), (error) => error);

for (const header of ["coop", "coep"]) {
  test(`without ${header} the missing header is named`, { engines: FULL }, async (t) => {
    const { run } = await openPage(t, await modelServer(t), undefined, `?without=${header}`);
    const error = await refused(run, "create");
    assert.equal(error.code, "NOT_ISOLATED");
    assert.match(error.message, /Cross-Origin-Opener-Policy.*Cross-Origin-Embedder-Policy/);
  });
}

test("a worker that the server sends without its headers ends the load with a reason", { timeout: 60 }, async (t) => {
  const server = await modelServer(t);
  server.rule("/engine/engine-worker.js", { without: "coep" });
  const { page, run } = await openPage(t, server);
  page.expect(/./);
  await run("create");
  const { error } = await run("tryLoad", { url: "/models/demo.slm2" });
  assert.ok(error, "it was loaded");
  assert.match(error.message, /header|refused/);
  server.rule("/engine/engine-worker.js", null);
  const next = await run("tryLoad", { url: "/models/demo.slm2" });
  assert.ok(next.value, JSON.stringify(next.error));
});

test("a module that is not the one that was built is refused", { timeout: 60 }, async (t) => {
  const server = await modelServer(t);
  const { run } = await openPage(t, server);
  await run("create", { module: "scalar", threads: 1 });
  server.rule("/wasm/slm2-scalar.wasm", { flip: 2000 });
  const { error } = await run("tryLoad", { url: "/models/demo.slm2" });
  assert.equal(error?.code, "VERSION");
  server.rule("/wasm/slm2-scalar.wasm", null);
  const next = await run("tryLoad", { url: "/models/demo.slm2" });
  assert.ok(next.value, JSON.stringify(next.error));
});

test("arguments", { timeout: 60 }, async (t) => {
  const { run } = await openPage(t, await modelServer(t));
  for (const options of [{ module: "avx" }, { threads: 0 }, { threads: 1.5 }, { maxPages: 0 }, { maxPages: 65537 }, { colour: 1 }]) {
    const error = await refused(run, "create", options);
    assert.match(error.code, /ARGUMENT|UNSUPPORTED/, JSON.stringify(options));
  }
  await run("create");
  assert.equal((await refused(run, "answer", { text: "x" })).code, "NO_MODEL");
  for (const options of [{ kv: "q4" }, { profile: "fast" }, { context: -1 }, { context: 1e9 }, { temperature: 1 }]) {
    const { error } = await run("tryLoad", { url: "/models/demo.slm2" }, options);
    assert.match(error?.code ?? "loaded", /ARGUMENT|MEMORY/, JSON.stringify(options));
  }
  await run("load", { url: "/models/demo.slm2" });
  const user = [{ role: "user", content: "Hi" }];
  const bad = [
    {}, { text: "a", ids: [1] }, { messages: user, temperature: -1 }, { messages: user, temperature: "hot" }, { messages: user, topP: 2 },
    { messages: user, topK: 1.5 }, { messages: user, maxTokens: 0 }, { messages: user, seed: -1 }, { messages: user, seed: 2 ** 60 },
    { messages: user, stop: "x" }, { messages: user, stop: [""] }, { messages: user, stop: Array(17).fill("x") },
    { messages: user, stop: ["x".repeat(257)] }, { messages: user, best_of: 2 }, { ids: [-1] }, { ids: [4294967295] }, { ids: [999999] },
    { ids: [] }, { ids: "1,2" }, { messages: [{ role: "emperor", content: "Hi" }] }, { messages: "Hi" },
    { messages: user, minP: 2 }, { messages: user, repeatPenalty: 0 }, { text: "a", tools: [] }, { text: 5 },
  ];
  for (const params of bad) {
    const { value, error } = await run("tryAnswer", { maxTokens: 3, ...params });
    assert.ok(error, `${JSON.stringify(params)} gave ${JSON.stringify(value)}`);
    assert.match(error.code, /^(ARGUMENT|TOKEN|CHAT|JSON|CONTEXT_OVERFLOW)$/, `${JSON.stringify(params)}: ${error.message}`);
    assert.equal((await run("state")).state, "ready", JSON.stringify(params));
  }
  const long = await run("tryAnswer", { text: "word ".repeat(60000) });
  assert.match(long.error?.code ?? "", /CONTEXT_OVERFLOW|ARGUMENT/);
  assert.match(long.error.message, /\d/);
  const fine = await run("answer", { messages: user, maxTokens: 3, temperature: 0 });
  assert.equal(fine.ids.length, 3);
});
