#!/usr/bin/env python3
"""Random texts and what Hugging Face's Rust tokenizer makes of them.

  pip install tokenizers
  tests/gen/random_text.py tokenizer.json 400 > tests/data/tokenizer/random_vectors.jsonl

Texts mix scripts, marks in any order, jamo, emoji, space runs, contractions, code, added tokens and pieces of
them, and invalid bytes. Per line:
  hex           the bytes
  text          what they say (only where some are invalid: Python's one U+FFFD per maximal subpart)
  pieces        the whole text in NFC, split into pre-tokens by the engine's own regular expression
  on, off       ids with added tokens on and off; decoded: the text of `on`
  mask, masked  runs of content and template bytes, and the ids: here the reference cuts at added tokens that
                lie in template bytes and encodes the parts between with added tokens off
"""
import json
import random
import sys
import unicodedata

SPACES = [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
WORDS = """the of and language model's it's I'LL WE'RE don't they've she'd CAN'T 'tis y'all'd'Ve function return_value
    x1 0x4096 3.14e-10 HelloWorld camelCase snake_case Straße naïve Øresund ελληνικά русский עברית العربية हिन्दी
    ไทย 日本語 中文字 한국어 tiếng Việt ﬁx ſhip ½ ² ⅷ ① K Å Ω""".split()
CODE = ["->", "==", "!=", "();\n", "{\n\t", "}\n\n", "// ", '"""', "'''", "```", "...", "/*", "*/", "<|", "|>", "</", "<", "://", "\\n", "#!", "&&", "'", "’"]
TAILS = ["s", "S", "t", "re", "RE", "Ve", "m", "ll", "lL", "d", "l", "r", "v", "ſ", "ſt", "K", "e", "ﬆ", "ŉ", "ß", "x"]


def load(path):
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    added = {a["content"]: a["id"] for a in spec["added_tokens"]}
    plain = dict(spec, added_tokens=[])
    pattern = spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    split, nfc = pre_tokenizers.Split(Regex(pattern), "isolated"), normalizers.NFC()
    pieces = lambda s: [p for p, _ in split.pre_tokenize_str(nfc.normalize_str(s))]
    return Tokenizer.from_str(json.dumps(spec)), Tokenizer.from_str(json.dumps(plain)), added, pieces


class Texts:
    def __init__(self, seed, added):
        self.r = random.Random(seed)
        self.added = list(added)
        scalars = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
        self.marks = [c for c in scalars if unicodedata.combining(chr(c))]
        self.decomposing = [c for c in scalars if unicodedata.normalize("NFD", chr(c)) != chr(c)]
        self.seconds = [c for c in scalars if unicodedata.category(chr(c)) in ("Mc", "Mn")]
        self.letters = [c for c in scalars if unicodedata.category(chr(c))[0] == "L" and c < 0x3400]
        self.numbers = [c for c in scalars if unicodedata.category(chr(c))[0] == "N"]

    def scalar(self):
        top = self.r.choice([0x80, 0x250, 0x800, 0x3000, 0x10000, 0x20000, 0x110000])
        while True:
            c = self.r.randrange(top)
            if not 0xD800 <= c < 0xE000:
                return c

    def many(self, pool, most):
        return "".join(chr(self.r.choice(pool)) for _ in range(self.r.randint(1, most)))

    def piece(self):
        r = self.r
        kind = r.randrange(16)
        if kind <= 2:
            return r.choice(["", " ", " "]) + r.choice(WORDS)
        if kind == 3:
            return self.many(SPACES, 6)
        if kind == 4:
            return r.choice([" ", "\n", "\r\n", "\t", "\r"]) * r.randint(1, 5)
        if kind == 5:
            return chr(self.scalar()) + self.many(self.marks, 5)
        if kind == 6:
            return self.many(self.marks + self.decomposing, 5) if r.random() < 0.4 else r.choice("aeiouAEOSs") + self.many([*range(0x300, 0x346)], 4)
        if kind == 7:
            return self.many(self.seconds + self.decomposing, 4)
        if kind == 8:
            return self.many([*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A7, 0x11C3), 0xAC00, 0xAC01, 0xB098], 5)
        if kind == 9:
            return "'" + r.choice(TAILS)
        if kind == 10:
            return r.choice(CODE)
        if kind == 11:
            token = r.choice(self.added)
            return token if r.random() < 0.6 else token[r.randrange(len(token)):] if r.random() < 0.5 else token[:r.randrange(len(token))]
        if kind == 12:
            return self.many(self.letters, 8)
        if kind == 13:
            return self.many(self.numbers, 3)
        if kind == 14:
            return r.choice(["👨\u200d👩\u200d👧", "🫠", "👍🏽", "🇩🇪", "3\ufe0f\u20e3", "☃\ufe0e", "\u200b", "\ufeff", "\u00ad", "\0", "�"])
        return "".join(chr(self.scalar()) for _ in range(r.randint(1, 6)))

    def text(self):
        s = "".join(self.piece() for _ in range(self.r.randint(0, 12)))
        b = bytearray(s.encode())
        if self.r.random() < 0.2:
            for _ in range(self.r.randint(1, 4)):
                at = self.r.randint(0, len(b))
                b[at:at + self.r.randint(0, 2)] = bytes(self.r.choice([0x80, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xFF, 0xA0, 0x9F, 0xCC]) for _ in range(self.r.randint(0, 3)))
        return bytes(b)

    def mask(self, n):
        mask, at = [], 0
        while len(mask) < n:
            mask += [at % 2] * self.r.randint(1, 24)
            at += 1
        return mask[:n]


def masked_ids(plain, added, text, mask):
    """text is valid UTF-8 here."""
    ids, at, start = [], 0, 0
    encode = lambda b: plain.encode(b.decode()).ids if b else []
    while at < len(text):
        found = [a for a in added if text.startswith(a.encode(), at) and all(mask[at:at + len(a.encode())])]
        if not found:
            at += 1
            continue
        longest = max(found, key=len)
        ids += encode(text[start:at]) + [added[longest]]
        at = start = at + len(longest.encode())
    return ids + encode(text[start:])


def vectors(path, count, seed):
    full, plain, added, pieces = load(path)
    texts = Texts(seed, added)
    for _ in range(count):
        b = texts.text()
        s = b.decode(errors="replace")
        vector = {"hex": b.hex()}
        if s.encode() != b:
            vector["text"] = s
        vector.update(pieces=pieces(s), on=full.encode(s).ids, off=plain.encode(s).ids)
        vector["decoded"] = full.decode(vector["on"], skip_special_tokens=False)
        if s.encode() == b:
            mask = texts.mask(len(b))
            vector["mask"] = "".join(map(str, mask))
            vector["masked"] = masked_ids(plain, added, b, mask)
        yield vector


if __name__ == "__main__":
    for v in vectors(sys.argv[1], int(sys.argv[2]), 1):
        print(json.dumps(v, ensure_ascii=False, separators=(",", ":")))
