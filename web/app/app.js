/**
 * app.js: the page: one engine, one conversation at a time, and the views around them. The engine computes in workers
 * (engine/); this file decides when.
 */
import { createEngine, Slm2Error } from "./engine/index.js";
import { ChatView } from "./chat.js";
import { $, ask, askLine, bytes, dismiss, download, grouped, h, notice, pick } from "./dom.js";
import { History } from "./history.js";
import { ModelsView } from "./models.js";
import { PrivacyView } from "./privacy.js";
import { ProveView } from "./prove.js";
import { Settings } from "./settings.js";
import { duringAnswer, isolate, keepUpdated } from "./update.js";

const DEMO = "models/demo.slm2";
const MODEL_KEY = "slm2.model"; /* what was loaded last: {model: id or "demo", context, kv} */
const VIEWS = ["chat", "models", "prove", "privacy"];
const TITLE = 60; /* characters of the first question */

/** Text as Unicode: half a character, as a paste may leave it, becomes U+FFFD. @param {string} text */
const whole = (text) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));

/** @typedef {import("./history.js").Conversation} Conversation
 *  @typedef {import("./history.js").AssistantMessage} AssistantMessage
 *  @typedef {import("./engine/client.js").Engine} Engine
 *  @typedef {{context?: number, kv?: "f16" | "f32", takeOver?: boolean}} LoadOptions */

/** What the views share. */
export class App {
  /** @type {Engine} */ engine = /** @type {any} */ (null);
  history = new History();
  settings = new Settings();
  /** Identity of the demo model, once it was asked for. */ demoId = "";
  /** @type {Conversation} */ conversation = /** @type {any} */ (null);
  /** @type {AbortController | null} */ #answering = null;
  #chat = new ChatView({
    again: (index, same) => void this.#again(index, same),
    edit: (index, text) => void this.#edit(index, text),
    busy: () => this.busy,
  });
  /** @type {{show: () => void}[]} */ #views = [];
  /** @type {ModelsView | null} */ #models = null;

  get busy() { return this.#answering !== null; }

  /** @param {string} text @param {"" | "busy" | "error"} [kind] */
  status(text, kind = "") {
    $("status-text").textContent = text;
    $("status").dataset.kind = kind;
  }

  /* --- start -------------------------------------------------------------------- */

  async start() {
    if (await isolate(() => this.status("Preparing this page for its first use", "busy"))) return;
    await this.history.open();
    if (this.history.memoryOnly !== null)
      $("history-note").textContent = `Conversations last as long as this tab: ${this.history.memoryOnly}.`;
    this.conversation = this.history.list()[0] ?? this.history.create();
    this.#bind();
    this.#showConversation();
    try {
      await this.#startEngine();
      this.#models = new ModelsView(this);
      this.#views = [this.#models, new ProveView(this), new PrivacyView(this)];
      this.#route();
    } catch (e) {
      return this.#refused(/** @type {Slm2Error} */ (e));
    } finally {
      void keepUpdated(); /* while the first model is fetched: who then leaves the network has both */
    }
    await this.#firstLoad();
  }

  async #startEngine() {
    this.engine = await createEngine({ base: new URL("./", import.meta.url).href, threads: this.settings.threads });
    this.engine.addEventListener("poisoned", (e) => this.#poisoned(/** @type {any} */ (e).detail.error));
    this.engine.addEventListener("taken", (e) => this.#taken(/** @type {any} */ (e).detail.error));
    this.engine.addEventListener("state", () => this.#showState());
    this.settings.onThreads = () => void this.#threadsChanged();
  }

  /** The number of threads is the engine's for life: another number is another engine. */
  async #threadsChanged() {
    this.stop();
    this.status("Loading", "busy");
    await this.engine.close();
    await this.#startEngine();
    const { model, ...options } = readLast();
    await this.load(model, options);
  }

  /** The page cannot compute here: say what is missing. @param {Slm2Error} e */
  #refused(e) {
    this.status("Cannot run here", "error");
    const lacks = /** @type {any[]} */ (e.details?.missing ?? []);
    notice(e.message, { kind: "error", key: "refused" });
    for (const lack of lacks.filter((x) => x.fatal).slice(1)) notice(`${lack.why} ${lack.todo}`, { kind: "error" });
    for (const id of ["prompt", "send"]) $(id).setAttribute("disabled", "");
    for (const link of document.querySelectorAll("nav a:not([href='#chat'])")) link.remove();
  }

  async #firstLoad() {
    const failed = this.engine.lastLoadFailed, last = readLast();
    if (failed === null) return void await this.load(last.model, last);
    this.status("No model loaded", "error");
    notice(`Loading ${failed.name} with ${grouped(failed.context)} positions did not end last time; it may have been too much ` +
      "for this device. Nothing was loaded by itself.", { kind: "error", key: "load",
      actions: [{ label: "Choose a smaller context", run: () => { location.hash = "#models"; } },
        { label: "Load the demo", run: () => void this.load("demo") }] });
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
   * @param {LoadOptions} [options] @returns {Promise<boolean>} */
  async load(model, { context, kv, takeOver = false } = {}) {
    this.stop();
    try {
      this.status("Loading", "busy");
      const verb = /** @type {Record<string, string>} */ ({ read: "Loading", verify: "Verifying" });
      await this.engine.load(model === "demo" ? await this.demo() : model, { context, kv, takeOver,
        onProgress: ({ phase, loaded, total }) =>
          this.status(phase in verb ? `${verb[phase]} ${bytes(loaded)} of ${bytes(total)}` : "Loading", "busy") });
      localStorage.setItem(MODEL_KEY, JSON.stringify({ model, context, kv }));
      this.loaded();
      return true;
    } catch (e) {
      this.#loadFailed(/** @type {Slm2Error} */ (e), model, { context, kv });
      return false;
    }
  }

  /** A model is there: the views say which. */
  loaded() {
    const model = /** @type {import("./engine/client.js").LoadedModel} */ (this.engine.model);
    for (const key of ["load", "taken", "poisoned"]) dismiss(key);
    this.settings.show(model.defaults, model.context);
    $("welcome-model")?.replaceChildren(this.modelLine());
    this.#showState();
  }

  /** What is loaded, in a line. */
  modelLine() {
    const model = this.engine?.model;
    return model == null ? "" : `${model.name}: ${bytes(model.bytes)}, ${model.sealed ? "sealed" : "verified"}.`;
  }

  /** @param {Slm2Error} e @param {string} model @param {LoadOptions} options */
  #loadFailed(e, model, options) {
    this.status("No model loaded", "error");
    if (e.code === "ABORTED") return this.#showState();
    const actions = [];
    if (e.code === "IN_USE")
      actions.push({ label: "Use it here", run: () => void this.load(model, { ...options, takeOver: true }) });
    if (e.code === "MEMORY") actions.push({ label: "Choose a context", run: () => { location.hash = "#models"; } });
    if (model !== "demo") actions.push({ label: "Load the demo", run: () => void this.load("demo") });
    else if (actions.length === 0) actions.push({ label: "Try again", run: () => void this.load("demo") });
    notice(e.message, { kind: "error", key: "load", actions });
    if (this.engine.model !== null) this.#showState(); /* what was loaded before still is */
  }

  /** @param {Slm2Error} e */
  #poisoned(e) {
    this.status("The engine stopped", "error");
    notice(`The engine stopped: ${e.message}. Your conversation is kept.`, { kind: "error", key: "poisoned",
      actions: [{ label: "Start it again", run: () => void this.#restart() }] });
  }
  async #restart() {
    try {
      this.status("Loading", "busy");
      await this.engine.restart();
      this.loaded();
    } catch (e) {
      this.#poisoned(/** @type {Slm2Error} */ (e));
    }
  }
  /** @param {Slm2Error} e */
  #taken(e) {
    this.status("In use in another tab", "error");
    const { model, ...options } = readLast();
    notice(`${e.message[0].toUpperCase()}${e.message.slice(1)}.`, { kind: "info", key: "taken",
      actions: [{ label: "Use it here", run: () => void this.load(model, { ...options, takeOver: true }) }] });
  }

  #showState() {
    const { state, model } = this.engine;
    if ((state === "ready" || state === "busy") && model !== null)
      this.status(`${model.name.replace(/\.slm2$/, "")} · ${grouped(model.context)} positions`, state === "busy" ? "busy" : "");
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
    addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || document.querySelector("dialog[open]") !== null) return;
      if (this.busy) this.stop();
      else if ($("menu").getAttribute("aria-expanded") === "true") this.#menu(false);
    });
    document.querySelector(".skip")?.addEventListener("click", (e) => {
      e.preventDefault(); /* its address is a place, and no view */
      $(document.body.dataset.view === "chat" ? "prompt" : "views").focus();
    });
    $("new-chat").addEventListener("click", () => this.#open(this.history.create()));
    $("export-conversations").addEventListener("click", () =>
      download("slm2-conversations.json", this.history.exported(), "application/json"));
    $("import-conversations").addEventListener("click", async () => this.#importConversations(await pick(".json,application/json")));
    $("menu").addEventListener("click", () => this.#menu());
    this.settings.onSystem = (text) => {
      this.conversation.system = whole(text);
      void this.#save(this.conversation);
    };
    this.history.onOthers = () => this.#changedElsewhere();
    addEventListener("hashchange", () => this.#route());
    for (const type of /** @type {const} */ (["dragover", "drop"])) addEventListener(type, (e) => this.#dropped(e));
  }

  /** A file that is dropped beside its place: without this the browser would leave the page and open it. @param {DragEvent} e */
  #dropped(e) {
    if (e.defaultPrevented || !e.dataTransfer?.types.includes("Files")) return;
    e.preventDefault();
    if (e.type !== "drop") return;
    const files = [...e.dataTransfer.files];
    if (files[0]?.name.endsWith(".json")) return void this.#importConversations(files);
    if (this.#models === null) return;
    location.hash = "#models";
    void this.#models.take(files);
  }

  /** Another tab kept or deleted conversations. */
  #changedElsewhere() {
    const now = this.history.get(this.conversation.id);
    if (this.busy || now === this.conversation) return this.#showList();
    this.conversation = now ?? this.history.list()[0] ?? this.history.create();
    this.#showConversation();
  }

  /** @param {boolean} [open] */
  #menu(open = $("menu").getAttribute("aria-expanded") !== "true") {
    $("menu").setAttribute("aria-expanded", String(open));
    $("side").classList.toggle("open", open);
    if (open) $("new-chat").focus();
    else if ($("menu").checkVisibility()) $("menu").focus();
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
    $("welcome-model")?.replaceChildren(this.modelLine());
    this.#showList();
  }

  #showList() {
    const at = document.activeElement?.id ?? "";
    $("conversations").replaceChildren(...this.history.list().map((c) => h("li", {},
      h("button.conversation", { id: `open-${c.id}`, type: "button", ariaCurrent: c === this.conversation ? "true" : null,
        title: c.title, onclick: () => this.#open(c) }, c.title),
      c.messages.length > 0 && h("button.icon.quiet", { id: `name-${c.id}`, type: "button", ariaLabel: `Rename "${c.title}"`,
        onclick: () => void this.#rename(c) }, "✎"),
      c.messages.length > 0 && h("button.icon.quiet", { id: `delete-${c.id}`, type: "button", ariaLabel: `Delete "${c.title}"`,
        onclick: () => void this.#remove(c) }, "×"))));
    if (at !== "" && document.activeElement === document.body) document.getElementById(at)?.focus();
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
    if (c === this.conversation) return this.#open(this.history.list()[0] ?? this.history.create());
    this.#showList();
    $("new-chat").focus();
  }

  /** @param {Conversation} c */
  async #rename(c) {
    const title = (await askLine("Title", c.title))?.trim();
    if (!title) return;
    c.title = title;
    await this.#save(c);
  }

  /** @param {File[]} files the first of them */
  async #importConversations([file]) {
    if (file === undefined) return;
    try {
      const { taken, total } = await this.history.imported(await file.text());
      notice(`${taken} of ${total} conversations imported${taken < total ? "; the others were here already" : ""}.`);
      const now = this.history.get(this.conversation.id);
      if (now === null || now === this.conversation || this.busy) this.#showList();
      else this.#open(now); /* the one that is shown was replaced by a newer */
    } catch (e) {
      notice(`${file.name}: ${/** @type {Error} */ (e).message}`, { kind: "error" });
    }
  }

  /** @param {Conversation} c */
  async #save(c) {
    await this.history.save(c).catch((e) =>
      notice(`This conversation could not be kept: ${e.message}`, { kind: "error", key: "save" }));
    this.#showList();
  }

  /* --- answers ---------------------------------------------------------------------- */

  stop() { this.#answering?.abort(); }

  /** @param {string} text */
  async #send(text) {
    const prompt = /** @type {HTMLTextAreaElement} */ ($("prompt"));
    if (text.trim() === "" || this.busy) return;
    if (this.engine?.model == null) return void notice("No model is loaded yet.", { key: "no-model" });
    const c = this.conversation;
    prompt.value = "";
    fit(prompt);
    const content = whole(text);
    c.messages.push({ role: "user", content });
    if (c.messages.length === 1) c.title = [...content.trim().replace(/\s+/g, " ")].slice(0, TITLE).join("");
    this.#chat.asked(content, c.messages.length - 1);
    this.#showList();
    await this.#answer(c, this.settings.params);
  }

  /** @param {number} index of a user's message @param {string} text */
  async #edit(index, text) {
    if (text.trim() === "" || this.busy) return;
    const c = this.conversation;
    c.messages.length = index;
    c.messages.push({ role: "user", content: whole(text) });
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
    /* Of an answer that failed or was stopped at once there is nothing to tell; what failed is not asked again either. */
    const said = c.messages.filter((m, i) => m.content !== "" && !(m.role === "user" && isFailure(c.messages[i + 1])));
    const messages = [...(c.system === "" ? [] : [{ role: "system", content: c.system }]),
      ...said.map(({ role, content }) => ({ role, content }))];
    /** @type {AssistantMessage} */ const m = { role: "assistant", content: "" };
    this.#composing(false);
    try {
      await duringAnswer(() => this.#generate({ messages, ...params }, m, view, abort.signal));
    } catch (e) {
      if (!abort.signal.aborted) m.error = sayFailure(/** @type {Slm2Error} */ (e));
    }
    c.messages.push(m);
    if (this.history.get(c.id) !== null) await this.#save(c); /* what is shown as finished is kept, unless it was deleted */
    view.end(m);
    this.#answering = null;
    this.#composing(true);
  }

  /** Makes one answer. @param {any} params @param {AssistantMessage} m grows @param {ReturnType<ChatView["begin"]>} view
   * @param {AbortSignal} signal */
  async #generate(params, m, view, signal) {
    const model = /** @type {import("./engine/client.js").LoadedModel} */ (this.engine.model);
    signal.throwIfAborted();
    signal.addEventListener("abort", () => void this.engine.stop());
    view.wait("Reading the conversation");
    for await (const event of this.engine.generate(params)) {
      if (event.type === "progress")
        view.wait(`Reading the conversation: ${grouped(event.done)} of ${grouped(event.total)} tokens`);
      if (event.type === "token") {
        view.wait("");
        if (event.channel === "reasoning") m.reasoning = (m.reasoning ?? "") + event.text;
        else m.content += event.text;
        view.grow(m.content, m.reasoning ?? "");
      }
      if (event.type === "done") {
        const { finish, promptTokens, reusedTokens, completionTokens, prefillMs, decodeMs, seed, digest } = event;
        m.stats = { finish, promptTokens, reusedTokens, completionTokens, prefillMs, decodeMs, seed: String(seed),
          model: model.identity, digest };
      }
    }
  }

  /** One may send, or stop. What had the focus and goes away hands it on; elsewhere it stays. @param {boolean} send */
  #composing(send) {
    const [from, to] = send ? [$("stop"), $("send")] : [$("send"), $("stop")];
    const lost = document.activeElement === from || document.activeElement === document.body;
    from.hidden = true;
    to.hidden = false;
    if (lost) (send && matchMedia("(pointer: fine)").matches ? $("prompt") : to).focus();
  }
}

/** @param {import("./history.js").Message | undefined} m */
const isFailure = (m) => m?.role === "assistant" && m.error !== undefined && m.content === "";

/** @param {Slm2Error} e */
const sayFailure = (e) => (e.code === "CONTEXT_OVERFLOW" ? `${e.message}. Shorten it with Edit, begin a new conversation, or load the ` +
  "model with a larger context in Models." : e.message);

/** As high as its text, within the style's limit. @param {HTMLTextAreaElement} field */
function fit(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** @returns {{model: string, context?: number, kv?: "f16" | "f32"}} */
function readLast() {
  try {
    const { model, context, kv } = JSON.parse(localStorage.getItem(MODEL_KEY) ?? "{}");
    const good = [undefined, "f16", "f32"].includes(kv) && (context === undefined || Number.isSafeInteger(context));
    if (good && (model === "demo" || (typeof model === "string" && /^[0-9a-f]{64}$/.test(model)))) return { model, context, kv };
  } catch {
    /* what is there is not ours */
  }
  return { model: "demo" };
}

void new App().start();
