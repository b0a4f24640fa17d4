#!/bin/sh
# Runs CMD in a network namespace of its own that has lo and one dead end: `out`, a veth with the default routes, whose other
# end answers nothing. Every packet that tries to leave the machine is counted there, whatever sent it:
#   cat /sys/class/net/out/statistics/tx_packets      (SLM2_NETNS=out says that CMD is inside)
# First it proves that the count works: nothing is counted in silence, an attempt to connect outside is. Afterwards it prints
# how many packets CMD tried to send. Exit: CMD's; 77 with a line why, where namespaces cannot be made; 1: the proof failed.
# Usage: tests/browser/netns.sh CMD...
set -eu
if [ "${SLM2_NETNS:-}" != setting-up ]; then
  [ "$(id -u)" = 0 ] || { echo "SKIP netns: a network namespace needs root"; exit 77; }
  for tool in unshare ip; do
    command -v $tool >/dev/null || { echo "SKIP netns: $tool is not installed"; exit 77; }
  done
  unshare --net --mount true 2>/dev/null || { echo "SKIP netns: this system does not allow network namespaces"; exit 77; }
  SLM2_NETNS=setting-up exec unshare --net --mount "$0" "$@"
fi

mount -t sysfs none /sys # the namespace's own interfaces
sent() { cat /sys/class/net/out/statistics/tx_packets; }
# Nothing that the kernel says by itself: no link-local addresses, router solicitations.
ip link set lo up
ip link add out type veth peer name nowhere
ip link set out addrgenmode none
ip link set nowhere addrgenmode none
ip address add 192.0.2.1/24 dev out
ip link set out up
ip link set nowhere up
ip route add default via 192.0.2.2 dev out
ip -6 address add 2001:db8::1/64 dev out nodad 2>/dev/null && ip -6 route add default via 2001:db8::2 dev out || true
sleep 2
silence=$(sent)
sleep 1
[ "$(sent)" = "$silence" ] || { echo "FAIL netns: packets are sent though nobody sends any"; exit 1; }
timeout 1 node -e 'fetch("http://198.51.100.7/").catch(() => {})' || true
control=$(sent)
[ "$control" -gt "$silence" ] || { echo "FAIL netns: a connection to the outside is not counted"; exit 1; }
sleep 4 # the last attempts to reach it

before=$(sent)
code=0
SLM2_NETNS=out "$@" || code=$?
echo "netns: $(($(sent) - before)) packets tried to leave (the control: $((control - silence)))"
exit $code
