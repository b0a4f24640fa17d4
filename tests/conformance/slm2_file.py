"""Reads a .slm2 file, written from docs/FORMAT.md alone, and gives its dequantised weights to transformers' Qwen3ForCausalLM
(float32, eager attention). Nothing here uses slm2's code."""
import hashlib
import json
import struct

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM


def dequantised(data, rows, cols, dtype):
    """Q8_0 blocks to float32 [rows, cols]: q times d, exact in float32 (7 bits and a sign times 11 bits)."""
    if dtype == "Q8_0":
        blocks = data.reshape(rows, cols // 32, 34)
        d = blocks[:, :, :2].copy().view("<f2")[..., 0]
        q = blocks[:, :, 2:].view(np.int8)
    else:
        assert dtype == "Q8_0_P32"
        panels = data.reshape(rows // 32, cols // 32, 1088)
        scales = panels[:, :, :64].copy().view("<f2").reshape(rows // 32, cols // 32, 16, 2)
        d = scales.transpose(0, 3, 2, 1).reshape(rows, cols // 32)  # row r: word r mod 16, half r / 16
        q = panels[:, :, 64:].view(np.int8).reshape(rows // 32, cols // 32, 8, 32, 4)
        q = q.transpose(0, 3, 1, 2, 4).reshape(rows, cols // 32, 32)  # column 4g + byte
    return (q.astype(np.float32) * d.astype(np.float32)[:, :, None]).reshape(rows, cols)


class Slm2File:
    def __init__(self, path):
        with open(path, "rb") as f:
            n = struct.unpack("<Q", f.read(8))[0]
            raw = f.read(n)
        self.identity = hashlib.sha256(raw).hexdigest()
        header = json.loads(raw)
        self.meta = header.pop("__metadata__")
        self.sections = header
        self.data = np.memmap(path, np.uint8, "r", 8 + n)

    def tensor(self, name):
        entry = self.sections[name]
        begin, shape = entry["data_offsets"][0], entry["shape"]
        if entry["dtype"] == "F32":
            return self.data[begin:begin + 4 * shape[0]].view("<f4").copy()
        size = shape[0] * shape[1] // 32 * 34
        return dequantised(np.asarray(self.data[begin:begin + size]), *shape, entry["dtype"])

    def number(self, key):
        return int(self.meta[key])

    def ids_with_token(self):
        """Ids that the tokenizer section has a token for: those are the ones that can be generated."""
        begin, end = self.sections["tokenizer"]["data_offsets"][0], self.number("tokenizer_bytes")
        section = np.asarray(self.data[begin:begin + end])
        n = int(section[8:12].view("<u4")[0])
        ends = np.concatenate([[0], section[32:32 + 4 * n].view("<u4")])
        return [i for i in range(n) if ends[i + 1] > ends[i]]

    def config(self):
        n = self.number
        return Qwen3Config(
            vocab_size=n("vocab_size"), hidden_size=n("hidden_size"), intermediate_size=n("intermediate_size"),
            num_hidden_layers=n("num_hidden_layers"), num_attention_heads=n("num_attention_heads"),
            num_key_value_heads=n("num_key_value_heads"), head_dim=n("head_dim"),
            max_position_embeddings=n("max_position_embeddings"), rms_norm_eps=float(self.meta["rms_norm_eps"]),
            rope_parameters={"rope_type": "default", "rope_theta": n("rope_theta")}, attention_bias=False,
            tie_word_embeddings=self.meta["tie_word_embeddings"] == "true", bos_token_id=None, eos_token_id=None, pad_token_id=None)

    def state(self):
        weights = {name: torch.from_numpy(self.tensor(name)) for name in self.sections if name.endswith(".weight")}
        if self.meta["tie_word_embeddings"] == "true":
            weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
        return weights

    def torch_model(self):
        config = self.config()
        config._attn_implementation = "eager"
        with torch.device("meta"):
            model = Qwen3ForCausalLM(config)
        model = model.to_empty(device="cpu")
        model.model.rotary_emb = type(model.model.rotary_emb)(config)  # its table is no weight: let it be computed
        model.load_state_dict(self.state(), strict=True, assign=True)
        model.tie_weights()
        assert model.config._attn_implementation == "eager" and next(model.parameters()).dtype == torch.float32
        return model.eval()

    def inv_freq_differences(self, model):
        """Entries of the RoPE table where PyTorch's float32 power is not the correctly rounded one of NUMERICS [D14]."""
        ours, theirs = self.tensor("rope.inv_freq"), model.model.rotary_emb.inv_freq.numpy()
        assert ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-6, atol=0)
        return int((ours != theirs).sum()), len(ours)
