#!/bin/bash
# A host to try the commands of a document on: sandbox.sh CLONE FOLDER-OF-PROGRAMS, the commands on standard input.
# Started in namespaces of its own. What is to be seen afterwards is copied from /run/tortie-documents to $KEEP.
set -eu
clone=$1 programs=$2 keep=$KEEP

memory() { mkdir -p "$1" && mount -t tmpfs -o mode=0755 tortie "$1"; }
memory /run
umask 022
mkdir -p /run/{tortie-documents,above,work,clone,programs,keep}
mount --bind "$keep" /run/keep
mount --bind "$programs" /run/programs
# What is written into the clone, or where a host has its files, goes elsewhere; what a host has of ours is hidden.
mount -t overlay -o "lowerdir=$clone,upperdir=/run/above,workdir=/run/work" tortie /run/clone
for place in /opt /etc /var/lib /var/log; do
    name=${place//\//-}
    mkdir "/run/above$name" "/run/work$name"
    mount -t overlay -o "lowerdir=$place,upperdir=/run/above$name,workdir=/run/work$name" tortie "$place"
done
for place in /dev/shm /opt/cni /etc/cni /var/lib/tortie /var/lib/cni /var/lib/calico /var/log/calico /tmp; do memory "$place"; done
chmod 1777 /tmp

ip link set lo up
ip link add uplink type veth peer name upstream
ip address add 192.0.2.2/24 dev uplink
ip link set upstream up
ip link set uplink up
ip route add default via 192.0.2.1 dev uplink
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding

trap 'cp /run/tortie-documents/* /run/keep' EXIT
cd /run/clone
export PATH=/run/programs:$PATH HOME=/root
unset NODENAME KUBECONFIG ETCD_ENDPOINTS DATASTORE_TYPE

{ cat <<'SHELL'
clone=$PWD
kubectl() {
    PYTHONPATH=$clone/tests ADMIN=$clone/admin.conf "$clone/.venv/bin/python" "$clone/tests/integration/documents/kubectl.py" "$@"
}
server() { # etcd, on its usual port, with nothing in it; or a cluster, whose administrator has admin.conf
    local data
    if [ "$1" = cluster ]; then
        [ ! -e "$clone/admin.conf" ] || return 0
        kubectl serve "$clone/admin.conf" >/run/cluster.log 2>&1 </dev/null &
        for _ in $(seq 1800); do
            [ -e "$clone/admin.conf" ] && return
            sleep 0.05
        done
        cat /run/cluster.log >&2
        return 1
    fi
    data=$(mktemp -d)
    "$ETCD" --data-dir "$data" --logger zap --log-level error >/run/etcd.log 2>&1 </dev/null &
    for _ in $(seq 1800); do
        (: </dev/tcp/127.0.0.1/2379) 2>/dev/null && return
        sleep 0.05
    done
    cat /run/etcd.log >&2
    return 1
}
ended() { # how a command did, and how it had to
    [ "$1" = "$2" ] || { echo "exit code $1 and not $2" >&2; exit 1; }
}
make() { # of what has been made already
    local machine=$(uname -m)
    [ -x "bin/${machine/x86_64/amd64}/calico" ] && set -- -o build "$@"
    command make --no-print-directory -o dist "$@"
}
SHELL
cat; } >/run/commands
bash /run/commands
