"""The tables of docs/CONFORMANCE.md: each stands between <!-- begin NAME --> and <!-- end NAME --> and is written as measured."""
import re
from importlib.metadata import version

import torch

import checkpoints


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def logits_row(name, r):
    return [name, f"{r['positions']:,}", f"{r['logits']:,}", f"{r['one_minus_cosine']:.1e}", f"{r['ulp_median']:.1f}", f"{r['ulp_max']:.1f}",
            f"{r['difference']:.1e}", f"{r['argmax_equal']:,}", f"{r['worst_stage_ulp']:.1f} at {r['worst_stage']}", r["inv_freq"],
            f"{r['slm2_to_float64']:.1f}, {r['torch_to_float64']:.1f}" if "slm2_to_float64" in r else ""]


def logits(results):
    head = ["checkpoint", "positions", "logits", "1 - cosine", "ULP median", "ULP max", "max \\|Δlogit\\|", "same best id",
            "largest ULP of any stage", "inv_freq differing", "ULP max to float64: slm2, PyTorch"]
    return table(head, [logits_row(name, r) for name, r in results.items()])


def matrix(results):
    """Worst of all checkpoints that share a property."""
    groups = {}
    for name, r in results.items():
        for part in ["all", *name.split("-")]:
            groups.setdefault(part, []).append(r)
    rows = []
    for part in ("all", "bf16", "f32", "single", "sharded", "tied", "untied", "gqa1", "gqa2", "gqa4", "d64", "d128"):
        group = groups[part]
        rows.append([part, len(group), f"{max(r['one_minus_cosine'] for r in group):.1e}", f"{max(r['ulp_median'] for r in group):.1f}",
                     f"{max(r['ulp_max'] for r in group):.1f}", f"{max(r['worst_stage_ulp'] for r in group):.1f}"])
    return table(["checkpoints", "number", "1 - cosine", "ULP median", "ULP max", "largest ULP of any stage"], rows)


def greedy(r, difference):
    numbers = re.search(r"(\d+) prompts, (\d+) identical; (\d+) tokens, (\d+) identical", r["output"]).groups()
    mismatches = [line.strip() for line in r["output"].splitlines() if line.startswith("  ")]
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(r["kinds"].items()))
    rows = [["prompts identical", f"{int(numbers[1]):,} of {int(numbers[0]):,}"],
            ["tokens identical", f"{int(numbers[3]):,} of {int(numbers[2]):,}"],
            ["prompts", kinds],
            ["max \\|Δlogit\\| of the demo; a mismatch is allowed below twice it", f"{difference:.2e}; {2 * difference:.2e}"],
            ["smallest top-2 margin of PyTorch in all steps", f"{r['smallest_margin']:.2e}"],
            ["mismatches, with PyTorch's margin", "<br>".join(mismatches) or "none"]]
    return table(["greedy, demo against generate()", ""], rows)


def texts(r):
    names = {"strings": "texts to ids, added tokens on and off (`tokenizers`)", "ids": "ids to text, with and without special tokens "
             "(`tokenizers`)", "conversations": "conversations to prompt and ids (`apply_chat_template`)"}
    return table(["", "items", "identical"], [[names[k], f"{items:,}", f"{same:,}"] for k, (items, same, _) in r.items()])


def versions():
    packages = ", ".join(f"{p} {version(p)}" for p in ("torch", "transformers", "tokenizers", "safetensors", "jinja2", "numpy"))
    return f"{packages}; one thread, CPU capability {torch.backends.cpu.get_cpu_capability()}"


def write(refresh, path):
    measured = refresh.load("logits")
    demo = measured["demo"]
    blocks = {
        "logits": logits(measured),
        "matrix": matrix(refresh.load("matrix")),
        "greedy": greedy(refresh.load("greedy"), demo["difference"]),
        "text": texts(refresh.load("text")),
        "versions": versions(),
        "demo": f"The demo is the one with identity `{demo['identity'][:16]}…`.",
    }
    assert len(refresh.load("matrix")) == len(list(checkpoints.matrix()))
    page = path.read_text(encoding="utf-8")
    for name, block in blocks.items():
        page, n = re.subn(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", lambda m: m[1] + block + "\n" + m[2], page, flags=re.S)
        assert n == 1, name
    path.write_text(page, encoding="utf-8")
    print("wrote", path)
