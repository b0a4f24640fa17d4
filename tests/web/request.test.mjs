/* Answers: their events in order, how they end, what a slow or a gone consumer does to the engine; tool calls in a text. */
import assert from "node:assert/strict";
import test from "node:test";
import { Slm2Error } from "../../web/engine/error.js";
import { ToolCalls } from "../../web/engine/openai.js";
import { EVENT } from "../../web/engine/protocol.js";
import { Answer } from "../../web/engine/request.js";

/** A host that runs what is enqueued at once and counts. */
class FakeHost {
  constructor() { Object.assign(this, { running: null, paused: false, pauses: 0, cancelled: 0 }); }
  enqueue(request) { this.running = request; }
  cancel(request) {
    this.cancelled++;
    if (request === this.running) this.done("cancelled");
  }
  pause() {
    this.paused = true;
    this.pauses++;
  }
  resume() { this.paused = false; }
  token(id, text = `t${id} `) { this.running.take(EVENT.TOKEN, { id, position: id, logprob: -1, channel: "answer", finish: null, text }); }
  done(finish = "stop") { this.running.take(EVENT.DONE, { finish, completionTokens: 1 }); }
}
const begin = (signal) => {
  const host = new FakeHost();
  return { host, answer: new Answer(host, new Uint8Array(1), 5n, signal) };
};
const turn = () => new Promise((done) => setImmediate(done));

test("events come in order, then the summary", async () => {
  const { host, answer } = begin();
  const first = answer.next();
  host.running.take(EVENT.BEGUN, { promptTokens: 3, reusedTokens: 1 });
  host.token(1);
  host.token(2);
  host.done();
  const seen = [(await first).value];
  for (;;) {
    const { done, value } = await answer.next();
    if (!done) seen.push(value);
    else {
      assert.deepEqual([value.text, value.ids, value.finish, value.seed], ["t1 t2 ", [1, 2], "stop", 5]);
      break;
    }
  }
  assert.deepEqual(seen.map((e) => e.type), ["begin", "token", "token", "done"]);
  assert.deepEqual(await answer.next(), { done: true, value: undefined });
});

test("several asks at once are served in order, those after the end with nothing", async () => {
  const { host, answer } = begin();
  const asked = [answer.next(), answer.next(), answer.next(), answer.next(), answer.next()];
  host.token(1);
  host.token(2);
  host.done();
  const got = await Promise.all(asked);
  assert.deepEqual(got.map((g) => g.value?.id ?? g.value?.finish ?? null), [1, 2, "stop", "stop", null]);
  assert.deepEqual(got.map((g) => g.done), [false, false, false, true, true]);
});

test("nothing starts before it is asked for; a seed beyond 2^53 stays a bigint", async () => {
  const { host, answer } = begin();
  await turn();
  assert.equal(host.running, null);
  await answer.return();
  assert.equal(host.running, null);
  assert.deepEqual(await answer.next(), { done: true, value: undefined });
  assert.equal(new Answer(host, new Uint8Array(1), 2n ** 60n).seed, 2n ** 60n);
});

test("a slow consumer pauses the engine, and gets everything", async () => {
  const { host, answer } = begin();
  const seen = [];
  seen.push((await Promise.all([answer.next(), (host.token(0), 0)]))[0].value.id);
  let made = 1;
  while (!host.paused) host.token(made++);
  assert.ok(made > 200 && made < 400);
  while (host.paused) seen.push((await answer.next()).value.id);
  while (made < 2000) {
    if (!host.paused) host.token(made++);
    else seen.push((await answer.next()).value.id);
  }
  host.done();
  assert.equal(host.paused, false, "an answer that has ended holds nobody up");
  for (let next; !(next = await answer.next()).done;) if (next.value.type === "token") seen.push(next.value.id);
  assert.deepEqual(seen, Array.from({ length: 2000 }, (_, i) => i));
  assert.ok(host.pauses > 1);
});

test("a loop that is left cancels, waits for the end and frees the engine", async () => {
  const { host, answer } = begin();
  setImmediate(() => { for (let i = 0; i < 300; i++) host.token(i); });
  for await (const event of answer) if (event.id === 5) break;
  assert.deepEqual([host.cancelled, host.paused], [1, false]);
  assert.deepEqual(await answer.next(), { done: true, value: undefined });
});

test("an aborted signal fails with the tokens so far", async () => {
  const abort = new AbortController(), { host, answer } = begin(abort.signal);
  const first = answer.next();
  host.token(1);
  host.token(2);
  await first;
  abort.abort();
  await assert.rejects(answer.next(), (e) => e.code === "ABORTED" && e.name === "AbortError" && e.tokens.ids.length === 2 && e.tokens.text === "t1 t2 ");
  await assert.rejects(answer.summary, { code: "ABORTED" });
  assert.equal(host.cancelled, 1);
});

test("an aborted signal frees an engine that a slow consumer held up", async () => {
  const abort = new AbortController(), { host, answer } = begin(abort.signal);
  void answer.next();
  host.cancel = () => host.cancelled++;
  for (let i = 0; !host.paused; i++) host.token(i);
  abort.abort();
  assert.deepEqual([host.paused, host.cancelled], [false, 1]);
  for (let i = 0; i < 1000; i++) host.token(i);
  assert.equal(host.paused, false);
  host.done("cancelled");
  await assert.rejects(answer.summary, { code: "ABORTED" });
});

test("a signal that is already aborted starts nothing", async () => {
  const { host, answer } = begin(AbortSignal.abort());
  await assert.rejects(answer.summary, { code: "ABORTED" });
  assert.equal(host.running, null);
});

test("a failure has its own code, and the tokens so far", async () => {
  const { host, answer } = begin();
  const summary = answer.summary;
  host.token(1);
  host.running.take(EVENT.FAILED, { error: new Slm2Error("NUMERICAL", "not finite") });
  await assert.rejects(summary, (e) => e.code === "NUMERICAL" && e.tokens.ids.length === 1);
});

test("progress that nobody has read yet is replaced", async () => {
  const { host, answer } = begin();
  void answer.next();
  for (let i = 0; i < 50; i++) host.running.take(EVENT.PROGRESS, { phase: "prefill", done: i, total: 50 });
  assert.equal((await answer.next()).value.done, 49);
});

/** Text in pieces of n through ToolCalls. */
function calls(text, n) {
  const parser = new ToolCalls(true), out = { content: "", calls: [] };
  for (let at = 0; at < text.length; at += n) {
    const got = parser.push(text.slice(at, at + n), at + n >= text.length);
    out.content += got.content;
    out.calls.push(...got.calls);
  }
  return out;
}
const call = '<tool_call>\n{"name": "f", "arguments": {"a": "</b>"}}\n</tool_call>';
for (const n of [1, 3, 7, 1000])
  test(`tool calls in pieces of ${n}`, () => {
    const one = calls(`Wait. ${call}`, n);
    assert.equal(one.content, "Wait. ");
    assert.deepEqual(one.calls.map((c) => c.function), [{ name: "f", arguments: '{"a":"</b>"}' }]);
    const two = calls(`${call}\n${call}`, n);
    assert.deepEqual([two.content.trim(), two.calls.map((c) => c.index)], ["", [0, 1]]);
    for (const text of ["a < b <tool", "<tool_call>{no json}</tool_call> rest", "<tool_call>{\"name\": 1}</tool_call>", "<tool_call>never closed", "<<tool_call"]) {
      const none = calls(text, n);
      assert.deepEqual([none.content, none.calls.length], [text, 0]);
    }
  });
