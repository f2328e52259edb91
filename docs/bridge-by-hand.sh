#!/bin/sh
# The tutorial's manual steps with my-custom-cni, in network namespaces of its own: nothing else on this machine changes.
#
#   docs/bridge-by-hand.sh [folder of the plugins]        needs root, iproute2, ping, and iptables or nftables
set -eu

folder=${1:-/opt/cni/bin}
bin=$(readlink -f "$folder") && [ -x "$bin/my-custom-cni" ] || {
    echo "$0: no my-custom-cni in $folder; say where it is installed: $0 FOLDER" >&2
    exit 2
}
[ "$(id -u)" = 0 ] || { echo "$0: it makes network namespaces and needs root" >&2; exit 2; }
work=$(mktemp -d)
host=bridge-host-$$ one=mycontainer-$$ other=another-$$

clean_up() {
    for name in "$one" "$other" "$host"; do ip netns del "$name" 2>/dev/null || true; done
    rm -r "$work"
}
trap clean_up EXIT
say() { printf '\n== %s\n' "$*"; }

for name in "$host" "$one" "$other"; do ip netns add "$name"; done
ip -n "$host" link set lo up

cat >"$work/net.json" <<CONF
{ "cniVersion": "1.0.0", "name": "my-bridge-net", "type": "my-custom-cni",
  "bridge": "mycni0", "isGateway": true, "ipMasq": true, "stateDir": "$work/state",
  "ipam": { "type": "host-local", "subnet": "10.244.0.0/24", "dataDir": "$work/networks",
            "routes": [{ "dst": "0.0.0.0/0" }] } }
CONF

# What a runtime does: the request in the environment, the configuration on stdin, the answer on stdout.
call() { # verb, container, namespace, configuration
    CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/var/run/netns/$3 CNI_IFNAME=eth0 CNI_PATH=$bin \
        nsenter --net="/var/run/netns/$host" "$bin/my-custom-cni" <"$4"
}

say "ADD two containers"
call ADD mycontainer123 "$one" "$work/net.json" | tee "$work/result.json"
echo
call ADD another456 "$other" "$work/net.json" >/dev/null

say "The host: the bridge with the gateway's address, and the host's end of the pair in it"
ip -n "$host" address show mycni0
ip -n "$host" -d link show eth0mycon

say "The container: address, routes, and lo"
ip -n "$one" address
ip -n "$one" route

say "Who has which address"
for file in "$work"/networks/my-bridge-net/10.*; do printf '%s: ' "${file##*/}" && tr '\r\n' '  ' <"$file" && echo; done

say "Ping the gateway and the other container"
ip netns exec "$one" ping -c 1 -W 2 10.244.0.1
ip netns exec "$one" ping -c 1 -W 2 10.244.0.3

say "CHECK: silent as long as all is well, an error once the interface is down"
{ sed '$ s/}[[:space:]]*$//' "$work/net.json" && printf ', "prevResult": ' && cat "$work/result.json" && echo '}'; } \
    >"$work/check.json"
call CHECK mycontainer123 "$one" "$work/check.json" && echo "all is well"
ip -n "$one" link set eth0 down
call CHECK mycontainer123 "$one" "$work/check.json" && exit 1 || echo

say "DEL, twice, and once more without the namespace"
call DEL mycontainer123 "$one" "$work/net.json"
call DEL mycontainer123 "$one" "$work/net.json"
ip netns del "$other"
call DEL another456 "$other" "$work/net.json"

say "What is left: the bridge with its address, for the next container"
ip -n "$host" -brief address
find "$work/networks" "$work/state" -type f
