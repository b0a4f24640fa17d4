#!/bin/sh
# The command line from outside: every subcommand with good and bad input. Needs sh and the built binary.
# A refusal must give its documented exit code, exactly one line on stderr that names what is wrong, nothing on stdout,
# and no file. Usage: tests/cli/run.sh BUILD
set -u
build=$1
slm2=$build/slm2
work=$build/cli-test
rm -rf "$work"
mkdir -p "$work"
checks=0
failures=0
code=0

fail() {
  failures=$((failures + 1))
  echo "FAIL cli: $1"
}
check() { # check LABEL COMMAND... : the command must succeed
  label=$1
  shift
  checks=$((checks + 1))
  "$@" >/dev/null 2>&1 || fail "$label"
}
# run [INPUT-FILE <] ARGS: exit code in $code, streams in $work/out and $work/err
run() {
  "$slm2" "$@" >"$work/out" 2>"$work/err" </dev/null
  code=$?
}
feed() { # feed TEXT ARGS... : TEXT (a printf format) on stdin
  text=$1
  shift
  printf -- "$text" | "$slm2" "$@" >"$work/out" 2>"$work/err"
  code=$?
}
out_is() { # out_is LABEL TEXT
  checks=$((checks + 1))
  [ "$code" -eq 0 ] && [ "$(cat "$work/out")" = "$2" ] || fail "$1: exit $code, printed '$(head -c 200 "$work/out")', expected '$2'"
}
out_has() { # out_has LABEL TEXT...
  label=$1
  shift
  [ "$code" -eq 0 ] || fail "$label: exit $code: $(head -c 300 "$work/err")"
  for text; do
    checks=$((checks + 1))
    grep -qF -- "$text" "$work/out" || fail "$label: '$text' is not in the output"
  done
}
refused() { # refused LABEL CODE TEXT... : of the last run
  label=$1
  expected=$2
  shift 2
  checks=$((checks + 1))
  [ "$code" -eq "$expected" ] || fail "$label: exit $code, expected $expected: $(head -c 300 "$work/err")"
  [ ! -s "$work/out" ] || fail "$label: something on stdout"
  [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$label: $(wc -l <"$work/err") lines on stderr"
  grep -q '^slm2: .*: ' "$work/err" || fail "$label: stderr is '$(cat "$work/err")'"
  for text; do
    grep -qF -- "$text" "$work/err" || fail "$label: '$text' is not in '$(cat "$work/err")'"
  done
}
bad() { # bad CODE TEXT ARGS... : runs and expects a refusal that says TEXT
  expected=$1
  text=$2
  shift 2
  run "$@"
  refused "$*" "$expected" "$text"
}

for part in help synth inspect tokens golden run_cmd chat snapshot digest trace convert gguf check bench serve; do
  . "tests/cli/$part.sh"
done

checks=$((checks + 1))
leftovers=$(find "$work" -name '.slm2-*' | head -3)
[ -z "$leftovers" ] || fail "temporary files are left: $leftovers"
if [ "$failures" -ne 0 ]; then
  echo "FAIL cli: $failures of $checks checks"
  exit 1
fi
echo "ok cli: $checks checks"
