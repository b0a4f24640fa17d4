/**
 * mailbox.js: serves the reads and writes that slm2_web_convert asks for (docs/PROTOCOL.md, "Control block"). Runs in the
 * store worker; the core asks from the convert worker and sleeps meanwhile.
 */
import { CONTROL, MAIL, WORD } from "./protocol.js";

const PHASES = ["", "compare", "hash", "convert", "verify"];
const sleep = (/** @type {number} */ ms) => new Promise((done) => setTimeout(done, ms));

/**
 * @param {WebAssembly.Memory} memory the conversion's
 * @param {Promise<any>} ended what the convert worker says at its end
 * @param {AbortSignal} signal stops the core by its cancel word
 * @param {{read: (offset: number, n: number) => Promise<Uint8Array>, write: (offset: number, bytes: Uint8Array) => Promise<void>,
 *   progress: (phase: string, done: number, total: number) => void}} host
 * @returns {Promise<any>} what ended says; a failure of the host is thrown instead
 */
export async function serve(memory, ended, signal, host) {
  const words = new Int32Array(memory.buffer, CONTROL, 64), view = new DataView(memory.buffer, CONTROL, 256);
  const low = (/** @type {number} */ word) => Number(view.getBigUint64(4 * word, true));
  /** @type {any} */ let result, failure;
  let over = false;
  void ended.then((value) => { over = true; result = value; });
  const cancel = () => Atomics.store(words, WORD.CANCEL, 1);
  signal.addEventListener("abort", cancel);
  try {
    while (!over) {
      if (signal.reason?.dead) throw signal.reason;
      const state = Atomics.load(words, WORD.MAIL_STATE);
      if (state !== MAIL.ASKED) {
        const wait = Atomics.waitAsync?.(words, WORD.MAIL_STATE, state, 100);
        await Promise.race([wait === undefined ? sleep(1) : wait.value, ended]);
        continue;
      }
      const at = view.getUint32(4 * WORD.MAIL_ADDRESS, true), n = view.getUint32(4 * WORD.MAIL_BYTES, true);
      const offset = low(WORD.MAIL_OFFSET);
      try {
        signal.throwIfAborted();
        switch (words[WORD.MAIL_OP]) {
          case 1: new Uint8Array(memory.buffer, at, n).set(await host.read(offset, n)); break;
          case 2: await host.write(offset, new Uint8Array(memory.buffer, at, n).slice()); break;
          case 3: host.progress(PHASES[words[WORD.MAIL_PHASE]] ?? "convert", low(WORD.MAIL_DONE), low(WORD.MAIL_TOTAL)); break;
          default: throw new Error(`the mailbox holds the unknown operation ${words[WORD.MAIL_OP]}`);
        }
        Atomics.store(words, WORD.MAIL_STATE, MAIL.ANSWERED);
      } catch (e) {
        failure ??= e;
        cancel();
        Atomics.store(words, WORD.MAIL_STATE, MAIL.FAILED);
      }
      Atomics.notify(words, WORD.MAIL_STATE);
    }
  } finally {
    signal.removeEventListener("abort", cancel);
  }
  if (failure !== undefined) throw failure;
  return result;
}
