"""Writes tests/data/sampler/cases.json: random cases of NUMERICS D19, D20 and D26, computed here in plain Python: every
operation rounded to binary32 by struct, exp and log by mpmath. First recomputes tests/data/sampler/d19_sequences.json, which
came from another program (numpy), and stops when one value differs.
Needs mpmath. Run from the project's root: python3 tests/gen/sampler_cases.py > tests/data/sampler/cases.json
"""
import json
import random
import struct

from mpmath import mp, mpf

mp.prec = 200
M32 = 0xffffffff


def f32(x):
    """binary32 nearest to a binary64; for + - * / of binary32 operands the second rounding is harmless."""
    try:
        return struct.unpack('<f', struct.pack('<f', x))[0]
    except OverflowError:
        return float('inf') if x > 0 else float('-inf')


def bits(x):
    return '%08x' % struct.unpack('<I', struct.pack('<f', x))


def exp32(x):
    if x < -104:
        return 0.0
    y = mp.exp(mpf(x))
    step = mp.ldexp(1, max(mp.frexp(y)[1] - 24, -149))
    return float(mp.nint(y / step) * step)


def log32(x):
    y = mp.log(mpf(x))
    if y == 0:
        return 0.0
    step = mp.ldexp(1, mp.frexp(y)[1] - 24)
    return float(mp.nint(y / step) * step)


def seq(values):
    acc = 0.0
    for v in values:
        acc = f32(acc + v)
    return acc


def chacha8_words(seed):
    key = []
    for _ in range(8):
        seed = (seed * 6364136223846793005 + 11634580027462260723) % 2 ** 64
        x, r = ((seed >> 18 ^ seed) >> 27) & M32, seed >> 59
        key.append((x >> r | x << (32 - r)) & M32)
    counter = 0
    while True:
        start = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574] + key + [counter & M32, counter >> 32, 0, 0]
        s = list(start)

        def quarter(a, b, c, d):
            for into, other, turn, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[into] = (s[into] + s[other]) & M32
                v = s[turn] ^ s[into]
                s[turn] = (v << n | v >> (32 - n)) & M32

        for _ in range(4):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        yield from ((a + b) & M32 for a, b in zip(s, start))
        counter += 1


def solve(case):
    """Survivors, their probabilities, draws from that one distribution, log-probabilities."""
    r, t, p_max, m = (f32(case[k]) for k in ('repeat_penalty', 'temperature', 'top_p', 'min_p'))
    z = [f32(v) for v in case['logits']]
    if r != 1:
        for i in set(case['context']):
            z[i] = f32(z[i] / r) if z[i] > 0 else f32(z[i] * r)
    ids = sorted((i for i in range(len(z)) if case['valid'][i]), key=lambda i: (-z[i], i))
    if t == 0:
        ids, p = ids[:1], [1.0]
    else:
        if case['top_k']:
            ids = ids[:case['top_k']]
        with_t = [f32(f32(z[i] - z[ids[0]]) / t) for i in ids]
        w = [exp32(v) for v in with_t]
        total = seq(w)
        p = [f32(v / total) for v in w]
        if p_max < 1:
            c, n = 0.0, len(p)
            for j, v in enumerate(p):
                c = f32(c + v)
                if c > p_max:
                    n = j + 1
                    break
            ids, p = ids[:n], p[:n]
            total = seq(p)
            p = [f32(v / total) for v in p]
        if m > 0:
            least = f32(m * p[0])
            keep = [j for j, v in enumerate(p) if v >= least]
            ids, p = [ids[j] for j in keep], [p[j] for j in keep]
            total = seq(p)
            p = [f32(v / total) for v in p]
    draws = []
    words = chacha8_words(case['seed'])
    for _ in range(0 if t == 0 else len(case.get('draws_same_distribution', [0] * 20))):
        u, c, sums = (next(words) >> 8) * 2.0 ** -24, 0.0, []
        for v in p:
            c = f32(c + v)
            sums.append(c)
        draws.append(next(i for i, v in zip(ids, sums) if v > f32(u * c)))
    z = [f32(v) for v in case['logits']]
    lanes = [0.0] * 8
    for i, v in enumerate(z):
        lanes[i % 8] = f32(lanes[i % 8] + exp32(f32(v - max(z))))
    a, b, c, d = (f32(lanes[i] + lanes[i + 4]) for i in (0, 2, 1, 3))
    base = log32(f32(f32(a + b) + f32(c + d)))
    return dict(survivors=ids, probabilities_bits=[bits(v) for v in p], draws_same_distribution=draws,
                logprob_bits=[bits(f32(f32(v - max(z)) - base)) for v in z])


for known in json.load(open('tests/data/sampler/d19_sequences.json')):
    for key, got in solve(known).items():
        assert got == known[key], (known['name'], key)

random.seed(19)
cases = []
for number in range(160):
    n = random.choice((1, 2, 3, 7, 8, 9, 16, 31, 33, 64)) if number % 16 else 300
    step = random.choice((0.5, 0.125, 1e-3, 1e-7))  # coarse steps make ties
    scale = random.choice((0.01, 1, 4, 30))
    z = [f32(round(random.gauss(0, scale) / step) * step) for _ in range(n)]
    if number % 5 == 1:
        z = [random.choice((0.0, -0.0, 1.0, -1.0)) for _ in z]
    valid = [number % 3 != 1 or random.random() < 0.7 for _ in z]
    valid[random.randrange(n)] = True
    case = dict(name='random %d' % number, logits=z, valid=valid,
                context=[random.randrange(n) for _ in range(random.choice((0, 1, 5, 40)))],
                repeat_penalty=random.choice((1, 1, 1.1, 1.3, 2, 0.5)), temperature=random.choice((0, 0.1, 0.6, 0.7, 1, 1.5, 10)),
                top_k=random.choice((0, 0, 1, 2, 5, 20, 64, 1000)),
                top_p=random.choice((1, 1, 0.95, 0.8, 0.5, 0.1, 0.9999999, 0, 1)),
                min_p=random.choice((0, 0, 0.05, 0.3, 1)), seed=random.getrandbits(64))
    case.update(solve(case))
    cases.append(case)
print('[\n' + ',\n'.join(json.dumps(c, separators=(',', ':')) for c in cases) + '\n]')
