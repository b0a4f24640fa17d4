// Tokens per second of a whole model in a module, in node. Usage: node tests/wasm/bench.mjs digest.wasm MODEL.slm2 [SECONDS]
import { openSync, readSync, statSync, readFileSync } from "node:fs";
import { open } from "./threads.mjs";

const [path, model, seconds = "4"] = process.argv.slice(2);
const size = statSync(model).size, PROMPT = 128, PROFILES = ["f32", "q8"], F16 = 1;
for (const threads of [1, 2]) {
  const { c, at, close } = await open(readFileSync(path), threads, { pages: 24000 });
  const file = c.take(size), ids = c.take(4 * PROMPT), start = c.take(0), opened = openSync(model);
  for (let done = 0; done < size;) done += readSync(opened, at(file + done, Math.min(size - done, 1 << 24)));
  new Uint32Array(at(0, 0).buffer, ids, PROMPT).set(Array.from({ length: PROMPT }, (_, i) => (i * i * 7 + 13 * i + 5) % 280));
  for (const [profile, name] of PROFILES.entries()) {
    const label = `${path.split("/").at(-2)} ${name} ${threads} threads`;
    const say = (what, n, ms) => console.log(`${label}: ${what} ${(n / ms * 1000).toFixed(1)} tokens/s`);
    if (c.start_timed(file, size, 2048, profile, F16) !== 0) throw new Error("no session");
    c.append_timed(ids, PROMPT); // warm: compiled, pages touched
    let t0 = performance.now(), n = 0;
    while (performance.now() - t0 < 500 * Number(seconds)) c.append_timed(ids, 1), n++;
    say("decode", n, performance.now() - t0);
    t0 = performance.now(), n = 0;
    while (performance.now() - t0 < 500 * Number(seconds)) c.append_timed(ids, PROMPT), n += PROMPT;
    say("prefill", n, performance.now() - t0);
    c.put_back(start);
  }
  await close();
}
