#!/bin/sh
# One leg of make check: runs COMMAND with its output in a log; prints one line: result, seconds, name, the last line it said.
# A command that says "SKIP: why" as its last line, with exit 0, was skipped.
# Usage: tests/leg.sh LOGS NAME COMMAND
mkdir -p "$1"
log=$1/$2.log
start=$(date +%s)
sh -c "$3" >"$log" 2>&1
code=$?
seconds=$(($(date +%s) - start))
last=$(tail -n 1 "$log")
if [ $code -eq 0 ]; then
  case $last in SKIP:*) word=SKIP ;; *) word=ok ;; esac
  printf '%-4s %4ss  %-16s %s\n' $word $seconds "$2" "${last#SKIP: }"
  exit 0
fi
printf 'FAIL %4ss  %-16s exit %s, %s:\n' $seconds "$2" $code "$log"
tail -n 12 "$log" | sed 's/^/  /'
exit 1
