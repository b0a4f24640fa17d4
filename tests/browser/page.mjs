/* What the tests of the page share: BUILD/web as `slm2 serve` and as a plain static host hand it out, and what a user does. */
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { spawn } from "node:child_process";
import { pause } from "./harness.mjs";

export const GOOD = ["chromium", "firefox"]; /* engines that keep files and install service workers */
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
  ".wasm": "application/wasm", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json" };
const ISOLATION = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin" };

/** The folder that `make web` serves. */
export const web = (t) => path.join(t.build, "web");

/** Starts `slm2 serve` on a free port. @returns {Promise<{origin: string, log: () => string, stop: () => Promise<number>}>} */
export async function command(t, ...words) {
  const server = spawn(path.join(t.build, "slm2"), ["serve", ...words, "--port", "0", "--root", web(t), "--verbose"]);
  let said = "";
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const stop = () => {
    server.kill("SIGINT");
    return ended;
  };
  t.opened.push(stop);
  for (const stream of [server.stdout, server.stderr]) stream.on("data", (bytes) => { said += bytes; });
  for (;;) {
    const origin = /serving (http:\/\/[^/]+)\//.exec(said)?.[1];
    if (origin) return { origin, log: () => said, stop };
    if (server.exitCode !== null) throw new Error(`slm2 serve: ${said}`);
    await pause(20);
  }
}

/** A static host: the files of a folder under a prefix. Headers of isolation only when they are asked for; edit: path to a
 * function of the file's bytes, what the host has there instead; hold: path to a function of how often it was asked for before,
 * whose promise the answer waits for.
 * @returns {Promise<{url: string, log: string[], root: string, edit: Record<string, (b: Buffer) => Buffer | string>,
 *   down: boolean}>} */
export async function host(t, { root = web(t), prefix = "/some/path/", isolated = false, edit = {}, hold = {} } = {}) {
  const self = { url: "", log: [], root, edit, down: false };
  const server = http.createServer(async (request, response) => {
    const target = decodeURIComponent(new URL(request.url, "http://x").pathname);
    self.log.push(target);
    if (self.down) return request.socket.destroy();
    const name = target.startsWith(prefix) ? target.slice(prefix.length) || "index.html" : "";
    const file = path.join(self.root, name);
    await hold[name]?.(self.log.filter((path) => path === target).length - 1);
    if (name === "" || !fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return response.writeHead(404).end("not found");
    const stored = fs.readFileSync(file), bytes = Buffer.from(self.edit[name]?.(stored) ?? stored);
    response.writeHead(200, { "Content-Type": TYPES[path.extname(file)] ?? "application/octet-stream",
      "Cache-Control": "no-cache", "Content-Length": bytes.length, ...(isolated ? ISOLATION : {}) });
    response.end(bytes);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.opened.push(() => {
    server.close();
    server.closeAllConnections();
  });
  self.url = `http://127.0.0.1:${server.address().port}${prefix}`;
  return self;
}

/** The page, as someone uses it who sees only what is shown. */
export class User {
  constructor(page) { this.page = page; }

  /** Waits until a model is loaded, over reloads of the page. */
  async ready() {
    for (;;) {
      try {
        return await this.page.waitFor(() => /positions$/.test(document.getElementById("status-text")?.textContent));
      } catch (error) {
        if (error.remote || !/context|navigat|realm|browsing/i.test(error.message)) throw error;
        await pause(50);
      }
    }
  }
  status() { return this.page.evaluate(() => document.getElementById("status-text").textContent); }
  notices() { return this.page.evaluate(() => [...document.querySelectorAll(".notice p")].map((p) => p.textContent)); }
  /** Waits for a notice that has this text, and gives it. */
  notice(text) {
    return this.page.waitFor((part) => [...document.querySelectorAll(".notice p")].map((p) => p.textContent)
      .find((said) => said.includes(part)) ?? null, text);
  }
  /** Presses the (first, visible) button or link of this name; waits until there is one. */
  press(name, within = "body") {
    return this.page.waitFor((label, where) => {
      const named = (e) => (e.getAttribute("aria-label") ?? e.textContent).trim() === label;
      const element = [...document.querySelectorAll(`${where} :is(button, a, summary)`)]
        .find((e) => named(e) && e.checkVisibility() && !e.disabled);
      element?.click();
      return Boolean(element);
    }, name, within);
  }
  view(name) { return this.press(name, "nav"); }
  /** Writes into a field as a user would, who then leaves it. */
  fill(id, value) {
    return this.page.evaluate((which, text) => {
      const field = document.getElementById(which);
      field.value = text;
      for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
    }, id, String(value));
  }
  async send(text) {
    await this.fill("prompt", text);
    await this.page.evaluate(() => document.getElementById("composer").requestSubmit());
  }
  /** The answers that are shown; one that is being written has no figures. */
  answers() {
    return this.page.evaluate(() => [...document.querySelectorAll(".answer")].map((a) => ({
      text: a.querySelector(".prose").textContent, figures: a.querySelector(".figures")?.textContent ?? null,
      failed: a.querySelector(".failed")?.textContent ?? null })));
  }
  /** Waits until no answer is being written, and gives what is shown. */
  async idle() {
    await this.page.waitFor(() => document.getElementById("stop").hidden);
    return this.answers();
  }
  async ask(text) {
    await this.send(text);
    return (await this.idle()).at(-1);
  }
  /** Waits until the answer that is being written has so many characters. */
  written(n) {
    return this.page.waitFor((least) => [...document.querySelectorAll(".answer .prose")].at(-1)?.textContent.length >= least, n);
  }
  /** The text of a file that pressing this offers. */
  async offered(name) {
    await this.page.evaluate(() => {
      globalThis.offered = null;
      const create = URL.createObjectURL;
      URL.createObjectURL = (blob) => {
        URL.createObjectURL = create;
        globalThis.offered = blob;
        return create.call(URL, blob);
      };
      HTMLAnchorElement.prototype.click = function click() {
        if (!this.download) return this.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
        delete HTMLAnchorElement.prototype.click;
      };
    });
    await this.press(name);
    return this.page.evaluate(() => globalThis.offered.text());
  }
  /** The conversations, as an export has them. */
  async exported() { return JSON.parse(await this.offered("Export all")).conversations; }
  /** Answers the picker that pressing this opens. @param {{name: string, text?: string, url?: string}} file */
  async picked(name, file) {
    await this.page.evaluate(async (given) => {
      const bytes = given.url ? await (await fetch(given.url)).blob() : given.text;
      HTMLInputElement.prototype.click = function click() {
        if (this.type !== "file") return this.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
        delete HTMLInputElement.prototype.click;
        const files = new DataTransfer();
        files.items.add(new File([bytes], given.name));
        this.files = files.files;
        this.dispatchEvent(new Event("change"));
      };
    }, file);
    await this.press(name);
  }
  /** All that this origin keeps: files of its private file system, caches, local storage, service workers. */
  kept() {
    return this.page.evaluate(async () => {
      const files = [], walk = async (folder, at) => {
        for await (const [name, handle] of folder.entries()) {
          if (handle.kind === "directory") await walk(handle, `${at}${name}/`);
          else files.push(at + name);
        }
      };
      await walk(await navigator.storage.getDirectory(), "");
      return { files: files.sort(), caches: await caches.keys(), local: Object.keys(localStorage).sort(),
        workers: (await navigator.serviceWorker.getRegistrations()).length };
    });
  }
}

/** Opens the page and waits until it can answer. @param {{browser?: object, expect?: RegExp, wait?: boolean}} [options] */
export async function open(t, url, { browser, expect, wait = true } = {}) {
  const page = await t.page(undefined, browser);
  if (expect) page.expect(expect);
  await page.goto(url);
  const user = new User(page);
  if (wait) await user.ready();
  return user;
}
