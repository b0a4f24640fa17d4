// [D19] [D20] [D26]: from logits to ids. A stage whose parameter means "off" is not entered [D21].

import { createHash } from 'node:crypto';
import { allFinite, exp32, fround, log32 } from './num.mjs';

const rotate = (x, n) => ((x << n) | (x >>> (32 - n))) >>> 0;

// rand_core's seed_from_u64: PCG32 (XSH-RR), the state advanced before each output; 8 words of key.
function expandSeed(seed) {
  const mask = (1n << 64n) - 1n;
  let state = BigInt(seed) & mask;
  return Array.from({ length: 8 }, () => {
    state = (state * 6364136223846793005n + 11634580027462260723n) & mask;
    const x = Number((((state >> 18n) ^ state) >> 27n) & 0xffffffffn), turn = Number(state >> 59n);
    return rotate(x, 32 - turn & 31);
  });
}

// ChaCha with 8 rounds: words 12 and 13 are the block counter, 14 and 15 the stream, 0.
export function* chacha8(seed) {
  const key = expandSeed(seed);
  for (let block = 0n; ; block++) {
    const start = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, ...key,
      Number(block & 0xffffffffn), Number(block >> 32n), 0, 0];
    const s = start.slice();
    const quarter = (a, b, c, d) => {
      for (const [x, y, z, n] of [[a, b, d, 16], [c, d, b, 12], [a, b, d, 8], [c, d, b, 7]]) {
        s[x] = (s[x] + s[y]) >>> 0;
        s[z] = rotate((s[z] ^ s[x]) >>> 0, n);
      }
    };
    for (let round = 0; round < 8; round += 2) {
      for (let i = 0; i < 4; i++) quarter(i, i + 4, i + 8, i + 12);
      for (let i = 0; i < 4; i++) quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
    }
    for (let i = 0; i < 16; i++) yield (s[i] + start[i]) >>> 0;
  }
}

const sumOf = values => values.reduce((acc, v) => fround(acc + v), 0); // [D6]
const normalised = p => { const sum = sumOf(p); return p.map(v => fround(v / sum)); };

function finite(z, what) {
  if (!allFinite(z)) throw new Error(`NUMERICAL: ${what}`);
}

// [D19]. random: the words of [D20]; one is taken unless T is 0.
export function sample(logits, exists, context, { T, K, P, M, R }, random) {
  const z = Float32Array.from(logits);
  finite(z, 'logits');
  const ids = [...z.keys()].filter(id => exists[id]);
  if (R !== 1) for (const id of new Set(context)) if (exists[id]) z[id] = z[id] > 0 ? z[id] / R : z[id] * R;
  finite(z, 'penalised logits');
  ids.sort((a, b) => z[b] - z[a] || a - b);
  if (T === 0) return ids[0];
  if (K > 0 && K < ids.length) ids.length = K;
  let p = normalised(ids.map(id => exp32(fround(fround(z[id] - z[ids[0]]) / T))));
  if (P < 1) {
    let sum = 0;
    const last = p.findIndex(v => (sum = fround(sum + v)) > P);
    p = normalised(last < 0 ? p : p.slice(0, last + 1));
  }
  if (M > 0) p = normalised(p.filter(v => v >= fround(M * p[0]))); // p descends: a prefix
  let sum = 0;
  const C = p.map(v => (sum = fround(sum + v)));
  const u = (random.next().value >>> 8) * 2 ** -24, limit = fround(u * sum);
  return ids[C.findIndex(c => c > limit)];
}

// [D26]
export function logProbability(z, id) {
  const m = z.reduce((a, b) => Math.max(a, b)), s = new Float32Array(8);
  z.forEach((v, i) => { s[i % 8] += exp32(fround(v - m)); });
  const w = fround(fround(fround(s[0] + s[4]) + fround(s[2] + s[6])) + fround(fround(s[1] + s[5]) + fround(s[3] + s[7])));
  return fround(fround(z[id] - m) - log32(w));
}

// Parameters are decimal texts. The digest is that of `slm2 run --json`: id as u32 and logprob as f32 of every token.
export function answer(session, prompt, { count, seed, T, K, P, M, R }) {
  const { meta, exists, identity } = session.model, ends = new Set(meta.eos_token_ids.split(',').map(Number));
  const parameters = { T: fround(+T), K: +K, P: fround(+P), M: fround(+M), R: fround(+R) };
  const timeline = [], ids = [], hash = createHash('sha256'), random = chacha8(seed);
  let logits, finish = 'length';
  for (const id of prompt) { logits = session.step(id); timeline.push(id); }
  while (ids.length < count) {
    if (ids.length) { logits = session.step(ids.at(-1)); timeline.push(ids.at(-1)); }
    const id = sample(logits, exists, timeline, parameters, random), record = Buffer.alloc(8);
    record.writeUInt32LE(id, 0);
    record.writeFloatLE(logProbability(logits, id), 4);
    hash.update(record);
    ids.push(id);
    if (ends.has(id)) { finish = 'stop'; break; }
  }
  return { ids, finish, model: identity, digest: hash.digest('hex') };
}
