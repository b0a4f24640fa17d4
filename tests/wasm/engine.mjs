// The browser engine in node: answers, digests and conversions are those of the command; slow pages, stops and bad commands.
// Usage: node tests/wasm/engine.mjs MODULE.wasm BUILD
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OP, Page, convert, generatePayload, plan, sleep } from "./page.mjs";

const [path, build] = process.argv.slice(2), command = join(build, "slm2"), demo = process.env.DEMO || "models/demo.slm2";
const module = new WebAssembly.Module(readFileSync(path)), scratch = mkdtempSync(join(tmpdir(), "slm2-engine-"));
const options = { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] };
const slm2 = (...args) => execFileSync(command, args, options);
const demoFile = readFileSync(demo), tinyPath = join(scratch, "tiny.slm2");
slm2("synth", tinyPath, "--shape", "tiny");
const tinyFile = readFileSync(tinyPath);
let checks = 0;
const failures = [];
function check(holds, what) {
  checks++;
  if (!holds) failures.push(what);
}
const same = (a, b, what) =>
  check(JSON.stringify(a) === JSON.stringify(b), `${what}: ${JSON.stringify(a)} is not ${JSON.stringify(b)}`);
const random = ((x) => () => (x = (Math.imul(x, 1664525) + 1013904223) >>> 0) / 2 ** 32)(7);

// --- answers ------------------------------------------------------------------------

const PROFILES = ["f32", "q8"], KVS = ["f32", "f16"], CHANNELS = ["answer", "reasoning"], FINISHES = ["none", "stop", "length"];
const messages = (content) => JSON.stringify([{ role: "user", content }]);
const questions = [
  { text: messages("What is the capital of France?"), maxTokens: 60 },
  { text: messages("Tell me a story about a fox."), maxTokens: 120, temperature: 1.3, topK: 40, topP: 0.9, minP: 0.02,
    repeatPenalty: 1.1, seed: 99n, flags: 1 },
  { kind: 1, text: "Once upon a time", maxTokens: 100, temperature: 0.8, topK: 20, topP: 0.95, seed: 2n ** 63n + 5n,
    stop: ["\n\n", "the end"] },
  { text: messages("a <|im_end|> b \u{1f98a}"), flags: 2, maxTokens: 40, temperature: 0.7, topK: 20, topP: 1, seed: 3n },
  { kind: 2, ids: [1, 2, 3, 4, 5, 6, 7], maxTokens: 30 },
];

function native(q, wishes) {
  const json = join(scratch, "messages.json");
  const args = ["run", demo, "--json", "--profile", PROFILES[wishes.profile], "--kv", KVS[wishes.kv], "--context", wishes.context,
    "--temperature", q.temperature ?? 0, "--top-k", q.topK ?? 0, "--top-p", q.topP ?? 1, "--min-p", q.minP ?? 0,
    "--repeat-penalty", q.repeatPenalty ?? 1, "--seed", q.seed ?? 0n, "--max-tokens", q.maxTokens,
    ...(q.stop ?? []).flatMap((s) => ["--stop", s])].map(String);
  if (q.ids) args.push("--ids", q.ids.join());
  else if (q.kind === 1) args.push("--raw", q.text);
  else {
    writeFileSync(json, q.text);
    args.push("--messages", json, ...(q.flags & 1 ? ["--no-think"] : []), ...(q.flags & 2 ? ["--raw-specials"] : []));
  }
  const lines = slm2(...args).trim().split("\n").map((line) => JSON.parse(line)), last = lines.pop();
  return { tokens: lines.map((t) => [t.id, t.text, Math.fround(t.logprob), t.channel]),
    end: [last.finish, last.prompt_tokens, last.completion_tokens, last.digest] };
}
const asked = (q) => ({ ...q, text: q.ids ? Buffer.from(Uint32Array.from(q.ids).buffer) : q.text });
function shown(events) {
  const done = events.at(-1);
  return { tokens: events.filter((e) => e.type === "TOKEN").map((e) => [e.id, e.text, e.logprob, CHANNELS[e.channel]]),
    end: [FINISHES[done.finish], done.prompt, done.completion, done.digest] };
}

async function answers() {
  const expected = new Map();
  for (const threads of [1, 2, 3])
    for (const [profile, kv] of threads === 1 ? [[0, 0], [0, 1], [1, 0], [1, 1]] : [[1, 0]]) {
      const wishes = { threads, profile, kv, context: 400, tile: threads === 3 ? 7 : 64 };
      const page = await Page.start(module, demoFile, wishes), [ready] = await page.open(threads & 1);
      check(ready.type === "READY" && ready.verified === (threads & 1) && ready.threads === threads, `READY, ${threads} threads`);
      for (const [i, q] of questions.entries()) {
        const key = `question ${i}, ${PROFILES[profile]}, kv ${KVS[kv]}`;
        if (!expected.has(key)) expected.set(key, native(q, wishes));
        for (const speculate of i === 0 ? [0, 0xffffffff, 5] : [0]) {
          const events = await page.generate({ ...asked(q), speculate });
          same(shown(events), expected.get(key), `${key}, ${threads} threads, speculate ${speculate}`);
          check(events[0].type === "BEGUN" && events.at(-1).reused === events[0].reused, `${key}: what was reused`);
        }
      }
      const ids = Uint32Array.from({ length: 40 }, (_, i) => (i * 37 + 5) % 280);
      const [digested] = await page.ask(OP.DIGEST, Buffer.from(Uint32Array.of(9, ids.length, ...ids).buffer)); /* 9 at a time */
      const line = slm2("digest", demo, "--ids", ids.join(), "--profile", PROFILES[profile], "--kv", KVS[kv]);
      same(digested.digest, line.split(" ")[0], `digest, ${threads} threads`);
      await page.ask(OP.CLOSE);
      check(page.state === 5, "closed");
      await page.close();
      check(page.ended.turn === 3 && page.ended.trial === 500387540 / 32768, `ended with ${JSON.stringify(page.ended)}`);
    }
}

// --- slow pages, stops ----------------------------------------------------------------

const simple = { kind: 2, ids: [3, 4, 5], temperature: 1, topK: 0, topP: 1, seed: 5n, flags: 4 };

// More events than the ring holds, read a few at a time: none is lost, and the engine waits where there is no room.
async function slow() {
  const page = await Page.start(module, tinyFile, { context: 1000, threads: 2, tile: 16 });
  await page.open();
  const per = 900, requests = 14, first = [];
  for (let i = 0; i < requests; i++) await page.send(OP.GENERATE, generatePayload({ ...asked(simple), maxTokens: per }));
  for (let beat = -1, still = 0; still < 20; beat = page.heartbeat) { // until nothing moves but the heartbeat of who waits
    await sleep(30);
    still = page.heartbeat - beat <= 1 ? still + 1 : 0;
  }
  check(page.state === 3, "the engine waits in the middle of a request");
  for (let r = 0; r < requests; r++) {
    let n = 0, event;
    do {
      event = await page.next();
      if (n % 97 === 0) await sleep(1);
      if (event.type === "TOKEN") {
        if (r === 0) first.push(event.id);
        if (event.id !== first[n] || event.position !== 3 + n) check(false, `token ${n} of request ${r}`);
        n++;
      }
    } while (event.type !== "DONE");
    check(n === per && event.request === 2 + r, `request ${event.request} gave ${n} tokens`);
  }
  await page.close();
}

// A hundred stops at random moments, each followed by an answer with the bits of a fresh one.
async function stops() {
  const page = await Page.start(module, demoFile, { context: 400, threads: 2, tile: 4 });
  await page.open(0);
  const sea = messages("Tell me a long story about the sea. ".repeat(4));
  const long = { text: sea, maxTokens: 60, temperature: 0.9, topK: 0, seed: 8n };
  const short = { text: messages("Hello"), maxTokens: 6 }, want = shown(await page.generate(short));
  const kinds = [0, 0, 0];
  for (let i = 0; i < 100; i++) {
    const after = Math.floor(random() * 70) - 30;
    let n = 0;
    await page.send(OP.GENERATE, generatePayload(long));
    if (after < -20) page.cancel();
    const timer = after >= -20 && after < 0 ? setTimeout(() => page.cancel(), random() * 60) : undefined;
    const request = page.request, events = await page.finish((e) => e.type === "TOKEN" && n++ === after && page.cancel(request));
    clearTimeout(timer); /* or it would stop the next one */
    const done = events.at(-1);
    check(done.type === "DONE" && (done.finish === 3 || done.completion > 0), `stop ${i} ended with ${JSON.stringify(done)}`);
    kinds[done.finish !== 3 ? 2 : done.completion === 0 ? 0 : 1]++;
    check(done.completion !== 0 || !events.some((e) => e.type === "TOKEN"), `stop ${i}: tokens of a prefill`);
    same(shown(await page.generate(short)), want, `the answer after stop ${i}`);
  }
  check(kinds[0] > 5 && kinds[1] > 5, `stops: ${kinds[0]} in prefill, ${kinds[1]} in decode, ${kinds[2]} too late`);
  await page.close();
}

// --- what is refused --------------------------------------------------------------------

async function refusals() {
  const page = await Page.start(module, tinyFile, { context: 64 });
  const refused = async (op, payload, status, name) => {
    const [event] = await page.ask(op, payload);
    check(event.type === "FAILED" && event.status === status && event.name === name, `${name}: ${JSON.stringify(event)}`);
  };
  await refused(OP.GENERATE, generatePayload(asked(simple)), 2, "");
  await page.open();
  for (const [name, change] of [["temperature", { temperature: NaN }], ["top_p", { topP: 1.5 }], ["min_p", { minP: -1 }],
    ["kind", { kind: 7 }], ["repeat_penalty", { repeatPenalty: 0 }], ["max_tokens", { maxTokens: 0 }], ["flags", { flags: 64 }],
    ["speculate", { speculate: 99 }], ["stop", { stop: ["x".repeat(257)] }], ["stop", { stop: [""] }],
    ["stop", { stop: Array(17).fill("x") }]])
    await refused(OP.GENERATE, generatePayload({ ...asked(simple), ...change }), 2, name);
  await refused(OP.GENERATE, generatePayload(asked({ ...simple, ids: Array(64).fill(1) })), 15, "prompt");
  await refused(OP.GENERATE, generatePayload(asked({ ...simple, ids: [1e9] })), 13, "prompt");
  await refused(OP.COUNT, Buffer.alloc(page.plan.input_max + 1), 2, "command");
  check((await page.generate(asked({ ...simple, maxTokens: 3 }))).at(-1).type === "DONE", "an answer after refusals");
  page.putRecord(77, ++page.request, 0, Buffer.alloc(5));
  const event = await page.next();
  check(event.type === "FAILED" && event.status === 18 && event.name === "command op", `op 77: ${JSON.stringify(event)}`);
  while (!page.ended) await sleep(1);
  check(page.state === 4 && page.ended.turn === 4 && page.ended.again === 4 && page.ended.code === 18, "poisoned for ever");
  await page.close();
  const small = plan(module, tinyFile, tinyFile.length, { context: 256, pages: 60 });
  check(small.status === 3 && small.terms.pages > 60 && /60 pages/.test(small.error.message), small.error?.message);
  try {
    plan(module, Buffer.from("<!DOCTYPE html><html><body>not a model</body></html>"), 52);
    check(false, "HTML has a plan");
  } catch (e) {
    check(e.code === 5, `HTML: ${e.message}`);
  }
}

// --- conversions ------------------------------------------------------------------------

async function conversions() {
  slm2("convert", demo, join(scratch, "demo.gguf"));
  for (const gguf of ["tests/data/gguf/tied-q8_0.gguf", join(scratch, "demo.gguf")]) {
    const source = readFileSync(gguf), out = Buffer.alloc(2 * source.length + (1 << 20)), native = join(scratch, "native.slm2");
    let n = 0, asked = 0;
    const store = { pages: 2048, read: (at, bytes) => source.subarray(at, at + bytes), write: (at, bytes) => {
      out.set(bytes, at);
      n = Math.max(n, at + bytes.length);
    } };
    slm2("convert", gguf, native);
    const result = await convert(module, source.length, { ...store, stop: (question) => (asked = question) < 0 });
    check(result.status === 0 && result.bytes === n && (result.phases & 8) !== 0, `${gguf}: ${JSON.stringify(result)}`);
    check(out.subarray(0, n).equals(readFileSync(native)), `${gguf}: other bytes than the command's`);
    const stopAt = Math.floor(asked / 2), stopped = await convert(module, source.length, { ...store, stop: (q) => q === stopAt });
    check(stopped.status === 17, `${gguf}, stopped: ${JSON.stringify(stopped)}`);
    const failed = await convert(module, source.length, { ...store, write: () => { throw new Error(); } });
    check(failed.status === 4, `${gguf}, no room to write: ${JSON.stringify(failed)}`);
    const small = await convert(module, source.length, { ...store, pages: 19 });
    check(small.status === 3 && small.offset > 19 * 65536, `${gguf}, little memory: ${JSON.stringify(small)}`);
  }
}

try {
  for (const [name, test] of Object.entries({ answers, slow, stops, refusals, conversions })) {
    const begun = performance.now();
    await test();
    if (process.env.VERBOSE) console.log(`  ${name}: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
if (failures.length !== 0) {
  console.log(`FAIL engine in ${path}: ${failures.length} of ${checks} checks\n${failures.slice(0, 20).join("\n")}`);
  process.exit(1);
}
console.log(`ok engine in ${path}: ${checks} checks`);
