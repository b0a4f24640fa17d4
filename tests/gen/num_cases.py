"""Writes tests/data/num/math.txt: exp, log, sin and cos of f32 arguments, and RoPE frequencies, rounded to f32 once from
400-bit values (mpmath). Needs mpmath. Run from the project's root:
    python3 tests/gen/num_cases.py > tests/data/num/math.txt
tests/data/num/hard.txt holds the arguments whose result lies within 2^-50 of a tie, found by tests/exhaustive/mathcheck.c.
"""
import random
import struct
from fractions import Fraction

from mpmath import mp, mpf, exp, log, sin, cos

mp.prec = 400
random.seed(4)


def value(bits):
    return struct.unpack('<f', struct.pack('<I', bits))[0]


def to_bits(x):
    return struct.unpack('<I', struct.pack('<f', x))[0]


def nearest(y):
    """f32 bits nearest to the mpf y, ties to even."""
    if y == 0:
        return 0
    sign = 0x80000000 if y < 0 else 0
    sig, e = mp.frexp(abs(y))  # sig in [1/2, 1)
    top = max(int(e) - 1, -126)
    scaled = mp.ldexp(sig, int(e) - (top - 23))
    q = int(mp.floor(scaled))
    rest = scaled - q
    if rest > mpf(1) / 2 or (rest == mpf(1) / 2 and q & 1):
        q += 1
    bits = (top + 126 << 23) + q
    return sign | min(bits, 0x7f800000)


def power(theta, e):
    """fl32(theta^e), exact where the power is an integer."""
    y = mp.power(mpf(theta), mpf(e))
    k = int(mp.nint(y))
    f = Fraction(e)
    if f.denominator <= 32 and k ** f.denominator == theta ** f.numerator:
        y = mpf(k)
    return value(nearest(y))


hard = {'exp': [], 'log': [], 'sin': [], 'cos': []}
for line in open('tests/data/num/hard.txt'):
    name, bits = line.split()
    hard[name].append(int(bits, 16))

args = [0, 0x80000000, 0x80000001, 0x80800000, 0xb2ffffff, 0xb3000000, 0xb3000001, 0xb3800000, 0x33000000, 0x33800000, 0xff800000]
args += [to_bits(x) for x in (-1.0, -0.5, -0.6931472, -87.33654, -87.33655, -87.4, -88.0, -95.3, -100.0,
                              -103.27893, -103.2789, -103.97207, -103.97208, -103.97209,
                              -104.0, -110.0, -3e38, 1.0, 0.5, 10.0, 88.0, 88.72, 88.72283, 88.72284, 89.0, 1e-45, 1e-10)]
args += [0xc2aeac50 + i for i in range(40)] + [0xc2cff1b0 + i for i in range(10)]  # first subnormal result, last non-zero one
args += [0x80000000 | random.randrange(0x33000000, 0x42d00000) for _ in range(250)]
args += [random.randrange(0x33000000, 0x42b17217) for _ in range(60)]
args += [0x80000000 | random.randrange(to_bits(87.4), to_bits(104.0)) for _ in range(150)]
for b in args + hard['exp']:
    y = mpf(0) if b == 0xff800000 else exp(mpf(value(b)))
    print('exp %08x %08x' % (b, nearest(y)))

args = [1, 2, 3, 0x007fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0x7f7ffffe, 0x3f800000, 0x3f7fffff, 0x3f800001,
        0x3f3504f3, 0x3f3504f4, 0x3fb504f3, 0x3fb504f4]
args += [to_bits(x) for x in (2.0, 10.0, 0.1, 2.7182817, 151936.0, 1e-40, 1e38, 0.5, 0.25, 1.5, 0.75)]
args += [0x3f800000 + random.randrange(-2000, 2000) for _ in range(60)]
args += [random.randrange(0x3f000000, 0x40000000) for _ in range(120)]
args += [random.randrange(1, 0x7f800000) for _ in range(250)] + [random.randrange(1, 0x00800000) for _ in range(60)]
for b in args + hard['log']:
    print('log %08x %08x' % (b, nearest(log(mpf(value(b))))))

args = [0, 1, 0x00800000, 0x33800000, 0x38000000, 0x48000000, 0x47ffffff, 0x461ccccc, to_bits(float.fromhex('0x1.33333p+13'))]
args += [to_bits(float(k * mp.pi / 4)) for k in list(range(1, 40)) + [1000, 10001, 65537, 83443, 166885]]
args += [to_bits(float(k)) for k in (1, 2, 3, 100, 511, 4095, 40959, 131071)]
args += [random.randrange(0, 0x48000001) for _ in range(100)] + [random.randrange(0x3c000000, 0x48000001) for _ in range(250)]
for b in args + hard['sin'] + hard['cos']:
    x = mpf(value(b))
    print('sincos %08x %08x %08x' % (b, nearest(sin(x)), nearest(cos(x))))

for theta, head_dim in ((1000000, 128), (10000, 64), (5000000, 128), (1000000, 8), (10000, 96), (1000000, 512), (1000000, 80),
                        (214358881, 16), (2 ** 31, 64), (2, 64), (65536, 64), (14 ** 8, 16), (13 ** 8, 32),
                        (3 ** 16, 32), (46340 ** 2, 8), (215 ** 4, 8)):
    freq = []
    for i in range(head_dim // 2):
        e = value(to_bits(2 * i / head_dim))
        freq.append(nearest(mpf(1) / mpf(power(theta, e))))
    print('inv_freq', theta, head_dim, *('%08x' % f for f in freq))
