/* Tests by name, and what a test is given. A test file calls test(name, options, body); run.mjs runs what was registered.
 * Whatever a test opens through its context is closed after it, and a page that reported an error which the test did not
 * expect makes it fail.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { execFile } from "node:child_process";
import { launch } from "./driver.mjs";
import { serve } from "./server.mjs";

export const tests = [];

/** @param {string} name
 *  @param {{engines?: string[], timeout?: number, netns?: boolean, slow?: boolean}} options
 *    engines: only in these; timeout: seconds (60); netns: runs inside tests/browser/netns.sh;
 *    slow: only with --slow
 *  @param {(t: Context) => Promise<void>} body */
export function test(name, options, body) {
  tests.push({ name, ...options, body });
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Reproducible numbers in [0, 1) for tests that choose at random (mulberry32); the seed is printed by the test. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x = (x + Math.imul(x ^ (x >>> 7), x | 61)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

const folders = new Set();
process.on("exit", () => {
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
});

class Skipped extends Error {}
class Abandoned extends Error {}

/** One browser that tests share, so that each need not wait for its start. */
class SharedBrowser {
  constructor(engine) { Object.assign(this, { engine, browser: null }); }
  async get() {
    if (!this.browser || this.browser.processes().length < 2) {
      await this.drop();
      this.browser = await launch(this.engine);
    }
    return this.browser;
  }
  async drop() {
    const browser = this.browser;
    this.browser = null;
    await browser?.close();
  }
}

export class Context {
  constructor(engine, build, shared) {
    Object.assign(this, { engine, build, shared, notes: [], pages: [], opened: [], over: false });
  }
  /** Shown at the end of the test's line: figures, seeds. */
  note(text) { this.notes.push(text); }
  skip(why) { throw new Skipped(why); }
  #keep(thing, close) {
    if (this.over) {
      close();
      throw new Abandoned("the test is over");
    }
    this.opened.push(close);
    return thing;
  }
  async server(options = {}) {
    const server = await serve({ build: this.build, record: this.engine === "webkit", ...options });
    return this.#keep(server, () => server.close());
  }
  async browser(options) {
    const browser = await launch(this.engine, options);
    return this.#keep(browser, () => browser.close());
  }
  /** A tab in the shared browser or in the one given. */
  async page(url, browser) {
    const page = await (browser ?? await this.shared.get()).newPage();
    this.pages.push(page);
    this.#keep(page, () => page.close());
    if (url) await page.goto(url);
    return page;
  }
  folder() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "slm2-browser-"));
    folders.add(folder);
    return this.#keep(folder, () => {
      fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
      folders.delete(folder);
    });
  }
  /** What the native command prints. */
  slm2(...words) {
    return new Promise((resolve, reject) => {
      execFile(path.join(this.build, "slm2"), words, { maxBuffer: 1 << 26 }, (error, out, said) =>
        (error ? reject(new Error(`slm2 ${words.join(" ")}: ${said || error}`)) : resolve(out)));
    });
  }
  async finish() {
    this.over = true;
    for (const close of this.opened.reverse()) {
      await Promise.race([Promise.resolve().then(close).catch(() => {}), pause(15000)]);
    }
  }
}

/** Looks at the pages of a failed test: what they said and, where the engine can, how they looked. */
async function report(context, file) {
  const lines = [];
  for (const [i, page] of context.pages.entries()) {
    for (const { type, text } of page.console.slice(-20)) lines.push(`page ${i + 1} ${type}: ${text}`);
    for (const text of page.errors.slice(-10)) lines.push(`page ${i + 1} uncaught: ${text}`);
    const picture = `${file}-${i + 1}.png`;
    fs.mkdirSync(path.dirname(picture), { recursive: true });
    if (await Promise.race([page.screenshot(picture).catch(() => false), pause(5000)])) lines.push(`page ${i + 1}: ${picture}`);
  }
  return lines;
}

/** Runs one test and says how it ended; `lines` are for the reader when it failed. */
export async function runTest(one, engine, build, shared) {
  const context = new Context(engine, build, shared);
  const seconds = one.timeout ?? 60;
  let timer, ticks = 0; /* a machine that slept, or was stopped to measure something else, has not been slow */
  const late = new Promise((_, reject) => {
    timer = setInterval(() => { if (++ticks >= 10 * seconds) reject(new Error(`not done after ${seconds} s`)); }, 100);
  });
  const result = { state: "ok", notes: context.notes, lines: [] };
  const start = Date.now();
  try {
    const body = one.body(context);
    body.catch(() => {}); /* of a test that was given up */
    await Promise.race([body, late]);
    await pause(engine === "webkit" ? 0 : 20); /* events of the last call are on their way */
    const errors = context.pages.flatMap((page) => page.unexpected());
    if (errors.length > 0) throw new Error(`unexpected in the page: ${errors[0]}`);
  } catch (error) {
    if (error instanceof Skipped) Object.assign(result, { state: "skip", notes: [error.message] });
    else {
      const picture = path.join(build, "browser", `${engine}-${one.name.replace(/[^a-z0-9]+/gi, "-").slice(0, 60)}`);
      Object.assign(result, { state: "FAIL", lines: [...String(error?.stack ?? error).split("\n"), ...await report(context, picture)] });
    }
  }
  clearInterval(timer);
  await context.finish();
  if (result.state === "FAIL") await shared.drop();
  return { ...result, seconds: (Date.now() - start) / 1000 };
}

export { SharedBrowser };
