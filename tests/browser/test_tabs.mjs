/* Two tabs and a lost one: a model has one owner, who can be replaced; a load that the browser ended is remembered. */
import assert from "node:assert/strict";
import { pause, test } from "./harness.mjs";
import { killAll } from "./proc.mjs";
import { FULL, modelServer, openPage } from "./engine.mjs";

const options = { engines: FULL, timeout: 120 };
const DEMO = "/models/demo.slm2";

test("a second tab hears at once that the model is in use, and can take it over", options, async (t) => {
  const server = await modelServer(t);
  const one = await openPage(t, server);
  await one.run("create");
  const { value } = await one.run("import", DEMO);
  await one.run("load", value.id);
  const two = await openPage(t, server);
  await two.run("create");
  const refused = await two.run("tryLoad", value.id);
  assert.equal(refused.error?.code, "IN_USE");
  assert.equal((await two.run("remove", value.id)).error?.code, "IN_USE");
  t.note(`in use after ${refused.ms.toFixed(0)} ms`);
  assert.ok(refused.ms < 1000, `${refused.ms} ms`);
  const taken = await two.run("tryLoad", value.id, { takeOver: true });
  assert.ok(taken.value, JSON.stringify(taken.error));
  const question = { messages: [{ role: "user", content: "Who are you?" }], maxTokens: 5, temperature: 0 };
  assert.equal((await two.run("answer", question)).ids.length, 5);
  await pause(100);
  assert.equal((await one.run("state")).state, "empty");
  assert.equal((await one.run("tryAnswer", question)).error?.code, "NO_MODEL");
  await two.run("unload");
  assert.ok((await one.run("tryLoad", value.id)).value);
});

test("a tab that is closed or reloaded lets go of the model", options, async (t) => {
  const server = await modelServer(t);
  const one = await openPage(t, server);
  await one.run("create");
  const { value } = await one.run("import", DEMO);
  await one.run("load", value.id);
  await one.page.reload();
  await one.page.waitFor(() => Boolean(globalThis.run));
  assert.equal((await one.run("create")).lastLoadFailed, null);
  const again = await one.run("tryLoad", value.id);
  assert.ok(again.value, JSON.stringify(again.error));
  await one.page.close();
  const two = await openPage(t, server);
  assert.equal((await two.run("create")).lastLoadFailed, null);
  const after = await two.run("tryLoad", value.id);
  assert.ok(after.value, JSON.stringify(after.error));
});

test("a load that its tab did not survive is told of, and nothing loads by itself", options, async (t) => {
  const server = await modelServer(t);
  const browser = await t.browser();
  const lost = await openPage(t, server, browser);
  lost.page.expect(/crashed/);
  await lost.run("create");
  server.rule(DEMO, { slow: 1000000, after: 3 });
  await lost.page.evaluate((url) => { void globalThis.run.tryLoad({ url }, { context: 300 }); }, DEMO);
  await lost.page.waitFor(() => globalThis.run.files().then((files) => files["loading.mark"] > 0, () => false));
  await pause(200);
  killAll(browser.renderers()); /* as the system does when memory is short */
  await pause(500);
  server.rule(DEMO, null);
  const { run } = await openPage(t, server, browser);
  const created = await run("create");
  assert.equal(created.state, "empty");
  assert.deepEqual([created.lastLoadFailed?.name, created.lastLoadFailed?.context], ["demo.slm2", 300]);
  await run("load", { url: DEMO });
  assert.equal((await run("create")).lastLoadFailed, null);
});
