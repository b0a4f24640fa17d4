# synth, and the models the other parts use. Read by run.sh.
tiny=$work/tiny.slm2
run synth "$tiny" --shape tiny --seed 1
out_has "synth" "wrote $tiny" "tied" "identity"
run synth "$work/rows.slm2" --shape tiny --seed 1 --layout rows
out_has "synth rows" "layout    rows"
run synth "$work/again.slm2" --shape=tiny --seed=1
check "synth twice gives the same bytes" cmp "$tiny" "$work/again.slm2"
run synth "$work/again.slm2" --shape tiny --seed 2
out_has "synth replaces an older file" "wrote"
checks=$((checks + 1))
! cmp -s "$tiny" "$work/again.slm2" || fail "another seed gives the same bytes"
run synth "$work/small.slm2" --shape small --seed 18446744073709551615
out_has "synth small" "wrote"

none=$work/none.slm2
bad 2 "needs --shape" synth "$none"
bad 2 "--shape" synth "$none" --shape huge
bad 2 "--shape: needs a value" synth "$none" --shape
bad 2 "--seed" synth "$none" --shape tiny --seed 18446744073709551616
bad 2 "--seed" synth "$none" --shape tiny --seed -1
bad 2 "--seed" synth "$none" --shape tiny --seed ""
bad 2 "--layout" synth "$none" --shape tiny --layout columns
bad 1 "No such file" synth "$none" --shape tiny --tokenizer "$work/nowhere"
bad 1 "No such file" synth "$work/nowhere/x.slm2" --shape tiny
bad 1 "is a folder" synth "$work" --shape tiny
mkdir "$work/tok"
echo '{"model":' >"$work/tok/tokenizer.json"
bad 1 "JSON" synth "$none" --shape tiny --tokenizer "$work/tok"
check "no file after a refusal" test ! -e "$none"
