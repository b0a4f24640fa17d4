/* The page from outside: questions and answers as someone has them who sees only what is shown, compared with the command. */
import assert from "node:assert/strict";
import { pause, test } from "./harness.mjs";
import { native } from "./engine.mjs";
import { command, GOOD, host, open } from "./page.mjs";

const DEMO = "models/demo.slm2";
const QUESTION = "What is the capital of France?", STORY = "Tell me a story.";
const options = { engines: GOOD, timeout: 60 };
const offline = /ERR_CONNECTION_REFUSED|NetworkError|Failed to fetch|failed to fetch|Failed to load|ServiceWorker|AbortError/i;

/** The answer of the page, as its export has it, is the native one: text, finish, digest of tokens and log-probabilities. */
async function sameAsNative(t, user, message, ...flags) {
  const right = await native(t, DEMO, ...flags);
  assert.equal(message.content, right.text);
  assert.equal(message.stats.digest, right.digest);
  assert.equal(message.stats.finish, right.finish);
}
const last = async (user) => (await user.exported())[0].messages.at(-1);

test("the first visit answers as native, greedily and with a seed; without its server, after a reload, too", options,
  async (t) => {
    const server = await command(t), user = await open(t, `${server.origin}/`, { expect: offline });
    await user.press("Settings the model's own");
    await user.fill("set-temperature", 0);
    const answer = await user.ask(QUESTION);
    assert.match(answer.figures, /tokens\/s · \d+ tokens · prompt \d+ · finished · seed \d+ · model [0-9a-f]{8}$/);
    await sameAsNative(t, user, await last(user), "-p", QUESTION, "--temperature", "0");
    await user.page.waitFor(() => Boolean(navigator.serviceWorker.controller));
    await server.stop();
    await user.page.reload();
    await user.ready();
    assert.deepEqual((await user.answers()).map((a) => a.text), [answer.text]);
    await user.press("New conversation");
    await user.fill("set-temperature", "");
    await user.fill("set-seed", 7);
    await user.ask(STORY);
    await sameAsNative(t, user, await last(user), "-p", STORY, "--seed", "7");
  });

test("WebKit, which keeps nothing here, answers as native and says what it lacks", { engines: ["webkit"] }, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`, { expect: /ServiceWorker|not supported|denied/i });
  await user.fill("set-temperature", 0);
  await user.ask(QUESTION);
  await sameAsNative(t, user, await last(user), "-p", QUESTION, "--temperature", "0");
  assert.match(await user.page.evaluate(() => document.getElementById("history-note").textContent), /as long as this tab/);
});

test("an answer streams, is stopped by button and Escape, repeats with its seed, is asked anew, edited and sent again", options,
  async (t) => {
    const server = await command(t), user = await open(t, `${server.origin}/`);
    const long = "Tell me a story about a fox.";
    const { text, figures } = await user.ask(long);
    const seed = /seed (\d+)/.exec(figures)[1];
    await user.press("Repeat");
    const again = (await user.idle())[0];
    assert.equal(again.text, text);
    assert.ok(again.figures.includes(`seed ${seed} `));
    await user.press("New answer");
    assert.ok(!(await user.idle())[0].figures.includes(`seed ${seed} `));

    for (const how of ["button", "key"]) {
      await user.press("New conversation");
      await user.send("Write a very long story about the sea and the wind, please.");
      await user.page.waitFor((by) => { /* as soon as something is there, from inside: answers of the demo are short */
        if (document.querySelector(".answer .prose")?.textContent.length > 0 || document.getElementById("stop").hidden) {
          if (by === "button") document.getElementById("stop").click();
          else document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
          return true;
        }
        return false;
      }, how);
      const [answer] = await user.idle();
      assert.equal(answer.failed, null);
      assert.match(answer.figures, /stopped by you|finished/);
    }
    await user.press("Edit");
    await user.page.evaluate(() => { document.querySelector(".question textarea").value = "What is 7 plus 5?"; });
    await user.press("Send again");
    assert.equal((await user.idle()).length, 1);
    const [{ messages, title }] = await user.exported();
    assert.deepEqual([messages.length, messages[0].content], [2, "What is 7 plus 5?"]);
    assert.match(title, /^Write a very long/);
    assert.notEqual((await last(user)).content, "");
  });

test("an answer that is stopped keeps what came, and the next one is the same as from a fresh engine", options, async (t) => {
  const site = await host(t, { isolated: true, edit: { /* each token takes its time, so that there is something to stop */
    "engine/request.js": (bytes) => `${bytes}\n{ const next = Answer.prototype[Symbol.asyncIterator];
      Answer.prototype[Symbol.asyncIterator] = async function* slow() {
        for await (const event of { [Symbol.asyncIterator]: () => next.call(this) }) {
          await new Promise((done) => setTimeout(done, 60));
          yield event;
        } }; }` } });
  const user = await open(t, site.url, { expect: /another version|ServiceWorker|Failed to register/i });
  await user.fill("set-maxTokens", 12);
  await user.send(STORY);
  await user.written(1);
  assert.match(await user.status(), /positions$/);
  await user.press("Stop");
  const [stopped] = await user.idle();
  assert.ok(stopped.text.length > 0);
  await user.press("New conversation");
  await user.fill("set-temperature", 0);
  await user.ask(QUESTION);
  await sameAsNative(t, user, await last(user), "-p", QUESTION, "--temperature", "0", "--max-tokens", "12");
});

test("settings: the model's own are shown, wrong ones are refused, all go back; the system prompt belongs to its conversation",
  options, async (t) => {
    const server = await command(t), user = await open(t, `${server.origin}/`);
    const fields = () => user.page.evaluate(() => Object.fromEntries(
      [...document.querySelectorAll("#options-body :is(input, select)")].map((e) =>
        [e.id.slice(4), [e.value, e.placeholder ?? "", e.getAttribute("aria-invalid")]])));
    const summary = () => user.page.evaluate(() => document.getElementById("options-summary").textContent);
    const { temperature, topK, topP } = await fields();
    assert.deepEqual([temperature[1], topK[1], topP[1]], ["0.6", "20", "0.95"]);
    assert.equal(await summary(), "the model's own");
    for (const [name, wrong, right] of [["temperature", "-1", "0.123"], ["temperature", "99", "5"], ["topK", "1.5", "40"],
      ["topP", "1.01", "0.5"], ["minP", "-0.1", "0.02"], ["repeatPenalty", "0", "1.1"], ["maxTokens", "0", "5"],
      ["seed", "18446744073709551616", "18446744073709551615"], ["seed", "x7", "007"]]) {
      await user.fill(`set-${name}`, wrong);
      assert.equal((await fields())[name][2], "true", `${name} ${wrong}`);
      await user.fill(`set-${name}`, right);
      assert.equal((await fields())[name][2], "false", `${name} ${right}`);
    }
    assert.equal(await summary(), "7 changed");
    await user.ask(STORY);
    await sameAsNative(t, user, await last(user), "-p", STORY, "--seed", "7", "--temperature", "5", "--top-k", "40",
      "--top-p", "0.5", "--min-p", "0.02", "--repeat-penalty", "1.1", "--max-tokens", "5");
    await user.page.reload();
    await user.ready();
    assert.equal(await summary(), "7 changed");
    await user.press("Settings 7 changed");
    await user.press("The model's own settings");
    assert.equal(await summary(), "the model's own");
    await user.press("New conversation");
    await user.fill("set-system", "You are a pirate.");
    await user.fill("set-temperature", 0);
    await user.ask("Who are you?");
    await sameAsNative(t, user, await last(user), "-p", "Who are you?", "--system", "You are a pirate.", "--temperature", "0");
    await user.press("New conversation");
    assert.equal(await user.page.evaluate(() => document.getElementById("set-system").value), "");
    await user.fill("set-threads", "1");
    await user.ready();
    await user.ask(QUESTION);
    await sameAsNative(t, user, await last(user), "-p", QUESTION, "--temperature", "0");
    await user.view("Privacy");
    const threads = () => document.getElementById("view-privacy").textContent.match(/ and \d+ of \d+ threads/)?.[0];
    assert.match(await user.page.waitFor(threads), / and 1 of/);
  });

test("conversations survive a reload, have their titles, go out as a file and come back, and are deleted", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  const titles = () => user.page.evaluate(() => [...document.querySelectorAll(".conversation")].map((b) => b.textContent));
  const answer = await user.ask(QUESTION);
  await user.press("New conversation");
  await user.ask(STORY);
  await user.page.reload();
  await user.ready();
  assert.deepEqual(await titles(), [STORY, QUESTION]);
  await user.press(QUESTION, "#conversations");
  assert.deepEqual(await user.answers(), [answer]);
  await user.press(`Rename "${QUESTION}"`);
  await user.fill("ask-line", "Capitals <b>");
  await user.press("Save", "dialog");
  await user.page.waitFor(() => document.querySelector(".conversation").textContent === "Capitals <b>");
  const file = await user.offered("Export all"), parsed = JSON.parse(file);
  assert.deepEqual([parsed.format, parsed.version, parsed.conversations.length], ["slm2-conversations", 1, 2]);
  for (const name of ["Capitals <b>", STORY]) {
    await user.press(name, "#conversations");
    await user.press(`Delete "${name}"`);
    await user.press("Delete", "dialog");
    await user.page.waitFor((gone) => ![...document.querySelectorAll(".conversation")].some((b) => b.textContent === gone), name);
  }
  assert.deepEqual(await titles(), ["New conversation"]);
  assert.deepEqual((await user.kept()).files.filter((name) => name.includes("conversations/")), []);
  await user.picked("Import", { name: "c.json", text: file });
  await user.notice("2 of 2 conversations imported.");
  assert.deepEqual(JSON.parse(await user.offered("Export all")).conversations, parsed.conversations);
  await user.picked("Import", { name: "c.json", text: file });
  await user.notice("0 of 2 conversations imported; the others were here already.");
});

test("a hostile file of conversations changes nothing, or is only text", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  const id = (n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  const good = { id: id(1), title: "t", created: "2026", updated: "2026", system: "",
    messages: [{ role: "user", content: "x" }] };
  const wrap = (...conversations) => JSON.stringify({ format: "slm2-conversations", version: 1, conversations });
  const bad = ["", "null", "[]", "{", "{}", '{"format":"slm2-conversations"}',
    '{"format":"other","version":1,"conversations":[]}',
    JSON.stringify({ format: "slm2-conversations", version: 2, conversations: [] }),
    ...[{ id: "../../x" }, { id: "probe" }, { id: 7 }, { title: {} }, { updated: 5 }, { system: null }, { messages: {} },
      { messages: [null] }, { messages: [{ role: "system", content: "x" }] }, { messages: [{ role: "user", content: ["x"] }] },
      { messages: [{ role: "assistant" }] }, { id: "__proto__" }].map((wrong) => wrap(good, { ...good, ...wrong }))];
  for (const text of bad) {
    await user.picked("Import", { name: "bad.json", text });
    await user.notice("bad.json: ");
    await user.press("Dismiss");
  }
  assert.equal(await user.page.evaluate(() => document.querySelectorAll(".conversation").length), 1);
  const evil = '<img src="https://198.51.100.9/x" onerror="globalThis.hit=1"><script>globalThis.hit=1</script>';
  await user.picked("Import", { name: "evil.json", text: wrap({ ...good, title: evil, system: evil, extra: evil, messages: [
    { role: "user", content: evil, extra: 1 },
    { role: "assistant", content: evil, reasoning: evil, error: evil, stats: { seed: {} } },
    { role: "assistant", content: "x", stats: { finish: evil, promptTokens: 1, reusedTokens: 0, completionTokens: 1,
      prefillMs: 1, decodeMs: 1, seed: "1", model: evil, digest: evil } }] }) });
  await user.notice("1 of 1");
  await user.press(evil, "#conversations");
  await pause(200);
  const ran = () => [globalThis.hit ?? null, document.querySelectorAll("#views img, #views script").length];
  assert.deepEqual(await user.page.evaluate(ran), [null, 0]);
  assert.equal((await user.exported()).find((c) => c.id === id(1)).extra, undefined);
  assert.deepEqual(user.page.requests.filter((r) => !r.url.startsWith(server.origin) && !/^(blob|data):/.test(r.url)), []);
});

test("without storage the page says so, answers as native, and keeps nothing", options, async (t) => {
  const refuse = (bytes) => `navigator.storage.getDirectory = () =>
    Promise.reject(new DOMException("refused here", "SecurityError"));\n${bytes}`;
  const site = await host(t, { isolated: true, edit: { "history-worker.js": refuse, "engine/store-worker.js": refuse } });
  const user = await open(t, site.url, { expect: /another version|ServiceWorker|Failed to register/i });
  const note = () => document.getElementById("history-note").textContent;
  assert.match(await user.page.evaluate(note), /as long as this tab.*refused here/);
  await user.fill("set-temperature", 0);
  await user.ask(QUESTION);
  await sameAsNative(t, user, await last(user), "-p", QUESTION, "--temperature", "0");
  await user.view("Models");
  assert.match(await user.page.waitFor(() => document.querySelector("#view-models .failed")?.textContent), /from memory/);
  await user.view("Privacy");
  assert.match(await user.page.waitFor(() => document.querySelector("#view-privacy table")?.textContent), /memory of this tab/);
  assert.deepEqual((await user.kept()).files, []);
});

test("Delete everything leaves nothing", options, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  await user.ask(QUESTION);
  await user.fill("set-temperature", 0.5);
  await user.page.waitFor(() => Boolean(navigator.serviceWorker.controller));
  let before = await user.kept();
  for (; !before.files.some((f) => /conversations\/.*\.json$/.test(f)); before = await user.kept()) await pause(50);
  assert.ok(before.files.some((f) => f.includes("models/")), before.files.join());
  assert.deepEqual([before.caches.length, before.workers, before.local.filter((key) => key.startsWith("slm2."))],
    [1, 1, ["slm2.model", "slm2.settings"]]);
  await user.view("Privacy");
  await user.press("Delete everything");
  await user.press("Cancel", "dialog");
  assert.deepEqual(await user.kept(), before);
  await user.press("Delete everything");
  await user.press("Delete everything", "dialog");
  await user.page.waitFor(() => document.body.textContent.includes("Everything was deleted"));
  await pause(300);
  assert.deepEqual(await user.kept(), { files: [], caches: [], local: [], workers: 0 });
  await user.press("Start anew");
  await user.ready();
  assert.deepEqual(await user.answers(), []);
});

test("the engine breaks: the reason is shown, the conversation is kept, one press starts it again", options, async (t) => {
  const site = await host(t, { isolated: true, edit: { "engine/engine-worker.js": (bytes) =>
    `${bytes}\nnew BroadcastChannel("break").onmessage = () => { throw new Error("broken by the test"); };` } });
  const user = await open(t, site.url, { expect: /another version|ServiceWorker|Failed to register|broken by the test/i });
  const answer = await user.ask(QUESTION);
  await user.page.evaluate(() => new BroadcastChannel("break").postMessage(1));
  assert.match(await user.notice("The engine stopped"), /broken by the test.*conversation is kept/);
  assert.deepEqual(await user.answers(), [answer]);
  await user.press("Start it again");
  await user.ready();
  await user.press("New conversation");
  await user.fill("set-temperature", 0);
  await user.ask(QUESTION);
  await sameAsNative(t, user, await last(user), "-p", QUESTION, "--temperature", "0");
});

test("a second tab says that the model is in use, takes it over when told to; the first can take it back", options, async (t) => {
  const server = await command(t), one = await open(t, `${server.origin}/`);
  await one.ask(QUESTION);
  const two = await open(t, `${server.origin}/`, { wait: false });
  await two.notice("another tab of this browser has loaded this model");
  assert.deepEqual((await two.answers()).length, 1);
  await two.press("Use it here");
  await two.ready();
  await two.ask(STORY);
  await one.notice("Another tab took this model over.");
  await one.page.waitFor(() => document.querySelectorAll(".answer").length === 2); /* the conversation is the same one */
  await one.press("Use it here");
  await one.ready();
  assert.equal((await one.ask(STORY)).failed, null);
});
