#!/bin/sh
# The mathematics against MPFR and exact arithmetic [D4] [D9] [D11] [D14] [D18], two parts at a time.
# Usage: tests/exhaustive/run.sh BUILD sample|full   (sample: every 4,099th argument where full takes all of them)
# Every line that mathcheck prints must be a line of tests/golden/math.txt.
set -u
check=$1/mathcheck
case $2 in sample) stride=4099 ;; full) stride=1 ;; *) echo "exhaustive: sample or full, not $2" >&2; exit 2 ;; esac
work=$1/exhaustive
mkdir -p "$work"
rm -f "$work"/*
for part in exp log sincos f16 quantize inv_freq rope; do
  echo "$part"
done | xargs -P 2 -I PART sh -c '"$1" PART $2 >"$3/PART.txt" 2>&1; echo $? >"$3/PART.code"' sh "$check" $stride "$work"
failed=0 lines=0
for part in exp log sincos f16 quantize inv_freq rope; do
  [ "$(cat "$work/$part.code")" = 0 ] || { echo "FAIL math $part:"; grep -v '^hard' "$work/$part.txt"; failed=1; }
  grep -v '^hard' "$work/$part.txt" | sed 's/  #.*//' >"$work/$part.lines"
  [ -s "$work/$part.lines" ] || { echo "FAIL math $part: no results"; failed=1; }
  lines=$((lines + $(wc -l <"$work/$part.lines")))
  missing=$(grep -vxFf tests/golden/math.txt "$work/$part.lines") && { echo "FAIL math: not in math.txt: $missing"; failed=1; }
done
[ $failed -eq 0 ] || exit 1
echo "ok math: $lines digests of correctly rounded results, stride $stride"
