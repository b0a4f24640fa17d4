# convert: the same bytes each time, every refusal without an output, Ctrl-C. Read by run.sh.
src=$work/src
copy() { # a fresh copy of the single-file model
  rm -rf "$src"
  cp -r tests/data/hf-tiny/tied "$src"
}
out=$work/out.slm2
run convert tests/data/hf-tiny/tied "$out"
check "convert twice gives the same bytes" cmp "$hf" "$out"
run convert tests/data/hf-tiny/tied "$out" --layout rows
out_has "convert --layout rows replaces" "layout    rows"
run verify "$out"
out_has "verify rows" "verified"
run digest "$out" --ids 1,2,3
cp "$work/out" "$work/a"
run digest "$hf" --ids 1,2,3
check "both layouts, one digest" cmp "$work/a" "$work/out"
run convert tests/data/hf-tiny/untied "$work/untied.slm2"
out_has "convert shards" "untied" "wrote"
run verify "$work/untied.slm2"
out_has "verify shards" "verified"

none=$work/none.slm2
copy
bad 2 "must end with .slm2" convert "$src" "$src/config.json"
bad 2 "must end with .slm2" convert "$src" "$work/x"
bad 2 "must end with .slm2" convert "$src" .slm2
bad 2 "--layout" convert "$src" "$none" --layout x
bad 2 "--chat-format" convert "$src" "$none" --chat-format chatml
bad 2 "needs an OUT" convert "$src"
bad 1 "is not a folder" convert "$work/nowhere" "$none"
bad 1 "is not a folder" convert "$hf" "$none"
bad 1 "No such file" convert "$src" "$work/nowhere/x.slm2"
for file in config.json tokenizer.json model.safetensors; do
  copy
  rm "$src/$file"
  bad 1 "$file" convert "$src" "$none"
  copy
  printf '{' >"$src/$file"
  bad 1 "" convert "$src" "$none"
done
copy
head -c 1000 tests/data/hf-tiny/tied/model.safetensors >"$src/model.safetensors"
bad 1 "model.safetensors" convert "$src" "$none"
copy
sed 's/"hidden_size": 32/"hidden_size": 33/' tests/data/hf-tiny/tied/config.json >"$src/config.json"
bad 1 "33" convert "$src" "$none"
copy
sed 's/"model_type": "qwen3"/"model_type": "llama"/; s/Qwen3ForCausalLM/LlamaForCausalLM/' tests/data/hf-tiny/tied/config.json >"$src/config.json"
bad 1 "" convert "$src" "$none"

# An index names files: none may lead out of the folder.
rm -rf "$src"
cp -r tests/data/hf-tiny/untied "$src"
mkdir "$work/outside"
mv "$src/model-00002-of-00004.safetensors" "$work/outside/"
bad 1 "model-00002-of-00004.safetensors" convert "$src" "$none"
ln -s "../outside/model-00002-of-00004.safetensors" "$src/model-00002-of-00004.safetensors"
bad 1 "leads out of the folder" convert "$src" "$none"
sed 's|model-00002-of-00004|../outside/model-00002-of-00004|' tests/data/hf-tiny/untied/model.safetensors.index.json >"$src/model.safetensors.index.json"
bad 1 "" convert "$src" "$none"

# An unknown chat template: a warning; chat refuses, --raw works, --chat-format forces.
copy
echo '{{ messages }}' >"$src/chat_template.jinja"
run convert "$src" "$work/unknown.slm2"
out_has "unknown template" "chat format none"
checks=$((checks + 1))
grep -q '^slm2: warning: the chat template (SHA-256 [0-9a-f]*) is unknown' "$work/err" || fail "no warning: $(cat "$work/err")"
checks=$((checks + 1))
"$slm2" convert tests/data/conformance/checkpoints/gqa1-d64 "$work/bare.slm2" 2>&1 >/dev/null | grep -q '^slm2: warning: the source has no chat template' ||
  fail "no warning about a missing chat template"
bad 1 "has no chat format" chat "$work/unknown.slm2"
bad 1 "" run "$work/unknown.slm2" -p Hi
run run "$work/unknown.slm2" --raw Hi --temperature 0 --max-tokens 3
checks=$((checks + 1))
[ "$code" -eq 0 ] || fail "--raw with an unknown template: exit $code"
run convert "$src" "$work/unknown.slm2" --chat-format qwen3
out_has "--chat-format qwen3" "chat format qwen3"

check "no file after a refusal" test ! -e "$none"
if command -v timeout >/dev/null 2>&1; then
  for signal in INT TERM HUP; do
    timeout --preserve-status -s $signal 0.3 "$slm2" synth "$none" --shape qwen3-8b >"$work/out" 2>"$work/err"
    code=$?
    checks=$((checks + 2))
    case $signal-$code in INT-130 | TERM-143 | HUP-129) ;; *) fail "synth under SIG$signal: exit $code" ;; esac
    [ ! -e "$none" ] && [ -z "$(find "$work" -name '.slm2-*')" ] || fail "SIG$signal left a file"
  done
fi
if command -v prlimit >/dev/null 2>&1; then # a disk that fills up, as a file size limit
  cp "$tiny" "$none"
  prlimit --fsize=50000 "$slm2" synth "$none" --shape tiny --seed 2 >"$work/out" 2>"$work/err"
  code=$?
  refused "a full disk" 1 "write: $none"
  check "the older file is whole" cmp "$tiny" "$none"
fi
