/**
 * features.js: what this browser and this page can do, and in plain words what is missing. WebAssembly's features are asked
 * for by validating tiny modules that contain the very instruction that matters: an engine that lacks it refuses the module,
 * and some engines know a proposal's name but not all of its instructions.
 */

/** A module of one function with this body (after two i32 zeros are at hand as needed) and a memory of a page.
 * @param {number[]} body @param {boolean} [shared] @returns {Uint8Array<ArrayBuffer>} */
function probe(body, shared = false) {
  const section = (/** @type {number} */ id, /** @type {number[]} */ bytes) => [id, bytes.length, ...bytes];
  const code = [0, ...body, 0x0b];
  return new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 0, 0]), ...section(3, [1, 0]), ...section(5, [1, shared ? 3 : 1, 1, 1]),
    ...section(10, [1, code.length, ...code]),
  ]);
}
const ZERO = [0x41, 0], SPLAT = [...ZERO, 0xfd, 0x0f], DROP = 0x1a;
export const PROBES = Object.freeze({
  threads: probe([...ZERO, 0xfe, 0x10, 2, 0, DROP], true), /* i32.atomic.load */
  bulk: probe([...ZERO, ...ZERO, ...ZERO, 0xfc, 0x0b, 0]), /* memory.fill */
  simd: probe([...SPLAT, ...SPLAT, 0xfd, 0xba, 1, DROP]), /* i32x4.dot_i16x8_s */
  saturating: probe([0x43, 0, 0, 0, 0, 0xfc, 0, DROP]), /* i32.trunc_sat_f32_s */
  relaxed: probe([...SPLAT, ...SPLAT, ...SPLAT, 0xfd, 0x93, 2, DROP]), /* i32x4.relaxed_dot_i8x16_i7x16_add_s */
});

/** @param {Uint8Array<ArrayBuffer>} bytes */
const valid = (bytes) => typeof WebAssembly === "object" && WebAssembly.validate(bytes);

/**
 * @typedef {object} Capabilities
 * @property {boolean} secure https, or the machine itself
 * @property {boolean} isolated crossOriginIsolated
 * @property {boolean} sharedMemory SharedArrayBuffer
 * @property {boolean} wasm
 * @property {boolean} threads WebAssembly's atomics
 * @property {boolean} bulk bulk memory
 * @property {boolean} simd
 * @property {boolean} relaxed relaxed SIMD with the one dot product that is used
 * @property {boolean} waitAsync
 * @property {boolean} storage OPFS; whether it can be written in a worker, the store finds out
 * @property {boolean} locks Web Locks
 * @property {boolean} persist
 * @property {number} cores as the browser says; some say too many
 * @property {number | null} memoryGiB as the browser says, rounded and capped by it; null where it does not say
 */

/** @returns {Capabilities} */
export function probeFeatures() {
  const nav = /** @type {any} */ (globalThis.navigator ?? {});
  return {
    secure: globalThis.isSecureContext === true,
    isolated: globalThis.crossOriginIsolated === true,
    sharedMemory: typeof SharedArrayBuffer === "function",
    wasm: typeof WebAssembly === "object",
    threads: valid(PROBES.threads),
    bulk: valid(PROBES.bulk),
    simd: valid(PROBES.simd) && valid(PROBES.saturating),
    relaxed: valid(PROBES.relaxed) && valid(PROBES.saturating),
    waitAsync: typeof Atomics === "object" && typeof (/** @type {any} */ (Atomics).waitAsync) === "function",
    storage: typeof nav.storage?.getDirectory === "function",
    locks: typeof nav.locks?.request === "function",
    persist: typeof nav.storage?.persist === "function",
    cores: Number.isInteger(nav.hardwareConcurrency) && nav.hardwareConcurrency > 0 ? nav.hardwareConcurrency : 1,
    memoryGiB: typeof nav.deviceMemory === "number" ? nav.deviceMemory : null,
  };
}

/** @typedef {{missing: string, fatal: boolean, why: string, todo: string}} Lack */

/** @type {[keyof Capabilities, boolean, string, string][]} */
const LACKS = [
  ["wasm", true, "This browser does not run WebAssembly, or the page's Content-Security-Policy forbids it.",
    "Use a current browser; a policy must allow script-src 'wasm-unsafe-eval'."],
  ["secure", true, "The page is not in a secure context, where browsers share no memory between threads.",
    "Open it as https://, or as http://127.0.0.1 on this machine."],
  ["isolated", true, "The page is not cross-origin isolated, so threads cannot share the model's memory.",
    "The server must send Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp with the " +
    "page, its scripts and workers. `slm2 serve` does; a static host can use the service worker that `make site` writes."],
  ["sharedMemory", true, "This browser has no SharedArrayBuffer although the page is isolated.",
    "Use a current Chromium, Firefox or Safari."],
  ["threads", true, "This browser's WebAssembly has no atomics.", "Use a browser released after 2021."],
  ["bulk", true, "This browser's WebAssembly has no bulk memory instructions.", "Use a browser released after 2021."],
  ["simd", false, "This browser's WebAssembly has no vectors; answers are the same, but come several times slower.",
    "Use a browser released after 2023."],
  ["storage", false, "This browser has no private file system (OPFS); models stay in memory and are read again each time.",
    "Use a current browser, and not a private window."],
  ["locks", false, "This browser has no Web Locks; two tabs may load the same model.", "Load it in one tab only."],
  ["waitAsync", false, "This browser has no Atomics.waitAsync; messages and timers are used instead.", "Nothing to do."],
];

/** What is missing, and what to do about it; the first is the one to mend first. @param {Capabilities} c @returns {Lack[]} */
export function lacks(c) {
  const out = LACKS.filter(([key]) => c[key] !== true && !(key === "sharedMemory" && !c.isolated) &&
    !(key === "isolated" && !c.secure));
  return out.map(([missing, fatal, why, todo]) => ({ missing, fatal, why, todo }));
}

/** Modules that this engine takes, best first. @param {Capabilities} c @returns {("relaxed" | "simd" | "scalar")[]} */
export function admitted(c) {
  return [.../** @type {const} */ (["relaxed", "simd"]).filter((kind) => c[kind]), "scalar"];
}
