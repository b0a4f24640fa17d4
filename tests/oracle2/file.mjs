// The SLM2 file by docs/FORMAT.md: header, sections, hashes, values. Reads a whole file into row-major arrays, whatever
// the layout of its weights; a file that breaks a rule throws. Every step of "What a reader checks" is here, without
// the status codes.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { allFinite, f16ToNumber, f32Text, fround, powExact } from './num.mjs';

export const CHUNK = 4194304;
export const sha256 = bytes => createHash('sha256').update(bytes).digest('hex');
export const roundUp = n => Math.ceil(n / 64) * 64;

function demand(ok, what) {
  if (!ok) throw new Error(what);
}

const integer = (low, high, multiple = 1) => s =>
  /^(0|[1-9][0-9]*)$/.test(s) && +s >= low && +s <= high && +s % multiple === 0;
const decimal = ok => s => Number.isFinite(+s) && ok(fround(+s)) && f32Text(fround(+s)) === s;
const oneOf = (...names) => s => names.includes(s);
const match = expression => s => expression.test(s);
const id = match(/^(none|0|[1-9][0-9]*)$/);

const KEYS = {
  format: oneOf('slm2'), format_version: oneOf('1'), architecture: oneOf('qwen3'),
  license: match(/^[a-z0-9.+-]{1,63}$/), source: match(/^[ !#-[\]-~]{1,63}$/),
  source_revision: match(/^(unknown|[0-9a-f]{40})$/), chat_format: oneOf('qwen3', 'none'),
  hidden_size: integer(32, 65536, 32), intermediate_size: integer(32, 262144, 32),
  num_hidden_layers: integer(1, 256), num_attention_heads: integer(1, 1024), num_key_value_heads: integer(1, 1024),
  head_dim: integer(8, 512, 8), vocab_size: integer(32, 1048576, 32), max_position_embeddings: integer(1, 16777216),
  rope_theta: integer(2, 2 ** 31), rms_norm_eps: decimal(v => v > 0 && v <= 1),
  tie_word_embeddings: oneOf('true', 'false'), weight_form: oneOf('Q8_0', 'Q8_0_P32'),
  do_sample: oneOf('true', 'false'), temperature: decimal(v => v >= 0), top_k: integer(0, 2 ** 32 - 1),
  top_p: decimal(v => v >= 0 && v <= 1), repetition_penalty: decimal(v => v > 0), bos_token_id: id,
  eos_token_ids: match(/^(none|(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)){0,7})$/), pad_token_id: id,
  tokenizer_bytes: integer(0, 268435456), chunk_bytes: oneOf(String(CHUNK)), chunk_sha256: match(/^([0-9a-f]{64})+$/),
};

// The sections that the metadata demands, in order: { name, dtype, shape, begin, bytes, end }.
export function sectionsOf(meta) {
  const n = key => Number(meta[key]);
  const hidden = n('hidden_size'), mlp = n('intermediate_size'), vocab = n('vocab_size'), dim = n('head_dim');
  const q = n('num_attention_heads') * dim, kv = n('num_key_value_heads') * dim;
  const list = [];
  let at = 0;
  const add = (name, dtype, ...shape) => {
    const count = shape.reduce((a, b) => a * b);
    const bytes = dtype === 'U8' ? count : dtype === 'F32' ? 4 * count : count / 32 * 34;
    list.push({ name, dtype, shape, begin: at, bytes, end: at += roundUp(bytes) });
  };
  const weights = (name, rows, columns) => add(`${name}.weight`, meta.weight_form, rows, columns);
  add('tokenizer', 'U8', n('tokenizer_bytes'));
  add('rope.inv_freq', 'F32', dim / 2);
  weights('model.embed_tokens', vocab, hidden);
  for (let i = 0; i < n('num_hidden_layers'); i++) {
    const layer = `model.layers.${i}.`, attention = `${layer}self_attn.`;
    add(`${layer}input_layernorm.weight`, 'F32', hidden);
    weights(`${attention}q_proj`, q, hidden);
    weights(`${attention}k_proj`, kv, hidden);
    weights(`${attention}v_proj`, kv, hidden);
    weights(`${attention}o_proj`, hidden, q);
    add(`${attention}q_norm.weight`, 'F32', dim);
    add(`${attention}k_norm.weight`, 'F32', dim);
    add(`${layer}post_attention_layernorm.weight`, 'F32', hidden);
    weights(`${layer}mlp.gate_proj`, mlp, hidden);
    weights(`${layer}mlp.up_proj`, mlp, hidden);
    weights(`${layer}mlp.down_proj`, hidden, mlp);
  }
  add('model.norm.weight', 'F32', hidden);
  if (meta.tie_word_embeddings === 'false') weights('lm_head', vocab, hidden);
  return list;
}

// The one spelling of a header, without its spaces and its length.
export function headerText(meta) {
  const fields = Object.keys(KEYS).map(key => `"${key}":"${meta[key]}"`).join(',');
  const entries = sectionsOf(meta).map(s =>
    `"${s.name}":{"dtype":"${s.dtype}","shape":[${s.shape}],"data_offsets":[${s.begin},${s.end}]}`);
  return `{"__metadata__":{${fields}},${entries.join(',')}}`;
}

function checkMeta(meta) {
  for (const [key, ok] of Object.entries(KEYS)) demand(typeof meta?.[key] === 'string' && ok(meta[key]), `key ${key}`);
  const heads = +meta.num_attention_heads, kv = +meta.num_key_value_heads;
  demand(heads % kv === 0, 'num_attention_heads');
  demand(kv * meta.head_dim % 32 === 0, 'num_key_value_heads');
  for (const key of ['bos_token_id', 'eos_token_ids', 'pad_token_id'])
    for (const s of meta[key].split(',')) demand(s === 'none' || +s < +meta.vocab_size, `${key} ${s}`);
}

// Where block b of a row lies: its scale, and its 32 weights by fours of columns.
export function places(form, columns) {
  const blocks = columns / 32;
  if (form === 'Q8_0') return (r, b) => ({ d: 34 * (r * blocks + b), q: 34 * (r * blocks + b) + 2, step: 4 });
  return (r, b) => {
    const panel = 1088 * ((r >> 5) * blocks + b), row = r & 31;
    return { d: panel + 4 * (row % 16) + 2 * (row >> 4), q: panel + 64 + 4 * row, step: 128 };
  };
}

// Row-major: q[rows * columns] and d[rows * columns / 32].
function readMatrix(data, section) {
  const [rows, columns] = section.shape, blocks = columns / 32, place = places(section.dtype, columns);
  const q = new Int8Array(rows * columns), d = new Float32Array(rows * blocks);
  for (let r = 0; r < rows; r++)
    for (let b = 0; b < blocks; b++) {
      const at = place(r, b), block = r * blocks + b;
      d[block] = f16ToNumber(data.getUint16(at.d, true));
      for (let k = 0; k < 32; k++) {
        const weight = data.getInt8(at.q + at.step * (k >> 2) + (k & 3));
        demand(weight !== -128, `${section.name}: -128 in row ${r}`);
        q[32 * block + k] = weight;
      }
    }
  demand(allFinite(d), `${section.name}: a scale is not finite`);
  return { rows, columns, q, d };
}

function readFloats(data, section) {
  const v = Float32Array.from({ length: section.shape[0] }, (_, i) => data.getFloat32(4 * i, true));
  demand(allFinite(v), `${section.name}: a value is not finite`);
  return v;
}

// Which ids have a token, from the tokenizer section; without one, all count as having one [D19].
function readTokens(data, bytes, vocab) {
  const exists = new Uint8Array(vocab).fill(bytes ? 0 : 1);
  if (!bytes) return exists;
  demand(data.getUint32(0, true) === 0x31544c53, 'tokenizer: magic');
  const count = data.getUint32(8, true);
  for (let i = 0, from = 0; i < count; i++) {
    const end = data.getUint32(32 + 4 * i, true);
    exists[i] = end > from ? 1 : 0;
    from = end;
  }
  return exists;
}

// [D14]: the table that the file must hold.
export function inverseFrequencies(theta, dim) {
  return Float32Array.from({ length: dim / 2 }, (_, i) => 1 / powExact(theta, fround(2 * i / dim)));
}

export function readModel(path) {
  const file = readFileSync(path), view = new DataView(file.buffer, file.byteOffset, file.length);
  demand(file.length >= 8, 'no length');
  const n = Number(view.getBigUint64(0, true));
  demand(n <= 1048576 && 8 + n <= file.length && (8 + n) % 64 === 0, `header length ${n}`);
  const header = file.subarray(8, 8 + n), text = header.toString('latin1'), body = text.trimEnd();
  const meta = JSON.parse(body).__metadata__;
  checkMeta(meta);
  demand(body === headerText(meta), 'the header is not the one its fields demand');
  demand(text === body.padEnd(roundUp(8 + body.length) - 8), 'spaces behind the header');

  const data = file.subarray(8 + n), sections = sectionsOf(meta);
  demand(data.length === sections.at(-1).end, `data of ${data.length} bytes`);
  const hashes = [];
  for (let at = 0; at < data.length; at += CHUNK) hashes.push(sha256(data.subarray(at, at + CHUNK)));
  demand(hashes.join('') === meta.chunk_sha256, 'a chunk hash');

  const model = { meta, identity: sha256(header) };
  for (const s of sections) {
    const bytes = new DataView(view.buffer, view.byteOffset + 8 + n + s.begin, s.bytes);
    demand(data.subarray(s.begin + s.bytes, s.end).every(b => b === 0), `${s.name}: padding`);
    if (s.dtype === 'U8') model.exists = readTokens(bytes, s.bytes, +meta.vocab_size);
    else model[s.name] = s.dtype === 'F32' ? readFloats(bytes, s) : readMatrix(bytes, s);
  }
  const table = inverseFrequencies(meta.rope_theta, +meta.head_dim);
  demand(model['rope.inv_freq'].every((v, i) => v === table[i]), 'rope.inv_freq is not the table of D14');
  return model;
}
