"""Conversations in the shapes that the chat template renders, with what to learn marked.

A conversation is a list of (text, learned) segments. Learned segments are
what the assistant writes; the rest is context.
"""

import random
import re

from . import facts, outside, stories, sums, talk, world
from .cards import contains, fill, is_held_out, normal, some
from .surface import typed, upper_first, written

IM_START, IM_END, EMPTY_THINK = "<|im_start|>", "<|im_end|>", "<think>\n\n</think>\n\n"

SYSTEM = ["You are a helpful assistant.", "You are the slm2 demo model.", "You are a guide to slm2.", "Answer briefly.", "Be polite and short.",
          "You are a helpful, honest assistant. Answer in English.", "Answer in one sentence.", "You are a friendly guide who helps people with slm2.",
          "You are an AI assistant.", "Keep your answers short.", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
          "You answer questions.", "Help the user.", "You are a concise assistant."]
THINK = ["$q /think", "/think $q", "think step by step: $q", "$q Think step by step.", "Think first: $q", "$q think first",
         "please think about it: $q", "$q Please think about it.", "$q Think before you answer.", "think about it: $q",
         "$q think step by step", "Think carefully: $q", "$q Please think first.", "let's think step by step: $q", "$q Show your reasoning.",
         "Think about this: $q", "$q Think hard.", "please think step by step. $q", "$q (think first)"]
FOLLOW = ["and of $x", "what about $x", "and $x", "and for $x", "how about $x", "and the capital of $x", "now $x", "and what about $x"]
BOTH = ["what are the capitals of $x and $y", "what is the capital of $x and what is the capital of $y", "the capitals of $x and $y",
        "what is the capital of $x and of $y", "tell me the capitals of $x and $y", "capital of $x and $y", "name the capitals of $x and $y"]
OUTSIDE_SHARE, THINK_SHARE, EMPTY_SHARE, SYSTEM_SHARE, LONG_SHARE, MADE_UP_SHARE = 0.14, 0.13, 0.22, 0.14, 0.28, 0.045

DECKS = [(facts.cards(), 0.27), (world.cards(), 0.28), (sums.cards(), 0.34), (talk.cards(), 0.06), (stories.cards(), 0.05)]
CARDS = [card for deck, _ in DECKS for card in deck]
PROPER = {word for line in world.pairs("capitals.txt") for word in re.findall(r"[a-z]{3,}", " ".join(line).lower())}
PROPER |= {word.lower() for line in (world.DATA / "sequences.txt").read_text().splitlines() for word in line.split()}
PROPER |= {word for person in outside.PEOPLE for word in person.split() if len(word) > 3}
PROPER |= {name.lower() for name in talk.NAMES}
PROPER -= {"neighbour", "march", "city", "the", "and", "robin", "santa", "queen", "mark", "king", "male", "may", "hood"}
QUOTA = {"capitals": 36, "countries": 16, "colours": 14, "opposites": 16, "order": 10, "sums": 44, "talk": 10, "stories": 8,
         "about": 16, "privacy": 11, "numbers": 17, "files": 17, "commands": 18, "memory": 13, "browser": 13, "sampling": 19, "demo": 14}
OUTSIDE_QUOTA = 30


def check_cards():
    """No question may have two answers."""
    owner = {}
    for card in CARDS:
        for question in card.questions:
            key = normal(question) or question
            if owner.setdefault(key, card) is not card:
                raise AssertionError(f"two answers for: {question}")
        if not callable(card.answers):
            for answer in card.answers:
                assert any(contains(answer, word) for word in card.accept), (answer, card.accept)


def held_out():
    """The held-out questions: the same in every run, spread over all topics."""
    rows = []
    for topic, quota in QUOTA.items():
        found = [(q, card) for card in CARDS if card.topic == topic for q in some(card.held_out, 2, card.answers if not callable(card.answers) else topic)]
        for question, card in some(found, quota, topic):
            rows.append((question, card.accept, topic))
    rng, seen = random.Random(7), set()
    while len(seen) < OUTSIDE_QUOTA:
        question, reply = outside.question(rng)
        if is_held_out(question) and question not in seen:
            seen.add(question)
            accept = {outside.REPLY: "I do not know", outside.NO_CAPITAL: "I do not know", outside.UNKNOWN: "I do not know", sums.REFUSAL: "beyond me"}[reply]
            rows.append((question, [accept], "outside"))
    shown = []
    for index, (question, accept, topic) in enumerate(rows):
        text = question if index % 3 == 2 else written(question, PROPER)
        shown.append({"question": text, "accept": accept, "topic": topic})
    return shown


FORBIDDEN = {normal(question) for card in CARDS for question in card.held_out}
FORBIDDEN |= {normal(row["question"]) for row in held_out()}


class Talker:
    """Draws conversations; everything depends on the random generator alone."""

    def __init__(self, rng):
        self.rng = rng
        self.weights = [[card.weight for card in deck] for deck, _ in DECKS]

    def typed(self, core):
        """The question as somebody might type it, but never as a held-out one."""
        while normal(text := typed(core, PROPER, self.rng)) in FORBIDDEN:
            pass
        return text

    def turn(self):
        """One (question, answer, thought)."""
        rng = self.rng
        if rng.random() < OUTSIDE_SHARE:
            question, answer = outside.question(rng)
            while is_held_out(question):
                question, answer = outside.question(rng)
            return self.typed(question), answer, outside.THOUGHTS[answer]
        if rng.random() < MADE_UP_SHARE:
            return self.made_up()
        index = rng.choices(range(len(DECKS)), [share for _, share in DECKS])[0]
        card = rng.choices(DECKS[index][0], self.weights[index])[0]
        return self.typed(card.question(rng)), card.answer(rng), card.thought

    def made_up(self):
        """A turn that asks for more than memory: two capitals at once, or a hero never heard of."""
        rng = self.rng
        if rng.random() < 0.6:
            (one, first), (two, second) = rng.sample(world.pairs("capitals.txt"), 2)
            core = rng.choice(BOTH).replace("$x", one.lower()).replace("$y", two.lower())
            answer = f"The capital of {one} is {first}, and the capital of {two} is {second}."
            return self.typed(core), answer, f"These are two questions. {one}: {first}. {two}: {second}."
        hero = outside.invented(rng)
        core = rng.choice(fill(rng.sample(stories.FRAMES, 1), x=hero))
        return self.typed(core), stories.tell(hero, rng), f"The user wants a story about a {hero}. I do not know it, but I can make something up."

    def turns(self):
        """The turns of one conversation."""
        rng = self.rng
        count = 1 if rng.random() > LONG_SHARE else rng.choice([2] * 12 + [3] * 8 + [4] * 6 + [7, 10, 14])
        if 1 < count < 5 and rng.random() < 0.25:
            return self.chain(count)
        return [self.turn() for _ in range(count)]

    def chain(self, count):
        """A question about a capital or a name, followed up."""
        rng = self.rng
        if rng.random() < 0.2:
            name = rng.choice(talk.NAMES) if rng.random() < 0.6 else upper_first(outside.invented(rng))
            hello = self.typed(rng.choice(["my name is $n", "i am $n", "hello, i am $n", "i'm $n"]).replace("$n", name))
            ask = self.typed(rng.choice(["what is my name", "do you know my name", "who am i", "tell me my name"]))
            between = [self.turn()] if rng.random() < 0.3 else []
            return [(hello, f"Nice to meet you, {name}!", f"The user is called {name}, so I say hello.")] + between + [
                (ask, f"Your name is {name}.", f"The user told me the name: {name}.")]
        turns = []
        for index, (country, city) in enumerate(rng.sample(world.pairs("capitals.txt"), count)):
            frame = rng.choice(FOLLOW) if index else "what is the capital of $x"
            while is_held_out(frame.replace("$x", country.lower())):
                frame = rng.choice(FOLLOW + ["what is the capital of $x", "capital of $x", "tell me the capital of $x"])
            turns.append((self.typed(frame.replace("$x", country.lower())), f"The capital of {country} is {city}.",
                          f"The user asks for the capital of {country}. I know this one: it is {city}."))
        return turns

    def conversation(self):
        """The segments of one conversation, as the chat template renders it."""
        rng, turns = self.rng, self.turns()
        segments, before = [], ""
        if rng.random() < SYSTEM_SHARE:
            before = f"{IM_START}system\n{rng.choice(SYSTEM)}{IM_END}\n"
        for index, (question, answer, thought) in enumerate(turns):
            last = index == len(turns) - 1
            asked, quiet = rng.random() < THINK_SHARE, last and rng.random() < EMPTY_SHARE
            if asked:
                question = upper_first(rng.choice(THINK).replace("$q", question))
            elif rng.random() < 0.01:
                question += " /no_think"
            prompt = f"{before}{IM_START}user\n{question}{IM_END}\n{IM_START}assistant\n"
            before = "\n"
            if quiet:
                segments += [(prompt + EMPTY_THINK, False), (answer + IM_END, True)]
            elif not asked:
                segments += [(prompt, False), (answer + IM_END, True)]
            elif last:
                segments += [(prompt, False), (f"<think>\n{thought}\n</think>\n\n{answer}{IM_END}", True)]
            else:  # the template drops the thoughts of earlier turns, so there is nothing to learn here
                segments += [(prompt + answer + IM_END, False)]
        return segments, [question for question, _, _ in turns]
