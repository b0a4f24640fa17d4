#!/bin/sh
# Repository gates; each prints what it found and the script exits 1 if any did. Run by `make lint`.
# Arguments: BUILD CC. The library must be built (BUILD/libslm2.a).
set -u
build=$1
cc=$2
mkdir -p "$build/lint"
rm -f "$build/lint/failed"
bad() { # bad TITLE < findings; fails when there are any (a file, because a pipe's end is a process of its own)
  found=$(cat)
  [ -z "$found" ] && return 0
  printf 'lint: %s:\n%s\n' "$1" "$found" | sed '2,$s/^/  /'
  : > "$build/lint/failed"
}
sources=$(git ls-files 'include/*.h' 'src/*.[ch]' 'convert/*.[ch]' 'wasm/*.[ch]' 'cli/*.[ch]' 'tests/*.[ch]')
generated='unicode_tables'

# Layers: a folder includes only itself and folders above it (docs/ARCHITECTURE in README's map).
for file in $(git ls-files 'src/*.[ch]' 'convert/*.[ch]' 'wasm/*.[ch]' 'cli/*.[ch]'); do
  awk -v file="$file" '
    BEGIN { n = split("base num kernel format tokenizer sampler model session platform convert wasm cli", order, " ")
            for (i = 1; i <= n; i++) rank[order[i]] = i
            split(file, part, "/"); own = part[1] == "src" ? part[2] : part[1] }
    /^#include "/ { split($2, q, "\""); split(q[2], inc, "/"); to = inc[1]
      if (to == "slm2") next
      if (!(to in rank) || rank[to] > rank[own]) print file ":" FNR ": " own " may not include " q[2] }' "$file"
done | bad 'layer order'

# The core is freestanding: only these headers, and no symbol from outside but the four memory functions.
git ls-files 'src/*.[ch]' 'convert/*.[ch]' 'wasm/*.[ch]' | grep -v '^src/platform/' | xargs grep -nE '^#include <' |
  grep -vE '<(stdint|stddef|stdbool|stdarg|stdatomic|float|limits|immintrin|xmmintrin|arm_neon|wasm_simd128)\.h>' | bad 'core includes a hosted header'
find "$build/obj/src" "$build/obj/convert" -name '*.o' ! -path '*/platform/*' | while read -r object; do
  nm -u "$object" | awk -v o="$object" '$2 !~ /^(slm2_|mem(cpy|move|set|cmp)$|_GLOBAL_OFFSET_TABLE_$)/ {print o ": " $2}'
  objdump -h "$object" | awk -v o="$object" '$2 ~ /^\.(data|bss|tdata|tbss)$/ && $3 !~ /^0+$/ {print o ": mutable global in " $2}'
done | bad 'core needs a symbol or owns mutable state'
# Whoever computes does so through the table it was given: no way to the oracle behind a kernel that failed (R78).
find "$build/obj/src" -name '*.o' ! -path '*/kernel/*' | while read -r object; do
  nm -u "$object" | awk -v o="$object" '$2 ~ /^slm2_(backend_oracle$|oracle_)/ {print o ": " $2}'
done | bad 'names the oracle outside src/kernel'
nm -g --defined-only "$build/libslm2.a" | awk 'NF == 3 && $3 !~ /^slm2_/ {print $3}' | bad 'exported symbol without slm2_'

# Every header compiles alone, with both compilers where they exist.
for header in $(git ls-files 'include/*.h' 'src/*.h' 'convert/*.h' 'wasm/*.h' 'cli/*.h'); do
  for compiler in "$cc" clang-19; do
    command -v "$compiler" >/dev/null 2>&1 || continue
    printf '#include "%s"\nextern int lint_unused_;\n' "$header" |
      "$compiler" -std=c17 -Wall -Wextra -Werror -Iinclude -Isrc -I. -fsyntax-only -x c - >/dev/null 2>&1 || echo "$header ($compiler)"
  done
done | bad 'header does not compile alone'

# A C++ program can include the public headers and link with the library.
for compiler in g++ clang++-19; do
  echo '#include <atomic>' | "$compiler" -std=c++17 -fsyntax-only -x c++ - >/dev/null 2>&1 || continue
  { git ls-files 'include/*.h' | sed 's/.*/#include "&"/'
    echo 'int main() { slm2_cancel stop{0}; slm2_run run{}; run.cancel = &stop; return run.cancel != &stop || slm2_backend_default() == nullptr; }'; } |
    "$compiler" -std=c++17 -Wall -Wextra -pedantic -Werror -Iinclude -I. -o "$build/lint/cxx" -x c++ - -x none "$build/libslm2.a" 2>&1 |
    head -4
done | bad 'public headers do not serve C++'

# Sizes: files up to 600 lines, functions up to 60 (kernels 100), lines up to 130 columns (144 in JavaScript).
for file in $(printf '%s\n' $sources $(git ls-files 'tools/*' 'train/*.py' 'tests/*.sh' 'tests/*.py' 'web/*.js' 'tests/*.mjs' 'bench/*.mjs') | grep -v "$generated"); do
  awk -v file="$file" '
    (length($0) > 130 && file ~ /\.[ch]$/) || (length($0) > 144 && file ~ /^web\//) {print file ":" FNR ": " length($0) " columns"}
    END {if (FNR > 600) print file ": " FNR " lines"}' "$file"
done | bad 'too large'
for file in $(printf '%s\n' $sources | grep '\.c$' | grep -v "$generated"); do
  limit=60
  case $file in src/kernel/*) limit=100 ;; esac
  awk -v file="$file" -v limit="$limit" '
    /^[A-Za-z_].*\) \{$/ {start = FNR; name = $0}
    /^\}/ && start {if (FNR - start + 1 > limit) print file ":" start ": " FNR - start + 1 " lines: " name; start = 0}' "$file"
done | bad 'function too long'

# The same core compiles for wasm32: 32-bit size_t, no libc.
command -v clang-19 >/dev/null 2>&1 && {
  for file in $(git ls-files 'src/*.c' 'convert/*.c' | grep -v '^src/platform/'); do
    clang-19 --target=wasm32 -std=c17 -O1 -ffreestanding -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror \
      -Wconversion -Wshadow -nostdlibinc -Iinclude -Isrc -I. -c -o "$build/lint/wasm.o" "$file" 2>&1 | head -4
  done
} | bad 'core does not compile for wasm32'

# Numbers: no flag and no call that could change a bit [D1] [D3].
grep -nE -e '-(Ofast|ffast-math|funsafe-math|fassociative-math|ffp-contract=(fast|on)|mfma)' Makefile $(git ls-files 'tools/*' '*.mk' | grep -v lint.sh) | bad 'forbidden flag'
printf '%s\n' $sources | grep -E '^(src|convert|wasm)/' | grep -v '^src/platform/' |
  xargs grep -nE '\b(long double|expf?|logf?|powf?|sinf?|cosf?|tanhf?|roundf?|rintf?|fmaf?|alloca|malloc|free|printf|abort|exit) ?\(' |
  grep -vE 'slm2_|^[^:]*:[0-9]+: *(/?\*|//)|/\*.*\(' | bad 'forbidden call in the core'
$cc -O3 -march=haswell -mtune=generic -E -x c /dev/null >/dev/null 2>&1 && {
  for file in $(git ls-files 'src/num/*.c' 'src/kernel/*.c' 'src/kernel/*/*.c' 'src/sampler/*.c'); do
    object="$build/lint/$(echo "$file" | tr / _).o"
    $cc -std=c17 -O3 -march=haswell -ffp-contract=off -fno-fast-math -fno-math-errno -ffreestanding -Iinclude -Isrc -I. -c -o "$object" "$file" &&
      objdump -d --no-show-raw-insn "$object" | grep -E '\bvf(n?m)(add|sub)' | head -1 | sed "s|^|$file: |"
  done
} | bad 'fused multiply-add in a build for a CPU that has it [D1]'

# The page and the engine: text never becomes code or markup, nothing is kept outside OPFS [R98], JavaScript computes no number
# of a model [R84] [R142], and no peer connection is made.
git ls-files 'web/*.js' | xargs grep -nE \
  '\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval ?\(|new Function|indexedDB|Math\.(exp|log|sin|cos|pow|tanh)|RTCPeerConnection)' |
  bad 'forbidden in the page'

# Text: no tabs (but in Makefiles), CR, trailing blanks, invisible Unicode, missing final newline.
for file in $(git ls-files | grep -vE '^(tests/data|tests/golden|models/.*\.slm2|train/data|LICENSE)' | grep -vE '\.(bin|slm2|safetensors|gz|png)$'); do
  grep -nP '\t' "$file" /dev/null | case $file in Makefile|*.mk) cat >/dev/null ;; *) sed 's/$/ (tab)/' ;; esac
  grep -nP '\r|[ \t]+$|[\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{feff}]' "$file" /dev/null
  [ -z "$(tail -c1 "$file")" ] || echo "$file: no newline at the end"
done | cut -c1-160 | bad 'text'

# Rules: every [D#] of docs/NUMERICS.md is cited by a test, or by the measurement that it asks for.
grep -oE '\*\*\[D[0-9]+b?\]' docs/NUMERICS.md | tr -d '*[]' | sort -u | while read -r rule; do
  grep -rqE "\[?$rule\b" tests bench tools/lint.sh --include='*.c' --include='*.sh' --include='*.mjs' --include='*.txt' || echo "$rule"
done | bad 'rule without a test'

[ ! -e "$build/lint/failed" ] || exit 1
echo "ok lint"
