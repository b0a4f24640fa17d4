/** lock.js: one owner of a model among all tabs of the origin (Web Locks), and the mark of a load under way. */
import { Slm2Error } from "./error.js";
import { sleep } from "./wait.js";

const RETRY_MS = 800, GAP_MS = 50; /* a page that is reloaded still holds its locks for a moment */

/** @param {string} name @param {LockOptions} options @param {() => void} lost @returns {Promise<(() => void) | null>} */
function request(name, options, lost) {
  return new Promise((got, failed) => {
    let held = false, release = () => {};
    const kept = new Promise((done) => { release = () => done(undefined); });
    navigator.locks.request(name, options, (lock) => {
      if (lock === null) return got(null);
      held = true;
      got(release);
      return kept;
    }).catch((e) => (held ? lost() : failed(e)));
  });
}

/**
 * Holds a model for this page. Resolves with what lets go of it; IN_USE within a second when another tab has it.
 * @param {string} id @param {boolean} takeOver takes it from the other tab @param {() => void} lost another tab took it
 * @returns {Promise<() => void>}
 */
export async function holdModel(id, takeOver, lost) {
  if (navigator.locks === undefined) return () => {};
  const name = `slm2:model:${id}`;
  for (const end = performance.now() + RETRY_MS; ;) {
    const release = await request(name, takeOver ? { steal: true } : { ifAvailable: true }, lost);
    if (release !== null) return release;
    if (performance.now() > end)
      throw new Slm2Error("IN_USE", "another tab of this browser has loaded this model: use it there, or take it over", { id });
    await sleep(GAP_MS);
  }
}

/** @typedef {{model: string, name: string, context: number, kv: string, profile: string, pages: number, at: string}} LoadMark */

const MARK = "slm2:loading";

/** Remembers what is being loaded, for the case that the browser ends the page for want of memory. Returns what forgets it.
 * @param {LoadMark} mark @returns {Promise<() => void>} */
export async function markLoad(mark) {
  const release = navigator.locks === undefined ? () => {} : await request(MARK, { mode: "shared" }, () => {});
  write(JSON.stringify(mark));
  return () => {
    write(null);
    release?.();
  };
}

/** The load that never ended, unless another tab is at it right now. @returns {Promise<LoadMark | null>} */
export async function lastFailedLoad() {
  try {
    const text = localStorage.getItem(MARK);
    if (text === null) return null;
    const { held = [] } = await navigator.locks?.query() ?? {};
    return held.some((lock) => lock.name === MARK) ? null : JSON.parse(text);
  } catch {
    return null; /* no storage, or not ours: then nothing is known */
  }
}
export const forgetFailedLoad = () => write(null);

/** @param {string | null} text */
function write(text) {
  try {
    if (text === null) localStorage.removeItem(MARK);
    else localStorage.setItem(MARK, text);
  } catch {
    /* A page without storage has no memory of failed loads. */
  }
}
