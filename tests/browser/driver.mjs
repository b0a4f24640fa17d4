/* One interface over three engines: Debian's Chromium (playwright-core), Firefox (puppeteer-core, WebDriver BiDi) and
 * WebKitGTK (driver_webkit.mjs). Tests see Browser and Page below and nothing of the libraries.
 *
 * Browsers run headless, without a sandbox (tests run as root in containers) and with resolvers that know 127.0.0.1 only.
 * A browser that is not closed is killed, and its temporary profile removed, when this process ends.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import * as proc from "./proc.mjs";
import { launchWebkit } from "./driver_webkit.mjs";

const CHROMIUM = "/usr/bin/chromium";
const FIREFOX = "/usr/bin/firefox-esr";
export const ENGINES = ["chromium", "firefox", "webkit"];
const drivers = createRequire(path.resolve("build/node/package.json")); /* installed by tools/setup, from the root */

/** An address that exists nowhere (RFC 5737). Browsers may try it, so that tests can show that they would notice. */
export const OUTSIDE = "198.51.100.9";

const CHROMIUM_FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-domain-reliability",
  "--disable-features=MediaRouter,OptimizationHints,Translate,DialMediaRouteProvider",
  `--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE ${OUTSIDE}`,
];

/* The browser's own errands are switched off, so that what is seen on the wire is the page's. The server of settings is heeded
 * only with the variable below. */
const FIREFOX_PREFS = {
  "remote.active-protocols": 1,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "network.dns.disablePrefetch": true,
  "app.normandy.enabled": false,
  "browser.region.update.enabled": false,
  "extensions.getAddons.cache.enabled": false,
  "services.settings.server": "http://127.0.0.1:9/",
  "datareporting.policy.dataSubmissionEnabled": false,
};

/** @typedef {{type: string, text: string}} Message  type: "log", "warning", "error", ...
 *  @typedef {{method: string, url: string}} Request */

const alive = new Set();
process.on("exit", () => {
  for (const browser of alive) browser.kill();
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

/** The text of an expression that calls fn in the page; it gives JSON. Values in and out are those of JSON. */
export function expression(fn, args) {
  return `(async () => {
    try { return JSON.stringify({ value: await (${fn})(...${JSON.stringify(args)}) }); }
    catch (e) { return JSON.stringify({ error: { name: e?.name, message: e?.message ?? String(e), code: e?.code, stack: e?.stack } }); }
  })()`;
}

/** What such an expression gave, or the page's error, thrown here. */
export function unwrap(json) {
  const { value, error } = JSON.parse(json);
  if (error) throw Object.assign(new Error(error.message), error, { remote: true });
  return value;
}

/** A tab. console, errors and requests grow while it lives; WebKit reports no requests (requests is null). */
export class Page {
  constructor(browser, own) {
    this.browser = browser;
    this.own = own;
    /** @type {Message[]} */ this.console = [];
    /** @type {string[]} uncaught exceptions, and "crashed" */ this.errors = [];
    /** @type {Request[] | null} of the page and its workers */ this.requests = browser.seesRequests ? [] : null;
    /** @type {RegExp[]} */ this.expected = [];
  }
  goto(url) { return this.own.goto(url); }
  /** Calls fn(...args) in the page; fn's text is sent, so it sees nothing of the test. */
  async evaluate(fn, ...args) { return unwrap(await this.own.evaluate(expression(fn, args))); }
  /** Waits until fn(...args) is truthy and gives that. */
  async waitFor(fn, ...args) {
    for (;;) {
      const value = await this.evaluate(fn, ...args);
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
  reload() { return this.own.reload(); }
  front() { return this.own.front(); }
  /** False where the engine cannot. */
  async screenshot(file) { return this.own.screenshot ? (await this.own.screenshot(file), true) : false; }
  close() { this.browser.pages.delete(this); return this.own.close(); }
  /** From now on console errors and exceptions like this are no failure. */
  expect(pattern) { this.expected.push(pattern); return this; }
  /** Errors that nobody expected. */
  unexpected() {
    const said = this.console.filter((m) => m.type === "error").map((m) => m.text);
    return [...said, ...this.errors].filter((text) => !this.expected.some((pattern) => pattern.test(text)));
  }
}

/** A running browser with one profile. */
export class Browser {
  constructor(engine, profile, temporary) {
    Object.assign(this, { engine, profile, temporary, version: "", pid: 0, seesRequests: engine !== "webkit" });
    /** @type {Set<Page>} */ this.pages = new Set();
    /** @type {import("node:child_process").ChildProcess[]} that end with it */ this.helpers = [];
    /** Engine's own parts: newPage(page), close(). */ this.own = null;
  }
  /** Opens a tab; with a url, waits until it has loaded. */
  async newPage(url) {
    const page = new Page(this, null);
    page.own = await this.own.newPage(page);
    this.pages.add(page);
    if (url) await page.goto(url);
    return page;
  }
  processes() { return this.pid ? proc.tree(this.pid) : []; }
  renderers() { return this.processes().filter(proc.isRenderer); }
  /** Bytes of all renderers together. @returns {{resident: number, anonymous: number, peak: number}} */
  memory() {
    const sum = { resident: 0, anonymous: 0, peak: 0 };
    for (const pid of this.renderers()) {
      const one = proc.memory(pid);
      for (const key of Object.keys(sum)) sum[key] += one[key];
    }
    return sum;
  }
  resetPeak() { this.renderers().forEach(proc.resetPeak); }
  /** CPU milliseconds that all renderers have used. */
  cpuTime() { return this.renderers().reduce((sum, pid) => sum + proc.cpuTime(pid), 0); }
  /** Ends every process at once, as a power cut would. A profile given by the test stays. */
  kill() {
    proc.killAll(this.processes());
    this.forget();
  }
  async close() {
    const before = new Map(this.processes().map((pid) => [pid, proc.commandLine(pid).join(" ")]));
    await Promise.race([this.own.close().catch(() => {}), new Promise((resolve) => setTimeout(resolve, 10000).unref())]);
    proc.killAll([...before.keys()].filter((pid) => proc.commandLine(pid).join(" ") === before.get(pid))); /* what is left */
    this.forget();
  }
  forget() {
    alive.delete(this);
    for (const helper of this.helpers) helper.kill("SIGKILL");
    for (let i = 0; this.temporary && i < 20; i++) { /* a dying process may still write */
      try {
        fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
        break;
      } catch {
        continue;
      }
    }
  }
}

/** Starts a browser.
 * @param {"chromium" | "firefox" | "webkit"} engine
 * @param {{flags?: string[], prefs?: object, profile?: string, env?: object}} [options]
 *   profile: a folder that outlives the browser; without it a temporary one. prefs: Firefox's. env: added to the process's.
 * @returns {Promise<Browser>} */
export async function launch(engine, options = {}) {
  const temporary = !options.profile;
  const profile = options.profile ?? fs.mkdtempSync(path.join(os.tmpdir(), `slm2-${engine}-`));
  fs.mkdirSync(profile, { recursive: true });
  const browser = new Browser(engine, profile, temporary);
  alive.add(browser);
  try {
    await { chromium: launchChromium, firefox: launchFirefox, webkit: launchWebkit }[engine](browser, options);
  } catch (error) {
    browser.forget();
    throw error;
  }
  return browser;
}

async function launchChromium(browser, options) {
  const context = await drivers("playwright-core").chromium.launchPersistentContext(browser.profile, {
    executablePath: CHROMIUM, headless: true, chromiumSandbox: false, viewport: { width: 1280, height: 900 },
    args: [...CHROMIUM_FLAGS, ...(options.flags ?? [])], env: { ...process.env, ...options.env },
    handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false,
  });
  const isOurs = (pid) => {
    const words = proc.commandLine(pid);
    return words.some((w) => w === `--user-data-dir=${browser.profile}`) && !words.some((w) => w.startsWith("--type="));
  };
  browser.pid = proc.tree(process.pid).find(isOurs) ?? 0;
  browser.version = context.browser()?.version() ?? "";
  const blank = context.pages();
  browser.own = {
    close: () => context.close(),
    async newPage(page) {
      const tab = blank.pop() ?? await context.newPage();
      tab.on("console", (m) => page.console.push({ type: m.type(), text: `${m.text()} (${m.location().url})` }));
      tab.on("pageerror", (e) => page.errors.push(String(e?.stack ?? e)));
      tab.on("crash", () => page.errors.push("crashed"));
      tab.on("request", (r) => page.requests.push({ method: r.method(), url: r.url() }));
      return {
        goto: (url) => tab.goto(url), reload: () => tab.reload(), front: () => tab.bringToFront(), close: () => tab.close(),
        tab, evaluate: (text) => tab.evaluate(text), screenshot: (file) => tab.screenshot({ path: file }),
      };
    },
  };
}

async function launchFirefox(browser, options) {
  const firefox = await drivers("puppeteer-core").launch({
    browser: "firefox", executablePath: FIREFOX, headless: true, userDataDir: browser.profile,
    args: options.flags ?? [], extraPrefsFirefox: { ...FIREFOX_PREFS, ...options.prefs },
    protocolTimeout: 0, handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false,
    env: { ...process.env, HOME: browser.profile, MOZ_DISABLE_AUTO_SAFE_MODE: "1", MOZ_REMOTE_SETTINGS_DEVTOOLS: "1",
      ...options.env },
    defaultViewport: { width: 1280, height: 900 },
  });
  browser.pid = firefox.process().pid;
  browser.version = await firefox.version();
  const blank = await firefox.pages();
  browser.own = {
    close: () => firefox.close(),
    async newPage(page) {
      const tab = blank.pop() ?? await firefox.newPage();
      tab.setDefaultTimeout(0);
      tab.on("console", (m) => page.console.push({ type: m.type(), text: `${m.text()} (${m.location()?.url ?? ""})` }));
      tab.on("pageerror", (e) => page.errors.push(String(e?.stack || e)));
      tab.on("error", () => page.errors.push("crashed"));
      tab.on("request", (r) => page.requests.push({ method: r.method(), url: r.url() }));
      return {
        goto: (url) => tab.goto(url), reload: () => tab.reload(), front: () => tab.bringToFront(), close: () => tab.close(),
        tab, evaluate: (text) => tab.evaluate(text), screenshot: (file) => tab.screenshot({ path: file }),
      };
    },
  };
}
