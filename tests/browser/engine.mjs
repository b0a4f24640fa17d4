/* What the tests of the engine share: the page, models, and the native command's answers. */
import fs from "node:fs";
import path from "node:path";

export const FULL = ["chromium", "firefox"]; /* engines with a store */
export const PROMPTS = ["What is the capital of France?", "Tell me a story.", "Tell me a story about a fox.", "Who are you?",
  "What is 7 plus 5?", "Name three colours.", "Why is the sky blue?", "Write about the sea.", "What do cats eat?", "Good morning!"];

/** The path of a synthetic model; it is made once for a build. @param {import("./harness.mjs").Context} t */
export async function synthetic(t, shape) {
  const file = path.join(t.build, "browser", "models", `${shape}.slm2`);
  if (!fs.existsSync(file)) {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    await t.slm2("synth", `${file}.new`, "--shape", shape, "--seed", "1");
    fs.renameSync(`${file}.new`, file);
  }
  return file;
}

/** A server with the demo as /models/demo.slm2 and these shapes as /models/SHAPE.slm2. */
export async function modelServer(t, ...shapes) {
  const models = { "demo.slm2": "models/demo.slm2" };
  for (const shape of shapes) models[`${shape}.slm2`] = await synthetic(t, shape);
  return t.server({ models });
}

/** Opens the page; run(name, ...args) does what pages/engine.js has under that name. */
export async function openPage(t, server, browser = undefined, query = "") {
  const page = await t.page(`${server.origin}/test/engine.html${query}`, browser);
  await page.waitFor(() => Boolean(globalThis.run));
  const run = (name, ...args) => page.evaluate((which, given) => globalThis.run[which](...given), name, args);
  return { page, run };
}

/** From now on the page has the memories that engines make in globalThis.memories. */
export const keepMemories = (page) => page.evaluate(() => {
  const Memory = WebAssembly.Memory;
  globalThis.memories = [];
  WebAssembly.Memory = class extends Memory {
    constructor(wish) {
      super(wish);
      globalThis.memories.push(this);
    }
  };
});

const answers = new Map(); /* a native answer is asked for once, by however many ways it is compared with */

/** The last line of `slm2 run --json`: what a native build answers. Flags as of the command; --kv f16 is the page's default.
 * @returns {Promise<{digest: string, text: string, finish: string, completion_tokens: number}>} */
export function native(t, model, ...flags) {
  const words = ["run", model, "--json", ...(flags.includes("--kv") ? [] : ["--kv", "f16"]), ...flags];
  const key = words.join("\0");
  if (!answers.has(key)) {
    answers.set(key, t.slm2(...words).then((out) => JSON.parse(out.trimEnd().split("\n").at(-1))));
  }
  return answers.get(key);
}
