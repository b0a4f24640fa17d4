/** wait.js: ways to wait that never block. */

/** A promise that others settle. @returns {{promise: Promise<any>, done: (value: any) => void, fail: (error: unknown) => void}} */
export function deferred() {
  /** @type {any} */ const out = {};
  out.promise = new Promise((done, fail) => Object.assign(out, { done, fail }));
  out.promise.catch(() => {}); /* whoever awaits it sees the failure; nobody awaiting is no failure of its own */
  return out;
}

/** @param {number} ms @returns {Promise<void>} */
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Like the promise, but fails when it takes longer than so many seconds. They are counted one by one: a machine that slept, or a
 * page that was stopped, is not late. @template T @param {Promise<T>} promise @param {number} seconds
 * @param {() => Error} late @returns {Promise<T>} */
export function inTime(promise, seconds, late) {
  return new Promise((done, fail) => {
    let left = seconds;
    const timer = setInterval(() => {
      if (--left > 0) return;
      clearInterval(timer);
      fail(late());
    }, 1000);
    promise.then(done, fail).finally(() => clearInterval(timer));
  });
}

const channel = new MessageChannel();
/** @type {(() => void)[]} */ const turns = [];
channel.port1.onmessage = () => turns.shift()?.();
/** @type {any} */ (channel.port1).unref?.();
/** A turn of the event loop; unlike a timer's it costs no milliseconds. @returns {Promise<void>} */
export const turn = () => new Promise((done) => {
  turns.push(done);
  channel.port2.postMessage(0);
});

const visible = () => typeof document === "object" && document.visibilityState === "visible" && typeof requestAnimationFrame === "function";
const FRAME_MS = 250; /* a page that shows no frames for this long is served by timers */

/** The next frame of a page that is seen, the next turn of any other. @returns {Promise<void>} */
export function frame() {
  if (!visible()) return turn();
  return new Promise((done) => {
    const finish = () => {
      cancelAnimationFrame(handle);
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", finish);
      done();
    };
    const handle = requestAnimationFrame(finish), timer = setTimeout(finish, FRAME_MS);
    document.addEventListener("visibilitychange", finish);
  });
}

const POLL_MS = 16;
export const HAS_WAIT_ASYNC = typeof Atomics === "object" && typeof (/** @type {any} */ (Atomics).waitAsync) === "function";

/** Resolves soon after the word has another value than this. @param {Int32Array} words @param {number} index
 * @param {number} value @returns {Promise<unknown>} */
export async function changed(words, index, value) {
  if (HAS_WAIT_ASYNC) return /** @type {any} */ (Atomics).waitAsync(words, index, value).value;
  while (Atomics.load(words, index) === value) await (visible() ? frame() : sleep(POLL_MS));
}
