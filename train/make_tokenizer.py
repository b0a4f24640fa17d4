"""Train the byte-level BPE of the demo model and write tokenizer.json.

Same pipeline as Qwen3: NFC, Qwen's split pattern, byte level, BPE. Ids 0..255
are the byte symbols in sorted order, merge i makes id 256 + i, and the 26
added tokens of Qwen3 follow, with their texts and special flags.
"""

import json
import sys
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from dataset import conversations

BPE_SIZE = 2_784   # with the 26 added tokens 2,810, padded to 2,816 rows
TEXTS = 60_000
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
           "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
           "<|image_pad|>", "<|video_pad|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
         "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]


def pipeline(model):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    return tokenizer


def plain_texts():
    """Conversation text without control tokens."""
    for segments in conversations("tokenizer", TEXTS):
        for text, _ in segments:
            for token in SPECIAL + PLAIN:
                text = text.replace(token, "")
            yield text


def train():
    tokenizer = pipeline(models.BPE())
    tokenizer.train_from_iterator(plain_texts(), trainers.BpeTrainer(
        vocab_size=BPE_SIZE, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    results = [a + b for a, b in merges]
    assert len(symbols) == 256 and len(set(results)) == len(results), "every merge must make a new token"
    vocab = {text: index for index, text in enumerate(symbols + results)}
    assert len(vocab) == BPE_SIZE
    return vocab, merges


def describe(vocab, merges):
    """tokenizer.json as Qwen3's is written."""
    tokenizer = pipeline(models.BPE(vocab=vocab, merges=merges))
    described = json.loads(tokenizer.to_str())
    described["added_tokens"] = [
        {"id": len(vocab) + index, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": text in SPECIAL} for index, text in enumerate(SPECIAL + PLAIN)]
    described["model"].update(continuing_subword_prefix="", end_of_word_suffix="", merges=[list(m) for m in merges])
    return described


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(describe(*train()), ensure_ascii=False, indent=1) + "\n")
    tokenizer = Tokenizer.from_file(str(out))
    sample = "What is the capital of France?"
    print(f"{tokenizer.get_vocab_size()} tokens; {sample!r} is {tokenizer.encode(sample).tokens}")
