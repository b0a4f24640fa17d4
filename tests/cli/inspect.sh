# inspect, verify, plan: the header, the whole file, the memory equation; malformed files. Read by run.sh.
size=$(wc -c <"$tiny" | tr -d ' ')
run inspect "$tiny"
out_has inspect "SLM2 version 1" "identity" "model.embed_tokens.weight" "Q8_0_P32" "rope.inv_freq" "model.norm.weight"
run inspect "$work/rows.slm2"
out_has "inspect rows" "layout rows" "Q8_0 "
run inspect "$tiny" --json
out_has "inspect --json" '{"format":"slm2","version":1,"identity":"' "\"file_bytes\":$size," '"chunks":["' '"tied":true'
identity=$(sed 's/.*"identity":"\([0-9a-f]*\)".*/\1/' "$work/out")
checks=$((checks + 1))
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "inspect --json is not one line"
run verify "$tiny"
out_has verify "verified $tiny" "$identity"
run verify "$work/rows.slm2"
out_has "verify rows" "verified"

run plan "$tiny" --context 512
out_has plan "kv" "scratch" "total" "context 512"
run plan "$tiny" --context 512 --json
out_has "plan --json" '"context":512,' '"kv_type":"f32"' '"total":'
full=$(sed 's/.*"kv":\([0-9]*\),.*/\1/' "$work/out")
run plan "$tiny" --context 512 --kv f16 --json
half=$(sed 's/.*"kv":\([0-9]*\),.*/\1/' "$work/out")
checks=$((checks + 1))
[ "$full" -eq $((half * 2)) ] || fail "plan: f16 keys and values are $half, f32 $full"
run plan "$tiny" --pages 24 --json
out_has "plan --pages" '"budget":1572864,' '"largest_context":'
largest=$(sed 's/.*"largest_context":\([0-9]*\).*/\1/' "$work/out")
for context in "$largest" $((largest + 1)); do # the budget is the border
  run plan "$tiny" --context "$context" --json
  total=$(sed 's/.*"total":\([0-9]*\).*/\1/' "$work/out")
  checks=$((checks + 1))
  if [ "$context" -eq "$largest" ]; then [ "$total" -le 1572864 ]; else [ "$total" -gt 1572864 ]; fi ||
    fail "plan --pages: context $context takes $total bytes of 1572864, but $largest is said to be the largest"
done
run plan "$tiny" --pages 1
out_has "plan, nothing fits" "no context fits"
bad 2 "--pages" plan "$tiny" --pages 0
bad 2 "--pages" plan "$tiny" --pages 65537
bad 2 "--context: 99999 positions are more than the 4096" plan "$tiny" --context 99999
bad 2 "--kv" plan "$tiny" --kv f64

# Malformed files: every command that opens a model refuses each of them.
: >"$work/empty.slm2"
head -c 7 "$tiny" >"$work/short.slm2"
head -c 100 "$tiny" >"$work/cut-header.slm2"
head -c $((size - 1)) "$tiny" >"$work/cut-data.slm2"
{ cat "$tiny"; printf x; } >"$work/longer.slm2"
{ printf '\377\377\377\377\377\377\377\377'; tail -c +9 "$tiny"; } >"$work/length.slm2"
LC_ALL=C sed 's/"hidden":64/"hidden":65/' "$tiny" >"$work/hidden.slm2"
echo "not a model" >"$work/text.slm2"
mkdir "$work/folder.slm2"
for kind in empty short cut-header cut-data longer length text folder; do
  for command in inspect verify plan tokenize chat "digest --ids 1" "logits --ids 1 --out $work/none" "run --ids 1"; do
    bad 1 "$work/$kind.slm2" ${command%% *} "$work/$kind.slm2" ${command#"${command%% *}"}
  done
done
for command in inspect plan; do # no length is made up from bytes that are not there
  bad 1 "0 bytes are too few" $command "$work/empty.slm2"
  bad 1 "7 bytes are too few" $command "$work/short.slm2"
done
check "no output after a refusal" test ! -e "$work/none"
bad 1 "No such file" verify "$work/nowhere"
[ ! -e /dev/null ] || bad 1 "not a regular file" verify /dev/null

# One byte changed anywhere is seen by verify.
flip() { # flip OFFSET OUT : adds 1 to the byte there
  byte=$(od -An -tu1 -j "$1" -N 1 "$tiny" | tr -d ' ')
  head -c "$1" "$tiny" >"$2"
  printf "\\$(printf '%03o' $(((byte + 1) % 256)))" >>"$2"
  tail -c +$(($1 + 2)) "$tiny" >>"$2"
}
for at in 0 8 20 300 $((size / 2)) $((size - 1)); do
  flip "$at" "$work/flipped.slm2"
  bad 1 "" verify "$work/flipped.slm2"
done

# safetensors, by the manifest's verdicts.
if [ -d tests/data/files/parser ]; then
  for f in tests/data/files/parser/*.safetensors; do
    id=$(basename "$f" .safetensors)
    expect=$(grep -A6 "\"id\": \"$id\"" tests/data/files/parser_manifest.json | sed -n 's/.*"expect": "\([^"]*\)".*/\1/p')
    run inspect "$f"
    case $expect in
      accept*) out_has "$f" "tensors" ;;
      reject*) refused "$f" 1 "$f" ;;
    esac
  done
fi
