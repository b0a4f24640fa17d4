# serve: over raw sockets, by serve.mjs; needs libmicrohttpd and node. Read by run.sh.
run serve "$tiny" --root "$work/nowhere"
if grep -q 'built without libmicrohttpd' "$work/err"; then
  refused "serve, not built" 1 "libmicrohttpd-dev"
  echo "SKIP serve: libmicrohttpd is not installed"
elif ! command -v node >/dev/null 2>&1; then
  echo "SKIP serve: node is not installed"
else
  checks=$((checks + 1))
  node tests/cli/serve.mjs "$slm2" "$work/serve" models/demo.slm2 "$tiny" || fail "serve"
fi
