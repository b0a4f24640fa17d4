# GGUF in and out, Hugging Face folders out. Read by run.sh.
gguf=tests/data/gguf/tied-q8_0.gguf
out=$work/g.slm2
run convert "$gguf" "$out"
out_has "convert GGUF" "wrote $out" "chat format qwen3" "layout    panels"
check "GGUF and the folder of the same weights give the same file" cmp "$hf" "$out"
run convert tests/data/gguf/tied-bf16.gguf "$out"
check "BF16 too" cmp "$hf" "$out"
run convert "$gguf" "$out" --layout rows
out_has "convert GGUF --layout rows" "layout    rows"
run verify "$out"
out_has "verify a converted GGUF" "verified"
cp "$gguf" "$work/renamed"
run convert "$work/renamed" "$out"
out_has "GGUF is known by its content" "wrote"
run inspect "$gguf"
out_has "inspect GGUF" "GGUF version 3" '"qwen3.block_count"' 'string x 320 ["!", ' '"blk.1.ffn_down.weight"' "Q8_0     [64,32]"
run inspect "$gguf" --json
out_has "inspect GGUF --json" '"format":"gguf"' '{"key":"qwen3.rope.freq_base","type":"f32","value":1000000.0}' \
  '{"name":"token_embd.weight","type":"Q8_0","dims":[32,320],'
if command -v python3 >/dev/null 2>&1; then
  check "inspect GGUF --json is JSON" python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"
fi

# There and back.
for model in "$hf" "$tiny"; do
  run convert "$model" "$work/back.gguf"
  out_has "convert to GGUF" "wrote $work/back.gguf: GGUF"
  run convert "$work/back.gguf" "$work/back.slm2"
  check "SLM2 to GGUF to SLM2 gives the same bytes" cmp "$model" "$work/back.slm2"
done
rm -rf "$work/folder"
run convert "$hf" "$work/folder/"
out_has "convert to a folder" "wrote $work/folder/: a Hugging Face folder" "chat template"
check "the files of a folder" test "$(ls "$work/folder" | tr '\n' ' ')" = \
  "config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json "
run convert "$work/folder" "$work/back.slm2" --chat-format qwen3
check "SLM2 to a folder to SLM2 gives the same bytes" cmp "$hf" "$work/back.slm2"
run convert "$tiny" "$work/folder2"
out_has "blocks that will be rounded again are counted" "have a scale of their own"
run inspect "$work/folder2/model.safetensors"
out_has "inspect an exported folder" "model.layers.1.mlp.down_proj.weight" "F32"

# Refusals leave nothing.
none=$work/none.gguf
bad 2 "is the source itself" convert "$hf" "$hf"
bad 2 "must end with .slm2" convert "$gguf" "$work/x"
bad 2 "must end with .slm2" convert "$gguf" "$none"
bad 2 "belong to a .slm2 output" convert "$hf" "$none" --layout rows
bad 2 "belong to a .slm2 output" convert "$hf" "$work/none" --chat-format qwen3
bad 1 "exists already" convert "$hf" "$work/folder"
bad 1 "No such file" convert "$work/nowhere.slm2" "$none"
bad 1 "No such file" convert "$work/nowhere.gguf" "$work/no.slm2"
bad 1 "No such file" convert "$hf" "$work/nowhere/folder"
printf 'GGUF' >"$work/short.gguf"
bad 1 "at least 24" convert "$work/short.gguf" "$work/no.slm2"
bad 1 "at least 24" inspect "$work/short.gguf"
head -c 5000 "$gguf" >"$work/short.gguf"
bad 1 "truncated" convert "$work/short.gguf" "$work/no.slm2"
head -c 50000 "$gguf" >"$work/short.gguf"
bad 1 "reaches beyond the file" convert "$work/short.gguf" "$work/no.slm2"
bad 1 "reaches beyond the file" inspect "$work/short.gguf" --json
cp "$gguf" "$work/other.gguf"
printf 'qwen2' | dd of="$work/other.gguf" bs=1 seek=64 conv=notrunc 2>/dev/null # the value of general.architecture
bad 1 "general.architecture is qwen2; only qwen3 is supported" convert "$work/other.gguf" "$work/no.slm2"
run inspect "$work/other.gguf"
out_has "inspect shows other architectures" '"qwen2"'
cp "$hf" "$work/damaged.slm2"
printf 'X' | dd of="$work/damaged.slm2" bs=1 seek=40000 conv=notrunc 2>/dev/null
bad 1 "" convert "$work/damaged.slm2" "$none"
bad 1 "" convert "$work/damaged.slm2" "$work/none"
check "no file and no folder after a refusal" test ! -e "$none" -a ! -e "$work/none" -a ! -e "$work/no.slm2"
if command -v prlimit >/dev/null 2>&1; then # a disk that fills up, as a file size limit
  prlimit --fsize=50000 "$slm2" convert "$hf" "$work/none" >"$work/out" 2>"$work/err"
  code=$?
  refused "a full disk, folder" 1 "model.safetensors"
  prlimit --fsize=20000 "$slm2" convert "$hf" "$none" >"$work/out" 2>"$work/err"
  code=$?
  refused "a full disk, GGUF" 1 "$none"
  check "nothing stays" test ! -e "$none" -a ! -e "$work/none"
fi
