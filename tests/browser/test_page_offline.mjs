/* The page as one set of files: on any static host under any path, without isolation headers of its own; new versions are
 * taken whole or not at all, when the user says so and never in the middle of an answer.
 */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { execFileSync } from "node:child_process";
import { pause, test } from "./harness.mjs";
import { native } from "./engine.mjs";
import { GOOD, host, open, web } from "./page.mjs";

const QUESTION = "What is the capital of France?";
const broken = /ERR_|NetworkError|Failed to|ServiceWorker|AbortError|another version|404|script evaluation/i;
const options = { engines: GOOD, timeout: 60 };

/** A copy of the site whose page says another version in its title; it is whole. */
function variant(t, mark) {
  const folder = path.join(t.folder(), "site");
  fs.cpSync(web(t), folder, { recursive: true });
  const page = path.join(folder, "index.html");
  fs.writeFileSync(page, fs.readFileSync(page, "utf8").replace("<title>", `<title>${mark} `));
  fs.copyFileSync("web/app/sw.js", path.join(folder, "sw.js"));
  execFileSync(process.execPath, ["tools/web_site.mjs", folder, "--site"]);
  return folder;
}
const title = (user) => user.page.evaluate(() => document.title);
const controlled = (user) => user.page.waitFor(() => Boolean(navigator.serviceWorker.controller));

test("a host without isolation headers, under a path: one reload gets them; then it needs no host", options, async (t) => {
  const site = await host(t), user = await open(t, site.url, { expect: broken });
  assert.equal(await user.page.evaluate(() => crossOriginIsolated), true);
  assert.equal(site.log.filter((p) => p === "/some/path/").length, 1, "the reload came from the service worker");
  await user.fill("set-temperature", 0);
  const { text } = await user.ask(QUESTION);
  assert.equal(text, (await native(t, "models/demo.slm2", "-p", QUESTION, "--temperature", "0")).text);
  site.down = true;
  const before = site.log.length;
  await user.page.reload();
  await user.ready();
  assert.deepEqual((await user.answers()).map((a) => a.text), [text]);
  await user.press("Repeat");
  assert.equal((await user.idle()).at(-1).text, text);
  assert.deepEqual(site.log.slice(before).filter((p) => !p.endsWith("/sw.js")), []);
  assert.ok(site.log.every((p) => p.startsWith("/some/path/") || p === "/favicon.ico"), site.log.join());
});

/** A promise, and what fulfils it. */
function gate() {
  let open;
  const shut = new Promise((done) => { open = done; });
  return { shut, open };
}

test("the page's files are kept while the first model is fetched: whoever then stops the server has both", options, async (t) => {
  const registered = gate();
  const site = await host(t, { isolated: true, hold: { "sw.js": () => registered.open(), "models/demo.slm2": () => registered.shut } });
  const user = await open(t, site.url, { expect: broken });
  await user.page.waitFor(async () => (await navigator.serviceWorker.getRegistration()).active?.state === "activated");
  site.down = true;
  await user.page.reload();
  await user.ready();
  assert.match((await user.ask(QUESTION)).text, /Paris/);
});

test("a tab that is on its way when the service worker starts keeps nobody waiting", options, async (t) => {
  const worker = gate(), page = gate();
  const site = await host(t, { isolated: true, hold: { "sw.js": () => worker.shut,
    "index.html": (before) => (before === 1 ? page.shut : undefined) } });
  const one = await open(t, site.url, { expect: broken }), two = await t.page();
  two.expect(broken);
  const arrived = two.goto(site.url).then(() => null, (error) => error);
  while (site.log.filter((path) => path === "/some/path/").length < 2) await pause(20);
  worker.open();
  await one.page.waitFor(async () => (await navigator.serviceWorker.getRegistration())?.active?.state === "activated");
  assert.equal(await one.page.evaluate(async () => (await fetch("icon.svg")).status), 200);
  page.open();
  assert.equal(await arrived, null);
  await two.waitFor(() => document.querySelector(".notice p")?.textContent.includes("another tab of this browser"));
});

test("where the service worker cannot help, the page says what is missing and never reloads again", options, async (t) => {
  const site = await host(t, { edit: { "sw.js": () =>
    "self.addEventListener('activate', (e) => e.waitUntil(clients.claim()));" } });
  const user = await open(t, site.url, { expect: broken, wait: false });
  await user.notice("not cross-origin isolated").catch(() => user.notice("not cross-origin isolated"));
  const said = await user.notices();
  assert.match(said[0], /Cross-Origin-Opener-Policy.*Cross-Origin-Embedder-Policy/);
  await pause(1000);
  assert.equal(site.log.filter((p) => p === "/some/path/").length, 2);
  assert.equal(await user.status(), "Cannot run here");
  assert.equal(await user.page.evaluate(() => document.getElementById("prompt").disabled), true);
  await user.page.reload();
  await user.notice("not cross-origin isolated");
  await pause(500);
  assert.equal(site.log.filter((p) => p === "/some/path/").length, 3);
});

test("a new version is offered, waits for the answer, and is taken whole", options, async (t) => {
  const site = await host(t, { isolated: true }), user = await open(t, site.url, { expect: broken });
  await controlled(user);
  const answer = await user.ask(QUESTION);
  site.root = variant(t, "SECOND");
  await user.page.reload();
  assert.ok(!/SECOND/.test(await title(user)), "the old set serves until the user takes the new one");
  await user.ready();
  await user.notice("A new version of this page is ready.");
  /* An answer under way, here and in any other tab, is what holds this lock. */
  await user.page.evaluate(() => { void navigator.locks.request("slm2:answering", { mode: "shared" },
    () => new Promise((end) => { globalThis.endAnswer = end; })); });
  await user.press("Reload to update");
  await user.notice("takes over when the answer has ended");
  await pause(500);
  assert.ok(!/SECOND/.test(await title(user)));
  await user.page.evaluate(() => globalThis.endAnswer());
  for (let i = 0; i < 100 && !/SECOND/.test(await title(user).catch(() => "")); i++) await pause(50);
  assert.match(await title(user), /SECOND/);
  await user.ready();
  assert.deepEqual(await user.answers(), [answer]);
  assert.equal((await user.kept()).caches.length, 1);
});

test("a host that is half updated, or loses a file, activates nothing", options, async (t) => {
  const site = await host(t, { isolated: true }), user = await open(t, site.url, { expect: broken });
  await controlled(user);
  const { caches } = await user.kept();
  const whole = variant(t, "SECOND"), other = fs.readFileSync(path.join(web(t), "chat.js")) + "\n/* other */";
  const edits = [{ "chat.js": () => other }, { "engine/client.js": () => "" }];
  for (const edit of edits) {
    site.root = whole;
    site.edit = edit;
    const failed = await user.page.evaluate(async () => {
      const registration = await navigator.serviceWorker.getRegistration();
      await registration.update().catch(() => {});
      const { installing } = registration;
      if (installing) await new Promise((done) => {
        installing.addEventListener("statechange", () => { if (installing.state !== "installing") done(); });
        if (installing.state !== "installing") done();
      });
      return [Boolean(registration.waiting), installing?.state ?? "redundant"];
    });
    assert.deepEqual(failed, [false, "redundant"]);
    assert.deepEqual((await user.kept()).caches, caches);
  }
  await user.page.reload();
  await user.ready();
  assert.ok(!/SECOND/.test(await title(user)));
  assert.ok((await user.ask(QUESTION)).text.length > 0);
  site.edit = {};
  await user.page.reload();
  await user.notice("A new version of this page is ready.");
});

test("no request during an answer, and none to another origin", options, async (t) => {
  const site = await host(t, { isolated: true }), user = await open(t, site.url, { expect: broken });
  await controlled(user);
  await user.ask(QUESTION);
  for (let n = -1; n !== site.log.length; await pause(2000)) n = site.log.length; /* the browser looks for a newer sw.js once */
  const before = [site.log.length, user.page.requests.length];
  await user.ask("Tell me a story.");
  await user.ask("My secret is a green door.");
  await pause(300);
  assert.deepEqual([site.log.length, user.page.requests.length], before, site.log.slice(before[0]).join());
  for (const view of ["Models", "Prove it", "Privacy", "Chat"]) await user.view(view);
  const origin = new URL(site.url).origin;
  assert.deepEqual(user.page.requests.filter((r) => !r.url.startsWith(`${origin}/`) && !/^(blob|data):/.test(r.url)), []);
});
