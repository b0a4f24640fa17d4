#!/bin/sh
# Would the tests notice? Each fault of tests/mutants/mutants.txt is seeded into a copy of the tree of its own; it must
# compile, and the test it names must fail by a check of its own, while all these tests pass without a fault.
# Arguments: BUILD CC [NAME...]. The copy of a fault that was not caught stays in BUILD/mutants/NAME.
set -u
build=$1
cc=$2
shift 2
list=tests/mutants/mutants.txt
root=$build/mutants
unset MAKEFLAGS MAKELEVEL # the copies are built with their own variables

names() { awk '/^name: /{print $2}' "$list"; }
field() { # field NAME KEY: its value, verbatim
  awk -v RS= -v FS='\n' -v name="name: $1" -v key="$2: " '
    $1 == name {for (i = 1; i <= NF; i++) if (index($i, key) == 1) print substr($i, length(key) + 1)}' "$list"
}
make_tests() { # make_tests TREE TEST...
  tree=$1
  shift
  for test; do set -- "$@" "build/tests/$test"; shift; done
  make -C "$tree" -s -j2 CC="$cc" BUILD=build CFLAGS=-O1 EXTRA= TEST_EXTRA=-lm "$@"
}
seed() { # seed NAME TREE: the fault, at the one place that it names
  file=$2/$(field "$1" file)
  FROM=$(field "$1" from) TO=$(field "$1" to) awk '
    BEGIN {from = ENVIRON["FROM"]; to = ENVIRON["TO"]; if (from == "" || from == to) exit 1}
    {at = index($0, from)
     if (at > 0) {
       n += 1 + (index(substr($0, at + 1), from) > 0)
       $0 = substr($0, 1, at - 1) to substr($0, at + length(from))
     }
     print}
    END {exit n != 1}' "$file" >"$2/seeded" && mv "$2/seeded" "$file"
}
verdict() { # verdict NAME TREE: one word, and why when it is not "caught"
  test=$(field "$1" test)
  seed "$1" "$2" || { echo "broken: its line is not in $(field "$1" file) once"; return; }
  make_tests "$2" "$test" >"$2/log" 2>&1 || { echo "broken: does not compile: $(grep -m1 error "$2/log")"; return; }
  (cd "$2" && ulimit -t 60 && "build/tests/$test" >log 2>&1)
  code=$?
  if [ "$code" -eq 1 ] && grep -q '^FAIL tests/.*:[0-9]' "$2/log"; then echo caught
  elif [ "$code" -eq 0 ]; then echo "SURVIVED"
  else echo "broken: the test ended with $code, and not by a check"; fi
}
one() { # one NAME: a line of the table, into BUILD/mutants/results
  machine=$(field "$1" machine)
  tree=$root/$1
  if [ -n "$machine" ] && [ "$machine" != "$(uname -m)" ]; then
    said="not on $(uname -m)"
  else
    cp -R -p "$root/base" "$tree"
    said=$(verdict "$1" "$tree")
    [ "$said" = caught ] && rm -rf "$tree"
  fi
  printf '%-22s %-6s %-20s %s  (%s)\n' "$1" "$(field "$1" rule)" "$(field "$1" test)" "$said" "$(field "$1" what)" \
    >"$root/results/$1"
}
if [ "${1:-}" = --one ]; then
  one "$2"
  exit 0
fi

[ $# -gt 0 ] || set -- $(names)
for name; do
  [ -n "$(field "$name" test)" ] || { echo "FAIL mutants: $list has no \"$name\""; exit 2; }
done
rm -rf "$root"
mkdir -p "$root/base" "$root/results"
cp -R -p Makefile include src convert wasm tests "$root/base/"
ln -s "$PWD/models" "$root/base/models"
for part in */*.mk; do mkdir -p "$root/base/${part%/*}" && cp -p "$part" "$root/base/$part"; done
tests=$(for name; do field "$name" test; done | sort -u)
make_tests "$root/base" $tests || { echo "FAIL mutants: the tree without a fault does not compile"; exit 1; }
for test in $tests; do
  (cd "$root/base" && "build/tests/$test") >"$root/log" || { tail -3 "$root/log"; echo "FAIL mutants: $test fails without a fault"; exit 1; }
done
printf '%s\n' "$@" | xargs -P 2 -n 1 "$0" "$build" "$cc" --one
caught=0
elsewhere=0
for name; do
  cat "$root/results/$name"
  case $(sed 's/  (.*//' "$root/results/$name") in
    *" caught") caught=$((caught + 1)) ;;
    *" not on "*) elsewhere=$((elsewhere + 1)) ;;
  esac
done
[ $((caught + elsewhere)) -eq $# ] || { echo "FAIL mutants: $caught of $# faults were caught"; exit 1; }
echo "ok mutants: $caught faults, each caught by the test it names"
