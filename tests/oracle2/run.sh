#!/bin/sh
# The second oracle against the command: logits, answers, files and functions, bit for bit.
# Usage: tests/oracle2/run.sh BUILD   (needs BUILD/slm2 and node 18 or later)
set -u
here=tests/oracle2
slm2=$1/slm2
work=$1/oracle2
command -v node >/dev/null 2>&1 || { echo "oracle2: node is missing; please install nodejs (18 or later)" >&2; exit 2; }
rm -rf "$work"
mkdir -p "$work"
digests=0 answers=0 files=0 failed=0
fail() { echo "FAIL oracle2: $*"; failed=1; }

ids=1,2,3,200,31,7,100,5,77,12,0,255,9
long=$(awk 'BEGIN { for (i = 0; i < 150; i++) printf "%s%d", i ? "," : "", (i * i * 5 + 11 * i + 3) % 288 }')

# logits FILE IDS: the lines of both programs, all profiles and KV types. A refusal for a value that is not finite [D5]
# is a result too; its stage is not compared [D5b].
logits() {
  for profile in f32 q8; do
    for kv in f32 f16; do
      if ! "$slm2" digest "$1" --ids "$2" --profile $profile --kv $kv 2>"$work/error"; then
        grep -q 'not finite' "$work/error" || cat "$work/error"
        echo "NUMERICAL  profile=$profile kv=$kv"
      fi
      digests=$((digests + 1))
    done
  done >"$work/c"
  node $here/forward.mjs "$1" --ids "$2" --profile f32,q8 --kv f32,f16 |
    sed 's/^NUMERICAL.*  \(profile=.* kv=f[0-9]*\).*/NUMERICAL  \1/' >"$work/js"
  cmp -s "$work/c" "$work/js" || fail "$1: digests (<: slm2)
$(diff "$work/c" "$work/js")"
}

# model NAME KEY=VALUE...: a file by make.mjs that slm2 must accept; its logits.
model() {
  name=$1; shift
  node $here/make.mjs "$work/$name.slm2" "$@" || fail "make $name"
  "$slm2" verify "$work/$name.slm2" >"$work/out" 2>&1 || fail "$name: $(cat "$work/out")"
  logits "$work/$name.slm2" "$ids"
}

# answer FILE IDS PROFILE KV N SEED T K P M R: finish, identity and digest (ids and log-probabilities) of an answer
answer() {
  "$slm2" run "$1" --ids "$2" --profile "$3" --kv "$4" --max-tokens "$5" --seed "$6" --temperature "$7" --top-k "$8" \
    --top-p "$9" --min-p "${10}" --repeat-penalty "${11}" --json 2>"$work/error" | tail -1 >"$work/c.json"
  node $here/forward.mjs "$1" --ids "$2" --profile "$3" --kv "$4" --sample "$5,$6,$7,$8,$9,${10},${11}" >"$work/js.json" 2>&1
  for key in finish model digest; do
    want=$(grep -o "\"$key\":\"[a-z0-9]*\"" "$work/c.json")
    got=$(grep -o "\"$key\":\"[a-z0-9]*\"" "$work/js.json")
    [ -n "$want" ] && [ "$want" = "$got" ] || fail "answer $*: $key $got; slm2: $want $(cat "$work/error")"
  done
  answers=$((answers + 1))
}

same_file() { # same_file SHAPE SEED LAYOUT KEY=VALUE...: make.mjs writes what synth writes
  shape=$1 seed=$2 layout=$3; shift 3
  "$slm2" synth "$work/$shape-$layout.slm2" --shape "$shape" --seed "$seed" --layout "$layout" >"$work/out" 2>&1
  node $here/make.mjs "$work/made.slm2" seed="$seed" "$@"
  cmp "$work/$shape-$layout.slm2" "$work/made.slm2" >"$work/out" 2>&1 || fail "synth $shape $layout: $(cat "$work/out")"
  files=$((files + 1))
}

refused() { # refused WHAT OFFSET: both readers refuse the tiny model with one bit turned
  node -e 'const fs = require("fs"), [from, to, at] = process.argv.slice(1), b = fs.readFileSync(from);
    b[at] ^= 1; fs.writeFileSync(to, b)' "$work/tiny-rows.slm2" "$work/damaged.slm2" "$2"
  "$slm2" verify "$work/damaged.slm2" >"$work/out" 2>&1 && fail "slm2 verify took a file with damage in the $1"
  node $here/forward.mjs "$work/damaged.slm2" --ids 1 >"$work/out" 2>&1 && fail "forward.mjs took a file with damage in the $1"
  files=$((files + 1))
}

same_file tiny 18446744073709551615 panels
same_file tiny 1 rows weight_form=Q8_0
same_file small 7 panels hidden_size=256 intermediate_size=768 num_hidden_layers=4 num_attention_heads=8 \
  num_key_value_heads=4 head_dim=64
refused length 1
refused header 1000
refused tokenizer 4000
refused weights 20000

logits "$work/tiny-panels.slm2" "$long"
logits "$work/tiny-rows.slm2" "$long"
logits "$work/small-panels.slm2" "$ids"
model untied tie_word_embeddings=false
model one-kv-head tie_word_embeddings=false weight_form=Q8_0 num_attention_heads=6 num_key_value_heads=1 hidden_size=96 \
  intermediate_size=224 head_dim=96 rope_theta=10000 rms_norm_eps=1e-05
model all-kv-heads num_attention_heads=4 num_key_value_heads=4 head_dim=24 hidden_size=32 intermediate_size=32 \
  num_hidden_layers=3 vocab_size=320 max_position_embeddings=13
model head-dim-8 num_attention_heads=12 num_key_value_heads=4 head_dim=8 hidden_size=160 rope_theta=2 rms_norm_eps=1.0
model head-dim-512 num_attention_heads=2 num_key_value_heads=1 head_dim=512 rope_theta=2147483648
model power-tie head_dim=16 rope_theta=214358881 # 11^8: theta^(7/8) = 11^7 lies between two f32 [D14]
model subnormal-scales exponent=0
model largest-scales exponent=30
model zero-row zero_row=7
model small-norm norm=1e-18   # some blocks below 2^-100 [D11]
model smaller-norm norm=1e-30 # activations are subnormal
model subnormal-norm norm=1e-38
model zeros zero_row=7 norm=1e-30 exponent=1 rms_norm_eps=1e-45
model large-norm norm=1e18
model overflow norm=1e30
model no-tokenizer tokenizer=0 chat_format=none

answer "$work/tiny-rows.slm2" 1,2,3 q8 f32 60 0 0 0 1 0 1
answer "$work/tiny-rows.slm2" 1,2,3 q8 f32 300 5 5 0 1 0 1
answer "$work/tiny-rows.slm2" 1,2,3 f32 f16 60 5 1e-3 3 1 0 1.5
answer "$work/tiny-rows.slm2" 1,2,3 q8 f32 60 18446744073709551615 1.5 0 0.9 0.05 1.3
answer "$work/tiny-rows.slm2" 1,2,3 q8 f32 60 9 1 0 0 0 0.8
answer "$work/tiny-rows.slm2" 1,2,3 q8 f32 60 9 2 50 0.99 1 1
answer "$work/zero-row.slm2" 7 q8 f32 5 4 1 4 0.5 0 1 # all logits are equal: four of 0.25, of which three are kept
answer "$work/zero-row.slm2" 7 f32 f32 5 9 0 0 1 0 2
answer "$work/subnormal-norm.slm2" 1,2,7 q8 f32 60 9 1e-45 0 1 0 1.5
answer "$work/largest-scales.slm2" 284,287 f32 f32 1 9 1e10 0 0.99 0.5 1e-38 # ids without a token take no penalty
answer "$work/largest-scales.slm2" 1,2,7 q8 f32 60 9 1e10 0 0.99 0.5 1.01
answer "$work/no-tokenizer.slm2" 1,2,3 q8 f32 20 0 0 0 1 0 1

if [ -f models/demo.slm2 ]; then
  logits models/demo.slm2 1,200,31,7,1000,5,77,12,0,255,9,2,640,1500,33,8
  logits models/demo.slm2 90,91,92,93,94
  answer models/demo.slm2 1,200,31 q8 f32 40 0 0 0 1 0 1
  answer models/demo.slm2 1,200,31 f32 f16 40 7 0.6 20 0.95 0 1.1
fi

math=$(node $here/math.mjs) || fail "$math"
[ $failed -eq 0 ] || exit 1
echo "ok oracle2: $digests digests, $answers answers, $files files, ${math#ok math: }"
