# bench: usage, and the shape of what it prints. Its figures are the machine's, and not asserted. Read by run.sh.
run bench "$tiny" --quick --threads 1
out_has "bench" "profile q8, kv f32" "threads 1, context 520, medians of 3" "prefill 128 " "decode after 0 " "decode after 512 " \
  "% of the bound" "first token, cold" "first token, warm" "first token, again" "memory read, 1 thread " "peak memory" "page faults" \
  "TLB misses" "cost of subnormals"
run bench "$tiny" --quick --json --threads 3 --profile f32 --kv f16 --backend oracle --prefill 5,3,5 --decode 7,0 --tokens 2 --repeats 4
out_has "bench --json" '"profile":"f32","kv":"f16","backend":"oracle","threads":3,"context":9,"tokens":2,"repeats":4,"quick":true' \
  '"prefill":[{"tokens":3,"tokens_per_second":' '},{"tokens":5,"tokens_per_second":' '"decode":[{"after":0,' '},{"after":7,' \
  '"bandwidth":[{"threads":1,' '},{"threads":2,' '},{"threads":3,"bytes_per_second":' '"subnormal_cost":{"weights":'
checks=$((checks + 1))
[ "$(wc -l <"$work/out")" -eq 1 ] && [ ! -s "$work/err" ] || fail "bench --json: more than one line, or something on stderr"
if command -v node >/dev/null 2>&1; then
  cat >"$work/shape.js" <<'END'
const b = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const positive = x => { if (!(typeof x === 'number' && Number.isFinite(x) && x > 0)) throw new Error(`not positive: ${x}`); };
for (const p of b.prefill) positive(p.tokens_per_second);
for (const d of b.decode) for (const x of [d.tokens_per_second, d.bytes_per_token, d.read_bytes_per_second, d.share]) positive(x);
for (const w of b.bandwidth) positive(w.bytes_per_second);
for (const k of ['weights', 'activations', 'both']) positive(b.subnormal_cost[k]);
for (const k of ['file_bytes', 'weight_bytes', 'load_ms', 'first_token_warm_ms', 'first_token_again_ms', 'session_bytes']) positive(b[k]);
for (const k of ['peak_rss', 'first_token_cold_ms']) if (b[k] !== null) positive(b[k]);
if (b.tlb_misses_per_token !== null && !(b.tlb_misses_per_token >= 0)) throw new Error('tlb');
// keys and values of two layers, two heads of 32, f16, and every weight once
if (b.decode[1].bytes_per_token - b.decode[0].bytes_per_token !== 7 * Number(process.argv[2])) throw new Error('bytes a token');
END
  kv=$("$slm2" plan "$tiny" --context 1 --kv f16 --json | sed 's/.*"kv":\([0-9]*\).*/\1/')
  check "bench --json: every figure is a number" sh -c 'node "$1" "$2" <"$3"' - "$work/shape.js" "$kv" "$work/out"
fi
run bench "$tiny" --quick --json --threads 1 --context 20
out_has "bench, short context" '"context":20,"tokens":8' '"prefill":[{"tokens":20,' '"decode":[{"after":0,' '},{"after":12,'
run bench "$tiny" --quick --json --threads 1 --context 1
out_has "bench, context of one" '"context":1,"tokens":1' '"prefill":[{"tokens":1,' '"decode":[{"after":0,'

bad 2 "needs a model FILE" bench
bad 1 "No such file" bench "$work/nowhere.slm2"
bad 2 "--repeats" bench "$tiny" --repeats 2
bad 2 "--repeats" bench "$tiny" --repeats 100
bad 2 "--tokens" bench "$tiny" --tokens 0
bad 2 "--tokens: 9 tokens do not fit: this context allows 8" bench "$tiny" --tokens 9 --context 8
bad 2 "--prefill: 9 tokens do not fit: this context allows 8" bench "$tiny" --prefill 9 --context 8
bad 2 "--decode: 5 tokens do not fit: this context allows 4" bench "$tiny" --decode 5 --tokens 4 --context 8
bad 2 "--context" bench "$tiny" --context 4294967295
bad 2 '--prefill: "0"' bench "$tiny" --prefill 0
bad 2 '--prefill: ""' bench "$tiny" --prefill 1,
bad 2 '--decode: "x"' bench "$tiny" --decode 1,x
bad 2 '--decode: "4294967296"' bench "$tiny" --decode 4294967296
bad 2 "more than 16 lengths" bench "$tiny" --decode 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
bad 2 "--backend" bench "$tiny" --backend abacus
bad 2 "--threads" bench "$tiny" --threads 0
