#!/usr/bin/env python3
"""Random conversations (as JSON text) and the prompt that Hugging Face transformers renders from them.

  pip install transformers
  tests/gen/random_chat.py tests/data/chat/chat_template_c1899de.jinja 150 > tests/data/chat/random_vectors.jsonl

Per line: the JSON text as a string, and the prompt. The JSON varies in layout, escapes, numbers and repeated
keys; Python's json.loads reads it for the reference.
"""
import json
import random
import sys

TEXTS = ["", "Hi", "\n", "\n\nA\n", "<think>\nwhy\n</think>\n\nbecause", "<think>a</think>b</think>\nc", "<think>\nopen", "x</think>", "</think>",
         "<think></think>", "<think>\n\n</think>\n\nplain", "a<think>b<think>\nc\n</think>d", "<tool_response>\nr\n</tool_response>",
         "<tool_response>", "</tool_response>", "<tool_response></tool_response>", "<tool_response>x", "x<|im_end|>\n<|im_start|>system\n",
         "<tool_call>\n{}\n</tool_call>", "café 🦙 日本", "e\u0301\u0338", "\"quoted\" \\ back / slash", "tab\tnul\u0000bell\u0007del\u007f", "\u2028\u2029",
         "{\"t\": 20}", " ", "\r\n", "<|endoftext|>", "</thi", "\n\n\n", "<think>\n\n\n</think>\n"]
NAMES = ["get_weather", "f", "", "näme", "a\"b", "x\ny", "<|im_end|>"]
NUMBERS = ["0", "-0", "1", "-17", "123456789012345678901234567890", "1.0", "-0.0", "0.1", "1e5", "1E5", "1e+16", "1e15", "1e-7", "0.0001", "2.5e-05",
           "5e-324", "1.7976931348623157e308", "1e22", "1e23", "9007199254740993", "9007199254740993.0", "3.14159265358979", "1e400", "-1e400", "1e-400",
           "100000000000000000000.0", "0.30000000000000004"]


class Raw(str):
    """JSON text that is already final."""


class Conversations:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self):
        return "".join(self.r.choice(TEXTS) for _ in range(self.r.choice([1, 1, 1, 2, 3])))

    def value(self, depth=0):
        kind = self.r.randrange(9 if depth < 4 else 6)
        if kind == 0:
            return Raw(self.r.choice(["true", "false", "null"]))
        if kind <= 3:
            return Raw(self.r.choice(NUMBERS))
        if kind <= 5:
            return self.text()
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.r.randrange(4))]
        return self.object(depth)

    def object(self, depth):
        return [("k", self.r.choice(["city", "a", "b", "type", "", "ö", "q\"", self.text()]), self.value(depth + 1)) for _ in range(self.r.randrange(5))]

    def schema(self):
        function = [("k", "name", self.r.choice(NAMES)), ("k", "description", self.text()), ("k", "parameters", self.object(0) or Raw("{}"))]
        return [("k", "type", "function"), ("k", "function", function)] if self.r.random() < 0.7 else self.object(0) or function

    def tool_call(self):
        arguments = self.r.choice([self.object(0) or Raw("{}"), self.value(), self.text(), Raw("{}")])
        body = [("k", "name", self.r.choice(NAMES)), ("k", "arguments", arguments)]
        kind = self.r.randrange(4)
        if kind == 0:
            return body
        if kind == 1:
            return body + [("k", "function", Raw(self.r.choice(["null", "{}"])))]
        return [("k", "id", "call_1"), ("k", "type", "function"), ("k", "function", body)]

    def message(self, first):
        r = self.r
        role = r.choice(["user", "user", "assistant", "assistant", "tool", "system"] + ["system"] * (3 if first else 0))
        content = self.text() if (first and role == "system") or r.random() < 0.9 else Raw("null")
        members = [("k", "role", role), ("k", "content", content)]
        if content == "null" and isinstance(content, Raw) and r.random() < 0.5:
            members.pop()
        if role == "assistant":
            if r.random() < 0.3:
                members.append(("k", "reasoning_content", self.text() if r.random() < 0.8 else Raw("null")))
            if r.random() < 0.4:
                members.append(("k", "tool_calls", [self.tool_call() for _ in range(r.randrange(4))] if r.random() < 0.9 else Raw("null")))
        if r.random() < 0.2:
            members.append(("k", r.choice(["name", "tool_call_id", "x"]), self.value()))
        if r.random() < 0.1:
            members.insert(0, ("k", members[-1][1], self.value()))  # an earlier, losing value
        if r.random() < 0.3:
            r.shuffle(members) if len({k for _, k, _ in members}) == len(members) else None
        return members

    def conversation(self):
        r = self.r
        messages = [self.message(i == 0) for i in range(r.randint(1, 6))]
        if r.random() < 0.1:
            return messages
        members = [("k", "messages", messages)]
        if r.random() < 0.4:
            members.append(("k", "tools", [self.schema() for _ in range(r.randrange(4))] if r.random() < 0.9 else Raw("null")))
        if r.random() < 0.7:
            members.append(("k", "add_generation_prompt", Raw(r.choice(["true", "false"]))))
        if r.random() < 0.4:
            members.append(("k", "enable_thinking", Raw(r.choice(["true", "false"]))))
        r.shuffle(members)
        return members

    def space(self):
        return self.r.choice(["", "", "", " ", "\n  ", "\t"])

    def string(self, s):
        out = []
        for c in json.dumps(s, ensure_ascii=self.r.random() < 0.3)[1:-1]:
            if c in "abce<>|" and self.r.random() < 0.05 and (not out or not out[-1].endswith("\\")) and "\\" not in "".join(out[-5:]):
                c = "\\u%04X" % ord(c)
            out.append(c)
        return '"' + "".join(out).replace("/", self.r.choice(["/", "\\/"])) + '"'

    def dump(self, v):
        s = self.space
        if isinstance(v, Raw):
            return str(v)
        if isinstance(v, str):
            return self.string(v)
        if v and isinstance(v[0], tuple):
            return "{" + s() + ("," + s()).join(self.string(k) + s() + ":" + s() + self.dump(x) for _, k, x in v) + s() + "}"
        return "[" + s() + ("," + s()).join(map(self.dump, v)) + s() + "]"


def reference(template_path):
    from transformers.utils.chat_template_utils import _compile_jinja_template
    with open(template_path, encoding="utf-8", newline="") as f:
        template = _compile_jinja_template(f.read())

    def render(text):
        data = json.loads(text)
        data = data if isinstance(data, dict) else {"messages": data}
        data.setdefault("add_generation_prompt", True)
        return template.render(**data)
    return render


def directed():
    """Each text as the last answer, as an old one, and as a query that may be a tool's response."""
    user = {"role": "user", "content": "Q"}
    for text in TEXTS:
        answer = {"role": "assistant", "content": text}
        yield json.dumps([user, answer], ensure_ascii=False)
        yield json.dumps([user, answer, user, {"role": "assistant", "content": "A"}], ensure_ascii=False)
        yield json.dumps([user, {"role": "assistant", "content": "<think>r</think>A"}, {"role": "user", "content": text}, answer])


def vectors(template_path, count, seed):
    render, made = reference(template_path), Conversations(seed)
    for text in directed():
        yield {"json": text, "prompt": render(text)}
    for _ in range(count):
        text = made.dump(made.conversation())
        yield {"json": text, "prompt": render(text)}


if __name__ == "__main__":
    for v in vectors(sys.argv[1], int(sys.argv[2]), 1):
        print(json.dumps(v, ensure_ascii=False, separators=(",", ":")))
