"""Cards for small sums: plus and minus from 0 to 20, the times table to 10, even division."""

from .cards import Card, fill

WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
         "sixteen seventeen eighteen nineteen twenty").split()
ASK = ["what is $s", "what's $s", "how much is $s", "$s", "calculate $s", "can you tell me what $s is", "tell me $s",
       "what does $s {make|give|equal}", "what do you get for $s", "compute $s", "please work out $s", "solve $s",
       "do you know what $s is", "$s equals", "what is the result of $s", "i need $s", "can you calculate $s"]
SIGNED = ["$s", "$s=", "$s = ?", "$s =", "what is $s", "what's $s", "how much is $s", "calculate $s", "compute $s", "solve $s",
          "can you do $s", "what does $s equal"]
SIGNS = {"plus": ["+"], "minus": ["-"], "times": ["*", "x", "×"], "divided by": ["/", "÷"]}
SPECIAL = {
    "plus": ["add $a and $b", "what is the sum of $a and $b", "the sum of $a and $b", "add $b to $a", "what do $a and $b make"],
    "minus": ["subtract $b from $a", "take $b away from $a", "what is the difference of $a and $b", "what is $a less $b",
              "what is left if i take $b from $a"],
    "times": ["multiply $a by $b", "multiply $a and $b", "what is the product of $a and $b", "what is $a multiplied by $b"],
    "divided by": ["divide $a by $b", "what is $a over $b", "share $a among $b"]}
THOUGHT = {
    "plus": "I start at {a} and count {b} further, which gives {r}.",
    "minus": "I start at {a} and go {b} back, which gives {r}.",
    "times": "I recall the times table: {b} groups of {a} make {r}.",
    "divided by": "I look for the number that makes {a} when multiplied by {b}. It is {r}."}
REFUSAL = "That is beyond me: I know only sums of two numbers up to 20 and the times table up to 10. A bigger Qwen3 model can do more."


def sum_questions(a, op, b):
    """All ways of asking for one sum, in digits, signs and words."""
    questions = fill(ASK, s=f"{a} {op} {b}") + fill(SPECIAL[op], a=str(a), b=str(b))
    for sign in SIGNS[op]:
        for s in (f"{a} {sign} {b}", f"{a}{sign}{b}"):
            questions += fill(SIGNED, s=s)
    if a <= 20 and b <= 20:
        questions += fill(ASK[:8], s=f"{WORDS[a]} {op} {WORDS[b]}") + fill(SPECIAL[op][:1], a=WORDS[a], b=WORDS[b])
    return questions


def sum_card(a, op, b, result, weight):
    return Card("sums", sum_questions(a, op, b), [f"{a} {op} {b} is {result}."], [f"is {result}"],
                THOUGHT[op].format(a=a, b=b, r=result), weight)


def sums():
    for a in range(21):
        for b in range(21):
            easy = 1.5 if a <= 10 and b <= 10 else 1.0
            yield sum_card(a, "plus", b, a + b, easy)
            yield sum_card(a, "minus", b, a - b, easy if b <= a else 0.4)
            if a <= 10 and b <= 10:
                yield sum_card(a, "times", b, a * b, 2.0)
                if b:
                    yield sum_card(a * b, "divided by", b, a, 1.0)


def parity():
    for n in range(21):
        kind = "odd" if n % 2 else "even"
        yield Card("sums", fill(["is $n {even or odd|odd or even}", "is the number $n {even|odd}", "is $n {an even|an odd} number",
                                 "is $n {even|odd}"], n=str(n)),
                   [f"{n} is {kind}."], [f"is {kind}"], f"I check whether {n} can be halved: it is {kind}.", 0.6)
        yield Card("sums", fill(["double $n", "what is twice $n", "what is double $n", "twice $n", "what is the double of $n"], n=str(n)),
                   [f"Twice {n} is {2 * n}."], [f"is {2 * n}"], f"I add {n} and {n}, which gives {2 * n}.", 0.6)


def too_hard(rng):
    """A question about a sum that is out of reach."""
    op = rng.choice(list(SIGNS))

    def big():
        return rng.choice([rng.randint(21, 99), rng.randint(100, 999), rng.randint(1000, 99999)])

    def small():
        return rng.randint(1, 20)

    if rng.random() < 0.15:  # three numbers
        signs = rng.choices(["+", "-", "*", "plus", "minus", "times"], k=2)
        return rng.choice(ASK[:5]).replace("$s", f"{small()} {signs[0]} {small()} {signs[1]} {small()}")
    if rng.random() < 0.1:  # fractions
        return rng.choice(SIGNED).replace("$s", f"{small()}.{rng.randint(1, 9)} {rng.choice('+-*/')} {rng.choice([small(), big()])}")
    if op == "times" and rng.random() < 0.6:
        a, b = rng.choice([(rng.randint(11, 30), rng.randint(2, 30)), (rng.randint(2, 10), rng.randint(11, 30))])
    elif op == "divided by":
        a, b = rng.choice([(rng.randint(101, 9999), rng.randint(2, 99)), (rng.randint(1, 100), rng.randint(0, 10))])
        if b and a % b == 0 and a // b <= 10:
            a = big() * 10 + 1
    else:
        a, b = rng.choice([(big(), big()), (big(), small()), (small(), big())])
    return rng.choice(sum_questions(a, op, b))


def cards():
    return [*sums(), *parity()]
