"""Answers from an exported folder in torch, for looking at a model before slm2 runs it.

    python generate.py DIR [--think-off] [--temperature T] [--seed N] QUESTION...
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from model import Config, Qwen3


def load(folder):
    """(network, tokenizer) of an exported folder."""
    folder = Path(folder)
    described = json.loads((folder / "config.json").read_text())
    net = Qwen3(Config(**{name: described[name] for name in Config.__dataclass_fields__}))
    net.load_state_dict(load_file(str(folder / "model.safetensors")))
    return net.eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))


def round_q8(net):
    """Round every matrix as Q8_0 does: blocks of 32, a 16-bit scale and 8-bit numbers."""
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() == 2:
                block = p.view(-1, 32)
                exact = block.abs().amax(1, keepdim=True) / 127
                scale = exact.half().float()
                block.copy_((block / exact.clamp_min(1e-30)).round() * scale)


def prompt(question, think_off=False):
    text = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    return text + "<think>\n\n</think>\n\n" if think_off else text


@torch.no_grad()
def answer(net, tokenizer, text, limit=160, temperature=0.0, rng=None):
    """The answer to one prompt; temperature 0 takes the most likely token."""
    stop, caches = tokenizer.token_to_id("<|im_end|>"), [[] for _ in net.model.layers]
    new, made, start = tokenizer.encode(text).ids, [], 0
    while len(made) < limit:
        logits = net.logits(net.hidden(torch.tensor([new]), caches, start)[0, -1])
        start += len(new)
        if temperature == 0:
            token = int(logits.argmax())
        else:
            token = int(torch.multinomial((logits / temperature).softmax(0), 1, generator=rng))
        if token == stop:
            break
        made.append(token)
        new = [token]
    return tokenizer.decode(made)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("questions", nargs="+")
    parser.add_argument("--think-off", action="store_true")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    net, tokenizer = load(args.folder)
    round_q8(net)
    rng = torch.Generator().manual_seed(args.seed)
    for question in args.questions:
        reply = answer(net, tokenizer, prompt(question, args.think_off), temperature=args.temperature, rng=rng)
        print(f"> {question}\n{reply}\n")


if __name__ == "__main__":
    main()
