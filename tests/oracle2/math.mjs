// The lines of tests/golden/math.txt made again with num.mjs, which knows neither MPFR nor src/num [D4] [D14].
//
//   node math.mjs [STRIDE [NAME]]    lines of this stride (default 4099; 1 is every f32 of a range: minutes each)
//
// Prints "ok math: N lines, M values", or the lines that differ, and exits 1. Arguments beyond the ranges of D4
// (exp of a positive number) are left out.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cos32, exp32, log32, sin32 } from './num.mjs';
import { inverseFrequencies } from './file.mjs';

const RANGES = { // name: function, range, bits of the first and the last argument
  exp: [exp32, '-0..-104', 0x80000000, 0xc2d00000],
  log: [log32, '2^-149..2^128-2^104', 1, 0x7f7fffff],
  sin: [sin32, '0..2^17', 0, 0x48000000],
  cos: [cos32, '0..2^17', 0, 0x48000000],
};
const THETAS = 'theta=1e4,5e5,1e6,5e6;head_dim=8..512';

function* everyValue([f, , first, last], stride) {
  const bits = new Uint32Array(1), x = new Float32Array(bits.buffer);
  for (let u = first; u <= last; u += stride) {
    bits[0] = u;
    yield f(x[0]);
  }
}

function* everyFrequency(step) {
  for (const theta of [1e4, 5e5, 1e6, 5e6])
    for (let dim = step; dim <= 512; dim += step) yield* inverseFrequencies(theta, dim);
}

function digestOf(values) {
  const hash = createHash('sha256'), block = new DataView(new ArrayBuffer(65536));
  let count = 0, n = 0;
  for (const v of values) {
    block.setFloat32(n, v, true);
    count++;
    if ((n += 4) === 65536) hash.update(block), n = 0;
  }
  return [count, hash.update(new Uint8Array(block.buffer, 0, n)).digest('hex')];
}

const [stride = '4099', only] = process.argv.slice(2);
let lines = 0, total = 0, wrong = 0;
for (const line of readFileSync(new URL('../golden/math.txt', import.meta.url), 'utf8').split('\n')) {
  const [name, range, step, count, hex] = line.split(' ');
  const table = name === 'inv_freq' && range === THETAS;
  if (only && name !== only) continue;
  if (!table && (step !== stride || RANGES[name]?.[1] !== range)) continue;
  const [n, digest] = digestOf(table ? everyFrequency(+step) : everyValue(RANGES[name], +step));
  lines++;
  total += n;
  if (n === +count && digest === hex) continue;
  wrong++;
  console.log(`FAIL math: ${name} ${range} ${step}: ${n} values, ${digest}; the file says ${count}, ${hex}`);
}
if (wrong || !lines) process.exit(1);
console.log(`ok math: ${lines} lines, ${total} values`);
