/* Runs tasks on request: {id, task, args} in, {id, value} or {id, error} out. */
import { tasks } from "./tasks.js";

addEventListener("message", async ({ data: { id, task, args } }) => {
  try {
    postMessage({ id, value: await tasks[task](...args) });
  } catch (error) {
    postMessage({ id, error: String(error) });
  }
});
