#!/bin/sh
# The browser's modules in node: what they are made of, their pool, the digests by 1, 2 and 3 threads, and kernelcheck. Arguments: BUILD/wasm [--all].
# Relaxed SIMD is an experiment in node 20: behind a flag, and wrong in its baseline compiler, which is switched off here.
# Engines that support it run the same checks in tests/browser.
set -eu
modules=$1
all=${2-}
relaxed='--experimental-wasm-relaxed-simd --no-liftoff'
node $relaxed -e 0 2>/dev/null || relaxed=
node $relaxed tests/wasm/modules.mjs "$modules"
for kind in scalar simd relaxed; do
  flags=
  [ $kind = relaxed ] && flags=$relaxed
  node $flags tests/wasm/mem.mjs "$modules/$kind/digest.wasm"
  node $flags tests/wasm/pool.mjs "$modules/$kind/digest.wasm"
  node $flags tests/wasm/digest.mjs "$modules/$kind/digest.wasm" $all
  [ $kind = scalar ] || node $flags tests/wasm/kernelcheck.mjs "$modules/$kind/kernelcheck.wasm"
done
