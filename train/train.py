"""Train the demo model on the CPU; stop and resume at will.

    python train.py --out build/demo [--steps N]

Learning rate: warm-up, constant, then linearly to zero over the last part.
Matrix products are bfloat16, everything else (weights, sums of gradients,
optimizer, residual stream) is f32; that trains nearly twice as fast.
The exported weights are an exponential average of the trained ones. Two
processes with one thread each take every other batch and add their gradients:
on a busy machine that wastes less than two threads waiting for each other.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tokenizers import Tokenizer

from dataset import batches
from model import Config, Qwen3

STEPS = 4_800
PEAK, WARM_UP, DECAY_SHARE = 2e-3, 200, 0.24
AVERAGE = 0.997
PROCESSES = 2
SAVE_SECONDS, LOG_STEPS = 150, 50


def learning_rate(step, steps):
    decay = math.ceil(steps * DECAY_SHARE)
    return PEAK * min((step + 1) / WARM_UP, 1.0, max(steps - step, 1) / decay)


def optimizer(net):
    matrices = [p for p in net.parameters() if p.dim() == 2]
    vectors = [p for p in net.parameters() if p.dim() != 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}],
                             lr=PEAK, betas=(0.9, 0.97), eps=1e-9, fused=True)


def save(path, **state):
    torch.save(state, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def stream(tokenizer, pad, shard, skip, rank):
    """Endless (shard, step in the shard, ids, targets) of one process."""
    while True:
        mine = list(batches(tokenizer, shard, pad))
        mine = mine[rank:len(mine) - len(mine) % PROCESSES:PROCESSES]
        for index, (ids, targets) in enumerate(mine):
            if index >= skip:
                yield shard, index, ids, targets
        shard, skip = shard + 1, 0


def share_gradients(net):
    """Replace every gradient by the mean over the processes."""
    grads = [p.grad for p in net.parameters()]
    flat = torch.cat([g.view(-1) for g in grads])
    dist.all_reduce(flat)
    flat /= PROCESSES
    for grad, part in zip(grads, flat.split([g.numel() for g in grads])):
        grad.copy_(part.view_as(grad))


def work(rank, args):
    os.setsid()  # a session, and so a scheduling group, of its own
    dist.init_process_group("gloo", init_method=f"file://{args.out.absolute()}/meeting", rank=rank, world_size=PROCESSES)
    torch.set_num_threads(1)
    torch.manual_seed(1)

    tokenizer = Tokenizer.from_file(str(args.out / "tokenizer.json"))
    pad = tokenizer.token_to_id("<|endoftext|>")
    net = Qwen3(Config(vocab_size=math.ceil(tokenizer.get_vocab_size() / 32) * 32))
    optim = optimizer(net)
    average = {name: p.detach().clone() for name, p in net.named_parameters()}
    step, shard, skip, tokens, seconds = 0, 0, 0, 0, 0.0
    checkpoint = args.out / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint)
        net.load_state_dict(state["net"])
        optim.load_state_dict(state["optim"])
        average = state["average"]
        step, shard, skip, tokens, seconds = (state[k] for k in ("step", "shard", "skip", "tokens", "seconds"))
    parameters = sum(p.numel() for p in net.parameters())
    if rank == 0:
        print(f"{parameters:,} parameters, from step {step} to {args.steps}", flush=True)

    saved, logged, recent = time.time(), time.time(), []
    for shard, index, ids, targets in stream(tokenizer, pad, shard, skip, rank):
        rate = learning_rate(step, args.steps)
        for group in optim.param_groups:
            group["lr"] = rate
        learned = targets != -100
        with torch.autocast("cpu", torch.bfloat16):
            logits = net.logits(net.hidden(ids)[learned])
        loss = F.cross_entropy(logits.float(), targets[learned])
        optim.zero_grad()
        loss.backward()
        share_gradients(net)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optim.step()
        step, tokens = step + 1, tokens + PROCESSES * ids.numel()
        keep = min(AVERAGE, step / (step + 10))
        with torch.no_grad():
            for name, p in net.named_parameters():
                average[name].lerp_(p, 1 - keep)
        recent.append(loss.item())
        now, done = time.time(), step >= args.steps
        if rank == 0 and (step % LOG_STEPS == 0 or done):
            seconds += now - logged
            logged = now
            row = {"step": step, "shard": shard, "tokens": tokens, "seconds": round(seconds), "lr": round(rate, 6),
                   "loss": round(sum(recent) / len(recent), 4)}
            recent = []
            print(json.dumps(row), flush=True)
            with open(args.out / "train.jsonl", "a") as log:
                log.write(json.dumps(row) + "\n")
        if rank == 0 and (now - saved > SAVE_SECONDS or done):
            saved = now
            save(checkpoint, net=net.state_dict(), optim=optim.state_dict(), average=average, step=step, shard=shard,
                 skip=index + 1, tokens=tokens, seconds=seconds)
        if done:
            break
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    (args.out / "meeting").unlink(missing_ok=True)
    torch.multiprocessing.spawn(work, (args,), nprocs=PROCESSES)


if __name__ == "__main__":
    main()
