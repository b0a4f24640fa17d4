# /save and /load in chat: the conversation goes on as if it had never stopped; what cannot be loaded changes nothing, what
# must not be replaced stays. Read by run.sh.
snap=$work/conversation.snap
chat() { # chat TEXT ARGS... : TEXT on stdin of chat with the model hf
  text=$1
  shift
  feed "$text" chat "$hf" --max-tokens 7 "$@"
}
fine() { # fine LABEL : of the last run
  checks=$((checks + 1))
  [ "$code" -eq 0 ] || fail "$1: exit $code: $(cat "$work/err")"
}
says() { # says LABEL TEXT : on stderr
  checks=$((checks + 1))
  grep -qF -- "$2" "$work/err" || fail "$1: stderr is '$(cat "$work/err")', without '$2'"
}

# Each profile and KV type, greedy and sampled, a smaller chunk and a larger context behind the file.
for flags in "--profile f32 --kv f32 --temperature 0" "--profile f32 --kv f16 --seed 5" "--profile q8 --kv f32 --seed 6" \
             "--profile q8 --kv f16 --temperature 0"; do
  rm -f "$snap"
  chat 'Hi there\nMore\nAnd on\n/stats\n' $flags --context 200
  fine "uninterrupted"
  tail -1 "$work/out" >"$work/a"
  grep '^last answer' "$work/err" | sed 's/, [0-9]* ms//; s/([0-9.]* a second)//' >"$work/a.stats"
  chat "Hi there\\nMore\\n/save $snap\\n" $flags --context 200
  fine "/save"
  says "/save" "saved $snap: "
  says "/save tells the size" ", $(wc -c <"$snap" | sed -E 's/ //g; :a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta') bytes"
  chat "/load $snap\\nAnd on\\n/stats\\n" $(echo "$flags" | sed 's/--seed [0-9]*//') --context 400 --chunk 3
  fine "/load"
  says "/load" "loaded $snap: "
  check "after /load the answer is the one that would have come ($flags)" cmp "$work/a" "$work/out"
  grep '^last answer' "$work/err" | sed 's/, [0-9]* ms//; s/([0-9.]* a second)//' >"$work/b.stats"
  check "with the same seed, prompt and cached tokens ($flags)" cmp "$work/a.stats" "$work/b.stats"
  chat "Other\\n/load $snap\\nAnd on\\n" $flags
  fine "/load over a conversation"
  tail -1 "$work/out" >"$work/b"
  check "over another conversation ($flags)" cmp "$work/a" "$work/b"
done
says "/load tells" "tokens, seed 0"

# The same conversation gives the same file, and a snapshot is replaced by a new one.
chat "Hi there\\nMore\\n/save $work/twin.snap\\n" $flags --context 512 --chunk 1
check "one conversation, one file" cmp "$snap" "$work/twin.snap"
chat "Something else\\n/save $work/twin.snap\\n" $flags
fine "/save over a snapshot"
checks=$((checks + 1))
! cmp -s "$snap" "$work/twin.snap" || fail "/save did not replace the file"
chat "/load $work/twin.snap\\nGo on\\n" $flags
fine "/load of what was replaced"
chat "/load $snap\\n/save $work/twin.snap\\n" $flags
check "loaded and saved is the same file" cmp "$snap" "$work/twin.snap"

# Names with blanks, an empty conversation, a system message, a conversation that was dropped.
chat "Hi there\\n/save  $work/with two blanks.snap \\t\\n" $flags
fine "/save with blanks"
check "a name with blanks" test -s "$work/with two blanks.snap"
chat "/save $work/empty.snap\\n" $flags
fine "/save of nothing"
chat "Other\\n/load $work/empty.snap\\nHi there\\n" $flags
fine "/load of nothing"
tail -1 "$work/out" >"$work/a"
chat "Hi there\\n" $flags
check "an empty conversation begins anew" cmp "$work/a" "$work/out"
chat "Secret words\\n/reset\\n/save $work/reset.snap\\n" $flags
check "/reset leaves nothing to save" cmp "$work/empty.snap" "$work/reset.snap"
chat "/save $work/system.snap\\nHi there\\n" $flags --system Brief.
cp "$work/out" "$work/a"
chat "/load $work/system.snap\\nHi there\\n" $flags
check "the system message comes along" cmp "$work/a" "$work/out"

# Refusals: one line, and the conversation as it was. A script ends with it.
broken() { # broken LABEL REASON FILE FLAGS...
  subject=$1
  reason=$2
  file=$3
  shift 3
  chat "/load $file\\nnever\\n" "$@"
  refused "/load of $subject" 1 "$reason"
}
broken "a missing file" "No such file" "$work/nowhere.snap" $flags
broken "a folder" "is a folder" "$work" $flags
broken "a model" "not a snapshot: it does not begin with SLM2SNAP" "$hf" $flags
: >"$work/none.snap"
broken "an empty file" "0 bytes are too few for a snapshot, at least 204" "$work/none.snap" $flags
broken "another profile" "made with q8, but the session has f32" "$snap" --profile f32 --kv f16
broken "another KV type" "made with f16, but the session has f32" "$snap" --profile q8 --kv f32
broken "a context that is too small" "tokens do not fit the context of 20" "$snap" $flags --context 20
identity() { sed 's/.*"identity":"\([0-9a-f]*\)".*/\1/'; }
other=$work/other.slm2
run convert tests/data/hf-tiny/tied "$other" --layout rows
printf '/load %s\nnever\n' "$snap" | "$slm2" chat "$other" $flags >"$work/out" 2>"$work/err"
code=$?
refused "/load for another model" 1 "$("$slm2" inspect "$hf" --json | identity)" "$("$slm2" inspect "$other" --json | identity)"
size=$(wc -c <"$snap" | tr -d ' ')
for cut in 1 203 204 1000 $((size - 1)); do
  head -c "$cut" "$snap" >"$work/cut.snap"
  broken "the first $cut bytes" "$cut bytes" "$work/cut.snap" $flags
done
{ cat "$snap"; printf x; } >"$work/cut.snap"
broken "a byte too many" "$((size + 1)) bytes, but its head demands $size" "$work/cut.snap" $flags
for at in 60 100 300 $((size - 40)) $((size - 1)); do
  { head -c "$at" "$snap"; printf '\125\252'; tail -c "+$((at + 3))" "$snap"; } | head -c "$size" >"$work/bent.snap"
  broken "changed bytes at $at" "damaged" "$work/bent.snap" $flags
done
chat "/load\\nnever\\n" $flags
refused "/load without a name" 2 "needs the name of a file"
chat "/save\\nnever\\n" $flags
refused "/save without a name" 2 "needs the name of a file"

cp "$hf" "$work/precious.slm2"
printf '/save %s\nnever\n' "$work/precious.slm2" | "$slm2" chat "$work/precious.slm2" >"$work/out" 2>"$work/err"
code=$?
refused "/save over the model" 1 "is no snapshot: choose another name"
check "the model is untouched" cmp "$hf" "$work/precious.slm2"
printf 'my text' >"$work/text"
chat "/save $work/text\\n" $flags
refused "/save over a text" 1 "is no snapshot"
check "the text is untouched" test "$(cat "$work/text")" = "my text"
chat "/save $work/nowhere/x.snap\\n" $flags
refused "/save into no folder" 1 "No such file"
chat "/save $work\\n" $flags
refused "/save over a folder" 1 "is a folder"
chat "/save $work/none.snap\\n" $flags
fine "/save over an empty file"
check "/help lists /save and /load" sh -c "printf '/help\n' | '$slm2' chat '$hf' 2>&1 | grep -c '^/save F\|^/load F' | grep -qx 2"

# Conversations that a snapshot brings along with right hashes: an empty timeline and this attachment.
if command -v sha256sum >/dev/null 2>&1; then
  octal_bytes() { # octal_bytes HEX : as printf's \ooo escapes
    echo "$1" | awk '{for (i = 1; i < length($1); i += 2) printf "\\%03o",
      16 * (index("0123456789abcdef", substr($1, i, 1)) - 1) + index("0123456789abcdef", substr($1, i + 1, 1)) - 1}'
  }
  made=$work/made.snap
  make_snapshot() { # make_snapshot ATTACHMENT (up to 255 bytes)
    { head -c 68 "$work/empty.snap"; printf "$(octal_bytes "$(printf '%02x' "${#1}")00000000000000")"
      tail -c +77 "$work/empty.snap" | head -c 96; printf '%s' "$1"; } >"$work/front"
    { cat "$work/front"; printf "$(octal_bytes "$(sha256sum <"$work/front" | cut -c1-64)")"; } >"$made"
  }
  conversation() { # conversation REASON ATTACHMENT
    make_snapshot "$2"
    broken "'$2'" "$1" "$made" $flags
  }
  conversation 'holds a session without a conversation' ''
  conversation 'not valid JSON' '{'
  conversation 'an object was expected, but an array came' '[]'
  conversation 'seed and messages are both needed' '{}'
  conversation 'seed and messages are both needed' '{"seed":1}'
  conversation 'seed and messages are both needed' '{"messages":[]}'
  conversation 'x: is unknown, or there twice' '{"seed":1,"x":2,"messages":[]}'
  conversation 'seed: is unknown, or there twice' '{"seed":1,"seed":1,"messages":[]}'
  conversation 'messages: is unknown, or there twice' '{"messages":[],"messages":[],"seed":1}'
  conversation 'seed at byte 8' '{"seed":-1,"messages":[]}'
  conversation 'seed at byte 8 is larger than 18446744073709551615' '{"seed":18446744073709551616,"messages":[]}'
  conversation 'a number was expected, but a string came' '{"seed":"1","messages":[]}'
  conversation 'an array was expected, but a string came' '{"seed":1,"messages":"Hi"}'
  conversation 'not valid JSON' '{"seed":1,"messages":[]} x'
  conversation 'message' '{"seed":1,"messages":[1]}'
  conversation 'wizard' '{"seed":1,"messages":[{"role":"wizard","content":"x"}]}'
  chat "Hi there\\n/load $made\\nnever\\n" $flags
  checks=$((checks + 1))
  [ "$code" -eq 1 ] && [ "$(grep -c '^slm2: ' "$work/err")" -eq 1 ] || fail "a bad conversation: exit $code, '$(cat "$work/err")'"
  make_snapshot '{ "messages" : [ ] , "seed" : 7 }'
  chat "Other\\n/load $made\\nHi there\\n" --profile q8 --kv f16
  tail -1 "$work/out" >"$work/a"
  chat 'Hi there\n' --profile q8 --kv f16 --seed 7
  check "an empty conversation with a seed" cmp "$work/a" "$work/out"
  talk='{"role":"user","content":"Hi"}, {"role":"assistant","content":"Yes"}'
  make_snapshot "{\"messages\":[ $talk ],\"seed\":18446744073709551615}"
  chat "/load $made\\nMore\\n" --profile q8 --kv f16
  fine "a conversation without its keys and values"
  cp "$work/out" "$work/a"
  printf '[%s,{"role":"user","content":"More"}]' "$talk" >"$work/messages.json"
  run run "$hf" --messages "$work/messages.json" --seed 18446744073709551615 --max-tokens 7 --profile q8 --kv f16
  check "it is computed anew" cmp "$work/a" "$work/out"
fi
