// The digests of tests/golden/digests.txt in WebAssembly (tests/wasm/digest.c), by 1, 2 and 3 threads that share one memory.
// Usage: node tests/wasm/digest.mjs digest.wasm [--all] : compares with the file's first part, --all with the whole file.
// DEMO and DIGESTS name other files, as in tests/golden/run.sh, whose lines these are.
import { readFileSync } from "node:fs";
import { open } from "./threads.mjs";

const [path, all] = process.argv.slice(2);
const demo = process.env.DEMO || "models/demo.slm2", digests = process.env.DIGESTS || "tests/golden/digests.txt";
const bytesOfModule = readFileSync(path), bytesOfDemo = readFileSync(demo);
const want = readFileSync(digests, "utf8").split(all ? "\0" : "# More")[0].split("\n")
  .filter((line) => line && !line.startsWith("#"));

async function run(threads) {
  const { c, close, at: bytes } = await open(bytesOfModule, threads);
  const text = (at) => {
    const copy = bytes(at, 256).slice();
    return new TextDecoder().decode(copy.subarray(0, copy.indexOf(0)));
  };
  const place = (source) => {
    const at = c.take(source.length);
    bytes(at, source.length).set(source);
    return at;
  };
  const placeText = (s) => place(new TextEncoder().encode(s + "\0"));
  const words = (array) => place(new Uint8Array(array.buffer));
  function check(status, what) {
    if (status !== 0) throw new Error(`${what}: status ${status}: ${text(c.message())}`);
    return text(c.result());
  }

  const lines = [], failures = [], profiles = ["f32", "q8"], kvs = ["f32", "f16"], PANELS = 1, ROWS = 0;
  const start = c.take(0);

  const read = (bytes) => ({ at: place(bytes), n: bytes.length });
  function synth(shape, form) {
    const file = { at: c.take(8 << 20), n: 0 }, nAt = c.take(4);
    check(c.synth(placeText(shape), form, file.at, nAt), `synth ${shape}`);
    file.n = new DataView(bytes(nAt, 4).slice().buffer).getUint32(0, true);
    return file;
  }
  function fileLine(name, file) {
    lines.push(`${name} ${check(c.file_digest(file.at, file.n), name)}`);
  }
  // Logits of n ids, on several paths that must agree.
  function model(name, n, paths) {
    const mark = c.take(0), ids = words(Uint32Array.from({ length: n }, (_, i) => (i * i * 7 + 13 * i + 5) % 280));
    for (const [p, profile] of profiles.entries())
      for (const [k, kv] of kvs.entries()) {
        const inner = c.take(0);
        const made = paths.map(([file, chunk]) => {
          const hex = check(c.digest(file.at, file.n, ids, n, p, k, chunk || n), name);
          c.put_back(inner);
          return hex;
        });
        if (new Set(made).size !== 1) failures.push(`${name} ${profile} ${kv}: ${made}`);
        lines.push(`${name}/logits/${profile}/kv-${kv} ${made[0]}`);
      }
    c.put_back(mark);
  }
  function answers(name, file, maxTokens) {
    const messages = (content) => JSON.stringify([{ role: "user", content }]);
    const own = (temperature, ...rest) => words(Float32Array.of(temperature, ...rest));
    const mark = c.take(0);
    for (const [p, profile] of profiles.entries())
      for (const [kind, content, seed, sampler] of [
        ["greedy", "What is the capital of France?", 0, [0, 0, 1, 0, 1]],
        ["seed-7", "Tell me a story.", 7, null],
        ["all-stages", "Tell me a story about a fox.", 99, [1.3, 40, 0.9, 0.02, 1.1]],
      ]) {
        const json = new TextEncoder().encode(messages(content));
        const settings = sampler ? own(...sampler) : 0;
        const hex = check(c.answer(file.at, file.n, place(json), json.length, p, maxTokens, settings, seed), kind);
        lines.push(`${name}/${kind}/${profile} ${hex}`);
        c.put_back(mark);
      }
  }

  const synthetic = {};
  for (const shape of ["tiny", "small"]) {
    synthetic[shape] = synth(shape, PANELS);
    synthetic[`${shape}-rows`] = synth(shape, ROWS);
    fileLine(`${shape}/file`, synthetic[shape]);
  }
  const { tiny, small } = synthetic;
  model("tiny16", 16, [[tiny], [tiny, 1], [tiny, 2], [tiny, 7], [synthetic["tiny-rows"]]]);
  model("small8", 8, [[small], [small, 3], [synthetic["small-rows"]]]);
  const demoFile = read(bytesOfDemo);
  fileLine("demo/file", demoFile);
  model("demo8", 8, [[demoFile], [demoFile, 1]]);
  answers("demo8", demoFile, 8);
  if (all) {
    model("tiny", 160, [[tiny], [tiny, 32], [synthetic["tiny-rows"]]]);
    model("small", 160, [[small], [small, 7], [synthetic["small-rows"]]]);
    model("demo", 160, [[demoFile], [demoFile, 32]]);
    answers("demo", demoFile, 4096);
  }
  c.put_back(start);
  await close();
  for (const line of want) if (!lines.includes(line)) failures.push(`missing: ${line}`);
  for (const line of lines) if (!want.includes(line)) failures.push(`differs: ${line}`);
  if (failures.length === 0) return;
  console.log(`FAIL golden in ${path}, ${threads} threads:\n${failures.join("\n")}`);
  process.exit(1);
}

for (const threads of [1, 2, 3]) await run(threads);
console.log(`ok golden in ${path.split("/").at(-2)} wasm32: ${want.length} digests by 1, 2 and 3 threads`);
