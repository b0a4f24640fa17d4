"""Cards from the fact files: what there is to know about slm2.

A file is a list of blocks. "? pattern" is a question, "@ a | b" are names of
the thing (asked with WHAT frames), "% a | b" are tasks (asked with HOW
frames), "! text" is the answer, "= a | b" is what a right answer contains.
"""

from pathlib import Path

from .cards import Card, fill

WHAT = ["{what is|what's|explain|tell me about|describe} $x", "what does $x mean",
        "can you {explain|describe|tell me about} $x", "what do you know about $x",
        "{i want to know|i'd like to know|tell me more} about $x", "{define|meaning of} $x", "$x",
        "what exactly is $x", "i do not understand $x", "help me understand $x",
        "{explain|describe} $x {to me|in simple words|briefly}", "what is meant by $x",
        "do you know {what $x is|$x}", "what about $x", "tell me what $x is"]
HOW = ["how {do i|can i|do you|does one|would i|should i} $x", "how to $x", "i {want|need|would like} to $x",
       "can i $x", "what is the {command|way} to $x", "{which|what} command {lets me|do i use to|will} $x",
       "is {it possible|there a way} to $x", "what do i {type|do} to $x", "tell me how to $x",
       "show me how to $x", "explain how to $x", "what should i do to $x", "i'm trying to $x"]
ASKED_FIRST = ("about", "demo", "privacy")  # what most people ask first


def blocks(path):
    topic = None
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line]
        if lines and lines[0].startswith("# topic: "):
            topic = lines.pop(0)[9:]
        if lines:
            yield topic, lines


def card(topic, lines):
    odds, answer, accept = {}, None, []  # a line with many expansions must not drown the others
    for line in lines:
        kind, rest = line[0], line[2:]
        if kind in "?@%":
            frames, names = {"?": ([rest], [""]), "@": (WHAT, rest.split(" | ")), "%": (HOW, rest.split(" | "))}[kind]
            found = [q.lower() for name in names for q in fill(frames, x=name)]
            for question in found:
                odds.setdefault(question, len(found) ** -0.5)
        elif kind == "!":
            answer = rest
        elif kind == "=":
            accept = rest.split(" | ")
        else:
            raise ValueError(f"unknown line: {line}")
    subject = {"demo": "myself", "capitals": "capitals"}.get(topic, "slm2")
    return Card(topic, list(odds), [answer], accept,
                f"The question is about {subject}. I know this from my notes, so I answer it plainly.",
                2.0 if topic in ASKED_FIRST else 1.0, odds)


def cards():
    folder = Path(__file__).parent.parent / "facts"
    return [card(topic, lines) for path in sorted(folder.glob("*.txt")) for topic, lines in blocks(path)]
