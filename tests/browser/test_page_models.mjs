/* Models in the page: files that are picked and dropped, what they take, what cannot be; and the proof. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { pause, test } from "./harness.mjs";
import { native, synthetic } from "./engine.mjs";
import { command, GOOD, host, open, web } from "./page.mjs";

const QUESTION = "What is the capital of France?";
const broken = /another version|ServiceWorker|Failed to register|ERR_/i;
const options = { engines: GOOD, timeout: 60 };

/** A site that hands out other model files beside the page, as a test has no disk of the user's. */
async function withFiles(t, edit = {}) {
  const root = path.join(t.folder(), "site"), files = path.join(root, "files");
  fs.cpSync(web(t), root, { recursive: true });
  fs.mkdirSync(files);
  const site = await host(t, { root, isolated: true, edit });
  return { site, add: (name, from) => fs.copyFileSync(from, path.join(files, name)), file: (name) => path.join(files, name) };
}
/** Waits for a card of this model that says this, and gives all it says. */
const card = (user, name, says) => user.page.waitFor((title, part) => [...document.querySelectorAll("#view-models article")]
  .find((a) => a.querySelector("h3").textContent === title && a.textContent.includes(part))?.textContent, name, says);
const importing = (user, says) => user.page.waitFor((part) =>
  [...document.querySelectorAll("#view-models .card")].find((c) => c.querySelector(".drop"))?.textContent.includes(part), says);

test("a .gguf is picked, converted, planned, loaded, answers as native, is verified, damaged, deleted", options, async (t) => {
  const { site, file } = await withFiles(t);
  await t.slm2("convert", await synthetic(t, "small"), file("x.gguf"));
  await t.slm2("convert", file("x.gguf"), file("y.slm2"));
  await t.slm2("convert", "models/demo.slm2", file("demo.gguf"));
  const user = await open(t, site.url, { expect: broken });
  await user.view("Models");
  await user.picked("Pick a file", { name: "demo.gguf", url: "files/demo.gguf" });
  await importing(user, "demo.slm2 was here already."); /* there and back without loss: the same identity */
  await user.picked("Pick a file", { name: "x.gguf", url: "files/x.gguf" });
  await importing(user, "is ready.");
  const name = await user.page.waitFor(() => document.querySelectorAll("#view-models article h3")[1]?.textContent);
  assert.match(await card(user, name, "sealed"), /identity [0-9a-f]{64}/);
  await user.press("Load…", "#view-models");
  const plan = await user.page.waitFor(() => document.querySelector("#view-models tfoot")?.closest("article").textContent);
  assert.match(plan, /The largest that fits: [\d,]+ positions with the f16 cache, [\d,]+ with f32/);
  const sums = await user.page.evaluate(() => {
    const n = (cell) => Number(cell.textContent.replaceAll(",", ""));
    const table = document.querySelector("#view-models tfoot").parentElement;
    return [[...table.querySelectorAll("tbody .number")].map(n).reduce((a, b) => a + b), n(table.querySelector("tfoot .number"))];
  });
  assert.ok(sums[0] <= sums[1] && sums[1] - sums[0] < 65536 * 2, `terms ${sums[0]}, total ${sums[1]}`);
  await user.page.evaluate(() => {
    const select = document.querySelector("#view-models select");
    select.value = [...select.options].find((o) => o.value.startsWith("512 f32")).value;
    select.dispatchEvent(new Event("change"));
  });
  await user.press("Load with this context");
  await user.page.waitFor(() => document.getElementById("status-text").textContent.includes("512 positions"));
  await user.fill("set-temperature", 0);
  await user.fill("set-maxTokens", 12);
  await user.ask(QUESTION);
  const { content, stats } = (await user.exported())[0].messages[1];
  const right = await native(t, file("y.slm2"), "-p", QUESTION, "--temperature", "0", "--kv", "f32", "--max-tokens", "12");
  assert.deepEqual([content, stats.digest], [right.text, right.digest]);
  await user.page.reload();
  await user.page.waitFor(() => document.getElementById("status-text").textContent.includes("512 positions"));
  await user.view("Models");
  await card(user, name, "loaded");
  await user.press("Load", "#view-models article:first-of-type");
  await user.ready();
  await user.view("Models");
  await card(user, "demo", "loaded");
  await user.press("Verify", "#view-models");
  await user.page.waitFor(() => document.getElementById("view-models").textContent.includes("Verified: every byte is right"));
  await user.page.evaluate(async () => {
    const top = await (await navigator.storage.getDirectory()).getDirectoryHandle("slm2");
    const folder = await top.getDirectoryHandle("models");
    for await (const [, handle] of folder.entries()) { /* the last bytes of every file that has megabytes */
      const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
      if (bytes.length < 1000000) continue;
      bytes[bytes.length - 1000] ^= 1;
      const writer = await handle.createWritable();
      await writer.write(bytes);
      await writer.close();
    }
  });
  await user.press("Verified: every byte is right", "#view-models");
  await user.page.waitFor(() => document.querySelector(".notice.error") !== null);
  await user.page.waitFor(() => document.querySelectorAll("#view-models article").length === 1);
  await user.picked("Pick a file", { name: "x.gguf", url: "files/x.gguf" });
  await importing(user, "is ready.");
  await user.press("Delete", "#view-models");
  await user.press("Delete", "dialog");
  await user.page.waitFor(() => document.querySelectorAll("#view-models article").length === 1);
});

test("a file is dropped, stopped half way, goes on where it stopped; what is no model is refused by name", options, async (t) => {
  const { site, add, file } = await withFiles(t);
  add("big.slm2", await synthetic(t, "qwen3-0.6b-4layer"));
  fs.writeFileSync(file("junk.gguf"), "GGUF and no more");
  fs.writeFileSync(file("page.slm2"), "<!doctype html>");
  const user = await open(t, site.url, { expect: broken });
  const drop = (name) => user.page.evaluate(async (which) => {
    const data = new DataTransfer();
    const kept = globalThis.kept ??= {};
    kept[which] ??= new File([await (await fetch(`files/${which}`)).blob()], which);
    data.items.add(kept[which]);
    for (const type of ["dragenter", "dragover", "drop"])
      document.querySelector(".drop").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
  }, name);
  await user.view("Models");
  for (const name of ["junk.gguf", "page.slm2"]) {
    await drop(name);
    await importing(user, name);
    await user.page.waitFor(() => document.querySelector(".drop + div .failed") !== null);
  }
  await user.page.evaluate(() => { /* stops as soon as something was imported */
    const look = new MutationObserver(() => {
      const button = [...document.querySelectorAll(".drop + div button")].find((b) => b.textContent === "Stop");
      if (document.querySelector(".drop + div progress")?.value > 20000000) button?.click();
    });
    look.observe(document.querySelector(".drop + div"), { subtree: true, childList: true, attributes: true });
    globalThis.look = look;
  });
  await drop("big.slm2");
  await importing(user, "Stopped. What was imported is kept.");
  const half = await card(user, "big.slm2", "unfinished");
  assert.match(half, /unfinished: [\d.]+ MB of [\d.]+ MB/);
  assert.match(half, /Pick the same file again/);
  await user.page.evaluate(() => globalThis.look.disconnect());
  await drop("big.slm2");
  await importing(user, "is ready.");
  await card(user, "big.slm2", "sealed");
  await drop("big.slm2");
  await importing(user, "was here already.");
});

test("what cannot fit is refused with its numbers; a load that did not end is told of", options, async (t) => {
  const { site } = await withFiles(t, { "engine/client.js": (bytes) =>
    String(bytes).replace("MAX_PAGES_DEFAULT = 24000", "MAX_PAGES_DEFAULT = 60") });
  const user = await open(t, site.url, { expect: broken, wait: false });
  const said = await user.page.waitFor(() => document.querySelector(".notice.error p")?.textContent);
  assert.match(said, /\d{2,}/);
  t.note(said);
  await user.view("Models");
  await user.press("Memory", "#view-models");
  const why = await user.page.waitFor(() => document.querySelector("#view-models article .failed")?.textContent);
  assert.match(why, /does not fit|\d{3,}/);
  site.edit = {};
  await user.page.evaluate(() => localStorage.setItem("slm2:loading", JSON.stringify({ model: "x", name: "Large.slm2",
    context: 32768, kv: "f16", profile: "q8", pages: 1, at: "2026-01-01" })));
  await user.page.reload();
  assert.match(await user.notice("did not end last time"), /Large\.slm2 with 32,768 positions/);
  assert.equal(await user.status(), "No model loaded");
  await user.press("Choose a smaller context");
  await user.page.waitFor(() => document.body.dataset.view === "models");
  await user.view("Chat");
  await user.page.reload();
  await user.notice("did not end last time");
  await user.press("Load the demo");
  await user.ready();
  assert.deepEqual(await user.notices(), []);
  await user.page.reload();
  await user.ready();
});

test("a load in which the whole browser was killed is told of at the next start, and nothing loads by itself", { ...options, timeout: 120 }, async (t) => {
  const profile = t.folder();
  const site = await host(t, { isolated: true, edit: { "engine/engine-worker.js": () => "for (;;);" } }); /* a load that does not end */
  const first = await t.browser({ profile });
  const lost = await open(t, site.url, { browser: first, wait: false, expect: /./ });
  await lost.page.waitFor(() => navigator.storage.getDirectory().then((root) => root.getDirectoryHandle("slm2"))
    .then((top) => top.getDirectoryHandle("models")).then((folder) => folder.getFileHandle("loading.mark"))
    .then((file) => file.getFile()).then((file) => file.size > 0, () => false));
  first.kill(); /* SIGKILL to every process, as when the system runs out of memory */
  await pause(500);
  site.edit = {};
  const user = await open(t, site.url, { browser: await t.browser({ profile }), wait: false });
  assert.match(await user.notice("did not end last time"), /^Loading demo\.slm2 with [\d,]+ positions/);
  await pause(1500);
  assert.equal(await user.status(), "No model loaded");
  await user.press("Choose a smaller context");
  await user.page.waitFor(() => document.body.dataset.view === "models");
  await user.press("Load…", "#view-models");
  const offered = await user.page.waitFor(() => {
    const all = [...document.querySelectorAll("#view-models option")].map((o) => o.textContent);
    return all.length > 0 && all;
  });
  assert.ok(offered.some((text) => /^512 positions, f16/.test(text)), offered.join("; "));
  t.note(`offered: ${offered.join("; ")}`);
  await user.view("Chat");
  await user.page.reload();
  await user.notice("did not end last time"); /* until something is loaded */
  await user.press("Load the demo");
  await user.ready();
  await user.page.reload();
  await user.ready();
  assert.deepEqual(await user.notices(), []);
});

const proof = { engines: GOOD, timeout: 180 };
test("Prove it: every digest of the project, by every module of this browser, in a report", proof, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  await user.view("Prove it");
  await user.press("Run the proof");
  const verdict = () => user.page.evaluate(() => document.querySelector("#view-prove [role=status]").textContent);
  await user.page.waitFor(() =>
    /equal: this|differ|broke off/.test(document.querySelector("#view-prove [role=status]").textContent));
  assert.match(await verdict(), /^All \d+ digests are equal: this browser gives the project's bits, in \d+ ways\.$/);
  t.note(await verdict());
  const report = await user.offered("Save the report"), golden = fs.readFileSync("tests/golden/digests.txt", "utf8");
  const lines = report.split("\n").filter((line) => line.endsWith(" equal") && /^demo8?\//.test(line));
  assert.ok(lines.length >= 10 && lines.every((line) => golden.includes(line.slice(0, -" equal".length))), report);
  assert.equal(await user.page.evaluate(() => document.querySelectorAll("#view-prove .tag.bad").length), 0);
  await user.view("Chat");
  await user.ready();
  assert.equal((await user.ask(QUESTION)).failed, null);
});
