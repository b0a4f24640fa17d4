#!/usr/bin/env python3
"""Writes tests/data/gguf/: GGUF files of the tiny checkpoints in tests/data/hf-tiny, as llama.cpp's converter lays them out.

    python3 tests/gen/gguf_fixtures.py tests/data/hf-tiny tests/data/gguf

Needs the PyPI packages gguf and numpy. Weights, blocks of Q8_0 and the file itself are written by gguf's own code; nothing
here uses slm2.

  tied-q8_0.gguf    matrices in Q8_0, norms in F32
  tied-bf16.gguf    matrices in BF16; the tensors in reverse order
  untied-q8_0.gguf  with output.weight; no sampling defaults
"""
import json
import pathlib
import struct
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
WHOLE = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
         "lm_head.weight": "output.weight"}


def tensors(folder):
    """name -> f32 array, of every shard."""
    out = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw = path.read_bytes()
        n = struct.unpack("<Q", raw[:8])[0]
        for name, t in json.loads(raw[8:8 + n]).items():
            if name == "__metadata__":
                continue
            data = raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
            if t["dtype"] == "BF16":
                values = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
            else:
                values = np.frombuffer(data, "<f4")
            out[name] = values.reshape(t["shape"])
    return out


def gguf_name(name):
    if name in WHOLE:
        return WHOLE[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{LAYER[rest.removesuffix('.weight')]}.weight"


def add_tokenizer(w, folder, vocab_size):
    t = json.loads((folder / "tokenizer.json").read_text())
    tokens = [f"[PAD{i}]" for i in range(vocab_size)]
    types = [gguf.TokenType.UNUSED] * vocab_size
    for text, i in t["model"]["vocab"].items():
        tokens[i], types[i] = text, gguf.TokenType.NORMAL
    for a in t["added_tokens"]:
        # llama.cpp's converter takes what looks like a control token for one, whatever its flag says.
        looks = a["content"].startswith("<|") and a["content"].endswith("|>")
        tokens[a["id"]] = a["content"]
        types[a["id"]] = gguf.TokenType.CONTROL if a["special"] or looks else gguf.TokenType.USER_DEFINED
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]])
    g = json.loads((folder / "generation_config.json").read_text())
    eos = g["eos_token_id"]
    w.add_eos_token_id(eos[0] if isinstance(eos, list) else eos)
    w.add_add_bos_token(False)
    w.add_chat_template((folder / "chat_template.jinja").read_text())
    for key, add in (("pad_token_id", w.add_pad_token_id), ("bos_token_id", w.add_bos_token_id), ("top_k", w.add_sampling_top_k),
                     ("top_p", w.add_sampling_top_p), ("temperature", w.add_sampling_temp)):
        if key in g:
            add(g[key])


def write(path, folder, kind, reverse=False):
    c = json.loads((folder / "config.json").read_text())
    w = gguf.GGUFWriter(path, "qwen3")
    w.add_type("model")
    w.add_name("tiny")
    w.add_size_label("0M")
    w.add_block_count(c["num_hidden_layers"])
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    w.add_rope_freq_base(float(c.get("rope_theta") or c["rope_parameters"]["rope_theta"]))
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_key_length(c["head_dim"])
    w.add_value_length(c["head_dim"])
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if kind == Q.Q8_0 else gguf.LlamaFileType.ALL_F32)
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_tokenizer(w, folder, c["vocab_size"])
    items = list(tensors(folder).items())
    for name, values in reversed(items) if reverse else items:
        if c["tie_word_embeddings"] and name == "lm_head.weight":
            continue
        this = Q.F32 if values.ndim == 1 else kind
        data = values if this == Q.F32 else gguf.quants.quantize(values, this)
        w.add_tensor(gguf_name(name), data, raw_dtype=this)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    write(out / "tied-q8_0.gguf", source / "tied", Q.Q8_0)
    write(out / "tied-bf16.gguf", source / "tied", Q.BF16, reverse=True)
    write(out / "untied-q8_0.gguf", source / "untied", Q.Q8_0)


main()
