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
      h("p", {}, "The model computes in this tab. Your messages, its answers, your settings and your models stay in this browser. There is " +
        "no account, no cookie, no statistics and no server that could receive them."),
      h("h2", {}, "What is kept, and where"), this.#stored,
      h("div.row", {}, h("button.primary.danger", { type: "button", onclick: () => void this.#clear() }, "Delete everything")),
      h("h2", {}, "How to check"),
      h("ol", {},
        h("li", {}, "Open the browser's developer tools, the network panel, and write a message: while an answer is made, no request " +
          "appears. Only the page's own files come from its server, and after the first visit not even those."),
        h("li", {}, "Disconnect from the network, or stop the server, and go on: everything works, a reload too."),
        h("li", {}, "Look at the Content-Security-Policy header of the page: default-src 'none', and connect-src 'self'. The browser " +
          "itself refuses any other connection that a script would make."),
        h("li", {}, "The tests of the project run the page in a network that counts packets: none leaves.")),
      h("h2", {}, "What this browser does"), this.#lacks,
      h("h2", {}, "Licences"),
      h("p", {}, "slm2 is free software under the ", h("a", { href: "LICENSE.txt" }, "Apache License 2.0"), ". The demo model is part of it. ",
        "Markdown is read by ", h("a", { href: "vendor/marked.LICENSE.txt" }, "marked (MIT)"), ". A model that you bring keeps its own licence, ",
        "which its card shows."));
  }

  show() { void this.#refresh(); }

  async #refresh() {
    const { history, engine } = this.app, rows = /** @type {[string, string, string][]} */ ([]);
    const conversations = history.list().filter((c) => c.messages.length > 0).length;
    rows.push(["Conversations", history.memoryOnly === null ? "private file system of this origin" : "memory of this tab",
      `${conversations}`]);
    try {
      const models = await engine.store.list();
      rows.push(["Models", "private file system of this origin", `${models.length}, ${bytes(models.reduce((n, m) => n + m.have, 0))}`]);
    } catch {
      rows.push(["Models", "memory of this tab", "none stored"]);
    }
    rows.push(["Settings, the last model's name", "local storage", `${localStorage.length} entries`]);
    rows.push(["The page's own files", "cache of the service worker", navigator.serviceWorker?.controller ? "yes" : "not yet"]);
    const persisted = await navigator.storage?.persisted?.().catch(() => false);
    rows.push(["Promised to be kept when the disk is full", "the browser's decision", persisted ? "yes" : "no"]);
    this.#stored.replaceChildren(h("table", {}, h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
    const { chosen, why } = engine.capabilities;
    const lines = why().map(({ why: reason, todo }) => `${reason} ${todo}`);
    if (chosen !== null) lines.unshift(`It computes with the module "${chosen.kind}" and ${chosen.threads} of ${navigator.hardwareConcurrency} threads.`);
    this.#lacks.replaceChildren(...lines.map((line) => h("li", {}, line)));
  }

  async #clear() {
    if (!await ask("Delete all conversations, models, settings and cached files of this page from this browser?", "Delete everything")) return;
    try {
      this.app.stop();
      await this.app.engine.unload();
      for (const m of await this.app.engine.store.list().catch(() => [])) await this.app.engine.store.remove(m.id);
      this.app.engine.close();
      await this.app.history.clear();
      for (const name of await caches.keys()) await caches.delete(name);
      for (const registration of await navigator.serviceWorker?.getRegistrations() ?? []) await registration.unregister();
      localStorage.clear();
      sessionStorage.clear();
      location.hash = "";
      location.reload();
    } catch (e) {
      notice(`Not everything could be deleted: ${/** @type {Error} */ (e).message}`, { kind: "error" });
    }
  }
}
