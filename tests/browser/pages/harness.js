/* The page of test_harness.mjs: globalThis.here(task, ...args) runs a task here, inWorker(...) in a worker. */
import { tasks } from "./tasks.js";

globalThis.here = (task, ...args) => tasks[task](...args);

let worker = null;
let failed = null; /* why the worker is of no use */
const waiting = new Map();
const fail = (why) => {
  failed = why;
  for (const { reject } of waiting.values()) reject(new Error(why));
  waiting.clear();
};
/** Starts a worker from this address in place of the one before; "" only ends that. */
globalThis.useWorker = (url) => {
  worker?.terminate();
  failed = null;
  worker = url ? new Worker(url, { type: "module" }) : null;
  worker?.addEventListener("error", (event) => {
    if (event.message === undefined) fail("the worker did not start");
  });
  worker?.addEventListener("message", ({ data: { id, value, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new Error(error));
    else resolve(value);
  });
};
globalThis.inWorker = (task, ...args) => new Promise((resolve, reject) => {
  if (!worker) globalThis.useWorker("worker.js");
  if (failed) throw new Error(failed);
  const id = crypto.randomUUID();
  waiting.set(id, { resolve, reject });
  worker.postMessage({ id, task, args });
});
