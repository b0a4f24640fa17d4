/* What the laboratory says in the end: the floors and goals that slm2 has set itself, all other figures, and the CSV.
 * A lab is a browser's part: {name, version, empty, turns, reused, asked, tells, steps, modules}; see lab.mjs. */
import { cpus } from "node:os";
import { KINDS, MiB, cores, csvLine, number, run, verdict } from "./figures.mjs";

const SEEDS_MB = 160; /* what the mission allows a renderer beside the model [R96] */
const MOST_TOO = /^(stop_|faults_|frame_gap$|longest_task$|step_|respawn$)/; /* metrics of which the highest counts as well */

const cells = (values, width) => values.map((x) => (typeof x === "string" ? x : number(x)).padStart(width)).join("");
export const threadsText = (n) => `${n} thread${n > 1 ? "s" : ""}`;

/** The rows of PEERS.md: what, value, floor, goal; less is better where the floor is above the goal. */
function goals({ samples, counts }, { name }) {
  const rows = [], of = (...key) => samples.median(...key), ours = (threads, metric) => of(name, "relaxed", threads, metric);
  for (const threads of counts) {
    const by = (peer, kind, metric) => ours(threads, metric) / of(peer, kind, threads, metric), n = threadsText(threads);
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
  rows.push(["warm start to READY, seconds", of(name, "auto", cores, "load") / 1000, 1.2, 0.8]);
  rows.push(["respawn after the engine broke, to READY, seconds", ours(cores, "respawn") / 1000, 1.2, 0.8]);
  rows.push(["renderer beyond file, keys and values, MiB", ours(cores, "beyond"), 96, 64]);
  rows.push(["the same beside the seeds' budget, MB", ours(cores, "beyond") * MiB / 1e6, SEEDS_MB, SEEDS_MB]);
  rows.push(["longest task of the page in load and answers, ms", ours(cores, "longest_task"), 50, 50]);
  return rows;
}

/** What a token has to read, over what was read in its time, as a share of what plain reading brought. */
function shares({ samples, counts, tokenBytes }, { name }) {
  const rows = [];
  for (const threads of counts) {
    const rate = tokenBytes * samples.median(name, "relaxed", threads, "decode") / 1e9;
    const plain = Math.max(...[1, 2].map((streams) => samples.most(name, `read${streams}`, threads, "bandwidth")));
    const native = samples.most("native", "slm2 bench", threads, "bandwidth");
    rows.push([`decoding reads, ${threadsText(threads)}, GB/s`, rate]);
    rows.push(["  of what plain reading brings in this browser", rate / plain]);
    rows.push(["  of what it brings natively", rate / native]);
  }
  return rows.filter(([, value]) => Number.isFinite(value));
}

/** All other figures: what, and the key of its samples. */
function lines({ counts }) {
  const each = (list, make) => list.flatMap(make);
  return [
    ["import from this machine, MB/s", "auto", cores, "import"], ["verify, MB/s", "auto", cores, "verify"],
    ["cold start: page, engine, first load (without import), ms", "auto", cores, "first_visit"],
    ["warm start: stored and sealed, module given, to READY, ms", "relaxed", cores, "load"],
    ["  of its own accord, as an earlier visit measured, ms", "auto", cores, "load"],
    ["  modules and threads measured, as at a first visit, ms", "trial", cores, "load"],
    ["the same ten times in one page, ms", "relaxed", cores, "load_again"],
    ["load to first token of a one-token prompt, ms", "relaxed", cores, "ttft"],
    ...each(KINDS, (kind) => [[`WebAssembly.compile ${kind}, ms`, kind, 1, "compile"]]),
    ["first step after a load, ms", "relaxed", cores, "step_first"], ["a step later on, ms", "relaxed", cores, "step_late"],
    ["steps until they are within a tenth of that", "relaxed", cores, "settle_steps"],
    ["  and how long these take, ms", "relaxed", cores, "settle"],
    ...each(counts, (threads) => each(["relaxed", "simd"], (kind) => each([["prefill128", "tok/s"], ["prefill512", "tok/s"],
      ["decode", "tok/s"], ["first_token128", "ms"]],
      ([metric, unit]) => [[`${metric} ${kind}, ${threadsText(threads)}, ${unit}`, kind, threads, metric]]))),
    ["prefill16 scalar, tok/s", "scalar", cores, "prefill16"], ["decode scalar, tok/s", "scalar", cores, "decode"],
    ...each(counts, (threads) => each([1, 2], (streams) =>
      [[`plain reading, ${threadsText(threads)}, streams of each: ${streams}, GB/s`, `read${streams}`, threads, "bandwidth"]])),
    ["prefill 128 after a load: new code, new memory, tok/s", "relaxed", cores, "prefill128_first"],
    ["  minor page faults of it", "relaxed", cores, "faults_first"],
    ["  of the second one", "relaxed", cores, "faults_second"],
    ["prefill 512: known code, new memory, tok/s", "relaxed", cores, "prefill512_first"],
    ["  minor page faults of it", "relaxed", cores, "faults512_first"],
    ["  of the second one", "relaxed", cores, "faults512_second"],
    ...each(counts, (threads) => each(["stop_left", "stop_left_prefill", "stop_left_decode", "stop_done"],
      (metric) => [[`${metric}, ${threadsText(threads)}, ms`, "relaxed", threads, metric]])),
    ["the page hears of a broken engine, ms", "relaxed", cores, "poison_noticed"],
    ["  from there to READY again, ms", "relaxed", cores, "respawn"],
    ["tasks over 50 ms, in load and answers", "relaxed", cores, "long_tasks"],
    ["  of the page that people see", "page", cores, "long_tasks"], ["  the longest of them, ms", "page", cores, "longest_task"],
    ["longest time between two frames meanwhile, ms", "relaxed", cores, "frame_gap"],
    ["renderer, MB", "relaxed", cores, "rss"], ["  planned, MB", "relaxed", cores, "plan"],
    ["renderer five seconds after a reload of the page, MB", "relaxed", cores, "rss_reload"],
    ["renderer after ten loads in one page, MB", "relaxed", cores, "rss_again"],
    ["JavaScript heap after two answers, MiB", "relaxed", cores, "js_heap_early"],
    ["JavaScript heap after all, MiB", "relaxed", cores, "js_heap"],
  ];
}

/** The text of one browser's part. */
export function labText(all, lab) {
  const { samples } = all, out = ["", `${lab.name} ${lab.version}`.padEnd(58) + cells(["floor", "goal", "here"], 8)];
  for (const [what, value, floor, goal] of goals(all, lab)) {
    const said = lab.tells || !what.startsWith("longest task") ? verdict(value, floor, goal) : "untested: this browser does not tell";
    out.push(`${what.padEnd(58)}${cells([floor, goal, value], 8)}  ${said}`);
  }
  for (const [what, value] of shares(all, lab)) out.push(what.padEnd(74) + cells([value], 8));
  out.push(" ".repeat(58) + cells(["median", "least", "most"], 9) + "   n");
  for (const [what, ...key] of lines(all)) {
    const values = samples.values(lab.name, ...key);
    if (values.length === 0) continue;
    out.push(what.padEnd(58) + cells([samples.median(lab.name, ...key), Math.min(...values), Math.max(...values)], 9)
      + String(values.length).padStart(4));
  }
  out.push(`renderer of a page with nothing: ${number(lab.empty / MiB, 1)} MiB`);
  out.push(`turns in a renderer process of their own: ${lab.turns - lab.reused} of ${lab.turns}; the engine's memory had each time `
    + "the size that it was made with");
  out.push(`requests of the page while it answered: ${lab.asked}`);
  if (lab.steps) out.push(`${lab.steps.n} greedy steps: ${lab.steps.digest} ${lab.steps.equal ? "as natively" : "NOT AS NATIVELY"}`);
  for (const [kind, sha256] of lab.modules) out.push(`SHA-256 of slm2-${kind}.wasm: ${sha256}`);
  return out;
}

/** The text about the peers. */
export function peerText({ samples, counts, prompt, release }) {
  const out = [];
  for (const [name, kind, what] of [["chromium", "wllama", `wllama, prompts of ${prompt}`], ["native", "llama.cpp",
    `llama.cpp ${release} natively, prompts of 128`]])
    for (const threads of counts) {
      const [prefill, decode, load] = ["prefill128", "decode", "load"].map((metric) => samples.median(name, kind, threads, metric));
      if (Number.isNaN(decode)) continue;
      out.push(`${what}, ${threadsText(threads)}: prefill ${number(prefill)} tok/s, decode ${number(decode)} tok/s`
        + `${Number.isNaN(load) ? "" : `, load ${number(load, 0)} ms`}; median of ${samples.values(name, kind, threads, "decode").length}`);
    }
  for (const threads of counts) {
    const best = samples.most("native", "slm2 bench", threads, "bandwidth");
    if (best > 0) out.push(`plain reading natively (slm2 bench), ${threadsText(threads)}: ${number(best)} GB/s at best`);
  }
  return out;
}

function commitOf() {
  try {
    const changed = run("git", ["status", "--porcelain", "--untracked-files=no"]).trim();
    return run("git", ["rev-parse", "--short", "HEAD"]).trim() + (changed ? "+" : "");
  } catch {
    return "unknown";
  }
}

const unknown = "unknown", cpu = cpus()[0]?.model.trim() ?? unknown;
const about = [`${cores} vCPU`, cpu, process.env.COMPILER ?? unknown, process.env.FLAGS ?? unknown, commitOf()];

/** Everything measured so far. */
export function csv({ samples, peerVersion, release }, labs) {
  let out = "machine,cpu,compiler,flags,commit,runner,profile,threads,metric,value,peer,ratio,engine\n";
  for (const [name, kind, threads, metric] of samples.keys()) {
    const lab = labs.find((one) => one.name === name);
    if (!lab || kind === "wllama") continue;
    const value = samples.median(name, kind, threads, metric), engine = `${name} ${lab.version}`;
    const wllama = samples.median(name, "wllama", threads, metric), native = samples.median("native", "llama.cpp", threads, metric);
    const line = (what, shown, peer = "", theirs = NaN) =>
      csvLine([...about, `slm2 ${kind}${peer}`, "q8", threads, what, shown, theirs, shown / theirs, engine]);
    out += line(metric, value, Number.isNaN(wllama) ? "" : ` / wllama ${peerVersion}`, wllama);
    if (!Number.isNaN(native)) out += line(metric, value, ` / native llama.cpp ${release}`, native);
    if (MOST_TOO.test(metric)) out += line(`${metric}_most`, samples.most(name, kind, threads, metric));
    if (metric === "bandwidth") out += line("bandwidth_most", samples.most(name, kind, threads, metric), " / native slm2 bench",
      samples.most("native", "slm2 bench", threads, metric));
  }
  return out;
}
