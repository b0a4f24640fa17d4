# tokenize, detokenize and render against Hugging Face's results for Qwen3's own tokenizer, when tools/fetch_tokenizer
# has cached it (tests/parity covers far more, below the command line). Read by run.sh.
cached=build/cache/qwen3_tokenizer.json
if [ -r "$cached" ]; then
  mkdir "$work/qwen3"
  cp "$cached" "$work/qwen3/tokenizer.json"
  qwen3=$work/qwen3.slm2
  run synth "$qwen3" --shape tiny --tokenizer "$work/qwen3" --seed 1
  out_has "synth --tokenizer" "vocabulary 151680" "chat format qwen3"
  octal() { # octal HEX : the bytes as printf's \ooo escapes
    echo "$1" | awk '{for (i = 1; i < length($1); i += 2) printf "\\%03o",
      16 * (index("0123456789abcdef", substr($1, i, 1)) - 1) + index("0123456789abcdef", substr($1, i + 1, 1)) - 1}'
  }
  list() { # list KEY : that list of the line in $line, without blanks
    printf '%s\n' "$line" | sed -n "s/.*\"$1\": \\(\\[[0-9, ]*\\]\\).*/\\1/p" | tr -d ' '
  }
  while IFS= read -r line; do
    hex=$(printf '%s\n' "$line" | sed -n 's/.*"text_utf8_hex": "\([0-9a-f]*\)".*/\1/p')
    label=$(printf '%s\n' "$line" | sed -n 's/^{"id": "\([^"]*\)".*/\1/p')
    feed "$(octal "$hex")" tokenize "$qwen3" --specials --json
    out_is "vector $label with specials" "{\"ids\":$(list ids_parse_special)}"
    feed "$(octal "$hex")" tokenize "$qwen3" --json
    out_is "vector $label as content" "{\"ids\":$(list ids_plain)}"
  done <tests/data/tokenizer/qwen3_token_vectors.jsonl
  while IFS= read -r line; do
    label=$(printf '%s\n' "$line" | sed -n 's/^{"id": "\([^"]*\)".*/\1/p')
    printf '%s\n' "$line" | sed -n 's/^{"id": "[^"]*", "args": \(.*\), "prompt": .*/\1/p' >"$work/in"
    "$slm2" render "$qwen3" --json --raw-specials <"$work/in" >"$work/out" 2>"$work/err"
    code=$?
    out_has "conversation $label" "\"ids\":$(list ids)}"
    safe=$(list ids_safe_if_different)
    "$slm2" render "$qwen3" --json <"$work/in" >"$work/out" 2>"$work/err"
    code=$?
    out_has "conversation $label, content without control tokens" "\"ids\":${safe:-$(list ids)}}"
    "$slm2" render "$qwen3" <"$work/in" >"$work/out" 2>"$work/err"
    if command -v sha256sum >/dev/null 2>&1; then
      checks=$((checks + 1))
      case $line in *"\"prompt_sha256\": \"$(sha256sum <"$work/out" | cut -d' ' -f1)\""*) ;; *) fail "prompt $label" ;; esac
    fi
  done <tests/data/chat/qwen3_chat_vectors.jsonl
fi
