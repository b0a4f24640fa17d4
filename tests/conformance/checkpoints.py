"""Tiny checkpoints written by transformers itself: three that are committed beside tests/data/hf-tiny, and one for every
combination of dtype, number of files, tied or not, GQA ratio and head_dim, made in the build folder.

    python checkpoints.py tests/data/conformance/checkpoints     writes the committed ones again
"""
import itertools
import pathlib
import shutil
import sys

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gen"))
from hf_tiny import quantize, tokenizer  # noqa: E402  numpy's [D9]; a byte-level BPE of 316 tokens, Qwen3's added ones among them

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
# name: dtype, sharded, tied, query heads, key and value heads, head_dim, layers
COMMITTED = {
    "gqa1-d64": ("bf16", True, False, 2, 2, 64, 3),
    "gqa2-d128": ("bf16", False, True, 4, 2, 128, 2),
    "gqa4-d128": ("f32", False, True, 4, 1, 128, 2),
}
RATIOS = {1: (2, 2), 2: (4, 2), 4: (4, 1)}


def matrix():
    """Every combination of what a checkpoint can be."""
    for dtype, sharded, tied, ratio, head_dim in itertools.product(DTYPES, (False, True), (True, False), RATIOS, (64, 128)):
        name = f"{dtype}-{'sharded' if sharded else 'single'}-{'tied' if tied else 'untied'}-gqa{ratio}-d{head_dim}"
        yield name, (dtype, sharded, tied, *RATIOS[ratio], head_dim, 2)


def write(folder, dtype, sharded, tied, heads, kv_heads, head_dim, layers, seed):
    torch.manual_seed(seed)
    config = Qwen3Config(vocab_size=320, hidden_size=32, intermediate_size=96, num_hidden_layers=layers, num_attention_heads=heads,
                         num_key_value_heads=kv_heads, head_dim=head_dim, max_position_embeddings=1024,
                         rope_parameters={"rope_type": "default", "rope_theta": 1000000}, tie_word_embeddings=tied,
                         bos_token_id=290, eos_token_id=292)
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p + 0.1 * torch.randn_like(p))  # norms away from 1, logits a few apart
    shutil.rmtree(folder, ignore_errors=True)
    model.to(DTYPES[dtype]).save_pretrained(folder, max_shard_size="40KB" if sharded else "1GB")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer(), eos_token="<|im_end|>", pad_token="<|endoftext|>").save_pretrained(folder)
    shards = len(list(pathlib.Path(folder).glob("model-*.safetensors")))
    assert (shards > 1) == sharded, (folder, shards)


def expected(weight):
    """What is left of a source tensor after [D9]: float32; one-dimensional ones stay as they are."""
    w = weight.to(torch.float32).numpy()
    if w.ndim == 1:
        return w
    d, q = quantize(w)
    return (q.astype(np.float32) * d.astype(np.float32)[:, :, None]).reshape(w.shape)


def write_committed(out):
    for seed, (name, kind) in enumerate(COMMITTED.items()):
        write(pathlib.Path(out) / name, *kind, seed=100 + seed)


def write_matrix(out):
    for seed, (name, kind) in enumerate(matrix()):
        folder = pathlib.Path(out) / name
        if not (folder / "tokenizer.json").exists():
            write(folder, *kind, seed=200 + seed)
        yield name, folder


if __name__ == "__main__":
    write_committed(sys.argv[1])
