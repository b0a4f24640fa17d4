/* Which module and how many threads: what a trial found is remembered, and measured again when it may no longer hold. */
import assert from "node:assert/strict";
import { test } from "./harness.mjs";
import { modelServer, openPage } from "./engine.mjs";

/** A page, and what an engine chose that found `known` under `key`. */
async function chooser(t) {
  const server = await modelServer(t), { page, run } = await openPage(t, server);
  const read = async (key) => JSON.parse(await page.evaluate((name) => localStorage.getItem(name), key));
  return { server, page, run, read, async chosen(key, known) {
    await page.evaluate((name, text) => localStorage.setItem(name, text), key, known);
    await run("create");
    await run("load", { url: "/models/demo.slm2" });
    return (await run("capabilities")).chosen;
  } };
}

test("threads that gained once are taken without measuring; of another machine, or none, they are measured", { timeout: 120 }, async (t) => {
  const { run, read, chosen } = await chooser(t), { cores } = await run("create");
  const most = Math.min(cores, 8);
  const told = await chosen("slm2:threads", JSON.stringify({ cores, threads: cores }));
  assert.deepEqual([told.threads, told.gains], [most, []]);
  for (const known of most === 1 ? [] : [JSON.stringify({ cores: cores + 1, threads: cores + 1 }), JSON.stringify({ cores, threads: -1 }),
    "null", "nonsense"]) {
    const { threads, gains } = await chosen("slm2:threads", known);
    assert.ok(gains.length > 0 && threads >= 1 && threads <= most, known);
    assert.deepEqual(await read("slm2:threads"), { cores, threads });
  }
});

test("a module that won a trial is taken without measuring, and others are not fetched", { timeout: 120 }, async (t) => {
  const { server, page, run, read, chosen } = await chooser(t), KEY = "slm2:module";
  const first = await chosen(KEY, "{}"), kinds = first.trials.map(({ kind }) => kind);
  if (kinds.length < 2) return t.note("this browser has one module to choose from: nothing to remember");
  const kept = await read(KEY);
  assert.deepEqual(Object.keys(kept.modules), kinds);
  assert.equal(kept.modules[first.kind], first.sha256);
  assert.equal(kept.kind, first.kind);
  for (const kind of kinds) {
    await page.reload();
    await page.waitFor(() => Boolean(globalThis.run));
    const before = server.log.length;
    const told = await chosen(KEY, JSON.stringify({ ...kept, kind }));
    assert.deepEqual([told.kind, told.sha256, told.trials], [kind, kept.modules[kind], []]);
    const fetched = server.log.slice(before).map((entry) => entry.path).filter((path) => path.endsWith(".wasm"));
    assert.ok(fetched.includes(`/wasm/slm2-${kind}.wasm`), fetched.join(" "));
    if (kind === kinds[0]) assert.equal(fetched.length, 1, fetched.join(" ")); /* which plans are made with, whatever is chosen */
  }
  const day = 86400000;
  for (const [what, known] of Object.entries({
    "another module's bytes": { ...kept, modules: { ...kept.modules, [kinds[1]]: "0".repeat(64) } },
    "a module that was not there": { ...kept, modules: { [kinds[0]]: kept.modules[kinds[0]] } },
    "one more module": { ...kept, modules: { ...kept.modules, scalar: "0".repeat(64) } },
    "another browser": { ...kept, browser: `${kept.browser} (newer)` },
    "a module that was not a choice": { ...kept, kind: "scalar" },
    "eight days ago": { ...kept, at: Date.now() - 8 * day },
    "from the future": { ...kept, at: Date.now() + day },
    "no time": { ...kept, at: undefined },
    "no modules": { kind: kept.kind, browser: kept.browser, at: kept.at },
    "null": null,
  })) {
    const { trials } = await chosen(KEY, JSON.stringify(known));
    assert.deepEqual(trials.map(({ kind }) => kind), kinds, what);
    assert.ok((await read(KEY)).at >= kept.at, what);
  }
  assert.equal((await chosen(KEY, "nonsense")).trials.length, kinds.length);
  await run("create", { module: kinds[1] });
  await run("load", { url: "/models/demo.slm2" });
  assert.equal((await run("capabilities")).chosen.kind, kinds[1]);
});
