/**
 * app.js: the page: one engine, one conversation at a time, and the views around them. The engine computes in workers
 * (engine/); this file decides when.
 */
import { createEngine, Slm2Error } from "./engine/index.js";
import { ChatView } from "./chat.js";
import { $, ask, bytes, download, h, notice, pick } from "./dom.js";
import { History } from "./history.js";
import { ModelsView } from "./models.js";
import { PrivacyView } from "./privacy.js";
import { ProveView } from "./prove.js";
import { Settings } from "./settings.js";
import { startUpdates } from "./update.js";

const DEMO = "models/demo.slm2";
const MODEL_KEY = "slm2.model"; /* what was loaded last: {model: id or "demo", context, kv} */
const VIEWS = ["chat", "models", "prove", "privacy"];

/** @typedef {import("./history.js").Conversation} Conversation
 *  @typedef {import("./history.js").AssistantMessage} AssistantMessage
 *  @typedef {import("./engine/client.js").Engine} Engine */

/** What the views share. */
export class App {
  /** @type {Engine} */ engine;
  history = new History();
  settings = new Settings();
  /** Identity of the demo model, once it was asked for. */ demoId = "";
  /** @type {Conversation} */ conversation;
  /** @type {AbortController | null} */ #answering = null;
  #chat = new ChatView({
    again: (index, same) => void this.#again(index, same),
    edit: (index, text) => void this.#edit(index, text),
    busy: () => this.#answering !== null,
  });
  /** @type {{show: () => void}[]} */ #views = [];

  get busy() { return this.#answering !== null; }

  /** @param {string} text @param {"" | "busy" | "error"} [kind] */
  status(text, kind = "") {
    $("status-text").textContent = text;
    $("status").dataset.kind = kind;
  }

  /* --- start -------------------------------------------------------------------- */

  async start() {
    await this.history.open();
    if (this.history.memoryOnly !== null)
      $("history-note").textContent = `Conversations last as long as this tab: ${this.history.memoryOnly}.`;
    this.conversation = this.history.list()[0] ?? this.history.create();
    this.#bind();
    this.#showConversation();
    try {
      this.engine = await createEngine({ base: new URL("./", import.meta.url).href });
    } catch (e) {
      return this.#refused(/** @type {Slm2Error} */ (e));
    }
    this.engine.addEventListener("poisoned", (e) => this.#poisoned(/** @type {any} */ (e).detail.error));
    this.engine.addEventListener("taken", (e) => this.#taken(/** @type {any} */ (e).detail.error));
    this.engine.addEventListener("state", () => this.#showState());
    this.#views = [new ModelsView(this), new ProveView(this), new PrivacyView(this)];
    this.#route();
    await this.#firstLoad();
  }

  /** The page cannot compute here: say what is missing. @param {Slm2Error} e */
  #refused(e) {
    this.status("Cannot run here", "error");
    const lacks = /** @type {any[]} */ (e.details?.missing ?? []);
    notice(e.message, { kind: "error", key: "refused" });
    for (const lack of lacks.slice(1)) notice(`${lack.why} ${lack.todo}`, { kind: "error" });
    $("prompt").setAttribute("disabled", "");
  }

  async #firstLoad() {
    const failed = this.engine.lastLoadFailed;
    if (failed !== null) {
      this.status("No model loaded", "error");
      return notice(`Loading ${failed.name} with ${failed.context} positions did not end last time; it may have been too much ` +
        "for this device. Nothing was loaded by itself.", { kind: "error", key: "failed-load",
        actions: [{ label: "Choose a smaller context", run: () => { location.hash = "#models"; } },
          { label: "Load the demo", run: () => void this.load("demo") }] });
    }
    const last = readLast();
    await this.load(last.model, { context: last.context, kv: last.kv });
  }

  /** The demo is kept like any model, so that it is there without a network; without storage it is read each time.
   * @returns {Promise<string | {url: string}>} */
  async demo() {
    const { demo } = await (await fetch("build.json")).json();
    this.demoId = demo.identity;
    try {
      const kept = (await this.engine.store.list()).find((m) => m.sealed && m.id === demo.identity);
      return kept?.id ?? (await this.engine.store.import({ url: DEMO }, { name: "demo.slm2", persist: false })).id;
    } catch (e) {
      if (/** @type {Slm2Error} */ (e).code !== "NO_STORAGE") throw e;
      return { url: DEMO };
    }
  }

  /** Loads a model and says how it goes. @param {string} model "demo" or a stored one's id
   * @param {{context?: number, kv?: "f16" | "f32", takeOver?: boolean}} [options] @returns {Promise<boolean>} */
  async load(model, options = {}) {
    this.stop();
    try {
      this.status("Loading", "busy");
      const loaded = await this.engine.load(model === "demo" ? await this.demo() : model, { ...options,
        onProgress: ({ phase, loaded: n, total }) => this.status(phase === "read" || phase === "verify"
          ? `${phase === "read" ? "Loading" : "Verifying"} ${bytes(n)} of ${bytes(total)}` : "Loading", "busy") });
      localStorage.setItem(MODEL_KEY, JSON.stringify({ model, context: options.context, kv: options.kv }));
      this.settings.show(loaded.defaults, loaded.context);
      $("welcome-model")?.replaceChildren(`${loaded.name}: ${bytes(loaded.bytes)}, ${loaded.sealed ? "sealed" : "verified"}.`);
      this.#showState();
      return true;
    } catch (e) {
      await this.#loadFailed(/** @type {Slm2Error} */ (e), model, options);
      return false;
    }
  }

  /** @param {Slm2Error} e @param {string} model @param {object} options */
  async #loadFailed(e, model, options) {
    this.status("No model loaded", "error");
    if (e.code === "ABORTED") return;
    const actions = [];
    if (e.code === "IN_USE")
      actions.push({ label: "Use it here", run: () => void this.load(model, { ...options, takeOver: true }) });
    if (e.code === "MEMORY") actions.push({ label: "Choose a context", run: () => { location.hash = "#models"; } });
    if (model !== "demo") actions.push({ label: "Load the demo", run: () => void this.load("demo") });
    notice(e.message, { kind: "error", key: "load", actions });
  }

  /** @param {Slm2Error} e */
  #poisoned(e) {
    this.status("The engine stopped", "error");
    notice(`The engine stopped: ${e.message}. Your conversation is kept.`, { kind: "error", key: "poisoned",
      actions: [{ label: "Start it again", run: () => void this.#restart() }] });
  }
  async #restart() {
    try {
      await this.engine.restart();
      this.#showState();
    } catch (e) {
      notice(/** @type {Error} */ (e).message, { kind: "error", key: "poisoned" });
    }
  }
  /** @param {Slm2Error} e */
  #taken(e) {
    this.status("In use in another tab", "error");
    const { model } = readLast();
    notice(e.message, { kind: "info", key: "taken",
      actions: [{ label: "Use it here", run: () => void this.load(model, { takeOver: true }) }] });
  }

  #showState() {
    const { state, model } = this.engine;
    if (state === "ready" || state === "busy")
      this.status(`${model?.name.replace(/\.slm2$/, "")} · ${model?.context.toLocaleString("en-US")} positions`, state === "busy" ? "busy" : "");
    else if (state === "empty") this.status("No model loaded");
  }

  /* --- views ---------------------------------------------------------------------- */

  #bind() {
    const prompt = /** @type {HTMLTextAreaElement} */ ($("prompt")), composer = /** @type {HTMLFormElement} */ ($("composer"));
    composer.addEventListener("submit", (e) => {
      e.preventDefault();
      void this.#send(prompt.value);
    });
    prompt.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
      e.preventDefault();
      composer.requestSubmit();
    });
    prompt.addEventListener("input", () => fit(prompt));
    $("stop").addEventListener("click", () => this.stop());
    addEventListener("keydown", (e) => { if (e.key === "Escape" && this.busy) this.stop(); });
    $("new-chat").addEventListener("click", () => this.#open(this.history.create()));
    $("export-conversations").addEventListener("click", () =>
      download("slm2-conversations.json", this.history.exported(), "application/json"));
    $("import-conversations").addEventListener("click", () => void this.#importConversations());
    $("menu").addEventListener("click", () => this.#menu());
    this.settings.onSystem = (text) => {
      this.conversation.system = text;
      void this.#save(this.conversation);
    };
    addEventListener("hashchange", () => this.#route());
  }

  /** @param {boolean} [open] */
  #menu(open = $("menu").getAttribute("aria-expanded") !== "true") {
    $("menu").setAttribute("aria-expanded", String(open));
    $("side").classList.toggle("open", open);
  }

  #route() {
    const wanted = location.hash.slice(1), view = VIEWS.includes(wanted) ? wanted : "chat";
    for (const name of VIEWS) $(`view-${name}`).hidden = name !== view;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.getAttribute("href") === `#${view}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.body.dataset.view = view;
    if (view !== "chat") this.#views[VIEWS.indexOf(view) - 1]?.show();
    else this.#chat.toEnd();
  }

  #showConversation() {
    this.settings.system = this.conversation.system;
    this.#chat.show(this.conversation);
    this.#showList();
  }

  #showList() {
    $("conversations").replaceChildren(...this.history.list().map((c) => h("li", {},
      h("button.conversation", { type: "button", ariaCurrent: c.id === this.conversation.id ? "true" : null,
        onclick: () => this.#open(c) }, c.title),
      h("button.icon.remove", { type: "button", ariaLabel: `Delete "${c.title}"`, onclick: () => void this.#remove(c) }, "×"))));
  }

  /** @param {Conversation} c */
  #open(c) {
    this.stop();
    if (this.conversation !== c && this.conversation.messages.length === 0) void this.history.remove(this.conversation.id);
    this.conversation = c;
    this.#menu(false);
    location.hash = "#chat";
    this.#showConversation();
    $("prompt").focus();
  }

  /** @param {Conversation} c */
  async #remove(c) {
    if (c.messages.length > 0 && !await ask(`Delete "${c.title}"?`, "Delete")) return;
    await this.history.remove(c.id).catch((e) => notice(`It could not be deleted: ${e.message}`, { kind: "error" }));
    if (c === this.conversation) this.#open(this.history.list()[0] ?? this.history.create());
    else this.#showList();
  }

  async #importConversations() {
    const [file] = await pick(".json,application/json");
    if (file === undefined) return;
    try {
      const { taken, total } = await this.history.imported(await file.text());
      notice(`${taken} of ${total} conversations imported; the others were here already.`);
      this.#showList();
    } catch (e) {
      notice(`${file.name}: ${/** @type {Error} */ (e).message}`, { kind: "error" });
    }
  }

  /** @param {Conversation} c */
  async #save(c) {
    await this.history.save(c).catch((e) => notice(`This conversation could not be kept: ${e.message}`, { kind: "error", key: "save" }));
    this.#showList();
  }

  /* --- answers ---------------------------------------------------------------------- */

  stop() { this.#answering?.abort(); }

  /** @param {string} text */
  async #send(text) {
    const prompt = /** @type {HTMLTextAreaElement} */ ($("prompt"));
    if (text.trim() === "" || this.busy) return;
    if (this.engine?.model == null) return notice("No model is loaded yet.", { key: "no-model" });
    const c = this.conversation;
    prompt.value = "";
    fit(prompt);
    c.messages.push({ role: "user", content: text });
    if (c.messages.length === 1) c.title = text.trim().replace(/\s+/g, " ").slice(0, 60);
    this.#chat.asked(text, c.messages.length - 1);
    await this.#answer(c, this.settings.params);
  }

  /** @param {number} index of a user's message @param {string} text */
  async #edit(index, text) {
    if (text.trim() === "" || this.busy) return;
    const c = this.conversation;
    c.messages.length = index;
    c.messages.push({ role: "user", content: text });
    this.#chat.show(c);
    await this.#answer(c, this.settings.params);
  }

  /** @param {number} index of an answer @param {boolean} sameSeed */
  async #again(index, sameSeed) {
    const c = this.conversation, old = /** @type {AssistantMessage} */ (c.messages[index]);
    const params = this.settings.params;
    if (sameSeed && old.stats !== undefined) params.seed = BigInt(old.stats.seed);
    c.messages.length = index;
    this.#chat.show(c);
    await this.#answer(c, params);
  }

  /** @param {Conversation} c @param {any} params */
  async #answer(c, params) {
    const abort = this.#answering = new AbortController(), view = this.#chat.begin(c.messages.length);
    $("send").hidden = true;
    $("stop").hidden = false;
    const messages = [...(c.system === "" ? [] : [{ role: "system", content: c.system }]),
      ...c.messages.map(({ role, content }) => ({ role, content }))];
    /** @type {AssistantMessage} */ const m = { role: "assistant", content: "" };
    abort.signal.addEventListener("abort", () => void this.engine.stop());
    let reasoning = "";
    try {
      view.wait("Reading the conversation");
      for await (const event of this.engine.generate({ messages, ...params })) {
        if (event.type === "progress") view.wait(`Reading the conversation: ${event.done} of ${event.total} tokens`);
        if (event.type === "token") {
          view.wait("");
          if (event.channel === "reasoning") reasoning += event.text;
          else m.content += event.text;
          view.grow(m.content, reasoning);
        }
        if (event.type === "done") m.stats = { finish: event.finish, promptTokens: event.promptTokens,
          reusedTokens: event.reusedTokens, completionTokens: event.completionTokens, prefillMs: event.prefillMs,
          decodeMs: event.decodeMs, seed: String(event.seed), model: /** @type {any} */ (this.engine.model).identity, digest: event.digest };
      }
    } catch (e) {
      m.error = abort.signal.aborted ? undefined : /** @type {Error} */ (e).message;
    }
    if (reasoning !== "") m.reasoning = reasoning;
    c.messages.push(m);
    view.end(m);
    this.#answering = null;
    $("send").hidden = false;
    $("stop").hidden = true;
    $("prompt").focus();
    await this.#save(c);
  }
}

/** As high as its text, within the style's limit. @param {HTMLTextAreaElement} field */
function fit(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** @returns {{model: string, context?: number, kv?: "f16" | "f32"}} */
function readLast() {
  try {
    const { model, context, kv } = JSON.parse(localStorage.getItem(MODEL_KEY) ?? "{}");
    if (typeof model === "string" && (model === "demo" || /^[0-9a-f]{64}$/.test(model))) return { model, context, kv };
  } catch {
    /* what is there is not ours */
  }
  return { model: "demo" };
}

startUpdates();
void new App().start();
