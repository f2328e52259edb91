#!/usr/bin/env python3
"""Writes the manifests that `kubectl apply -f` takes: one file per way to install, one for the way back, each complete.

    manifests.py [FOLDER]        into manifests/, or into another folder

The ways share most of their text, which is in manifests/parts; what differs is in the table below. An operator reads
one file from top to bottom, so the files are made, and kept in version control as they are.

Invariant: equal parts give equal files, and no word between two at signs is left in one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # run by its path, a script finds what is beside it only

from entrypoints.version import VERSION  # noqa: E402 - not before it can be found

FOLDER = ROOT / "manifests"
PARTS = FOLDER / "parts"
CALICOS_ACCOUNT = "calico-cni-plugin"
OUR_ACCOUNT = "tortie-cni-plugin"  # where Calico has its own, which is not to be touched
# Of Calico's kinds those that the plugins and `tortie init` read or write.
DEFINED = {
    "blockaffinities": "BlockAffinity",
    "clusterinformations": "ClusterInformation",
    "ipamblocks": "IPAMBlock",
    "ipamconfigs": "IPAMConfig",
    "ipamhandles": "IPAMHandle",
    "ippools": "IPPool",
    "ipreservations": "IPReservation",
}

PLUGINS_MOUNT = """\
            - name: other-plugins
              mountPath: /opt/cni/bin
              readOnly: true
"""
PLUGINS_VOLUME = """\
        # The plugins that are on the node already, such as portmap: they are copied into the new folder, too.
        - name: other-plugins
          hostPath:
            path: /opt/cni/bin
            type: DirectoryOrCreate
"""
UPGRADE_VOLUME = """\
        # What host-local has reserved, a file for each address.
        - name: host-local
          hostPath:
            path: /var/lib/cni/networks
            type: DirectoryOrCreate
"""

WAIT = """\
            # The node becomes ready once the first records are there; until then the installation is tried again.
            - name: CNI_WAIT_FOR_DATASTORE
              value: "true"
"""


class Way(NamedTuple):
    """`head` is the file's first comment; `bin` and `net` are the folders on the node."""

    head: str
    account: str = OUR_ACCOUNT
    bin: str = "/opt/cni/bin"
    net: str = "/etc/cni/net.d"
    mtu: str = "0"
    fresh: bool = False
    upgrade: bool = False
    own_folder: bool = False


FRESH = """\
# tortie in a cluster without Calico: the resource definitions, the first pool, and the plugins on each node.
#
#   kubectl apply -f manifests/fresh.yaml
#   kubectl -n kube-system rollout status daemonset/tortie-node
#
# Before: have the image on the nodes or in a registry of yours, and set `image:` (three times). Set the pool, at
# `--pool` below, to what is free in your network. The CNI project's `loopback` and `portmap` have to be in
# /opt/cni/bin, as Kubernetes' own packages put them there.
#
# The plugins connect pods to their node. Between nodes it is you who routes: with one node nothing is to be done.
#
# Where Calico's definitions are installed do not apply this file: it would put its own, which check nothing, in their
# place. Take beside-calico.yaml or in-place-of-calico.yaml there.
#
# Back: uninstall.yaml, then `kubectl delete -f` this file. That deletes the definitions, and with them the records of
# all addresses: first the pods, then this.
"""
BESIDE = """\
# tortie beside a running Calico: the plugins lie on each node in a folder of their own, and nothing of Calico's is
# touched, neither on the nodes nor in the cluster. The runtime of a node uses them once you tell it so.
#
#   kubectl apply -f manifests/beside-calico.yaml
#   kubectl -n kube-system rollout status daemonset/tortie-node
#
# Before: have the image on the nodes or in a registry of yours, and set `image:` (twice). To try it on some nodes only,
# add a label of theirs to `nodeSelector`.
#
# Then, on one node after another, in /etc/containerd/config.toml, and restart containerd:
#
#   [plugins."io.containerd.grpc.v1.cri".cni]
#     bin_dir = "/opt/tortie/cni/bin"
#     conf_dir = "/opt/tortie/cni/net.d"
#
# New pods there are networked by tortie, with addresses of Calico's pools; those that run go on, and end as usual.
# Records are Calico's, so its node agent goes on routing and enforcing policy for both.
#
# Back: the two lines as they were. Then `kubectl delete -f` this file, and remove /opt/tortie from the nodes.
"""
IN_PLACE = """\
# tortie in place of Calico's CNI plugins, for a Calico that was installed by its manifests: its `calico` and
# `calico-ipam` on each node are replaced, and the network configuration; Calico's node agent, pools and records stay.
#
#   kubectl apply -f manifests/in-place-of-calico.yaml
#   kubectl -n kube-system rollout status daemonset/tortie-node
#
# Before: have the image on the nodes or in a registry of yours, and set `image:` (twice). Calico's own installer, which
# runs whenever its pod restarts, has to leave the programs as they are, and its node agent the kubeconfig:
#
#   kubectl -n kube-system set env daemonset/calico-node -c install-cni UPDATE_CNI_BINARIES=false
#   kubectl -n kube-system set env daemonset/calico-node -c calico-node CALICO_MANAGE_CNI=false
#
# Where Calico's operator manages the installation it undoes both: take beside-calico.yaml there.
#
# Back: uninstall.yaml, which puts back what was replaced; `kubectl delete -f` this file; and the two commands above,
# with UPDATE_CNI_BINARIES- and CALICO_MANAGE_CNI- at their ends.
"""
UNINSTALL = """\
# The way back: on each node what was there before the first installation is put back, and what was not there goes.
#
#   kubectl apply -f manifests/uninstall.yaml
#   kubectl -n kube-system rollout status daemonset/tortie-node
#   kubectl -n kube-system logs --selector app.kubernetes.io/component=node --prefix
#
# Then `kubectl delete -f` the file that has installed: this DaemonSet has the name of that one's, and goes with it.
#
# Where somebody else has replaced one of our files meanwhile nothing is changed on that node, its pod fails and says
# which file; the nodes after it wait. Calico's own installer does so with the configuration when its pod has restarted:
# then add --force to `args`. After beside-calico.yaml there is nothing to put back: remove /opt/tortie.
"""
FROM_HOST_LOCAL = """\
# As in-place-of-calico.yaml, for nodes whose pods have addresses of host-local so far: before anything is installed,
# they become calico-ipam's. Meanwhile no pod of the cluster starts or ends.
#
#   kubectl apply -f manifests/from-host-local.yaml
#   kubectl -n kube-system rollout status daemonset/tortie-node
#
# Before: have the image on the nodes or in a registry of yours, and set `image:` (three times). There has to be a pool
# that has the nodes' pod ranges in it. Which addresses cannot be moved, and what to do about them: docs/upgrade.md.
# Calico's own installer has to leave the programs as they are, and its node agent the kubeconfig:
#
#   kubectl -n kube-system set env daemonset/calico-node -c install-cni UPDATE_CNI_BINARIES=false
#   kubectl -n kube-system set env daemonset/calico-node -c calico-node CALICO_MANAGE_CNI=false
#
# Afterwards in-place-of-calico.yaml takes this file's place: `kubectl apply -f` that one, then
# `kubectl delete clusterrole,clusterrolebinding tortie-upgrade`. There is no way back to host-local.
"""
BESIDE_ROOT = "/opt/tortie/cni"
WAYS = {
    "fresh.yaml": Way(FRESH, account=CALICOS_ACCOUNT, mtu="1500", fresh=True),
    "beside-calico.yaml": Way(BESIDE, bin=f"{BESIDE_ROOT}/bin", net=f"{BESIDE_ROOT}/net.d", own_folder=True),
    "in-place-of-calico.yaml": Way(IN_PLACE),
    "from-host-local.yaml": Way(FROM_HOST_LOCAL, upgrade=True),
}


def part(name: str, **words: str) -> str:
    """A part with its placeholders filled in; they are in capitals between at signs."""
    text = (PARTS / f"{name}.yaml").read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@\n" if value.endswith("\n") or not value else f"@{word}@", value)
    return text


def plugin_account(account: str) -> str:
    """rbac.yaml without its first comment, for an account of that name."""
    text = (FOLDER / "rbac.yaml").read_text()
    _, _, documents = text.partition("\napiVersion")
    return "apiVersion" + documents.replace(CALICOS_ACCOUNT, account)


def definitions() -> list[str]:
    made = [part("definition", PLURAL=plural, SINGULAR=kind.lower(), KIND=kind) for plural, kind in DEFINED.items()]
    made[0] = (
        "# Calico's resources, as far as the plugins need them. Calico's own definitions say more about each.\n"
        + made[0]
    )
    return made


def documents(way: Way) -> list[str]:
    image = f"tortie:{VERSION}"
    upgrade = part("upgrade-container", IMAGE=image) if way.upgrade else ""
    node = part(
        "node",
        UPGRADE=upgrade,
        WAIT=WAIT if way.fresh else "",
        PLUGINS_MOUNT=PLUGINS_MOUNT if way.own_folder else "",
        PLUGINS_VOLUME=(PLUGINS_VOLUME if way.own_folder else "") + (UPGRADE_VOLUME if way.upgrade else ""),
        IMAGE=image,
        ACCOUNT=way.account,
        BIN=way.bin,
        NET=way.net,
    )
    return [
        *(definitions() if way.fresh else ()),
        "# What the plugins may do, and nothing more.\n" + plugin_account(way.account),
        *([part("init", IMAGE=image)] if way.fresh else ()),
        part("settings", MTU=way.mtu),
        part("node-account", ACCOUNT=way.account),
        *([part("upgrade-account")] if way.upgrade else ()),
        node,
    ]


def manifest(way: Way) -> str:
    return whole(way.head, documents(way))


def whole(head: str, parts: list[str]) -> str:
    text = head + "---\n" + "---\n".join(parts)
    if left := re.search(r"@[A-Z_]+@", text):
        sys.exit(f"packaging/manifests.py fills in no {left[0]}")
    return text


def files() -> dict[str, str]:
    """Name → text of each file."""
    back = whole(UNINSTALL, [part("uninstall", IMAGE=f"tortie:{VERSION}")])
    return {**{name: manifest(way) for name, way in WAYS.items()}, "uninstall.yaml": back}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
