#!/usr/bin/env python3
"""make conformance-refresh: compares slm2 with PyTorch and transformers, and writes the right values that `make conformance`
checks without Python (tests/data/conformance) and the tables of docs/CONFORMANCE.md.

    refresh.py --build build --tokenizer qwen3_tokenizer.json [--steps export,logits,matrix,greedy,text,crates,report]

The models are those of `make conformance-models` in BUILD/conformance. Each step leaves its results in BUILD/conformance/refresh,
so steps can be run one by one; greedy goes on where it was stopped. Exits 1 when a limit of NUMERICS [D24] is broken.
"""
import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import checkpoints
import compare
import prompts
import text
from slm2_file import Slm2File

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/conformance"
QUESTIONS = ROOT / "tests/data/demo_questions.jsonl"
WIDE_STRIDE = 297  # 512 of the wide model's 151,936 logits
NEAR = 0.01        # margins below this are kept in greedy.txt
ANSWER_IDS = 32


class Refresh:
    def __init__(self, args):
        self.slm2, self.program = f"{args.build}/slm2", f"{args.build}/tests/conformance"
        self.models, self.tokenizer = pathlib.Path(args.build) / "conformance", args.tokenizer
        self.work = self.models / "refresh"
        self.work.mkdir(parents=True, exist_ok=True)
        self.broken = []

    def save(self, step, results):
        (self.work / f"{step}.json").write_text(json.dumps(results, indent=1) + "\n")

    def load(self, step):
        return json.loads((self.work / f"{step}.json").read_text())

    def complain(self, what):
        print("FAIL", what, flush=True)
        self.broken.append(what)

    # --- logits -----------------------------------------------------------------

    def sequences(self, name, file):
        """Lists of ids; the first one gives the committed right values."""
        r, vocab = random.Random(name), file.number("vocab_size")
        draw = lambda n: [r.randrange(vocab) for _ in range(n)]
        if name == "wide":
            return [draw(16), draw(48)], [0, 1, 2, 3, 5, 8, 12, 15]
        lists = [draw(64), draw(min(512, file.number("max_position_embeddings")))]
        if name == "demo":
            asked = [json.loads(line)["question"] for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
            for lines in (prompts.SENTENCES[::2] + prompts.PROGRAMS, asked):
                lists.append(prompts.tokenize(self.slm2, str(self.models / "demo.slm2"), "\n".join(lines))[:1024])
        return lists, [0, 1, 2, 7, 15, 31, 47, 63]

    def compare_model(self, path, model, lists):
        tally, golden = compare.Tally(), None
        for ids in lists:
            theirs = compare.torch_logits(model, ids)
            golden = theirs if golden is None else golden
            tally.add(compare.slm2_logits(self.slm2, path, ids, str(self.work / "logits.f32")), theirs)
        return tally.result(), golden

    def judge(self, name, path, model, ids, result):
        """Largest ULP of every stage; names the first one that is off when the logits are."""
        table = compare.stages(self.slm2, path, model, ids, str(self.work / "trace.safetensors"))
        result["worst_stage"], result["worst_stage_ulp"] = max(table, key=lambda row: row[1])
        if compare.fails(result):
            self.complain(f"{name}: {result}; first differing stage: {compare.first_differing(table)}")

    def self_test(self, name, path, model, ids):
        """A changed weight and a turned rotation must be found, at the stage where they are."""
        out = str(self.work / "trace.safetensors")
        layer = model.model.layers[1]
        found = {}
        for label, parameter in (("layers.1.up_proj", layer.mlp.up_proj.weight), ("layers.1.q_rope", layer.self_attn.q_norm.weight)):
            with torch.no_grad():
                kept = parameter.clone()
                parameter.view(-1)[5] += 0.01
                found[label] = compare.first_differing(compare.stages(self.slm2, path, model, ids, out))
                parameter.copy_(kept)
        if any(at is None or at[0] != label for label, at in found.items()):
            self.complain(f"{name}: a changed weight was not found where it is: {found}")

    def step_logits(self):
        results, lines = {}, []
        names = ["tied", "untied", *checkpoints.COMMITTED, "demo", "wide"]
        for name in names:
            path = str(self.models / f"{name}.slm2")
            file = Slm2File(path)
            model = file.torch_model()
            lists, positions = self.sequences(name, file)
            result, golden = self.compare_model(path, model, lists)
            self.judge(name, path, model, lists[0], result)
            if name == names[0]:
                self.self_test(name, path, model, lists[0])
            if name != "wide":  # its matrices in float64 take gigabytes
                exact = compare.float64_logits(file, lists[0])
                ours = compare.slm2_logits(self.slm2, path, lists[0], str(self.work / "logits.f32"))
                result["slm2_to_float64"] = float(compare.ulps(ours, exact).max())
                result["torch_to_float64"] = float(compare.ulps(golden, exact).max())
            differing, entries = file.inv_freq_differences(model)
            result.update(identity=file.identity, inv_freq=f"{differing} of {entries}", layers=file.number("num_hidden_layers"))
            stride = WIDE_STRIDE if name == "wide" else 1
            rows = golden[positions]
            extra = np.stack([np.abs(rows).max(1), np.linalg.norm(rows.astype(np.float64), axis=1)], axis=1)
            np.concatenate([rows[:, ::stride], extra.astype(np.float32)], axis=1).astype("<f4").tofile(DATA / f"{name}.f32")
            lines.append(f"{name} {file.identity} {result['difference'].hex()} {stride} {','.join(map(str, positions))} "
                         f"{','.join(map(str, lists[0]))}\n")
            results[name] = result
            print(name, result, flush=True)
        (DATA / "models.txt").write_text("".join(lines))
        self.save("logits", results)

    def step_matrix(self):
        """Every kind of checkpoint: converted, its weights against numpy's quantiser, its logits against PyTorch's."""
        results = {}
        for name, folder in checkpoints.write_matrix(self.models / "matrix"):
            path = str(self.models / "matrix" / f"{name}.slm2")
            subprocess.run([self.slm2, "convert", str(folder), path], check=True, capture_output=True)
            file = Slm2File(path)
            state = {}
            for part in folder.glob("*.safetensors"):
                state.update(load_file(part))
            for weight, got in file.state().items():
                if weight in state and not np.array_equal(checkpoints.expected(state[weight]), got.numpy()):
                    self.complain(f"{name}: {weight} is not what [D9] makes of the source")
            model = file.torch_model()
            lists = self.sequences(name, file)[0][:1]
            result, _ = self.compare_model(path, model, lists)
            self.judge(name, path, model, lists[0], result)
            results[name] = result
            print(name, result["one_minus_cosine"], result["ulp_max"], flush=True)
        self.save("matrix", results)

    def step_export(self):
        """`slm2 convert FILE.slm2 DIR`: transformers reads the folder and gets exactly our dequantised weights."""
        results = {}
        for name in ("demo", "wide"):
            folder = self.work / f"{name}-hf"
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([self.slm2, "convert", str(self.models / f"{name}.slm2"), str(folder)], check=True, capture_output=True)
            read = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").state_dict()
            own = Slm2File(str(self.models / f"{name}.slm2")).torch_model().state_dict()
            if set(read) != set(own) or not all(torch.equal(read[k], own[k]) for k in own):
                self.complain(f"export of {name}: weights differ")
            results[name] = len(own)
            print("export", name, len(own), "tensors", flush=True)
            shutil.rmtree(folder)
        self.save("export", results)

    # --- greedy -----------------------------------------------------------------

    def answer(self, model, ids, suppressed):
        """transformers' own generate(): 32 ids, and the margin between the best two at each step."""
        out = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=ANSWER_IDS, min_new_tokens=ANSWER_IDS,
                             suppress_tokens=suppressed or None, return_dict_in_generate=True, output_scores=True)
        best = [torch.topk(step[0], 2).values for step in out.scores]
        return out.sequences[0, len(ids):].tolist(), [float(b[0] - b[1]) for b in best]

    def step_greedy(self):
        path = str(self.models / "demo.slm2")
        file = Slm2File(path)
        model, having = file.torch_model(), file.ids_with_token()
        model.generation_config.use_cache = True
        suppressed = sorted(set(range(file.number("vocab_size"))) - set(having))
        made = prompts.prompts(self.slm2, path, QUESTIONS, having, file.number("vocab_size"))
        cache, done = self.work / f"greedy-{file.identity[:16]}.jsonl", {}
        if cache.exists():
            done = {tuple(row[0]): row[1:] for row in map(json.loads, cache.read_text().splitlines())}
        lines, margins = [], []
        with open(cache, "a", encoding="utf-8") as log:
            for number, (kind, ids) in enumerate(made):
                if tuple(ids) not in done:
                    done[tuple(ids)] = list(self.answer(model, ids, suppressed))
                    log.write(json.dumps([ids, *done[tuple(ids)]]) + "\n")
                    log.flush()
                answer, margin = done[tuple(ids)]
                assert len(answer) == ANSWER_IDS
                margins += margin
                near = ",".join(f"{i}:{m:.6g}" for i, m in enumerate(margin) if m < NEAR) or "-"
                lines.append(f"{number} {kind} {','.join(map(str, ids))} {','.join(map(str, answer))} {near}\n")
        (DATA / "greedy.txt").write_text("".join(lines))
        checked = subprocess.run([self.program, "greedy", str(DATA), str(self.models)], capture_output=True, text=True)
        print(checked.stdout, flush=True)
        if checked.returncode != 0:
            self.complain("greedy")
        kinds = {kind: sum(k == kind for k, _ in made) for kind, _ in made}
        self.save("greedy", {"identity": file.identity, "output": checked.stdout, "kinds": kinds, "suppressed": len(suppressed),
                             "smallest_margin": min(margins), "near": sum(m < NEAR for m in margins), "steps": len(margins)})

    # --- the rest -----------------------------------------------------------------

    def step_text(self):
        folder = self.work / "qwen3"
        folder.mkdir(exist_ok=True)
        shutil.copy(self.tokenizer, folder / "tokenizer.json")
        shutil.copy(ROOT / "tests/data/qwen3/tokenizer_config.json", folder)
        summary = text.refresh(self.program, self.tokenizer, str(folder), DATA / "text.txt")
        print(summary, flush=True)
        if any(items != same for items, same, _ in summary.values()):
            self.complain(f"text: {summary}")
        self.save("text", summary)

    def step_crates(self):
        """The Rust crates' vectors, made anew: they must be those of tests/data/num/rand_chacha.txt."""
        if shutil.which("cargo") is None:
            self.complain("crates: needs cargo (Debian: apt-get install cargo)")
            return
        project = self.work / "rand_chacha"
        shutil.copytree(ROOT / "tests/conformance/rand_chacha", project, dirs_exist_ok=True)
        made = subprocess.run(["cargo", "run", "--quiet", "--release", "--manifest-path", str(project / "Cargo.toml")], check=True,
                              capture_output=True, text=True).stdout
        kept = ROOT / "tests/data/num/rand_chacha.txt"
        if made != kept.read_text():
            self.complain("rand_chacha: the crates' vectors differ from tests/data/num/rand_chacha.txt")
        self.save("crates", {"lines": made.count("\n")})

    def step_report(self):
        from report import write
        write(self, ROOT / "docs/CONFORMANCE.md")


def main():
    steps = ["export", "logits", "matrix", "greedy", "text", "crates", "report"]
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--steps", default=",".join(steps))
    args = parser.parse_args()
    torch.set_num_threads(1)
    refresh = Refresh(args)
    for step in args.steps.split(","):
        getattr(refresh, f"step_{step}")()
    sys.exit(1 if refresh.broken else 0)


if __name__ == "__main__":
    main()
