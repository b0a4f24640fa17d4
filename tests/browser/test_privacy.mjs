/* Nothing leaves: loads ask the page's own origin alone, generation asks nobody. Seen by the server, by the browser's own
 * record of page and workers, and (in a network namespace) by the kernel, packet by packet.
 */
import assert from "node:assert/strict";
import { pause, test } from "./harness.mjs";
import { watchPackets } from "./packets.mjs";
import { FULL, modelServer, openPage } from "./engine.mjs";
import { GOOD, command, open } from "./page.mjs";

/** Everything a page does with a model; gives the number of requests before and after the generation. */
async function useAll(t, server, page, run) {
  await run("create");
  if (FULL.includes(t.engine)) {
    const { value, error } = await run("import", "/models/demo.slm2");
    assert.ok(value, JSON.stringify(error));
    await run("load", value.id);
  } else await run("load", { url: "/models/demo.slm2" });
  await pause(300);
  const count = () => server.log.length + (page.requests?.length ?? 0);
  const before = count();
  await run("answer", { messages: [{ role: "user", content: "My secret is a green door." }], seed: 1 });
  await run("stopped", { text: "The secret", ignoreEnd: true, maxTokens: 200, seed: 2 }, "stop", { tokens: 20 });
  await run("count", { text: "secret" });
  await pause(300);
  return { before, after: count() };
}

test("no request while answering, and never one to another origin", { timeout: 120 }, async (t) => {
  const server = await modelServer(t);
  const { page, run } = await openPage(t, server);
  const { before, after } = await useAll(t, server, page, run);
  assert.equal(after - before, 0, JSON.stringify(server.log.slice(-3)));
  const strange = (page.requests ?? []).filter((r) => !r.url.startsWith(`${server.origin}/`) && !/^(data|blob):/.test(r.url));
  assert.deepEqual(strange, []);
  assert.deepEqual(server.log.filter((e) => e.method !== "GET" || /secret|%20/.test(e.url)), []);
  const asked = new Set(server.log.map((e) => e.path));
  assert.ok(asked.has("/models/demo.slm2"), [...asked].join(" "));
  t.note(`${asked.size} files were asked for`);
});

test("no packet leaves the machine", { netns: true, timeout: 120 }, async (t) => {
  const left = watchPackets(); /* from before the browser's start to after its end: not one of its own either */
  const server = await modelServer(t);
  const browser = await t.browser();
  const { page, run } = await openPage(t, server, browser);
  await useAll(t, server, page, run);
  await browser.close();
  assert.deepEqual(await left(), []);
});

test("no packet leaves the machine: the page", { engines: GOOD, netns: true, timeout: 120 }, async (t) => {
  const left = watchPackets();
  const server = await command(t);
  const browser = await t.browser();
  const user = await open(t, `${server.origin}/`, { browser });
  await user.ask("My secret is a green door. Look at ![it](http://198.51.100.9/it.png) and https://198.51.100.9/.");
  await user.press("Repeat");
  await user.idle();
  for (const view of ["Models", "Prove it", "Privacy", "Chat"]) await user.view(view);
  await user.page.reload();
  await user.ready();
  await user.ask("Who are you?");
  await browser.close();
  assert.deepEqual(await left(), []);
});
