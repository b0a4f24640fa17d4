"""How people really type: letter case, politeness, missing marks, small slips."""

import re

PROPER = {word.lower(): word for word in (
    "Qwen3 Qwen GGUF KV OPFS WebAssembly WebRTC CPU GPU PyTorch JSON RoPE RMSNorm ChaCha8 BPE SIMD AVX2 COOP COEP API I "
    "Ctrl-C Chrome Firefox Safari ChatGPT Windows Linux Python Rust JavaScript Unicode Apache NEON SHA-256 AI LLM RAM").split()}
ASKING = set("what which who whose whom how where when why is are am was were do does did can could will would should may "
             "have has what's of in on for from under".split())
BEFORE = ["please ", "hey, ", "hi, ", "hello, ", "hi! ", "ok, ", "so ", "please tell me: ", "question: ", "quick question: ", "now ",
          "hey slm2, ", "and ", "um, ", "well, ", "i wonder: ", "one question: ", "dear model, "]
AFTER = [" please", ", please", " thanks", " now", ", slm2", " then", " in short", " exactly", " again", " for me", " today"]


def names(text):
    """The usual spelling of names in a lower-case text."""
    return re.sub(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)?", lambda m: PROPER.get(m[0], m[0]), text)


def title_words(text, words):
    """Names of countries and the like with capital letters, as far as they are known."""
    return re.sub(r"[a-z]{3,}", lambda m: m[0].capitalize() if m[0] in words else m[0], text)


def upper_first(text):
    return text[:1].upper() + text[1:]


def slip(text, rng):
    """One typing error: a letter lost, doubled or swapped with the next."""
    letters = [i for i in range(1, len(text) - 1) if text[i].isalpha() and text[i + 1].isalpha()]
    if not letters:
        return text
    i = rng.choice(letters)
    return rng.choice([text[:i] + text[i + 1:], text[:i] + text[i] + text[i:], text[:i] + text[i + 1] + text[i] + text[i + 2:]])


def mark(core):
    """The end mark that belongs to a question, a request or a sum."""
    if core[-1] in "?=.":
        return ""
    return "?" if core.split()[0] in ASKING else "."


def written(core, proper):
    """The question in careful spelling."""
    return upper_first(names(title_words(core, proper))) + mark(core)


def typed(core, proper, rng):
    """One way in which somebody might type the question."""
    text, end_mark = core, mark(core)
    if rng.random() < 0.05:
        text = re.sub(r"\b(what|who|where|how) is\b", r"\1's", text, count=1)
    elif rng.random() < 0.3:
        text = text.replace("what's", "what is")
    if len(text.split()) > 1:
        if rng.random() < 0.14:
            text = rng.choice(BEFORE) + text
        if rng.random() < 0.06:
            text += rng.choice(AFTER)
    if rng.random() < 0.08:
        text = text.replace("slm2", rng.choice(["SLM2", "Slm2", "slm 2", "slm", "SLM", "slm-2"]))
    if rng.random() < 0.04:
        text = slip(text, rng)
    style = rng.random()
    if style < 0.62:
        text = upper_first(names(title_words(text, proper)))
    elif style < 0.66:
        text = upper_first(text)
    elif style < 0.68:
        text = text.upper()
    end = rng.random()
    if end < 0.62:
        text += end_mark
    elif end < 0.65:
        text += rng.choice(["!", "??", " ?", "?!", "..."])
    elif end < 0.72:
        text += "." if end_mark == "?" else "?"
    return text
