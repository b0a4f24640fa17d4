/**
 * source.js: where the bytes of a model come from: a file that the user picked, or an address of the page's own origin.
 * Runs in the store worker. A source is read at any place; an address can also be streamed from a place on.
 *
 * What a server may do wrong is refused by name: an HTML page instead of a model, a compressed body, another range than
 * the one asked for, a file that changes under the import, a body that ends early.
 */
import { Slm2Error } from "./error.js";

/**
 * @typedef {object} Source
 * @property {"file" | "url"} kind
 * @property {string} name the file's name, for people
 * @property {number} bytes size of the whole
 * @property {string} where what to say in messages: the file's name or the address
 * @property {boolean} ranges whether it can be read at any place; if not, only once, from the start
 * @property {(offset: number, n: number, signal: AbortSignal) => Promise<Uint8Array<ArrayBuffer>>} read exactly n bytes
 * @property {(offset: number, signal: AbortSignal) => AsyncGenerator<Uint8Array>} stream pieces of any size from offset on;
 *   a piece is gone when the next one is asked for
 */

const network = (/** @type {string} */ where, /** @type {string} */ why, details = {}) =>
  new Slm2Error("NETWORK", `${where}: ${why}`, { where, ...details });

/** @param {File} file @returns {Source} */
export function fileSource(file) {
  const read = async (/** @type {number} */ offset, /** @type {number} */ n) => {
    try {
      const bytes = new Uint8Array(await file.slice(offset, offset + n).arrayBuffer());
      if (bytes.length === n) return bytes;
    } catch (cause) {
      throw new Slm2Error("IO", `${file.name}: cannot be read at ${offset}: ${/** @type {Error} */ (cause).message}; ` +
        "has it changed since it was picked?", { name: file.name, offset });
    }
    throw new Slm2Error("IO", `${file.name}: ends before ${offset + n}, it had ${file.size} bytes`, { name: file.name, offset });
  };
  async function* stream(/** @type {number} */ offset, /** @type {AbortSignal} */ signal) {
    for (let at = offset; at < file.size; at += PIECE) {
      signal.throwIfAborted();
      yield read(at, Math.min(PIECE, file.size - at));
    }
  }
  return { kind: "file", name: file.name, bytes: file.size, where: file.name, ranges: true, read, stream };
}
const PIECE = 1 << 20;

/** Reads a body into one buffer again and again, where it allows that: as buffers of their own the pieces of a fast server would
 * lie about, a whole model of them, before they are collected as garbage. @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @returns {{read: () => Promise<{done: boolean, value?: Uint8Array}>, cancel: () => Promise<void>}} */
function pieces(body) {
  let reader;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch {
    return body.getReader();
  }
  const byob = reader;
  let room = new ArrayBuffer(PIECE);
  return {
    read: async () => {
      const { done, value } = await byob.read(new Uint8Array(room));
      if (value !== undefined) room = value.buffer;
      return { done, value };
    },
    cancel: () => byob.cancel(),
  };
}

/** The size and the first byte's place that a 206 states; null when it states none. @param {string | null} value */
export function contentRange(value) {
  const m = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(value ?? "");
  if (m === null) return null;
  const [first, last, total] = m.slice(1).map(Number);
  return first <= last && last < total && Number.isSafeInteger(total) ? { first, last, total } : null;
}

/** What every answer must be, whatever was asked. @param {Response} response @param {string} where */
function check(response, where) {
  if (response.status !== 200 && response.status !== 206)
    throw network(where, `the server answered ${response.status} ${response.statusText}`.trimEnd(), { status: response.status });
  const type = (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  if (type === "text/html" || type === "application/xhtml+xml")
    throw network(where, "the server answered with an HTML page, not with a model", { type });
  const encoding = (response.headers.get("content-encoding") ?? "identity").toLowerCase();
  if (encoding !== "identity")
    throw network(where, `the server compresses the model (${encoding}); it must be served as it is`, { encoding });
}

/**
 * Asks for the first bytes, which tells the size and whether there are ranges.
 * @param {string} address absolute, or relative to the page
 * @param {string} base what relative addresses are relative to
 * @param {AbortSignal} signal
 * @returns {Promise<Source>}
 */
export async function urlSource(address, base, signal) {
  const url = new URL(address, base);
  const where = url.pathname;
  if (url.origin !== new URL(base).origin)
    throw new Slm2Error("ARGUMENT", `${url.href}: models are fetched from the page's own origin alone (${new URL(base).origin})`,
      { url: url.href });

  const get = async (/** @type {string | null} */ range, /** @type {AbortSignal} */ aborted) => {
    try {
      return await fetch(url, { headers: range === null ? {} : { Range: range }, signal: aborted, credentials: "same-origin",
        cache: "no-store" });
    } catch (cause) {
      if (aborted.aborted) throw aborted.reason;
      throw network(where, `the server cannot be reached (${/** @type {Error} */ (cause).message})`);
    }
  };

  const first = await get("bytes=0-0", signal);
  check(first, where);
  const etag = first.headers.get("etag");
  const ranges = first.status === 206;
  let bytes = NaN;
  if (ranges) {
    const range = contentRange(first.headers.get("content-range"));
    await first.arrayBuffer().catch(() => {});
    if (range === null || range.first !== 0 || range.last !== 0)
      throw network(where, `asked for byte 0, the server answered "${first.headers.get("content-range")}"`);
    bytes = range.total;
  } else {
    await first.body?.cancel();
    bytes = Number(first.headers.get("content-length") ?? NaN);
    if (!Number.isSafeInteger(bytes)) throw network(where, "the server does not say how long the file is");
  }

  const open = async (/** @type {number} */ offset, /** @type {number} */ end, /** @type {AbortSignal} */ aborted) => {
    const response = await get(ranges ? `bytes=${offset}-${end - 1}` : null, aborted);
    try {
      check(response, where);
      if (response.headers.get("etag") !== etag)
        throw network(where, `the file changed on the server (ETag ${etag}, now ${response.headers.get("etag")})`);
      if (!ranges && response.status === 200) return response;
      const range = response.status === 206 ? contentRange(response.headers.get("content-range")) : null;
      if (range === null || range.first !== offset || range.last !== end - 1 || range.total !== bytes)
        throw network(where, `asked for bytes ${offset} to ${end - 1} of ${bytes}, the server answered ` +
          (response.status === 206 ? `"${response.headers.get("content-range")}"` : "with the whole file"));
      return response;
    } catch (e) {
      await response.body?.cancel().catch(() => {});
      throw e;
    }
  };

  async function* stream(/** @type {number} */ offset, /** @type {AbortSignal} */ aborted) {
    const response = await open(offset, bytes, aborted);
    const next = pieces(/** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body));
    let at = ranges ? offset : 0;
    try {
      for (;;) {
        const { done, value } = await next.read().catch((cause) => {
          if (aborted.aborted) throw aborted.reason;
          throw network(where, `the connection broke at ${at} of ${bytes} bytes (${cause.message})`, { at, bytes });
        });
        if (done || value === undefined) break;
        const skip = Math.max(0, Math.min(value.length, offset - at));
        at += value.length;
        if (at > bytes) throw network(where, `the server sent more than the ${bytes} bytes it had announced`, { bytes });
        if (skip < value.length) yield skip === 0 ? value : value.subarray(skip);
      }
    } finally {
      await next.cancel().catch(() => {});
    }
    if (at !== bytes) throw network(where, `the server sent ${at} of ${bytes} bytes`, { at, bytes });
  }

  const read = async (/** @type {number} */ offset, /** @type {number} */ n, /** @type {AbortSignal} */ aborted) => {
    const out = new Uint8Array(n);
    let filled = 0;
    if (ranges) {
      const response = await open(offset, offset + n, aborted);
      const body = await response.arrayBuffer().catch((cause) => {
        if (aborted.aborted) throw aborted.reason;
        throw network(where, `the connection broke at ${offset} of ${bytes} bytes (${cause.message})`, { at: offset, bytes });
      });
      if (body.byteLength !== n) throw network(where, `asked for ${n} bytes at ${offset}, the server sent ${body.byteLength}`);
      return new Uint8Array(body);
    }
    for await (const piece of stream(offset, aborted)) {
      const part = piece.subarray(0, n - filled);
      out.set(part, filled);
      filled += part.length;
      if (filled === n) break;
    }
    return out;
  };

  const name = decodeURIComponent(where.slice(where.lastIndexOf("/") + 1)) || url.hostname;
  return { kind: "url", name, bytes, where, ranges, read, stream };
}
