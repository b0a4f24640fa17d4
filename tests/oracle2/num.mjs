// Numbers of the second oracle: binary32 and binary16 by value, and the four functions of NUMERICS [D4], correctly
// rounded. Nothing here trusts Math.exp and its kind: a value is computed in binary64 by a series whose error is
// bounded below, and taken only when both ends of the error interval round to the same f32; otherwise BigInt
// fixed-point arithmetic decides, with as many bits as it takes. The constants come from the same BigInt series.

export const fround = Math.fround;
const view = new DataView(new ArrayBuffer(8));

export function bitsOf(x) {
  view.setFloat32(0, x);
  return view.getUint32(0);
}

// [D5], on integers.
export function allFinite(v) {
  const bits = new Uint32Array(v.buffer, v.byteOffset, v.length);
  for (const b of bits) if ((b & 0x7fffffff) >= 0x7f800000) return false;
  return true;
}

export function f16ToNumber(h) {
  const sign = h & 0x8000 ? -1 : 1, e = (h >> 10) & 31, m = h & 1023;
  if (e === 31) return m ? NaN : sign * Infinity;
  return e === 0 ? sign * m * 2 ** -24 : sign * (1024 + m) * 2 ** (e - 25);
}

// Nearest integer, ties to even, sign of zero kept; |v| < 2^51.
export function roundHalfEven(v) {
  const magic = 1.5 * 2 ** 52, r = v + magic - magic;
  return r === 0 ? v * 0 : r;
}

// The f16 nearest to an f32, as a number [D18]; infinite from 65520 on.
export function roundToF16(x) {
  const e = ((bitsOf(x) >> 23) & 255) - 127;
  const quantum = 2 ** (Math.max(e, -14) - 10);
  const r = roundHalfEven(x / quantum) * quantum;
  return Math.abs(r) > 65504 ? Math.sign(r) * Infinity : r;
}

// The shortest decimal that reads back to the same f32, laid out as Python's repr; of several the nearest, of two as
// near the even one. The nearest decimal of that length may fail where its neighbour reads back: below a power of two
// the f32 are closer together.
export function f32Text(x) {
  if (x === 0) return Object.is(x, -0) ? '-0.0' : '0.0';
  const sign = x < 0 ? '-' : '', [m, e] = parts(Math.abs(x));
  for (let digits = 1; digits <= 9; digits++) {
    const [mantissa, exponent] = Math.abs(x).toExponential(digits - 1).split('e');
    const near = BigInt(mantissa.replace('.', '')), q = exponent - digits + 1;
    const power = (base, n) => base ** BigInt(Math.max(0, n));
    const away = n => { // |n * 10^q - m * 2^e|, as a multiple of one unit
      const d = n * power(10n, q) * power(2n, -e) - m * power(2n, e) * power(10n, -q);
      return d < 0n ? -d : d;
    };
    const fit = [near - 1n, near, near + 1n].filter(n => fround(Number(`${n}e${q}`)) === Math.abs(x));
    fit.sort((a, b) => (away(a) < away(b) ? -1 : away(a) > away(b) ? 1 : Number(a & 1n) - Number(b & 1n)));
    if (fit.length) return sign + layOut(String(fit[0]), q);
  }
  throw new Error(`no decimal for ${x}`);
}

// digits * 10^q as Python's repr writes it.
function layOut(digits, q) {
  const e = digits.length - 1 + q, d = digits.replace(/0+$/, '');
  if (e < -4 || e >= 16) {
    const tail = d.length > 1 ? `.${d.slice(1)}` : '';
    return `${d[0]}${tail}e${e < 0 ? '-' : '+'}${String(Math.abs(e)).padStart(2, '0')}`;
  }
  if (e < 0) return `0.${'0'.repeat(-e - 1)}${d}`;
  return `${d.slice(0, e + 1).padEnd(e + 1, '0')}.${d.slice(e + 1) || '0'}`;
}

// ---- exact: BigInt fixed point; a value v stands for v / 2^p ----

// n * 2^e, n >= 0, to the nearest f32, ties to even, gradual underflow.
function roundExact(n, e) {
  if (n === 0n) return 0;
  const top = n.toString(2).length - 1 + e, q = Math.max(top - 23, -149), shift = BigInt(q - e);
  let m = shift > 0n ? n >> shift : n << -shift;
  if (shift > 0n) {
    const rest = n - (m << shift), half = 1n << (shift - 1n);
    if (rest > half || (rest === half && (m & 1n))) m += 1n;
  }
  const value = Number(m) * 2 ** q;
  return value >= 2 ** 128 ? Infinity : value;
}

const LIMIT = 4096;

// Runs compute(p), which gives [n, e] with |true - n * 2^e| < 2^20 * 2^e, at growing precision p until the f32 is
// certain. Only an exact tie (a power, [D14]) is still open at LIMIT: then the true value is the nearest multiple of
// 2^-(LIMIT / 2), and that is rounded.
function certain(compute) {
  const err = 1n << 20n;
  for (let p = 128; ; p *= 2) {
    let [n, e] = compute(p);
    const sign = n < 0n ? -1 : 1;
    if (n < 0n) n = -n;
    const low = roundExact(n > err ? n - err : 0n, e), high = roundExact(n + err, e);
    if (low === high) return sign * low;
    if (p >= LIMIT) {
      const s = BigInt(p / 2);
      return sign * roundExact((n + (1n << (s - 1n))) >> s, e + Number(s));
    }
  }
}

const cache = new Map();
function cached(name, p, make) {
  const key = `${name}${p}`;
  if (!cache.has(key)) cache.set(key, make());
  return cache.get(key);
}

// sum of +-(1 / ((2k + 1) n^(2k + 1))): atan(1 / n), or atanh with sign +1. Each term is off by less than 2 units.
function arcSeries(n, p, sign) {
  let power = (1n << BigInt(p)) / n, sum = power;
  for (let k = 1n; power !== 0n; k++) {
    power /= n * n;
    sum += (sign < 0 && k & 1n ? -power : power) / (2n * k + 1n);
  }
  return sum;
}

const ln2 = p => cached('ln2', p, () => (2n * arcSeries(3n, p + 32, +1)) >> 32n);
const halfPi = p => cached('pi', p, () => (8n * arcSeries(5n, p + 32, -1) - 2n * arcSeries(239n, p + 32, -1)) >> 32n);

// A finite f32 (or any double) as m * 2^e.
function parts(x) {
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0), field = Number((bits >> 52n) & 2047n);
  const m = (bits & ((1n << 52n) - 1n)) | (field ? 1n << 52n : 0n);
  return [bits >> 63n ? -m : m, Math.max(field, 1) - 1075];
}

const shifted = (m, by) => (by >= 0 ? m << BigInt(by) : m >> BigInt(-by));

// e^(v / 2^p) = n * 2^e. |v| < 2^(p + 11): the error of ln2 counts 2^11 times, each term of the series 2 units.
function expFixed(v, p) {
  const l = ln2(p);
  let k = v / l;
  if (k * l > v) k -= 1n;
  const r = v - k * l;
  let term = 1n << BigInt(p), sum = term;
  for (let i = 1n; term !== 0n; i++) {
    term = ((term * r) >> BigInt(p)) / i;
    sum += term;
  }
  return [sum, Number(k) - p];
}

// log(m * 2^e), m > 0, as v / 2^p.
function logFixed(m, e, p) {
  const bits = m.toString(2).length, one = 1n << BigInt(p);
  let k = bits - 1 + e, f = shifted(m, p - bits + 1); // f / 2^p in [1, 2)
  if (f * 2n >= one * 3n) { f >>= 1n; k += 1; } // [0.75, 1.5)
  const s = ((f - one) << BigInt(p)) / (f + one), s2 = (s * s) >> BigInt(p);
  let power = s, sum = s;
  for (let i = 3n; power !== 0n && power !== -1n; i += 2n) {
    power = (power * s2) >> BigInt(p);
    sum += power / i;
  }
  return 2n * sum + BigInt(k) * ln2(p);
}

export function expExact(x) {
  const [m, e] = parts(x);
  return certain(p => expFixed(shifted(m, e + p), p));
}

export function logExact(x) {
  const [m, e] = parts(x);
  return x === 1 ? 0 : certain(p => [logFixed(m, e, p), -p]);
}

// part 0: sine, 1: cosine. p grows by the exponent of x, so that the sine of a tiny x keeps its digits.
function sinCosExact(x, part) {
  if (x === 0) return part;
  const [m, e] = parts(x);
  return certain(bits => {
    const p = bits + Math.max(0, -e), h = halfPi(p), v = shifted(m, e + p);
    const k = (2n * v + h) / (2n * h), r = v - k * h;
    const odd = Number(k & 1n) ^ part;
    let term = odd ? 1n << BigInt(p) : r, sum = term;
    for (let i = odd ? 1n : 2n; term !== 0n && term !== -1n; i += 2n) {
      term = -(((((term * r) >> BigInt(p)) * r) >> BigInt(p)) / (i * (i + 1n)));
      sum += term;
    }
    return [(k + BigInt(part)) & 2n ? -sum : sum, -p];
  });
}
export const sinExact = x => sinCosExact(x, 0);
export const cosExact = x => sinCosExact(x, 1);

// base^x for an integer base > 1 and 0 <= x < 1 [D14].
export function powExact(base, x) {
  const [m, e] = parts(x);
  return certain(p => {
    const l = logFixed(BigInt(base), 0, p);
    return expFixed(shifted(m * l, e), p);
  });
}

// The f32 nearest to 1 / sqrt(n) [D15]: floor(sqrt(2^(2p) / n)) is off by less than one unit.
export function inverseSqrt(n) {
  return certain(p => {
    const target = (1n << BigInt(2 * p)) / BigInt(n);
    let r = 1n << BigInt(p), next;
    while ((next = (r + target / r) >> 1n) < r) r = next;
    return [r, -p];
  });
}

// ---- fast: binary64 with a rounding test ----

const toNumber = (v, p) => Number(v) / 2 ** p; // v < 2^53: exact
const LN2_HI = toNumber(ln2(256) >> 224n, 32); // 32 bits, so that k * LN2_HI is exact for |k| < 2^21
const LN2_LO = Number((ln2(256) - ((ln2(256) >> 224n) << 224n)) >> 140n) / 2 ** 116;
const PI_1 = toNumber(halfPi(256) >> 224n, 32); // 33 bits, times k < 2^17: exact
const rest1 = halfPi(256) - ((halfPi(256) >> 224n) << 224n);
const PI_2 = toNumber(rest1 >> 191n, 65); // 33 bits more
const PI_3 = Number((rest1 - ((rest1 >> 191n) << 191n)) >> 100n) / 2 ** 156;

const FACTORIAL = [1]; // 1 / n!
for (let n = 1, f = 1; n <= 20; n++) FACTORIAL.push(1 / (f *= n));

// All errors below stay under 2^-49 of the value: the reductions are exact up to their last subtraction, and a series
// in Horner's form with a ratio below 0.4 between neighbouring terms errs by less than 4 units of 2^-53. 2^-45 leaves
// room, and sends one argument in a million to BigInt.
const SLACK = 2 ** -45;
function settled(y, exact, x) {
  const low = fround(y * (1 - SLACK)), high = fround(y * (1 + SLACK));
  return low === high ? low : exact(x);
}

// x <= 0. e^x < 2^-150 below -104, which rounds to zero.
export function exp32(x) {
  if (!(x <= 0)) throw new Error(`exp of ${x}`);
  if (x < -104) return 0;
  const k = Math.round(x / Math.LN2), r = x - k * LN2_HI - k * LN2_LO; // |r| < 0.35
  let s = FACTORIAL[15];
  for (let n = 14; n >= 0; n--) s = s * r + FACTORIAL[n];
  return settled(s * 2 ** k, expExact, x);
}

export function log32(x) {
  if (!(x > 0 && x < Infinity)) throw new Error(`log of ${x}`);
  if (x === 1) return 0;
  let k = 0, m = x; // x = m * 2^k, m in [0.75, 1.5)
  while (m >= 1.5) { m /= 2; k++; }
  while (m < 0.75) { m *= 2; k--; }
  const s = (m - 1) / (m + 1), s2 = s * s; // |s| <= 0.2
  let sum = 0;
  for (let n = 29; n >= 3; n -= 2) sum = (sum + 1 / n) * s2;
  return settled(k * LN2_HI + (k * LN2_LO + (2 * s + 2 * s * sum)), logExact, x);
}

function sinCos(x, part) {
  if (!(x >= 0 && x <= 131072)) throw new Error(`angle ${x} is outside 0..131072`);
  const k = Math.round(x / (Math.PI / 2)), r = x - k * PI_1 - k * PI_2 - k * PI_3; // |r| < 0.786
  const exact = part ? cosExact : sinExact;
  if (k !== 0 && Math.abs(r) < 2 ** -30) return exact(x); // cancellation
  const odd = (k & 1) ^ part, r2 = r * r; // odd: cosine of r
  let s = 0;
  for (let n = odd ? 20 : 19; n >= 0; n -= 2) s = FACTORIAL[n] - s * r2;
  if (!odd) s *= r;
  return settled((k + part) & 2 ? -s : s, exact, x);
}
export const sin32 = x => sinCos(x, 0);
export const cos32 = x => sinCos(x, 1);
