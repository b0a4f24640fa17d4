// Writes a synthetic model by docs/FORMAT.md ("Synthetic models", "Writing"). Without arguments it is `slm2 synth
// --shape tiny --seed 1`, byte for byte; with others it gives what no shape of synth has: untied heads, other ratios of
// heads, odd sizes, and weights at the edges of the number range.
//
//   node make.mjs OUT [KEY=VALUE ...]    metadata keys, and:
//     seed=N         exponent=E  (f16 exponent field of every scale)
//     norm=X         factor on the norm weights of the stream (q_norm and k_norm stay)
//     zero_row=ID    an embedding row with scale 0
//     tokenizer=0    a file without tokenizer

import { writeFileSync } from 'node:fs';
import { CHUNK, headerText, inverseFrequencies, places, roundUp, sectionsOf, sha256 } from './file.mjs';

const TINY = {
  format: 'slm2', format_version: '1', architecture: 'qwen3', license: 'unknown', source: 'synth',
  source_revision: 'unknown', chat_format: 'qwen3', hidden_size: '64', intermediate_size: '96', num_hidden_layers: '2',
  num_attention_heads: '4', num_key_value_heads: '2', head_dim: '32', vocab_size: '288',
  max_position_embeddings: '40960', rope_theta: '1000000', rms_norm_eps: '1e-06', tie_word_embeddings: 'true',
  weight_form: 'Q8_0_P32', do_sample: 'true', temperature: '0.6', top_k: '20', top_p: '0.95',
  repetition_penalty: '1.0', bos_token_id: '256', eos_token_ids: '258,256', pad_token_id: '256',
  chunk_bytes: String(CHUNK),
};

const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|object_ref_start|>', '<|object_ref_end|>',
  '<|box_start|>', '<|box_end|>', '<|quad_start|>', '<|quad_end|>', '<|vision_start|>', '<|vision_end|>',
  '<|vision_pad|>', '<|image_pad|>', '<|video_pad|>'];
const ADDED = [...SPECIAL, '<tool_call>', '</tool_call>', '<|fim_prefix|>', '<|fim_middle|>', '<|fim_suffix|>',
  '<|fim_pad|>', '<|repo_name|>', '<|file_sep|>', '<tool_response>', '</tool_response>', '<think>', '</think>'];

function tokenizer() {
  const shown = b => (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
  const all = [...Array(256).keys()];
  const tokens = [...all.filter(shown), ...all.filter(b => !shown(b))].map(b => Buffer.from([b]));
  tokens.push(...ADDED.map(text => Buffer.from(text)));
  const blob = Buffer.concat(tokens), words = [0x31544c53, 1, tokens.length, 0, ADDED.length, blob.length, 0, 0];
  let end = 0;
  for (const t of tokens) words.push(end += t.length);
  ADDED.forEach((text, i) => words.push(256 + i, SPECIAL.includes(text) ? 1 : 0));
  const head = Buffer.alloc(4 * words.length);
  words.forEach((w, i) => head.writeUInt32LE(w, 4 * i));
  return Buffer.concat([head, blob]);
}

const MASK = (1n << 64n) - 1n, G = 0x9e3779b97f4a7c15n;
const mix = z => {
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
};
const at = (base, n) => mix((base + G * BigInt(n)) & MASK);

function writeMatrix(out, s, S, option) {
  const [rows, columns] = s.shape, place = places(s.dtype, columns);
  const wide = s.name.includes('embed') || s.name.includes('lm_head') ? 2 : 0;
  const usual = option.exponent ?? Math.max(1, 8 - Math.floor(Math.ceil(Math.log2(columns)) / 2)) + wide;
  for (let r = 0; r < rows; r++) {
    const R = at(S, r + 1), silent = s.name.includes('embed') && r === option.zero_row;
    for (let b = 0; b < columns / 32; b++) {
      const to = place(r, b), word = k => at(R, 8 * b + k + 1), w = word(4);
      const field = (w >> 20n) & 1023n ? usual : 0, sign = (w >> 10n) & 1023n ? 0 : 0x8000;
      out.writeUInt16LE(silent ? 0 : sign | (field << 10) | Number(w & 1023n), to.d);
      for (let k = 0; k < 32; k++) {
        const q = Number((word(k >> 3) >> BigInt(8 * (k & 7))) & 255n);
        out[to.q + to.step * (k >> 2) + (k & 3)] = q === 0x80 ? 0 : q;
      }
    }
  }
}

function main([path, ...rest]) {
  const meta = { ...TINY }, option = { seed: 1, norm: 1 };
  for (const [key, value] of rest.map(a => a.split('='))) {
    if (key in meta) meta[key] = value;
    else option[key] = key === 'seed' ? value : Number(value);
  }
  const tokens = option.tokenizer === 0 ? Buffer.alloc(0) : tokenizer();
  meta.tokenizer_bytes = String(tokens.length);
  const sections = sectionsOf(meta), data = Buffer.alloc(sections.at(-1).end);
  sections.forEach((s, i) => {
    const out = data.subarray(s.begin, s.end), S = at(BigInt(option.seed), i + 1);
    if (s.dtype === 'U8') tokens.copy(out);
    else if (s.dtype !== 'F32') writeMatrix(out, s, S, option);
    else if (i === 1) inverseFrequencies(meta.rope_theta, +meta.head_dim).forEach((v, j) => out.writeFloatLE(v, 4 * j));
    else {
      const factor = /[qk]_norm/.test(s.name) ? 1 : option.norm;
      for (let j = 0; j < s.shape[0]; j++)
        out.writeFloatLE((1024 + Number(at(S, j + 1) % 256n) - 128) / 1024 * factor, 4 * j);
    }
  });
  meta.chunk_sha256 = '';
  for (let from = 0; from < data.length; from += CHUNK) meta.chunk_sha256 += sha256(data.subarray(from, from + CHUNK));
  const text = headerText(meta), n = roundUp(8 + text.length) - 8, length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(n));
  writeFileSync(path, Buffer.concat([length, Buffer.from(text.padEnd(n)), data]));
}

main(process.argv.slice(2));
