"""Token batches from generated conversations.

Shard k depends only on k, so training can stop and resume anywhere and never
needs the text on disk. A shard refuses to contain a held-out question.
"""

import random

import torch

from corpus.conversations import FORBIDDEN, Talker
from corpus.cards import normal

SHARD = 16_000          # conversations
BATCH_TOKENS = 1_024    # padded tokens of a batch
LONGEST = 900           # longer conversations are left out


def conversations(seed, count):
    """Generated conversations (lists of segments), none with a held-out question."""
    talker = Talker(random.Random(seed))
    for _ in range(count):
        segments, questions = talker.conversation()
        for question in questions:
            assert normal(question) not in FORBIDDEN, f"held-out question in training: {question}"
        yield segments


def encode(tokenizer, segments):
    """(ids, learned): the flag says whether the id is written by the assistant."""
    ids, learned = [], []
    for text, flag in segments:
        new = tokenizer.encode(text, add_special_tokens=False).ids
        ids += new
        learned += [flag] * len(new)
    return ids, learned


def batches(tokenizer, index, pad):
    """The batches of shard `index`: (ids, targets), targets -100 where nothing is learned."""
    rows = [encode(tokenizer, s) for s in conversations(index, SHARD)]
    rows = sorted((row for row in rows if len(row[0]) <= LONGEST), key=lambda row: len(row[0]))
    groups, group = [], []
    for row in rows:
        if group and len(row[0]) * (len(group) + 1) > BATCH_TOKENS:
            groups.append(group)
            group = []
        group.append(row)
    groups.append(group)
    random.Random(index).shuffle(groups)
    for group in groups:
        length = max(len(ids) for ids, _ in group)
        ids = torch.full((len(group), length), pad)
        targets = torch.full((len(group), length), -100)
        for row, (row_ids, learned) in enumerate(group):
            ids[row, :len(row_ids)] = torch.tensor(row_ids)
            for at in range(1, len(row_ids)):
                if learned[at]:
                    targets[row, at - 1] = row_ids[at]
        yield ids, targets
