/** lock.js: one owner of a model among all tabs of the origin (Web Locks), and the mark of a load under way. */
import { Slm2Error } from "./error.js";
import { MARK_FILE } from "./protocol.js";
import { sleep } from "./wait.js";

/* A page that is reloaded or closed lets go of its locks, but another process tells the browser so, perhaps after the next page
   has asked. Nothing says whether a holder is on its way out: so the lock is queued for, and given up this soon. */
const PATIENCE_MS = 300;

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
  if (takeOver) return /** @type {() => void} */ (await request(name, { steal: true }, lost));
  const patience = new AbortController(), timer = setTimeout(() => patience.abort(), PATIENCE_MS);
  try {
    return /** @type {() => void} */ (await request(name, { signal: patience.signal }, lost));
  } catch (e) {
    if (!patience.signal.aborted) throw e;
    throw new Slm2Error("IN_USE", "another tab of this browser has loaded this model: use it there, or take it over", { id });
  } finally {
    clearTimeout(timer);
  }
}

/** @typedef {{model: string, name: string, context: number, kv: string, profile: string, pages: number, at: string}} LoadMark */

/* The mark is a file in the origin's private file system, written and flushed by the store worker: it survives a kill of the
   whole browser, which localStorage does not. Where there is no such storage, localStorage has it. */
const MARK = "slm2:loading", LEFT = "slm2:left", ANSWER_MS = 2000;

/** Remembers what is being loaded, for the case that the browser ends the page for want of memory. Returns what forgets it.
 * @param {LoadMark} mark @param {import("./store.js").Store} store @returns {Promise<() => Promise<void>>} */
export async function markLoad(mark, store) {
  const release = navigator.locks === undefined ? () => {} : await request(MARK, { mode: "shared" }, () => {});
  let inFile = false;
  try {
    await store.mark(mark);
    inFile = true;
  } catch {
    write(MARK, JSON.stringify(mark));
  }
  return async () => {
    if (inFile) await store.mark(null).catch(() => {});
    write(MARK, null);
    release?.();
  };
}

async function markFile() {
  const root = await navigator.storage.getDirectory();
  const folder = await (await root.getDirectoryHandle("slm2")).getDirectoryHandle("models");
  return { folder, name: MARK_FILE, text: await (await (await folder.getFileHandle(MARK_FILE)).getFile()).text() };
}

/** The load that never ended, unless another tab is at it right now. Null too when storage does not answer.
 * @returns {Promise<LoadMark | null>} */
export function lastFailedLoad() {
  const look = async () => {
    const file = await markFile().catch(() => null), text = file?.text ?? localStorage.getItem(MARK);
    if (text === null) return null;
    const { held = [] } = await navigator.locks?.query() ?? {};
    if (held.some((lock) => lock.name === MARK)) return null;
    const mark = JSON.parse(text);
    return localStorage.getItem(LEFT) === mark.at ? null : mark;
  };
  return Promise.race([look().catch(() => null), sleep(ANSWER_MS).then(() => null)]); /* no storage, or not ours: nothing is known */
}

/** The user has read it. */
export async function forgetFailedLoad() {
  write(MARK, null);
  await markFile().then(({ folder, name }) => folder.removeEntry(name)).catch(() => {});
}

/** The page is being left on purpose, which is no failure; a file cannot be removed any more in that moment.
 * @param {LoadMark} mark */
export function leaveLoad(mark) {
  write(LEFT, mark.at);
  write(MARK, null);
}

/** @param {string} key @param {string | null} text */
function write(key, text) {
  try {
    if (text === null) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
  } catch {
    /* A page without storage has no memory of failed loads. */
  }
}
