/* The harness itself, and what the product relies on in each engine: that the headers give isolation and their lack takes
 * it, that the policy blocks what it should, that nothing a page says or asks for goes unseen, that every fault is the fault
 * it is called, and that residence is measured.
 */
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import * as proc from "./proc.mjs";
import { OUTSIDE } from "./driver.mjs";
import { pause, runTest, test } from "./harness.mjs";
import { watchPackets } from "./packets.mjs";
import { CSP } from "./server.mjs";

const FULL = ["chromium", "firefox"]; /* WebKitGTK has no OPFS here; its shared memory is allowed by a switch, not by headers */
const MiB = 1048576;
const here = (page, task, ...args) => page.evaluate((...all) => globalThis.here(...all), task, ...args);
const inWorker = (page, task, ...args) => page.evaluate((...all) => globalThis.inWorker(...all), task, ...args);

/** Opens the page of this file; query: what is wrong with its answer. */
async function open(t, server, query = "", browser = undefined) {
  const page = await t.page(`${server.origin}/test/harness.html${query}`, browser);
  await page.waitFor(() => Boolean(globalThis.here));
  return page;
}

/** 300,000 known bytes as /models/sample.bin, and their SHA-256. */
async function sampleServer(t) {
  const bytes = crypto.createHash("sha256").update("sample").digest();
  const all = Buffer.concat(Array.from({ length: 9375 }, (_, i) => {
    bytes.writeUInt32LE(i);
    return Buffer.from(bytes);
  }));
  const file = path.join(t.folder(), "sample.bin");
  fs.writeFileSync(file, all);
  return { all, server: await t.server({ models: { "sample.bin": file } }) };
}
const sha256 = (bytes) => crypto.createHash("sha256").update(bytes).digest("hex");

test("isolated with the headers", {}, async (t) => {
  const page = await open(t, await t.server());
  for (const state of [await here(page, "state"), await inWorker(page, "state")]) {
    assert.equal(state.isolated, true);
    assert.equal(state.shared, true);
  }
});

for (const header of ["coop", "coep"]) {
  test(`not isolated without ${header}`, { engines: FULL }, async (t) => {
    const page = await open(t, await t.server(), `?without=${header}`);
    const state = await here(page, "state");
    assert.equal(state.isolated, false);
    assert.equal(state.shared, false);
  });
}

test("a worker whose answer lacks coep does not start", {}, async (t) => {
  const page = (await open(t, await t.server())).expect(/./);
  await page.evaluate(() => globalThis.useWorker("worker.js?without=coep"));
  await assert.rejects(inWorker(page, "state"), /did not start/);
});

test("the policy allows WebAssembly", {}, async (t) => {
  const page = await open(t, await t.server());
  assert.equal(await here(page, "compile"), "compiled");
  assert.equal(await inWorker(page, "compile"), "compiled");
});

test("without wasm-unsafe-eval there is no WebAssembly", { engines: FULL }, async (t) => {
  const weaker = encodeURIComponent(CSP.replace(" 'wasm-unsafe-eval'", ""));
  const page = (await open(t, await t.server(), `?csp=${weaker}`)).expect(/Content.Security.Policy|wasm-unsafe-eval/);
  assert.equal(await here(page, "compile"), "CompileError");
  assert.equal(await inWorker(page, "compile"), "compiled"); /* a worker has the policy of its own answer */
  await page.evaluate((csp) => globalThis.useWorker(`worker.js?csp=${csp}`), weaker);
  assert.equal(await inWorker(page, "compile"), "CompileError");
});

test("the policy keeps the page and its workers from other origins", {}, async (t) => {
  const [own, other] = [await t.server(), await t.server()];
  const page = (await open(t, own)).expect(/Content.Security.Policy|Fetch API|refused|CSP/i);
  for (const ask of [here, inWorker]) {
    const { failed } = await ask(page, "get", `${other.origin}/test/empty.html`);
    assert.notEqual(failed, "");
  }
  assert.equal(other.log.length, 0);
});

test("errors that a page prints, throws or drops are seen", {}, async (t) => {
  const page = (await open(t, await t.server())).expect(/said-|thrown-|rejected-/);
  await here(page, "say", "said-here");
  await here(page, "throwLater", "thrown-here");
  await here(page, "rejectLater", "rejected-here");
  await pause(300);
  await here(page, "state"); /* WebKit's are fetched with the next answer */
  const seen = [...page.console.filter((m) => m.type === "error").map((m) => m.text), ...page.errors].join("\n");
  for (const text of ["said-here", "thrown-here", "rejected-here"]) assert.match(seen, new RegExp(text));
  assert.deepEqual(page.unexpected(), []);
});

test("errors of a worker are seen", {}, async (t) => {
  const page = (await open(t, await t.server())).expect(/said-|thrown-/);
  await inWorker(page, "say", "said-there");
  await inWorker(page, "throwLater", "thrown-there");
  await pause(300);
  await here(page, "state");
  const seen = [...page.console.filter((m) => m.type === "error").map((m) => m.text), ...page.errors].join("\n");
  assert.match(seen, /thrown-there/);
  if (t.engine !== "webkit") assert.match(seen, /said-there/);
});

test("requests of a page and of its workers are seen", {}, async (t) => {
  const server = await t.server();
  const page = await open(t, server);
  await here(page, "get", "/test/empty.html?from=page");
  await inWorker(page, "get", "/test/empty.html?from=worker");
  const expected = ["/test/empty.html?from=page", "/test/empty.html?from=worker"];
  assert.deepEqual(server.requests("/test/empty.html").map((e) => e.url), expected);
  if (!page.requests) return;
  const urls = page.requests.map((r) => r.url);
  for (const url of expected) assert.ok(urls.includes(server.origin + url), `${url} in ${urls}`);
});

test("the server: ranges", {}, async (t) => {
  const { all, server } = await sampleServer(t);
  const page = (await open(t, server)).expect(/status of 416/);
  const get = (range, more = {}) => here(page, "get", "/models/sample.bin", { ...(range ? { Range: range } : {}), ...more });
  const whole = await get("");
  assert.deepEqual([whole.status, whole.length, whole.sha256], [200, all.length, sha256(all)]);
  assert.equal(whole.headers["content-type"], "application/octet-stream");
  const cases = [
    ["bytes=0-0", 0, 1], ["bytes=10-19", 10, 20], ["bytes=299990-", 299990, 300000], ["bytes=-5", 299995, 300000],
    ["bytes=299999-400000", 299999, 300000], ["bytes=0-299999", 0, 300000],
  ];
  for (const [range, first, end] of cases) {
    const part = await get(range);
    assert.deepEqual([part.status, part.headers["content-range"], part.sha256],
      [206, `bytes ${first}-${end - 1}/300000`, sha256(all.subarray(first, end))], range);
  }
  assert.deepEqual((await get("bytes=300000-")).status, 416);
  assert.equal((await get("bytes=0-9", { "If-Range": whole.headers.etag })).status, 206);
  assert.equal((await get("bytes=0-9", { "If-Range": "\"another\"" })).status, 200);
});

test("the server: faults", { timeout: 90 }, async (t) => {
  const { all, server } = await sampleServer(t);
  const page = (await open(t, server)).expect(/status of [45]|ERR_|Failed to load|resource/i);
  const get = (rule, headers = {}, ms = 10000) => {
    server.rule("/models/sample.bin", rule);
    return here(page, "get", "/models/sample.bin", headers, ms);
  };
  const range = { Range: "bytes=1000-1999" };

  assert.deepEqual([(await get({ ranges: "none" }, range)).status, server.log.at(-1).sent], [200, all.length]);
  const shifted = await get({ ranges: "shifted" }, range);
  assert.deepEqual([shifted.status, shifted.headers["content-range"], shifted.sha256],
    [206, "bytes 900-1899/300000", sha256(all.subarray(900, 1900))]);
  assert.equal((await get({ ranges: "unsatisfiable" }, range)).status, 416);
  const html = await get({ html: true }, range);
  assert.deepEqual([html.status, html.headers["content-type"]], [200, "text/html; charset=utf-8"]);

  const short = await get({ short: 70000 });
  assert.equal(short.status, 200);
  assert.equal(short.headers["content-length"], "300000");
  assert.ok(short.length <= 70000 && short.failed !== "", JSON.stringify(short));
  assert.equal(server.log.at(-1).done, false);
  const truncated = await get({ truncate: 70000 });
  assert.deepEqual([truncated.length, truncated.failed, truncated.sha256], [70000, "", sha256(all.subarray(0, 70000))]);
  const stalled = await get({ stall: 70000 }, {}, 1000);
  assert.deepEqual([stalled.length, stalled.failed], [70000, "AbortError"]);
  const slow = await get({ slow: 100000 }, {}, 1000);
  assert.ok(slow.failed === "AbortError" && slow.length > 20000 && slow.length < 200000, JSON.stringify(slow));

  const other = Buffer.from(all);
  other[123456] ^= 1;
  assert.equal((await get({ flip: 123456 })).sha256, sha256(other));
  const zipped = await get({ gzip: true });
  assert.deepEqual([zipped.status, zipped.headers["content-encoding"], zipped.sha256], [200, "gzip", sha256(all)]);
  assert.equal((await get({ etag: "\"b\"" })).headers.etag, "\"b\"");
  assert.equal((await get({ status: 503 })).status, 503);
  assert.equal((await get({ to: "/test/empty.html" })).headers["content-type"], "text/html; charset=utf-8");
  assert.equal((await get({ without: "type,csp" })).headers["content-security-policy"], undefined);

  server.rule("/models/sample.bin", { status: 500, after: 1, times: 2 });
  const states = [];
  for (let i = 0; i < 4; i++) states.push((await here(page, "get", "/models/sample.bin")).status);
  assert.deepEqual(states, [200, 500, 500, 200]);
  server.rule("/models/sample.bin", null);
  assert.equal((await here(page, "get", "/models/sample.bin?status=404")).status, 404);
  assert.equal((await here(page, "get", "/models/%2e%2e/%2e%2e/Makefile")).status, 404);
  assert.equal((await here(page, "get", "/test/..%2fserver.mjs")).status, 404);
});

test("residence: 200 MiB that were written are seen, and that they went", { timeout: 90 }, async (t) => {
  const browser = await t.browser();
  const page = await open(t, await t.server(), "", browser);
  await inWorker(page, "state");
  await pause(500);
  const before = browser.memory();
  browser.resetPeak();
  assert.equal(await inWorker(page, "touch", 200), 200 * MiB);
  const during = browser.memory();
  await page.evaluate(() => globalThis.useWorker(""));
  let after = browser.memory();
  for (let i = 0; i < 50 && after.anonymous > before.anonymous + 50 * MiB; i++) {
    await pause(100);
    after = browser.memory();
  }
  const risen = (during.anonymous - before.anonymous) / MiB;
  assert.ok(risen >= 195 && risen < 300, `rose by ${risen} MiB`);
  assert.ok(after.anonymous < before.anonymous + 50 * MiB, `${after.anonymous / MiB} MiB are left of ${during.anonymous / MiB}`);
  assert.ok(browser.memory().peak >= before.resident + 195 * MiB, "the peak keeps it");
  t.note(`+${risen.toFixed(0)} MiB, then ${((after.anonymous - before.anonymous) / MiB).toFixed(0)} MiB`);
});

test("a killed browser is gone, and what was flushed to OPFS is there after a restart", { engines: FULL, timeout: 90 }, async (t) => {
  const profile = t.folder();
  const server = await t.server();
  const first = await t.browser({ profile });
  await inWorker(await open(t, server, "", first), "writeFile", "note.txt", "still here");
  const pids = first.processes();
  assert.ok(pids.length > 2);
  first.kill();
  await pause(500);
  assert.deepEqual(pids.filter((pid) => proc.memory(pid).resident > 0), []);
  const second = await t.browser({ profile });
  assert.equal(await inWorker(await open(t, server, "", second), "readFile", "note.txt"), "still here");
});

test("pictures are taken", { engines: FULL }, async (t) => {
  const page = await open(t, await t.server());
  const file = path.join(t.folder(), "page.png");
  assert.equal(await page.screenshot(file), true);
  assert.deepEqual([...fs.readFileSync(file).subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
});

test("a test that fails, hangs, or whose page reports an error, fails", {}, async (t) => {
  const server = await t.server();
  const run = (body, timeout = 20) => runTest({ name: "inner", body, timeout }, t.engine, t.folder(), t.shared);
  const fine = await run(async () => {});
  const thrown = await run(async () => assert.equal(1, 2));
  const hangs = await run(() => new Promise(() => {}), 0.2);
  const skipped = await run(async (inner) => inner.skip("no reason"));
  const said = await run(async (inner) => here(await open(inner, server), "say", "nobody expected this"));
  const missing = await run(async (inner) => (await open(inner, server)).evaluate(() => globalThis.nothing.there));
  assert.deepEqual([fine, thrown, hangs, skipped, said, missing].map((r) => r.state), ["ok", "FAIL", "FAIL", "skip", "FAIL", "FAIL"]);
  assert.match(hangs.lines[0], /not done after 0.2 s/);
  assert.match(said.lines.join("\n"), /nobody expected this/);
});

test("nothing leaves the machine unseen", { netns: true, timeout: 90 }, async (t) => {
  const left = watchPackets();
  const server = await t.server();
  const browser = await t.browser(); /* its last attempts to connect end with it */
  const url = (port) => `http://${OUTSIDE}:${port}/`;
  await here((await open(t, server, "", browser)).expect(/./), "get", url(8001), {}, 1500); /* the policy stops this one */
  assert.deepEqual(await left(), []);
  await here((await open(t, server, "?without=csp", browser)).expect(/./), "get", url(8002), {}, 1500);
  const control = await left();
  assert.ok(control.length > 0, "a fetch that the policy does not stop must be seen");
  assert.deepEqual(control.filter((packet) => !packet.includes(` > ${OUTSIDE}:8002 `)), []);
  t.note(`${control.length} packets of the control`);
});
