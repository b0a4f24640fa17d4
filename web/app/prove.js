/**
 * prove.js: "Prove it": the project's golden digests, computed again by this browser. digests.txt is tests/golden/digests.txt
 * as it was built; every line about the demo model is made anew, by each module that this browser takes and with several
 * numbers of threads, and compared. The engine for it is another one than the chat's.
 */
import { createEngine } from "./engine/index.js";
import { hex } from "./engine/messages.js";
import { $, copyButton, download, h } from "./dom.js";

/* The ids of tests/golden/run.sh. */
const ids = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => (i * i * 7 + 13 * i + 5) % 280);
const ANSWERS = /** @type {Record<string, any>} */ ({
  "greedy": { messages: [{ role: "user", content: "What is the capital of France?" }], temperature: 0 },
  "seed-7": { messages: [{ role: "user", content: "Tell me a story." }], seed: 7 },
  "all-stages": { messages: [{ role: "user", content: "Tell me a story about a fox." }], seed: 99, temperature: 1.3, topK: 40,
    topP: 0.9, minP: 0.02, repeatPenalty: 1.1 },
});
const MODULES = /** @type {const} */ (["relaxed", "simd", "scalar"]);

/** @typedef {{name: string, set: string, kind: string, profile: "f32" | "q8", kv: "f32" | "f16", expected: string}} Line
 *  @typedef {{module: string, threads: number, made: Map<string, string>}} Column */

/** The lines about the demo model. @param {string} text @returns {{lines: Line[], file: string}} */
export function demoLines(text) {
  const lines = [];
  let file = "";
  for (const line of text.split("\n")) {
    const [name, expected] = line.split(" ");
    if (name === "demo/file") file = expected;
    const logits = /^(demo8?)\/logits\/(f32|q8)\/kv-(f32|f16)$/.exec(name);
    const answer = /^(demo8?)\/(greedy|seed-7|all-stages)\/(f32|q8)$/.exec(name);
    if (logits) lines.push({ name, expected, set: logits[1], kind: "logits", profile: logits[2], kv: logits[3] });
    if (answer) lines.push({ name, expected, set: answer[1], kind: answer[2], profile: answer[3], kv: "f32" });
  }
  return { lines: /** @type {Line[]} */ (lines), file };
}

/** @param {{threads: number}} of */
const threads = (of) => (of.threads === 1 ? "1 thread" : `${of.threads} threads`);

/** One line, made by a loaded engine. @param {import("./engine/client.js").Engine} engine @param {Line} line
 * @param {AbortSignal} signal */
async function make(engine, line, signal) {
  if (line.kind === "logits") return (await engine.digest(ids(line.set === "demo8" ? 8 : 160), 7, { signal })).digest;
  const params = { ...ANSWERS[line.kind], ...(line.set === "demo8" ? { maxTokens: 8 } : {}) };
  return (await engine.complete(params, { signal })).digest;
}

export class ProveView {
  /** @type {AbortController | null} */ #running = null;
  #start = h("button.primary", { type: "button", onclick: () => void this.#run() }, "Run the proof");
  #stop = h("button", { type: "button", hidden: true, onclick: () => this.#running?.abort() }, "Stop");
  #report = "";
  #copy = copyButton(() => this.#report, "Copy the report");
  #save = h("button", { type: "button", hidden: true }, "Save the report");
  #bar = h("progress", { hidden: true, max: 1, value: 0, ariaLabel: "Progress of the proof" });
  #verdict = h("p", { role: "status" });
  #table = h("div.scroll", { tabIndex: 0, role: "region", ariaLabel: "Digests" });

  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
    this.#copy.className = "";
    this.#copy.hidden = true;
    $("view-prove").append(
      h("h1", { id: "prove-title" }, "Prove it"),
      h("p", {}, "slm2 promises the same bits everywhere. Below, this browser computes the project's golden digests: SHA-256 " +
        "of every logit, and of every token with its log-probability, of the demo model. They are compared with the file that " +
        "all builds, processors and browsers must reproduce. One different bit anywhere gives another digest."),
      h("div.row", {}, this.#start, this.#stop, this.#copy, this.#save), this.#bar, this.#verdict, this.#table);
  }

  show() {}

  async #run() {
    const abort = this.#running = new AbortController();
    this.#start.hidden = true;
    this.#stop.hidden = this.#bar.hidden = false;
    this.#verdict.textContent = "Reading the digests";
    try {
      await this.#prove(abort.signal);
    } catch (e) {
      this.#verdict.textContent = abort.signal.aborted ? "Stopped." : `It broke off: ${/** @type {Error} */ (e).message}`;
    } finally {
      this.#running = null;
      this.#start.hidden = false;
      this.#stop.hidden = this.#bar.hidden = true;
    }
  }

  /** @param {AbortSignal} signal */
  async #prove(signal) {
    const text = await (await fetch("digests.txt", { signal })).text(), { lines, file } = demoLines(text);
    const demo = await this.app.demo(), store = this.app.engine.store;
    const source = typeof demo === "string" ? await store.file(demo) : await fetch(demo.url, { signal });
    const bytes = await source.arrayBuffer(), model = { file: new File([bytes], "demo.slm2") };
    const got = hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
    if (got !== file) throw new Error(`the demo model's file has the SHA-256 ${got}, digests.txt says ${file}`);
    const features = this.app.engine.capabilities;
    const modules = MODULES.filter((m) => m === "scalar" || features[m]);
    const counts = [...new Set([1, 2, Math.min(8, features.cores)])];
    const runs = modules.flatMap((module) => counts.map((n) => ({ module, threads: n })));
    /** @type {Column[]} */ const columns = [];
    let done = 0;
    for (const run of runs) {
      const column = { ...run, made: new Map() };
      columns.push(column);
      const engine = await createEngine({ base: new URL("./", import.meta.url).href, ...run });
      try {
        for (const [profile, kv] of /** @type {const} */ ([["f32", "f32"], ["f32", "f16"], ["q8", "f32"], ["q8", "f16"]])) {
          await engine.load(model, { profile, kv, signal });
          for (const line of lines.filter((l) => l.profile === profile && l.kv === kv)) {
            column.made.set(line.name, await make(engine, line, signal));
            this.#bar.value = ++done / (runs.length * lines.length);
            this.#verdict.textContent = `${run.module}, ${threads(column)}: ${line.name}`;
          }
        }
      } finally {
        await engine.close();
      }
      this.#draw(lines, columns);
    }
    this.#finish(lines, columns, got);
  }

  /** @param {Line[]} lines @param {Column[]} columns */
  #draw(lines, columns) {
    const cell = (/** @type {Line} */ line, /** @type {Column} */ column) => {
      const made = column.made.get(line.name);
      const same = made === line.expected;
      return h("td", {}, made !== undefined &&
        h(same ? "span.tag" : "span.tag.bad", { title: made }, same ? "equal" : "DIFFERENT"));
    };
    this.#table.replaceChildren(h("table.digests", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "digest"),
        columns.map((c) => h("th", { scope: "col" }, `${c.module},`, h("br"), threads(c))), h("th", { scope: "col" }, "SHA-256"))),
      h("tbody", {}, lines.map((line) => h("tr", {}, h("th", { scope: "row" }, line.name), columns.map((c) => cell(line, c)),
        h("td.mono", { title: line.expected }, line.expected.slice(0, 8) + "…"))))));
  }

  /** @param {Line[]} lines @param {Column[]} columns @param {string} file */
  #finish(lines, columns, file) {
    const all = columns.length * lines.length;
    const wrong = columns.flatMap((c) => lines.filter((l) => c.made.get(l.name) !== l.expected)
      .map((l) => `${l.name} (${c.module}, ${threads(c)})`));
    this.#verdict.textContent = wrong.length === 0
      ? `All ${all} digests are equal: this browser gives the project's bits, in ${columns.length} ways.`
      : `${wrong.length} of ${all} digests differ: ${wrong.slice(0, 3).join("; ")}. Please report this.`;
    this.#report = [
      "slm2 proof", `date ${new Date().toISOString()}`, `browser ${navigator.userAgent}`,
      `processors ${navigator.hardwareConcurrency}`, `demo.slm2 sha256 ${file}`,
      `result ${all - wrong.length} of ${all} equal`, "",
      ...columns.flatMap((c) => [`[module ${c.module}, threads ${c.threads}]`, ...lines.map(({ name, expected }) => {
        const made = c.made.get(name);
        return `${name} ${made} ${made === expected ? "equal" : `DIFFERENT, expected ${expected}`}`;
      }), ""]),
    ].join("\n");
    this.#copy.hidden = this.#save.hidden = false;
    this.#save.onclick = () => download("slm2-proof.txt", this.#report, "text/plain");
  }
}
