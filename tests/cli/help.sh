# Help, version, usage. Read by run.sh.
commands="run chat convert inspect verify tokenize detokenize render digest logits trace plan check bench synth serve"

run --version
out_is version "slm2 0.1.0"
run --help
for c in $commands; do out_has "help lists $c" "  slm2 $c "; done
cp "$work/out" "$work/help"
run help
check "help is --help" cmp "$work/out" "$work/help"
for c in $commands; do
  run "$c" --help
  out_has "$c --help" "slm2 $c" "Example"
  cp "$work/out" "$work/help"
  run help "$c"
  check "help $c is $c --help" cmp "$work/out" "$work/help"
  bad 2 "--bogus" "$c" --bogus
  bad 2 "-x" "$c" -x
done
for c in inspect verify tokenize detokenize render digest logits trace plan check bench run chat; do
  bad 2 "needs a" "$c"
  bad 2 "is empty" "$c" ""
  bad 2 'unexpected argument "b"' "$c" a b
done
bad 2 "slm2 --help"
bad 2 "bogus" bogus
bad 2 "bogus" help bogus
bad 2 "one command" help run chat
printf 'a\nb' >"$work/name"
bad 2 "a?b" "$(cat "$work/name")" # a line break in an argument does not break the line
if [ -e /dev/full ]; then
  checks=$((checks + 1))
  "$slm2" --help >/dev/full 2>"$work/err"
  code=$?
  { [ $code -eq 1 ] && grep -q '^slm2: stdout: ' "$work/err"; } || fail "full disk: exit $code"
fi
checks=$((checks + 1))
message=$("$slm2" help 2>&1 | true)
[ -z "$message" ] || fail "closed pipe: $message"

# Installing into a folder whose name has a blank.
checks=$((checks + 2))
make -s BUILD="$build" install DESTDIR="$work/in stall" PREFIX=/usr >"$work/out" 2>&1 || fail "make install: $(tail -2 "$work/out")"
[ -x "$work/in stall/usr/bin/slm2" ] && [ -f "$work/in stall/usr/include/slm2/session.h" ] || fail "make install: files are missing"
