/* Takes the pictures of docs/screenshots (`make screenshots`). Usage: node tests/browser/screenshots.mjs BUILD DIR
 * What they show is made by the page itself with the demo; the long answer with its thinking is written for the picture.
 */
import fs from "node:fs";
import path from "node:path";
import { Context, SharedBrowser } from "./harness.mjs";
import { command, open } from "./page.mjs";

const [build, folder] = process.argv.slice(2);
fs.mkdirSync(folder, { recursive: true });
const shared = new SharedBrowser("chromium"), t = new Context("chromium", build, shared);
const server = await command(t), user = await open(t, `${server.origin}/`), { tab } = user.page.own;
const size = (width, height) => tab.setViewportSize({ width, height });
async function picture(name) {
  const file = path.join(folder, `${name}.png`);
  await new Promise((done) => setTimeout(done, 250));
  await user.page.evaluate(() => document.activeElement?.blur());
  await tab.screenshot({ path: file });
  console.log(`${file} ${fs.statSync(file).size} bytes`);
}
const ANSWER = `A hash is a **fingerprint** of bytes: the same bytes always have the same one, and one changed bit gives another.

| Property | Meaning |
|---|---|
| deterministic | equal bytes, equal hash |
| one-way | the bytes cannot be computed from it |

\`\`\`sh
sha256sum models/demo.slm2
\`\`\`

1. Compute the hash of your file.
2. Compare it with the one that was published.`;

await size(1120, 720);
await picture("first-run");
await user.ask("What is the capital of France?");
await user.ask("Tell me a story.");
await picture("chat");
const conversation = { id: "00000000-0000-4000-8000-000000000001", title: "What is a hash?", created: "2026-01-01T00:00:00.000Z",
  updated: "2036-01-01T00:00:00.000Z", system: "", messages: [
    { role: "user", content: "What is a hash, and what is it good for?" },
    { role: "assistant", content: ANSWER, reasoning: "The user asks for a definition. A table and an example will help." }] };
const file = { format: "slm2-conversations", version: 1, conversations: [conversation] };
await user.picked("Import", { name: "c.json", text: JSON.stringify(file) });
await user.press("Dismiss", "#notices");
await user.press("What is a hash?", "#conversations");
await picture("markdown");
await tab.emulateMedia({ colorScheme: "dark" });
await picture("markdown-dark");
await tab.emulateMedia({ colorScheme: "light" });
await size(360, 740);
await picture("phone");
await user.press("Conversations", ".bar");
await picture("phone-conversations");
await tab.keyboard.press("Escape");
await size(1120, 800);
await user.view("Models");
await new Promise((done) => setTimeout(done, 300));
await user.press("Memory", "#view-models");
await user.page.waitFor(() => document.querySelector("#view-models tfoot") !== null);
await picture("models");
await user.view("Prove it");
await user.press("Run the proof");
await user.page.waitFor(() =>
  /equal: this|differ|broke off/.test(document.querySelector("#view-prove [role=status]").textContent));
await picture("prove");
await user.view("Privacy");
await picture("privacy");
await user.view("Chat");
await size(1120, 720);
await user.page.evaluate(() => { document.getElementById("options").open = true; });
await picture("settings");
await user.page.evaluate(async () => {
  document.getElementById("options").open = false;
  const { notice } = await import(new URL("dom.js", location.href).href);
  notice("A new version of this page is ready.", { actions: [{ label: "Reload to update", run() {} }] });
  notice("The engine stopped: slm2 engine: out of bounds memory access. Your conversation is kept.", { kind: "error",
    actions: [{ label: "Start it again", run() {} }] });
});
await picture("notices");
await t.finish();
await shared.drop();
process.exit(0);
