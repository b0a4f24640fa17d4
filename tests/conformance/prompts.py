"""The 1,000 prompts of the greedy comparison: 400 questions of the demo's domain in its chat format, 240 beginnings of sentences
in 48 languages, 160 beginnings of programs, 200 lists of random ids. Each of the last three has at most 40 ids."""
import json
import random
import subprocess

MOST_IDS = 40
SENTENCES = """The river was wide and slow, and nobody in the village could swim.
Der Zug nach Norden fährt heute eine halbe Stunde später ab.
Le vieux jardinier arrosait ses roses avant le lever du soleil.
El perro dormía junto a la puerta mientras llovía en la calle.
A menina encontrou uma chave dourada debaixo da escada.
Il mercato apre presto e il pane finisce prima di mezzogiorno.
De kaart van het eiland hing scheef boven het bed.
Båten gled långsamt in i hamnen efter en lång natt.
Snøen lå dypt på fjellet, men solen varmet allerede.
Drengen byggede et tårn af sten ved vandet.
Kissa istui ikkunalla ja katseli lintuja koko aamun.
Kötturinn svaf á hlýjum steini í garðinum.
Stary zegar na wieży znowu pokazywał złą godzinę.
Na kopci za vesnicí stojí osamělá lípa.
Malý vlak prešiel cez most a zmizol v hmle.
A kisfiú egész nap sárkányt eregetett a mezőn.
Bătrânul pescar își repara plasele pe mal.
Старая лодка тихо качалась у берега.
Маленький хлопчик знайшов у лісі стежку.
На пазара продаваха череши и пресен хляб.
Дете је нацртало кућу са плавим кровом.
Vlak je kasnio, pa smo čekali na peronu.
Ο γέρος ψαράς κοιτούσε τη θάλασσα χωρίς να μιλά.
Küçük kuş pencerenin önünde şarkı söylüyordu.
Кіші өзен тауға қарай емес, далаға ағады.
הילד מצא צדף קטן על שפת הים.
كان القمر كاملا والطريق إلى القرية طويلا.
پیرمرد هر روز صبح به باغ می‌رفت.
بارش کے بعد بچے گلی میں کھیلنے لگے۔
बारिश के बाद बच्चे मैदान में खेलने लगे।
নদীর ধারে একটি পুরনো বটগাছ ছিল।
மழை நின்றதும் குழந்தைகள் வெளியே ஓடினார்கள்.
వర్షం ఆగిన తరువాత పిల్లలు బయటకు వచ్చారు.
മഴ തോർന്നപ്പോൾ കുട്ടികൾ പുറത്തിറങ്ങി.
แมวตัวเล็กนอนอยู่ใต้ต้นมะม่วง
ແມວນ້ອຍນອນຢູ່ໃຕ້ຕົ້ນໄມ້
ကလေးငယ်သည် မြစ်ကမ်းတွင် ကစားနေသည်။
ក្មេងតូចលេងនៅមាត់ទន្លេ។
Con mèo nhỏ ngủ dưới gốc cây xoài.
Anak kecil itu menemukan layang-layang di sawah.
Nakita ng bata ang bangka sa tabing-dagat.
Mtoto alipata samaki mdogo kando ya mto.
小さな船が朝の霧の中をゆっくり進んだ。
작은 새가 창가에서 노래를 부르고 있었다.
小猫在窗台上睡了一个下午。
老漁夫每天清晨都到海邊補網。
პატარა ბიჭმა ტყეში ბილიკი იპოვა.
Փոքրիկ տղան գտավ մի հին բանալի։""".split("\n")
PROGRAMS = ["""#include <stdio.h>
int main(void) {
  for (int i = 0; i < 10; i++) printf("%d\\n", i * i);
  return 0;
}
""", """def mean(values):
    total = 0.0
    for v in values:
        total += v
    return total / len(values)
""", """const add = (a, b) => a + b;
console.log([1, 2, 3].reduce(add, 0));
""", """fn main() {
    let names = vec!["ada", "bob"];
    for name in &names { println!("hello {name}"); }
}
""", """SELECT city, COUNT(*) AS n FROM users WHERE age >= 18
GROUP BY city ORDER BY n DESC LIMIT 5;
""", """package main
import "fmt"
func main() { fmt.Println("ready", 42) }
""", """<!doctype html>
<html lang="en"><body><p class="note">Hello</p></body></html>
""", """{"name": "demo", "tags": ["a", "b"], "size": 12.5, "ok": true}
""", """all: main.o util.o
\t$(CC) -o app main.o util.o -lm
clean:
\trm -f *.o app
""", """#!/bin/sh
for f in *.txt; do
  wc -l "$f" | awk '{print $1}'
done
""", """public class Point {
  private final int x, y;
  Point(int x, int y) { this.x = x; this.y = y; }
}
""", """# Title

- one
- two

| a | b |
|---|---|
| 1 | 2 |
""", """body { margin: 0 auto; color: #333; }
@media (max-width: 600px) { body { font-size: 14px; } }
""", """quicksort [] = []
quicksort (p:xs) = quicksort [x | x <- xs, x < p] ++ [p] ++ quicksort [x | x <- xs, x >= p]
""", """module counter(input clk, output reg [7:0] q);
  always @(posedge clk) q <= q + 1;
endmodule
""", """\\begin{equation}
  e^{i\\pi} + 1 = 0
\\end{equation}
"""]


def run(slm2, command, text):
    return subprocess.run([slm2, *command], input=text.encode(), capture_output=True, check=True).stdout.decode()


def tokenize(slm2, demo, text):
    return [int(i) for i in run(slm2, ["tokenize", demo], text).split()]


def chat(slm2, demo, question, *options):
    return json.loads(run(slm2, ["render", demo, "--json", *options], json.dumps([{"role": "user", "content": question}])))["ids"]


def beginnings(ids, count):
    """count beginnings of different lengths, the longest being MOST_IDS or all but the last."""
    longest = min(len(ids) - 1, MOST_IDS)
    return [ids[:longest * (k + 1) // count] for k in range(count)]


def prompts(slm2, demo, questions, ids_with_token, vocab):
    """[(kind, ids)], 1,000 of them, the kinds mixed."""
    made = []
    with open(questions, encoding="utf-8") as f:
        asked = [json.loads(line)["question"] for line in f]
    made += [("chat", chat(slm2, demo, q)) for q in asked]
    made += [("chat-no-think", chat(slm2, demo, q, "--no-think")) for q in asked[:400 - len(asked)]]
    made += [("language", b) for s in SENTENCES for b in beginnings(tokenize(slm2, demo, s), 5)]
    made += [("code", b) for p in PROGRAMS for b in beginnings(tokenize(slm2, demo, p), 10)]
    r = random.Random(1000)
    made += [("random", [r.randrange(vocab) if i % 2 else r.choice(ids_with_token) for _ in range(r.randint(4, 32))]) for i in range(200)]
    assert len(made) == len({tuple(ids) for _, ids in made}) == 1000 and all(ids for _, ids in made), len(made)
    r.shuffle(made)
    return made
