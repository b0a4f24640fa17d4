#!/usr/bin/env python3
"""An independent reader of .slm2 files, written from docs/FORMAT.md alone (standard library only).

  tests/gen/read_slm2.py FILE...

Rebuilds the header from its fields and compares the bytes; checks cover, padding, every chunk hash, scales and weights.
Prints one line per file: identity, tensor bytes, "ok"; exits 1 at the first file that breaks a rule.
"""
import hashlib
import json
import math
import re
import struct
import sys

CHUNK = 4194304
GEOMETRY = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
            "head_dim", "vocab_size", "max_position_embeddings", "rope_theta"]
KEYS = (["format", "format_version", "architecture", "license", "source", "source_revision", "chat_format"] + GEOMETRY +
        ["rms_norm_eps", "tie_word_embeddings", "weight_form", "do_sample", "temperature", "top_k", "top_p",
         "repetition_penalty", "bos_token_id", "eos_token_ids", "pad_token_id", "tokenizer_bytes", "chunk_bytes", "chunk_sha256"])
FIXED = {"format": "slm2", "format_version": "1", "architecture": "qwen3", "chunk_bytes": "4194304"}
PATTERNS = {"license": r"[a-z0-9.+-]{1,63}", "source": r'[ !#-\[\]-~]{1,63}', "source_revision": r"unknown|[0-9a-f]{40}",
            "chat_format": r"qwen3|none", "tie_word_embeddings": r"true|false", "weight_form": r"Q8_0|Q8_0_P32",
            "do_sample": r"true|false", "chunk_sha256": r"([0-9a-f]{64})+"}
INTEGERS = GEOMETRY + ["top_k", "tokenizer_bytes"]
# key: lowest, highest, multiple
LIMITS = {"hidden_size": (32, 65536, 32), "intermediate_size": (32, 262144, 32), "num_hidden_layers": (1, 256, 1),
          "num_attention_heads": (1, 1024, 1), "num_key_value_heads": (1, 1024, 1), "head_dim": (8, 512, 8),
          "vocab_size": (32, 1048576, 32), "max_position_embeddings": (1, 1 << 24, 1), "rope_theta": (2, 1 << 31, 1),
          "top_k": (0, (1 << 32) - 1, 1), "tokenizer_bytes": (0, 1 << 28, 1)}


def need(condition, what):
    if not condition:
        raise ValueError(what)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def shortest(x):
    """Shortest decimal that reads back to the f32 x, laid out like repr."""
    for digits in range(1, 18):
        text = "%.*e" % (digits - 1, x)
        if f32(float(text)) == x:
            return repr(float(text))


def integer(text):
    need(re.fullmatch(r"0|[1-9][0-9]*", text), "not a plain integer: " + text)
    return int(text)


def check_metadata(meta):
    need(list(meta) == KEYS, "metadata keys or their order")
    need(all(isinstance(v, str) for v in meta.values()), "a metadata value is not a string")
    for key, value in FIXED.items():
        need(meta[key] == value, "%s is %s" % (key, meta[key]))
    for key, pattern in PATTERNS.items():
        need(re.fullmatch(pattern, meta[key]), key)
    for key in INTEGERS:
        low, high, multiple = LIMITS[key]
        value = integer(meta[key])
        need(low <= value <= high and value % multiple == 0, "%s is %d" % (key, value))
    heads, kv = int(meta["num_attention_heads"]), int(meta["num_key_value_heads"])
    need(heads % kv == 0 and kv * int(meta["head_dim"]) % 32 == 0, "heads")
    for key in ["rms_norm_eps", "temperature", "top_p", "repetition_penalty"]:
        value = float(meta[key])
        need(math.isfinite(value) and meta[key] == shortest(f32(value)), "%s is not in its shortest form" % key)
        need(value > 0 or (value == 0 and key in ("temperature", "top_p")), key)
        need(key != "top_p" or value <= 1, key)
    need(float(meta["rms_norm_eps"]) <= 1, "rms_norm_eps")
    ids = [i for key in ["bos_token_id", "pad_token_id", "eos_token_ids"] if meta[key] != "none" for i in meta[key].split(",")]
    need(all(integer(i) < int(meta["vocab_size"]) for i in ids) and meta["eos_token_ids"].count(",") < 8, "special ids")
    need(all("," not in meta[key] for key in ["bos_token_id", "pad_token_id"]), "bos or pad")


def sections(meta):
    """(name, dtype, shape, payload bytes) in file order."""
    h, m, layers, heads, kv, d, vocab = (int(meta[k]) for k in GEOMETRY[:7])
    out = [("tokenizer", "U8", [int(meta["tokenizer_bytes"])]), ("rope.inv_freq", "F32", [d // 2])]
    q8 = meta["weight_form"]
    out.append(("model.embed_tokens.weight", q8, [vocab, h]))
    for n in range(layers):
        for name, shape in [("input_layernorm", [h]), ("self_attn.q_proj", [heads * d, h]), ("self_attn.k_proj", [kv * d, h]),
                            ("self_attn.v_proj", [kv * d, h]), ("self_attn.o_proj", [h, heads * d]), ("self_attn.q_norm", [d]),
                            ("self_attn.k_norm", [d]), ("post_attention_layernorm", [h]), ("mlp.gate_proj", [m, h]),
                            ("mlp.up_proj", [m, h]), ("mlp.down_proj", [h, m])]:
            out.append(("model.layers.%d.%s.weight" % (n, name), q8 if len(shape) == 2 else "F32", shape))
    out.append(("model.norm.weight", "F32", [h]))
    if meta["tie_word_embeddings"] == "false":
        out.append(("lm_head.weight", q8, [vocab, h]))
    size = {"U8": lambda s: s[0], "F32": lambda s: 4 * s[0], q8: lambda s: s[0] * s[1] // 32 * 34}
    return [(name, dtype, shape, size[dtype](shape)) for name, dtype, shape in out]


def check_payload(name, dtype, shape, data):
    if dtype == "F32":
        for i, (bits,) in enumerate(struct.iter_unpack("<I", data)):
            good = 0 < bits <= 0x3f800000 if name == "rope.inv_freq" else bits & 0x7f800000 != 0x7f800000
            need(good, "%s[%d] is 0x%08x" % (name, i, bits))
    elif dtype != "U8":
        period, scales = (34, 2) if dtype == "Q8_0" else (1088, 64)
        for i in range(period):  # every period-th byte: the same place of all blocks or panels
            column = data[i::period]
            if i >= scales:
                need(b"\x80" not in column, "%s: a weight is -128" % name)
            elif i % 2 == 1:
                need(not any(b & 0x7c == 0x7c for b in set(column)), "%s: a scale is not finite" % name)


def check_file(path):
    with open(path, "rb") as f:
        file = memoryview(f.read())
    need(len(file) >= 8, "no header length")
    n = struct.unpack("<Q", file[:8])[0]
    need(0 < n <= 1048576 and (8 + n) % 64 == 0 and 8 + n <= len(file), "header length %d" % n)
    raw, data = bytes(file[8:8 + n]), file[8 + n:]
    header = json.loads(raw.decode("utf-8"), object_pairs_hook=list)
    need(isinstance(header, list) and header and header[0][0] == "__metadata__", "no __metadata__")
    meta = dict(header[0][1])
    check_metadata(meta)
    listed = sections(meta)
    again = {"__metadata__": meta}
    end = 0
    for name, dtype, shape, payload in listed:
        begin, end = end, end + (payload + 63) // 64 * 64
        again[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
        need(end <= len(data), "%s ends beyond the file" % name)
        need(not any(data[begin + payload:end]), "%s: padding is not zero" % name)
        check_payload(name, dtype, shape, bytes(data[begin:begin + payload]))
    text = json.dumps(again, separators=(",", ":")).encode()
    need(text + b" " * ((-8 - len(text)) % 64) == raw, "the header is not canonical")
    need(end == len(data), "%d bytes of data, %d in the sections" % (len(data), end))
    chunks = [data[i:i + CHUNK] for i in range(0, len(data), CHUNK)]
    need(meta["chunk_sha256"] == "".join(hashlib.sha256(c).hexdigest() for c in chunks), "a chunk hash differs")
    return hashlib.sha256(raw).hexdigest(), sum(s[3] for s in listed[2:])


if __name__ == "__main__":
    for path in sys.argv[1:]:
        try:
            identity, tensor_bytes = check_file(path)
        except (ValueError, KeyError, TypeError, OSError) as error:
            sys.exit("%s: %s" % (path, error))
        print("ok %s identity %s tensor bytes %d" % (path, identity, tensor_bytes))
