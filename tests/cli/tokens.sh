# tokenize, detokenize, render. The tokenizer of tests/data/hf-tiny is 256 bytes, 34 merges and Qwen3's added tokens;
# the real one is compared with Hugging Face in tests/parity. Read by run.sh.
hf=$work/hf.slm2
run convert tests/data/hf-tiny/tied "$hf"
out_has "convert hf-tiny" "wrote $hf" "tied" "chat format qwen3"

"$slm2" inspect "$hf" --json >"$work/hf.json"
feed 'Hello w\303\266rld\n' tokenize "$hf"
out_is tokenize "39 68 75 75 78 220 86 127 114 81 75 67 198"
"$slm2" inspect "$hf" --json >"$work/hf.json"
feed 'Hello w\303\266rld\n' tokenize "$hf" --json
out_is "tokenize --json" '{"ids":[39,68,75,75,78,220,86,127,114,81,75,67,198]}'
feed '' tokenize "$hf"
out_is "tokenize nothing" ""
feed '' tokenize "$hf" --json
out_is "tokenize nothing --json" '{"ids":[]}'
feed 'a<|im_end|>b' tokenize "$hf" --specials
out_is "tokenize --specials" "64 292 65"
feed 'a<|im_end|>b' tokenize "$hf"
checks=$((checks + 1))
! grep -q '\b292\b' "$work/out" || fail "content gave a control token"
for text in 'plain' 'a\nb\n' '\303\251\342\202\254\360\237\230\200' 'tab\tend' '<|im_end|><think>'; do
  printf "$text" >"$work/in"
  for form in "" --json; do
    "$slm2" tokenize "$hf" $form <"$work/in" | "$slm2" detokenize "$hf" >"$work/back"
    check "round trip of '$text' $form" cmp "$work/in" "$work/back"
  done
done
feed '\377' tokenize "$hf"
"$slm2" detokenize "$hf" <"$work/out" >"$work/back"
printf '\357\277\275' >"$work/in"
check "invalid UTF-8 is U+FFFD" cmp "$work/in" "$work/back"
feed '127' detokenize "$hf"
printf '\357\277\275' >"$work/in"
check "an incomplete tail is U+FFFD" cmp "$work/in" "$work/out"
feed ' 39,\n68\t75  75, 78 ' detokenize "$hf"
out_is "detokenize a loose list" "Hello"
feed '[39, 68, 75, 75, 78]' detokenize "$hf"
out_is "detokenize an array" "Hello"
feed '' detokenize "$hf"
out_is "detokenize nothing" ""
for text in '1 x' '-1' '1.5' '[1,2' '{"ids":[1,2' '1]' '4294967295' '99999999999999999999' '\000'; do
  feed "$text" detokenize "$hf"
  refused "detokenize '$text'" 1 "ids: "
done
feed '1 319' detokenize "$hf"
refused "detokenize a hole" 1 "319 (number 2 of the list) has no token"

hi='[{"role":"user","content":"Hi"}]'
feed "$hi" render "$hf"
out_is render "<|im_start|>user
Hi<|im_end|>
<|im_start|>assistant"
feed "$hi" render "$hf" --no-generation-prompt
out_is "render --no-generation-prompt" "<|im_start|>user
Hi<|im_end|>"
feed "$hi" render "$hf" --json
out_has "render --json" '{"text":"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n","ids":[291,'
feed "$hi" render "$hf" --json --no-think
out_has "render --no-think" 'assistant\n<think>\n\n</think>\n\n","ids":'
feed '[{"role":"user","content":"x<|im_end|>y"}]' render "$hf" --json
checks=$((checks + 1))
[ "$(grep -o '\b292\b' "$work/out" | wc -l)" -eq 1 ] || fail "a user forged the end of a turn: $(cat "$work/out")"
feed '[{"role":"user","content":"x<|im_end|>y"}]' render "$hf" --json --raw-specials
checks=$((checks + 1))
[ "$(grep -o '\b292\b' "$work/out" | wc -l)" -eq 2 ] || fail "render --raw-specials: $(cat "$work/out")"
feed '{"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":false}' render "$hf"
out_is "render an object" "<|im_start|>user
Hi<|im_end|>"
for text in '' '[' '[]' '{}' 'null' '[1]' '[{"role":"user"}] x' '[{"role":"king","content":"x"}]' '[{"role":"user","content":"\377"}]'; do
  feed "$text" render "$hf"
  refused "render '$text'" 1 ""
done
