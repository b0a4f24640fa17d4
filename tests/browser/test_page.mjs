/* The page from outside: questions and answers as someone has them who sees only what is shown, compared with the command. */
import assert from "node:assert/strict";
import { pause, test } from "./harness.mjs";
import { native } from "./engine.mjs";
import { command, GOOD, host, open } from "./page.mjs";

const DEMO = "models/demo.slm2";
const QUESTION = "What is the capital of France?", STORY = "Tell me a story.";
const offline = /ERR_CONNECTION_REFUSED|NetworkError|Failed to fetch|failed to fetch|Failed to load|ServiceWorker|AbortError/i;

/** The answer of the page, as its export has it, is the native one: text, finish and the digest of tokens and log-probabilities. */
async function sameAsNative(t, user, message, ...flags) {
  const right = await native(t, DEMO, ...flags);
  assert.equal(message.content, right.text);
  assert.equal(message.stats.digest, right.digest);
  assert.equal(message.stats.finish, right.finish);
}
const last = async (user) => (await user.exported())[0].messages.at(-1);

test("the first visit answers as native, greedily and with a seed; without its server, after a reload, too", { engines: GOOD },
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
