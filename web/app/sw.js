/**
 * sw.js: the app without a network. VERSION and FILES are written by the build (tools/web_site.mjs): the files are one
 * set, fetched whole and checked by their SHA-256 before any of it is used, and replaced whole. Models and everything else
 * pass by this worker untouched. Answers carry the isolation headers, so that a host that sends none works too.
 */
const VERSION = "@VERSION@";
const FILES = /** @type {Record<string, string>} */ ({/* @FILES@ */});
const PREFIX = "slm2-app-";
const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy": "@CSP@",
};
const worker = /** @type {any} */ (self); /* a ServiceWorkerGlobalScope, which the type checker does not know beside a page's */
const here = new URL("./", self.location.href);

/** @param {Response} response @returns {Response} */
function isolated(response) {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

async function install() {
  const cache = await caches.open(PREFIX + VERSION);
  try {
    await Promise.all(Object.entries(FILES).map(async ([path, want]) => {
      const response = await fetch(new URL(path, here), { cache: "no-cache" });
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
      const bytes = await response.clone().arrayBuffer(), sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
      const got = Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("");
      if (got !== want) throw new Error(`${path}: the server's file is of another version`);
      await cache.put(new URL(path, here), response);
    }));
  } catch (e) {
    await caches.delete(PREFIX + VERSION);
    throw e;
  }
}

/** The set of this version, and no other. The claim is not waited for: Firefox ends it when a tab that is on its way here has
 * arrived, and lets that tab arrive when this worker is active. */
async function activate() {
  for (const name of await caches.keys())
    if (name.startsWith(PREFIX) && name !== PREFIX + VERSION) await caches.delete(name);
  void worker.clients.claim();
}

/** @param {string} path @param {Request} request */
async function answer(path, request) {
  const cached = await (await caches.open(PREFIX + VERSION)).match(new URL(path, here));
  return isolated(cached ?? await fetch(request));
}

worker.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(install()));
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(activate()));
worker.addEventListener("message", (/** @type {MessageEvent} */ event) => {
  if (event.data === "activate") void worker.skipWaiting();
});
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || !url.href.startsWith(here.href)) return;
  const path = url.pathname.slice(here.pathname.length) || "index.html";
  if (path in FILES) event.respondWith(answer(path, event.request));
});
