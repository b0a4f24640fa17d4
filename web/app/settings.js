/**
 * settings.js: how answers are drawn. What the user leaves empty is the model's own default, which is shown in its place.
 */
import { $, h } from "./dom.js";

const KEY = "slm2.settings";

/** @typedef {{thinking?: boolean, temperature?: number, topK?: number, topP?: number, minP?: number, repeatPenalty?: number,
 *  maxTokens?: number, seed?: string, threads?: number}} Values */

const MOST_THREADS = 16;

/** name, label, step, range, what it does */
const NUMBERS = /** @type {const} */ ([
  ["temperature", "Temperature", 0.05, 0, 5, "0 always takes the most likely word"],
  ["topK", "Top K", 1, 0, 100000, "draw from the K most likely; 0: all"],
  ["topP", "Top P", 0.01, 0, 1, "draw from the most likely that add up to P"],
  ["minP", "Min P", 0.01, 0, 1, "leave out what is less likely than this share of the best"],
  ["repeatPenalty", "Repeat penalty", 0.01, 0.01, 10, "above 1: less of what was said"],
  ["maxTokens", "Longest answer", 1, 1, 1000000, "in tokens"],
]);

/** @returns {Values} */
function read() {
  try {
    return checked(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
  } catch {
    return {};
  }
}

/** Whatever was stored: only what these settings can be. @param {any} stored @returns {Values} */
function checked(stored) {
  /** @type {any} */ const values = {};
  for (const [name, , step, min, max] of NUMBERS) {
    const value = stored[name], whole = step !== 1 || Number.isInteger(value);
    if (typeof value === "number" && value >= min && value <= max && whole) values[name] = value;
  }
  if (typeof stored.seed === "string" && isSeed(stored.seed)) values.seed = stored.seed;
  if (stored.thinking === false) values.thinking = false;
  if (Number.isInteger(stored.threads) && stored.threads >= 1 && stored.threads <= MOST_THREADS) values.threads = stored.threads;
  return values;
}

/** @param {string} text */
const isSeed = (text) => /^[0-9]{1,20}$/.test(text) && BigInt(text) < 1n << 64n;

export class Settings {
  /** @type {Values} */ #values = read();
  /** @type {Record<string, HTMLInputElement>} */ #inputs = {};
  #thinking = h("input", { type: "checkbox", id: "set-thinking" });
  #seed = h("input", { id: "set-seed", inputMode: "numeric", placeholder: "drawn anew", pattern: "[0-9]*" });
  #system = h("textarea", { id: "set-system", rows: 2, placeholder: "none" });
  #threads = h("select", { id: "set-threads" });
  /** Told when the system prompt was changed. @type {(text: string) => void} */ onSystem = () => {};
  /** Told when another number of threads was chosen. */ onThreads = () => {};

  constructor() {
    const field = (/** @type {HTMLElement} */ input, /** @type {string} */ label, /** @type {string} */ note) =>
      h("div.field", {}, h("label", { htmlFor: input.id }, label), input, h("span.small", { id: `${input.id}-note` }, note));
    const fields = NUMBERS.map(([name, label, step, min, max, note]) => {
      const input = h("input", { type: "number", id: `set-${name}`, step, min, max, ariaDescription: note });
      input.value = this.#values[name] ?? "";
      input.addEventListener("change", () => this.#changed());
      this.#inputs[name] = input;
      return field(input, label, note);
    });
    const cores = Math.min(MOST_THREADS, Math.max(2, navigator.hardwareConcurrency || 1));
    this.#threads.append(h("option", { value: "" }, "as measured"),
      ...Array.from({ length: cores }, (_, i) => h("option", { value: String(i + 1) }, String(i + 1))));
    this.#threads.value = String(this.#values.threads ?? "");
    this.#threads.addEventListener("change", () => {
      this.#changed();
      this.onThreads();
    });
    this.#thinking.checked = this.#values.thinking ?? true;
    this.#seed.value = this.#values.seed ?? "";
    for (const input of [this.#thinking, this.#seed]) input.addEventListener("change", () => this.#changed());
    this.#system.addEventListener("change", () => this.onSystem(this.#system.value));
    $("options-body").append(
      h("div.field.wide", {}, h("label", { htmlFor: "set-system" }, "System prompt of this conversation"), this.#system),
      h("div.fields", {}, fields, field(this.#seed, "Seed", "the same seed, the same answer"),
        field(this.#threads, "Threads", "changes the speed, never a bit")),
      h("div.row", {}, h("label", {}, this.#thinking, " Let the model think first, if it can"),
        h("button.link", { type: "button", onclick: () => this.#reset() }, "The model's own settings")));
    this.#summary();
  }

  #reset() {
    for (const input of Object.values(this.#inputs)) input.value = "";
    this.#seed.value = "";
    this.#thinking.checked = true;
    const threads = this.#threads.value;
    this.#threads.value = "";
    this.#changed();
    if (threads !== "") this.onThreads();
  }

  #changed() {
    /** @type {any} */ const values = {};
    for (const [name, input] of Object.entries(this.#inputs)) {
      const value = input.valueAsNumber, { badInput, rangeOverflow, rangeUnderflow, stepMismatch } = input.validity;
      /* Any number between the limits, not only those that the arrows reach; a count is whole. */
      const valid = !badInput && !rangeOverflow && !rangeUnderflow && !(stepMismatch && input.step === "1");
      input.setAttribute("aria-invalid", String(!valid));
      if (!Number.isNaN(value) && valid) values[name] = value;
    }
    if (isSeed(this.#seed.value)) values.seed = this.#seed.value;
    this.#seed.setAttribute("aria-invalid", String(this.#seed.value !== "" && values.seed === undefined));
    if (!this.#thinking.checked) values.thinking = false;
    if (this.#threads.value !== "") values.threads = Number(this.#threads.value);
    this.#values = values;
    localStorage.setItem(KEY, JSON.stringify(values));
    this.#summary();
  }

  #summary() {
    const { thinking, ...rest } = this.#values, changed = Object.keys(rest).length + (thinking === false ? 1 : 0);
    $("options-summary").textContent = changed === 0 ? "the model's own" : `${changed} changed`;
  }

  /** Shows the model's defaults where the user has chosen nothing. @param {any} defaults @param {number} context */
  show(defaults, context) {
    const own = { ...defaults, temperature: defaults.doSample ? defaults.temperature : 0, maxTokens: context };
    for (const [name, input] of Object.entries(this.#inputs)) input.placeholder = String(own[name] ?? "");
  }

  /** For createEngine. @returns {"auto" | number} */
  get threads() { return this.#values.threads ?? "auto"; }

  /** @param {string} text */
  set system(text) { this.#system.value = text; }

  /** For Engine.generate. */
  get params() {
    const { seed, threads, ...rest } = this.#values;
    return { ...rest, ...(seed === undefined ? {} : { seed: BigInt(seed) }) };
  }
}
