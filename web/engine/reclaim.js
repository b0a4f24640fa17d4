/**
 * reclaim.js: a memory goes back to the system when no thread knows it any more. The page's own thread allocates so little that
 * it may not collect its garbage for minutes, and a model that was unloaded, or that the same tab had before it was reloaded,
 * would lie beside the next one. So a buffer that is larger than anything real, and that nobody touches, tells the collector that
 * there is work: engines count what buffers could take, and collect at once.
 */
import { deferred, sleep, turn } from "./wait.js";

const WORTH = 1 << 26; /* smaller memories are not waited for */
const PRESSURES = [2 ** 33, 2 ** 32]; /* bytes of address space for a moment, none ever resident; WebKit has buffers up to 2 ** 32 */
const MOST_MS = 600, PAUSE_MS = 20, SHORT_MS = 5;

/** Memories that this page has given up and that are still there. Not asked for by a WeakRef: to look at one keeps it alive while
 * the collector marks. */
let left = 0;
let gone = deferred();
const registry = new FinalizationRegistry(() => {
  left--;
  gone.done(undefined);
  gone = deferred();
});
/** How often to press for what a page before this one may have left in the same tab, as after a reload. */ let inherited = 2;

/** Whoever calls this gives the memory up. @param {WebAssembly.Memory} memory */
export function giveUp(memory) {
  if (memory.buffer.byteLength < WORTH) return;
  left++;
  registry.register(memory, undefined);
}

/* The largest that can be had. */
function press() {
  for (const bytes of PRESSURES) {
    try {
      return void new ArrayBuffer(bytes).byteLength;
    } catch {
      continue;
    }
  }
}

/** Resolves when all of them are gone, or after 0.6 seconds. */
export async function reclaimed() {
  for (const end = performance.now() + MOST_MS; (left > 0 || inherited > 0) && performance.now() < end;) {
    await turn(); /* whoever knew the memory in this turn still holds it */
    press();
    inherited--;
    await Promise.race([gone.promise, sleep(inherited > 0 ? SHORT_MS : PAUSE_MS)]);
  }
}
