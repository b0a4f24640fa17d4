#!/bin/sh
# Runs CMD in a network namespace of its own that has lo and one dead end: `out`, a veth with the default routes, whose other
# end answers nothing. Every packet that tries to leave the machine is counted there, whatever sent it, and written down by
# tests/browser/packets.c, which PACKETS is, compiled:
#   SLM2_NETNS_COUNT    the kernel's counter (a file with one number)
#   SLM2_NETNS_PACKETS  a line for each packet: protocol, from, to, what is readable in it
# First it proves that both work: nothing is seen in silence, an attempt to connect outside is. Afterwards it prints how many
# packets CMD tried to send. Exit: CMD's; 77 with a line why, where namespaces cannot be made; 1: the proof failed.
# Usage: tests/browser/netns.sh PACKETS CMD...
set -eu
if [ "${SLM2_NETNS:-}" != setting-up ]; then
  [ "$(id -u)" = 0 ] || { echo "SKIP netns: a network namespace needs root"; exit 77; }
  for tool in unshare ip; do
    command -v $tool >/dev/null || { echo "SKIP netns: $tool is not installed"; exit 77; }
  done
  unshare --net --mount true 2>/dev/null || { echo "SKIP netns: this system does not allow network namespaces"; exit 77; }
  SLM2_NETNS=setting-up exec unshare --net --mount "$0" "$@"
fi
program=$1
shift

mount -t sysfs none /sys # the namespace's own interfaces
export SLM2_NETNS_COUNT=/sys/class/net/out/statistics/tx_packets
sent() { cat $SLM2_NETNS_COUNT; }
# Nothing that the kernel says by itself: no link-local addresses, router solicitations, questions who has an address.
ip link set lo up
ip link add out type veth peer name nowhere
for end in out nowhere; do
  ip link set $end addrgenmode none
  ip link set $end up
done
ip address add 192.0.2.1/24 dev out
ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev out nud permanent
ip route add default via 192.0.2.2 dev out
ip -6 address add 2001:db8::1/64 dev out nodad 2>/dev/null &&
  ip -6 neighbour add 2001:db8::2 lladdr 02:00:00:00:00:02 dev out nud permanent &&
  ip -6 route add default via 2001:db8::2 dev out || true

export SLM2_NETNS_PACKETS="$(mktemp)"
"$program" out >"$SLM2_NETNS_PACKETS" &
watching=$!
trap 'kill $watching 2>/dev/null; rm -f "$SLM2_NETNS_PACKETS"' EXIT
sleep 2
silence=$(sent)
sleep 1
[ "$(sent)" = "$silence" ] || { echo "FAIL netns: packets are sent though nobody sends any"; exit 1; }
timeout 1 node -e 'fetch("http://198.51.100.7:99/").catch(() => {})' || true
control=$(sent)
[ "$control" -gt "$silence" ] || { echo "FAIL netns: a connection to the outside is not counted"; exit 1; }
grep -q '^tcp 192\.0\.2\.1:[0-9]* > 198\.51\.100\.7:99 ' "$SLM2_NETNS_PACKETS" ||
  { echo "FAIL netns: a connection to the outside is not written down"; exit 1; }

code=0
SLM2_NETNS=inside "$@" || code=$?
echo "netns: $(($(sent) - control)) packets tried to leave (the control: $((control - silence)))"
exit $code
