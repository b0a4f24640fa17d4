/* Memory, as the kernel counts it: a load takes what the plan says, unloading gives it back, again and again. */
import assert from "node:assert/strict";
import { pause, test } from "./harness.mjs";
import { FULL, modelServer, openPage } from "./engine.mjs";

const MiB = 1048576;
const CYCLES = 10;

test(`${CYCLES} loads and unloads end where they began, and a load takes no more than planned`, { timeout: 300 }, async (t) => {
  const shape = "qwen3-0.6b-4layer";
  const browser = await t.browser();
  const { run } = await openPage(t, await modelServer(t, shape), browser);
  await run("create");
  const first = (await run("load", { url: "/models/demo.slm2" })).plan.total;
  await run("unload");
  await pause(3000);
  const before = browser.memory();
  const limit = before.anonymous * 1.1;
  const highest = [];
  let planned = 0;
  const after = [];
  for (let i = 0; i < CYCLES; i++) {
    browser.resetPeak();
    const { plan, bytes } = await run("load", { url: `/models/${shape}.slm2` }, { context: 512 });
    planned = plan.total;
    const answer = await run("answer", { ids: [1, 2, 3], maxTokens: 3, temperature: 0 });
    assert.equal(answer.ids.length, 3);
    const loaded = browser.memory();
    const risen = loaded.anonymous - before.anonymous + first; /* the first one's memory may have been there still, before */
    assert.ok(risen > 0.95 * bytes, `the model is resident: ${(risen / MiB).toFixed(0)} of ${(bytes / MiB).toFixed(0)} MiB`);
    highest.push(loaded.peak - before.resident);
    await run("unload");
    after.push(browser.memory().anonymous);
  }
  for (let i = 0; i < 300 && after.at(-1) > limit; i++) { /* the page's own hold ends with its next garbage collection */
    await pause(100);
    after.push(browser.memory().anonymous);
  }
  after.splice(CYCLES, after.length - CYCLES - 1);
  const rises = after.map((bytes) => ((bytes - before.anonymous) / MiB).toFixed(0));
  const most = Math.max(...highest);
  t.note(`before ${(before.anonymous / MiB).toFixed(0)} MiB, after each ${rises.join(" ")} more; highest `
    + `${(highest[0] / MiB).toFixed(0)} more in the first load, ${(most / MiB).toFixed(0)} in all, planned ${(planned / MiB).toFixed(0)}`);
  assert.ok(after.at(-1) <= limit, `${(after.at(-1) / MiB).toFixed(0)} MiB are left of ${(before.anonymous / MiB).toFixed(0)}`);
  /* WebKitGTK's network process does not wait for its reader, so a fast server fills the page's process with a body. */
  const extra = t.engine === "webkit" ? planned : 0;
  assert.ok(highest[0] <= planned + 96 * MiB + extra, `${(highest[0] / MiB).toFixed(0)} MiB above the start, ${(planned / MiB).toFixed(0)} planned`);
  /* Chromium collects its garbage when it is pressed; elsewhere, of all models before, at most one may still be there. */
  assert.ok(most <= (t.engine === "chromium" ? 1 : 2) * planned + 96 * MiB + extra, `${(most / MiB).toFixed(0)} MiB above the start, ${(planned / MiB).toFixed(0)} planned`);
});

test("after a reload in the same tab there is one model in memory, not two", { engines: FULL, timeout: 120 }, async (t) => {
  const shape = "qwen3-0.6b-4layer", model = { url: `/models/${shape}.slm2` };
  const browser = await t.browser();
  const { page, run } = await openPage(t, await modelServer(t, shape), browser);
  const before = browser.memory().resident, highest = [], slack = t.engine === "chromium" ? 96 : 160; /* MiB, of the browser's own */
  for (let i = 0; i < 4; i++) {
    await run("create");
    browser.resetPeak();
    const { plan } = await run("load", model, { context: 512 });
    assert.equal((await run("answer", { ids: [1, 2, 3], maxTokens: 3, temperature: 0 })).ids.length, 3);
    highest.push((browser.memory().peak - before) / MiB);
    if (i > 0) assert.ok(highest[i] <= plan.total / MiB + slack, `${highest.map(Math.round)} MiB, planned ${(plan.total / MiB).toFixed(0)}`);
    await page.reload();
    await page.waitFor(() => Boolean(globalThis.run));
  }
  t.note(`highest ${highest.map((x) => x.toFixed(0)).join(", ")} MiB`);
});

test("a model that cannot fit is refused before anything is taken, with the numbers", { timeout: 60 }, async (t) => {
  const browser = await t.browser();
  const { run } = await openPage(t, await modelServer(t, "small"), browser);
  await run("create", { maxPages: 60 });
  const before = browser.memory().anonymous;
  const { error } = await run("tryLoad", { url: "/models/small.slm2" });
  assert.equal(error.code, "MEMORY");
  assert.match(error.message, /60/);
  assert.ok(error.details.pages > 60, JSON.stringify(error.details));
  assert.ok(browser.memory().anonymous < before + 50 * MiB);
  await run("create");
  const most = await run("tryLoad", { url: "/models/small.slm2" }, { context: 40961 });
  assert.ok(most.error && /40,?961|40,?960/.test(most.error.message), JSON.stringify(most.error));
});
