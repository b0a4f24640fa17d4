// `make bench`: slm2 and llama.cpp in turns on the same weights, against the floors and goals that slm2 has set itself.
//
//   node bench/bench.mjs SLM2 BUILD
//
// Makes a file of Qwen3-0.6B's shape with synthetic weights (`slm2 synth`), exports it as GGUF, fetches node-llama-cpp
// with npm (prebuilt; no script of a package is run), and takes turns: A B C A B C ... Medians over the rounds; ratios of
// medians. Shared machines change by the minute: only the ratios of one run mean something.
// Environment: ROUNDS (3), MODEL (a .slm2 file instead), PEER=none, FLAGS, COMPILER (for the table's columns).
import {execFileSync} from 'node:child_process';
import {copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync} from 'node:fs';
import {arch, availableParallelism, cpus, platform} from 'node:os';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

const [, , slm2, build] = process.argv;
const here = dirname(fileURLToPath(import.meta.url));
const work = join(build, 'bench');
const rounds = Number(process.env.ROUNDS ?? 3);
if (!build || !(rounds >= 3)) {
  console.error('usage: node bench/bench.mjs SLM2 BUILD, with ROUNDS of 3 or more');
  process.exit(2);
}
const peerVersion = '3.22.1';
const cores = availableParallelism();
const run = (command, args, env = {}) =>
  execFileSync(command, args, {encoding: 'utf8', env: {...process.env, ...env}, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 24});
const reason = error => String(error.stderr || error.message).trim().split('\n').pop().slice(0, 200);

// --- what is compared -------------------------------------------------------------

function makeFile(path, make) {
  if (existsSync(path)) return path;
  const part = path.replace(/(\.\w+)$/, '.part$1');
  make(part);
  renameSync(part, path);
  return path;
}

function findPeer() {
  if (process.env.PEER === 'none') return null;
  const installed = () => existsSync(join(work, 'node_modules/node-llama-cpp')) &&
    existsSync(join(work, `node_modules/@node-llama-cpp/${platform()}-${arch()}`));
  if (installed()) return work;
  try {
    run('npm', ['install', '--prefix', work, '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund',
      `node-llama-cpp@${peerVersion}`, `@node-llama-cpp/${platform()}-${arch()}@${peerVersion}`]);
    if (installed()) return work;
    console.log('llama.cpp is left out: npm installed something else');
  } catch (error) {
    console.log(`llama.cpp is left out: npm install node-llama-cpp@${peerVersion} failed: ${reason(error)}`);
  }
  return null;
}

mkdirSync(work, {recursive: true});
const model = process.env.MODEL ||
  makeFile(join(work, 'qwen3-0.6b.slm2'), path => run(slm2, ['synth', path, '--shape', 'qwen3-0.6b', '--seed', '1']));
const config = JSON.parse(run(slm2, ['inspect', model, '--json'])).config;
let peer = findPeer();
const gguf = peer && (process.env.MODEL ? join(work, 'model.gguf') : join(work, 'qwen3-0.6b.gguf'));
if (peer && process.env.MODEL) run(slm2, ['convert', model, gguf]);
else if (peer) makeFile(gguf, path => run(slm2, ['convert', model, path]));

// --- runs -------------------------------------------------------------------------

const longest = Math.min(4096, config.max_positions - 64);
const loads = [ // at each count of threads; the long context once
  ...[...new Set([1, cores])].map(threads => ({threads, context: 1024, prefill: '128,512', decode: '128'})),
  {threads: cores, context: longest + 64, prefill: '128', decode: String(longest), long: true},
].filter(load => load.context <= config.max_positions && longest > 0);

function runSlm2(load, profile) {
  return JSON.parse(run(slm2, ['bench', model, '--json', '--repeats', '3', '--tokens', '64', '--profile', profile, '--kv', 'f16',
    '--threads', load.threads, '--context', load.context, '--prefill', load.prefill, '--decode', load.decode].map(String)));
}

function runPeer(load) {
  const out = run(process.execPath, [join(here, 'llamacpp.mjs'), resolve(gguf), load.threads, load.context, load.long ? '' : load.prefill,
    load.decode, 64].map(String), {NODE_LLAMA_CPP: resolve(peer), SLM2_BENCH_VOCAB: String(config.vocab)});
  return JSON.parse(out.trim().split('\n').pop());
}

// name of a metric -> value; the same names for both.
function metrics(load, result) {
  const found = {};
  if (result.tokenizer) return {tokenizer: result.tokenizer};
  if (load.long) {
    found[`decode${longest}`] = result.decode[0].tokens_per_second;
    if (result.decode[0].share) found[`share${longest}`] = result.decode[0].share;
    if (result.peak_rss) found[`rss${load.context}`] = result.peak_rss / 1e6;
    return found;
  }
  for (const p of result.prefill) found[`prefill${p.tokens}`] = p.tokens_per_second;
  found.decode = result.decode[0].tokens_per_second;
  if (result.decode[0].share) found.share = result.decode[0].share;
  found.load = result.load_ms;
  found.ttft = result.first_token_warm_ms;
  if (result.first_token_cold_ms) found.ttft_cold = result.first_token_cold_ms;
  if (result.first_token_again_ms) found.ttft_again = result.first_token_again_ms;
  if (result.peak_rss) found.rss = result.peak_rss / 1e6;
  for (const b of result.bandwidth ?? []) if (b.threads === load.threads) found.bandwidth = b.bytes_per_second / 1e9;
  return found;
}

const samples = new Map(); // "runner threads metric" -> values
function note(runner, load, result) {
  for (const [metric, value] of Object.entries(metrics(load, result))) {
    const key = `${runner} ${load.threads} ${metric}`;
    samples.set(key, [...samples.get(key) ?? [], value]);
  }
}
function median(runner, threads, metric) {
  const values = [...samples.get(`${runner} ${threads} ${metric}`) ?? []].sort((a, b) => a - b), middle = values.length >> 1;
  return values.length % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2; // NaN of none
}

// Share of the processors' time that others take while this script waits.
function busyShare() {
  const add = ([idle, all], {times: t}) => [idle + t.idle, all + t.user + t.nice + t.sys + t.irq + t.idle];
  const times = () => cpus().reduce(add, [0, 0]);
  const [idle, all] = times();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  const [idleNow, allNow] = times();
  return 1 - (idleNow - idle) / Math.max(allNow - all, 1);
}
const busy = []; // before each run
let backend = '?', release = '';

function takePeer(load) {
  if (!peer) return;
  try {
    const theirs = runPeer(load);
    release = theirs.release;
    note('peer', load, theirs);
  } catch (error) {
    console.log(`llama.cpp is left out: ${reason(error)}`);
    peer = null;
    samples.forEach((_, key) => key.startsWith('peer ') && samples.delete(key));
  }
}

// MB/s of the tokenizer on this repository's own text, with Qwen3's vocabulary; its output included, its start not.
function takeTokenizer() {
  const folder = join(work, 'tokenizer'), file = join(folder, 'qwen3.slm2');
  try {
    mkdirSync(folder, {recursive: true});
    copyFileSync(run(join(here, '../tools/fetch_tokenizer'), [join(build, 'cache')]).trim(), join(folder, 'tokenizer.json'));
    makeFile(file, path => run(slm2, ['synth', path, '--shape', 'tiny', '--tokenizer', folder]));
    const root = join(here, '..'), names = run('git', ['-C', root, 'ls-files', '*.md', '*.c', '*.h', '*.mjs']).trim().split('\n');
    const text = Buffer.concat(names.map(name => readFileSync(join(root, name))));
    const input = Buffer.concat(Array.from({length: Math.ceil((1 << 23) / text.length)}, () => text));
    const time = bytes => {
      const begin = performance.now();
      execFileSync(slm2, ['tokenize', file], {input: bytes, maxBuffer: 1 << 28});
      return performance.now() - begin;
    };
    time(input);
    for (let i = 0; i < rounds; i++) note('none', {threads: 1}, {tokenizer: input.length / 1000 / (time(input) - time(''))});
  } catch (error) {
    console.log(`the tokenizer is left out: ${reason(error)}`);
  }
}

takeTokenizer();
for (let round = 1; round <= rounds; round++) {
  for (const load of loads) {
    process.stderr.write(`round ${round} of ${rounds}: ${load.threads} thread(s), context ${load.context}\n`);
    for (const profile of ['q8', 'f32']) {
      busy.push(busyShare());
      const ours = runSlm2(load, profile);
      backend = ours.backend;
      note(profile, load, ours);
      if (profile === 'q8') takePeer(load);
    }
  }
}
busy.push(busyShare());
const others = busy.reduce((a, b) => a + b) / busy.length, quiet = others < 0.1;
if (!quiet) console.log(`the machine was busy (${(100 * others).toFixed(0)} % with other work): these figures are not for publishing`);

// --- the table of floors and goals ----------------------------------------------------

const ratio = (profile, threads, metric) => median(profile, threads, metric) / median('peer', threads, metric);
const share = (threads, metric) => median('q8', threads, metric);
const seconds = threads => median('q8', threads, 'ttft') / 1000;
// MiB beyond the file and the keys and values of a context that is full.
function beyond() {
  const {layers, kv_heads: heads, head_dim: width} = config, context = longest + 64;
  return (median('q8', cores, `rss${context}`) * 1e6 - statSync(model).size - 4 * layers * heads * width * context) / 2 ** 20;
}
const rows = [ // what, value, floor, goal; less is better where the floor is above the goal
  ['decode q8, share of the bound, 1 thread', share(1, 'share'), 0.75, 0.9],
  [`decode q8, share of the bound, ${cores} threads`, share(cores, 'share'), 0.72, 0.9],
  ['decode q8 / llama.cpp, 1 thread', ratio('q8', 1, 'decode'), 1.3, 1.6],
  [`decode q8 / llama.cpp, ${cores} threads`, ratio('q8', cores, 'decode'), 1.15, 1.4],
  [`prefill 128 q8 / llama.cpp, ${cores} threads`, ratio('q8', cores, 'prefill128'), 1.6, 2.2],
  [`prefill 512 q8 / llama.cpp, ${cores} threads`, ratio('q8', cores, 'prefill512'), 1.5, 2],
  [`decode f32 / llama.cpp int8, ${cores} threads`, ratio('f32', cores, 'decode'), 1.1, 1.4],
  [`prefill 128 f32 / llama.cpp int8, ${cores} threads`, ratio('f32', cores, 'prefill128'), 0.9, 1.2],
  ['load to first token, warm, seconds', seconds(cores), 0.4, 0.2],
  ['memory beyond file, keys and values, MiB', beyond(), 48, 32],
  [`decode after ${longest} q8, share of the bound`, share(cores, `share${longest}`), 0.65, 0.8],
  [`decode after ${longest} q8 / llama.cpp`, ratio('q8', cores, `decode${longest}`), 1.1, NaN],
  ['tokenizer, MB/s', median('none', 1, 'tokenizer'), 5, 20],
];
function verdict(value, floor, goal) {
  if (Number.isNaN(value)) return 'not measured';
  const sign = goal < floor ? -1 : 1;
  if (sign * value >= sign * goal) return 'goal';
  if (Number.isNaN(goal) && value >= floor) return 'reached';
  return sign * value >= sign * floor ? 'floor' : 'BELOW THE FLOOR';
}
const number = x => Number.isNaN(x) ? '-' : x.toFixed(2);
console.log(`${'native, against PEERS'.padEnd(52)}${'floor'.padStart(8)}${'goal'.padStart(8)}${'here'.padStart(8)}`);
for (const [what, value, floor, goal] of rows)
  console.log(what.padEnd(52) + [floor, goal, value].map(x => number(x).padStart(8)).join('') + '  ' + verdict(value, floor, goal));

// --- the figures -----------------------------------------------------------------------

const git = (...args) => run('git', ['-C', here, ...args]).trim();
let commit = 'unknown';
try {
  commit = git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--untracked-files=no') ? '+' : '');
} catch { /* not a checkout */ }
const cell = x => /[",\n]/.test(x) ? `"${x.replaceAll('"', '""')}"` : x;
const figure = x => Number.isNaN(x) ? '' : String(Number(x.toPrecision(5)));
const about = [`${cores} vCPU`, cpus()[0]?.model.trim() ?? 'unknown', process.env.COMPILER ?? 'unknown', process.env.FLAGS ?? 'unknown', commit];
let csv = 'machine,cpu,compiler,flags,commit,runner,profile,threads,metric,value,peer,ratio\n';
for (const key of [...samples.keys()].filter(k => !k.startsWith('peer '))) {
  const [profile, threads, metric] = key.split(' ');
  const value = median(profile, threads, metric), theirs = median('peer', threads, metric);
  const runner = `slm2 ${backend}${peer ? ` / llama.cpp ${release}` : ''}`;
  csv += [...about, runner, profile, threads, metric, figure(value), figure(theirs), figure(value / theirs)].map(cell).join(',') + '\n';
}
const publish = quiet && !process.env.MODEL;
const folder = publish ? join(here, 'results') : work;
mkdirSync(folder, {recursive: true});
const out = join(folder, `${new Date().toISOString().slice(0, 10)}-native.csv`);
writeFileSync(out, csv);
console.log(`wrote ${out}`);
if (publish) {
  run(process.execPath, [join(here, 'plot.mjs'), out, join(here, '../docs/bench.svg')]);
  console.log('wrote docs/bench.svg');
}
