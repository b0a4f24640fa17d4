/* What goes wrong in a user's hands: questions that are too long, text that is no Unicode, files dropped beside their place,
 * conversations that are deleted or go on elsewhere meanwhile. */
import assert from "node:assert/strict";
import { pause, test } from "./harness.mjs";
import { native } from "./engine.mjs";
import { command, GOOD, open } from "./page.mjs";

const DEMO = "models/demo.slm2";
const QUESTION = "What is the capital of France?", STORY = "Tell me a story.";
const options = { engines: GOOD, timeout: 60 };
const titles = (user) => user.page.evaluate(() => [...document.querySelectorAll(".conversation")].map((b) => b.textContent));
const messages = async (user, i = 0) => (await user.exported())[i].messages;

/** The page's last answer is the command's to this question alone. */
async function asAlone(t, user) {
  const right = await native(t, DEMO, "-p", QUESTION, "--temperature", "0"), { content, stats } = (await messages(user)).at(-1);
  assert.deepEqual([content, stats?.digest], [right.text, right.digest]);
}

test("a question that does not fit says what to do, and is not asked again with the next one", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  await user.fill("set-temperature", 0);
  const { failed, text } = await user.ask("word ".repeat(6000));
  assert.equal(text, "");
  assert.match(failed, /do not fit the context of \d+.*(shorten|shorter).*new conversation.*Models/i);
  assert.equal((await user.ask(QUESTION)).failed, null);
  await asAlone(t, user);
});

test("text that is no Unicode is mended, and a title ends between characters", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  await user.page.evaluate(() => { /* what the driver sends is Unicode, so it is made there */
    document.getElementById("prompt").value = `${"x".repeat(59)}\u{1f98a} and \ud83d alone`;
    document.getElementById("composer").requestSubmit();
  });
  assert.equal((await user.idle()).at(-1).failed, null);
  const [{ title, messages: [{ content }] }] = await user.exported();
  assert.equal(content, `${"x".repeat(59)}\u{1f98a} and \ufffd alone`);
  assert.equal(title, `${"x".repeat(59)}\u{1f98a}`);
  await user.page.evaluate(() => {
    const field = document.getElementById("set-system");
    field.value = "You are \udc00.";
    field.dispatchEvent(new Event("change"));
  });
  assert.equal((await user.ask(QUESTION)).failed, null);
});

test("an answer that is stopped before it begins says so", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  await user.page.evaluate(() => {
    document.getElementById("prompt").value = "Tell me a story.";
    document.getElementById("composer").requestSubmit();
    document.getElementById("stop").click();
  });
  const [answer] = await user.idle();
  const shown = () => user.page.evaluate(() => document.querySelector(".answer").textContent);
  if (answer.figures === null) assert.match(await shown(), /Stopped before it began/);
  await user.page.reload();
  await user.ready();
  assert.match(await shown(), /Stopped before it began|stopped by you|finished/);
  assert.equal((await user.ask(QUESTION)).failed, null);
});

test("a conversation that is deleted while it is answered stays deleted", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  for (let i = 0; i < 3; i++) {
    await user.send(STORY);
    await user.page.evaluate(async () => { /* in one go: answers of the demo are short */
      document.querySelector("#conversations [aria-current=true] ~ [aria-label^=Delete]").click();
      while (document.querySelector("dialog [value=yes]") === null) await new Promise(requestAnimationFrame);
      document.querySelector("dialog [value=yes]").click();
    });
    await user.idle();
    await pause(200);
    assert.deepEqual(await titles(user), ["New conversation"]);
  }
  assert.deepEqual((await user.kept()).files.filter((name) => name.includes("conversations/")), []);
});

test("files dropped anywhere: models go to Models, conversations come in, and the browser opens none", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  const drop = (name, text) => user.page.evaluate((n, bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([bytes], n));
    return ["dragover", "drop"].map((type) => {
      const event = new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true });
      document.getElementById("log").dispatchEvent(event);
      return event.defaultPrevented;
    });
  }, name, text);
  assert.deepEqual(await drop("junk.gguf", "GGUF and no more"), [true, true]);
  await user.page.waitFor(() => document.body.dataset.view === "models");
  await user.page.waitFor(() => document.querySelector(".drop + div .failed")?.textContent.includes("junk.gguf"));
  const conversation = { id: "00000000-0000-4000-8000-000000000001", title: "Dropped", created: "2026", updated: "2026", system: "",
    messages: [{ role: "user", content: "x" }] };
  await drop("c.json", JSON.stringify({ format: "slm2-conversations", version: 1, conversations: [conversation] }));
  await user.notice("1 of 1 conversations imported");
  assert.ok((await titles(user)).includes("Dropped"));
  const text = await user.page.evaluate(() => { /* a text that is dragged into the field is the field's */
    const data = new DataTransfer();
    data.setData("text/plain", "x");
    const event = new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true });
    document.getElementById("prompt").dispatchEvent(event);
    return event.defaultPrevented;
  });
  assert.equal(text, false);
});

test("tabs tell each other of conversations: none overwrites what another one kept", options, async (t) => {
  const server = await command(t), one = await open(t, `${server.origin}/`);
  await one.ask(QUESTION);
  const two = await open(t, `${server.origin}/`, { wait: false });
  await two.notice("another tab of this browser has loaded this model");
  await one.ask(STORY);
  await two.page.waitFor(() => document.querySelectorAll(".answer").length === 2);
  await two.press("Use it here");
  await two.ready();
  await two.ask("What is 7 plus 5?");
  assert.deepEqual((await messages(two)).filter((m) => m.role === "user").map((m) => m.content),
    [QUESTION, STORY, "What is 7 plus 5?"]);
  await one.page.waitFor(() => document.querySelectorAll(".answer").length === 3);
  await one.press(`Delete "${QUESTION}"`);
  await one.press("Delete", "dialog");
  await two.page.waitFor(() => document.querySelector(".welcome") !== null);
  assert.deepEqual(await titles(two), ["New conversation"]);
  await two.ask(STORY);
  await one.page.waitFor(() => document.querySelectorAll(".conversation").length === 2);
});
