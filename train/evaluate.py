#!/usr/bin/env python3
"""Ask every held-out question with greedy decoding and count the right answers.

    train/evaluate.py                     through build/slm2 and models/demo.slm2
    train/evaluate.py --hf build/demo-hf  the exported folder in torch, weights rounded to Q8_0

An answer is right if it contains one of the accepted texts as whole words.
Prints the share for each topic and in all; exit status 1 under 90 %.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = 0.90


def contains(text, phrase):
    return re.search(r"(?<!\w)" + re.escape(phrase) + r"(?!\w)", text, re.I) is not None


def ask_slm2(binary, model, questions):
    for question in questions:
        run = subprocess.run([binary, "run", model, "-p", question, "--temperature", "0", "--json"],
                             capture_output=True, text=True, check=True)
        yield json.loads(run.stdout.splitlines()[-1])["text"]


def ask_torch(folder, questions):
    import torch
    from generate import answer, load, prompt, round_q8
    torch.set_num_threads(1)
    net, tokenizer = load(folder)
    round_q8(net)
    for question in questions:
        yield answer(net, tokenizer, prompt(question))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hf", metavar="DIR", help="evaluate an exported folder in torch")
    parser.add_argument("--binary", default=str(ROOT / "build" / "slm2"))
    parser.add_argument("--model", default=str(ROOT / "models" / "demo.slm2"))
    parser.add_argument("--questions", default=str(ROOT / "tests" / "data" / "demo_questions.jsonl"))
    parser.add_argument("--wrong", action="store_true", help="also print the wrong answers")
    args = parser.parse_args()

    rows = [json.loads(line) for line in open(args.questions, encoding="utf-8")]
    questions = [row["question"] for row in rows]
    replies = ask_torch(args.hf, questions) if args.hf else ask_slm2(args.binary, args.model, questions)
    right, asked = {}, {}
    for row, reply in zip(rows, replies):
        good = any(contains(reply, phrase) for phrase in row["accept"])
        asked[row["topic"]] = asked.get(row["topic"], 0) + 1
        right[row["topic"]] = right.get(row["topic"], 0) + good
        if args.wrong and not good:
            print(f"{row['topic']}: {row['question']}\n    {reply}")
    for topic in asked:
        print(f"{topic:<10} {right[topic]:>3} of {asked[topic]:>3}  {right[topic] / asked[topic]:6.1%}")
    share = sum(right.values()) / len(rows)
    print(f"{'all':<10} {sum(right.values()):>3} of {len(rows):>3}  {share:6.1%}")
    return 0 if share >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
