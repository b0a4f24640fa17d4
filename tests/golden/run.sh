#!/bin/sh
# Whole-model digests [D23]: makes every line of tests/golden/digests.txt anew and compares. A digest is made on several
# paths that must agree (chunk sizes, weight forms, every backend this processor can use); one that differs is named.
# Usage: tests/golden/run.sh BUILD [--short] [--print]
#   --short  only the first part of the file: at most 16 positions, for emulated builds
#   --print  print the lines instead of comparing them (to change the file, together with the rule)
# RUN is put before the command (an emulator, wine). DEMO and DIGESTS name other files, to try a model before it is published.
set -u
build=$1; shift
short=no print=no
for option; do
  case $option in --short) short=yes ;; --print) print=yes ;; *) echo "golden: unknown option $option" >&2; exit 2 ;; esac
done
run=${RUN:-}
demo=${DEMO:-models/demo.slm2}
digests=${DIGESTS:-tests/golden/digests.txt}
slm2=$build/slm2
[ -e "$slm2" ] || slm2=$build/slm2.exe
work=$build/golden
mkdir -p "$work"
rm -f "$work/failed"

# ids N: the first N of a sequence inside every vocabulary here
ids() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", (i * i * 7 + 13 * i + 5) % 280 }'; }
fail() { echo "FAIL golden: $*"; : > "$work/failed"; }
digest() { # digest FILE N FLAGS... : the hex alone
  file=$1; n=$2; shift 2
  $run "$slm2" digest "$file" --ids "$(ids "$n")" "$@" >"$work/digest" 2>"$work/error" ||
    fail "digest $file $*: $(cat "$work/error")" >&2
  cut -d' ' -f1 "$work/digest"
}
same() { # same NAME HEX PATH-NAME HEX : complains when two paths differ
  [ "$2" = "$4" ] || fail "$1: path '$3' gives $4, expected $2" >&2
}
# model NAME FILE N ROWS-FILE|- CHUNKS : digests of N positions
model() {
  for profile in f32 q8; do
    for kv in f32 f16; do
      flags="--profile $profile --kv $kv"
      whole=$(digest "$2" "$3" $flags)
      for chunk in $5; do
        same "$1 $flags" "$whole" "chunk $chunk" "$(digest "$2" "$3" $flags --chunk $chunk)"
      done
      for backend in $backends; do
        same "$1 $flags" "$whole" "backend $backend" "$(digest "$2" "$3" $flags --backend $backend)"
      done
      [ "$4" = - ] || same "$1 $flags" "$whole" rows "$(digest "$4" "$3" $flags)"
      echo "$1/logits/$profile/kv-$kv $whole"
    done
  done
}
answer() { # answer NAME FILE FLAGS... : the digest of ids and log-probabilities that run --json states
  name=$1; file=$2; shift 2
  $run "$slm2" run "$file" --json "$@" >"$work/answer" 2>"$work/error" || fail "$name: $(cat "$work/error")" >&2
  echo "$name $(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$work/answer")"
}
answers() { # answers SET FLAGS... : of the demo model
  set_name=$1; shift
  for profile in f32 q8; do
    answer "$set_name/greedy/$profile" "$demo" -p 'What is the capital of France?' --temperature 0 --profile $profile "$@"
    answer "$set_name/seed-7/$profile" "$demo" -p 'Tell me a story.' --seed 7 --profile $profile "$@"
    answer "$set_name/all-stages/$profile" "$demo" -p 'Tell me a story about a fox.' --seed 99 --profile $profile \
      --temperature 1.3 --top-k 40 --top-p 0.9 --min-p 0.02 --repeat-penalty 1.1 "$@"
  done
}
synth() { # synth SHAPE : in both weight forms
  $run "$slm2" synth "$work/$1.slm2" --shape "$1" --seed 1 >"$work/out" 2>&1 || fail "synth $1: $(cat "$work/out")" >&2
  $run "$slm2" synth "$work/$1-rows.slm2" --shape "$1" --seed 1 --layout rows >"$work/out" 2>&1 || fail "synth $1 rows" >&2
}
lines() {
  synth tiny
  synth small
  backends=$($run "$slm2" digest "$work/tiny.slm2" --ids 1 --backend none 2>&1 | tr -d ',\r' | sed -n 's/.*there are: auto //p')
  [ -n "$backends" ] || fail 'no list of backends' >&2
  echo "$backends" >"$work/backends"
  echo '# NAME SHA-256. First what every build reproduces, emulated ones and wasm32 too: at most 16 positions.'
  for shape in tiny small; do echo "$shape/file $(sha256sum < "$work/$shape.slm2" | cut -d' ' -f1)"; done
  model tiny16 "$work/tiny.slm2" 16 "$work/tiny-rows.slm2" '1 2 7'
  model small8 "$work/small.slm2" 8 "$work/small-rows.slm2" 3
  echo "demo/file $(sha256sum < "$demo" | cut -d' ' -f1)"
  model demo8 "$demo" 8 - 1
  answers demo8 --max-tokens 8
  [ $short = no ] || return
  echo '# More positions, for native builds.'
  for shape in tiny small; do model "$shape" "$work/$shape.slm2" 160 "$work/$shape-rows.slm2" '1 2 7 32'; done
  model demo "$demo" 160 - '1 7 32'
  answers demo
}
lines > "$work/digests.txt"
if [ $print = yes ]; then
  cat "$work/digests.txt"
elif [ $short = yes ]; then
  sed '/^# More/,$d' "$digests" | diff - "$work/digests.txt" || fail "digests differ from $digests"
else
  diff "$digests" "$work/digests.txt" || fail "digests differ from $digests"
fi
[ ! -e "$work/failed" ] || exit 1
[ $print = yes ] || echo "ok golden: $(grep -vc '^#' "$work/digests.txt") digests; backends $(cat "$work/backends")"
