/* The store: whatever a server, a network, another tab, a kill or a disk does to an import, nothing that is not the whole
 * right model ever counts as one, the reason is said, and the next try succeeds.
 */
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pause, random, test } from "./harness.mjs";
import { FULL, modelServer, native, openPage, synthetic } from "./engine.mjs";

const MiB = 1048576;
const DEMO = "/models/demo.slm2";
const options = { engines: FULL, timeout: 120 };
const quiet = /status of [45]|ERR_|Failed to load|Cross-Origin|NetworkError|corrupt|content encoding/i; /* what browsers print of bad answers */

/** A page with an engine and an empty store (each server has an origin of its own). */
async function store(t, ...shapes) {
  const server = await modelServer(t, ...shapes);
  const { page, run } = await openPage(t, server);
  page.expect(quiet);
  await run("create");
  return { server, page, run };
}
const sealed = async (run) => (await run("list")).filter((m) => m.sealed);

/** The stored model is the file: verified by the store, loaded, and answering as native. */
async function proveWhole(t, run, id) {
  const { value, error } = await run("verify", id);
  assert.ok(value?.verified, JSON.stringify(error));
  await run("load", id);
  const right = await native(t, "models/demo.slm2", "-p", "Who are you?", "--temperature", "0", "--max-tokens", "10");
  const own = await run("answer", { messages: [{ role: "user", content: "Who are you?" }], temperature: 0, maxTokens: 10 });
  assert.equal(own.digest, right.digest);
  await run("unload");
}

test("import, list, verify, load, delete", options, async (t) => {
  const { server, run } = await store(t);
  assert.deepEqual(await run("list"), []);
  const used = async () => (await run("estimate")).usage;
  const { value, error } = await run("import", DEMO);
  assert.ok(value, JSON.stringify(error));
  const bytes = fs.statSync("models/demo.slm2").size;
  assert.deepEqual([value.bytes, value.sealed, value.name], [bytes, true, "demo.slm2"]);
  const [listed, ...more] = await run("list");
  assert.deepEqual([listed.id, listed.bytes, listed.have, listed.sealed, more.length], [value.id, bytes, bytes, true, 0]);
  assert.deepEqual(Object.keys(await run("files")).sort(), [`${value.id}.seal`, `${value.id}.slm2`]);
  await proveWhole(t, run, value.id);
  const requests = server.requests(DEMO).length;
  const again = await run("import", DEMO);
  assert.equal(again.value?.already, true);
  assert.ok(server.requests(DEMO).slice(requests).every((e) => e.sent <= MiB), "the model was not fetched again");
  const full = await used(); /* Firefox counts those of all ports of the host, which may shrink meanwhile */
  assert.ok(full >= bytes, `${full}`);
  const removed = await run("remove", value.id);
  assert.ok(!removed.error, JSON.stringify(removed.error));
  assert.deepEqual([await run("list"), await run("files")], [[], {}]);
  assert.ok(await used() < full - bytes / 2);
  assert.equal((await run("tryLoad", value.id)).error.code, "NOT_FOUND");
});

test("a file that was picked", options, async (t) => {
  const { run } = await store(t);
  const { value, error } = await run("importFile", DEMO, "mine.slm2");
  assert.ok(value, JSON.stringify(error));
  assert.equal(value.name, "mine.slm2");
  await proveWhole(t, run, value.id);
});

/* What a server can do wrong: the rule, the code that the import ends with, and what its message must name. A rule with
 * `after` holds from a later request on: the first ones ask for the header. code null: the import must succeed. */
const CHUNK_HASH = fs.readFileSync("models/demo.slm2").indexOf('"chunk_sha256":"') + 16;
const FAULTS = [
  ["an HTML page with status 200", { html: true }, "NETWORK", /HTML/],
  ["an HTML page after the header", { html: true, after: 3 }, "NETWORK", /HTML/],
  ["status 404", { status: 404 }, "NETWORK", /404/],
  ["status 503 in the middle", { status: 503, after: 3 }, "NETWORK", /503/],
  ["206 with other bytes than asked for", { ranges: "shifted" }, "NETWORK", /asked for/],
  ["206 with other bytes, later", { ranges: "shifted", after: 3 }, "NETWORK", /asked for/],
  ["416", { ranges: "unsatisfiable" }, "NETWORK", /416/],
  ["416 later", { ranges: "unsatisfiable", after: 3 }, "NETWORK", /416/],
  ["ranges that end in the middle of an import", { ranges: "none", after: 3 }, "NETWORK", /whole file|asked for/],
  ["a server without ranges", { ranges: "none" }, null],
  ["a body that breaks off", { short: 4500000, after: 3 }, "NETWORK", /broke|sent/],
  ["a body that breaks off in the header", { short: 5000, after: 1 }, "NETWORK", /broke|sent/],
  ["a body that breaks off, without ranges", { short: 3000000, ranges: "none" }, "NETWORK", /broke|sent/],
  ["a shorter file, honestly announced", { truncate: 3000000 }, /FORMAT|NETWORK|IO/, /300,?0000/],
  ["a file of 7 bytes", { truncate: 7 }, "FORMAT", /7 bytes/],
  ["an empty file", { truncate: 0 }, /FORMAT|NETWORK/, /./],
  ["a file that changes under the import", { etag: "\"b\"", after: 3 }, "NETWORK", /changed/],
  ["a compressed body", { gzip: true }, "NETWORK", /compress|reached|broke/],
  ["a compressed body, later", { gzip: true, after: 3 }, "NETWORK", /compress|reached|broke|whole file/],
  ["no length, no ranges", { ranges: "none", without: "length" }, "NETWORK", /long|length/],
  ["one flipped bit in the data, always", { flip: 4600000 }, "INTEGRITY", /chunk|SHA-256/],
  ["one flipped bit in the data, once", { flip: 4600000, after: 3, times: 1 }, null],
  ["one flipped bit in a hash of the header", { flip: CHUNK_HASH }, "INTEGRITY", /chunk 0/],
  ["one flipped bit in the header's grammar", { flip: 8 }, /FORMAT|JSON/, /./],
  ["one flipped bit in the header's length", { flip: 1 }, /FORMAT|JSON/, /./],
];
for (const [name, rule, code, message] of FAULTS) {
  test(`a server with ${name}`, options, async (t) => {
    const { server, run } = await store(t);
    server.rule(DEMO, rule);
    const { value, error } = await run("import", DEMO);
    if (code === null) assert.ok(value?.sealed, JSON.stringify(error));
    else {
      assert.ok(error, "it was imported");
      assert.match(error.code, typeof code === "string" ? new RegExp(`^${code}$`) : code, error.message);
      assert.match(error.message, message);
      assert.deepEqual(await sealed(run), []);
      assert.ok((await run("tryLoad", { url: DEMO })).error || rule.after, "it was loaded");
    }
    server.rule(DEMO, null);
    const next = await run("import", DEMO);
    assert.ok(next.value?.sealed, `the next try: ${JSON.stringify(next.error)}`);
    await proveWhole(t, run, next.value.id);
  });
}

test("another origin is refused before anything is asked", options, async (t) => {
  const { run } = await store(t);
  const other = await modelServer(t);
  const { error } = await run("import", `${other.origin}${DEMO}`);
  assert.equal(error.code, "ARGUMENT");
  assert.match(error.message, /origin/);
  assert.equal(other.log.length, 0);
});

test("an import that is aborted, or stalls and is aborted, goes on where it stopped", options, async (t) => {
  const { server, run } = await store(t, "qwen3-0.6b-4layer");
  const url = "/models/qwen3-0.6b-4layer.slm2";
  server.rule(url, { stall: 50 * MiB, after: 3 });
  const stalled = await run("abortImport", url, 4000);
  assert.equal(stalled.error?.code, "ABORTED", JSON.stringify(stalled));
  assert.ok(stalled.ms < 6000, "aborted at once");
  const [part] = await run("list");
  assert.equal(part.sealed, false);
  assert.ok(part.have >= 40 * MiB, `${part.have} bytes were kept`);
  server.rule(url, null);
  const before = server.log.length;
  const { value, error } = await run("import", url);
  assert.ok(value?.sealed, JSON.stringify(error));
  const fetched = server.log.slice(before).reduce((sum, e) => sum + e.sent, 0);
  assert.ok(fetched <= value.bytes - 40 * MiB, `${fetched} bytes were fetched again`);
  assert.ok((await run("verify", value.id)).value?.verified);
});

test("killed at 20 points of an import, it resumes", { engines: FULL, timeout: 600 }, async (t) => {
  const seed = 20261131;
  const next = random(seed);
  const shape = "qwen3-0.6b-4layer";
  const url = `/models/${shape}.slm2`;
  const bytes = fs.statSync(await synthetic(t, shape)).size;
  const server = await modelServer(t, shape);
  server.rule(url, { slow: 150 * MiB });
  const profile = t.folder();
  const kept = [];
  let imports = 0;
  for (let kills = 0; kills < 20;) {
    const browser = await t.browser({ profile });
    const page = await browser.newPage(`${server.origin}/test/engine.html`);
    await page.waitFor(() => Boolean(globalThis.run));
    const run = (name, ...args) => page.evaluate((which, given) => globalThis.run[which](...given), name, args);
    await run("create");
    const [before] = await run("list");
    assert.ok(!before || before.sealed === false, "a model that was never complete is sealed");
    kept.push(Math.round((before?.have ?? 0) / MiB));
    await run("startImport", url);
    const end = Date.now() + Math.floor(next() * 700);
    let result = null;
    while (Date.now() < end && !result) {
      await pause(5);
      result = await page.evaluate(() => globalThis.state.result);
    }
    if (!result) {
      browser.kill();
      kills += 1;
      continue;
    }
    assert.ok(result.value?.sealed, JSON.stringify(result.error));
    imports += 1;
    assert.ok((await run("verify", result.value.id)).value?.verified);
    assert.ok(!(await run("remove", result.value.id)).error);
    await browser.close();
  }
  server.rule(url, null);
  const browser = await t.browser({ profile });
  const { run } = await openPage(t, server, browser);
  await run("create");
  const { value, error } = await run("import", url);
  assert.ok(value?.sealed, JSON.stringify(error));
  assert.equal(value.bytes, bytes);
  assert.ok((await run("verify", value.id)).value?.verified);
  assert.deepEqual(Object.keys(await run("files")).sort(), [`${value.id}.seal`, `${value.id}.slm2`]);
  t.note(`seed ${seed}; MiB found after each: ${kept.join(" ")}; finished on the way: ${imports}`);
});

test("a stored model that was damaged is found and removed, never answered from", options, async (t) => {
  const { run } = await store(t);
  const { value } = await run("import", DEMO);
  await run("damage", `${value.id}.slm2`, 3000000);
  const { error } = await run("verify", value.id);
  assert.equal(error?.code, "INTEGRITY");
  assert.match(error.message, /removed/);
  assert.deepEqual(await sealed(run), []);
  const again = await run("import", DEMO);
  assert.ok(again.value?.sealed, JSON.stringify(again.error));
  await proveWhole(t, run, again.value.id);
});

test("a stored header that was damaged stops the load", options, async (t) => {
  const { run } = await store(t);
  const { value } = await run("import", DEMO);
  await run("damage", `${value.id}.slm2`, 200);
  const { error } = await run("tryLoad", value.id);
  assert.ok(error, "it was loaded");
  assert.match(error.code, /INTEGRITY|FORMAT|JSON|VERSION/);
});

test("a GGUF file is converted on the way in, to the bytes that the command makes", options, async (t) => {
  const folder = t.folder();
  const gguf = path.join(folder, "demo.gguf");
  const again = path.join(folder, "again.slm2");
  await t.slm2("export", "models/demo.slm2", gguf).catch(() => t.slm2("convert", "models/demo.slm2", gguf));
  await t.slm2("convert", gguf, again);
  const server = await t.server({ models: { "demo.gguf": gguf } });
  const { run, page } = await openPage(t, server);
  page.expect(quiet);
  await run("create");
  const { value, error } = await run("import", "/models/demo.gguf");
  assert.ok(value?.sealed, JSON.stringify(error));
  assert.equal(value.bytes, fs.statSync(again).size);
  const own = await page.evaluate(async (name) => {
    const root = await navigator.storage.getDirectory();
    const models = await (await root.getDirectoryHandle("slm2")).getDirectoryHandle("models");
    const bytes = await (await (await models.getFileHandle(name)).getFile()).arrayBuffer();
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("");
  }, `${value.id}.slm2`);
  assert.equal(own, crypto.createHash("sha256").update(fs.readFileSync(again)).digest("hex"));
  const picked = await run("importFile", "/models/demo.gguf", "picked.gguf");
  assert.equal(picked.value?.id, value.id, JSON.stringify(picked.error));
  const cut = path.join(folder, "cut.gguf");
  fs.writeFileSync(cut, fs.readFileSync(gguf).subarray(0, 2000000));
  server.models["cut.gguf"] = cut;
  assert.ok((await run("import", "/models/cut.gguf")).error, "half a file was converted");
  assert.equal((await sealed(run)).length, 1);
});
