/**
 * reclaim.js: a memory goes back to the system when no thread knows it any more. The page's own thread allocates so little
 * that it may not collect its garbage for minutes, and a model that was unloaded would lie beside the next one. So buffers
 * that nobody touches tell the collector that there is work, until it has done it.
 */
import { sleep } from "./wait.js";

const WORTH = 1 << 26; /* smaller memories are not waited for */
const BYTES = 1 << 25, MOST = 24, PAUSE_MS = 25;

/** Memories that this page has given up and that may still be there. @type {WeakRef<WebAssembly.Memory>[]} */
let left = [];

/** Whoever calls this gives the memory up. @param {WebAssembly.Memory} memory */
export function giveUp(memory) {
  if (memory.buffer.byteLength >= WORTH) left.push(new WeakRef(memory));
}

/** Resolves when all of them are gone, or after 0.6 seconds. */
export async function reclaimed() {
  for (let i = 0; i < MOST; i++) {
    left = left.filter((memory) => memory.deref() !== undefined);
    if (left.length === 0) return;
    void new ArrayBuffer(BYTES).byteLength;
    await sleep(PAUSE_MS); /* what deref has shown is kept until the end of a turn */
  }
}
