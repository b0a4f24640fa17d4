// tests/cli/serve.mjs: `slm2 serve` from outside, over raw sockets, so that what a browser would never send is sent too.
// Usage: node serve.mjs SLM2 WORK_DIR MODEL.slm2 OTHER.slm2. Prints "ok serve: N checks", or each failure, and exits 1.
import fs from "node:fs";
import https from "node:https";
import net from "node:net";
import path from "node:path";
import { spawn, spawnSync } from "node:child_process";

const [slm2, work, model, other] = process.argv.slice(2).map((p) => path.resolve(p));
let checks = 0, failures = 0;
function check(good, label, detail = "") {
  checks++;
  if (good) return;
  failures++;
  console.log(`FAIL serve: ${label}${detail === "" ? "" : `: ${detail}`}`);
}
const equal = (got, expected, label) => check(got === expected, label,
  `${JSON.stringify(got)}, expected ${JSON.stringify(expected)}`);

// What every answer must carry, once.
const HEADERS = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; " +
    "style-src 'self'; img-src 'self' data: blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

// --- processes ---------------------------------------------------------------

const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/** Starts a server and waits for its line; {child, url, host, port, address, output}. */
async function start(...args) {
  const child = spawn(slm2, ["serve", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  const server = { child, out: "", err: "" };
  child.stderr.on("data", (d) => server.err += d);
  server.ended = new Promise((resolve) => child.on("close", (code, signal) => {
    running.delete(child);
    resolve(code ?? signal);
  }));
  await new Promise((resolve) => {
    child.stdout.on("data", (d) => (server.out += d).endsWith("\n") && resolve());
    child.on("close", resolve);
  });
  const url = /^serving (https?):\/\/(\S+):(\d+)\/ with /.exec(server.out);
  if (url === null) throw new Error(`no server: ${args.join(" ")}: ${server.out}${server.err}`);
  [, server.scheme, server.address, server.port] = url;
  server.host = `${server.address}:${server.port}`;
  server.port = Number(server.port);
  return server;
}
async function stop(server) {
  server.child.kill("SIGINT");
  return server.ended;
}
function refused(label, code, text, ...args) {
  const r = spawnSync(slm2, ["serve", ...args], { encoding: "utf8", timeout: 10000 });
  equal(r.status, code, `${label}: exit code`);
  equal(r.stdout, "", `${label}: stdout`);
  check(/^slm2: .*\n$/.test(r.stderr) && r.stderr.includes(text), `${label}: stderr`, r.stderr);
}

// --- raw HTTP -------------------------------------------------------------------

/** Sends bytes, and nothing more if ends, and reads until the server closes. */
function exchange(server, bytes, ends = false, timeout = 10000) {
  return new Promise((resolve, reject) => {
    const pieces = [];
    const connect = { port: server.port, host: server.address.replace(/[[\]]/g, ""), allowHalfOpen: true };
    const socket = net.connect(connect, () => ends ? socket.end(bytes) : socket.write(bytes));
    socket.setTimeout(timeout, () => socket.destroy(new Error(`no answer to ${JSON.stringify(String(bytes).slice(0, 60))}`)));
    socket.on("data", (d) => pieces.push(d));
    socket.on("error", (e) => pieces.length > 0 && e.code === "ECONNRESET" ? resolve(Buffer.concat(pieces)) : reject(e));
    socket.on("end", () => {
      socket.destroy();
      resolve(Buffer.concat(pieces));
    });
  });
}
function parse(bytes) {
  const end = bytes.indexOf("\r\n\r\n");
  const [first, ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = {};
  for (const line of lines) {
    const [, name, value] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    const key = String(name).toLowerCase();
    headers[key] = key in headers ? `${headers[key]} | ${value}` : value;
  }
  return { status: Number(first.split(" ")[1]), headers, body: bytes.subarray(end + 4) };
}
function checkHeaders(answer, label) {
  for (const [name, value] of Object.entries(HEADERS)) equal(answer.headers[name], value, `${label}: ${name}`);
  check("permissions-policy" in answer.headers && "cache-control" in answer.headers, `${label}: permissions or caching`);
}
/** One request on its own connection; headers: lines. Every answer is checked for its headers. */
async function ask(server, method, target, ...headers) {
  const host = headers.some((h) => /^host:/i.test(h)) || headers.includes("no host") ? [] : [`Host: ${server.host}`];
  const lines = [`${method} ${target} HTTP/1.1`, ...host, ...headers.filter((h) => h !== "no host"), "Connection: close"];
  const label = `${method} ${target.slice(0, 80)} ${headers.join(" ").slice(0, 80)}`;
  const answer = parse(await exchange(server, Buffer.from(lines.join("\r\n") + "\r\n\r\n", "latin1")));
  checkHeaders(answer, label);
  if (method !== "HEAD" && answer.status !== 304) equal(answer.headers["content-length"], String(answer.body.length),
    `${label}: length`);
  return answer;
}
async function status(server, expected, method, target, ...headers) {
  const answer = await ask(server, method, target, ...headers);
  equal(answer.status, expected, `${method} ${target.slice(0, 80)} ${headers.join(" ").slice(0, 80)}`);
  return answer;
}

// --- the files -----------------------------------------------------------------------

const root = path.join(work, "root"), outside = path.join(work, "outside");
const SECRET = "a secret outside of the root";
const TYPES = {
  "index.html": "text/html; charset=utf-8", "a.js": "text/javascript; charset=utf-8", "b.mjs": "text/javascript; charset=utf-8",
  "c.css": "text/css; charset=utf-8", "d.json": "application/json", "e.svg": "image/svg+xml", "f.png": "image/png",
  "g.webmanifest": "application/manifest+json", "h.txt": "text/plain; charset=utf-8", "i.js.map": "application/json",
  "j.slm2": "application/octet-stream", "k.unknown": "application/octet-stream", "noending": "application/octet-stream",
  "sub/x.js": "text/javascript; charset=utf-8",
};
fs.rmSync(work, { recursive: true, force: true });
for (const folder of ["sub/deep", "engine", "wasm"]) fs.mkdirSync(path.join(root, folder), { recursive: true });
fs.mkdirSync(outside);
fs.writeFileSync(path.join(outside, "secret.txt"), SECRET);
for (const name of Object.keys(TYPES)) fs.writeFileSync(path.join(root, name), `this is ${name}`);
fs.writeFileSync(path.join(root, "empty.txt"), "");
fs.writeFileSync(path.join(root, ".hidden"), SECRET);
fs.writeFileSync(path.join(work, "root.txt"), SECRET); // its name begins as the root's does
fs.symlinkSync("../root.txt", path.join(root, "beside.txt"));
fs.writeFileSync(path.join(root, "engine/client.js"), "export {};");
fs.writeFileSync(path.join(root, "wasm/scalar.wasm"), "\0asm");
fs.symlinkSync(path.join(outside, "secret.txt"), path.join(root, "link.txt"));
fs.symlinkSync(outside, path.join(root, "linked"));
fs.symlinkSync("../..", path.join(root, "sub/up"));
fs.symlinkSync("nowhere", path.join(root, "dangling"));
fs.symlinkSync("loop", path.join(root, "loop"));
fs.symlinkSync("sub/x.js", path.join(root, "inside.js"));
spawnSync("mkfifo", [path.join(root, "pipe.txt")]);
const served = path.join(work, "na me%41.slm2");
fs.copyFileSync(other, served);

// --- the tests --------------------------------------------------------------------------

async function testFiles(server) {
  for (const [name, type] of Object.entries(TYPES)) {
    const answer = await status(server, 200, "GET", `/${name}`);
    equal(answer.headers["content-type"], type, `type of ${name}`);
    equal(answer.body.toString(), `this is ${name}`, `content of ${name}`);
    equal(answer.headers["cache-control"], name.endsWith(".slm2") ? "no-store" : "no-cache", `caching of ${name}`);
    equal(answer.headers["accept-ranges"], "bytes", `ranges of ${name}`);
    check(/^"[0-9a-f]{64}"$/.test(answer.headers.etag), `entity tag of ${name}`, answer.headers.etag);
  }
  equal((await status(server, 200, "GET", "/")).body.toString(), "this is index.html", "/");
  equal((await status(server, 200, "GET", "/?a=/../b&c=%zz")).body.toString(), "this is index.html", "a query");
  equal((await status(server, 200, "GET", "/engine/client.js")).body.toString(), "export {};", "engine");
  equal((await status(server, 200, "GET", "/wasm/scalar.wasm")).headers["content-type"], "application/wasm", "wasm");
  equal((await status(server, 200, "GET", "/inside.js")).body.toString(), "this is sub/x.js", "a link inside the root");
  equal((await status(server, 200, "GET", "/empty.txt")).body.length, 0, "an empty file");
  for (const name of ["absent.bin", "sub", "sub/", "sub/deep/", "engine", "engine/", "wasm/", "models", "models/",
    "models/nothing.slm2", "app/index.html", "beside.txt", "index.html/", "index.html/x", ".hidden", "link.txt",
    "linked/secret.txt", "linked",
    "sub/up/outside/secret.txt", "dangling", "loop", "pipe.txt", "%20", "INDEX.HTML/x", "engine/.a/client.js"]) {
    const answer = await status(server, 404, "GET", `/${name}`);
    check(!answer.body.includes(SECRET) && !answer.body.includes(name), `/${name} tells something`);
  }
}

async function testPaths(server) {
  const hostile = ["/../outside/secret.txt", "/../../etc/passwd", "/sub/../../../outside/secret.txt",
    "/%2e%2e/outside/secret.txt", "/%2E%2E/%2e%2e/etc/passwd", "/..%2foutside%2fsecret.txt", "/sub/%2e%2e/%2e%2e/root.txt",
    "/..\\outside\\secret.txt",
    "/..%5coutside", "/index.html%00", "/index.html%00.js", "/%00", "//etc/passwd", "/engine//client.js", "/./index.html",
    "/sub/.", "/sub/..", "/engine/../index.html", "/models/../index.html", "/models/..%2findex.html", "/%c0%ae%c0%ae/index.html",
    "/%e0%80%ae%e0%80%ae/", "/%ff", "/%", "/%4", "/%zz", "/a\tb", "/caf\xe9", "/\x7f", "/a#b", "*", "index.html", "?x",
    "ftp://x/", "http://", `/${"a/".repeat(600)}`, `/${"a".repeat(1100)}`];
  for (const target of hostile) {
    const answer = await status(server, 400, "GET", target);
    check(!answer.body.includes(SECRET), `${target} leaks`);
  }
  // An absolute target names the host itself.
  equal((await status(server, 200, "GET", `http://${server.host}/a.js`)).body.toString(), "this is a.js", "an absolute target");
  await status(server, 421, "GET", "http://evil.example/a.js");
  await status(server, 400, "GET", `http://user@${server.host}/a.js`);
}

async function testHosts(server) {
  const at = `:${server.port}`;
  for (const host of ["evil.example", `evil.example${at}`, "127.0.0.1", "127.0.0.1:1", `127.0.0.2${at}`, `0.0.0.0${at}`,
    `a.localhost${at}`,
    "localhost", "localhost:1", `127.1${at}`, `2130706433${at}`, `127.0.0.1.evil.example${at}`, `[::ffff:127.0.0.1]${at}`])
    for (const target of ["/", "/models/index.json", "/nothing"]) await status(server, 421, "GET", target, `Host: ${host}`);
  for (const host of ["", " ", at, `user@127.0.0.1${at}`, `127.0.0.1${at}${at}`, `127.0.0.1${at}/x`, `a b${at}`, "[::1",
    `127.0.0.1${at},evil`])
    await status(server, 400, "GET", "/", `Host: ${host}`);
  await status(server, 400, "GET", "/", "no host");
  await status(server, 400, "GET", "/", `Host: ${server.host}`, `Host: ${server.host}`);
  await status(server, 400, "GET", "/", `Host: ${server.host}`, "Host: evil.example");
  const old = parse(await exchange(server, "GET / HTTP/1.0\r\n\r\n"));
  equal(old.status, 400, "HTTP/1.0 without Host");
  checkHeaders(old, "HTTP/1.0 without Host");
  for (const target of ["/", "/a.js?x=1&y=%2e%2e", "/nothing", "/sub/%41?"])
    for (const host of [`localhost${at}`, `LocalHost${at}`]) {
      const answer = await status(server, 308, "GET", target, `Host: ${host}`);
      equal(answer.headers.location, `http://${server.host}${target}`, "location");
      equal(answer.headers["cache-control"], "no-store", "a redirect is not kept");
    }
  equal((await status(server, 308, "GET", `http://localhost${at}/a.js?b`)).headers.location, `http://${server.host}/a.js?b`,
    "absolute");
  equal((await status(server, 308, "HEAD", "/", `Host: localhost${at}`)).body.length, 0, "HEAD of a redirect");
  await status(server, 400, "GET", "/../x", `Host: localhost${at}`);
}

async function testMethods(server) {
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "G",
    "AVERYLONGMETHODNAMEOFMANYLETTERS"])
    for (const body of [[], ["Content-Length: 0"], ["Content-Length: 1000000"], ["Transfer-Encoding: chunked"]]) {
      const answer = await status(server, 405, method, "/", ...body);
      equal(answer.headers.allow, "GET, HEAD", `${method}: Allow`);
    }
  await status(server, 400, "CONNECT", "127.0.0.1:1");
  await status(server, 400, "OPTIONS", "*");
  await status(server, 421, "POST", "/", "Host: evil.example");
  // Content after GET is neither read nor taken for the next request.
  for (const method of ["GET", "HEAD"]) {
    await status(server, 400, method, "/", "Content-Length: 5");
    await status(server, 400, method, "/", "Transfer-Encoding: chunked");
  }
  const smuggled = `GET / HTTP/1.1\r\nHost: ${server.host}\r\nContent-Length: 60\r\n\r\n` +
    `GET /a.js HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`;
  const answer = (await exchange(server, smuggled)).toString("latin1");
  equal(answer.split("HTTP/1.1 ").length, 2, "answers to a request with content");
  await status(server, 200, "GET", "/", "Content-Length: 0");
  for (const target of ["/", "/empty.txt", "/models/index.json", `/models/${path.basename(model)}`, "/nothing", "/%zz"]) {
    const get = await ask(server, "GET", target), head = await ask(server, "HEAD", target);
    equal(head.body.length, 0, `HEAD ${target}: body`);
    for (const h of [get.headers, head.headers]) delete h.date;
    equal(JSON.stringify(head.headers), JSON.stringify(get.headers), `HEAD ${target}: headers`);
    equal(head.status, get.status, `HEAD ${target}: status`);
  }
}

async function testConditions(server) {
  for (const target of ["/a.js", "/models/index.json", `/models/${path.basename(model)}`]) {
    const { headers: { etag, "content-length": length } } = await ask(server, "HEAD", target);
    for (const list of [etag, `W/${etag}`, "*", `"x", ${etag}`, `"x",W/"y" ,${etag},`])
      for (const method of ["GET", "HEAD"]) {
        const answer = await status(server, 304, method, target, `If-None-Match: ${list}`);
        equal(answer.headers.etag, etag, "entity tag of 304");
        equal(answer.body.length, 0, "body of 304");
        check(["undefined", length].includes(String(answer.headers["content-length"])), "length of 304",
          answer.headers["content-length"]);
      }
    await status(server, 304, "GET", target, "If-None-Match: \"x\"", `If-None-Match: ${etag}`);
    await status(server, 304, "GET", target, `If-None-Match: ${etag}`, "Range: bytes=0-1");
    for (const list of ["\"x\"", etag.slice(0, -1), etag.slice(1, -1), "", `${etag} x`]) await status(server, 200, "GET", target,
      `If-None-Match: ${list}`);
    for (const list of [etag, "*", `"x", ${etag}`]) await status(server, 200, "GET", target, `If-Match: ${list}`);
    for (const list of ["\"x\"", `W/${etag}`, ""]) await status(server, 412, "GET", target, `If-Match: ${list}`);
    await status(server, 200, "GET", target, "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT");
    await status(server, 206, "GET", target, "Range: bytes=0-1", `If-Range: ${etag}`);
    for (const tag of ["\"x\"", `W/${etag}`, "Fri, 01 Jan 2100 00:00:00 GMT", ""])
      await status(server, 200, "GET", target, "Range: bytes=0-1", `If-Range: ${tag}`);
    await status(server, 200, "GET", target, "Range: bytes=999999999-", "If-Range: \"x\"");
  }
  // Another content has another tag, also at the same size and time.
  const file = path.join(root, "h.txt"), before = await ask(server, "GET", "/h.txt"), stat = fs.statSync(file);
  await new Promise((resolve) => setTimeout(resolve, 20));
  fs.writeFileSync(file, "THIS IS h.txt");
  fs.utimesSync(file, stat.atime, stat.mtime);
  const after = await status(server, 200, "GET", "/h.txt", `If-None-Match: ${before.headers.etag}`);
  equal(after.body.toString(), "THIS IS h.txt", "changed content");
  check(after.headers.etag !== before.headers.etag, "the tag of changed content");
  fs.writeFileSync(file, "this is h.txt");
}

async function testRanges(server) {
  const bytes = fs.readFileSync(model), size = bytes.length, target = `/models/${path.basename(model)}`;
  const parts = [["0-0", 0, 1], ["0-99", 0, 100], ["100-", 100], ["-1", size - 1], ["-100", size - 100], [`-${size * 2}`, 0],
    [`0-${size}`, 0],
    [`${size - 1}-`, size - 1], [`${size - 1}-99999999999999999999999`, size - 1], ["4194304-4194400", 4194304, 97], ["0-", 0]];
  for (const [range, first, count] of parts) {
    const wanted = bytes.subarray(first, count === undefined ? size : first + count);
    if (first >= size) continue;
    const answer = await status(server, 206, "GET", target, `Range: bytes=${range}`);
    equal(answer.headers["content-range"], `bytes ${first}-${first + wanted.length - 1}/${size}`, `Content-Range of ${range}`);
    check(answer.body.equals(wanted), `bytes ${range}`);
  }
  for (const range of [`${size}-`, `${size}-${size + 5}`, "-0", "99999999999999999999999-"]) {
    const answer = await status(server, 416, "GET", target, `Range: bytes=${range}`);
    equal(answer.headers["content-range"], `bytes */${size}`, `416 of ${range}`);
  }
  for (const range of ["bytes=0-1,5-6", "bytes=5-1", "bytes=", "bytes=x", "lines=0-1", "bytes=1", ""]) {
    const answer = await status(server, 200, "GET", target, `Range: ${range}`);
    check(answer.body.equals(bytes) && !("content-range" in answer.headers), `the whole for ${range}`);
  }
  await status(server, 200, "GET", target, "Range: bytes=0-1", "Range: bytes=5-6");
  const head = await status(server, 200, "HEAD", target, "Range: bytes=0-1");
  equal(head.headers["content-length"], String(size), "Range means nothing to HEAD");
  await status(server, 416, "GET", "/empty.txt", "Range: bytes=0-");
  await status(server, 200, "GET", "/empty.txt", "Range: bytes=-5");
  equal((await status(server, 206, "GET", "/models/index.json", "Range: bytes=2-7")).body.toString(), "models",
    "range of the list");
}

async function testModels(server) {
  const list = JSON.parse((await status(server, 200, "GET", "/models/index.json")).body.toString());
  equal(list.models.length, 2, "models in the list");
  for (const [i, file] of [model, served].entries()) {
    const entry = list.models[i], info = JSON.parse(spawnSync(slm2, ["inspect", file, "--json"], { encoding: "utf8",
      maxBuffer: 1 << 28 }).stdout);
    equal(entry.name, path.basename(file), "name");
    equal(entry.bytes, fs.statSync(file).size, "bytes");
    equal(entry.identity, info.identity, "identity");
    const answer = await status(server, 200, "GET", `/models/${entry.url}`);
    check(answer.body.equals(fs.readFileSync(file)), "the bytes of a model");
    equal(answer.headers.etag, `"${entry.identity}"`, "the tag of a model is its identity");
    equal(answer.headers["cache-control"], "no-store", "a model is not kept twice");
    equal(answer.headers["content-type"], "application/octet-stream", "type of a model");
  }
  // Replaced by name: the checked one is still served. Cut short or written over: nothing is.
  const [, entry] = list.models, bytes = fs.readFileSync(served), target = `/models/${entry.url}`;
  fs.renameSync(served, `${served}.old`);
  fs.writeFileSync(served, "another file");
  check((await status(server, 200, "GET", target)).body.equals(bytes), "a model replaced by another file");
  fs.truncateSync(`${served}.old`, 100);
  await status(server, 500, "GET", target);
  fs.writeFileSync(`${served}.old`, Buffer.alloc(bytes.length));
  await status(server, 500, "GET", target, "Range: bytes=0-1");
  await status(server, 200, "GET", "/models/index.json");
}

async function testConnections(server) {
  const one = `GET /a.js HTTP/1.1\r\nHost: ${server.host}\r\n`;
  const answers = (await exchange(server,
    `${one}\r\n${one}\r\n${one}Connection: close\r\n\r\n`)).toString("latin1").split("HTTP/1.1 200 OK");
  equal(answers.length, 4, "three requests on one connection");
  // What libmicrohttpd refuses before it is a request: an answer or a closed connection, and the server lives.
  for (const bytes of ["garbage\r\n\r\n", "\r\n\r\n\r\n", "GET\r\n\r\n", `GET /${"a".repeat(100000)} HTTP/1.1\r\n\r\n`,
    "\0\0\0\0\r\n\r\n",
    `GET / HTTP/1.1\r\nHost: ${server.host}\r\nX: ${"a".repeat(100000)}\r\n\r\n`, `${one}${"X: y\r\n".repeat(20000)}\r\n`,
    "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
      `GET / x y HTTP/1.1\r\nHost: ${server.host}\r\nConnection: close\r\n\r\n`]) {
    const answer = await exchange(server, Buffer.from(bytes, "latin1"), true, 1500).catch(() => Buffer.alloc(0));
    const label = JSON.stringify(bytes.slice(0, 40));
    check(answer.length === 0 || parse(answer).status >= 400, `${label} is refused`, answer.subarray(0, 60).toString("latin1"));
    await status(server, 200, "GET", "/a.js");
  }
  // Twenty who never finish their request and twenty who never read their answer keep nobody waiting.
  const slow = Array.from({ length: 40 }, (_, i) => net.connect(server.port, "127.0.0.1").on("error", () => {}));
  const target = `/models/${path.basename(model)}`;
  slow.forEach((s, i) => {
    s.pause();
    s.write(i % 2 === 0 ? `GET / HTTP/1.1\r\nHost: ${server.host}\r\nX-Slow: `
      : `GET ${target} HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`);
  });
  const begun = Date.now();
  const answersNow = await Promise.all(Array.from({ length: 20 }, () => ask(server, "GET", target)));
  check(answersNow.every((a) => a.status === 200 && a.body.length === fs.statSync(model).size), "answers beside slow clients");
  check(Date.now() - begun < 8000, "time beside slow clients", `${Date.now() - begun} ms`);
  slow.forEach((s) => s.destroy());
}

/** Requests with random damage: the server lives, and no secret leaves it. */
async function testRandom(server) {
  let seed = 7562;
  const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % n;
  const valid = `GET /sub/x.js?a=b HTTP/1.1\r\nHost: ${server.host}\r\nRange: bytes=0-5,7\r\n` +
    `If-None-Match: "x", W/"y"\r\nConnection: close\r\n\r\n`;
  const pieces = ["..", "/", "%2e", "\\", "\0", "%00", " ", "\r", "\n", ":", "\"", ",", "-", "9".repeat(30), "linked/secret.txt",
    "\xff", "*"];
  equal(parse(await exchange(server, valid, true)).status, 200, "the undamaged request");
  let leaks = 0;
  for (let i = 0; i < 200; i++) {
    let text = valid;
    for (let k = 0; k <= random(4); k++) {
      const at = random(text.length - 4);
      text = text.slice(0, at) + pieces[random(pieces.length)] + text.slice(at + random(3));
    }
    const answer = await exchange(server, Buffer.from(text, "latin1"), true, 1500).catch(() => Buffer.alloc(0));
    if (answer.includes(SECRET)) leaks++;
  }
  equal(leaks, 0, "secrets in answers to damaged requests");
  await status(server, 200, "GET", "/a.js");
}

async function testLarge() {
  const plain = path.join(work, "plain"), size = 5 * 1024 ** 3;
  fs.mkdirSync(path.join(plain, "sub"), { recursive: true });
  fs.writeFileSync(path.join(plain, "index.html"), "plain");
  fs.writeFileSync(path.join(plain, "sub/index.html"), "below");
  const fd = fs.openSync(path.join(plain, "large.bin"), "w");
  fs.ftruncateSync(fd, size);
  fs.writeSync(fd, "marker", 4831838208);
  fs.closeSync(fd);
  const server = await start(model, "--root", plain, "--port", "0");
  equal((await status(server, 200, "GET", "/")).body.toString(), "plain", "a plain root");
  equal((await status(server, 200, "GET", "/sub/")).body.toString(), "below", "index.html of a folder");
  await status(server, 404, "GET", "/sub");
  const answer = await status(server, 206, "GET", "/large.bin", "Range: bytes=4831838208-4831838213");
  equal(answer.body.toString(), "marker", "bytes beyond 4 GiB");
  equal(answer.headers["content-range"], `bytes 4831838208-4831838213/${size}`, "Content-Range beyond 4 GiB");
  equal((await status(server, 206, "GET", "/large.bin", "Range: bytes=-4")).body.length, 4, "the end of a large file");
  equal((await ask(server, "HEAD", "/large.bin")).headers["content-length"], String(size), "length of a large file");
  // What a client gives up in the middle of a large answer, nobody waits for.
  const quitter = net.connect(server.port, "127.0.0.1", () =>
    quitter.write(`GET /large.bin HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`));
  await new Promise((resolve) => quitter.once("data", resolve));
  quitter.destroy();
  await status(server, 200, "GET", "/");
  equal(await stop(server), 0, "exit code after Ctrl-C");
  fs.rmSync(path.join(plain, "large.bin"));
  // The root's demo model is served as a model, unless a file of its name is given.
  fs.mkdirSync(path.join(plain, "models"));
  fs.copyFileSync(other, path.join(plain, "models/demo.slm2"));
  for (const [given, names, bytes] of [[[], "demo.slm2", other], [[model], "demo.slm2", model],
    [[`${other}`], `${path.basename(other)} demo.slm2`, other]]) {
    const again = await start(...given, "--root", plain, "--port", "0");
    const { models } = JSON.parse((await ask(again, "GET", "/models/index.json")).body.toString());
    equal(models.map((m) => m.name).join(" "), names, "the models of a root with a demo model");
    const demo = await status(again, 200, "GET", "/models/demo.slm2");
    check(demo.body.equals(fs.readFileSync(bytes)), "the demo model");
    equal(demo.headers.etag, `"${models.at(-1).identity}"`, "its tag");
    await stop(again);
  }
  fs.writeFileSync(path.join(plain, "models/demo.slm2"), "broken");
  refused("a broken demo model", 1, "demo.slm2", "--root", plain, "--port", "0");
}

async function testPort() {
  const first = await start(model, "--root", root, "--port", "0"), port = String(first.port);
  refused("a second server on the port", 1, port, model, "--root", root, "--port", port);
  equal((await ask(first, "GET", "/a.js")).status, 200, "the first server goes on");
  const held = net.connect(first.port, "127.0.0.1").on("error", () => {}); // an open connection at the end: TIME_WAIT is ours
  await new Promise((resolve) => held.write(`GET /a.js HTTP/1.1\r\nHost: ${first.host}\r\n\r\n`, resolve));
  await new Promise((resolve) => held.once("data", resolve));
  equal(await stop(first), 0, "exit code after Ctrl-C");
  equal(first.err, "", "stderr of a quiet server");
  equal(first.out.split("\n").length, 2, "lines on stdout");
  const again = await start(model, "--root", root, "--port", port);
  equal(String(again.port), port, "the same port at once");
  held.destroy();
  equal(await stop(again), 0, "exit code after Ctrl-C");
}

async function testVerbose() {
  const server = await start(model, "--root", root, "--port", "0", "--verbose");
  await status(server, 200, "GET", "/a.js?x");
  await status(server, 421, "GET", "/", "Host: evil.example");
  await status(server, 206, "GET", "/a.js", "Range: bytes=1-3");
  await status(server, 400, "GET", "/\x1b[31m");
  equal(await stop(server), 0, "exit code");
  const lines = server.err.trimEnd().split("\n");
  equal(lines.length, 4, "lines of the log");
  for (const [i, text] of [" 200 GET /a.js?x 12", " 421 GET / ", " 206 GET /a.js 3", " 400 GET /?[31m "].entries())
    check(/^ +[0-9]+\.[0-9]{3} /.test(lines[i]) && lines[i].includes(text), "a line of the log", lines[i]);
}

async function testLoopback6() {
  let server;
  try {
    server = await start(model, "--root", root, "--port", "0", "--host", "::1");
  } catch {
    return console.log("  serve: no IPv6 here, left out");
  }
  equal(server.address, "[::1]", "address");
  await status(server, 200, "GET", "/a.js");
  equal((await status(server, 308, "GET", "/a?b", `Host: localhost:${server.port}`)).headers.location,
    `http://${server.host}/a?b`, "to [::1]");
  await status(server, 421, "GET", "/", `Host: 127.0.0.1:${server.port}`);
  equal(await stop(server), 0, "exit code");
}

async function testTls() {
  const cert = path.join(work, "cert.pem"), key = path.join(work, "key.pem"), at = ["--root", root, "--port", "0"];
  const made = spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
    "-days", "2", "-subj", "/CN=slm2", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", cert]);
  if (made.status !== 0) return console.log("  serve: no openssl here, TLS is left out");
  refused("an open address without TLS", 2, "--cert", model, ...at, "--host", "0.0.0.0");
  refused("a name without TLS", 2, "--cert", model, ...at, "--host", "box.example");
  refused("--cert alone", 2, "--key", model, ...at, "--cert", cert);
  refused("--key alone", 2, "--cert", model, ...at, "--key", key);
  refused("a certificate that is none", 1, "libmicrohttpd", model, ...at, "--cert", path.join(root, "a.js"), "--key", key);
  refused("an address of another machine", 1, "cannot be opened", model, ...at, "--host", "203.0.113.77", "--cert", cert,
    "--key", key);
  refused("no address at all", 1, "--host", model, ...at, "--host", "a b", "--cert", cert, "--key", key);
  refused("no such certificate", 1, "nowhere", model, ...at, "--cert", path.join(work, "nowhere"), "--key", key);
  refused("a folder as key", 1, "folder", model, ...at, "--cert", cert, "--key", work);
  for (const address of ["127.0.0.1", "0.0.0.0"]) {
    const server = await start(model, ...at, "--host", address, "--cert", cert, "--key", key);
    equal(server.scheme, "https", "scheme");
    const get = (options) => new Promise((resolve, reject) => {
      const common = { host: "127.0.0.1", port: server.port, ca: fs.readFileSync(cert), agent: false };
      https.get({ ...common, checkServerIdentity: () => undefined, ...options }, (res) => {
        const pieces = [];
        res.on("data", (d) => pieces.push(d));
        res.on("end", () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(pieces) }));
      }).on("error", reject);
    });
    const whole = await get({ path: `/models/${path.basename(model)}` });
    check(whole.status === 200 && whole.body.equals(fs.readFileSync(model)), "a model over TLS");
    checkHeaders(whole, "over TLS");
    equal((await get({ path: "/a.js", headers: { Range: "bytes=5-6" } })).body.toString(), "is", "a range over TLS");
    equal((await get({ path: "/", headers: { Host: "evil.example" } })).status, 421, "a foreign host over TLS");
    const moved = await get({ path: "/a?b", headers: { Host: `localhost:${server.port}` } });
    equal(moved.headers.location, `https://127.0.0.1:${server.port}/a?b`, "to the address");
    const old = { path: "/", maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" };
    equal(await get(old).then(() => "served", () => "refused"), "refused", "TLS 1.1");
    const plain = await exchange(server, `GET / HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`).catch(() => Buffer.alloc(0));
    check(!plain.includes("200 OK"), "plain http to a TLS port");
    equal(await stop(server), 0, "exit code");
  }
}

function testUsage() {
  const at = ["--root", root, "--port", "0"], broken = path.join(work, "broken.slm2"), twin = path.join(outside,
    path.basename(model));
  fs.copyFileSync(model, broken);
  fs.truncateSync(broken, fs.statSync(model).size - 1);
  fs.copyFileSync(model, twin);
  fs.copyFileSync(model, path.join(outside, "index.json"));
  fs.copyFileSync(model, path.join(outside, ".hidden.slm2"));
  fs.copyFileSync(model, path.join(outside, "back\\slash.slm2"));
  refused("a file that is no model", 1, "a.js", path.join(root, "a.js"), ...at);
  refused("an empty file", 1, "empty.txt", path.join(root, "empty.txt"), ...at);
  refused("a model cut short", 1, "broken.slm2", broken, ...at);
  refused("no such file", 1, "nowhere", path.join(work, "nowhere"), ...at);
  refused("a folder", 1, "is a folder", work, ...at);
  refused("a pipe", 1, "is not a regular file", path.join(root, "pipe.txt"), ...at);
  refused("two of one name", 2, path.basename(model), model, twin, ...at);
  for (const name of ["index.json", ".hidden.slm2", "back\\slash.slm2"]) refused(`a model called ${name}`, 1, "rename",
    path.join(outside, name), ...at);
  refused("no such root", 1, "nowhere", model, "--port", "0", "--root", path.join(work, "nowhere"));
  refused("a file as root", 1, "a.js", model, "--port", "0", "--root", path.join(root, "a.js"));
  refused("a root without a page", 1, "index.html", model, "--port", "0", "--root", outside);
  refused("a port too large", 2, "--port", model, "--root", root, "--port", "65536");
  refused("a port that is none", 2, "--port", model, "--root", root, "--port", "http");
  refused("certificates that are too large", 1, "PEM", model, ...at, "--cert", model, "--key", model);
  refused("too many models", 2, "unexpected argument", ...Array.from({ length: 17 }, () => model), ...at);
}

const server = await start(model, served, "--root", root, "--port", "0");
check(server.out.endsWith("with 2 models; Ctrl-C ends it\n"), "the line of the server", server.out);
for (const test of [testFiles, testPaths, testHosts, testMethods, testConditions, testRanges, testConnections, testRandom,
  testModels]) await test(server);
equal(await stop(server), 0, "exit code after Ctrl-C");
equal(server.err, "", "stderr");
for (const test of [testLarge, testPort, testVerbose, testLoopback6, testTls, testUsage]) await test();
console.log(failures === 0 ? `  ok serve: ${checks} checks` : `  FAIL serve: ${failures} of ${checks} checks`);
process.exit(failures === 0 ? 0 : 1);
