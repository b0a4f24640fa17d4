/**
 * history.js: the conversations of this browser. Kept in the origin's private file system by history-worker.js; where that
 * is refused they live in memory, and `memoryOnly` says why.
 *
 * @typedef {{finish: string, promptTokens: number, reusedTokens: number, completionTokens: number, prefillMs: number,
 *   decodeMs: number, seed: string, model: string, digest: string}} Stats seed as a decimal, because it may exceed a number
 * @typedef {{role: "user", content: string}} UserMessage
 * @typedef {{role: "assistant", content: string, reasoning?: string, stats?: Stats, error?: string}} AssistantMessage
 * @typedef {UserMessage | AssistantMessage} Message
 * @typedef {{id: string, title: string, created: string, updated: string, system: string, messages: Message[]}} Conversation
 */

const FORMAT = "slm2-conversations", VERSION = 1;
const PATIENCE_MS = 10000;

export class History {
  /** @type {Map<string, Conversation>} */ #all = new Map();
  #worker = new Worker(new URL("./history-worker.js", import.meta.url), { type: "module", name: "slm2 history" });
  #next = 1;
  /** @type {Map<number, {done: (v: any) => void, fail: (e: Error) => void}>} */ #asked = new Map();
  /** Other tabs of this browser keep the same conversations: {saved: Conversation} or {removed: id}. */
  #tabs = new BroadcastChannel("slm2:conversations");
  /** Why nothing is kept; null: it is. @type {string | null} */ memoryOnly = null;
  /** Told when another tab changed something. */ onOthers = () => {};

  constructor() {
    this.#tabs.onmessage = ({ data }) => {
      if (this.memoryOnly !== null) return;
      const saved = checked(data.saved);
      if (saved !== null) this.#all.set(saved.id, saved);
      else this.#all.delete(data.removed);
      this.onOthers();
    };
    this.#worker.onmessage = ({ data }) => {
      const asked = this.#asked.get(data.id);
      this.#asked.delete(data.id);
      if (data.error === undefined) asked?.done(data.value);
      else asked?.fail(new Error(data.error));
    };
    this.#worker.onerror = (e) => {
      for (const { fail } of this.#asked.values()) fail(new Error(e.message || "its worker was refused"));
      this.#asked.clear();
    };
  }

  /** @param {string} op @param {object} args @returns {Promise<any>} */
  #ask(op, args) {
    const id = this.#next++;
    return new Promise((done, fail) => {
      this.#asked.set(id, { done, fail });
      this.#worker.postMessage({ id, op, args });
    });
  }

  /** Reads what is kept. Storage that does not answer must not keep the page from starting. */
  async open() {
    const late = new Error("the browser's storage does not answer; a reload may help");
    const waiting = new Promise((_, fail) => { setTimeout(() => fail(late), PATIENCE_MS); });
    try {
      await Promise.race([this.#read(), waiting]);
    } catch (e) {
      this.memoryOnly = /** @type {Error} */ (e).message;
    }
  }

  async #read() {
    await this.#ask("probe", {});
    for (const { name, text } of await this.#ask("list", {})) {
      const c = checked(parse(text));
      if (c !== null && c.id === name) this.#all.set(c.id, c);
    }
  }

  /** Newest first. */
  list() { return [...this.#all.values()].sort((a, b) => b.updated.localeCompare(a.updated)); }

  /** @param {string} id */
  get(id) { return this.#all.get(id) ?? null; }

  /** @returns {Conversation} */
  create() {
    const now = new Date().toISOString();
    const c = { id: crypto.randomUUID(), title: "New conversation", created: now, updated: now, system: "", messages: [] };
    this.#all.set(c.id, c);
    return c;
  }

  /** An empty conversation is kept in memory alone. @param {Conversation} c */
  async save(c) {
    c.updated = new Date().toISOString();
    this.#all.set(c.id, c);
    if (this.memoryOnly !== null || c.messages.length === 0) return;
    await this.#keep(c);
  }

  /** @param {Conversation} c */
  async #keep(c) {
    await this.#ask("save", { name: c.id, text: JSON.stringify(c) });
    this.#tabs.postMessage({ saved: c });
  }

  /** @param {string} id */
  async remove(id) {
    this.#all.delete(id);
    if (this.memoryOnly !== null) return;
    await this.#ask("remove", { name: id });
    this.#tabs.postMessage({ removed: id });
  }

  /** Removes everything of this origin in the private file system, models too. */
  async clear() {
    const ids = [...this.#all.keys()];
    this.#all.clear();
    if (this.memoryOnly !== null) return;
    await this.#ask("clear", {});
    for (const removed of ids) this.#tabs.postMessage({ removed });
  }

  /** All conversations, or one, as the text of a file. @param {string} [id] */
  exported(id) {
    const conversations = this.list().filter((c) => c.messages.length > 0 && (id === undefined || c.id === id));
    return JSON.stringify({ format: FORMAT, version: VERSION, conversations }, null, 1) + "\n";
  }

  /** Adds what such a file holds; one with an id that exists replaces it only when it is newer. @param {string} text */
  async imported(text) {
    const file = parse(text);
    if (file?.format !== FORMAT || !Array.isArray(file.conversations))
      throw new Error("this is no file of slm2 conversations");
    if (file.version !== VERSION) throw new Error(`it has version ${file.version}; this page reads ${VERSION}`);
    const all = file.conversations.map(checked);
    const bad = all.findIndex((/** @type {Conversation | null} */ c) => c === null);
    if (bad >= 0) throw new Error(`conversation ${bad + 1} of ${all.length} is not whole; nothing was imported`);
    let taken = 0;
    for (const c of /** @type {Conversation[]} */ (all)) {
      const old = this.#all.get(c.id);
      if (old !== undefined && old.updated >= c.updated) continue;
      this.#all.set(c.id, c);
      taken++;
      if (this.memoryOnly === null) await this.#keep(c);
    }
    return { taken, total: all.length };
  }
}

/** @param {string} text @returns {any} */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {any} s */
const isStats = (s) => typeof s === "object" && s !== null &&
  ["promptTokens", "reusedTokens", "completionTokens", "prefillMs", "decodeMs"].every((name) => Number.isFinite(s[name])) &&
  ["finish", "model", "digest", "seed"].every((name) => typeof s[name] === "string") &&
  /^[0-9]{1,20}$/.test(s.seed) && BigInt(s.seed) < 1n << 64n;

/** A conversation with nothing else in it, or null. @param {any} c @returns {Conversation | null} */
function checked(c) {
  const text = (/** @type {any} */ v) => typeof v === "string";
  if (typeof c !== "object" || c === null || !text(c.id) || !/^[0-9a-f-]{36}$/.test(c.id) || !text(c.title)) return null;
  if (!text(c.created) || !text(c.updated) || !text(c.system) || !Array.isArray(c.messages)) return null;
  const messages = [];
  for (const m of c.messages) {
    if (typeof m !== "object" || m === null || !text(m.content) || !["user", "assistant"].includes(m.role)) return null;
    if (m.role === "user") messages.push({ role: m.role, content: m.content });
    else messages.push({ role: m.role, content: m.content, ...(text(m.reasoning) ? { reasoning: m.reasoning } : {}),
      ...(text(m.error) ? { error: m.error } : {}), ...(isStats(m.stats) ? { stats: m.stats } : {}) });
  }
  return { id: c.id, title: c.title, created: c.created, updated: c.updated, system: c.system, messages };
}
