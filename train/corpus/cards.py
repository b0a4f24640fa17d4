"""A card is one thing to know: its questions, its answer, and how to check it."""

import random
import re
import zlib
from dataclasses import dataclass, field

HELD_OUT_ONE_IN = 9  # share of phrasings that are never trained on


@dataclass
class Card:
    topic: str
    questions: list          # lower-case cores without end punctuation
    answers: object          # list of texts, or a function rng -> text
    accept: list             # an answer is right if it contains one of these as whole words
    thought: str             # what the model writes when it is asked to think
    weight: float = 1.0      # how often the card is drawn, relative to others of its deck
    odds: dict = field(default_factory=dict)  # how often a question is drawn, where not 1
    train: list = field(init=False)
    held_out: list = field(init=False)

    def __post_init__(self):
        self.questions = list(dict.fromkeys(self.questions))
        self.held_out = [q for q in self.questions if is_held_out(q)]
        self.train = [q for q in self.questions if not is_held_out(q)]
        if len(self.train) < 2:  # too few phrasings to spare one
            self.train, self.held_out = self.questions, []

        self.train_odds = [self.odds.get(q, 1.0) for q in self.train]

    def question(self, rng):
        return rng.choices(self.train, self.train_odds)[0]

    def answer(self, rng):
        return self.answers(rng) if callable(self.answers) else rng.choice(self.answers)


def normal(text):
    """Lower-case words and signs of a question: what makes two questions the same."""
    return " ".join(re.findall(r"[^\W_]+|[-+*/=×÷]", text.lower().replace("'", "")))


def is_held_out(question):
    return zlib.crc32(normal(question).encode()) % HELD_OUT_ONE_IN == 0


def expand(pattern):
    """All texts of a pattern: "{a|b} c" gives "a c" and "b c"."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [" ".join(pattern.split())]
    head, tail = pattern[:found.start()], pattern[found.end():]
    return [text for option in found[1].split("|") for text in expand(head + option + tail)]


def fill(frames, **words):
    """Every frame (a pattern) with its $names replaced."""
    texts = []
    for frame in frames:
        for name, word in words.items():
            frame = frame.replace("$" + name, word)
        texts += expand(frame)
    return texts


def some(items, count, *seed):
    """A fixed choice of items, the same in every run."""
    return random.Random(repr(seed)).sample(items, min(count, len(items)))


def contains(text, phrase):
    """Whether the phrase occurs in the text as whole words, in any letter case."""
    return re.search(r"(?<!\w)" + re.escape(phrase) + r"(?!\w)", text, re.I) is not None
