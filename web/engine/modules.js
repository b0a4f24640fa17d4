/**
 * modules.js: the core's modules: which of them this browser takes, fetched, checked against the hashes that were built with
 * this package, compiled once for all workers, and the fastest of them found by a trial.
 */
import { Slm2Error } from "./error.js";
import { hex } from "./messages.js";

/** @typedef {"scalar" | "simd" | "relaxed"} Kind
 *  @typedef {{kind: Kind, module: WebAssembly.Module, sha256: string, bytes: number}} CompiledModule */

/** @param {URL} url @param {AbortSignal} [signal] */
async function get(url, signal) {
  let response;
  try {
    response = await fetch(url, { signal, credentials: "same-origin" });
  } catch (cause) {
    signal?.throwIfAborted();
    throw new Slm2Error("NETWORK", `${url.pathname}: the server cannot be reached (${/** @type {Error} */ (cause).message})`,
      { url: url.href });
  }
  if (!response.ok)
    throw new Slm2Error("NETWORK", `${url.pathname}: the server answered ${response.status} ${response.statusText}`.trimEnd(),
      { url: url.href, status: response.status });
  return response;
}

/** @param {Kind} kind */
const fileOf = (kind) => `slm2-${kind}.wasm`;

export class Modules {
  /** @type {Promise<Record<string, {sha256: string, bytes: number}>> | null} */ #known = null;
  /** @type {Map<Kind, Promise<CompiledModule>>} */ #compiled = new Map();

  /** @param {URL} folder where the .wasm files and modules.json are */
  constructor(folder) { this.folder = folder; }

  /** @param {Kind} kind @param {AbortSignal} [signal] @returns {Promise<CompiledModule>} */
  get(kind, signal) {
    let compiled = this.#compiled.get(kind);
    if (compiled === undefined) {
      compiled = this.#compile(kind, signal);
      this.#compiled.set(kind, compiled);
      compiled.catch(() => this.#compiled.delete(kind));
    }
    return compiled;
  }

  /** modules.json. @param {AbortSignal} [signal] */
  #built(signal) {
    this.#known ??= get(new URL("modules.json", this.folder), signal).then((response) => response.json());
    this.#known.catch(() => { this.#known = null; });
    return this.#known;
  }

  /** The hashes that the modules must have. @param {Kind[]} kinds @param {AbortSignal} [signal] */
  async hashes(kinds, signal) {
    const known = await this.#built(signal);
    return /** @type {Record<Kind, string>} */ (Object.fromEntries(kinds.map((kind) => [kind, known[fileOf(kind)]?.sha256])));
  }

  /** @param {Kind} kind @param {AbortSignal} [signal] @returns {Promise<CompiledModule>} */
  async #compile(kind, signal) {
    const name = fileOf(kind), url = new URL(name, this.folder);
    const [known, response] = await Promise.all([this.#built(signal), get(url, signal)]);
    const bytes = await response.arrayBuffer(), sha256 = hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
    if (known[name]?.sha256 !== sha256)
      throw new Slm2Error("VERSION", `${name}: its SHA-256 is ${sha256}, modules.json says ${known[name]?.sha256}: the files on the ` +
        "server, or in a cache, are of different versions; reload the page", { name, sha256, expected: known[name]?.sha256 });
    try {
      return { kind, module: await WebAssembly.compile(bytes), sha256, bytes: bytes.byteLength };
    } catch (cause) {
      throw new Slm2Error("UNSUPPORTED", `${name}: this browser does not compile it: ${/** @type {Error} */ (cause).message}`, { name });
    }
  }
}
