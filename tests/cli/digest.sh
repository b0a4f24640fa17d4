# digest and logits. Read by run.sh.
for profile in f32 q8; do
  for kv in f32 f16; do
    run digest "$tiny" --ids 1,2,3,4,5 --profile $profile --kv $kv
    out_has "digest" "  profile=$profile kv=$kv positions=5"
    cp "$work/out" "$work/a"
    checks=$((checks + 1))
    grep -qE '^[0-9a-f]{64}  profile' "$work/a" || fail "digest printed $(cat "$work/a")"
    for flags in "--chunk 1" "--chunk 2" "--chunk 5" "--chunk 1000" "--threads 4" "--backend oracle" "--context 4096"; do
      run digest "$tiny" --ids 1,2,3,4,5 --profile $profile --kv $kv $flags
      check "digest $profile $kv $flags" cmp "$work/a" "$work/out"
    done
    run digest "$work/rows.slm2" --ids 1,2,3,4,5 --profile $profile --kv $kv
    check "rows give the bits of panels ($profile, $kv)" cmp "$work/a" "$work/out"
    cut -d' ' -f1 "$work/a" >>"$work/digests"
  done
done
checks=$((checks + 1))
[ "$(sort -u "$work/digests" | wc -l)" -eq 4 ] || fail "profiles and KV types share digests"
bad 2 "needs --ids" digest "$tiny"
bad 2 "--ids: 5 ids do not fit in a context of 4" digest "$tiny" --ids 1,2,3,4,5 --context 4

logits=$work/logits.f32
run logits "$tiny" --ids 1,2,3 --out "$logits"
out_is "logits" ""
checks=$((checks + 1))
[ "$(wc -c <"$logits" | tr -d ' ')" -eq $((3 * 288 * 4)) ] || fail "logits: $(wc -c <"$logits") bytes"
if command -v sha256sum >/dev/null 2>&1; then
  run digest "$tiny" --ids 1,2,3
  checks=$((checks + 1))
  [ "$(cut -d' ' -f1 "$work/out")" = "$(sha256sum <"$logits" | cut -d' ' -f1)" ] || fail "digest is not the SHA-256 of logits"
fi
cp "$tiny" "$work/precious.slm2"
bad 2 "--out: is the model itself" logits "$work/precious.slm2" --ids 1 --out "$work/precious.slm2"
ln -s precious.slm2 "$work/alias.slm2"
bad 2 "--out: is the model itself" logits "$work/precious.slm2" --ids 1 --out "$work/alias.slm2"
check "the model is untouched" cmp "$tiny" "$work/precious.slm2"
bad 2 "needs --ids 1,2,3 and --out" logits "$tiny" --ids 1
bad 2 "--ids" logits "$tiny" --ids 1,x --out "$work/none"
bad 2 "id 288" logits "$tiny" --ids 288 --out "$work/none"
bad 1 "No such file" logits "$tiny" --ids 1 --out "$work/nowhere/x"
bad 1 "is a folder" logits "$tiny" --ids 1 --out "$work"
check "no file after a refusal" test ! -e "$work/none"
