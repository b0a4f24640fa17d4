#!/bin/sh
# First inputs for the fuzz targets, from committed data and synthetic models. Needs node.
# Usage: tests/fuzz/seeds.sh SLM2 OUT
set -eu
slm2=$1
out=$2
rm -rf "$out"
for target in header reader json section tokenize chat safetensors hf gguf snapshot; do mkdir -p "$out/$target"; done

# The smallest model there can be, and headers of synthetic ones in both forms.
node tests/oracle2/make.mjs "$out/reader/least" hidden_size=32 intermediate_size=32 num_hidden_layers=1 num_attention_heads=4 \
  num_key_value_heads=4 head_dim=8 vocab_size=32 tokenizer=0 chat_format=none weight_form=Q8_0
for layout in panels rows; do
  "$slm2" synth "$out/tiny.slm2" --shape tiny --seed 1 --layout $layout >/dev/null
  n=$(od -An -N4 -tu4 "$out/tiny.slm2" | tr -d ' ')
  tail -c +9 "$out/tiny.slm2" | head -c "$n" >"$out/header/$layout"
  cp "$out/header/$layout" "$out/json/header-$layout"
done
# Its tokenizer section, with a text behind it and the text's length.
section=$(grep -o '"tokenizer_bytes":"[0-9]*"' "$out/header/rows" | tr -dc 0-9)
{ tail -c +$((n + 9)) "$out/tiny.slm2" | head -c "$section"; printf 'Hello <think>\303\251\005\016'; } >"$out/section/bytes"
rm "$out/tiny.slm2"

i=0
for text in 'Hello, world! 12345' 'aaaaaaaabcabc  abc' "it's we'LL \n\n  x" '<|im_start|>user<|x|>long<think>' 'e\314\201\304\260\341\204\200\341\205\241\341\206\250' \
  '\377\300\200\355\240\200\364\220\200\200' '\360\237\221\251\342\200\215\360\237\221\251' '\340\244\225\340\245\215\340\244\267 \331\203'; do
  i=$((i + 1))
  printf "$text" >"$out/tokenize/$i"
done

add() { # add OPTION-BYTE FILE TARGET NAME : the byte, then the file
  { printf "\\$(printf %03o "$1")"; cat "$2"; } >"$out/$3/$4"
}
lines() { # lines FILE KEY : the value of KEY in each line, up to 40 of at most 2,000 bytes
  sed -n "s/^{\"id\": \"[^\"]*\", \"$2\": \\(.*\\), \"prompt\": .*/\\1/p" "$1" | awk 'length($0) < 2000' | head -40
}
lines tests/data/chat/qwen3_chat_vectors.jsonl args >"$out/lines"
i=0
while IFS= read -r line; do
  i=$((i + 1))
  printf '%s' "$line" >"$out/one"
  add $((i % 4)) "$out/one" chat $i
  cp "$out/one" "$out/json/chat-$i"
done <"$out/lines"
rm -f "$out/lines" "$out/one"
[ $i -gt 0 ] || { echo "seeds: no conversations" >&2; exit 1; }

for file in tests/data/files/parser/*; do
  [ "$(wc -c <"$file")" -gt 20000 ] || cp "$file" "$out/safetensors/$(basename "$file")"
done
for file in tests/data/qwen3/config-0.6B.json tests/data/hf-tiny/*/config.json; do add 0 "$file" hf "0-$(echo "$file" | tr / -)"; done
add 1 tests/data/qwen3/generation_config.json hf 1
add 2 tests/data/qwen3/tokenizer_config.json hf 2
for file in tests/data/files/index/*; do add 3 "$file" hf "3-$(basename "$file")"; done
for file in tests/data/hf-tiny/*/tokenizer.json; do add 4 "$file" hf "4-$(echo "$file" | tr / -)"; done
cp tests/data/gguf/tied-q8_0.gguf "$out/gguf/"
printf '\001\000\000\044\000\004' >"$out/snapshot/one-edit"
