"""Write a checkpoint as a Hugging Face folder.

    python export.py build/demo build/demo-hf
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from make_tokenizer import PLAIN, SPECIAL
from model import Config

TEMPLATE = Path(__file__).parent / "data" / "chat_template_c1899de.jinja"


def model_config(config, ids):
    return {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"], "head_dim": config.head_dim,
        "hidden_act": "silu", "hidden_size": config.hidden_size, "initializer_range": 0.02,
        "intermediate_size": config.intermediate_size, "max_position_embeddings": config.max_position_embeddings,
        "max_window_layers": config.num_hidden_layers, "model_type": "qwen3",
        "num_attention_heads": config.num_attention_heads, "num_hidden_layers": config.num_hidden_layers,
        "num_key_value_heads": config.num_key_value_heads, "rms_norm_eps": config.rms_norm_eps, "rope_scaling": None,
        "rope_theta": int(config.rope_theta), "sliding_window": None, "tie_word_embeddings": True,
        "torch_dtype": "float32", "transformers_version": "4.51.0", "use_cache": True, "use_sliding_window": False,
        "vocab_size": config.vocab_size}


def generation_config(ids):
    return {"bos_token_id": ids["<|endoftext|>"], "do_sample": True,
            "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]], "pad_token_id": ids["<|endoftext|>"],
            "temperature": 0.6, "top_k": 20, "top_p": 0.95, "transformers_version": "4.51.0"}


def tokenizer_config(config, ids):
    added = {str(ids[text]): {"content": text, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                              "special": text in SPECIAL} for text in SPECIAL + PLAIN}
    return {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added,
            "additional_special_tokens": SPECIAL[1:], "bos_token": None, "chat_template": TEMPLATE.read_text(),
            "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace",
            "model_max_length": config.max_position_embeddings, "pad_token": "<|endoftext|>", "split_special_tokens": False,
            "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}


def main(source, out):
    out.mkdir(parents=True, exist_ok=True)
    weights = torch.load(source / "checkpoint.pt")["average"]
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    ids = {text: tokenizer.token_to_id(text) for text in SPECIAL + PLAIN}
    config = Config(vocab_size=weights["model.embed_tokens.weight"].shape[0])
    for name, content in (("config", model_config(config, ids)), ("generation_config", generation_config(ids)),
                          ("tokenizer_config", tokenizer_config(config, ids))):
        (out / f"{name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    shutil.copy(source / "tokenizer.json", out / "tokenizer.json")
    save_file({name: w.contiguous() for name, w in weights.items()}, str(out / "model.safetensors"), {"format": "pt"})
    print(f"{out}: {sum(w.numel() for w in weights.values()):,} parameters")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
