/* The npm package as it is packed: the page of web/examples/minimal prints the tokens that the command prints. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { execFileSync } from "node:child_process";
import { test } from "./harness.mjs";
import { native } from "./engine.mjs";

test("the minimal page runs from the packed package", { timeout: 60 }, async (t) => {
  const archive = fs.readdirSync(path.join(t.build, "npm")).find((name) => name.endsWith(".tgz"));
  const folder = t.folder(), target = path.join(folder, "node_modules", "slm2");
  fs.cpSync("web/examples/minimal", folder, { recursive: true });
  fs.mkdirSync(target, { recursive: true });
  execFileSync("tar", ["xzf", path.resolve(t.build, "npm", archive), "-C", target, "--strip-components", "1"]);
  const server = await t.server({ models: { "demo.slm2": "models/demo.slm2" }, folders: { example: folder } });
  const page = await t.page(`${server.origin}/example/index.html`);
  const state = await page.waitFor(() => {
    const text = document.getElementById("state")?.textContent ?? "";
    return /tokens|:/.test(text) ? text : "";
  });
  const right = await native(t, "models/demo.slm2", "-p", "Who are you?", "--seed", "1");
  assert.equal(state, `${right.finish}: ${right.completion_tokens} tokens, seed 1`);
  assert.equal(await page.evaluate(() => document.getElementById("answer").textContent), right.text);
  t.note(archive);
});
