/**
 * history-worker.js: conversations as files of this origin: slm2/conversations/ID.json. A file is written under another
 * name and renamed, so a crash leaves the old text or the new one. Asked by history.js: {id, op, args}, {id, value | error}.
 */

const NAME = /^[0-9a-f-]{36}$/;

async function folder() {
  const root = await navigator.storage.getDirectory();
  const top = await root.getDirectoryHandle("slm2", { create: true });
  return top.getDirectoryHandle("conversations", { create: true });
}

const operations = /** @type {Record<string, (args: any) => Promise<any>>} */ ({
  /* Whether conversations can be kept at all. */
  probe: async () => {
    const name = crypto.randomUUID(); /* another tab may be at it, too */
    await operations.save({ name, text: "{}" });
    await operations.remove({ name });
  },
  list: async () => {
    const dir = await folder(), out = [];
    for await (const [name, handle] of /** @type {any} */ (dir).entries()) {
      if (name.endsWith(".json")) out.push({ name: name.slice(0, -5), text: await (await handle.getFile()).text() });
    }
    return out;
  },
  save: async ({ name, text }) => {
    if (!NAME.test(name)) throw new Error(`"${name}" is no name of a conversation`);
    const dir = await folder(), file = await dir.getFileHandle(`${name}.new`, { create: true });
    const handle = await /** @type {any} */ (file).createSyncAccessHandle();
    try {
      const bytes = new TextEncoder().encode(text);
      handle.truncate(0);
      if (handle.write(bytes, { at: 0 }) !== bytes.length) throw new Error("the browser's storage is full");
      handle.flush();
    } finally {
      handle.close();
    }
    await /** @type {any} */ (file).move(dir, `${name}.json`);
  },
  remove: async ({ name }) => {
    const dir = await folder();
    await dir.removeEntry(`${name}.json`).catch((e) => { if (e.name !== "NotFoundError") throw e; });
  },
  clear: async () => {
    const root = await navigator.storage.getDirectory();
    await root.removeEntry("slm2", { recursive: true }).catch((e) => { if (e.name !== "NotFoundError") throw e; });
  },
});

/* One after the other: two saves of one conversation must not cross. */
let last = Promise.resolve();
self.onmessage = ({ data: { id, op, args } }) => {
  last = last.then(async () => {
    try {
      self.postMessage({ id, value: await operations[op](args) });
    } catch (e) {
      const { name, message } = /** @type {Error} */ (e);
      self.postMessage({ id, error: `${name}: ${message}` });
    }
  });
};
