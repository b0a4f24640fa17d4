/* Nothing leaves: loads ask the page's own origin alone, generation asks nobody. Seen by the server, by the browser's own
 * record of page and workers, and (in a network namespace) by the kernel, packet by packet.
 */
import assert from "node:assert/strict";
import fs from "node:fs";
import { pause, test } from "./harness.mjs";
import { FULL, modelServer, openPage } from "./engine.mjs";

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

test("no packet leaves the machine", { engines: FULL, netns: true, timeout: 120 }, async (t) => {
  const sent = () => Number(fs.readFileSync(`/sys/class/net/${process.env.SLM2_NETNS}/statistics/tx_packets`, "utf8"));
  const server = await modelServer(t);
  const before = sent();
  const { page, run } = await openPage(t, server);
  await useAll(t, server, page, run);
  assert.equal(sent() - before, 0);
});
