// The second oracle: slm2's forward pass in JavaScript, written from docs/NUMERICS.md, FORMAT.md and MODEL.md alone.
// Rules are cited as [D10]. It shares no code with src/, is slow and short, and must give the same bits.
//
//   node forward.mjs FILE --ids 1,2,3 [--profile f32|q8] [--kv f32|f16]   the line of `slm2 digest`; with lists such
//                                                        as f32,q8 one line for each combination
//   node forward.mjs FILE --ids 1,2,3 --sample N[,SEED,T,K,P,M,R]       an answer of at most N tokens (greedy: N alone)

import { createHash } from 'node:crypto';
import { allFinite, cos32, exp32, fround, inverseSqrt, roundHalfEven, roundToF16, sin32 } from './num.mjs';
import { readModel } from './file.mjs';
import { answer } from './sampler.mjs';

function border(v, what) {
  if (!allFinite(v)) throw new Error(`NUMERICAL: ${what}`); // [D5]
}

// [D7]
function lanes8(length, term) {
  const s = new Float32Array(8);
  for (let i = 0; i < length; i++) s[i % 8] += term(i);
  return fround(fround(fround(s[0] + s[4]) + fround(s[2] + s[6])) + fround(fround(s[1] + s[5]) + fround(s[3] + s[7])));
}

// [D10]
function productF32(w, x) {
  const y = new Float32Array(w.rows), blocks = w.columns / 32, { q, d } = w;
  for (let r = 0; r < w.rows; r++) {
    let acc = 0;
    for (let b = 0; b < blocks; b++) {
      const scale = d[r * blocks + b], row = r * w.columns + 32 * b;
      for (let k = 0; k < 32; k++) acc = fround(acc + fround(x[32 * b + k] * fround(q[row + k] * scale)));
    }
    y[r] = acc;
  }
  return y;
}

// [D11]: the input in blocks of 32.
function quantise(x, what) {
  border(x, what);
  const q = new Int8Array(x.length), a = new Float32Array(x.length / 32);
  for (let b = 0; b < a.length; b++) {
    const block = x.subarray(32 * b, 32 * b + 32);
    const amax = block.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    if (amax < 2 ** -100) continue;
    a[b] = amax / 127;
    const id = fround(127 / amax);
    block.forEach((v, k) => { q[32 * b + k] = Math.max(-127, Math.min(127, roundHalfEven(fround(v * id)))); });
  }
  return { q, a };
}

function productQ8(w, x) {
  const y = new Float32Array(w.rows), blocks = w.columns / 32;
  for (let r = 0; r < w.rows; r++) {
    let acc = 0;
    for (let b = 0; b < blocks; b++) {
      const row = r * w.columns + 32 * b;
      let sum = 0;
      for (let k = 0; k < 32; k++) sum += w.q[row + k] * x.q[32 * b + k];
      acc = fround(acc + fround(sum * fround(w.d[r * blocks + b] * x.a[b])));
    }
    y[r] = acc;
  }
  return y;
}

// [D13]
function rmsNorm(x, weight, eps) {
  let ss = 0;
  for (const v of x) ss += v * v;
  const inv = fround(1 / Math.sqrt(ss / x.length + eps));
  return x.map((v, i) => fround(v * inv) * weight[i]);
}

// [D16]
function swiglu(g, u) {
  return g.map((v, i) => {
    const e = exp32(-Math.abs(v)), below = fround(1 + e);
    return fround(v * fround((v >= 0 ? 1 : e) / below)) * u[i];
  });
}

class Session {
  constructor(model, profile, kv) {
    const meta = model.meta;
    this.model = model;
    this.layers = +meta.num_hidden_layers;
    this.heads = +meta.num_attention_heads;
    this.kvHeads = +meta.num_key_value_heads;
    this.dim = +meta.head_dim;
    this.eps = fround(+meta.rms_norm_eps);
    this.scale = inverseSqrt(this.dim);
    this.store = kv === 'f16' ? v => v.map(roundToF16) : v => v; // [D18]
    const q8 = profile === 'q8';
    this.input = q8 ? quantise : x => x;
    this.product = q8 ? productQ8 : productF32;
    this.cache = Array.from({ length: this.layers }, () => []); // [layer][position]: { k, v }
  }

  // [D14]
  rope(x, angles) {
    const h = this.dim / 2, y = new Float32Array(this.dim);
    for (let i = 0; i < h; i++) {
      const { c, s } = angles[i];
      y[i] = fround(x[i] * c) - fround(x[i + h] * s);
      y[i + h] = fround(x[i + h] * c) + fround(x[i] * s);
    }
    return y;
  }

  normAndTurn(x, weight, angles) {
    const y = new Float32Array(x.length);
    for (let at = 0; at < x.length; at += this.dim)
      y.set(this.rope(rmsNorm(x.subarray(at, at + this.dim), weight, this.eps), angles), at);
    return y;
  }

  // [D15] for one query head
  attend(q, cache, kvAt) {
    const dim = this.dim, n = cache.length;
    const score = Float32Array.from(cache, ({ k }) => fround(lanes8(dim, i => fround(q[i] * k[kvAt + i])) * this.scale));
    border(score, 'attention scores');
    const m = score.reduce((a, b) => Math.max(a, b));
    const e = score.map(s => exp32(fround(s - m)));
    const sum = lanes8(n, t => e[t]);
    const p = e.map(v => v / sum);
    const out = new Float32Array(dim);
    cache.forEach(({ v }, t) => { for (let i = 0; i < dim; i++) out[i] += fround(p[t] * v[kvAt + i]); }); // [D6]
    return out;
  }

  // The logits behind one more id.
  step(id) {
    const { model, dim } = this, embedding = model['model.embed_tokens.weight'], hidden = embedding.columns;
    const position = this.cache[0].length;
    const angles = Array.from(model['rope.inv_freq'], f => {
      const angle = fround(position * f);
      return { c: cos32(angle), s: sin32(angle) };
    });
    const first = id * hidden; // [D12]
    let x = Float32Array.from({ length: hidden }, (_, k) => embedding.q[first + k] * embedding.d[(first + k) >> 5]);
    this.cache.forEach((cache, layer) => {
      const w = name => model[`model.layers.${layer}.${name}.weight`];
      let h = this.input(rmsNorm(x, w('input_layernorm'), this.eps), 'attention input');
      const q = this.normAndTurn(this.product(w('self_attn.q_proj'), h), w('self_attn.q_norm'), angles);
      const k = this.store(this.normAndTurn(this.product(w('self_attn.k_proj'), h), w('self_attn.k_norm'), angles));
      const v = this.store(this.product(w('self_attn.v_proj'), h));
      border(k, 'keys');
      border(v, 'values');
      cache.push({ k, v });
      const heads = new Float32Array(q.length), group = this.heads / this.kvHeads;
      for (let j = 0; j < this.heads; j++)
        heads.set(this.attend(q.subarray(j * dim, (j + 1) * dim), cache, Math.floor(j / group) * dim), j * dim);
      const o = this.product(w('self_attn.o_proj'), this.input(heads, 'attention output'));
      x = x.map((v, i) => v + o[i]); // [D17]
      h = this.input(rmsNorm(x, w('post_attention_layernorm'), this.eps), 'MLP input');
      const a = swiglu(this.product(w('mlp.gate_proj'), h), this.product(w('mlp.up_proj'), h));
      const down = this.product(w('mlp.down_proj'), this.input(a, 'MLP activation'));
      x = x.map((v, i) => v + down[i]);
      border(x, 'residual');
    });
    const logits = this.product(model['lm_head.weight'] ?? embedding,
      this.input(rmsNorm(x, model['model.norm.weight'], this.eps), 'logits input'));
    border(logits, 'logits');
    return logits;
  }
}

function littleEndian(floats) {
  const bytes = Buffer.alloc(4 * floats.length);
  floats.forEach((v, i) => bytes.writeFloatLE(v, 4 * i));
  return bytes;
}

function digestLine(model, ids, profile, kv) {
  const session = new Session(model, profile, kv), hash = createHash('sha256');
  const name = `profile=${profile} kv=${kv} positions=${ids.length}`;
  try {
    for (const id of ids) hash.update(littleEndian(session.step(id)));
  } catch (error) {
    if (!error.message.startsWith('NUMERICAL')) throw error;
    return `${error.message}  ${name}`;
  }
  return `${hash.digest('hex')}  ${name}`;
}

function main([path, ...rest]) {
  const option = { profile: 'q8', kv: 'f32' };
  for (let i = 0; i < rest.length; i += 2) option[rest[i].replace('--', '')] = rest[i + 1];
  const model = readModel(path), ids = option.ids.split(',').map(Number);
  if (option.sample) {
    const [count, seed = '0', T = '0', K = '0', P = '1', M = '0', R = '1'] = option.sample.split(',');
    const session = new Session(model, option.profile, option.kv);
    console.log(JSON.stringify(answer(session, ids, { count: +count, seed, T, K, P, M, R })));
    return;
  }
  for (const profile of option.profile.split(','))
    for (const kv of option.kv.split(',')) console.log(digestLine(model, ids, profile, kv));
}

main(process.argv.slice(2));
