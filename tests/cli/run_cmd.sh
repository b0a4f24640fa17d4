# run: prompts, sampling options, JSON, refusals, cancelling. Read by run.sh.
run run "$hf" -p "Hi" --temperature 0 --max-tokens 6 --json
out_has "run --json" '"finish":"length","prompt_tokens":' '"completion_tokens":6,"seed":0,"timings":{"load_ms":' \
  '"profile":"q8","kv":"f32","backend":"' '","threads":' ',"digest":"' "\"model\":\"$(sed -n 's/.*identity":"\([0-9a-f]*\)".*/\1/p' "$work/out" | head -1)"
checks=$((checks + 1))
[ "$(wc -l <"$work/out")" -eq 7 ] || fail "run --json: $(wc -l <"$work/out") lines for 6 tokens"
check "an object per token" grep -q '^{"id":[0-9]*,"text":".*","logprob":-[0-9.e-]*,"channel":"answer"}$' "$work/out"
checks=$((checks + 1))
[ ! -s "$work/err" ] || fail "a greedy run wrote on stderr: $(cat "$work/err")"
grep -o '"digest":"[0-9a-f]*"' "$work/out" >"$work/digest-greedy"
run run "$hf" -p "Hi" --temperature 0 --max-tokens 6 --json --seed 5 --top-k 0 --top-p 1 --min-p 0 --repeat-penalty 1
grep -o '"digest":"[0-9a-f]*"' "$work/out" >"$work/digest-off"
check "off values change nothing" cmp "$work/digest-greedy" "$work/digest-off"
run run "$hf" -p "Hi" --top-k 1 --seed 9 --max-tokens 6
cp "$work/out" "$work/top1"
run run "$hf" -p "Hi" --temperature 0 --max-tokens 6
check "top-k 1 is greedy" cmp "$work/out" "$work/top1"

# A seed replays; the drawn one is printed.
run run "$hf" -p "Tell me" --seed 7 --max-tokens 12
cp "$work/out" "$work/a"
run run "$hf" -p "Tell me" --seed 7 --max-tokens 12
check "the same seed" cmp "$work/a" "$work/out"
run run "$hf" -p "Tell me" --max-tokens 12
cp "$work/out" "$work/a"
seed=$(sed -n 's/^seed \([0-9]*\)$/\1/p' "$work/err")
run run "$hf" -p "Tell me" --max-tokens 12 --seed "$seed"
check "the printed seed replays" cmp "$work/a" "$work/out"

# The four kinds of prompt agree where they mean the same.
run run "$hf" --ids 39,68,75,75,78 --temperature 0 --max-tokens 5
cp "$work/out" "$work/a"
run run "$hf" --raw Hello --temperature 0 --max-tokens 5
check "--raw is its ids" cmp "$work/a" "$work/out"
run run "$hf" -p Hi --system "Be brief." --temperature 0 --max-tokens 5
cp "$work/out" "$work/a"
printf '[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]' >"$work/messages.json"
run run "$hf" --messages "$work/messages.json" --temperature 0 --max-tokens 5
check "--messages is --system and -p" cmp "$work/a" "$work/out"
"$slm2" run "$hf" --messages - --temperature 0 --max-tokens 5 <"$work/messages.json" >"$work/out" 2>"$work/err"
check "--messages - is stdin" cmp "$work/a" "$work/out"
run run "$hf" -p Hi --no-think --temperature 0 --max-tokens 3 --json
with=$(sed -n 's/.*"prompt_tokens":\([0-9]*\),.*/\1/p' "$work/out")
run run "$hf" -p Hi --temperature 0 --max-tokens 3 --json
without=$(sed -n 's/.*"prompt_tokens":\([0-9]*\),.*/\1/p' "$work/out")
checks=$((checks + 1))
[ "$with" -gt "$without" ] || fail "--no-think: $with prompt tokens, $without without it"
run run "$hf" -p "Hi" --max-tokens 1 --json --threads 3 --backend oracle
out_has "run --json: how" '"backend":"oracle","threads":3,'
for flags in "--threads 8" "--threads 1024" "--chunk 1" "--chunk 1000000" "--backend oracle" "--context 512" "--context 64"; do
  run run "$hf" -p "Hi" --temperature 0 --max-tokens 6 --json $flags
  grep -o '"digest":"[0-9a-f]*"' "$work/out" >"$work/digest-off"
  check "$flags changes no bit" cmp "$work/digest-greedy" "$work/digest-off"
done

# After <think> the text is reasoning, until </think>: a pipe gets none of it.
feed '<think>' tokenize "$hf" --specials
think=$(cat "$work/out")
run run "$hf" --ids "39,$think" --temperature 0 --max-tokens 8 --json
out_has "reasoning" '"channel":"reasoning"}' '{"text":"","reasoning":"'
checks=$((checks + 1))
! grep -q '"reasoning":"","finish"' "$work/out" || fail "the reasoning is empty: $(tail -1 "$work/out")"
run run "$hf" --ids "39,$think" --temperature 0 --max-tokens 8
out_is "reasoning in a pipe" ""

# Stop strings end the answer and are not part of it; a full context ends it too.
run run "$hf" -p "Hi there" --temperature 0 --max-tokens 40 --json
stop=$(sed -n 's/^{"id":[0-9]*,"text":"\([A-Za-z]\)".*/\1/p' "$work/out" | head -1)
checks=$((checks + 1))
if [ -n "$stop" ]; then
  run run "$hf" -p "Hi there" --temperature 0 --max-tokens 40 --json --stop "$stop"
  out_has "--stop" '"finish":"stop"'
  ! grep '"finish"' "$work/out" | sed 's/.*"text":"\([^"]*\)".*/\1/' | grep -qF "$stop" || fail "--stop: the stop text was emitted"
else fail "no letter in the answer to stop at"; fi
run run "$hf" --ids 1,2,3,4,5,6 --temperature 0 --context 8
checks=$((checks + 1))
grep -q '^\[the context of 8 positions is full' "$work/err" || fail "a full context is not said: $(cat "$work/err")"
run run "$hf" --ids 1,2,3,4,5,6 --temperature 0 --context 8 --json
out_has "full context" '"finish":"length"'

# Refusals: by name, with exit 2, before anything is computed.
for case in "--seed|abc" "--seed|" "--seed|-1" "--seed|1.5" "--seed|18446744073709551616" "--seed|0x10" "--temperature|nan" \
  "--temperature|inf" "--temperature|-1" "--temperature|1e999" "--temperature|" "--temperature|1x" "--temperature|1e39" "--top-k|-1" \
  "--top-k|4294967296" "--top-k|1.0" "--top-p|nan" "--top-p|x" "--top-p|1.1" "--top-p|-0.1" "--min-p|-0.1" "--min-p|1.1" "--min-p|nan" "--repeat-penalty|0" \
  "--repeat-penalty|-1" "--repeat-penalty|1e-60" "--max-tokens|0" "--max-tokens|-5" "--threads|0" "--threads|1025" "--threads|two" \
  "--context|0" "--context|513" "--chunk|0" "--backend|gpu" "--profile|f16" "--profile|" "--kv|q8" "--stop|"; do
  bad 2 "${case%%|*}: " run "$hf" -p Hi "${case%%|*}" "${case#*|}"
done
bad 2 "--context: 513 positions are more than the 512" run "$hf" -p Hi --context 513
for ids in "" "," "1," ",1" "1,,2" "a" "1;2" "-1" "1.0" "320" "1,2,4294967295" "1,2,4294967296" " 1" "1, 2"; do
  bad 2 "--ids: " run "$hf" --ids "$ids"
  bad 2 "--ids: " digest "$hf" --ids "$ids"
done
bad 2 "exactly one" run "$hf"
bad 2 "exactly one" run "$hf" -p a --raw b
bad 2 "-p: needs a value" run "$hf" -p
bad 2 "--json: takes no value" run "$hf" -p a --json=yes
bad 2 "--system" run "$hf" --raw a --system b
bad 2 "--no-think" run "$hf" --raw a --no-think
bad 2 "--raw: the text is empty" run "$hf" --raw ""
set --
i=0
while [ $i -lt 17 ]; do
  set -- "$@" --stop x
  i=$((i + 1))
done
bad 2 "--stop" run "$hf" -p Hi "$@"
bad 2 "--stop" run "$hf" -p Hi --stop "$(head -c 257 /dev/zero | tr '\0' a)"
bad 2 "--stop: text 2 is not UTF-8" run "$hf" -p Hi --stop a --stop "$(printf '\377')"
bad 1 "No such file" run "$work/nowhere" -p Hi
bad 1 "No such file" run "$hf" --messages "$work/nowhere"
bad 1 "JSON" run "$hf" --messages "$tiny"
long=$(head -c 600 /dev/zero | tr '\0' 'x' | sed 's/x/x /g')
bad 1 "but the context has 512" run "$hf" --raw "$long"
bad 1 "need 9 positions, but the context has 8" run "$hf" --ids 1,2,3,4,5,6,7,8 --context 8 --json

# A number that is not finite stops the answer; with --json the last object says so [R57].
at=$(($(sed 's/.*"header_bytes":\([0-9]*\),.*/\1/' "$work/hf.json") + 8 + $(sed 's/.*"model.norm.weight"[^}]*"offset":\([0-9]*\),.*/\1/' "$work/hf.json")))
head -c "$at" "$hf" >"$work/overflow.slm2"
i=0
while [ $i -lt 32 ]; do
  printf '\377\377\177\177' >>"$work/overflow.slm2"
  i=$((i + 1))
done
tail -c +$((at + 129)) "$hf" >>"$work/overflow.slm2"
bad 1 "" run "$work/overflow.slm2" --ids 1,2,3
run run "$work/overflow.slm2" --ids 1,2,3 --json
checks=$((checks + 1))
{ [ "$code" -eq 1 ] && grep -q '"finish":"error".*"error":{"code":16,"name":"NUMERICAL","message":"' "$work/out"; } ||
  fail "overflow --json: exit $code: $(cat "$work/out")"
bad 1 "" digest "$work/overflow.slm2" --ids 1,2,3

# A closed pipe is quiet; a full disk is not.
checks=$((checks + 1))
message=$("$slm2" run "$hf" --ids 1,2,3 --seed 1 --json 2>&1 | head -1)
case $message in '{"id":'*'}') ;; *) fail "closed pipe: $message" ;; esac
if [ -e /dev/full ]; then
  checks=$((checks + 1))
  "$slm2" run "$hf" --ids 1,2,3 --seed 1 >/dev/full 2>"$work/err"
  code=$?
  { [ $code -eq 1 ] && grep -q '^slm2: stdout: ' "$work/err"; } || fail "run to a full disk: exit $code: $(cat "$work/err")"
fi

# Ctrl-C: the tokens so far, exit 130. The slowest kernels, so that no machine is done within the second.
if command -v timeout >/dev/null 2>&1; then
  timeout --preserve-status -s INT 1 "$slm2" run "$work/small.slm2" --raw Hello --temperature 0 --max-tokens 4000 --json --backend oracle --speculate off \
    >"$work/out" 2>"$work/err"
  code=$?
  checks=$((checks + 3))
  [ "$code" -eq 130 ] || fail "Ctrl-C: exit $code"
  [ "$(wc -l <"$work/out")" -gt 3 ] || fail "Ctrl-C: no tokens"
  tail -1 "$work/out" | grep -q '"finish":"cancelled"' || fail "Ctrl-C: the last line is $(tail -1 "$work/out" | head -c 200)"
fi

# Speculation: the same events and digest, a repeating answer guessed right; and how it can be asked for.
run run "$hf" --raw "one two one two one two one two" --temperature 0 --max-tokens 60 --json --speculate off
grep -v '"finish"' "$work/out" >"$work/events"
digest=$(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$work/out")
out_has "--speculate off" '"drafted":0,"accepted":0,'
for how in auto 1 3 15; do
  run run "$hf" --raw "one two one two one two one two" --temperature 0 --max-tokens 60 --json --speculate $how
  grep -v '"finish"' "$work/out" >"$work/a"
  check "--speculate $how: the same events" cmp "$work/a" "$work/events"
  out_has "--speculate $how" "\"digest\":\"$digest\"" '"drafted":' '"accepted":'
  checks=$((checks + 1))
  grep -qE '"drafted":[1-9][0-9]*,"accepted":[1-9]' "$work/out" || fail "--speculate $how: nothing was guessed right: $(tail -1 "$work/out")"
  run run "$hf" -p "Tell me" --seed 7 --max-tokens 40 --json --speculate $how
  with=$(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$work/out")
  run run "$hf" -p "Tell me" --seed 7 --max-tokens 40 --json --speculate off
  out_has "--speculate $how, sampled" "\"digest\":\"$with\""
done
for how in 0 16 -1 on "" 3x; do bad 2 "--speculate" run "$hf" -p Hi --speculate "$how"; done
bad 2 "neither auto nor off nor a whole number from 1 to 15" chat "$hf" --speculate 99
