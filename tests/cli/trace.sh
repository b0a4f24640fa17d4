# trace and trace --diff. Read by run.sh.
trace=$work/trace
for profile in f32 q8; do
  for kv in f32 f16; do
    run trace "$tiny" --ids 1,2,3,4,5 --profile $profile --kv $kv
    out_has "trace $profile $kv" "slm2 trace 1: positions=5 layers=2 profile=$profile kv=$kv model=" "0 embed 64 " \
      "4 layers.1.swiglu 96 " "4 logits 288 "
    mv "$work/out" "$trace-$profile-$kv"
    checks=$((checks + 1))
    [ "$(wc -l <"$trace-$profile-$kv")" -eq $((1 + 5 * 33)) ] || fail "trace: $(wc -l <"$trace-$profile-$kv") lines"
    run trace "$tiny" --ids 1,2,3,4,5 --profile $profile --kv $kv --out "$trace-$profile-$kv.safetensors"
    out_is "trace --out" ""
    for flags in "--chunk 1" "--chunk 2" "--chunk 1000" "--threads 4" "--backend oracle" "--context 4096"; do
      run trace "$tiny" --ids 1,2,3,4,5 --profile $profile --kv $kv $flags
      check "trace $profile $kv $flags" cmp "$trace-$profile-$kv" "$work/out"
      run trace "$tiny" --ids 1,2,3,4,5 --profile $profile --kv $kv --out "$trace.safetensors" $flags
      check "trace --out $profile $kv $flags" cmp "$trace-$profile-$kv.safetensors" "$trace.safetensors"
    done
  done
done

# The file of values is one that any safetensors reader knows; what it holds is what the text hashes, and the logits.
run inspect "$trace-q8-f32.safetensors"
out_has "inspect a trace" "33 tensors" "layers.1.down_proj" "F32      [5,288]"
run logits "$tiny" --ids 1,2,3,4,5 --out "$work/trace.f32"
tail -c $((5 * 288 * 4)) "$trace-q8-f32.safetensors" >"$work/trace.tail"
check "the last tensor is the logits" cmp "$work/trace.tail" "$work/trace.f32"
if command -v sha256sum >/dev/null 2>&1; then
  checks=$((checks + 1))
  last=$(tail -c $((288 * 4)) "$trace-q8-f32.safetensors" | sha256sum | cut -d' ' -f1)
  [ "$(tail -n 1 "$trace-q8-f32" | cut -d' ' -f5)" = "$last" ] || fail "the text does not hash the values"
fi
checks=$((checks + 1))
[ "$(sed '1d;s/ .*//' "$trace-q8-f32" | uniq -c | tr -s ' ' | tr '\n' ';')" = " 33 0; 33 1; 33 2; 33 3; 33 4;" ] ||
  fail "the text is not sorted by position"

# --diff names the first difference.
differs() { # differs LABEL TEXT A B [TEXT2]: exit code 1, said on stdout
  run trace --diff "$3" "$4"
  checks=$((checks + 1))
  { [ "$code" -eq 1 ] && [ ! -s "$work/err" ] && grep -qF -- "$2" "$work/out"; } ||
    fail "$1: exit $code, printed '$(head -c 300 "$work/out")', expected '$2': $(cat "$work/err")"
}
for form in "" .safetensors; do
  run trace --diff "$trace-q8-f32$form" "$trace-q8-f32$form"
  out_is "the same trace$form" "identical: 5 positions, 33 stages each"
  differs "f16 keys and values$form" "first difference: position 0, layer 0, stage attention" "$trace-q8-f32$form" "$trace-q8-f16$form"
  differs "the other profile$form" "first difference: position 0, layer 0, stage q_proj" "$trace-f32-f32$form" "$trace-q8-f32$form"
done
differs "values" ", index 0: " "$trace-f32-f32.safetensors" "$trace-q8-f32.safetensors"
differs "hashes" ": SHA-256 $(sed -n 4p "$trace-f32-f32" | cut -d' ' -f5) and $(sed -n 4p "$trace-q8-f32" | cut -d' ' -f5)" \
  "$trace-f32-f32" "$trace-q8-f32"
run trace "$work/rows.slm2" --ids 1,2,3,4,5 --out "$trace.safetensors"
run trace --diff "$trace-q8-f32.safetensors" "$trace.safetensors"
out_is "rows and panels" "identical: 5 positions, 33 stages each"
run trace "$tiny" --ids 1,2,3,9,5
mv "$work/out" "$trace"
differs "another token" "first difference: position 3, stage embed" "$trace-q8-f32" "$trace"
bytes=$(wc -c <"$trace-q8-f32.safetensors" | tr -d ' ')
cp "$trace-q8-f32.safetensors" "$trace.safetensors"
printf '\377\177' | dd of="$trace.safetensors" bs=1 seek=$((bytes - 2)) conv=notrunc 2>/dev/null
differs "the last value" "first difference: position 4, stage logits, index 287: " "$trace-q8-f32.safetensors" "$trace.safetensors"
differs "how many" "1 of the 288 values there differ" "$trace-q8-f32.safetensors" "$trace.safetensors"
differs "not a number" " and not finite (0x7fff" "$trace-q8-f32.safetensors" "$trace.safetensors"
printf '\001' | dd of="$trace.safetensors" bs=1 seek=$((bytes - 4 * 288 * 2)) conv=notrunc 2>/dev/null
differs "a value before it" "first difference: position 3, stage logits, index 0: " "$trace-q8-f32.safetensors" "$trace.safetensors"
zeros=0000000000000000000000000000000000000000000000000000000000000000
sed "s/^\\(2 layers.1.k_rope .*\\) [0-9a-f]*\$/\\1 $zeros/" "$trace-q8-f32" >"$trace"
differs "one line of text" "first difference: position 2, layer 1, stage k_rope: SHA-256 " "$trace-q8-f32" "$trace"

# Broken traces are refused, whichever of the two they are.
broken() { # broken TEXT FILE GOOD
  bad 1 "$1" trace --diff "$2" "$3"
  bad 1 "$1" trace --diff "$3" "$2"
}
damage() { # damage TEXT SED-SCRIPT: a text trace, edited
  LC_ALL=C sed "$2" "$trace-q8-f32" >"$trace"
  broken "$1" "$trace" "$trace-q8-f32"
}
damage "cannot hold 165 lines" '80,$d'
damage 'line 166 should be "4 logits VALUES MAX SHA256"' '$d'
damage 'line 167 should be ""' '$p'
damage 'line 3 should be "0 layers.0.attention_norm VALUES MAX SHA256"' '3d'
damage 'line 3 should be "0 layers.0.attention_norm' '2p'
damage 'line 36 should be "1 layers.0.attention_norm' '36s/ 64 / 65 /'
damage 'line 2 should be' '2s/ 64 / 0 /'
damage 'line 2 should be' '2s/ 64 / x /'
damage 'line 2 should be' '2s/^0/1/'
damage 'line 2 should be' '2s/embed/embes/'
damage 'line 2 should be' '2s/.$//'
damage 'line 2 should be' '2s/$/0/'
damage 'line 2 should be' '2s/.$/g/'
damage 'line 2 should be' '2s/.$/A/'
damage 'line 2 should be' '2s/ \([0-9a-f]*\)$/\1/'
damage 'line 1 should be "slm2 trace 1: positions=N layers=N ..."' '1s/=5/=0/'
damage 'line 1 should be' '1s/=5/=18446744073709551616/'
damage 'line 1 should be' '1s/positions/position/'
damage 'line 1 should be' '1s/layers=2/layers=257/'
damage 'line 1 should be' '1s/ layers=2//'
damage "cannot hold" '1s/=5/=16777216/'
damage "cannot hold" '1s/layers=2/layers=256/'
printf 'slm2 trace 1: ' >"$trace"
broken 'line 1 should be' "$trace" "$trace-q8-f32"
damage_values() { # damage_values TEXT SED-SCRIPT: a file of values, its header edited
  LC_ALL=C sed "$2" "$trace-q8-f32.safetensors" >"$trace.safetensors"
  broken "$1" "$trace.safetensors" "$trace-q8-f32.safetensors"
}
damage_values "has no embed" 's/"embed"/"embes"/'
damage_values "has no layers.1.down_proj" 's/layers.1.down_proj/layers.2.down_proj/'
damage_values "up_proj is not F32 [positions, values]" 's/up_proj":{"dtype":"F32"/up_proj":{"dtype":"I32"/'
damage_values "embed is not F32 [positions, values]" 's/\[5,64\]/[ 320]/'
damage_values "attention_norm is not F32 [positions, values]" 's/m":{"dtype":"F32","shape":\[5,64\]/m":{"dtype":"F32","shape":[64,5]/'
head -c $((bytes - 1)) "$trace-q8-f32.safetensors" >"$trace.safetensors"
broken "safetensors" "$trace.safetensors" "$trace-q8-f32.safetensors"
broken "no model has 24 stages" tests/data/hf-tiny/tied/model.safetensors "$trace-q8-f32.safetensors"
: >"$trace"
broken "$trace" "$trace" "$trace-q8-f32"
broken "No such file" "$work/none" "$trace-q8-f32"
broken "is a folder" "$work" "$trace-q8-f32"
broken "one is a trace in text" "$trace-q8-f32" "$trace-q8-f32.safetensors"
run trace "$tiny" --ids 1,2,3,4
mv "$work/out" "$trace"
broken "positions and 2 layers cannot be compared with" "$trace" "$trace-q8-f32"
sed 's/ logits 288 / logits 320 /' "$trace-q8-f32" >"$trace"
broken "logits has" "$trace" "$trace-q8-f32"

bad 2 "needs --ids" trace "$tiny"
bad 2 "needs two traces" trace --diff
bad 2 "needs a second trace" trace --diff "$trace"
bad 2 'unexpected argument "c"' trace --diff a b c
bad 2 "unknown option \"--ids\"" trace --diff --ids 1 "$trace" "$trace"
bad 2 "--diff: takes no value" trace --diff=a b
bad 2 "--ids: 5 ids do not fit in a context of 4" trace "$tiny" --ids 1,2,3,4,5 --context 4
bad 2 "id 288" trace "$tiny" --ids 288 --out "$work/none"
bad 2 "--out: is the model itself" trace "$work/precious.slm2" --ids 1 --out "$work/alias.slm2"
bad 1 "No such file" trace "$tiny" --ids 1 --out "$work/nowhere/x"
checks=$((checks + 1))
message=$( (trap '' XFSZ; ulimit -f 8; "$slm2" trace "$tiny" --ids 1,2,3,4,5 --out "$work/none") 2>&1)
code=$?
case $code$message in "1slm2: "*"File too large"*) ;; *) fail "full disk: exit $code: $message" ;; esac
check "no file after a refusal" test ! -e "$work/none"
