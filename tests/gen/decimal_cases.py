"""Writes tests/data/num/decimal.txt: decimal text and binary64 / binary32 as CPython reads and writes them.
Run from the project's root: python3 tests/gen/decimal_cases.py > tests/data/num/decimal.txt

read TEXT BITS64 BITS32   float(TEXT), and that rounded once more to binary32 (struct would refuse overflow)
refuse TEXT               outside the grammar of base/decimal.h
repr BITS64 TEXT          repr(float)
repr32 BITS32 TEXT        shortest decimal that reads back through binary64 (searched with exact decimals)
"""
import random
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 2000
random.seed(20240607)


def bits64(x):
    return struct.unpack('<Q', struct.pack('<d', x))[0]


def from64(b):
    return struct.unpack('<d', struct.pack('<Q', b))[0]


def from32(b):
    return struct.unpack('<f', struct.pack('<I', b))[0]


def bits32(x):
    try:
        return struct.unpack('<I', struct.pack('<f', x))[0]
    except OverflowError:
        return 0xff800000 if x < 0 else 0x7f800000


def exact(x):
    """All decimal digits of a binary64 (or of the border of two): plain or with an exponent."""
    return format(Decimal(x), 'f') if isinstance(x, float) else x


def border(b):
    """Exact decimal text half way between the binary64 of bits b and b + 1."""
    lo, hi = Fraction(from64(b)), Fraction(from64(b + 1)) if b + 1 < 0x7ff0000000000000 else Fraction(2) ** 1024
    mid = (lo + hi) / 2
    return format(Decimal(mid.numerator) / Decimal(mid.denominator), 'f')


def bump(text, up):
    """text with its last digit moved away from a tie, far beyond any digit kept."""
    if '.' not in text:
        text += '.0'
    if up:
        return text + '0' * 900 + '1'
    digits = text.replace('.', '')
    n_fraction = len(text) - text.index('.') - 1
    less = str(int(digits) * 10 ** 900 - 1).rjust(n_fraction + 901, '0')
    return less[:-(n_fraction + 900)] + '.' + less[-(n_fraction + 900):]


def read(text):
    x = float(text)
    print('read', text, '%016x' % bits64(x), '%08x' % bits32(x))


HARD = '''0 -0 0.0 -0.0 0e0 0e999999999999999999999 0.000e-5 1 -1 10 0.1 0.2 0.3 0.5 1e0 1E5 1e+5 1E-5 1e05
9007199254740991 9007199254740992 9007199254740993 9007199254740994 9007199254740995 9007199254740993.0000000000000000000000000001
1e22 1e23 1e24 -1e23 8.5e22 99999999999999974834176 100000000000000000000001 100000000000000008388608.0
5e-324 4.9406564584124654e-324 2.4703282292062327e-324 2.4703282292062328e-324 2.470328229206232720e-324 1e-323 7.4e-324 7.5e-324
2.2250738585072014e-308 2.2250738585072011e-308 2.2250738585072012e-308 2.225073858507201e-308 2.225073858507200889e-308
1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 1.797693134862315807e308 1.797693134862315808e308
9e308 -9e308
1e308 1e309 1e310 1e400 1e-400 -1e-400 1e999999999999999999999999 1e-999999999999999999999999 123456789012345678901234567890
6.8985955128803634e-308 3.518437208883201171875e13 62.5364939768271845828 8.10109172351e-10 1.50000000000000011102230246251565
0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001e107
3.4028234663852886e38 3.4028235677973366e38 3.4028235677973365e38 3.4028235677973367e38 1.17549435e-38 1.401298464324817e-45
7.006492321624085e-46 7.006492321624086e-46 7.0064923216240853546186479164495e-46
7.0064923216240862e-46 1.1754943157898258e-38 1.1754942e-38
16777217 16777216.999999999 16777217.000000001 33554433 0.95 0.8 0.6 1.3 1e-6 1000000
3.14159265358979323846264338327950288'''.split()
REFUSE = '''+1 .5 1. 01 00 -01 -.5 - -- 1e 1e+ 1e- 1e1.5 1e5e5 1.2.3 1.e5 .e5 e5 0x10 inf nan -inf NaN Infinity 1_000 1,5 1f ١ 0.1d --1 1-
1e--5 00.5 1e5. -00'''.split()

for t in HARD:
    read(t)
for t in REFUSE:
    print('refuse', t)
for b in [0, 1, 2, 3, 0x000fffffffffffff, 0x0010000000000000, 0x0010000000000001, 0x3fefffffffffffff, 0x3ff0000000000000,
          0x3ff0000000000001, 0x4340000000000000, 0x433fffffffffffff, 0x7feffffffffffffe, 0x7fefffffffffffff]:
    for t in (border(b), bump(border(b), True), bump(border(b), False)):
        read(t)
for _ in range(60):
    b = random.getrandbits(63) % 0x7ff0000000000000
    t = border(b)
    for u in (t, bump(t, True), bump(t, False)):
        if len(u) < 1500:
            read(u)
for b in (0x3f800000, 0x3f800001, 1, 2, 0x007fffff, 0x00800000, 0x7f7fffff, 0x4b7fffff):  # borders of binary32 in binary64
    mid = (Fraction(from32(b)) + (Fraction(from32(b + 1)) if b != 0x7f7fffff else Fraction(2) ** 128)) / 2
    m = float(mid)
    for x in (m, from64(bits64(m) - 1), from64(bits64(m) + 1)):
        read(exact(x))
        read(repr(x))
for _ in range(300):
    n = random.randint(1, 40)
    t = str(random.randint(1, 9)) + ''.join(random.choice('0123456789') for _ in range(n - 1))
    cut = random.randint(1, n)
    t = t[:cut] + ('.' + t[cut:] if cut < n else '')
    read(random.choice(['', '-']) + t + 'e%d' % random.randint(-340, 310))
read('1' + '0' * 400 + 'e-400')
read('0.' + '0' * 400 + '1e401')
read('7' * 5000 + 'e-4990')
read('0.' + '3' * 5000)

patterns = [1, 2, 3, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x3ff0000000000000, 0, 0x8000000000000000]
patterns += [bits64(x) for x in (0.1, 0.2, 0.3, 1 / 3, 2 / 3, 1e22, 1e23, 1e21, 1e15, 1e16,
                                 123456789012345680.0, 9007199254740993.0, 1e-4, 1e-5, 0.00012345,
                                 9.5367431640625e-07, 5e-324, 1.5, 100.0, 12345.678, 1e100, -1e-7, -2.5, 1e-323,
                                 4503599627370496.5, 9.999999999999999e22)]
patterns += [e << 52 for e in range(1, 2047, 9)] + [(e << 52) - 1 for e in range(2, 2047, 31)] + [1 << k for k in range(0, 52, 3)]
patterns += [bits64(float(random.getrandbits(random.randint(50, 70)))) for _ in range(200)]
patterns += [random.getrandbits(64) for _ in range(700)]
patterns += [bits64(round(random.uniform(-1000, 1000), random.randint(0, 6))) for _ in range(200)]
for b in patterns:
    if b >> 52 & 0x7ff != 0x7ff:
        print('repr', '%016x' % b, repr(from64(b)))


def shortest32(b):
    x = from32(b & 0x7fffffff)
    if x == 0:
        digits, point = '0', 1
    else:
        d = Decimal(x)
        for p in range(1, 10):
            e = d.adjusted() - p + 1
            q = d.scaleb(-e)
            low = int(q)
            ok = [c for c in (low, low + 1) if bits32(float('%de%d' % (c, e))) == b & 0x7fffffff]
            if ok:
                c = min(ok, key=lambda v: (abs(q - v), v & 1))
                break
        digits = str(c)
        point = len(digits) + e
        digits = digits.rstrip('0')
    sign = '-' if b >> 31 else ''
    text = repr(float(sign + '0.' + digits + 'e%d' % point))  # at most 9 digits: repr lays out exactly these
    assert bits32(float(text)) == b
    return text


p32 = [0, 0x80000000, 1, 2, 3, 4, 0x007fffff, 0x00800000, 0x7f7fffff, 0x3f800000, 0x3dcccccd, 0x3f733333,
       0x4b800000, 0x4b7fffff, 0x358637bd, 0x3a83126f]
p32 += [e << 23 for e in range(1, 255)] + [1 << k for k in range(23)] + [(e << 23) - 1 for e in range(2, 255, 7)]
p32 += [random.getrandbits(32) for _ in range(600)]
# decimals within half a binary64 unit of the border of two binary32: binary64 rounding takes them to the border itself
for t in ('7.038531e-26', '1.4077062e-25', '2.8154124e-25', '3.5192655e-26', '2.8874659e+22', '8.2381273e-28', '6.0419369e-39'):
    p32 += [bits32(float(t)) + d for d in (-1, 0, 1)]
    read(t)
for b in p32:
    if b >> 23 & 0xff != 0xff:
        print('repr32', '%08x' % b, shortest32(b))
