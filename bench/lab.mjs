/* `make lab`: the engine in Chromium and Firefox on a model of Qwen3-0.6B's size, in turns with wllama in Chromium and with
 * llama.cpp natively, on the same weights; against the floors and goals that slm2 has set itself. bench/README.md.
 *
 *   node bench/lab.mjs SLM2 BUILD        from the project's root
 *
 * Environment: LAB_ROUNDS (3), LAB_QUICK=1 (one round of short answers: to see that all of it runs), LAB_MODEL (another .slm2
 * file, with a tokenizer), LAB_BROWSERS ("chromium firefox"), LAB_PEER=none, LAB_SOAK (minutes of prompting afterwards; 0),
 * LAB_ONLY=soak, LAB_MINUTES (a run that ends after about so many: wllama gets prompts of half the length, simd runs with all
 * cores only, and what does not fit is left out and named), COMPILER and FLAGS (for the table).
 *
 * What was measured is in BUILD/lab/<date>-browser.part.csv after every turn; a run that comes to its end renames it.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { arch, platform } from "node:os";
import { join, resolve } from "node:path";
import { launch } from "../tests/browser/driver.mjs";
import { User } from "../tests/browser/page.mjs";
import * as proc from "../tests/browser/proc.mjs";
import { CSP, serve } from "../tests/browser/server.mjs";
import { KINDS, MiB, Samples, busyShare, cores, median, minorFaults, number, reason, run } from "./lab/figures.mjs";
import { csv, labText, peerText, threadsText } from "./lab/report.mjs";
import { SOAK_COLUMNS, soak } from "./lab/soak.mjs";

const [, , slm2, build] = process.argv;
const env = process.env, quick = env.LAB_QUICK === "1";
const rounds = Number(env.LAB_ROUNDS ?? (quick ? 1 : 3));
if (!build || !(rounds >= 1)) {
  console.error("usage: node bench/lab.mjs SLM2 BUILD, with LAB_ROUNDS of 1 or more");
  process.exit(2);
}
const began = Date.now(), brief = env.LAB_MINUTES !== undefined, limit = 60000 * Number(env.LAB_MINUTES ?? Infinity);
const late = (needed) => Date.now() - began + needed > limit;
const soakMinutes = Number(env.LAB_SOAK ?? 0);
const work = join(build, "lab");
const peerVersion = "3.13.0", nativeVersion = "3.22.1";
const CONTEXT = 560, TOKENS = quick ? 8 : 32, STOPS = quick ? 10 : 100, RECOVERIES = quick ? 1 : 3;
const AGAIN = 10, SETTLE = quick ? 20 : 60, STEPS = quick ? 40 : 500, READ_MS = quick ? 100 : 400;
const SETTLED = 1.1; /* times what a step takes in the end */
const RELOAD_MS = 5000; /* after a reload, before its memory is read */
const PEER_PROMPT = brief || quick ? 64 : 128, PEER_TOKENS = quick ? 4 : 8;
const counts = [...new Set([1, cores])];
const browsers = (env.LAB_BROWSERS ?? "chromium firefox").split(" ");
const say = (text) => process.stderr.write(`${((Date.now() - began) / 1000).toFixed(0).padStart(4)} s  ${text}\n`);
const samples = new Samples(), notes = [], busy = [];
let failed = false; /* a part of slm2's own */

/* --- models and peers ---------------------------------------------------------------- */

function makeFile(path, make) {
  if (existsSync(path)) return path;
  const part = path.replace(/(\.\w+)$/, ".part$1");
  make(part);
  renameSync(part, path);
  return path;
}

/** The 0.6B shape with Qwen3's own tokenizer, which wllama needs for its prompts. */
function makeModel() {
  const folder = join(work, "tokenizer");
  mkdirSync(folder, { recursive: true });
  return makeFile(join(work, "qwen3-0.6b.slm2"), (path) => {
    copyFileSync(run("tools/fetch_tokenizer", [join(build, "cache")]).trim(), join(folder, "tokenizer.json"));
    run(slm2, ["synth", path, "--shape", "qwen3-0.6b", "--seed", "1", "--tokenizer", folder]);
  });
}

/** Which peers are here; npm fetches them once, and none of their scripts runs. */
function findPeers() {
  if (env.LAB_PEER === "none") return {};
  const has = (name) => existsSync(join(work, "node_modules", name));
  const system = `@node-llama-cpp/${platform()}-${arch()}`;
  try {
    if (!has("@wllama/wllama") || !has(system))
      run("npm", ["install", "--prefix", work, "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund",
        `@wllama/wllama@${peerVersion}`, `node-llama-cpp@${nativeVersion}`, `${system}@${nativeVersion}`]);
  } catch (error) {
    console.log(`peers: npm install failed: ${reason(error)}`);
  }
  const found = { wllama: has("@wllama/wllama") && browsers.includes("chromium"), native: has(system) };
  for (const [name, here] of Object.entries(found)) if (!here) console.log(`${name} is left out: it is not installed`);
  return found;
}

mkdirSync(work, { recursive: true });
const model = env.LAB_MODEL ?? makeModel();
const peers = env.LAB_ONLY === "soak" ? {} : findPeers();
const gguf = join(work, env.LAB_MODEL ? "model.gguf" : "qwen3-0.6b.gguf");
if (peers.wllama || peers.native) {
  if (env.LAB_MODEL) rmSync(gguf, { force: true });
  makeFile(gguf, (path) => run(slm2, ["convert", model, path]));
}
const { config, tensor_bytes: tokenBytes } = JSON.parse(run(slm2, ["inspect", model, "--json"]));
const ids = (n) => Array.from({ length: n }, (_, i) => (i + 1) * 2654435761 % config.vocab); /* as `slm2 bench` takes them */
const server = await serve({ build, models: { "model.slm2": model, "peer.gguf": gguf },
  folders: { lab: "bench/lab", page: join(build, "web"), peer: join(work, "node_modules/@wllama/wllama") } });
/* wllama makes its workers from blobs, which the policy of slm2's own pages forbids. */
server.rule("/lab/peer.html", { csp: CSP.replace("worker-src 'self'", "worker-src 'self' blob:").replace("script-src 'self'",
  "script-src 'self' blob:").replace("connect-src 'self'", "connect-src 'self' blob: data:") });

/* --- pages --------------------------------------------------------------------------- */

async function open(browser, name) {
  const page = await browser.newPage();
  await go(page, name);
  const call = (which, ...args) => page.evaluate((w, given) => globalThis.run[w](...given), which, args);
  return { page, call };
}
async function go(page, name) {
  await page.goto(`${server.origin}/lab/${name}.html`);
  await page.waitFor(() => Boolean(globalThis.run));
}

/** The process with most memory of its own among those that run pages: the page's. */
const renderer = (browser) => browser.renderers().map(proc.memory).sort((a, b) => b.anonymous - a.anonymous)[0];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const versionOf = (browser) => browser.version.replace(/^\w+\//, "");

/** A new page in place of the one before, whose process has ended first: what it held must not be counted again. */
async function renew(lab) {
  const page = await lab.browser.newPage(), before = lab.pid;
  await Promise.race([lab.page?.close(), sleep(10000)]);
  for (let i = 0; before && i < 100 && lab.browser.renderers().includes(before); i++) await sleep(50);
  await go(page, "slm2");
  Object.assign(lab, { page, call: (which, ...args) => page.evaluate((w, given) => globalThis.run[w](...given), which, args) });
}

/** A browser with the model in its store, and slm2's page. */
async function begin(name) {
  say(`${name}: first visit`);
  const browser = await launch(name);
  const lab = { name, browser, version: versionOf(browser), turns: 0, reused: 0, asked: 0, modules: new Map(),
    page: null, pid: 0 };
  const start = performance.now();
  await renew(lab);
  const visit = performance.now() - start;
  lab.empty = renderer(browser).anonymous;
  const { ms: create } = await lab.call("create", {});
  const stored = await lab.call("import", "/models/model.slm2");
  if (!stored.sealed) throw new Error(`${name}: the import left the model unsealed`);
  lab.id = stored.id;
  note(lab, "auto", cores, "import", stored.bytes / 1000 / stored.ms);
  const load = await lab.call("load", lab.id, { context: CONTEXT });
  note(lab, "auto", cores, "first_visit", visit + create + load.ms);
  lab.pid = renderer(browser).pid;
  const { kind, threads, trials, gains } = load.chosen;
  notes.push(`${name} ${lab.version}: of its own accord ${kind} with ${threads} thread(s); trials `
    + trials.map((t) => `${t.kind} ${number(t.ms)} ms`).join(", ")
    + gains.slice(1).map((g) => `, ${g.threads} threads ${number(g.gain)} x`).join(""));
  for (let i = 0; i < (quick ? 1 : 3); i++) {
    const { ms, bytes } = await lab.call("verify", lab.id);
    note(lab, "auto", cores, "verify", bytes / 1000 / ms);
  }
  for (const module of KINDS)
    for (const ms of (await lab.call("compile", module, 3)).ms) note(lab, module, 1, "compile", ms);
  lab.tells = (await lab.call("watched")).tasks !== null;
  return lab;
}
const note = (lab, runner, threads, metric, value) => samples.add(lab.name, runner, threads, metric, value);
function noteTasks(lab, runner, tasks) {
  note(lab, runner, cores, "long_tasks", tasks.length);
  note(lab, runner, cores, "longest_task", Math.max(0, ...tasks));
}

/** The engine of a page that has none yet, with the model from the store. kind: of module; "auto": the engine chooses; "trial": and
 * knows of no earlier choice. */
async function load(lab, kind, threads) {
  if (kind === "trial") await lab.call("forget");
  await lab.call("create", KINDS.includes(kind) ? { module: kind, threads } : {});
  const loaded = await lab.call("load", lab.id, { context: CONTEXT });
  if (!loaded.sealed) throw new Error(`${lab.name}: the model was verified again`);
  lab.modules.set(loaded.chosen.kind, loaded.chosen.sha256);
  return loaded;
}

/** The same in a fresh page. */
async function ready(lab, kind, threads) {
  await renew(lab);
  const before = lab.pid, loaded = await load(lab, kind, threads);
  note(lab, kind, threads, "load", loaded.ms);
  lab.pid = renderer(lab.browser).pid;
  lab.turns++;
  if (lab.pid === before) lab.reused++;
  return loaded;
}

/* --- one turn of each ------------------------------------------------------------------ */

/** An answer, and the minor page faults of the page's process meanwhile. */
async function faulting(lab, n, tokens) {
  const before = minorFaults(lab.pid), answer = await lab.call("speed", ids(n), tokens);
  return { ...answer, faults: minorFaults(lab.pid) - before };
}

/** Speed, memory and page faults of one module at one count of threads. */
async function takeSlm2(lab, kind, threads, { long = true } = {}) {
  const { plan } = await ready(lab, kind, threads), asked = lab.page.requests.length;
  const one = await faulting(lab, long ? 128 : 32, 2); /* memory that was never used, and code not compiled to its best */
  const two = await faulting(lab, 128, TOKENS);
  const again = () => lab.call("speed", ids(128), TOKENS);
  for (const answer of [two, await again(), await again()]) {
    note(lab, kind, threads, "prefill128", 128000 / answer.prefillMs);
    note(lab, kind, threads, "decode", 1000 * (answer.completionTokens - 1) / answer.decodeMs);
    note(lab, kind, threads, "first_token128", answer.firstMs);
  }
  if (!long) return;
  note(lab, kind, threads, "prefill128_first", 128000 / one.prefillMs);
  note(lab, kind, threads, "faults_first", one.faults);
  note(lab, kind, threads, "faults_second", two.faults);
  const { heap: early } = await lab.call("constant");
  const new512 = await faulting(lab, 512, 1), old512 = threads === cores ? await faulting(lab, 512, 1) : new512;
  note(lab, kind, threads, "prefill512", 512000 / old512.prefillMs);
  if (threads === cores) {
    note(lab, kind, threads, "prefill512_first", 512000 / new512.prefillMs);
    note(lab, kind, threads, "faults512_first", new512.faults);
    note(lab, kind, threads, "faults512_second", old512.faults);
  }
  lab.asked += lab.page.requests.length - asked;
  const { anonymous } = proc.memory(lab.pid), { same, heap } = await lab.call("constant");
  if (!same) throw new Error(`${lab.name}: the memory has another size than when it was made`);
  note(lab, kind, threads, "rss", anonymous / 1e6);
  note(lab, kind, threads, "plan", plan.total / 1e6);
  note(lab, kind, threads, "beyond", (anonymous - plan.file - plan.kv * 513 / plan.context) / MiB);
  if (heap !== null) note(lab, kind, threads, "js_heap", heap / MiB);
  if (early !== null) note(lab, kind, threads, "js_heap_early", early / MiB);
  if (threads === cores) await takeReload(lab);
}

/** A reload of the page, a load and an answer: whether the page stays smooth, and what its process holds some seconds later. */
async function takeReload(lab) {
  await lab.page.reload();
  await lab.page.waitFor(() => Boolean(globalThis.run));
  await lab.call("watch");
  await load(lab, "relaxed", cores);
  await lab.call("speed", ids(64), TOKENS);
  const { gap, tasks } = await lab.call("watched");
  note(lab, "relaxed", cores, "frame_gap", gap);
  if (tasks !== null) noteTasks(lab, "relaxed", tasks);
  await sleep(RELOAD_MS);
  note(lab, "relaxed", cores, "rss_reload", renderer(lab.browser).anonymous / 1e6);
}

/** What this engine reads when it does nothing else. */
async function takeReading(lab) {
  const { page, call } = await open(lab.browser, "read");
  for (const { threads, streams, rate } of await call("read", cores, READ_MS)) note(lab, `read${streams}`, threads, "bandwidth", rate / 1e9);
  await page.close();
}

const prompts = []; /* more than one, as an answer that is not valid UTF-8 fails */
/** Words of the corpus, as many as have PEER_PROMPT tokens. */
async function makePrompts(lab) {
  for (let from = 0; from < 400; from += 100) {
    const words = readFileSync("bench/corpus.txt", "utf8").split(/\s+/).slice(from, from + 160);
    while (await lab.call("count", words.join(" ")) > PEER_PROMPT) words.pop();
    prompts.push(words.join(" "));
  }
}

/** The outcome of a promise, or an error after so many milliseconds. */
function within(ms, promise) {
  promise.catch(() => {});
  return Promise.race([promise, new Promise((_, fail) => {
    setTimeout(() => fail(new Error(`not done after ${ms / 1000} s`)), ms);
  })]);
}
const STOPS_MOST_MS = brief ? 60000 : 300000;
const PEER_MOST_MS = brief ? 70000 : 300000;

const wllamas = new Map(); /* threads -> page */
let its = null; /* browser: of its own, so that the memory of slm2's is slm2's */
async function openWllama(threads) {
  its ??= await launch("chromium");
  const page = await open(its, "peer");
  if (wllamas.size === 0) { /* from the server into its own store */
    await page.call("load", threads, CONTEXT);
    await page.call("exit");
    await go(page.page, "peer");
  }
  const { ms, version, threads: got } = await page.call("load", threads, CONTEXT);
  notes.push(`wllama ${peerVersion} (llama.cpp ${version}) asked for ${threads} thread(s), runs ${got}`);
  samples.add("chromium", "wllama", threads, "load", ms);
  say(`wllama, ${threads} thread(s): loaded in ${number(ms, 0)} ms`);
  wllamas.set(threads, page);
}
async function takeWllama(threads, needed) {
  if (late(needed)) return void notes.push(`wllama, ${threads} thread(s): a turn left out for time`);
  try {
    if (!wllamas.has(threads)) await within(PEER_MOST_MS, openWllama(threads));
    const answer = await within(PEER_MOST_MS, wllamas.get(threads).call("speed", prompts[0], PEER_TOKENS));
    say(`wllama, ${threads} thread(s): ${answer.promptTokens} tokens in ${number(answer.prefillMs, 0)} ms`);
    samples.add("chromium", "wllama", threads, "prefill128", 1000 * answer.promptTokens / answer.prefillMs);
    samples.add("chromium", "wllama", threads, "decode", 1000 * (answer.completionTokens - 1) / answer.decodeMs);
  } catch (error) {
    notes.push(`wllama, ${threads} thread(s): ${reason(error)}`);
    await its?.close(); /* whatever it does, it must not go on beside the others */
    its = null;
    wllamas.clear();
    prompts.shift();
    peers.wllama = prompts.length > 0;
  }
}

let release = "";
/** llama.cpp, and with all cores what memory gives. */
function takeNative(threads) {
  if (threads === cores) {
    const { bandwidth } = JSON.parse(run(slm2, ["bench", model, "--quick", "--prefill", "1", "--decode", "0", "--tokens", "1", "--json"]));
    for (const one of bandwidth) samples.add("native", "slm2 bench", one.threads, "bandwidth", one.bytes_per_second / 1e9);
  }
  if (!peers.native) return;
  try {
    const out = run(process.execPath, ["bench/llamacpp.mjs", resolve(gguf), threads, CONTEXT, "128", "128", TOKENS].map(String),
      { NODE_LLAMA_CPP: resolve(work), SLM2_BENCH_VOCAB: String(config.vocab) }, PEER_MOST_MS);
    const result = JSON.parse(out.trim().split("\n").pop());
    release = result.release;
    samples.add("native", "llama.cpp", threads, "prefill128", result.prefill[0].tokens_per_second);
    samples.add("native", "llama.cpp", threads, "decode", result.decode[0].tokens_per_second);
  } catch (error) {
    notes.push(`llama.cpp natively, ${threads} thread(s): ${reason(error)}`);
    peers.native = false;
  }
}

/** What a visitor who comes back waits for: with modules and threads measured, as at the first visit or a week later; as an
 * earlier visit measured them; with those that are given, and how long the module takes to come to its speed. Then the same
 * model in one page again and again. */
async function takeStarts(lab) {
  for (const kind of ["trial", "auto", "relaxed"])
    for (let i = 0; i < (quick ? 1 : 3); i++) {
      const { ms, chosen } = await ready(lab, kind, cores);
      if ((chosen.trials.length > 0) !== (kind === "trial")) throw new Error(`${kind}: ${chosen.trials.length} modules were measured`);
      const { firstMs, steps } = await lab.call("settle", ids(1)[0], KINDS.includes(kind) ? SETTLE : 2);
      note(lab, kind, cores, "ttft", ms + firstMs);
      if (!KINDS.includes(kind)) continue;
      const late = median(steps.slice(-steps.length / 3)), at = steps.findIndex((step) => step <= SETTLED * late);
      note(lab, kind, cores, "step_first", steps[0]);
      note(lab, kind, cores, "step_late", late);
      note(lab, kind, cores, "settle_steps", at);
      note(lab, kind, cores, "settle", steps.slice(0, at).reduce((sum, step) => sum + step, 0));
    }
  for (const ms of await lab.call("again", lab.id, { context: CONTEXT }, AGAIN)) note(lab, "relaxed", cores, "load_again", ms);
  await sleep(RELOAD_MS);
  note(lab, "relaxed", cores, "rss_again", renderer(lab.browser).anonymous / 1e6);
}

/** Stops and recoveries, with the module that the page would take. */
async function takeStops(lab) {
  for (const threads of counts) {
    await ready(lab, "relaxed", threads);
    for (const { left, done, phase } of await lab.call("stops", STOPS, ids(512), 20261130 + threads)) {
      note(lab, "relaxed", threads, "stop_left", left);
      note(lab, "relaxed", threads, "stop_done", done);
      note(lab, "relaxed", threads, `stop_left_${phase}`, left);
    }
  }
  for (let i = 0; i < RECOVERIES; i++) {
    const { noticed, ready: ms } = await lab.call("recover", ids(512));
    note(lab, "relaxed", cores, "respawn", ms);
    note(lab, "relaxed", cores, "poison_noticed", noticed);
  }
}

/** Some hundred greedy steps: the same tokens and log-probabilities as the command's. */
async function takeSteps(labs) {
  const given = ids(32);
  const native = JSON.parse(run(slm2, ["run", model, "--ids", given.join(","), "--max-tokens", STEPS, "--temperature", 0, "--seed", 1,
    "--context", CONTEXT, "--kv", "f16", "--threads", cores, "--json"].map(String)).trim().split("\n").pop());
  for (const lab of labs) {
    await ready(lab, "relaxed", cores);
    const { completionTokens: n, digest } = await lab.call("steps", given, STEPS);
    lab.steps = { n, digest, equal: digest === native.digest };
    if (!lab.steps.equal) failed = true;
  }
}

/** The page that people see, with the same model: whether it stays smooth while it loads and writes an answer. Its own tasks are
 * asked for afterwards, from its first moment on. */
async function takePage(lab) {
  await lab.page.evaluate((last) => localStorage.setItem("slm2.model", last), JSON.stringify({ model: lab.id, context: CONTEXT, kv: "f16" }));
  await lab.page.goto(`${server.origin}/page/`);
  const user = new User(lab.page);
  await user.ready();
  await user.fill("set-maxTokens", 200);
  const { failed } = await user.ask("Write a table of the planets, then a list of their moons.");
  if (failed !== null) throw new Error(`the page's answer: ${failed}`);
  const tasks = await lab.page.evaluate(async () => {
    if (!PerformanceObserver.supportedEntryTypes.includes("longtask")) return null;
    const all = [];
    await new Promise((done) => setTimeout(() => { /* one that must be found, the last */
      for (const end = performance.now() + 80; performance.now() < end;);
      done();
    }));
    new PerformanceObserver((list) => all.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true });
    await new Promise((done) => setTimeout(done, 500));
    return all;
  });
  if (tasks === null) return;
  if (!(tasks.pop() >= 80)) throw new Error("the page's tasks cannot be seen");
  noteTasks(lab, "page", tasks);
}

/* --- the run --------------------------------------------------------------------------- */

/** A part of slm2's own; one that fails or does not end is told, and the run goes on without it. */
async function part(name, ms, work) {
  try {
    await within(ms, work());
  } catch (error) {
    failed = true;
    notes.push(`${name}: ${reason(error)}`);
    say(`${name}: ${reason(error)}`);
  }
  save();
}
const PART_MOST_MS = 240000;

/** A turn of everything, with some threads. */
async function takeTurn(labs, threads, longest) {
  for (const lab of labs) {
    busy.push(busyShare());
    const name = `${lab.name}, ${threads} thread(s)`;
    await part(name, PART_MOST_MS, () => takeSlm2(lab, "relaxed", threads));
    if (lab.name === "chromium") takeNative(threads);
    if (lab.name === "chromium" && peers.wllama) {
      const start = Date.now();
      await takeWllama(threads, longest.get(threads) ?? 0);
      longest.set(threads, Math.max(longest.get(threads) ?? 0, Date.now() - start));
    }
    if (!brief || threads === cores) await part(`${name}, simd`, PART_MOST_MS, () => takeSlm2(lab, "simd", threads, { long: false }));
    if (threads === cores) await part(`${name}, reading`, PART_MOST_MS, () => takeReading(lab));
  }
}

async function takeAll(labs) {
  const chromium = labs.find((lab) => lab.name === "chromium");
  if (chromium && peers.wllama) {
    await ready(chromium, "relaxed", 1);
    await makePrompts(chromium);
  }
  for (const lab of labs) {
    say(`${lab.name}: starts, stops, recovery`);
    busy.push(busyShare());
    await part(`${lab.name}, starts`, PART_MOST_MS, () => takeStarts(lab));
    await part(`${lab.name}, stops and recovery`, STOPS_MOST_MS, () => takeStops(lab));
  }
  const longest = new Map(); /* milliseconds of a turn of wllama, by threads */
  for (let round = 1; round <= rounds; round++)
    for (const threads of counts) {
      say(`round ${round} of ${rounds}, ${threads} thread(s)`);
      if (late(20000)) notes.push(`round ${round}, ${threads} thread(s): left out for time`);
      else await takeTurn(labs, threads, longest);
    }
  say("equal steps; scalar");
  if (late(60000)) notes.push("equal steps, scalar: left out for time");
  else await part("equal steps", PART_MOST_MS, () => takeSteps(labs));
  for (const lab of labs.filter(() => !late(25000)))
    await part(`${lab.name}, scalar`, PART_MOST_MS, async () => {
      await ready(lab, "scalar", cores);
      const { prefillMs, completionTokens, decodeMs } = await lab.call("speed", ids(16), 3);
      note(lab, "scalar", cores, "prefill16", 16000 / prefillMs);
      note(lab, "scalar", cores, "decode", 1000 * (completionTokens - 1) / decodeMs);
    });
  for (const lab of labs) await part(`${lab.name}, page`, PART_MOST_MS, () => takePage(lab));
  busy.push(busyShare());
}

/** All browsers at once, as speed is not what is asked. */
async function takeSoak() {
  const file = join(work, `${day}-soak.part.csv`), params = { module: "relaxed", threads: cores };
  writeFileSync(file, SOAK_COLUMNS);
  const said = await Promise.all(browsers.map(async (name) => {
    const browser = await launch(name), { page, call } = await open(browser, "slm2");
    await call("create", params);
    const { id } = await call("import", "/models/model.slm2");
    await call("load", id, { context: Math.min(2048, config.max_positions) });
    const driver = { pid: () => renderer(browser).pid, ask: (given) => call("prompt", given) };
    say(`soak, ${name}: begins`);
    const text = await soak(driver, soakMinutes, file, `${name} ${versionOf(browser)}`,
      `${model.split("/").pop()}, ${params.module}, ${threadsText(params.threads)}`);
    const errors = page.unexpected();
    await browser.close();
    return errors.length > 0 ? `${text}; the page said ${errors[0]}` : text;
  }));
  console.log(said.join("\n"));
  writeFileSync(join(work, `${day}-soak.txt`), said.join("\n") + "\n");
  publish(file, `${day}-soak.csv`, soakMinutes >= 30);
}

/* --- what it gave ---------------------------------------------------------------------- */

const day = new Date().toISOString().slice(0, 10), kept = join(work, `${day}-browser.part.csv`);
const labs = [];

/** All figures so far, whole or not at all. */
function save() {
  writeFileSync(`${kept}.new`, csv({ samples, peerVersion, release }, labs));
  renameSync(`${kept}.new`, kept);
}

function report() {
  const all = { samples, counts, tokenBytes, prompt: PEER_PROMPT, release };
  const table = [...labs.flatMap((lab) => labText(all, lab)), ...peerText(all), ...notes];
  const others = median(busy), quiet = others < 0.1;
  if (!quiet) table.push(`the machine was busy (${(100 * others).toFixed(0)} % with other work): these figures are not for publishing`);
  if (failed) table.push("a part of slm2's failed: these figures are not for publishing");
  console.log(table.join("\n"));
  save();
  writeFileSync(join(work, `${day}-browser.txt`), table.join("\n") + "\n");
  publish(kept, `${day}-browser.csv`, quiet && !failed && rounds >= 3);
}

/** A file of figures gets its name; in bench/results only those of the 0.6B that are good enough. */
function publish(file, name, good) {
  const folder = good && !env.LAB_MODEL && !quick ? "bench/results" : work;
  mkdirSync(folder, { recursive: true });
  renameSync(file, join(folder, name));
  console.log(`wrote ${join(folder, name)}`);
}

if (env.LAB_ONLY !== "soak") {
  for (const name of browsers) labs.push(await begin(name));
  const all = takeAll(labs);
  if (brief) await within(limit - (Date.now() - began) + 20000, all).catch((error) => notes.push(`the run: ${reason(error)}`));
  else await all;
  report();
  await its?.close();
  for (const { browser, page, name } of labs) {
    const errors = page.unexpected();
    if (errors.length > 0) console.log(`${name}: the page said ${errors[0]}`);
    await browser.close();
  }
}
if (soakMinutes > 0) await takeSoak();
server.close();
process.exit(0);
