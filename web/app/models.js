/**
 * models.js: the models of this browser: what is stored, how to get one, and what one will take before it is loaded.
 */
import { $, ask, bytes, grouped, h, notice, pick } from "./dom.js";

/* The official file, as published by Qwen; the user opens the link, the page fetches nothing from it. */
const OFFICIAL = Object.freeze({
  name: "Qwen3-0.6B-Q8_0.gguf", bytes: 639446688, license: "Apache-2.0",
  page: "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF",
  sha256: "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
});
const TERMS = /** @type {const} */ ([
  ["file", "the model, once"], ["index", "its tokenizer's index"], ["kv", "keys and values of every position"],
  ["scratch", "activations of 128 tokens"], ["logits", "one row"], ["drafts", "rows computed ahead"], ["sampler", "candidates"],
  ["tokens", "ids of the conversation"], ["state", "the session"], ["work", "text on its way to tokens"],
  ["rings", "messages between page and engine"], ["stacks", "of compute threads"], ["low", "the program"],
]);

/** @typedef {import("./engine/store.js").StoredModel} StoredModel */

export class ModelsView {
  #list = h("div");
  #room = h("p.small");
  #importing = h("div");
  /** @type {AbortController | null} */ #abort = null;
  /** What the list was made of: a list that stays the same stays in its place, with what was opened in it. */ #shown = "";

  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
    const drop = h("div.drop", {},
      h("p", {}, "Drop a .gguf or .slm2 file here, or "),
      h("button.primary", { type: "button", onclick: async () => this.take(await pick(".gguf,.slm2")) }, "Pick a file"));
    for (const type of ["dragover", "dragenter"])
      drop.addEventListener(type, (/** @type {DragEvent} */ e) => {
        e.preventDefault();
        drop.classList.add("over");
      });
    for (const type of ["dragleave", "drop"]) drop.addEventListener(type, () => drop.classList.remove("over"));
    drop.addEventListener("drop", (/** @type {DragEvent} */ e) => {
      e.preventDefault();
      this.take([...(e.dataTransfer?.files ?? [])]);
    });
    $("view-models").append(
      h("h1", { id: "models-title" }, "Models"),
      h("p", {}, "The demo is part of this page: tiny, and honest about it. A real model is a file that you bring; it is " +
        "checked, converted and kept in this browser, and never fetched or sent by the page."),
      this.#list,
      h("h2", {}, "Get a model"),
      h("div.card", {},
        h("h3", {}, OFFICIAL.name),
        h("p", {}, `${grouped(OFFICIAL.bytes)} bytes · ${OFFICIAL.license} · `,
          h("a", { href: OFFICIAL.page, target: "_blank", rel: "noopener noreferrer" }, "its page on huggingface.co"),
          ", which this link opens and nothing else does."),
        h("p.mono", {}, `SHA-256 ${OFFICIAL.sha256}`),
        drop, this.#importing),
      this.#room);
  }

  show() { void this.#refresh(); }

  async #refresh() {
    const { engine } = this.app;
    let stored = /** @type {StoredModel[]} */ ([]), refused = "";
    try {
      stored = await engine.store.list();
      const { quota, usage } = await engine.store.estimate();
      this.#room.textContent = quota === undefined || usage === undefined ? "" :
        `The browser lets this page keep ${bytes(quota)}, of which ${bytes(usage)} are used; how much the disk has, it does ` +
        "not tell.";
    } catch (e) {
      refused = /** @type {Error} */ (e).message;
    }
    const made = JSON.stringify([stored, refused, this.app.demoId, engine.model?.identity]);
    if (made === this.#shown) return;
    this.#shown = made;
    this.#list.replaceChildren(h("h2", {}, "In this browser"), this.#demo(stored.find((m) => m.id === this.app.demoId)),
      ...stored.filter((m) => m.id !== this.app.demoId).map((m) => this.#card(m)),
      refused === "" ? "" : h("p.failed", {}, `${refused}. A picked .slm2 file is used from memory, while this tab is open.`));
  }

  /** @param {StoredModel} [stored] */
  #demo(stored) {
    const loaded = this.app.engine.model?.identity === this.app.demoId, plan = h("div");
    return h("article.card", {}, h("div.row", {}, h("h3", {}, "demo"), loaded && h("span.tag", {}, "loaded")),
      h("p.small", {}, "Comes with the page; trained by this project on text that it wrote itself."),
      h("div.row", {}, !loaded && h("button", { type: "button", onclick: () => void this.#load("demo", {}) }, "Load"),
        stored && h("button", { type: "button", onclick: () => void this.#plan(stored, plan) }, "Memory")), plan);
  }

  /** @param {StoredModel} m */
  #card(m) {
    const loaded = this.app.engine.model?.id === m.id, partial = !m.sealed;
    const plan = h("div");
    const actions = partial ? [h("span.small", {}, "Pick the same file again, and the import goes on where it stopped.")] : [
      h("button", { type: "button", onclick: () => void this.#plan(m, plan) }, loaded ? "Memory" : "Load…"),
      h("button", { type: "button", onclick: (/** @type {any} */ e) => void this.#verify(m, e.target) }, "Verify"),
    ];
    return h("article.card", {},
      h("div.row", {}, h("h3", {}, m.name), loaded && h("span.tag", {}, "loaded"),
        h(partial ? "span.tag.bad" : "span.tag", {}, partial ? `unfinished: ${bytes(m.have)} of ${bytes(m.bytes)}` : "sealed")),
      h("p.small", {}, [bytes(m.bytes), m.parameters && `${grouped(m.parameters)} parameters`, m.license, m.source,
        m.imported && `imported ${m.imported.slice(0, 10)}`].filter(Boolean).join(" · ")),
      m.sealed && h("p.mono.small", {}, `identity ${m.id}`),
      h("div.row", {}, actions,
        h("button.link", { type: "button", disabled: loaded, onclick: () => void this.#remove(m) }, "Delete")),
      plan);
  }

  /** @param {StoredModel} m @param {HTMLButtonElement} button */
  async #verify(m, button) {
    const text = button.textContent;
    button.disabled = true;
    try {
      await this.app.engine.store.verify(m.id, { onProgress: ({ loaded, total }) => {
        button.textContent = `Verifying ${Math.floor(loaded / total * 100)} %`;
      } });
      button.textContent = "Verified: every byte is right";
    } catch (e) {
      button.textContent = text;
      notice(/** @type {Error} */ (e).message, { kind: "error" });
      await this.#refresh();
    }
    button.disabled = false;
  }

  /** @param {StoredModel} m */
  async #remove(m) {
    if (!await ask(`Delete ${m.name} (${bytes(m.have)}) from this browser?`, "Delete")) return;
    await this.app.engine.store.remove(m.id).catch((e) => notice(e.message, { kind: "error" }));
    await this.#refresh();
  }

  /* --- the plan -------------------------------------------------------------------- */

  /** @param {StoredModel} m @param {HTMLElement} box */
  async #plan(m, box) {
    const { engine } = this.app;
    box.replaceChildren(h("p.small", { role: "status" }, "Computing what it takes"));
    try {
      const offers = await engine.offers(m.id);
      if (offers.length === 0) {
        const { why, total } = await engine.plan(m.id, { context: 1 });
        throw new Error(`${m.name} does not fit: ${why ?? `even one position takes ${grouped(total)} bytes`}`);
      }
      const best = (/** @type {string} */ kv) => offers.find((o) => o.kv === kv);
      const preset = Math.min(4096, m.maxPositions ?? 4096);
      const start = offers.find((o) => o.kv === "f16" && o.context <= preset) ?? offers[0];
      const option = (/** @type {typeof start} */ o) => h("option", { value: `${o.context} ${o.kv}`, selected: o === start },
        `${grouped(o.context)} positions, ${o.kv} cache: ${bytes(o.bytes)}`);
      const select = h("select", { id: `context-${m.id.slice(0, 8)}` }, offers.map(option));
      const terms = h("div.scroll", { tabIndex: 0, role: "region", ariaLabel: "Memory, term by term" });
      const chosen = () => {
        const [context, kv] = select.value.split(" ");
        return { context: Number(context), kv: /** @type {"f16" | "f32"} */ (kv) };
      };
      const draw = async () => {
        const named = await engine.plan(m.id, chosen());
        terms.replaceChildren(h("table", {},
          h("tbody", {}, TERMS.filter(([name]) => named[name] > 0).map(([name, what]) =>
            h("tr", {}, h("td", {}, name), h("td.number", {}, grouped(named[name])), h("td.small", {}, what)))),
          h("tfoot", {}, h("tr", {}, h("th", {}, "total"), h("th.number", {}, grouped(named.total)),
            h("td.small", {}, `bytes: ${grouped(named.pages)} pages of 65,536`)))));
      };
      select.addEventListener("change", () => void draw());
      await draw();
      box.replaceChildren(
        h("label", { htmlFor: select.id }, "Context and its memory"), select,
        h("p.small", {}, `The largest that fits: ${grouped(best("f16")?.context ?? 0)} positions with the f16 cache, ` +
          `${grouped(best("f32")?.context ?? 0)} with f32. The two are different computations, each with its own bits.`),
        h("div.row", {}, h("button.primary", { type: "button", onclick: () => void this.#load(m.id, chosen()) },
          "Load with this context")), terms);
      select.focus();
    } catch (e) {
      box.replaceChildren(h("p.failed", {}, /** @type {Error} */ (e).message));
    }
  }

  /** @param {string} id @param {{context?: number, kv?: "f16" | "f32"}} options */
  async #load(id, options) {
    if (await this.app.load(id, options)) location.hash = "#chat";
    else await this.#refresh();
  }

  /* --- import ------------------------------------------------------------------------ */

  /** @param {File[]} files */
  async take(files) {
    const [file] = files;
    if (file === undefined) return;
    if (this.#abort !== null) return notice("One import at a time: stop the one that runs first.");
    const abort = this.#abort = new AbortController();
    const bar = h("progress", { max: file.size, value: 0, ariaLabel: `Import of ${file.name}` });
    const line = h("p.small", { role: "status" });
    const stop = h("button", { type: "button", onclick: () => abort.abort() }, "Stop");
    this.#importing.replaceChildren(h("div.card", {}, h("h3", {}, file.name), bar, line, stop));
    const words = /** @type {Record<string, string>} */ ({ check: "Checking what an earlier import left", import: "Importing",
      again: "A damaged part is read again", convert: "Converting", compare: "Comparing", hash: "Hashing", verify: "Verifying" });
    try {
      const onProgress = (/** @type {import("./engine/store.js").Progress} */ { phase, loaded, total }) => {
        bar.max = total;
        bar.value = loaded;
        line.textContent = `${words[phase] ?? phase}: ${grouped(loaded)} of ${grouped(total)} bytes`;
      };
      const model = await this.app.engine.store.import({ file }, { signal: abort.signal, onProgress });
      this.#importing.replaceChildren(h("p", { role: "status" },
        model.already ? `${model.name} was here already.` : `${model.name} is ready.`));
    } catch (e) {
      const { code, message } = /** @type {any} */ (e);
      this.#importing.replaceChildren(abort.signal.aborted
        ? h("p", { role: "status" }, "Stopped. What was imported is kept.") : h("p.failed", { role: "alert" }, message));
      if (code === "NO_STORAGE") await this.#fromMemory(file);
    }
    this.#abort = null;
    await this.#refresh();
  }

  /** Without storage a .slm2 file can still be used. @param {File} file */
  async #fromMemory(file) {
    if (!file.name.endsWith(".slm2")) return;
    try {
      await this.app.engine.load({ file });
      this.app.loaded();
      this.#importing.replaceChildren(h("p", {}, `${file.name} is loaded from memory; it is gone when this tab closes.`));
    } catch (e) {
      this.#importing.replaceChildren(h("p.failed", { role: "alert" }, /** @type {Error} */ (e).message));
    }
  }
}
