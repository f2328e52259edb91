"""One host that calls the executables of two implementations, and what both must agree on.

Records are in an etcd for plain containers, in Kubernetes for pods.
Invariant: nothing here knows which of the two is which, but that the operator's command is ours.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.plugin.host import PLUGINS, Answer, Container, Host
from integration.plugin.store import IPAM, EtcdRecords, cluster_records, node_record
from integration.pods.world import NAMESPACE, PodHost
from services.etcd import Etcd
from services.tcp_proxy import TcpProxy

NETWORK, NOWHERE = "net1", "/var/run/netns/none"
BLOCK, ENDPOINT = f"{IPAM}/assignment/", "/workloadendpoints/"


@dataclass(frozen=True)
class Implementation:
    """The folder of its executables."""

    name: str
    bin: Path

    def __str__(self) -> str:
        return self.name


class Pair:
    """`sides` are ours and the peer's; `reset` before anything else."""

    def __init__(self, sides: tuple[Implementation, Implementation], host: Host) -> None:
        self.sides = sides
        self.host = host
        self.store = host.store

    def both_ways(self) -> list[tuple[Implementation, Implementation]]:
        return [self.sides, self.sides[::-1]]

    def reset(self, *pools: str, block_size: int = 26, nodes: tuple[str, ...] = ()) -> None:
        records = cluster_records(*pools, block_sizes=dict.fromkeys(pools, block_size))
        for node in nodes:
            records |= {key: json.dumps(value, separators=(",", ":")) for key, value in node_record(node).items()}
        self.store.create(records)

    def given(self, side: Implementation, verb: str, container: Container, program: str) -> dict[str, str]:
        """The environment of a call: the implementation's network plugin finds its own IPAM plugin."""
        return self.host.environment(verb, container, CNI_PATH=f"{side.bin}:{PLUGINS}")

    def call(
        self, side: Implementation, verb: str, container: Container, program: str = "calico", **more: Any
    ) -> Answer:
        environment = self.given(side, verb, container, program)
        return self.host.raw(environment, json.dumps(self.host.netconf(**more)), program=side.bin / program)

    def add(self, side: Implementation, container: Container, program: str = "calico", **more: Any) -> str:
        """The one address that it gave."""
        (ip,) = self.call(side, "ADD", container, program, **more).result()["ips"]
        return str(ip["address"].partition("/")[0])

    def delete(self, side: Implementation, container: Container, program: str = "calico", **more: Any) -> None:
        self.call(side, "DEL", container, program, **more).silent()

    def container(self, number: int) -> Container:
        """One without a namespace, for the IPAM plugin alone."""
        return Container(f"interop{number:04d}", NOWHERE)

    def tortie(self, *words: str) -> Answer:
        environment = {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": self.store.settings["etcd_endpoints"]}
        return self.host.raw(environment, "", *words, program="tortie")

    def checks(self) -> None:
        """Blocks and handles agree, and `tortie ipam check` is clean."""
        self.store.check()
        answer = self.tortie("ipam", "check")
        assert answer.exit == 0, answer.stdout

    def affinities(self) -> dict[str, str]:
        """`<node> <block>` → state."""
        found = {}
        for key, record in self.store.under(f"{IPAM}/host/").items():
            node, _, cidr = key.partition("/ipv4/block/")
            found[f"{node} {cidr.replace('-', '/')}"] = record["state"]
        return found

    def text(self, part: str) -> str:
        """The one record with that in its key."""
        (text,) = [text for key, text in self.store.texts().items() if part in key]
        return text


class PodPair(Pair):
    """The same with pods, on Kubernetes."""

    def __init__(self, sides: tuple[Implementation, Implementation], host: PodHost) -> None:
        super().__init__(sides, host)
        self.pods = host

    def reset(self, *pools: str, block_size: int = 26, nodes: tuple[str, ...] = ()) -> None:
        super().reset(*pools, block_size=block_size, nodes=nodes)
        self.pods.cluster.add_namespace(NAMESPACE)

    def tortie(self, *words: str) -> Answer:
        return self.pods.tortie(*words)


def host_on_etcd(binaries: Path, etcd: Etcd, folder: Path, undo: ExitStack) -> Host:
    host = Host(binaries, folder, undo)
    proxy = undo.enter_context(TcpProxy(etcd.port, netns=host.net.path, port=23790))
    host.store = EtcdRecords(etcd, proxy.port)
    return host


def members(text: str) -> Any:
    """A record's value with the order of its members: objects as lists of pairs."""
    return json.loads(text, object_pairs_hook=lambda pairs: [list(pair) for pair in pairs])
