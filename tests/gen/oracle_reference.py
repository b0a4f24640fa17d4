"""Cases for every operation of the oracle, answered by reference.py.

    python tests/gen/oracle_reference.py > tests/data/oracle.txt

A case is a line "case OP KEY=NUMBER ..." and one line "NAME HEX" per array: 32-bit words as 8 digits (f32 bits, scales),
f16 bits as 4, bytes as 2.
"""
import numpy as np
import reference as ref

F = np.float32
R = ref.Random(20260101)
EDGE = [0.0, -0.0, 1e-45, -1e-45, 1.1754944e-38, -1.1754942e-38, 1.0, -1.0, 3.5, 1e30, -1e30, 3.4028235e38, -3.4028235e38]


def words(x):
    return "".join("%08x" % b for b in np.asarray(x, F).reshape(-1).view(np.uint32))


def halves(x):
    return "".join("%04x" % int(b) for b in np.asarray(x).reshape(-1))


def octets(x):
    return "".join("%02x" % (int(b) & 255) for b in np.asarray(x).reshape(-1))


def case(op, arrays, **numbers):
    print("case", op, *["%s=%d" % item for item in numbers.items()])
    for name, text in arrays.items():
        print(name, text)


def floats(n, low=-3, high=3):
    """n values of both signs with magnitudes 2^low .. 2^high."""
    out = []
    for _ in range(n):
        bits = R.next()
        exponent = low + (bits >> 40) % (high - low + 1)
        out.append((1 if bits & 1 else -1) * (1 + ((bits >> 8) & 0x7FFFFF) / 2 ** 23) * 2.0 ** exponent)
    return np.array(out, F)


def matrix(rows, cols):
    q = np.array([R.next() % 255 - 127 for _ in range(rows * cols)], np.int64).reshape(rows, cols)
    d = np.array([(R.next() & 0x83FF) | (R.next() % 8) << 10 for _ in range(rows * cols // 32)], np.int64)
    return q, d.reshape(rows, cols // 32)


def blocks(q, d):
    """Row-major Q8_0 bytes."""
    out = []
    for row in range(len(q)):
        for b in range(q.shape[1] // 32):
            out += [d[row, b] & 255, d[row, b] >> 8] + list(q[row, 32 * b:32 * b + 32])
    return octets(out)


def products():
    q, d = matrix(64, 96)
    case("embed", dict(w=blocks(q, d), y=words(ref.dequantise(q, d))), rows=64, cols=96)
    inputs = [floats(96), floats(96, -140, -120), np.array((EDGE[:9] * 11)[:96], F)]
    y = [ref.matvec_f32(q, d, x) for x in inputs]
    case("matmul_f32", dict(w=blocks(q, d), x=words(inputs), y=words(y)), rows=64, cols=96, n=3)
    quantised = [ref.quantise(x) for x in inputs]
    y = [ref.matvec_q8(q, d, xq, a) for xq, a in quantised]
    case("matmul_q8", dict(w=blocks(q, d), xq=octets([xq for xq, _ in quantised]), a=words([a for _, a in quantised]), y=words(y)),
         rows=64, cols=96, n=3)
    q = np.where(np.arange(32 * 64).reshape(32, 64) % 2, 127, -127)  # the largest sums there are
    xq = np.where(np.arange(64) % 2, 127, -127)
    d, a = np.full((32, 2), 0x7BFF), np.array([1.5, 3e-39], F)
    case("matmul_q8", dict(w=blocks(q, d), xq=octets(xq), a=words(a), y=words(ref.matvec_q8(q, d, xq, a))), rows=32, cols=64, n=1)


def quantiser():
    ties = np.array([127] + [i + 0.5 for i in range(15)] + [-i - 0.5 for i in range(15)] + [-127], F)
    near = np.nextafter(np.abs(ties), F(np.inf)) * np.sign(ties)
    inputs = [ties, near, np.nextafter(np.abs(ties), F(0)) * np.sign(ties), floats(32), floats(32, -110, -90), floats(32, -101, -100),
              floats(32, -149, -127), floats(32, 100, 127), np.array((EDGE * 3)[:32], F), np.zeros(32, F),
              np.array([-0.0] * 31 + [2.0 ** -100], F), np.array([-0.0] * 31 + [np.nextafter(F(2.0 ** -100), F(0))], F),
              np.array([3.4028235e38] * 32, F), np.arange(32).astype(F) / F(3)]
    x = np.concatenate(inputs).astype(F)
    xq, a = ref.quantise(x)
    case("quantize", dict(x=words(x), xq=octets(xq), a=words(a)), n=len(x))


def norms():
    for x in (floats(32), floats(128), floats(96, -149, -100), floats(64, 100, 126), np.zeros(32, F), np.array((EDGE * 8)[:96], F)):
        w = floats(len(x), -2, 1)
        case("rmsnorm", dict(x=words(x), w=words(w), y=words(ref.rmsnorm(x, w, F(1e-6)))), n=len(x))


def rotations():
    for theta, dim in ((1000000, 128), (10000, 32), (5000000, 64)):
        freq = ref.inv_freq(theta, dim)
        for position in (0, 1, 2, 127, 8191, 40959, 131072):
            c, s = ref.rope_table(position, freq)
            x = floats(dim)
            case("rope", dict(freq=words(freq), c=words(c), s=words(s), x=words(x), y=words(ref.rope(x, c, s))), half=dim // 2, position=position)


def caches():
    x = np.concatenate([np.array(EDGE[:9] + [65504.0, 65519.996, -65519.996, 6.1035156e-5, 5.9604645e-8, 2.9802322e-8, 2.9802326e-8, 8.94e-8,
                                             2049.0, 2051.0, 0.33333334], F), floats(28, -26, 15)])
    case("kv_store", dict(x=words(x), y=halves(x.astype(np.float16).view(np.uint16))), n=len(x))
    for dim, counts in ((8, (1, 2, 7, 8, 9, 17)), (64, (3, 8, 9)), (128, (1, 10))):
        for n in counts:
            for spread in (0, 4):  # with 4 the scores differ by hundreds: subnormal and zero exponentials
                q, k, v = floats(dim, -3, spread), floats(n * dim, -3, spread).reshape(n, dim), floats(n * dim).reshape(n, dim)
                case("attention", dict(q=words(q), k=words(k), v=words(v), y=words(ref.attention(q, k, v))), dim=dim, n=n, f16=0)
                hk, hv = k.astype(np.float16), v.astype(np.float16)
                case("attention", dict(q=words(q), k=halves(hk.view(np.uint16)), v=halves(hv.view(np.uint16)),
                                       y=words(ref.attention(q, hk.astype(F), hv.astype(F)))), dim=dim, n=n, f16=1)


def elementwise():
    g = np.array(EDGE + [-20, -87.5, -88, -88.73, -89, -100, -103.2, -103.9, -104, -150, 20, 88, 89, 150, 16.6, 16.7], F)
    g = np.concatenate([g, floats(99, -6, 6)])
    u = np.concatenate([np.ones(29, F), floats(len(g) - 29)])
    case("swiglu", dict(g=words(g), u=words(u), y=words(ref.swiglu(g, u))), n=len(g))
    x, y = np.concatenate([floats(50), np.array(EDGE, F)]), np.concatenate([floats(50, -30, 3), np.array(EDGE[::-1], F)])
    case("add", dict(x=words(x), y=words(y), z=words((x + y).astype(F))), n=len(x))
    case("scale", dict(s=words([ref.round_f32(1 / ref.mpmath.sqrt(n)) for n in range(8, 513, 8)])))


print("# made by tests/gen/oracle_reference.py")
for part in (products, quantiser, norms, rotations, caches, elementwise):
    part()
