#!/bin/sh
# Runs every fuzz target: first over what was found before (tests/data/fuzz/TARGET), then SECONDS of search from the seeds
# and from what earlier runs found interesting (PROGRAMS/corpus, kept). An input that breaks a target is left in
# PROGRAMS/found/TARGET-*: mend the kind, then commit the input to tests/data/fuzz/TARGET.
# Usage: tests/fuzz/run.sh PROGRAMS SLM2 SECONDS [TARGET...]
set -u
programs=$1 slm2=$2 seconds=$3
shift 3
[ $# -gt 0 ] || set -- $(cd tests/fuzz && for file in *.c; do echo "${file%.c}"; done)
seeds=$programs/seeds
tests/fuzz/seeds.sh "$slm2" "$seeds" || exit 1
mkdir -p "$programs/found"
failed=0 runs=0
for target; do
  corpus=$programs/corpus/$target
  mkdir -p "$corpus" "$seeds/$target"
  log=$programs/$target.log
  known=
  [ ! -d "tests/data/fuzz/$target" ] || known=tests/data/fuzz/$target
  # A replay of known inputs goes through each one once, whatever its coverage.
  if [ -n "$known" ] && ! "$programs/$target" "$known"/* >"$log" 2>&1; then
    echo "FAIL fuzz $target: an input of $known breaks it again"
    tail -n 20 "$log"
    failed=1
    continue
  fi
  if ! "$programs/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=131072 -print_final_stats=1 \
    -artifact_prefix="$programs/found/$target-" "$corpus" "$seeds/$target" $known >"$log" 2>&1; then
    echo "FAIL fuzz $target: see $log"
    grep -E 'ERROR|SUMMARY|Test unit written|tests/fuzz/[a-z]*\.[ch]:' "$log" | head -8
    failed=1
  fi
  n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  echo "fuzz $target: ${n:-0} inputs"
  runs=$((runs + ${n:-0}))
done
[ $failed -eq 0 ] || exit 1
echo "ok fuzz: $# targets, $runs inputs"
