#!/usr/bin/env python3
"""slm2 verify and tests/gen/read_slm2.py, two readers of docs/FORMAT.md, must agree on every edited file.

  tests/fault/format_differential.py build/slm2 [EDITS]

Edits of tiny synthetic files, of both weight forms: bytes and values of the header, order of its entries, data with the
hashes made right again, lengths. Exits 1 at the first disagreement, or when edits of a kind were never accepted or never refused.
"""
import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gen"))
import read_slm2  # noqa: E402

ALPHABET = b'{}[]:," \\0123456789eE.-+abcdefnoruQ_8\n\x00\xff'
VALUES = ["", "0", "1", "2", "8", "32", "33", "64", "96", "-1", "01", "1.0", "1e3", "0.5", "0.50", "1e-06", "1e-6", "nan", "none",
          "true", "false", "True", "3,4", "3,", "unknown", "qwen3", "Q8_0", "mit", "MIT", "a b", "a\"b", "4294967295", "4294967296",
          "18446744073709551616", "\u00e9", "synth"]


def compact(header):
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * ((-8 - len(text)) % 64)


def edit_bytes(rng, header, data):
    raw = bytearray(header)
    for _ in range(rng.choice([1, 1, 2])):
        raw[rng.randrange(len(raw))] = rng.choice(ALPHABET)
    return bytes(raw), data


def edit_value(rng, header, data):
    tree = json.loads(header)
    key = rng.choice(list(tree["__metadata__"])[:-1])
    tree["__metadata__"][key] = rng.choice(VALUES)
    return compact(tree), data


def edit_order(rng, header, data):
    tree = list(json.loads(header).items())
    kind = rng.randrange(4)
    i, j = rng.randrange(len(tree)), rng.randrange(len(tree))
    if kind == 0:
        tree[i], tree[j] = tree[j], tree[i]
    elif kind == 1:
        del tree[i]
    elif kind == 2:
        tree[i] = (tree[i][0] + rng.choice(["", "x"]), tree[i][1])
    elif i > 0:
        entry = dict(tree[i][1])
        entry[rng.choice(["dtype", "shape", "data_offsets"])] = rng.choice(["F32", "F16", "Q8_0", [32], [64, 64], [0, 64], [], 7])
        tree[i] = (tree[i][0], entry)
    return compact(dict(tree)), data


def edit_data(rng, header, data):
    """One byte of the data, under right hashes: only what the byte means counts."""
    changed = bytearray(data)
    place = rng.randrange(len(data) if rng.random() < 0.5 else 4096)
    changed[place] = rng.choice([0, 1, 0x7c, 0x7f, 0x80, 0xfc, 0xff])
    old, new = (hashlib.sha256(d).hexdigest().encode() for d in (data, bytes(changed)))
    return header.replace(old, new), bytes(changed)


def edit_length(rng, header, data):
    kind = rng.randrange(4)
    if kind == 0:
        return header, data[:rng.randrange(len(data) + 1)]
    if kind == 1:
        return header, data + bytes(rng.choice([0, 1, 64]))
    return header + b" " * (64 * (kind - 2)), data


def main():
    slm2, edits = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 150
    rng = random.Random(5)  # seed 5
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "edited.slm2")
        files = []
        for layout in ["panels", "rows"]:
            subprocess.run([slm2, "synth", path, "--shape", "tiny", "--seed", "1", "--layout", layout], check=True,
                           stdout=subprocess.DEVNULL)
            with open(path, "rb") as f:
                files.append(f.read())
        for edit in [edit_bytes, edit_value, edit_order, edit_data, edit_length]:
            verdicts = {True: 0, False: 0}
            for i in range(edits):
                file = files[i % 2]
                n = struct.unpack("<Q", file[:8])[0]
                header, data = edit(rng, file[8:8 + n], file[8 + n:])
                with open(path, "wb") as f:
                    f.write(struct.pack("<Q", len(header)) + header + data)
                result = subprocess.run([slm2, "verify", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                try:
                    read_slm2.check_file(path)
                    accepted = True
                except (ValueError, KeyError, TypeError, IndexError, AttributeError):
                    accepted = False
                if result.returncode not in (0, 1) or accepted != (result.returncode == 0):
                    sys.exit("%s %d: read_slm2.py %s, slm2 verify exits %d: %s" % (
                        edit.__name__, i, "accepts" if accepted else "refuses", result.returncode, result.stderr.decode()))
                verdicts[accepted] += 1
            if 0 in verdicts.values():
                sys.exit("%s: %d accepted, %d refused: one kind was never tried" % (edit.__name__, verdicts[True], verdicts[False]))
            print("ok %s: %d accepted, %d refused by both readers" % (edit.__name__, verdicts[True], verdicts[False]))


if __name__ == "__main__":
    main()
