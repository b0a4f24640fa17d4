/**
 * opfs.js: the origin private file system, as the store needs it. Runs in the store worker. A file is opened for as long as
 * one task needs it and closed in a finally: a handle held is a model that no other tab can use.
 */
import { Slm2Error } from "./error.js";

const RETRY_MS = 5000, GAP_MS = 50; /* a worker that was ended holds its handles up to 2 s in Chromium (docs/BROWSERS.md) */

/** FileSystemSyncAccessHandle, which only the types of workers have.
 * @typedef {{read: (to: Uint8Array<ArrayBuffer>, options: {at: number}) => number, write: (from: Uint8Array<ArrayBuffer>,
 *   options: {at: number}) => number, truncate: (bytes: number) => void, getSize: () => number, flush: () => void,
 *   close: () => void}} Handle */

/** @param {unknown} cause @param {string} name @param {string} what */
function storageError(cause, name, what) {
  const e = /** @type {DOMException} */ (cause);
  if (e.name === "QuotaExceededError") return new Slm2Error("QUOTA", `${name}: the browser's storage is full`, { name });
  return new Slm2Error("IO", `${name}: ${what}: ${e.name}: ${e.message}`, { name, cause: e.name });
}

export class Folder {
  #dir;
  /** @param {FileSystemDirectoryHandle} dir */
  constructor(dir) { this.#dir = dir; }

  /** The folder of the models; a refusal tells why there is no storage. */
  static async open() {
    if (typeof navigator.storage?.getDirectory !== "function")
      throw new Slm2Error("NO_STORAGE", "this browser has no storage for models (OPFS); they can run from memory", {});
    try {
      const root = await navigator.storage.getDirectory();
      const top = await root.getDirectoryHandle("slm2", { create: true });
      return new Folder(await top.getDirectoryHandle("models", { create: true }));
    } catch (cause) {
      const e = /** @type {DOMException} */ (cause);
      throw new Slm2Error("NO_STORAGE", `this browser refuses storage for models (${e.name}: ${e.message}), as private windows ` +
        "may; models can run from memory", { cause: e.name });
    }
  }

  async names() {
    const out = [];
    for await (const name of /** @type {any} */ (this.#dir).keys()) out.push(name);
    return out.sort();
  }

  /** @param {string} name @returns {Promise<File | null>} */
  async file(name) {
    try {
      return await (await this.#dir.getFileHandle(name)).getFile();
    } catch (cause) {
      if (/** @type {DOMException} */ (cause).name === "NotFoundError") return null;
      throw storageError(cause, name, "cannot be opened");
    }
  }

  /** The JSON object in a file; null when there is none, or none that is whole. @param {string} name */
  async json(name) {
    const file = await this.file(name);
    if (file === null || file.size > 1 << 20) return null;
    try {
      const value = JSON.parse(await file.text());
      return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
    } catch {
      return null;
    }
  }

  /** Opens a file for one task. Another owner's handle is waited for, because a worker that was just ended may still hold it.
   * @template T @param {string} name @param {"read" | "write"} mode @param {(handle: Handle) => Promise<T>} task
   * @returns {Promise<T>} */
  async use(name, mode, task) {
    let handle;
    try {
      const file = await this.#dir.getFileHandle(name, { create: mode === "write" });
      if (typeof (/** @type {any} */ (file).createSyncAccessHandle) !== "function")
        throw new DOMException("no synchronous access", "NotSupportedError");
      handle = await openHandle(file, name, mode);
    } catch (cause) {
      if (cause instanceof Slm2Error) throw cause;
      throw storageError(cause, name, "cannot be opened");
    }
    try {
      return await task(handle);
    } catch (cause) {
      if (cause instanceof DOMException && cause.name !== "AbortError")
        throw storageError(cause, name, mode === "read" ? "cannot be read" : "cannot be written");
      throw cause;
    } finally {
      handle.close();
    }
  }

  /** @param {string} name @param {object} value */
  async writeJson(name, value) {
    await this.use(name, "write", async (handle) => {
      const bytes = new TextEncoder().encode(JSON.stringify(value));
      handle.truncate(0);
      writeAt(handle, bytes, 0, name);
      handle.flush();
    });
  }

  /** @param {string} from @param {string} to */
  async rename(from, to) {
    try {
      await /** @type {any} */ (await this.#dir.getFileHandle(from)).move(this.#dir, to);
    } catch (cause) {
      throw storageError(cause, from, `cannot become ${to}`);
    }
  }

  /** Nothing happens when it is not there. @param {string} name */
  async remove(name) {
    for (const end = performance.now() + RETRY_MS; ;) {
      try {
        await this.#dir.removeEntry(name);
        return;
      } catch (cause) {
        const e = /** @type {DOMException} */ (cause);
        if (e.name === "NotFoundError") return;
        if (e.name !== "NoModificationAllowedError" || performance.now() > end)
          throw storageError(cause, name, "cannot be removed");
        await sleep(GAP_MS);
      }
    }
  }
}

const sleep = (/** @type {number} */ ms) => new Promise((done) => setTimeout(done, ms));

/** @param {any} file @param {string} name @param {"read" | "write"} mode @returns {Promise<Handle>} */
async function openHandle(file, name, mode) {
  for (const end = performance.now() + RETRY_MS; ;) {
    try {
      /* Engines that do not know modes ignore the word. */
      return await file.createSyncAccessHandle(mode === "read" ? { mode: "read-only" } : {});
    } catch (cause) {
      if (/** @type {DOMException} */ (cause).name !== "NoModificationAllowedError") throw cause;
      if (performance.now() > end)
        throw new Slm2Error("IN_USE", `${name}: another tab of this browser is using it`, { name });
      await sleep(GAP_MS);
    }
  }
}

/** All of the bytes, or a refusal: a short write is a full disk. @param {Handle} handle @param {Uint8Array} bytes
 * @param {number} at @param {string} name */
export function writeAt(handle, bytes, at, name) {
  let n;
  try {
    n = handle.write(/** @type {Uint8Array<ArrayBuffer>} */ (bytes), { at });
  } catch (cause) {
    throw storageError(cause, name, `cannot be written at ${at}`);
  }
  if (n !== bytes.length)
    throw new Slm2Error("QUOTA", `${name}: the storage took ${n} of ${bytes.length} bytes at ${at}: it is full`, { name, at });
}

/** @param {Handle} handle @param {Uint8Array} bytes @param {number} at @param {string} name */
export function readAt(handle, bytes, at, name) {
  const n = handle.read(/** @type {Uint8Array<ArrayBuffer>} */ (bytes), { at });
  if (n !== bytes.length)
    throw new Slm2Error("IO", `${name}: read ${n} of ${bytes.length} bytes at ${at}: the file was cut`, { name, at });
}
