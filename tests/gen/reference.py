"""The operations of docs/NUMERICS.md in Python: numpy float32 for every rounded step, mpmath for exp, sin, cos and the
power. It shares no code with slm2 and follows the rules word by word; it is slow and that does not matter.

Used by oracle_reference.py and forward_reference.py. Needs numpy and mpmath.
"""
import math
import mpmath
import numpy as np

mpmath.mp.prec = 400
F = np.float32
np.seterr(all="ignore")


def round_f32(x):
    """The f32 nearest to an mpmath number, ties to even, with gradual underflow."""
    if x == 0:
        return F(0)
    sign = -1 if x < 0 else 1
    x = abs(x)
    exponent = int(mpmath.floor(mpmath.log(x, 2)))
    ulp = max(exponent - 23, -149)
    scaled = mpmath.ldexp(x, -ulp)
    n = int(mpmath.floor(scaled))
    rest = scaled - n
    if rest > mpmath.mpf(1) / 2 or (rest == mpmath.mpf(1) / 2 and n % 2 == 1):
        n += 1
    return F(sign * math.ldexp(n, ulp))


def exp(x):  # [D4]
    if x == -np.inf:
        return F(0)
    return F(0) if float(x) < -200 else round_f32(mpmath.exp(mpmath.mpf(float(x))))


def sincos(angle):
    a = mpmath.mpf(float(angle))
    return round_f32(mpmath.sin(a)), round_f32(mpmath.cos(a))


def inv_freq(theta, head_dim):  # [D14]
    out = []
    for i in range(head_dim // 2):
        e = F(F(2 * i) / F(head_dim))
        power = round_f32(mpmath.power(mpmath.mpf(theta), mpmath.mpf(float(e))))
        out.append(F(F(1) / power))
    return np.array(out, F)


def seq(terms):  # [D6]
    acc = F(0)
    for t in terms:
        acc = F(acc + t)
    return acc


def lanes8(terms):  # [D7]
    s = [F(0)] * 8
    for i, t in enumerate(terms):
        s[i % 8] = F(s[i % 8] + t)
    return F(F(F(s[0] + s[4]) + F(s[2] + s[6])) + F(F(s[1] + s[5]) + F(s[3] + s[7])))


def dequantise(q, d):
    """q [rows, cols] int, d [rows, cols / 32] f16 bits -> weights f32."""
    scale = d.astype(np.uint16).view(np.float16).astype(F)
    return (q.astype(F) * np.repeat(scale, 32, axis=1)).astype(F)


def matvec_f32(q, d, x):  # [D10]; one column at a time, rows side by side
    weights = dequantise(q, d)
    acc = np.zeros(len(weights), F)
    for k in range(len(x)):
        acc = (acc + (x[k] * weights[:, k]).astype(F)).astype(F)
    return acc


def quantise(x):  # [D11]
    xq, scales = [], []
    for block in np.asarray(x, F).reshape(-1, 32):
        amax = np.max(np.abs(block))
        if amax < F(2.0 ** -100):
            xq += [0] * 32
            scales.append(F(0))
            continue
        scales.append(F(amax / F(127)))
        inverse = F(F(127) / amax)
        for v in block:
            product = float(F(v * inverse))
            xq.append(max(-127, min(127, round(product))))  # Python rounds halves to even
    return np.array(xq, np.int64), np.array(scales, F)


def matvec_q8(q, d, xq, a):  # [D11]
    scale = d.astype(np.uint16).view(np.float16).astype(F)
    acc = np.zeros(len(q), F)
    for b in range(q.shape[1] // 32):
        part = slice(32 * b, 32 * b + 32)
        sums = (q[:, part].astype(np.int64) * xq[part]).sum(axis=1)
        acc = (acc + sums.astype(F) * (scale[:, b] * a[b]).astype(F)).astype(F)
    return acc


def rmsnorm(x, w, eps):  # [D13]
    ss = 0.0
    for v in x:
        ss = ss + float(v) * float(v)
    inv = F(1.0 / math.sqrt(ss / len(x) + float(F(eps))))
    return ((x * inv).astype(F) * w).astype(F)


def rope_table(position, freq):  # [D14]
    pairs = [sincos(F(F(position) * f)) for f in freq]
    return np.array([c for _, c in pairs], F), np.array([s for s, _ in pairs], F)


def rope(x, c, s):
    low, high = x[: len(c)], x[len(c):]
    return np.concatenate([((low * c).astype(F) - (high * s).astype(F)).astype(F),
                           ((high * c).astype(F) + (low * s).astype(F)).astype(F)])


def attention(q, k, v):  # [D15]; k, v [n, head_dim] f32
    s = round_f32(1 / mpmath.sqrt(mpmath.mpf(len(q))))
    scores = [F(lanes8((q * row).astype(F)) * s) for row in k]
    m = max(scores)
    e = [exp(F(z - m)) for z in scores]
    total = lanes8(e)
    out = np.zeros(len(q), F)
    for t, row in enumerate(v):
        out = (out + (F(e[t] / total) * row).astype(F)).astype(F)
    return out


def swiglu(g, u):  # [D16]
    out = []
    for gate, up in zip(g, u):
        e = exp(F(-abs(gate)))
        sigmoid = F(F(1) / F(F(1) + e)) if gate >= 0 else F(e / F(F(1) + e))
        out.append(F(F(gate * sigmoid) * up))
    return np.array(out, F)


class Random:
    """SplitMix64, as tests/test.h has it."""

    def __init__(self, state):
        self.state = state

    def next(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)
