/* The engine's own compilers of WebAssembly, the quick and the thorough one: every kernel of every module against the oracle,
 * to the bit (tests/kernelcheck). */
import assert from "node:assert/strict";
import { test } from "./harness.mjs";

for (const kind of ["simd", "relaxed"]) {
  test(`kernelcheck: ${kind}`, { timeout: 180 }, async (t) => {
    const server = await t.server({ models: { "demo.slm2": "models/demo.slm2" } });
    const page = await t.page(`${server.origin}/test/harness.html`);
    await page.waitFor(() => Boolean(globalThis.inWorker));
    await page.evaluate(() => globalThis.useWorker("kernelcheck.js"));
    const result = await page.evaluate((which) => globalThis.inWorker("kernelcheck", which), kind);
    if (result === null) return t.note("not admitted by this browser");
    assert.equal(result.code, 0, result.text);
    const checks = [...result.text.matchAll(/^ok kernelcheck \w+: (\d+) checks$/gm)].map((line) => Number(line[1]));
    assert.equal(checks.length, 4, result.text);
    t.note(`${checks.reduce((a, b) => a + b)} checks`);
  });
}
