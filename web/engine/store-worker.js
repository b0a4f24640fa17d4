/**
 * store-worker.js: the models of this origin. Everything that touches files happens here, off the page: import, resume,
 * verification, conversion (the arithmetic of it in a convert worker), loading into an engine's memory.
 *
 * In the origin's private file system, under slm2/models:
 *   IDENTITY.part, IDENTITY.state   an import under way: bytes whose header was accepted first, and where they come from
 *   gguf-KEY.part, gguf-KEY.state   a conversion under way
 *   loading.mark                    the load that is under way [R148]
 *   IDENTITY.slm2, IDENTITY.seal    a model: every chunk was verified; the seal is written last [K20]
 * A file without a seal counts for nothing but its chunks, each of which is hashed again before it is believed.
 *
 * The page asks {id, op, args}; answers are {id, say} for progress, {id, need} for a convert worker, {id, value} or
 * {id, error}. {abort: id} aborts. store.js is the other side.
 */
import { CHUNK, Core } from "./core.js";
import { Slm2Error } from "./error.js";
import { serve } from "./mailbox.js";
import { hex } from "./messages.js";
import { Folder, readAt, writeAt } from "./opfs.js";
import { CONTROL, MARK_FILE, WORD } from "./protocol.js";
import { fileSource, urlSource } from "./source.js";

/** @typedef {import("./source.js").Source} Source
 *  @typedef {import("./core.js").Header} Header
 *  @typedef {(progress: {phase: string, loaded: number, total: number, chunk?: number}) => void} Say
 *  @typedef {string | {url: string} | {file: File}} ModelRef
 *  @typedef {{version: 1, identity: string, bytes: number, name: string, license: string, source: string, parameters: number,
 *    maxPositions: number, imported: string}} Seal
 *  @typedef {{signal: AbortSignal, say: Say, need: (what: string) => Promise<any>}} Task */

const READ_PIECE = 8 << 20; /* of a load: what is read between two looks at the abort */
const FLUSH_EACH = 8;       /* chunks */

/** @type {Core} */ let core;
/** @type {string} */ let base;

/** @param {Uint8Array<ArrayBuffer>} bytes */
const sha256 = async (bytes) => hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
const chunkBytes = (/** @type {Header} */ h, /** @type {number} */ i) => Math.min(CHUNK, h.dataBytes - i * CHUNK);
const dataAt = (/** @type {Header} */ h, /** @type {number} */ i) => h.bytes - h.dataBytes + i * CHUNK;

/** Lets messages in between two pieces of synchronous work; a timer would cost 4 ms. */
const channel = new MessageChannel();
/** @type {(() => void)[]} */ const turns = [];
channel.port1.onmessage = () => turns.shift()?.();
const turn = () => new Promise((/** @type {(v: void) => void} */ done) => {
  turns.push(done);
  channel.port2.postMessage(0);
});

/** @param {ModelRef} model @param {AbortSignal} signal @returns {Promise<Source>} */
async function sourceOf(model, signal) {
  if (typeof model === "object" && model !== null && "file" in model && model.file instanceof Blob) return fileSource(model.file);
  if (typeof model === "object" && model !== null && "url" in model) return urlSource(model.url, base, signal);
  throw new Slm2Error("ARGUMENT", "a model is the identity of a stored one, {file} or {url}", {});
}

/** The header of a source, checked, and the bytes it was read from; core then speaks of this file.
 * @param {Source} source @param {AbortSignal} signal */
async function headerOf(source, signal) {
  if (source.bytes < 8)
    throw new Slm2Error("FORMAT", `${source.where}: ${source.bytes} bytes are too few for a model`, { bytes: source.bytes });
  let prefix = await source.read(0, Math.min(1 << 16, source.bytes), signal);
  const need = core.need(prefix, source.bytes, source.where);
  if (need > prefix.length) prefix = await source.read(0, need, signal);
  prefix = prefix.subarray(0, need);
  return { prefix, header: core.header(prefix, source.bytes, source.where) };
}

/* --- what is stored ---------------------------------------------------------- */

/** @param {Folder} folder @param {string} id @returns {Promise<Seal | null>} */
async function sealOf(folder, id) {
  const seal = await folder.json(`${id}.seal`);
  if (seal === null || seal.version !== 1 || seal.identity !== id) return null;
  const file = await folder.file(`${id}.slm2`);
  return file !== null && file.size === seal.bytes ? seal : null;
}

/** @param {string} id @returns {Promise<{folder: Folder, seal: Seal}>} */
async function stored(id) {
  const folder = await Folder.open();
  const seal = /^[0-9a-f]{64}$/.test(id) ? await sealOf(folder, id) : null;
  if (seal === null) throw new Slm2Error("NOT_FOUND", `no model ${id.slice(0, 12)}… is stored in this browser`, { id });
  return { folder, seal };
}

async function list() {
  const folder = await Folder.open(), names = await folder.names(), out = [];
  for (const name of names) {
    const [, key, kind] = /^([0-9a-f]{64}|gguf-[0-9a-f]{16})\.(seal|state)$/.exec(name) ?? [];
    if (kind === "seal") {
      const seal = await sealOf(folder, key);
      if (seal !== null) out.push({ id: key, ...seal, sealed: true, have: seal.bytes });
    } else if (kind === "state" && !names.includes(`${key}.seal`)) {
      const state = await folder.json(name), part = await folder.file(`${key}.part`) ?? await folder.file(`${key}.slm2`);
      if (state !== null) out.push({ id: key, ...state, sealed: false, have: part?.size ?? 0 });
    }
  }
  return out;
}

/** One owner at a time, in whatever tab. @template T @param {string} name @param {string} what @param {() => Promise<T>} task
 * @returns {Promise<T>} */
async function locked(name, what, task) {
  if (navigator.locks === undefined) return task();
  return /** @type {any} */ (navigator.locks).request(name, { ifAvailable: true }, async (/** @type {Lock | null} */ lock) => {
    if (lock === null) throw new Slm2Error("IN_USE", `${what} is in use, here or in another tab`, { lock: name });
    return task();
  });
}

/** @param {string} id */
async function remove(id) {
  if (!/^([0-9a-f]{64}|gguf-[0-9a-f]{16})$/.test(id)) throw new Slm2Error("ARGUMENT", `"${id}" names no stored model`, { id });
  const folder = await Folder.open();
  const removeFiles = async () => {
    for (const kind of ["seal", "slm2", "state", "part"]) await folder.remove(`${id}.${kind}`);
  };
  return locked(`slm2:model:${id}`, `the model ${id.slice(0, 12)}…`,
    () => locked(`slm2:import:${id}`, "an import of it", removeFiles));
}

/* --- import --------------------------------------------------------------------- */

/** @param {number} bytes @param {string} where */
async function checkRoom(bytes, where) {
  const { quota, usage } = await navigator.storage.estimate();
  if (quota !== undefined && usage !== undefined && quota - usage < bytes)
    throw new Slm2Error("QUOTA", `${where}: needs ${bytes} more bytes; this browser gives the page ${quota}, of which ` +
      `${usage} are used`, { bytes, quota, usage });
}

/** Every chunk from the first one on, hashed and pushed through the reader: what the part file has, then the source's.
 * @param {Source} source @param {Header} header @param {import("./opfs.js").Handle} handle @param {Uint8Array} prefix
 * @param {Task} task */
async function fill(source, header, handle, prefix, { signal, say }) {
  const name = source.where, front = prefix.subarray(0, header.bytes - header.dataBytes), total = header.bytes;
  const have = handle.getSize();
  if (have > total) handle.truncate(total);
  core.readerStart(total, name);
  writeAt(handle, front, 0, name);
  core.readerPush(front, name);
  const buffer = new Uint8Array(CHUNK);
  let i = 0;
  for (; i < header.chunks && have >= dataAt(header, i) + chunkBytes(header, i); i++) {
    signal.throwIfAborted();
    const chunk = buffer.subarray(0, chunkBytes(header, i));
    readAt(handle, chunk, dataAt(header, i), name);
    if (await sha256(chunk) !== core.chunkHash(i, total, name)) break;
    core.readerPush(chunk, name);
    say({ phase: "check", loaded: dataAt(header, i) + chunk.length, total });
  }
  if (i === header.chunks) return;
  let filled = 0;
  for await (let piece of source.stream(dataAt(header, i), signal)) {
    while (piece.length > 0 && i < header.chunks) {
      const n = chunkBytes(header, i), part = piece.subarray(0, n - filled);
      buffer.set(part, filled);
      filled += part.length;
      piece = piece.subarray(part.length);
      say({ phase: "import", loaded: dataAt(header, i) + filled, total });
      if (filled < n) continue;
      await accept(source, header, handle, buffer.subarray(0, n), i, { signal, say });
      i++;
      filled = 0;
      if (i % FLUSH_EACH === 0) handle.flush();
    }
    signal.throwIfAborted();
  }
  if (i < header.chunks) throw new Slm2Error("IO", `${name}: ended at chunk ${i} of ${header.chunks}`, { chunk: i });
}

/** Hash, then the reader, then the file: a chunk that is wrong is asked for once more, and said so.
 * @param {Source} source @param {Header} header @param {import("./opfs.js").Handle} handle @param {Uint8Array<ArrayBuffer>} bytes
 * @param {number} i @param {{signal: AbortSignal, say: Say}} task */
async function accept(source, header, handle, bytes, i, { signal, say }) {
  const name = source.where, at = dataAt(header, i), want = core.chunkHash(i, header.bytes, name);
  let got = await sha256(bytes);
  if (got !== want && source.ranges) {
    say({ phase: "again", loaded: at, total: header.bytes, chunk: i });
    bytes.set(await source.read(at, bytes.length, signal));
    got = await sha256(bytes);
  }
  if (got !== want)
    throw new Slm2Error("INTEGRITY", `${name}: chunk ${i} of ${header.chunks} is damaged: its SHA-256 is ${got}, the header ` +
      `states ${want}`, { chunk: i, want, got, offset: at });
  core.readerPush(bytes, name);
  writeAt(handle, bytes, at, name);
}

/** @param {Header} header @param {string} name @returns {Seal} */
const sealFor = (header, name) => ({
  version: 1, identity: header.identity, bytes: header.bytes, name, license: header.license, source: header.source,
  parameters: header.parameters, maxPositions: header.maxPositions, imported: new Date().toISOString(),
});

/** The last step of every import: the name it is found under, then the seal.
 * @param {Folder} folder @param {string} part @param {Seal} seal */
async function activate(folder, part, seal) {
  await folder.rename(`${part}.part`, `${seal.identity}.slm2`);
  await folder.writeJson(`${seal.identity}.seal`, seal);
  await folder.remove(`${part}.state`);
  return { id: seal.identity, ...seal, sealed: true, have: seal.bytes };
}

/** @param {Source} source @param {string} name @param {Task} task */
async function importSlm2(source, name, task) {
  const folder = await Folder.open();
  const { prefix, header } = await headerOf(source, task.signal);
  const id = header.identity;
  return locked(`slm2:import:${id}`, `the import of ${name}`, async () => {
    const seal = await sealOf(folder, id);
    if (seal !== null) return { id, ...seal, sealed: true, have: seal.bytes, already: true };
    if (await folder.file(`${id}.slm2`) !== null) await folder.rename(`${id}.slm2`, `${id}.part`);
    const part = await folder.file(`${id}.part`);
    await checkRoom(header.bytes - (part?.size ?? 0), name);
    await folder.writeJson(`${id}.state`, { identity: id, bytes: header.bytes, name, kind: source.kind, where: source.where });
    await folder.use(`${id}.part`, "write", async (handle) => {
      try {
        await fill(source, header, handle, prefix, task);
      } finally {
        handle.flush();
      }
    });
    return activate(folder, id, sealFor(header, name));
  });
}

/** @param {Source} source @param {string} name @param {Task} task */
async function importGguf(source, name, task) {
  const folder = await Folder.open();
  const key = "gguf-" + (await sha256(new TextEncoder().encode(`${source.where}\n${source.bytes}`))).slice(0, 16);
  const part = `${key}.part`;
  return locked(`slm2:import:${key}`, `the import of ${name}`, async () => {
    await checkRoom(source.bytes, name);
    await folder.writeJson(`${key}.state`, { identity: "", bytes: source.bytes, name, kind: source.kind, where: source.where });
    try {
      await folder.use(part, "write", async (handle) => {
        handle.truncate(0);
        await convert(source, handle, task);
        handle.flush();
      });
      const header = await verifyFile(folder, part, name, task);
      const seal = await sealOf(folder, header.identity);
      if (seal === null) return await activate(folder, key, sealFor(header, name.replace(/\.gguf$/i, "") + ".slm2"));
      await folder.remove(`${key}.state`);
      return { id: header.identity, ...seal, sealed: true, have: seal.bytes, already: true };
    } finally {
      /* A conversion is not resumed: half of one is of no use. */
      await folder.remove(part);
      await folder.remove(`${key}.state`);
    }
  });
}

/** @param {Source} source @param {import("./opfs.js").Handle} handle @param {Task} task */
async function convert(source, handle, { signal, say, need }) {
  /** @type {{memory: WebAssembly.Memory, port: MessagePort}} */
  const { memory, port } = await need("convert");
  const ended = new Promise((/** @type {(v: any) => void} */ done) => { port.onmessage = (e) => done(e.data); });
  port.postMessage({ bytes: source.bytes, where: source.where });
  const result = await serve(memory, ended, signal, {
    read: (offset, n) => source.read(offset, n, signal),
    write: async (offset, bytes) => writeAt(handle, bytes, offset, source.where),
    progress: (phase, loaded, total) => say({ phase, loaded, total }),
  });
  port.close();
  if (result.error) throw Slm2Error.from(result.error);
}

/** @param {ModelRef} model @param {{name?: string}} options @param {Task} task */
async function importModel(model, options, task) {
  const source = await sourceOf(model, task.signal);
  const name = options.name ?? source.name;
  const magic = source.bytes >= 4 ? await source.read(0, 4, task.signal) : new Uint8Array();
  if (new TextDecoder("latin1").decode(magic) !== "GGUF") return importSlm2(source, name, task);
  if (!source.ranges)
    throw new Slm2Error("NETWORK", `${source.where}: the server knows no ranges, which converting a GGUF file needs`, {});
  return importGguf(source, name, task);
}

/* --- verification ------------------------------------------------------------------ */

/** Every byte through the reader. @param {Folder} folder @param {string} file @param {string} name @param {Task} task */
function verifyFile(folder, file, name, { signal, say }) {
  return folder.use(file, "read", async (handle) => {
    const total = handle.getSize(), buffer = new Uint8Array(CHUNK);
    const { header } = await headerOf({
      kind: "file", name, bytes: total, where: name, ranges: true,
      read: async (offset, n) => {
        const bytes = new Uint8Array(n);
        readAt(handle, bytes, offset, name);
        return bytes;
      },
      stream: async function* () {},
    }, signal);
    core.readerStart(total, name);
    for (let at = 0, done = false; !done; at += CHUNK) {
      await turn();
      signal.throwIfAborted();
      const piece = buffer.subarray(0, Math.min(CHUNK, total - at));
      readAt(handle, piece, at, name);
      done = core.readerPush(piece, name);
      say({ phase: "verify", loaded: at + piece.length, total });
    }
    return header;
  });
}

/** A mismatch removes the model [R104]. @param {string} id @param {Task} task */
async function verify(id, task) {
  const { folder, seal } = await stored(id);
  try {
    const header = await verifyFile(folder, `${id}.slm2`, seal.name, task);
    if (header.identity !== id)
      throw new Slm2Error("INTEGRITY", `${seal.name}: the header is that of ${header.identity}, not of ${id}`, { id });
  } catch (e) {
    if (!(e instanceof Slm2Error) || !["INTEGRITY", "FORMAT", "JSON", "WEIGHT", "VERSION"].includes(e.code)) throw e;
    await locked(`slm2:model:${id}`, seal.name, async () => {
      for (const kind of ["seal", "slm2"]) await folder.remove(`${id}.${kind}`);
    });
    throw new Slm2Error(e.code, `${e.message}; it has been removed`, { ...e.details, removed: true });
  }
  return { id, verified: true, bytes: seal.bytes };
}

/* --- for an engine ------------------------------------------------------------------- */

/** What a model is, before it is loaded; core then speaks of it. @param {ModelRef} model @param {Task} task */
async function describe(model, { signal }) {
  if (typeof model !== "string") {
    const source = await sourceOf(model, signal);
    const { header } = await headerOf(source, signal);
    return { ...header, id: header.identity, name: source.name, sealed: false };
  }
  const { folder, seal } = await stored(model);
  const file = /** @type {File} */ (await folder.file(`${model}.slm2`));
  const { header } = await headerOf(fileSource(file), signal);
  if (header.identity !== model)
    throw new Slm2Error("INTEGRITY", `${seal.name}: the stored header is that of ${header.identity}, not of ${model}`,
      { id: model });
  return { ...header, id: model, name: seal.name, sealed: true };
}

/** @param {ModelRef} model @param {import("./core.js").PlanRequest} request @param {Task} task */
async function plan(model, request, task) {
  const about = await describe(model, task);
  return { ...core.plan(about.bytes, request, about.name), about };
}

/** The model's bytes to their place in an engine's memory. The file is open for this long only.
 * @param {ModelRef} model @param {WebAssembly.Memory} memory @param {number} at @param {Task} task */
async function read(model, memory, at, task) {
  const about = await describe(model, task), total = about.bytes;
  if (at % 64 !== 0 || at + total > memory.buffer.byteLength)
    throw new Slm2Error("ARGUMENT", `${about.name}: ${total} bytes at ${at} do not fit a memory of ` +
      `${memory.buffer.byteLength}`, { bytes: total, at });
  const loaded = new Int32Array(memory.buffer, CONTROL + 4 * WORD.LOADED, 1);
  const tell = (/** @type {number} */ n) => {
    Atomics.store(loaded, 0, Math.floor(n / 4096));
    task.say({ phase: "read", loaded: n, total });
  };
  if (typeof model !== "string") await readSource(model, about, memory, at, tell, task.signal);
  else await readStored(model, total, memory, at, tell, task.signal);
  return { sealed: about.sealed, identity: about.identity, bytes: total, name: about.name };
}

/** Straight into the shared memory; by way of a private buffer where the engine refuses that; by slices of a File where
 * there are no synchronous handles.
 * @param {string} id @param {number} total @param {WebAssembly.Memory} memory @param {number} at
 * @param {(n: number) => void} tell @param {AbortSignal} signal */
async function readStored(id, total, memory, at, tell, signal) {
  const folder = await Folder.open(), file = `${id}.slm2`;
  const place = (/** @type {number} */ from) => new Uint8Array(memory.buffer, at + from, Math.min(READ_PIECE, total - from));
  if (!("createSyncAccessHandle" in FileSystemFileHandle.prototype)) {
    const source = fileSource(/** @type {File} */ (await folder.file(file)));
    for (let from = 0; from < total; from += READ_PIECE) {
      signal.throwIfAborted();
      const to = place(from);
      to.set(await source.read(from, to.length, signal));
      tell(from + to.length);
    }
    return;
  }
  await folder.use(file, "read", async (handle) => {
    /** @type {Uint8Array | null} */ let bounce = null;
    for (let from = 0; from < total; from += READ_PIECE) {
      await turn();
      signal.throwIfAborted();
      const to = place(from);
      if (bounce === null) {
        try {
          readAt(handle, to, from, file);
          tell(from + to.length);
          continue;
        } catch (e) {
          if (!(e instanceof TypeError)) throw e;
          bounce = new Uint8Array(READ_PIECE);
        }
      }
      const piece = bounce.subarray(0, to.length);
      readAt(handle, piece, from, file);
      to.set(piece);
      tell(from + to.length);
    }
  });
}

/** Not stored: each chunk is hashed on its way; the engine verifies scales and weights in place.
 * @param {ModelRef} model @param {Header} header @param {WebAssembly.Memory} memory @param {number} at
 * @param {(n: number) => void} tell @param {AbortSignal} signal */
async function readSource(model, header, memory, at, tell, signal) {
  const source = await sourceOf(model, signal);
  let to = at;
  for await (const piece of source.stream(0, signal)) {
    new Uint8Array(memory.buffer, to, piece.length).set(piece);
    to += piece.length;
    tell(to - at);
  }
  if (to - at !== header.bytes)
    throw new Slm2Error("IO", `${source.where}: gave ${to - at} of ${header.bytes} bytes`, { bytes: header.bytes });
}

/* --- messages -------------------------------------------------------------------------- */

/** @type {Record<string, (args: any, task: Task) => Promise<any>>} */
const operations = {
  list,
  estimate: async () => {
    const { quota, usage } = await navigator.storage.estimate();
    return { quota, usage, persisted: await navigator.storage.persisted?.() };
  },
  capabilities: async () => ({
    opfs: typeof navigator.storage?.getDirectory === "function" && await Folder.open().then(() => true, () => false),
    syncAccess: typeof FileSystemFileHandle !== "undefined" && "createSyncAccessHandle" in FileSystemFileHandle.prototype,
    locks: navigator.locks !== undefined,
  }),
  describe: ({ model }, task) => describe(model, task),
  plan: ({ model, request }, task) => plan(model, request, task),
  read: ({ model, memory, at }, task) => read(model, memory, at, task),
  import: ({ model, options }, task) => importModel(model, options, task),
  verify: ({ id }, task) => verify(id, task),
  file: async ({ id }) => (await stored(id)).folder.file(`${id}.slm2`),
  remove: ({ id }) => remove(id),
  mark: async ({ mark }) => {
    const folder = await Folder.open();
    return mark === null ? folder.remove(MARK_FILE) : folder.writeJson(MARK_FILE, mark);
  },
};

/** @type {Map<number, AbortController>} */ const running = new Map();
/** @type {Map<number, (value: any) => void>} */ const needs = new Map();
/* core speaks of one file at a time, so one operation runs at a time; a mark needs no core. */
let last = Promise.resolve();

self.onmessage = ({ data }) => {
  if (data.start) {
    try {
      base = data.start.base;
      core = new Core(data.start.module);
      self.postMessage({ started: true });
    } catch (e) {
      self.postMessage({ started: false, error: Slm2Error.plain(e) });
    }
    return;
  }
  if (data.abort !== undefined) {
    const reason = new Slm2Error("ABORTED", "stopped by the user", {});
    return void running.get(data.abort)?.abort(Object.assign(reason, { dead: data.dead === true }));
  }
  if (data.given !== undefined) return void needs.get(data.given)?.(data.value);
  const { id, op, args } = data, abort = new AbortController();
  running.set(id, abort);
  /** @type {Task} */
  const task = {
    signal: abort.signal,
    say: (say) => self.postMessage({ id, say }),
    need: (what) => new Promise((done) => {
      needs.set(id, done);
      self.postMessage({ id, need: what });
    }),
  };
  const run = async () => {
    try {
      abort.signal.throwIfAborted();
      self.postMessage({ id, value: await operations[op](args, task) });
    } catch (e) {
      self.postMessage({ id, error: Slm2Error.plain(e) });
    } finally {
      running.delete(id);
      needs.delete(id);
    }
  };
  if (op === "mark") void run();
  else last = last.then(run);
};
