#!/usr/bin/env python3
"""Records the canonical normalisation data of the real engine (Hugging Face's Rust tokenizers).

  pip install tokenizers && tests/gen/probe_hf_unicode.py > tests/data/tokenizer/hf_nfc.json

The engine's tables are older than its regex classes (they stop at Unicode 9.0), so they are
probed, not taken from a Unicode release: its NFD of every scalar value gives the decompositions,
its NFC of every candidate pair the compositions, its reordering of mark pairs the marks it knows.
Only the numbers of the combining classes come from Python's unicodedata; the stability policy
fixes them for every assigned character, and the order they imply is checked against the engine.
"""
import json
import sys
import unicodedata

from tokenizers.normalizers import NFC, NFD

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
nfc = lambda s: NFC().normalize_str(s)
nfd = lambda s: NFD().normalize_str(s)


def is_hangul(c):
    return 0xAC00 <= c < 0xAC00 + 11172


def combining_classes():
    """{mark: class} of every mark that the engine reorders."""
    classes = {}
    low, high = 0x334, 0x345  # the lowest class (1) and the highest (240)
    for c in SCALARS:
        swapped_down = nfd("a" + chr(high) + chr(c)) == "a" + nfd(chr(c)) + chr(high)
        swapped_up = nfd("a" + chr(c) + chr(low)) == "a" + chr(low) + nfd(chr(c))
        if c in (low, high) or swapped_down or swapped_up:
            if nfd(chr(c)) == chr(c):
                classes[c] = unicodedata.combining(chr(c))
    assert all(classes.values())
    representatives = {}
    for c, k in classes.items():
        representatives.setdefault(k, c)
    for c, k in classes.items():
        for kr, r in representatives.items():
            expected = "a" + (chr(r) + chr(c) if kr <= k else chr(c) + chr(r))
            assert nfd("a" + chr(r) + chr(c)) == expected, (hex(c), hex(r))
    return classes


def main():
    decompositions = {c: [ord(x) for x in nfd(chr(c))] for c in SCALARS if not is_hangul(c) and nfd(chr(c)) != chr(c)}
    compositions = []
    for c, d in decompositions.items():
        if nfc(chr(c)) != chr(c):
            continue  # a singleton, or excluded from composition
        first, second = nfc("".join(map(chr, d[:-1]))), d[-1]
        assert len(first) == 1 and nfc(first + chr(second)) == chr(c), hex(c)
        compositions.append([ord(first), second, c])
    ranges = []
    for c, k in sorted(combining_classes().items()):
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == k:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, k])
    out = {
        "ccc": ranges,
        "compositions": sorted(compositions),
        "decompositions": [[c] + d for c, d in sorted(decompositions.items())],
    }
    sys.stdout.write("{\n" + ",\n".join('"%s":%s' % (k, json.dumps(v, separators=(",", ":"))) for k, v in out.items()) + "\n}\n")


main()
