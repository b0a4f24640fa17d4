#!/bin/sh
# Whole-model digests [D23]: prints every line of tests/golden/digests.txt anew and compares. Each digest is made on
# several paths that must agree (chunk sizes, weight layouts); a path that differs is reported by name.
# Usage: tests/golden/run.sh BUILD [--print]   (--print writes the lines instead of comparing them)
set -u
build=$1
slm2=$build/slm2
work=$build/golden
mkdir -p "$work"
rm -f "$work/failed"
ids_long=$(awk 'BEGIN { for (i = 0; i < 160; i++) printf "%s%d", i ? "," : "", (i * i * 7 + 13 * i + 5) % 280 }')

digest() { # digest FILE IDS FLAGS... : the hex alone
  file=$1; ids=$2; shift 2
  "$slm2" digest "$file" --ids "$ids" "$@" >"$work/digest" || : > "$work/failed"
  cut -d' ' -f1 "$work/digest"
}
same() { # same NAME HEX PATH-NAME HEX : complains when two paths differ
  [ "$2" = "$4" ] && return
  echo "FAIL golden: $1: path '$3' gives $4, expected $2"
  : > "$work/failed"
}
model() { # model NAME FILE [ROWS-FILE]
  for profile in f32 q8; do
    for kv in f32 f16; do
      flags="--profile $profile --kv $kv"
      whole=$(digest "$2" "$ids_long" $flags)
      for chunk in 1 2 7 32; do
        same "$1 $flags" "$whole" "chunk $chunk" "$(digest "$2" "$ids_long" $flags --chunk $chunk)"
      done
      [ -z "${3:-}" ] || same "$1 $flags" "$whole" "rows" "$(digest "$3" "$ids_long" $flags)"
      echo "$1/logits/$profile/kv-$kv $whole"
    done
  done
}
answer() { # answer NAME FILE FLAGS... : digest of the sampled ids
  name=$1; file=$2; shift 2
  ids=$("$slm2" run "$file" --json "$@" 2>/dev/null | sed -n 's/^{"id":\([0-9]*\),.*/\1/p' | tr '\n' ' ')
  echo "$name $(printf '%s' "$ids" | sha256sum | cut -d' ' -f1)"
}
lines() {
  for shape in tiny small; do
    "$slm2" synth "$work/$shape.slm2" --shape $shape --seed 1 >/dev/null 2>&1 || : > "$work/failed"
    "$slm2" synth "$work/$shape-rows.slm2" --shape $shape --seed 1 --layout rows >/dev/null 2>&1 || : > "$work/failed"
    echo "$shape/file $(sha256sum < "$work/$shape.slm2" | cut -d' ' -f1)"
    model "$shape" "$work/$shape.slm2" "$work/$shape-rows.slm2"
  done
  echo "demo/file $(sha256sum < models/demo.slm2 | cut -d' ' -f1)"
  model demo models/demo.slm2
  for profile in f32 q8; do
    answer "demo/greedy/$profile" models/demo.slm2 -p 'What is the capital of France?' --temperature 0 --profile $profile
    answer "demo/seed-7/$profile" models/demo.slm2 -p 'Tell me a story.' --seed 7 --profile $profile
    answer "demo/all-stages/$profile" models/demo.slm2 -p 'Tell me a story about a fox.' --seed 99 --profile $profile \
      --temperature 1.3 --top-k 40 --top-p 0.9 --min-p 0.02 --repeat-penalty 1.1
  done
}
lines > "$work/digests.txt"
grep -q '^FAIL' "$work/digests.txt" && grep '^FAIL' "$work/digests.txt"
if [ "${2:-}" = --print ]; then
  cat "$work/digests.txt"
elif ! diff tests/golden/digests.txt "$work/digests.txt"; then
  echo "FAIL golden: digests differ from tests/golden/digests.txt"
  exit 1
fi
[ ! -e "$work/failed" ] || exit 1
[ "${2:-}" = --print ] || echo "ok golden: $(wc -l < "$work/digests.txt") digests"
