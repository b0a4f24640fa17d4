/* The same bits as everywhere: the first part of tests/golden/digests.txt, and long answers beside those of the native
 * command, in every module that the engine admits and with one and two threads. Chunk sizes, profiles and types of the cache
 * are those of the digests. Right values are the file's and the command's, never the browser's.
 */
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import { test } from "./harness.mjs";
import { modelServer, native, openPage, synthetic } from "./engine.mjs";

const WAYS = ["scalar", "simd", "relaxed"].flatMap((module) => [1, 2].map((threads) => ({ module, threads })));
const PROFILES = ["f32", "q8"];
const KV = ["f32", "f16"];

/** NAME -> SHA-256 of the first part of the file. */
const golden = new Map(fs.readFileSync("tests/golden/digests.txt", "utf8").split("# More")[0].split("\n")
  .filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.split(" ")));
/** The first n ids of the sequence of tests/golden/run.sh. */
const ids = (n) => Array.from({ length: n }, (_, i) => (i * i * 7 + 13 * i + 5) % 280);

/** An engine of this kind, or null where the browser does not admit the module, which must then be refused by name. */
async function engineOf(t, way, ...shapes) {
  const { run } = await openPage(t, await modelServer(t, ...shapes));
  const { simd, relaxed } = await run("create");
  if (way.module === "scalar" || (way.module === "simd" ? simd : relaxed)) {
    await run("create", way);
    return run;
  }
  await assert.rejects(run("create", way), (error) => error.code === "UNSUPPORTED" && error.message.includes(way.module));
  t.note("not admitted by this browser");
  return null;
}

test("the models are those of the digests", {}, async (t) => {
  for (const name of ["tiny", "small", "demo"]) {
    const file = name === "demo" ? "models/demo.slm2" : await synthetic(t, name);
    assert.equal(crypto.createHash("sha256").update(fs.readFileSync(file)).digest("hex"), golden.get(`${name}/file`));
  }
});

for (const way of WAYS) {
  test(`golden digests: ${way.module}, ${way.threads} threads`, { timeout: 180 }, async (t) => {
    const run = await engineOf(t, way, "tiny", "small");
    if (!run) return;
    const seen = new Set();
    const same = (name, digest, how) => {
      assert.equal(digest, golden.get(name), `${name}, ${how}`);
      seen.add(name);
    };
    for (const [set, model, n] of [["tiny16", "tiny", 16], ["small8", "small", 8], ["demo8", "demo", 8]]) {
      for (const profile of PROFILES) {
        for (const kv of KV) {
          const loaded = await run("load", { url: `/models/${model}.slm2` }, { profile, kv });
          assert.equal(loaded.threads, way.threads);
          for (const chunk of [1, 3, 128]) {
            same(`${set}/logits/${profile}/kv-${kv}`, (await run("digest", ids(n), chunk)).digest, `chunk ${chunk}`);
          }
          if (model === "demo" && kv === "f32") await answers(run, profile, same);
        }
      }
    }
    const expected = [...golden.keys()].filter((name) => !name.endsWith("/file"));
    assert.deepEqual([...seen].sort(), expected.sort());
    t.note(`${seen.size} digests`);
  });
}

async function answers(run, profile, same) {
  const ask = async (content, sampling) =>
    (await run("answer", { messages: [{ role: "user", content }], maxTokens: 8, ...sampling })).digest;
  same(`demo8/greedy/${profile}`, await ask("What is the capital of France?", { temperature: 0 }), "answer");
  same(`demo8/seed-7/${profile}`, await ask("Tell me a story.", { seed: 7 }), "answer");
  same(`demo8/all-stages/${profile}`, await ask("Tell me a story about a fox.",
    { seed: 99, temperature: 1.3, topK: 40, topP: 0.9, minP: 0.02, repeatPenalty: 1.1 }), "answer");
}

const THINGS = ["fox", "ship", "king", "river", "lamp", "bread", "wolf", "garden", "star", "bridge", "mouse", "clock", "tree",
  "boat", "mill", "coat", "bell", "road", "hill", "cat", "dog", "door", "wind", "moon"];

/** Conversations with the demo whose native answers have 500 tokens or more together. */
let conversations = null;
async function demoAnswers(t) {
  if (conversations) return conversations;
  const out = [];
  for (const sampling of ["greedy", "seeded"]) {
    let tokens = 0;
    for (let i = 0; tokens < 500; i++) {
      const content = i % 2 === 0 ? `Tell me a story about a ${THINGS[i % THINGS.length]}.` : `What is a ${THINGS[i % THINGS.length]}?`;
      const flags = sampling === "greedy" ? ["--temperature", "0"] : ["--seed", String(1000 + i)];
      const answer = await native(t, "models/demo.slm2", "-p", content, ...flags);
      tokens += answer.completion_tokens;
      out.push({ content, params: sampling === "greedy" ? { temperature: 0 } : { seed: 1000 + i }, answer });
      assert.ok(i < 200, "the demo's answers are too short for this test");
    }
  }
  return conversations = out;
}
const compare = (own, answer, what) => assert.deepEqual(
  [own.digest, own.completionTokens, own.finish, own.text],
  [answer.digest, answer.completion_tokens, answer.finish, answer.text], what);

/** 500 greedy and 500 seeded steps of a synthetic model. */
async function steps(t, run, shape, count) {
  const file = await synthetic(t, shape);
  for (const [prompt, flags, params] of [
    [[1, 2, 3], ["--temperature", "0"], { temperature: 0 }],
    [[5, 6], ["--seed", "5"], { seed: 5 }],
  ]) {
    const answer = await native(t, file, "--ids", prompt.join(","), "--max-tokens", String(count), ...flags);
    compare(await run("answer", { ids: prompt, maxTokens: count, ...params }), answer, `${shape}, ${flags.join(" ")}`);
  }
}

for (const way of WAYS) {
  test(`500 greedy and 500 seeded steps as native: ${way.module}, ${way.threads} threads`, { timeout: 300 }, async (t) => {
    const run = await engineOf(t, way, "small");
    if (!run) return;
    await run("load", { url: "/models/demo.slm2" });
    const all = await demoAnswers(t);
    for (const { content, params, answer } of all) {
      compare(await run("answer", { messages: [{ role: "user", content }], ...params }), answer, `${content} ${JSON.stringify(params)}`);
    }
    await run("load", { url: "/models/small.slm2" });
    await steps(t, run, "small", 500);
    t.note(`${all.length} answers of the demo, 1,000 steps of a synthetic model`);
  });
}

for (const way of WAYS) {
  const count = way.module === "scalar" ? 50 : 500;
  test(`0.6B: ${count} greedy and seeded steps as native: ${way.module}, ${way.threads} threads`, { timeout: 3600, slow: true }, async (t) => {
    const run = await engineOf(t, way, "qwen3-0.6b");
    if (!run) return;
    const { plan } = await run("load", { url: "/models/qwen3-0.6b.slm2" }, { context: 1024 });
    assert.ok(plan.pages <= 24000, `${plan.pages} pages`);
    await steps(t, run, "qwen3-0.6b", count);
  });
}
