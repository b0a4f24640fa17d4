#!/usr/bin/env python3
"""The data of a synthetic SLM2 file from its definition (docs/FORMAT.md, "Synthetic models"), for tests/unit/test_synth.c.

    python3 tests/gen/synth_reference.py

Prints the SHA-256 of the data of each case. Independent of convert/: Python integers for the generator, mpmath for the
rotary frequencies (NUMERICS D14), DECISIONS K7 for the panels.
"""
import hashlib
import struct

import mpmath

MASK = (1 << 64) - 1
G = 0x9E3779B97F4A7C15
SPECIAL = ["endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end", "box_start", "box_end", "quad_start", "quad_end",
           "vision_start", "vision_end", "vision_pad", "image_pad", "video_pad"]
PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
         "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def tokenizer():
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    tokens = [bytes([b]) for b in own + [b for b in range(256) if b not in own]]
    added = [("<|%s|>" % s, 1) for s in SPECIAL] + [(s, 0) for s in PLAIN]
    tokens += [text.encode() for text, _ in added]
    blob, ends = b"", []
    for t in tokens:
        blob += t
        ends.append(len(blob))
    words = [0x31544C53, 1, len(tokens), 0, len(added), len(blob), 0, 0] + ends
    for i, (_, flag) in enumerate(added):
        words += [256 + i, flag]
    return struct.pack("<%dI" % len(words), *words) + blob


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def inv_freq(theta, head_dim):
    mpmath.mp.prec = 300
    out = b""
    for i in range(head_dim // 2):
        power = mpmath.mpf(theta) ** mpmath.mpf(f32(2 * i / head_dim))
        exponent = int(mpmath.floor(mpmath.log(power, 2)))
        rounded = float(mpmath.nint(power * mpmath.mpf(2) ** (23 - exponent)) * mpmath.mpf(2) ** (exponent - 23))
        out += struct.pack("<f", 1 / rounded)  # the quotient of two f32, rounded to f64 and f32: innocuous
    return out


def matrix(seed, i, rows, cols, logits, panels):
    log2 = (cols - 1).bit_length()
    exponent = max(1, 8 - log2 // 2) + (2 if logits else 0)
    section = mix(seed + G * (i + 1) & MASK)
    table = []
    for r in range(rows):
        key = mix(section + G * (r + 1) & MASK)
        line = []
        for b in range(cols // 32):
            words = [mix(key + G * (8 * b + k + 1) & MASK) for k in range(5)]
            q = b"".join(struct.pack("<Q", w) for w in words[:4]).replace(b"\x80", b"\x00")
            w = words[4]
            negative, subnormal = w >> 10 & 0x3FF == 0, w >> 20 & 0x3FF == 0
            line.append((struct.pack("<H", negative << 15 | (0 if subnormal else exponent) << 10 | w & 0x3FF), q))
        table.append(line)
    if not panels:
        return b"".join(d + q for line in table for d, q in line)
    out = b""
    for r0 in range(0, rows, 32):
        for b in range(cols // 32):
            group = [table[r0 + r][b] for r in range(32)]
            out += b"".join(group[r][0] + group[r + 16][0] for r in range(16))
            out += b"".join(group[r][1][4 * g:4 * g + 4] for g in range(8) for r in range(32))
    return out


def norm(seed, i, n):
    section = mix(seed + G * (i + 1) & MASK)
    return b"".join(struct.pack("<f", (1024 + (mix(section + G * (j + 1) & MASK) & 255) - 128) / 1024) for j in range(n))


def data(hidden, mlp, layers, heads, kv_heads, head_dim, vocab, theta, tied, seed, panels):
    q, kv = heads * head_dim, kv_heads * head_dim
    sections = [(vocab, hidden, True)]
    for _ in range(layers):
        sections += [hidden, (q, hidden, False), (kv, hidden, False), (kv, hidden, False), (hidden, q, False), head_dim, head_dim, hidden,
                     (mlp, hidden, False), (mlp, hidden, False), (hidden, mlp, False)]
    sections += [hidden] + ([] if tied else [(vocab, hidden, True)])
    parts = [tokenizer(), inv_freq(theta, head_dim)]
    for i, s in enumerate(sections):
        parts.append(norm(seed, i + 2, s) if isinstance(s, int) else matrix(seed, i + 2, s[0], s[1], s[2], panels))
    return b"".join(p + bytes(-len(p) % 64) for p in parts)


for case in ((True, 1, False), (True, 1, True), (False, 0xFEDCBA9876543210, False)):
    tied, seed, panels = case
    print(case, hashlib.sha256(data(96, 160, 2, 4, 2, 48, 288, 10000, tied, seed, panels)).hexdigest())
