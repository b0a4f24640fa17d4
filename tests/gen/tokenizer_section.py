#!/usr/bin/env python3
"""tokenizer.json (byte-level BPE of Qwen's kind) to a tokenizer section (src/tokenizer/section.h).

  tests/gen/tokenizer_section.py tokenizer.json out.section

Independent of convert/: the tests build their sections with it, and convert's bytes must equal its.
"""
import json
import struct
import sys

MAGIC, PRETOKENIZER_QWEN2, SPECIAL = 0x31544C53, 1, 1


def byte_of_symbol():
    """GPT-2's map from printable symbols to bytes."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in kept]
    return {**{chr(b): b for b in kept}, **{chr(0x100 + i): b for i, b in enumerate(others)}}


def section_of(tokenizer):
    model, symbols = tokenizer["model"], byte_of_symbol()
    texts = {i: bytes(symbols[c] for c in token) for token, i in model["vocab"].items()}
    added = sorted((a["id"], SPECIAL if a["special"] else 0, a["content"].encode()) for a in tokenizer["added_tokens"])
    texts.update({i: content for i, _, content in added})
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    n_tokens = max(texts) + 1
    blob, ends = bytearray(), []
    for i in range(n_tokens):
        blob += texts.get(i, b"")
        ends.append(len(blob))
    rows = [x for a, b in merges for x in (model["vocab"][a], model["vocab"][b], model["vocab"][a + b])]
    words = [MAGIC, PRETOKENIZER_QWEN2, n_tokens, len(merges), len(added), len(blob), 0, 0]
    words += ends + rows + [x for i, flags, _ in added for x in (i, flags)]
    return struct.pack("<%dI" % len(words), *words) + bytes(blob)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        section = section_of(json.load(f))
    with open(sys.argv[2], "wb") as f:
        f.write(section)
