// Does llama.cpp read what `slm2 convert FILE.slm2 OUT.gguf` writes, and does it mean the same model?
//
//   npm install --ignore-scripts node-llama-cpp@3.22.1     (anywhere; set NODE_LLAMA_CPP to its folder when it is not here)
//   node bench/llamacpp_gguf.mjs build/slm2 FILE.slm2 [PROMPTS] [TOKENS]
//
// Exports the file, loads it in llama.cpp on the CPU and compares two things: the ids of texts, tokenised with and without
// special tokens, and greedy answers to prompts made of those texts. llama.cpp computes in another order (it quantises
// activations, like our q8 profile, but sums differently), so near-ties may go the other way: a difference is listed
// with our top-2 margin and fails only when that margin is above 2 % of the largest logit. Known differences are kept out of
// the texts: llama.cpp does not normalise (NFC), and without special tokens it still sees the user-defined ones (<think>).
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [, , slm2, file, nPrompts = '12', nTokens = '24'] = process.argv;
if (!file) {
  console.error('usage: node bench/llamacpp_gguf.mjs SLM2 FILE.slm2 [PROMPTS] [TOKENS]');
  process.exit(2);
}
const from = createRequire(join(resolve(process.env.NODE_LLAMA_CPP ?? '.'), 'package.json'));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(from.resolve('node-llama-cpp')));

const texts = ['Once upon a time', 'What is the capital of France?', 'def f(x):\n    return x + 1\n', '1234567890 + 98 = ',
  "It's we'll THEY'VE a'ſb", '  two  spaces\n\n\nand lines \n', 'naïve café Größe ÅΩ', '中文字符和日本語の文章。', '😀🫠 emoji 👩‍👩‍👧',
  'Tell me a story.', 'The opposite of hot is', '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
  'a<|fim_prefix|>b<|endoftext|>c<tool_call>d', '\t\ttabs\tand\r\nCRLF', 'x'.repeat(300)];

const work = mkdtempSync(join(tmpdir(), 'slm2-gguf-'));
const run = (input, ...args) => execFileSync(slm2, args, {input, encoding: 'utf8', maxBuffer: 1 << 28});
const ids = (text, specials) => JSON.parse(run(text, 'tokenize', file, '--json', ...(specials ? ['--specials'] : []))).ids;

// Logits of the last position, of all ids in one call.
function lastLogits(prompt) {
  const out = join(work, 'logits');
  run('', 'logits', file, '--ids', prompt.join(','), '--out', out);
  const all = new Float32Array(readFileSync(out).buffer);
  return all.subarray(all.length - all.length / prompt.length);
}

let failures = 0;
const gguf = join(work, 'model.gguf');
run('', 'convert', file, gguf);
const llama = await getLlama({gpu: false, build: 'never', logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: gguf});
let same = 0, compared = 0;
for (const text of texts) {
  for (const specials of text.includes('<') ? [true] : [true, false]) {
    compared++;
    const theirs = Array.from(model.tokenize(text, specials)), ours = ids(text, specials);
    if (theirs.join() === ours.join()) same++;
    else {
      failures++;
      console.log(`tokens differ, specials ${specials}: ${JSON.stringify(text)}\n  ours   ${ours}\n  theirs ${theirs}`);
    }
  }
}
console.log(`tokenizer: ${same} of ${compared} id lists are the same`);

let steps = 0, agreed = 0;
const context = await model.createContext({contextSize: 512, threads: 2, flashAttention: false});
const sequence = context.getSequence();
for (const text of texts.slice(0, Number(nPrompts))) {
  const prompt = ids(text, true);
  await sequence.clearHistory();
  const theirs = [];
  for await (const id of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    theirs.push(Number(id));
    if (theirs.length >= Number(nTokens)) break;
  }
  for (let i = 0; i < theirs.length; i++) { // at each of their steps, what we would have said
    const logits = lastLogits([...prompt, ...theirs.slice(0, i)]);
    let best = 0, second = -1, top = 0;
    for (let k = 1; k < logits.length; k++) {
      if (logits[k] > logits[best]) [best, second] = [k, best];
      else if (second < 0 || logits[k] > logits[second]) second = k;
      top = Math.max(top, Math.abs(logits[k]));
    }
    steps++;
    if (best === theirs[i]) agreed++;
    else {
      const margin = logits[best] - logits[theirs[i]];
      const near = margin <= 0.02 * top;
      if (!near) failures++;
      console.log(`${near ? 'near-tie' : 'DIFFERENT'} after ${JSON.stringify(text)} + ${i}: ours ${best}, theirs ${theirs[i]}, ` +
        `margin ${margin.toFixed(4)} of max ${top.toFixed(2)}`);
    }
  }
}
console.log(`greedy: ${agreed} of ${steps} steps agree`);
await context.dispose();
await model.dispose();
rmSync(work, {recursive: true});
console.log(failures === 0 ? 'ok llamacpp_gguf' : `FAIL llamacpp_gguf: ${failures}`);
process.exit(failures === 0 ? 0 : 1);
