/* The test server: what `slm2 serve` sends, header by header, and on request every fault a server, a proxy or a network
 * can have. It keeps a log of all requests, which is what privacy tests read.
 *
 *   /          web/app/            /engine/   web/engine/            /wasm/   BUILD/wasm/
 *   /models/   files given by name /test/     tests/browser/pages/   /NAME/   a folder given by name
 *
 * A rule says what is wrong with a path. It is set from the test (server.rule("/models/a.slm2", { short: 1000 })) or asked
 * for in the query (/models/a.slm2?short=1000); see Rule. Only GET and HEAD; every answer is logged with what was sent.
 */
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import zlib from "node:zlib";
import { once } from "node:events";

export const CSP = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
  + "style-src 'self'; img-src 'self' data: blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
  + "frame-ancestors 'none'";
const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css",
  ".json": "application/json", ".wasm": "application/wasm", ".svg": "image/svg+xml", ".png": "image/png",
  ".webmanifest": "application/manifest+json",
};
const PIECE = 65536;

/** What is wrong with a path.
 * @typedef {object} Rule
 * @property {string} [without]  headers left out: any of coop, coep, corp, csp, type, length, separated by commas
 * @property {string} [csp]      another policy
 * @property {number} [status]   answers so, with a short text
 * @property {"" | true} [html]  200 and a page instead of the file
 * @property {"none" | "shifted" | "unsatisfiable"} [ranges]
 *   none: the whole file with 200; shifted: 206, but other bytes than were asked for, and says so; unsatisfiable: 416
 * @property {number} [short]    the connection closes after so many body bytes
 * @property {number} [truncate] the file ends there, and every header says so
 * @property {number} [stall]    nothing more comes after so many body bytes, and the connection stays
 * @property {number} [slow]     bytes per second
 * @property {number} [flip]     the lowest bit of the byte at this offset of the file is another
 * @property {"" | true} [gzip]  the body is compressed whether or not that was accepted, as some proxies do
 * @property {string} [etag]     this ETag instead of the file's
 * @property {string} [to]       302 to there
 * @property {number} [after]    the rule holds from the (n+1)-th request of this path on
 * @property {number} [times]    ... and for so many requests */

/** @typedef {{time: number, method: string, path: string, url: string, range: string, headers: object, status: number,
 *   sent: number, done: boolean}} Entry  done: the answer was sent whole */

const NUMBERS = ["status", "short", "truncate", "stall", "slow", "flip", "after", "times"];
const asRule = (query) => Object.fromEntries([...query].map(([k, v]) => [k, NUMBERS.includes(k) ? Number(v) : v]));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** First and last byte that a Range header asks of `size` bytes; null: no (single, valid) range; false: cannot be had. */
function askedRange(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return null;
  if (match[1] === "") return match[2] === "0" || size === 0 ? false : [Math.max(0, size - Number(match[2])), size - 1];
  const first = Number(match[1]);
  const last = match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== "" && Number(match[2]) < first) return null;
  return first < size ? [first, last] : false;
}

export class Server {
  /** @param {{build?: string, models?: Record<string, string>, folders?: Record<string, string>, record?: boolean,
   *   port?: number}} options */
  constructor({ build = "build", models = {}, folders = {}, record = false } = {}) {
    Object.assign(this, { build, models, folders, record, rules: new Map(), seen: new Map(), port: 0 });
    /** @type {Entry[]} */ this.log = [];
    this.http = http.createServer((request, response) => {
      this.answer(request, response).catch((error) => response.destroy(error));
    });
    this.http.keepAliveTimeout = 60000;
  }
  get origin() { return `http://127.0.0.1:${this.port}`; }
  listen(port = 0) {
    return new Promise((resolve, reject) => {
      this.http.once("error", reject).listen(port, "127.0.0.1", () => {
        this.port = this.http.address().port;
        resolve(this);
      });
    });
  }
  close() {
    this.closed = true;
    this.http.close();
    this.http.closeAllConnections();
  }
  /** What is wrong with a path from now on; null: nothing. Requests of it are counted from here. @param {Rule | null} rule */
  rule(target, rule) {
    this.seen.delete(target);
    if (rule) this.rules.set(target, rule);
    else this.rules.delete(target);
    return this;
  }
  /** Entries of a path (or all that match). @param {string | RegExp} target */
  requests(target) {
    return this.log.filter((e) => (typeof target === "string" ? e.path === target : target.test(e.path)));
  }
  fileOf(target) {
    const [, first, behind] = /^\/([^/]+)\/(.*)$/.exec(target) ?? [];
    const known = ["engine", "wasm", "models", "test"].includes(first) || Object.hasOwn(this.folders, first ?? "");
    const [folder, rest] = known ? [first, behind] : ["app", target.slice(1)];
    if (folder === "models") return this.models[rest] ?? null;
    const root = { app: "web/app", engine: "web/engine", wasm: path.join(this.build, "wasm"), test: "tests/browser/pages",
      ...this.folders }[folder];
    const file = path.join(root, rest === "" ? "index.html" : rest);
    return file.startsWith(root + path.sep) ? file : null;
  }
  ruleOf(target, query) {
    const rule = this.rules.get(target) ?? asRule(query);
    const before = this.seen.get(target) ?? 0;
    this.seen.set(target, before + 1);
    const from = rule.after ?? 0;
    return before >= from && before < from + (rule.times ?? Infinity) ? rule : {};
  }
  async answer(request, response) {
    const url = new URL(request.url, this.origin);
    const target = decodeURIComponent(url.pathname);
    const rule = this.ruleOf(target, url.searchParams);
    const entry = {
      time: Date.now(), method: request.method, path: target, url: request.url, range: request.headers.range ?? "",
      headers: request.headers, status: 0, sent: 0, done: false,
    };
    this.log.push(entry);
    response.on("finish", () => { entry.done = true; });
    const headers = this.headers(rule);
    const say = (status, text, more = {}) => {
      entry.status = status;
      response.writeHead(status, { ...headers, "Content-Type": "text/plain; charset=utf-8", ...more });
      response.end(request.method === "HEAD" ? "" : text);
    };
    if (request.method !== "GET" && request.method !== "HEAD") return say(405, "only GET and HEAD\n", { Allow: "GET, HEAD" });
    if (rule.to) return say(302, "", { Location: rule.to });
    if (rule.status) return say(rule.status, `status ${rule.status}\n`);
    if ("html" in rule) return say(200, "<!doctype html><title>Sign in</title><p>Sign in", { "Content-Type": TYPES[".html"] });
    const file = this.fileOf(target);
    const stat = file && fs.statSync(file, { throwIfNoEntry: false });
    if (!stat?.isFile()) return say(404, "not found\n");
    return this.sendFile({ request, response, rule, entry, headers, say }, file, stat);
  }
  headers(rule) {
    const without = (rule.without ?? "").split(",");
    const all = {
      coop: ["Cross-Origin-Opener-Policy", "same-origin"], coep: ["Cross-Origin-Embedder-Policy", "require-corp"],
      corp: ["Cross-Origin-Resource-Policy", "same-origin"], csp: ["Content-Security-Policy", rule.csp ?? CSP],
    };
    const kept = Object.keys(all).filter((key) => !without.includes(key)).map((key) => all[key]);
    return { ...Object.fromEntries(kept), "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache" };
  }
  async sendFile(answer, file, stat) {
    const { request, response, rule, entry, headers, say } = answer;
    const without = (rule.without ?? "").split(",");
    const size = Math.min(stat.size, rule.truncate ?? stat.size);
    headers.ETag = rule.etag ?? `"${stat.size.toString(16)}-${Math.round(stat.mtimeMs).toString(16)}"`;
    if (!without.includes("type")) headers["Content-Type"] = TYPES[path.extname(file)] ?? "application/octet-stream";
    if (this.record && path.extname(file) === ".html") return this.sendRecorded(answer, file);
    if ("gzip" in rule) return this.sendGzip(answer, file);

    let range = null;
    if (rule.ranges !== "none") {
      headers["Accept-Ranges"] = "bytes";
      const unchanged = !request.headers["if-range"] || request.headers["if-range"] === headers.ETag;
      range = unchanged ? askedRange(request.headers.range, size) : null;
      if (rule.ranges === "unsatisfiable" && request.headers.range) range = false;
      if (range === false) return say(416, "no such range\n", { "Content-Range": `bytes */${size}` });
    }
    if (range && rule.ranges === "shifted") {
      const by = range[0] >= 100 ? -100 : Math.min(100, size - 1 - range[1]);
      range = [range[0] + by, range[1] + by];
    }
    const [first, last] = range ?? [0, size - 1];
    if (range) headers["Content-Range"] = `bytes ${first}-${last}/${size}`;
    if (!without.includes("length")) headers["Content-Length"] = last - first + 1;
    entry.status = range ? 206 : 200;
    response.writeHead(entry.status, headers);
    if (request.method === "HEAD") return response.end();
    return this.sendBytes(answer, file, first, last + 1);
  }
  async sendBytes({ response, rule, entry }, file, first, end) {
    const limit = Math.min(end, first + Math.min(rule.short ?? Infinity, rule.stall ?? Infinity));
    const piece = rule.slow ? Math.max(1, Math.round(rule.slow / 20)) : PIECE;
    const free = new AbortController(); /* of what waits for the connection */
    const closed = once(response, "close", { signal: free.signal });
    closed.catch(() => {});
    const handle = await fs.promises.open(file);
    try {
      for (let at = first; at < limit && !response.destroyed && !this.closed; at += piece) {
        const bytes = Buffer.alloc(Math.min(piece, limit - at));
        await handle.read(bytes, 0, bytes.length, at);
        if (rule.flip >= at && rule.flip < at + bytes.length) bytes[rule.flip - at] ^= 1;
        entry.sent += bytes.length;
        if (!response.write(bytes)) await Promise.race([once(response, "drain", { signal: free.signal }), closed]);
        if (rule.slow) await pause(50);
      }
    } finally {
      free.abort();
      await handle.close();
    }
    if (limit === end) return response.end();
    if (rule.short !== undefined && (rule.stall === undefined || rule.short <= rule.stall)) {
      await pause(20); /* let what was written leave first */
      response.destroy();
    }
  }
  sendGzip({ request, response, entry, headers }, file) {
    const body = zlib.gzipSync(fs.readFileSync(file), { level: 1 });
    entry.status = 200;
    entry.sent = body.length;
    response.writeHead(200, { ...headers, "Content-Encoding": "gzip", "Content-Length": body.length });
    response.end(request.method === "HEAD" ? "" : body);
  }
  sendRecorded({ request, response, entry, headers }, file) {
    const page = fs.readFileSync(file, "utf8");
    const body = Buffer.from(page.replace(/(<head>|<meta charset="?utf-8"?>)/i, '$1<script src="/test/record.js"></script>'));
    entry.status = 200;
    entry.sent = body.length;
    response.writeHead(200, { ...headers, "Content-Length": body.length });
    response.end(request.method === "HEAD" ? "" : body);
  }
}

/** Starts a server on a free port of 127.0.0.1. */
export const serve = (options = {}) => new Server(options).listen(options.port ?? 0);
