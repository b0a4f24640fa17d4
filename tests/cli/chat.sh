# chat through pipes: answers only, commands, errors. The terminal is looked at by hand. Read by run.sh.
feed 'Hi\n' chat "$hf" --temperature 0 --max-tokens 5
cp "$work/out" "$work/a"
checks=$((checks + 2))
[ "$code" -eq 0 ] || fail "chat: exit $code"
[ -s "$work/out" ] || fail "chat: no answer"
run run "$hf" -p Hi --temperature 0 --max-tokens 5
check "the first turn of chat is run" cmp "$work/a" "$work/out"
feed 'Hi' chat "$hf" --temperature 0 --max-tokens 5
check "a last line without its newline" cmp "$work/a" "$work/out"
feed '\n  \nHi\r\n\n' chat "$hf" --temperature 0 --max-tokens 5
check "blank lines and CR" cmp "$work/a" "$work/out"
feed 'Hi\n/reset\nHi\n' chat "$hf" --temperature 0 --max-tokens 5
cat "$work/a" "$work/a" >"$work/twice"
check "/reset starts anew" cmp "$work/twice" "$work/out"
feed '' chat "$hf"
out_is "chat without input" ""
"$slm2" chat "$hf" <"$work" >"$work/out" 2>"$work/err"
code=$?
refused "chat, stdin cannot be read" 1 "stdin: Is a directory"
feed '/quit\nHi\n' chat "$hf"
out_is "/quit" ""
feed '/help\n/seed 12\n/stats\n/bogus\n/seed x\n' chat "$hf"
checks=$((checks + 1))
{ [ "$code" -eq 0 ] && [ ! -s "$work/out" ] && grep -q '^/reset' "$work/err" && grep -q '^seed 12,' "$work/err" &&
  grep -q '/bogus: is not a command' "$work/err" && grep -q '^slm2: /seed: "x"' "$work/err"; } || fail "commands: $(cat "$work/err")"
feed '/stats\n' chat "$hf" --threads 2 --backend oracle
checks=$((checks + 1))
grep -q 'backend oracle, threads 2$' "$work/err" || fail "/stats: $(cat "$work/err")"
feed '/think Hi\n' chat "$hf" --temperature 0 --max-tokens 5
cp "$work/out" "$work/a"
"$slm2" run "$hf" -p '/think Hi' --temperature 0 --max-tokens 5 >"$work/b" 2>/dev/null
check "/think belongs to the message" cmp "$work/a" "$work/b"
feed '/seed 7\nTell me\n' chat "$hf" --max-tokens 9
cp "$work/out" "$work/a"
feed 'Tell me\n' chat "$hf" --max-tokens 9 --seed 7
check "/seed is --seed" cmp "$work/a" "$work/out"
feed 'Tell me\nMore\n' chat "$hf" --max-tokens 9 --temperature 2
cp "$work/out" "$work/a"
seed=$(sed -n 's/^seed \([0-9]*\)$/\1/p' "$work/err")
feed 'Tell me\nMore\n' chat "$hf" --max-tokens 9 --temperature 2 --seed "$seed"
check "a drawn seed is told, once, and replays the conversation" cmp "$work/a" "$work/out"
checks=$((checks + 1))
! grep -q '^seed' "$work/err" || fail "chat: a given seed is told"

# The second turn holds the first one and computes only what is new.
feed 'Hi\nMore\n/stats\n' chat "$hf" --temperature 0 --max-tokens 5
checks=$((checks + 1))
grep -q 'last answer: .*prompt [0-9]* tokens ([1-9][0-9]* cached' "$work/err" || fail "no prefix was reused: $(cat "$work/err")"
tail -1 "$work/out" >"$work/second"
answer=$(head -1 "$work/a" >/dev/null; "$slm2" run "$hf" -p Hi --temperature 0 --max-tokens 5 --json 2>/dev/null | sed -n 's/^{"text":\(".*"\),"reasoning".*/\1/p')
printf '[{"role":"user","content":"Hi"},{"role":"assistant","content":%s},{"role":"user","content":"More"}]' "$answer" >"$work/messages.json"
run run "$hf" --messages "$work/messages.json" --temperature 0 --max-tokens 5
tail -1 "$work/out" >"$work/cold"
check "a turn from the cache is the same conversation cold" cmp "$work/second" "$work/cold"

long=$(head -c 700 /dev/zero | tr '\0' 'x' | sed 's/x/x /g')
feed "$long\n" chat "$hf"
refused "a message longer than the context" 1 "but the context has 512"
bad 2 "--seed" chat "$hf" --seed abc
bad 2 "--context" chat "$hf" --context 513
head -c 3000000 /dev/zero | tr '\0' ' ' >"$work/long-line"
printf '/quit' >>"$work/long-line"
checks=$((checks + 1))
"$slm2" chat "$hf" <"$work/long-line" >"$work/out" 2>"$work/err" || true
[ "$(wc -c <"$work/err")" -lt 400 ] || fail "a line of 3 MB is not handled"

# A model that is cut short while it is in use: one line and exit 1, not a crash.
cp "$hf" "$work/cut-in-use.slm2"
mkfifo "$work/answers"
{
  printf 'Hi\n'
  exec 4<"$work/answers"
  read -r line <&4
  : >"$work/cut-in-use.slm2"
  printf 'More\n'
} | "$slm2" chat "$work/cut-in-use.slm2" --temperature 0 --max-tokens 1 >"$work/answers" 2>"$work/err"
code=$?
checks=$((checks + 1))
{ [ "$code" -eq 1 ] && grep -q '^slm2: read: a file was cut short' "$work/err"; } || fail "cut in use: exit $code: $(cat "$work/err")"
