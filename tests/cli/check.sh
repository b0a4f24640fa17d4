# check: every way of computing against the oracle. Read by run.sh.
run check "$tiny"
backends=$(grep -c '^f32      f32 ' "$work/out")
out_has check 'profile  kv   backend       runs  equal' 'f32      f32  oracle          48     48' \
  'q8       f16  oracle          48     48' "ok: $((backends * 192)) runs of 130 ids, 0 of them differ from the oracle"
checks=$((checks + 2))
[ "$(grep -c '^\(f32\|q8\) .* 48     48$' "$work/out")" -eq $((backends * 4)) ] || fail "check: not every line is 48 of 48"
[ ! -s "$work/err" ] || fail "check wrote on stderr: $(cat "$work/err")"

run check "$tiny" --quick
out_has "check --quick" 'runs of 40 ids, 0 of them differ from the oracle'
checks=$((checks + 1))
[ "$(sed -n 's/^ok: \([0-9]*\) runs.*/\1/p' "$work/out")" -lt 60 ] || fail "check --quick is no selection"

bad 1 "no-such-file" check "$work/no-such-file"
bad 1 "not" check tests/cli/check.sh
bad 2 "--quick" check "$tiny" --quick=yes
bad 2 "--threads" check "$tiny" --threads 2
