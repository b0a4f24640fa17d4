/* What tests ask a page or a worker (worker.js) to do. Results are plain JSON values. */

/** The smallest module: magic and version. */
const EMPTY_MODULE = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
const kept = []; /* what must stay in memory */

const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

export const tasks = {
  state() {
    return {
      isolated: crossOriginIsolated, shared: typeof SharedArrayBuffer !== "undefined",
      locks: "locks" in navigator, opfs: typeof navigator.storage?.getDirectory === "function",
    };
  },
  compile() {
    try {
      new WebAssembly.Module(EMPTY_MODULE);
      return "compiled";
    } catch (error) {
      return error.name;
    }
  },
  /** Fetches all of it; of a body that breaks off, what had come and why. At most `ms` milliseconds. */
  async get(url, headers = {}, ms = 10000) {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), ms);
    const out = { status: 0, headers: {}, length: 0, start: "", sha256: "", failed: "" };
    try {
      const response = await fetch(url, { headers, signal: stop.signal, cache: "no-store" });
      out.status = response.status;
      out.headers = Object.fromEntries(response.headers);
      const parts = [];
      try {
        for (const reader = response.body.getReader(); ;) {
          const { done, value } = await reader.read();
          if (done) break;
          parts.push(value);
          out.length += value.length;
        }
      } catch (error) {
        out.failed = error.name;
      }
      const all = new Uint8Array(out.length);
      let at = 0;
      for (const part of parts) {
        all.set(part, at);
        at += part.length;
      }
      out.start = hex(all.subarray(0, 8));
      out.sha256 = hex(new Uint8Array(await crypto.subtle.digest("SHA-256", all)));
    } catch (error) {
      out.failed = error.name;
    }
    clearTimeout(timer);
    return out;
  },
  /** A WebAssembly memory of so many MiB, written all over. */
  touch(mebibytes) {
    const memory = new WebAssembly.Memory({ initial: mebibytes * 16, maximum: mebibytes * 16, shared: true });
    const bytes = new Uint8Array(memory.buffer);
    for (let at = 0; at < bytes.length; at += 4096) bytes[at] = 1;
    kept.push(memory);
    return bytes.length;
  },
  /** Writes a file to OPFS with a synchronous handle, as the store does. */
  async writeFile(name, text) {
    const root = await navigator.storage.getDirectory();
    const handle = await (await root.getFileHandle(name, { create: true })).createSyncAccessHandle();
    handle.write(new TextEncoder().encode(text));
    handle.flush();
    handle.close();
  },
  async readFile(name) {
    const root = await navigator.storage.getDirectory();
    return (await (await root.getFileHandle(name)).getFile()).text();
  },
  say(text) { console.error(text); },
  throwLater(text) { setTimeout(() => { throw new Error(text); }); },
  rejectLater(text) { Promise.reject(new Error(text)); },
};
