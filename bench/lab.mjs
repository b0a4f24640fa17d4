/* `make lab`: the engine in Chromium and Firefox on a model of Qwen3-0.6B's size, in turns with wllama in Chromium and with
 * llama.cpp natively, on the same weights; against the floors and goals that slm2 has set itself. bench/README.md.
 *
 *   node bench/lab.mjs SLM2 BUILD        from the project's root
 *
 * Environment: LAB_ROUNDS (3), LAB_QUICK=1 (one round of short answers: to see that all of it runs), LAB_MODEL (another .slm2
 * file, with a tokenizer), LAB_BROWSERS ("chromium firefox"), LAB_PEER=none, LAB_SOAK (minutes of prompting afterwards; 0),
 * LAB_ONLY=soak, LAB_MINUTES (a run that ends after about so many: wllama gets prompts of half the length, simd runs with all
 * cores only, and what does not fit is left out and named), COMPILER and FLAGS (for the table).
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { arch, cpus, platform } from "node:os";
import { join, resolve } from "node:path";
import { launch } from "../tests/browser/driver.mjs";
import * as proc from "../tests/browser/proc.mjs";
import { CSP, serve } from "../tests/browser/server.mjs";
import { MiB, Samples, busyShare, cores, csvLine, median, minorFaults, number, reason, run, verdict } from "./lab/figures.mjs";
import { soak } from "./lab/soak.mjs";

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
const PEER_PROMPT = brief || quick ? 64 : 128, PEER_TOKENS = quick ? 4 : 8;
const counts = [...new Set([1, cores])];
const browsers = (env.LAB_BROWSERS ?? "chromium firefox").split(" ");
const say = (text) => process.stderr.write(`${((Date.now() - began) / 1000).toFixed(0).padStart(4)} s  ${text}\n`);
const samples = new Samples(), notes = [], busy = [];

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
const config = JSON.parse(run(slm2, ["inspect", model, "--json"])).config;
const ids = (n) => Array.from({ length: n }, (_, i) => (i + 1) * 2654435761 % config.vocab); /* as `slm2 bench` takes them */
const server = await serve({ build, models: { "model.slm2": model, "peer.gguf": gguf },
  folders: { lab: "bench/lab", peer: join(work, "node_modules/@wllama/wllama") } });
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

/** A browser with the model in its store, and slm2's page. */
async function begin(name) {
  say(`${name}: first visit`);
  const browser = await launch(name), lab = { name, browser, version: browser.version };
  const start = performance.now();
  Object.assign(lab, await open(browser, "slm2"));
  const visit = performance.now() - start;
  lab.empty = renderer(browser).anonymous;
  const { ms: create } = await lab.call("create", {});
  const stored = await lab.call("import", "/models/model.slm2");
  if (!stored.sealed) throw new Error(`${name}: the import left the model unsealed`);
  lab.id = stored.id;
  note(lab, "auto", cores, "import", stored.bytes / 1000 / stored.ms);
  const load = await lab.call("load", lab.id, { context: CONTEXT });
  note(lab, "auto", cores, "first_visit", visit + create + load.ms);
  const { kind, threads, trials } = load.chosen;
  notes.push(`${name} ${lab.version}: of its own accord ${kind} with ${threads} thread(s); trials `
    + trials.map((t) => `${t.kind} ${number(t.ms)} ms`).join(", "));
  for (let i = 0; i < (quick ? 1 : 3); i++) {
    const { ms, bytes } = await lab.call("verify", lab.id);
    note(lab, "auto", cores, "verify", bytes / 1000 / ms);
  }
  lab.kinds = ["relaxed", "simd", "scalar"];
  for (const module of lab.kinds)
    for (const ms of (await lab.call("compile", module, 3)).ms) note(lab, module, 1, "compile", ms);
  return lab;
}
const note = (lab, runner, threads, metric, value) => samples.add(lab.name, runner, threads, metric, value);

/** A fresh page with the model loaded, from the store. */
async function ready(lab, kind, threads) {
  const start = performance.now();
  await go(lab.page, "slm2");
  const visit = performance.now() - start;
  await lab.call("create", kind === "auto" ? {} : { module: kind, threads });
  const loaded = await lab.call("load", lab.id, { context: CONTEXT });
  if (!loaded.sealed) throw new Error(`${lab.name}: the model was verified again`);
  note(lab, kind, threads, "load", loaded.ms);
  return { ...loaded, visit };
}

/* --- one turn of each ------------------------------------------------------------------ */

/** Speed, memory and page faults of one module at one count of threads. */
async function takeSlm2(lab, kind, threads, { long = true } = {}) {
  const { plan } = await ready(lab, kind, threads);
  const runs = [];
  for (let i = 0; i < 2; i++) { /* the first one touches memory that was never used, and code not compiled to its best */
    const { pid } = renderer(lab.browser), before = minorFaults(pid);
    const answer = await lab.call("speed", ids(long || i === 1 ? 128 : 32), i === 0 ? 2 : TOKENS);
    runs.push({ ...answer, faults: minorFaults(pid) - before });
  }
  const last = runs.at(-1);
  note(lab, kind, threads, "prefill128", 128000 / last.prefillMs);
  note(lab, kind, threads, "decode", 1000 * (last.completionTokens - 1) / last.decodeMs);
  note(lab, kind, threads, "first_token128", last.firstMs);
  if (!long) return;
  const [one, two] = runs;
  note(lab, kind, threads, "prefill128_first", 128000 / one.prefillMs);
  note(lab, kind, threads, "faults_first", one.faults);
  note(lab, kind, threads, "faults_second", two.faults);
  note(lab, kind, threads, "prefill512", 512000 / (await lab.call("speed", ids(512), 1)).prefillMs);
  const { anonymous } = renderer(lab.browser), { same, heap } = await lab.call("constant");
  if (!same) throw new Error(`${lab.name}: the memory has another size than when it was made`);
  note(lab, kind, threads, "rss", anonymous / 1e6);
  note(lab, kind, threads, "plan", plan.total / 1e6);
  note(lab, kind, threads, "beyond", (anonymous - plan.file - plan.kv * 513 / plan.context) / MiB);
  if (heap !== null) note(lab, kind, threads, "js_heap", heap / MiB);
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
const STOPS_MOST_MS = brief ? 40000 : 300000;
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
function takeNative(threads) {
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

/** What a visitor who comes back waits for, the choice of the module included; then the same with the choice made. */
async function takeStarts(lab) {
  for (const kind of ["auto", "relaxed"])
    for (let i = 0; i < (quick ? 1 : 3); i++) {
      const { ms } = await ready(lab, kind, cores);
      note(lab, kind, cores, "ttft", ms + (await lab.call("speed", ids(1), 1)).firstMs);
    }
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

/* --- the run --------------------------------------------------------------------------- */

/** A turn of everything, with some threads. */
async function takeTurn(labs, threads, longest) {
  for (const lab of labs) {
    busy.push(busyShare());
    await takeSlm2(lab, "relaxed", threads);
    if (lab.name === "chromium" && peers.native) takeNative(threads);
    if (lab.name === "chromium" && peers.wllama) {
      const start = Date.now();
      await takeWllama(threads, longest.get(threads) ?? 0);
      longest.set(threads, Math.max(longest.get(threads) ?? 0, Date.now() - start));
    }
    if (!brief || threads === cores) await takeSlm2(lab, "simd", threads, { long: false });
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
    await takeStarts(lab);
    await within(STOPS_MOST_MS, takeStops(lab)).catch((error) => notes.push(`${lab.name}, stops and recovery: ${reason(error)}`));
  }
  const longest = new Map(); /* milliseconds of a turn of wllama, by threads */
  for (let round = 1; round <= rounds; round++)
    for (const threads of counts) {
      say(`round ${round} of ${rounds}, ${threads} thread(s)`);
      if (late(20000)) notes.push(`round ${round}, ${threads} thread(s): left out for time`);
      else await takeTurn(labs, threads, longest);
    }
  for (const lab of labs.filter(() => !late(25000))) {
    await ready(lab, "scalar", cores);
    const { prefillMs, completionTokens, decodeMs } = await lab.call("speed", ids(16), 3);
    note(lab, "scalar", cores, "prefill16", 16000 / prefillMs);
    note(lab, "scalar", cores, "decode", 1000 * (completionTokens - 1) / decodeMs);
  }
  busy.push(busyShare());
}

async function takeSoak() {
  if (!(soakMinutes > 0)) return;
  for (const name of browsers) {
    const browser = await launch(name), { page, call } = await open(browser, "slm2");
    await call("create", {});
    const { id } = await call("import", "/models/model.slm2");
    const { chosen } = await call("load", id, { context: Math.min(2048, config.max_positions) });
    const driver = { pid: () => renderer(browser).pid, ask: (params) => call("prompt", params) };
    const what = `${name} ${browser.version}, ${model.split("/").pop()}, ${chosen.kind}, ${chosen.threads} thread(s)`;
    await soak(driver, soakMinutes, join(work, `soak-${name}.csv`), what);
    if (page.unexpected().length > 0) console.log(`soak, ${name}: the page said ${page.unexpected()[0]}`);
    await browser.close();
  }
}

/* --- what it gave ---------------------------------------------------------------------- */

const of = (name, kind, threads, metric) => samples.median(name, kind, threads, metric);

/** The rows of PEERS.md: what, value, floor, goal; less is better where the floor is above the goal. */
function rowsOf({ name }) {
  const rows = [];
  const ours = (threads, metric) => of(name, "relaxed", threads, metric);
  for (const threads of counts) {
    const by = (peer, kind, metric) => ours(threads, metric) / of(peer, kind, threads, metric);
    const n = `${threads} thread${threads > 1 ? "s" : ""}`;
    if (name === "chromium") {
      rows.push([`decode q8 / wllama, ${n}`, by(name, "wllama", "decode"), 5, 6]);
      rows.push([`prefill 128 q8 / wllama, ${n}`, by(name, "wllama", "prefill128"), 10, 15]);
      rows.push([`decode q8 / native llama.cpp, ${n}`, by("native", "llama.cpp", "decode"), 0.8, 1]);
      rows.push([`prefill 128 q8 / native llama.cpp, ${n}`, by("native", "llama.cpp", "prefill128"), NaN, 1]);
    } else {
      rows.push([`decode q8 / Chromium, ${n}`, by("chromium", "relaxed", "decode"), 0.65, 0.85]);
      rows.push([`prefill 128 q8 / Chromium, ${n}`, by("chromium", "relaxed", "prefill128"), 0.65, 0.85]);
    }
  }
  rows.push(["warm start to READY, module chosen anew, seconds", of(name, "auto", cores, "load") / 1000, 1.2, 0.8]);
  rows.push(["warm start to READY, module known, seconds", ours(cores, "load") / 1000, 1.2, 0.8]);
  rows.push(["respawn after the engine broke, to READY, seconds", ours(cores, "respawn") / 1000, 1.2, 0.8]);
  rows.push(["renderer beyond file, keys and values, MiB", ours(cores, "beyond"), 96, 64]);
  return rows;
}

const table = [];
const print = (text) => {
  table.push(text);
  console.log(text);
};
function printRows(lab) {
  const cells = (values, width) => values.map((x) => (typeof x === "string" ? x : number(x)).padStart(width)).join("");
  print("");
  print(`${lab.name} ${lab.version}`.padEnd(58) + cells(["floor", "goal", "here"], 8));
  for (const [what, value, floor, goal] of rowsOf(lab)) {
    print(`${what.padEnd(58)}${cells([floor, goal, value], 8)}  ${verdict(value, floor, goal)}`);
  }
  const least = (kind, threads, metric) => Math.min(...samples.values(lab.name, kind, threads, metric));
  const lines = [["import from this machine, MB/s", "auto", cores, "import"], ["verify, MB/s", "auto", cores, "verify"],
    ["first visit to READY without the import, ms", "auto", cores, "first_visit"],
    ...["relaxed", "simd", "scalar"].map((kind) => [`compile ${kind}, ms`, kind, 1, "compile"]),
    ...counts.flatMap((threads) => ["relaxed", "simd"].flatMap((kind) => [["prefill128", "tok/s"], ["prefill512", "tok/s"],
      ["decode", "tok/s"], ["first_token128", "ms"]].map(([metric, unit]) => [`${metric} ${kind}, ${threads} thread(s), ${unit}`, kind,
      threads, metric]))),
    ["prefill16 scalar, tok/s", "scalar", cores, "prefill16"], ["decode scalar, tok/s", "scalar", cores, "decode"],
    ["prefill 128, first after a load, tok/s", "relaxed", cores, "prefill128_first"],
    ["minor page faults of it", "relaxed", cores, "faults_first"],
    ["minor page faults of the second one", "relaxed", cores, "faults_second"],
    ["load to first token of a one-token prompt, ms", "relaxed", cores, "ttft"],
    ...counts.flatMap((threads) => ["stop_left", "stop_left_prefill", "stop_left_decode", "stop_done"]
      .map((metric) => [`${metric}, ${threads} thread(s), ms`, "relaxed", threads, metric])),
    ["the page hears of a broken engine, ms", "relaxed", cores, "poison_noticed"],
    ["renderer, MB", "relaxed", cores, "rss"], ["planned, MB", "relaxed", cores, "plan"],
    ["JavaScript heap, MiB", "relaxed", cores, "js_heap"]];
  print(" ".repeat(58) + cells(["median", "least", "most"], 9) + "   n");
  for (const [what, ...key] of lines) {
    const n = samples.values(lab.name, ...key).length;
    if (n === 0) continue;
    print(what.padEnd(58) + cells([of(lab.name, ...key), least(...key), samples.most(lab.name, ...key)], 9) + String(n).padStart(4));
  }
  print(`renderer of a page with nothing: ${number(lab.empty / MiB, 1)} MiB`);
}

function printPeers() {
  for (const [name, kind, what] of [["chromium", "wllama", `wllama, prompts of ${PEER_PROMPT}`], ["native", "llama.cpp",
    `llama.cpp ${release} natively, prompts of 128`]])
    for (const threads of counts) {
      const [prefill, decode, load] = ["prefill128", "decode", "load"].map((metric) => of(name, kind, threads, metric));
      if (Number.isNaN(decode)) continue;
      print(`${what}, ${threads} thread(s): prefill ${number(prefill)} tok/s, decode ${number(decode)} tok/s`
        + `${Number.isNaN(load) ? "" : `, load ${number(load, 0)} ms`}; median of ${samples.values(name, kind, threads, "decode").length}`);
    }
}

function commitOf() {
  try {
    const changed = run("git", ["status", "--porcelain", "--untracked-files=no"]).trim();
    return run("git", ["rev-parse", "--short", "HEAD"]).trim() + (changed ? "+" : "");
  } catch {
    return "unknown";
  }
}

function csv(labs) {
  const unknown = "unknown", cpu = cpus()[0]?.model.trim() ?? unknown;
  const about = [`${cores} vCPU`, cpu, env.COMPILER ?? unknown, env.FLAGS ?? unknown, commitOf()];
  let out = "machine,cpu,compiler,flags,commit,runner,profile,threads,metric,value,peer,ratio,engine\n";
  for (const [name, kind, threads, metric] of samples.keys()) {
    const lab = labs.find((one) => one.name === name);
    if (!lab || kind === "wllama") continue;
    const value = of(name, kind, threads, metric), engine = `${name} ${lab.version}`;
    const line = (peer, theirs) => csvLine([...about, `slm2 ${kind}${peer}`, "q8", threads, metric, value, theirs, value / theirs, engine]);
    const wllama = of(name, "wllama", threads, metric), native = of("native", "llama.cpp", threads, metric);
    out += line(Number.isNaN(wllama) ? "" : ` / wllama ${peerVersion}`, wllama);
    if (!Number.isNaN(native)) out += line(` / native llama.cpp ${release}`, native);
    if (!metric.startsWith("stop_")) continue;
    out += csvLine([...about, `slm2 ${kind}`, "q8", threads, `${metric}_most`, samples.most(name, kind, threads, metric), NaN, NaN, engine]);
  }
  return out;
}

const labs = [];
if (env.LAB_ONLY !== "soak") {
  for (const name of browsers) labs.push(await begin(name));
  const all = takeAll(labs);
  if (brief) await within(limit - (Date.now() - began) + 20000, all).catch((error) => notes.push(`the run: ${reason(error)}`));
  else await all;
  for (const lab of labs) printRows(lab);
  printPeers();
  for (const text of notes) print(text);
  const others = median(busy), quiet = others < 0.1;
  if (!quiet) print(`the machine was busy (${(100 * others).toFixed(0)} % with other work): these figures are not for publishing`);
  const publish = quiet && !env.LAB_MODEL && rounds >= 3 && !quick;
  const folder = publish ? "bench/results" : work, day = new Date().toISOString().slice(0, 10);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${day}-browser.csv`), csv(labs));
  writeFileSync(join(work, `${day}-browser.txt`), table.join("\n") + "\n");
  console.log(`wrote ${join(folder, `${day}-browser.csv`)}`);
  await its?.close();
  for (const { browser, page, name } of labs) {
    const errors = page.unexpected();
    if (errors.length > 0) console.log(`${name}: the page said ${errors[0]}`);
    await browser.close();
  }
}
await takeSoak();
server.close();
process.exit(0);
