/**
 * update.js: the service worker from the page's side. It keeps the app's files for use without a network, supplies the
 * isolation headers where a static host sends none, and takes a new version only when the user says so.
 */
import { notice } from "./dom.js";

const RELOADED = "slm2.reloaded-for-isolation";

export function startUpdates() {
  void register();
}

async function register() {
  const workers = navigator.serviceWorker;
  if (workers === undefined || !isSecureContext) return;
  /* A first visit on a host without isolation headers: once the worker is there, one reload gets them; never a second. */
  if (!crossOriginIsolated) {
    await workers.register("sw.js", { type: "classic", updateViaCache: "none" }).catch(() => {});
    if (sessionStorage.getItem(RELOADED) !== null) return;
    await workers.ready;
    sessionStorage.setItem(RELOADED, "1");
    return location.reload();
  }
  sessionStorage.removeItem(RELOADED);
  try {
    const registration = await workers.register("sw.js", { updateViaCache: "none" });
    if (registration.waiting !== null && workers.controller !== null) offer(registration.waiting);
    registration.addEventListener("updatefound", () => {
      const next = registration.installing;
      next?.addEventListener("statechange", () => {
        if (next.state === "installed" && workers.controller !== null) offer(next);
      });
    });
  } catch (e) {
    notice(`This page cannot be kept for use without a network: ${/** @type {Error} */ (e).message}`, { key: "sw" });
  }
}

/** @param {ServiceWorker} next */
function offer(next) {
  notice("A new version of this page is ready.", { key: "update", actions: [{ label: "Reload to update", run: () => {
    navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
    next.postMessage("activate");
  } }] });
}
