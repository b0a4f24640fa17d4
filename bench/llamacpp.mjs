// One timed run of llama.cpp (npm's node-llama-cpp) on the CPU, as JSON on one line: bench.mjs runs it in turns with
// `slm2 bench`, in a process of its own, so that its peak memory is its own.
//
//   node bench/llamacpp.mjs FILE.gguf THREADS CONTEXT PREFILL DECODE TOKENS
//
// PREFILL and DECODE are lists like 128,512 as in `slm2 bench`; the ids are the same ones. NODE_LLAMA_CPP names the folder
// that holds node_modules. Keys and values are f16, llama.cpp's default; sampling is greedy.
import {createRequire} from 'node:module';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [, , gguf, threadsText, contextText, prefillText, decodeText, tokensText] = process.argv;
const [threads, contextSize, tokens] = [threadsText, contextText, tokensText].map(Number);
const list = text => text === '' ? [] : text.split(',').map(Number);
const from = createRequire(join(resolve(process.env.NODE_LLAMA_CPP ?? '.'), 'package.json'));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(from.resolve('node-llama-cpp')));

const llama = await getLlama({gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: threads});
let start = performance.now();
const model = await llama.loadModel({modelPath: gguf});
const vocab = Number(process.env.SLM2_BENCH_VOCAB);
const ids = n => Array.from({length: n}, (_, i) => (i + 1) * 2654435761 % vocab);
const context = await model.createContext({contextSize, threads, batchSize: 512, flashAttention: false});
const loadMs = performance.now() - start;
const sequence = context.getSequence();

// Milliseconds to the first token after prompt, and then for each of the n - 1 that follow.
async function evaluate(prompt, n) {
  await sequence.clearHistory();
  const begin = performance.now();
  let first = 0, last = 0, count = 0;
  for await (const _ of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    last = performance.now();
    if (count++ === 0) first = last;
    if (count === n) break;
  }
  return {first: first - begin, each: (last - first) / (count - 1), count};
}

await evaluate(ids(1), 1);
const warmMs = performance.now() - start;
const prefill = [], decode = [];
for (const n of list(prefillText)) prefill.push({tokens: n, tokens_per_second: n * 1000 / (await evaluate(ids(n), 1)).first});
for (const n of list(decodeText)) {
  const {each, count} = await evaluate(ids(Math.max(n, 1)), tokens + 1);
  decode.push({after: n, tokens_per_second: 1000 / each, tokens: count - 1});
}
const result = {release: llama.llamaCppRelease?.release ?? 'unknown', load_ms: loadMs, first_token_warm_ms: warmMs, prefill, decode,
  peak_rss: process.resourceUsage().maxRSS * 1024};
console.log(JSON.stringify(result));
await context.dispose();
await model.dispose();
process.exit(0);
