#!/usr/bin/env python3
"""Writes tests/data/hf-tiny/: two tiny checkpoints made by Hugging Face's own code, and what converting them must give.

    python3 tests/gen/hf_tiny.py tests/data/hf-tiny CHAT_TEMPLATE.jinja

Needs torch, transformers, tokenizers, safetensors, numpy, mpmath. Nothing here uses slm2: the expected bytes come from
an independent numpy quantiser of NUMERICS D9, the panel layout of DECISIONS K7 and mpmath for D14.

  tied/       BF16, one file, tied            untied/     F32, shards with an index, lm_head.weight of its own
  */expected.txt   one line per weight: name, SHA-256 of its Q8_0 rows (or f32 values), SHA-256 of its panels
"""
import hashlib
import json
import pathlib
import sys

import mpmath
import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
           "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
           "<|image_pad|>", "<|video_pad|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
         "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def tokenizer():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERN), "isolated", invert=False),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    t.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    t.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    text = ["The cat sat on the mat. The hat that the cat had was the best of all the hats.\n\n  \"Größe\" und größer"] * 4
    t.train_from_iterator(text, trainers.BpeTrainer(vocab_size=290, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                    show_progress=False))
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in SPECIAL])
    t.add_tokens([AddedToken(s, normalized=False, special=False) for s in PLAIN])
    return t


def quantize(w):
    """[rows, cols] f32 -> d [rows, blocks] f16, q [rows, blocks, 32] int8, by D9."""
    x = w.reshape(w.shape[0], -1, 32)
    d32 = np.abs(x).max(axis=2) / np.float32(127)
    d = d32.astype(np.float16)
    with np.errstate(divide="ignore"):
        inverse = np.where(d == 0, np.float32(0), np.float32(1) / d32)
    v = (x * inverse[:, :, None]).astype(np.float64)  # the f32 product, widened
    q = np.sign(v) * np.floor(np.abs(v) + 0.5)        # half away from zero
    assert np.abs(q).max() <= 127 and np.isfinite(d).all()
    return d, q.astype(np.int8)


def rows_bytes(d, q):
    out = np.empty(q.shape[:2] + (34,), np.uint8)
    out[:, :, :2] = d.astype("<f2").reshape(d.shape + (1,)).view(np.uint8)
    out[:, :, 2:] = q.view(np.uint8)
    return out.tobytes()


def panel_bytes(d, q):
    out = b""
    for r0 in range(0, q.shape[0], 32):
        for b in range(q.shape[1]):
            scales, block = d[r0:r0 + 32, b].astype("<f2"), q[r0:r0 + 32, b]
            out += b"".join(scales[r].tobytes() + scales[r + 16].tobytes() for r in range(16))
            out += b"".join(block[r, 4 * g:4 * g + 4].tobytes() for g in range(8) for r in range(32))
    return out


def inv_freq(theta, head_dim):
    mpmath.mp.prec = 300
    values = []
    for i in range(head_dim // 2):
        e = np.float32(2 * i) / np.float32(head_dim)
        power = mpmath.mpf(theta) ** mpmath.mpf(float(e))
        exponent = int(mpmath.floor(mpmath.log(power, 2)))
        scaled = power * mpmath.mpf(2) ** (23 - exponent)  # the power, nearest even in 24 bits
        rounded = np.float32(float(mpmath.nint(scaled) * mpmath.mpf(2) ** (exponent - 23)))
        values.append(np.float32(1) / rounded)
    return np.array(values, "<f4")


def names(config):
    parts = ["input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "self_attn.q_norm",
             "self_attn.k_norm", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    out = ["model.embed_tokens.weight"]
    out += [f"model.layers.{i}.{p}.weight" for i in range(config.num_hidden_layers) for p in parts]
    out += ["model.norm.weight"] + ([] if config.tie_word_embeddings else ["lm_head.weight"])
    return out


def sha(b):
    return hashlib.sha256(b).hexdigest()


def write(folder, tied, dtype, shard_size, theta, template):
    torch.manual_seed(7 if tied else 8)
    config = Qwen3Config(vocab_size=320, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, head_dim=32, max_position_embeddings=512, rope_parameters={"rope_type": "default", "rope_theta": theta},
                         tie_word_embeddings=tied, bos_token_id=290, eos_token_id=292)
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p + 0.1 * torch.randn_like(p))  # norms away from 1
        model.model.layers[0].mlp.up_proj.weight[3].zero_()           # blocks with d = 0
        model.model.layers[1].mlp.down_proj.weight[5] *= 1e-7         # d is a subnormal half
    model = model.to(dtype)
    if tied:  # the untied one leaves generation_config.json at what transformers makes of it
        model.generation_config.update(do_sample=True, temperature=0.6, top_k=20, top_p=0.95, eos_token_id=[292, 290], pad_token_id=290)
    model.save_pretrained(folder, max_shard_size=shard_size)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer(), eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = template
    fast.save_pretrained(folder)
    state = {}
    for f in sorted(folder.glob("*.safetensors")):
        state.update(load_file(f))
    lines = [f"rope.inv_freq {sha(inv_freq(theta, 32).tobytes())} {sha(inv_freq(theta, 32).tobytes())}"]
    zero = 0
    for name in names(config):
        w = state[name].to(torch.float32).numpy()
        if w.ndim == 1:
            lines.append(f"{name} {sha(w.astype('<f4').tobytes())} {sha(w.astype('<f4').tobytes())}")
        else:
            d, q = quantize(w)
            zero += int((d == 0).sum())
            lines.append(f"{name} {sha(rows_bytes(d, q))} {sha(panel_bytes(d, q))}")
    lines.append(f"zero_blocks {zero}")
    (folder / "expected.txt").write_text("\n".join(lines) + "\n")


def main():
    out, template = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes().decode()
    write(out / "tied", True, torch.bfloat16, "1GB", 1000000, template)
    write(out / "untied", False, torch.float32, "60KB", 5000000, template)
    for f in sorted(out.rglob("*")):
        if f.is_file():
            print(f.stat().st_size, f.relative_to(out))


if __name__ == "__main__":
    main()
