/**
 * update.js: the service worker from the page's side. It keeps the app's files for use without a network, supplies the
 * isolation headers where a static host sends none, and a new version takes over only when the user says so and no tab is
 * in the middle of an answer.
 */
import { notice } from "./dom.js";

const RELOADED = "slm2.reloaded-for-isolation";
const ANSWERING = "slm2:answering"; /* held, shared, by every answer of every tab */

/** Runs work while no new version may take over. @param {() => Promise<void>} work */
export async function duringAnswer(work) {
  if (navigator.locks === undefined) await work();
  else await navigator.locks.request(ANSWERING, { mode: "shared" }, work);
}

/** A first visit on a host without isolation headers: once the worker is there, one reload gets them; never a second.
 * @param {() => void} waiting called when there is something to wait for @returns {Promise<boolean>} the page is reloading */
export async function isolate(waiting) {
  const workers = navigator.serviceWorker;
  if (crossOriginIsolated) sessionStorage.removeItem(RELOADED);
  if (crossOriginIsolated || workers === undefined || !isSecureContext || sessionStorage.getItem(RELOADED) !== null) return false;
  waiting();
  try {
    const registration = await workers.register("sw.js", { updateViaCache: "none" });
    if (!await activated(registration)) return false;
  } catch {
    return false; /* what is missing is said by whoever needs it */
  }
  sessionStorage.setItem(RELOADED, "1");
  location.reload();
  return true;
}

/** @param {ServiceWorkerRegistration} registration @returns {Promise<boolean>} */
function activated(registration) {
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  return new Promise((done) => {
    const look = () => {
      if (worker === null || worker.state === "redundant") done(false);
      else if (worker.state === "activated") done(true);
    };
    worker?.addEventListener("statechange", look);
    look();
  });
}

/** Keeps the files of this page, and offers a newer set when there is one. */
export async function keepUpdated() {
  const workers = navigator.serviceWorker;
  if (workers === undefined || !isSecureContext) return;
  if (workers.controller !== null)
    workers.addEventListener("controllerchange", () => notice("This page was updated in another tab.",
      { key: "update", actions: [{ label: "Reload", run: () => location.reload() }] }), { once: true });
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
    if (workers.controller !== null) return; /* without a network there is nothing new */
    notice(`This page cannot be kept for use without a network: ${/** @type {Error} */ (e).message}`, { key: "sw" });
  }
}

/** @param {ServiceWorker} next */
function offer(next) {
  notice("A new version of this page is ready.", { key: "update", actions: [{ label: "Reload to update", run: async () => {
    navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
    const activate = async () => next.postMessage("activate");
    if (navigator.locks === undefined) return activate();
    const close = notice("The new version takes over when the answer has ended.", { key: "update" });
    await navigator.locks.request(ANSWERING, activate);
    close();
  } }] });
}
