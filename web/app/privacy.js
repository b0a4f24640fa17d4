/**
 * privacy.js: what is stored and where, that nothing leaves, how to check that, and how to remove all of it; the licences.
 */
import { $, ask, bytes, h, notice } from "./dom.js";

export class PrivacyView {
  #stored = h("div.scroll");
  #lacks = h("ul");

  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
    $("view-privacy").append(
      h("h1", { id: "privacy-title" }, "Privacy"),
      h("p", {}, "The model computes in this tab. Your messages, its answers, your settings and your models stay in this " +
        "browser. There is no account, no cookie, no statistics and no server that could receive them."),
      h("h2", {}, "What is kept, and where"), this.#stored,
      h("div.row", {}, h("button.primary.danger", { type: "button", onclick: () => void this.#clear() }, "Delete everything")),
      h("h2", {}, "How to check"),
      h("ol", {},
        h("li", {}, "Open the browser's developer tools, the network panel, and write a message: while an answer is made, no " +
          "request appears. Only the page's own files come from its server, and after the first visit not even those."),
        h("li", {}, "Disconnect from the network, or stop the server, and go on: everything works, a reload too."),
        h("li", {}, "Look at the Content-Security-Policy header of the page: default-src 'none', and connect-src 'self'. The " +
          "browser itself refuses any other request that a script would make."),
        h("li", {}, "The tests of the project run the page in a network that counts packets: none leaves.")),
      h("h2", {}, "What this browser does"), this.#lacks,
      h("h2", {}, "Licences"),
      h("p", {}, "slm2 is free software under the ", h("a", { href: "LICENSE.txt" }, "Apache License 2.0"), ". The demo model ",
        "is part of it. Markdown is read by ", h("a", { href: "vendor/marked.LICENSE.txt" }, "marked (MIT)"), ". A model that ",
        "you bring keeps its own licence, which its card shows."));
  }

  show() { void this.#refresh(); }

  async #refresh() {
    const { history, engine } = this.app, rows = /** @type {[string, string, string][]} */ ([]);
    const conversations = history.list().filter((c) => c.messages.length > 0).length;
    rows.push(["Conversations", history.memoryOnly === null ? "private file system of this origin" : "memory of this tab",
      `${conversations}`]);
    try {
      const models = await engine.store.list();
      const all = models.reduce((n, m) => n + m.have, 0);
      rows.push(["Models", "private file system of this origin", `${models.length}, ${bytes(all)}`]);
    } catch {
      rows.push(["Models", "memory of this tab", "none stored"]);
    }
    rows.push(["Settings, the last model's name", "local storage",
      localStorage.length === 1 ? "1 entry" : `${localStorage.length} entries`]);
    const worker = navigator.serviceWorker;
    rows.push(["The page's own files", "cache of the service worker",
      worker === undefined ? "not in this browser" : worker.controller ? "yes" : "from the next visit on"]);
    const persisted = await navigator.storage?.persisted?.().catch(() => false);
    rows.push(["Promised to be kept when the disk is full", "the browser's decision", persisted ? "yes" : "no"]);
    this.#stored.replaceChildren(h("table", {},
      h("thead", {}, h("tr", {}, ["What", "Where", "How much"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
    const { chosen, why } = engine.capabilities;
    const lines = why().map(({ why: reason, todo }) => `${reason} ${todo}`);
    if (chosen !== null)
      lines.unshift(`It computes with the module "${chosen.kind}" and ${chosen.threads} of ` +
        `${engine.capabilities.cores} threads.`);
    this.#lacks.replaceChildren(...lines.map((line) => h("li", {}, line)));
  }

  async #clear() {
    const question = "Delete all conversations, models, settings and cached files of this page from this browser?";
    if (!await ask(question, "Delete everything")) return;
    try {
      this.app.stop();
      await this.app.engine.unload();
      for (const m of await this.app.engine.store.list().catch(() => [])) await this.app.engine.store.remove(m.id);
      await this.app.engine.close();
      await this.app.history.clear();
      for (const registration of await navigator.serviceWorker?.getRegistrations() ?? []) await registration.unregister();
      for (const name of await caches.keys()) await caches.delete(name);
      localStorage.clear();
      sessionStorage.clear();
    } catch (e) {
      notice(`Not everything could be deleted: ${/** @type {Error} */ (e).message}. Close other tabs of this page, reload it, ` +
        "and try again.", { kind: "error" });
      return;
    }
    /* A reload would store the demo and the page's files again; so nothing goes on by itself. */
    document.title = "slm2: everything deleted";
    document.body.dataset.view = "deleted";
    const again = h("button.primary", { type: "button", onclick: () => location.replace("./") }, "Start anew");
    document.body.replaceChildren(h("main.page", {}, h("h1", {}, "Everything was deleted"),
      h("p", { role: "status" }, "Nothing of this page is left in this browser. You can close the tab, or begin again."), again));
    again.focus();
  }
}
