"""How far apart two float32 results are [D24], and the first stage at which two forward passes part."""
import contextlib
import subprocess

import numpy as np
import torch
from safetensors.numpy import load_file
from transformers.models.qwen3 import modeling_qwen3

LIMIT_ULP, EXPLAIN_ULP, LIMIT_ONE_MINUS_COSINE = 256.0, 128.0, 1e-9


def ulps(ours, theirs):
    """|difference| in units in the last place of the largest |theirs| of each row: [rows, n] float64."""
    largest = np.abs(theirs).max(axis=1).astype(np.float64)
    unit = np.ldexp(1.0, np.frexp(np.maximum(largest, np.finfo(np.float32).tiny))[1] - 24)
    return np.abs(ours.astype(np.float64) - theirs) / unit[:, None]


class Tally:
    """Distances over any number of rows."""

    def __init__(self):
        self.rows, self.cosine, self.difference, self.argmax, self.parts = 0, 0.0, 0.0, 0, []

    def add(self, ours, theirs):
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        self.rows += len(a)
        self.parts.append(ulps(ours, theirs).astype(np.float32).ravel())
        self.difference = max(self.difference, float(np.abs(a - b).max()))
        self.argmax += int((a.argmax(1) == b.argmax(1)).sum())
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        b /= np.linalg.norm(b, axis=1, keepdims=True)
        self.cosine = max(self.cosine, float(((a - b) ** 2).sum(1).max() / 2))  # 1 - cosine, without cancellation

    def result(self):
        every = np.concatenate(self.parts)
        return {"positions": self.rows, "logits": len(every), "one_minus_cosine": self.cosine, "ulp_median": float(np.median(every)),
                "ulp_max": float(every.max()), "difference": self.difference, "argmax_equal": self.argmax}


def fails(result):
    return result["one_minus_cosine"] > LIMIT_ONE_MINUS_COSINE or result["ulp_max"] > LIMIT_ULP


def slm2_logits(slm2, path, ids, out):
    subprocess.run([slm2, "logits", path, "--profile", "f32", "--ids", ",".join(map(str, ids)), "--out", out], check=True,
                   stdout=subprocess.DEVNULL)
    return np.fromfile(out, "<f4").reshape(len(ids), -1)


def torch_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def float64_logits(file, ids):
    """The same function with sums in float64 (numpy): what both float32 programs approximate. Angles as in [D14]."""
    n, f64 = file.number, lambda name: file.tensor(name).astype(np.float64)
    heads, kv_heads, dim = n("num_attention_heads"), n("num_key_value_heads"), n("head_dim")
    eps = np.float64(np.float32(file.meta["rms_norm_eps"]))
    norm = lambda x, name: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * f64(name)
    angle = (np.arange(len(ids), dtype=np.float32)[:, None] * file.tensor("rope.inv_freq")[None]).astype(np.float64)[:, None]
    cos, sin, half = np.cos(angle), np.sin(angle), dim // 2
    turn = lambda v: np.concatenate([v[..., :half] * cos - v[..., half:] * sin, v[..., half:] * cos + v[..., :half] * sin], -1)
    x = file.tensor("model.embed_tokens.weight")[ids].astype(np.float64)
    for i in range(n("num_hidden_layers")):
        w = lambda name: f64(f"model.layers.{i}.{name}.weight").T
        h = norm(x, f"model.layers.{i}.input_layernorm.weight")
        q = turn(norm((h @ w("self_attn.q_proj")).reshape(-1, heads, dim), f"model.layers.{i}.self_attn.q_norm.weight"))
        k = turn(norm((h @ w("self_attn.k_proj")).reshape(-1, kv_heads, dim), f"model.layers.{i}.self_attn.k_norm.weight"))
        v = (h @ w("self_attn.v_proj")).reshape(-1, kv_heads, dim)
        k, v = (a.repeat(heads // kv_heads, axis=1) for a in (k, v))
        scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(dim) + np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hts,shd->thd", scores / scores.sum(-1, keepdims=True), v)
        x = x + mixed.reshape(len(ids), -1) @ w("self_attn.o_proj")
        h = norm(x, f"model.layers.{i}.post_attention_layernorm.weight")
        gate = h @ w("mlp.gate_proj")
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("mlp.up_proj"))) @ w("mlp.down_proj")
    tied = file.meta["tie_word_embeddings"] == "true"
    return norm(x, "model.norm.weight") @ f64("model.embed_tokens.weight" if tied else "lm_head.weight").T


# --- stage by stage ---------------------------------------------------------------

def stage_labels(layers):
    parts = ["attention_norm", "q_proj", "k_proj", "v_proj", "q_rope", "k_rope", "attention", "o_proj", "attention_residual", "mlp_norm",
             "gate_proj", "up_proj", "swiglu", "down_proj", "residual"]
    return ["embed"] + [f"layers.{i}.{p}" for i in range(layers) for p in parts] + ["final_norm", "logits"]


@contextlib.contextmanager
def taps(model):
    """Records, under slm2's names (include/slm2/trace.h), what every module of the PyTorch model gives."""
    seen, hooks = {}, []

    def keep(name, x):
        seen[name] = x.detach().reshape(-1, x.shape[-1]).numpy().copy()

    def output(module, name):
        hooks.append(module.register_forward_hook(lambda _, args, out: keep(name, out[0] if isinstance(out, tuple) else out)))

    def entry(module, name):
        hooks.append(module.register_forward_pre_hook(lambda _, args: keep(name, args[0])))

    output(model.model.embed_tokens, "embed")
    for i, layer in enumerate(model.model.layers):
        at, attention, mlp = f"layers.{i}.", layer.self_attn, layer.mlp
        output(layer.input_layernorm, at + "attention_norm")
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            output(getattr(attention, name), at + name)
        entry(attention.o_proj, at + "attention")
        entry(layer.post_attention_layernorm, at + "attention_residual")
        output(layer.post_attention_layernorm, at + "mlp_norm")
        for name in ("gate_proj", "up_proj", "down_proj"):
            output(getattr(mlp, name), at + name)
        entry(mlp.down_proj, at + "swiglu")
        output(layer, at + "residual")
    output(model.model.norm, "final_norm")
    output(model.lm_head, "logits")
    rotate, calls = modeling_qwen3.apply_rotary_pos_emb, []

    def rotated(q, k, *rest, **named):  # a function, no module: one call a layer
        q, k = rotate(q, k, *rest, **named)
        for name, x in (("q_rope", q), ("k_rope", k)):  # [1, heads, positions, head_dim]
            keep(f"layers.{len(calls)}.{name}", x[0].transpose(0, 1).reshape(1, x.shape[2], -1))
        calls.append(1)
        return q, k

    modeling_qwen3.apply_rotary_pos_emb = rotated
    try:
        yield seen
    finally:
        modeling_qwen3.apply_rotary_pos_emb = rotate
        for hook in hooks:
            hook.remove()


def stages(slm2, path, model, ids, out):
    """[(label, largest ULP at the scale of the stage's values)] in the order of computation."""
    subprocess.run([slm2, "trace", path, "--profile", "f32", "--ids", ",".join(map(str, ids)), "--out", out], check=True,
                   stdout=subprocess.DEVNULL)
    ours = load_file(out)
    with taps(model) as theirs:
        torch_logits(model, ids)
    labels = stage_labels(model.config.num_hidden_layers)
    assert set(labels) == set(ours) == set(theirs), set(labels) ^ set(ours) | set(labels) ^ set(theirs)
    return [(label, float(ulps(ours[label], theirs[label]).max())) for label in labels]


def first_differing(table):
    """The first stage above the limit, or None."""
    return next(((label, ulp) for label, ulp in table if ulp > LIMIT_ULP), None)
