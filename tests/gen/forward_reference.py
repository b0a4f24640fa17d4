"""Whole forward passes by reference.py, on the synthetic models of tests/unit/tiny_model.h: the bits that slm2 must give.

    python tests/gen/forward_reference.py > tests/golden/tiny_forward.txt
    python tests/gen/forward_reference.py --stages > tests/golden/tiny_stages.txt

One line per model, profile, KV type and position: SHA-256 of the logits as little-endian f32, and the bits of the
first three for a human to compare. With --stages one line per model, profile, KV type, layer and stage: SHA-256 of the
stage's values at all positions, one position after the other.
"""
import hashlib
import sys
import numpy as np
import reference as ref

F = np.float32
# name, hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, tied, theta, seed
MODELS = [("gqa2", 64, 96, 2, 4, 2, 32, 320, True, 1000000, 1),
          ("mha", 64, 64, 1, 2, 2, 64, 64, False, 10000, 2),
          ("gqa4", 32, 64, 2, 4, 1, 128, 64, True, 5000000, 3)]
IDS = [7, 1, 63, 0, 7, 7, 20, 9, 33, 2]


class Weights:
    """The tensors of a synthetic model: section i of its file is drawn from the stream of seed * 1000 + i."""

    def __init__(self, seed):
        self.seed, self.section = seed, 0

    def stream(self):
        self.section += 1
        return ref.Random(self.seed * 1000 + self.section - 1)

    def vector(self, n):
        r = self.stream()
        return np.array([1 + ((r.next() & 63) - 32) / 64 for _ in range(n)], F)

    def matrix(self, rows, cols):
        r = self.stream()
        q = np.zeros((rows, cols), np.int64)
        d = np.zeros((rows, cols // 32), np.int64)
        for row in range(rows):
            for b in range(cols // 32):
                bits = r.next()
                scale = bits & 0x3FF
                scale |= 0 if (bits >> 10) & 63 == 0 else 5 << 10  # a few subnormal scales, else 2^-10 .. 2^-9
                scale |= 0x8000 if (bits >> 16) & 15 == 0 else 0   # a few negative ones
                d[row, b] = scale
                for j in range(4):
                    word = r.next()
                    for k in range(8):
                        q[row, 32 * b + 8 * j + k] = ((word >> (8 * k)) & 255) % 255 - 127
        return q, d


class Model:
    def __init__(self, spec):
        (self.name, self.hidden, self.intermediate, self.n_layers, self.heads, self.kv_heads, self.head_dim, self.vocab,
         self.tied, theta, seed) = spec
        w = Weights(seed)
        w.stream()  # the tokenizer's section, empty
        w.stream()  # rope.inv_freq
        self.freq = ref.inv_freq(theta, self.head_dim)
        self.embedding = w.matrix(self.vocab, self.hidden)
        self.layers = []
        for _ in range(self.n_layers):
            self.layers.append(dict(
                norm1=w.vector(self.hidden), q=w.matrix(self.heads * self.head_dim, self.hidden),
                k=w.matrix(self.kv_heads * self.head_dim, self.hidden), v=w.matrix(self.kv_heads * self.head_dim, self.hidden),
                o=w.matrix(self.hidden, self.heads * self.head_dim), q_norm=w.vector(self.head_dim),
                k_norm=w.vector(self.head_dim), norm2=w.vector(self.hidden), gate=w.matrix(self.intermediate, self.hidden),
                up=w.matrix(self.intermediate, self.hidden), down=w.matrix(self.hidden, self.intermediate)))
        self.final_norm = w.vector(self.hidden)
        self.head = self.embedding if self.tied else w.matrix(self.vocab, self.hidden)


def products(profile, x, *matrices):
    if profile == "f32":
        return [ref.matvec_f32(q, d, x) for q, d in matrices]
    xq, a = ref.quantise(x)
    return [ref.matvec_q8(q, d, xq, a) for q, d in matrices]


def forward(m, profile, kv, ids, tap=lambda layer, stage, x: x):
    """Logits after every token, one token at a time (decode). The tap sees every stage."""
    eps, dim = 1e-6, m.head_dim
    keys = [[[] for _ in range(m.kv_heads)] for _ in range(m.n_layers)]
    values = [[[] for _ in range(m.kv_heads)] for _ in range(m.n_layers)]
    store = (lambda x: x) if kv == "f32" else (lambda x: x.astype(np.float16).astype(F))
    for position, token in enumerate(ids):
        x = tap(0, "embed", ref.dequantise(*[part[token:token + 1] for part in m.embedding])[0])
        c, s = ref.rope_table(position, m.freq)
        for i, w in enumerate(m.layers):
            h = tap(i, "attention_norm", ref.rmsnorm(x, w["norm1"], eps))
            q, k, v = products(profile, h, w["q"], w["k"], w["v"])
            for stage, product in ("q_proj", q), ("k_proj", k), ("v_proj", v):
                tap(i, stage, product)
            q = [ref.rope(ref.rmsnorm(head, w["q_norm"], eps), c, s) for head in q.reshape(m.heads, dim)]
            k = [ref.rope(ref.rmsnorm(head, w["k_norm"], eps), c, s) for head in k.reshape(m.kv_heads, dim)]
            tap(i, "q_rope", np.concatenate(q))
            tap(i, "k_rope", np.concatenate(k))
            for j in range(m.kv_heads):
                keys[i][j].append(store(k[j]))
                values[i][j].append(store(v[j * dim:j * dim + dim]))
            out = []
            for j in range(m.heads):
                shared = j // (m.heads // m.kv_heads)
                out.append(ref.attention(q[j], keys[i][shared], values[i][shared]))
            out = tap(i, "attention", np.concatenate(out))
            out = tap(i, "o_proj", products(profile, out, w["o"])[0])
            x = tap(i, "attention_residual", (x + out).astype(F))
            h = tap(i, "mlp_norm", ref.rmsnorm(x, w["norm2"], eps))
            gate, up = products(profile, h, w["gate"], w["up"])
            tap(i, "gate_proj", gate)
            tap(i, "up_proj", up)
            out = tap(i, "swiglu", ref.swiglu(gate, up))
            out = tap(i, "down_proj", products(profile, out, w["down"])[0])
            x = tap(i, "residual", (x + out).astype(F))
        h = tap(m.n_layers, "final_norm", ref.rmsnorm(x, m.final_norm, eps))
        yield tap(m.n_layers, "logits", products(profile, h, m.head)[0])


def stages():
    print("# model profile kv layer stage sha256 of all positions; made by tests/gen/forward_reference.py --stages")
    for spec in MODELS:
        m = Model(spec)
        for profile in ("f32", "q8"):
            for kv in ("f32", "f16"):
                hashes = {}

                def tap(layer, stage, x):
                    hashes.setdefault((layer, stage), hashlib.sha256()).update(x.astype("<f4").tobytes())
                    return x
                for _ in forward(m, profile, kv, IDS, tap):
                    pass
                for (layer, stage), digest in hashes.items():
                    print(m.name, profile, kv, layer, stage, digest.hexdigest(), flush=True)


def main():
    if sys.argv[1:] == ["--stages"]:
        return stages()
    print("# model profile kv position sha256 first-three-logits; made by tests/gen/forward_reference.py")
    print("# ids " + " ".join(map(str, IDS)))
    for spec in MODELS:
        m = Model(spec)
        for profile in ("f32", "q8"):
            for kv in ("f32", "f16"):
                for position, logits in enumerate(forward(m, profile, kv, IDS)):
                    digest = hashlib.sha256(logits.astype("<f4").tobytes()).hexdigest()
                    first = " ".join("%08x" % b for b in logits[:3].view(np.uint32))
                    print(m.name, profile, kv, position, digest, first, flush=True)


main()
