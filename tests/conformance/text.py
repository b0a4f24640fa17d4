"""Tokenizer, decoder and chat template of Hugging Face on the inputs that build/tests/conformance makes from their numbers,
compared item by item, and the digests that `make conformance` checks (tests/conformance/text.c describes the lines)."""
import hashlib
import json
import struct
import subprocess

from tokenizers import Tokenizer
from transformers import AutoTokenizer

# set: items in a block, blocks
SETS = {"strings": (10000, 20), "ids": (10000, 5), "conversations": (100, 10)}


def ids_of(field):
    return [] if field == "-" else [int(i) for i in field.split(",")]


def bytes_of(field):
    return b"" if field == "-" else bytes.fromhex(field)


def packed(ids):
    return struct.pack(f"<{len(ids) + 1}I", *ids, 0xFFFFFFFF)


def sized(data):
    return struct.pack("<I", len(data)) + data


class Reference:
    def __init__(self, tokenizer_json, folder):
        """folder: tokenizer.json and Qwen3's tokenizer_config.json, as in the published model."""
        with open(tokenizer_json, encoding="utf-8") as f:
            spec = json.load(f)
        self.full = Tokenizer.from_str(json.dumps(spec))
        self.plain = Tokenizer.from_str(json.dumps(dict(spec, added_tokens=[])))
        self.chat = AutoTokenizer.from_pretrained(folder)

    def strings(self, lines):
        """Ill-formed UTF-8 becomes one U+FFFD per maximal subpart, in Python as in slm2."""
        texts = [bytes_of(line[0]).decode(errors="replace") for line in lines]
        on, off = self.full.encode_batch(texts), self.plain.encode_batch(texts)
        for line, a, b in zip(lines, on, off):
            yield sized(bytes_of(line[0])), packed(a.ids) + packed(b.ids), packed(ids_of(line[1])) + packed(ids_of(line[2]))

    def ids(self, lines):
        every = [ids_of(line[0]) for line in lines]
        all_texts = self.full.decode_batch(every, skip_special_tokens=False)
        texts = self.full.decode_batch(every, skip_special_tokens=True)
        for line, ids, a, b in zip(lines, every, all_texts, texts):
            yield packed(ids), sized(a.encode()) + sized(b.encode()), sized(bytes_of(line[1])) + sized(bytes_of(line[2]))

    def conversations(self, lines):
        for line in lines:
            raw = bytes_of(line[0])
            data = json.loads(raw)
            options = {key: data[key] for key in ("tools", "enable_thinking") if key in data}
            options["add_generation_prompt"] = data.get("add_generation_prompt", True)
            text = self.chat.apply_chat_template(data["messages"], tokenize=False, **options)
            ids = self.chat.apply_chat_template(data["messages"], tokenize=True, return_dict=False, **options)
            yield sized(raw), sized(text.encode()) + packed(ids), sized(bytes_of(line[1])) + packed(ids_of(line[2]))


def refresh(program, tokenizer_json, folder, out):
    """Writes out; returns {set: (items, identical, first that differs or None)}."""
    reference, summary, digests = Reference(tokenizer_json, folder), {}, []
    for name, (size, blocks) in SETS.items():
        same, first = 0, None
        for block in range(blocks):
            printed = subprocess.run([program, "print", tokenizer_json, name, str(block * size), str(size)], check=True,
                                     capture_output=True).stdout.decode()
            lines = [line.split(" ") for line in printed.splitlines()]
            assert len(lines) == size
            inputs, results = hashlib.sha256(), hashlib.sha256()
            for i, (given, theirs, ours) in enumerate(getattr(reference, name)(lines)):
                inputs.update(given)
                results.update(theirs)
                same += ours == theirs
                if ours != theirs and first is None:
                    first = block * size + i
            digests.append(f"{name} {block} {inputs.hexdigest()} {results.hexdigest()}\n")
        summary[name] = (size * blocks, same, first)
    with open(out, "w", encoding="utf-8") as f:
        f.writelines(digests)
    return summary
