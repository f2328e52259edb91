"""A cluster of two nodes under a random mix of pod churn and faults; then everything is healed, drained and counted.

    python tests/integration/runtimes/chaos.py --minutes 30 --seed 7 --bin dist/linux-amd64

Each line of the log has the second, the number of the deed and what it was, so that a violation can be traced; the same
seed gives the same deeds in the same order (`schedule`). What they meet when is the machine's to say.

Violations: two running pods with one address, at any moment; after the healing a pod that does not come up, or
anything that is left when all pods are gone.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from integration.runtimes import schedule  # noqa: E402 - found by the path above
from integration.runtimes.cluster import KubeCluster, template  # noqa: E402 - likewise
from integration.runtimes.kube_node import KubeNode  # noqa: E402 - likewise
from integration.runtimes.nodes import Rack, children  # noqa: E402 - likewise
from integration.runtimes.schedule import APPS, NODES, Deed, chosen  # noqa: E402 - likewise
from integration.runtimes.starts import Starts  # noqa: E402 - likewise
from services.kube_client import Refused  # noqa: E402 - likewise
from services.tcp_proxy import TcpProxy  # noqa: E402 - likewise

PLUGINS = ("calico", "calico-ipam", "portmap")
PACKETS_LOST, REPLIES_LOST = 0.5, 0.1


class Chaos:
    """Deeds of a schedule; one that breaks something registers how it is mended, and a later one mends it."""

    def __init__(
        self,
        cluster: KubeCluster,
        seed: int,
        now: Callable[[], float] = time.monotonic,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cluster, self.seed = cluster, seed
        self._now, self._rest = now, rest
        self.begun = now()
        self.count = 0
        self.broken: dict[str, Callable[[], object]] = {}
        self._proxies: dict[str, TcpProxy] = {}

    def say(self, text: str) -> None:
        print(f"{self._now() - self.begun:8.1f} #{self.count} {text}", flush=True)

    def run(self, minutes: float) -> None:
        ends = self.begun + minutes * 60
        while self._now() < ends:
            self.count += 1
            deed = schedule.deed(self.seed, self.count)
            try:
                self.say(getattr(self, deed.name)(deed))
            except (OSError, Refused, RuntimeError, TimeoutError) as error:
                self.say(f"{deed.name}: {type(error).__name__}: {str(error)[:200]}")
            self._rest(deed.rest)
            if deed.mends and self.broken:
                self.mend(chosen(deed.share, sorted(self.broken)))

    def mend(self, what: str) -> None:
        self.say(f"mend: {what}")
        self.broken.pop(what)()

    def mend_all(self) -> None:
        for what in sorted(self.broken):
            self.mend(what)

    def node(self, deed: Deed) -> KubeNode:
        return self.cluster.nodes[deed.node]

    # Pods come and go

    def scale(self, deed: Deed) -> str:
        self.cluster.change(deed.app, replicas=deed.replicas)
        return f"scale {deed.app} to {deed.replicas}"

    def roll(self, deed: Deed) -> str:
        self.cluster.change(deed.app, template=template(deed.app, turn=str(self.count)))
        return f"roll {deed.app}"

    def end_pod(self, deed: Deed) -> str:
        pods = sorted(pod["metadata"]["name"] for pod in self.cluster.pods())
        if not pods:
            return "end a pod: there is none"
        name = chosen(deed.share, pods)
        self.cluster.client.drop(f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds={deed.grace}")
        return f"end {name} within {deed.grace} s"

    # Something breaks

    def kill_plugin(self, deed: Deed) -> str:
        """Whichever plugin runs within the next seconds, at whatever it is doing."""
        node = self.node(deed)
        ends = time.monotonic() + 3
        while time.monotonic() < ends:
            with suppress(KeyError, OSError):
                for pid in children(node.runtime.daemon.pid):
                    if Path(f"/proc/{pid}/comm").read_text().strip() in PLUGINS:
                        time.sleep(deed.delay)
                        os.kill(pid, signal.SIGKILL)
                        return f"kill a plugin of {node.name}"
            time.sleep(0.005)
        return f"kill a plugin of {node.name}: none has run"

    def kill_runtime(self, deed: Deed) -> str:
        node = self.node(deed)
        node.runtime.kill()
        self.broken[f"containerd of {node.name}"] = node.runtime.launch
        return f"kill containerd of {node.name}"

    def kill_kubelet(self, deed: Deed) -> str:
        node = self.node(deed)
        node.kubelet.kill()
        self.broken[f"kubelet of {node.name}"] = node.launch
        return f"kill the kubelet of {node.name}"

    def kill_apiserver(self, deed: Deed) -> str:
        self.cluster.server.kill()
        self.broken["API server"] = self.cluster.server.start
        return "kill the API server"

    def kill_etcd(self, deed: Deed) -> str:
        self.cluster.server.etcd.kill()
        self.cluster.server.etcd.start()
        return "kill etcd and start it again"

    def pause_daemon(self, deed: Deed) -> str:
        node = self.node(deed)
        one = {"kubelet": node.kubelet, "containerd": node.runtime.daemon}[deed.daemon]
        one.send(signal.SIGSTOP)
        self.broken[f"pause of {deed.daemon} of {node.name}"] = lambda: one.send(signal.SIGCONT)
        return f"pause {deed.daemon} of {node.name}"

    def pause_apiserver(self, deed: Deed) -> str:
        self.cluster.server.pause()
        time.sleep(deed.away)
        self.cluster.server.resume()
        return f"pause the API server for {deed.away:.0f} s"

    def lose_packets(self, deed: Deed) -> str:
        """Those of the API server to one node: answers come late, and time runs out."""
        node = self.node(deed)
        server = self.cluster.server
        rule = ["INPUT", "-p", "tcp", "-s", server.address, "--sport", str(server.port)]
        rule += ["-m", "statistic", "--mode", "random", "--probability", str(PACKETS_LOST), "-j", "DROP"]
        return self._filter(f"lost packets to {node.name}", node, "filter", rule)

    def lose_replies(self, deed: Deed) -> str:
        """What the API server has done for a node is not heard of there: the answer is lost, the connection reset.

        Of connections that begin meanwhile, such as a plugin's.
        """
        node = self.node(deed)
        server, what = self.cluster.server, f"lost replies to {node.name}"
        if what in self.broken:
            return f"{what}: they are lost already"
        proxy = self._proxies[what] = TcpProxy(server.port, host=server.address, netns=f"/proc/{node.node.pid}/ns/net")
        lots = random.Random(deed.share)
        proxy.loses = lambda: lots.random() < REPLIES_LOST
        proxy.__enter__()
        rule = ["OUTPUT", "-p", "tcp", "-d", server.address, "--dport", str(server.port)]
        return self._filter(what, node, "nat", [*rule, "-j", "REDIRECT", "--to-ports", str(proxy.port)])

    def _filter(self, what: str, node: KubeNode, table: str, rule: list[str]) -> str:
        if what in self.broken:
            return f"{what}: they are lost already"
        self.broken[what] = lambda: (node.node.call("iptables", "-t", table, "-D", *rule), self._end_proxy(what))
        node.node.run("iptables", "-t", table, "-A", *rule)
        return what

    def _end_proxy(self, what: str) -> None:
        if proxy := self._proxies.pop(what, None):
            proxy.__exit__()

    def fill_disk(self, deed: Deed) -> str:
        """Of /run, where locks and namespaces are."""
        node = self.node(deed)
        node.node.call("sh", "-c", "dd if=/dev/zero of=/run/filler bs=1M count=100000 2>/dev/null")
        self.broken[f"full disk of {node.name}"] = lambda: node.node.call("rm", "-f", "/run/filler")
        return f"fill /run of {node.name}"

    def lose_node(self, deed: Deed) -> str:
        node = self.node(deed)
        node.lose()
        for what in [one for one in self.broken if one.endswith(node.name)]:
            self.broken.pop(what)  # all of it is in its memory
            self._end_proxy(what)
        self.broken[f"power of {node.name}"] = node.come_back
        return f"lose {node.name}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Kubernetes with our plugins, and everything goes wrong.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bin", type=Path, required=True)
    asked = parser.parse_args()
    print(f"chaos: seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    violations: list[str] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends
    with Rack() as rack, KubeCluster(rack, asked.bin.resolve()) as cluster:
        for name in NODES:
            cluster.add_node(name)
        cluster.install()
        cluster.await_installed(len(NODES))
        for app in APPS:
            cluster.deploy(app, 3)
        chaos = Chaos(cluster, asked.seed)
        with Starts(cluster.server.connect()) as starts:
            chaos.run(asked.minutes)
            chaos.mend_all()
            violations += healed(cluster, chaos)
        violations += starts.sightings.doubled + counted(cluster, chaos)
        chaos.say(f"{chaos.count} deeds, {len(starts.sightings.starts())} pods became ready")
    return verdict(violations, f"seed {asked.seed}, {asked.minutes:g} minutes")


def verdict(violations: list[str], run: str) -> int:
    """The exit code, once all of them are said."""
    for violation in violations:
        print(f"VIOLATION {violation}")
    print(f"RESULT: {'FAILED' if violations else 'passed'} ({run})")
    return 1 if violations else 0


def healed(cluster: KubeCluster, chaos: Chaos) -> list[str]:
    chaos.say("all is mended: every pod has to come up")
    try:
        cluster.await_ready_nodes(len(NODES))
        for app in APPS:
            cluster.change(app, replicas=4)
        for app in APPS:
            cluster.await_pods(app, 4, 300)
    except TimeoutError as error:
        return [f"does not heal: {error}"]
    return []


def counted(cluster: KubeCluster, chaos: Chaos) -> list[str]:
    chaos.say("all pods go: nothing may stay")
    try:
        cluster.clear()
        cluster.await_nothing(180)
    except TimeoutError as error:
        return [f"does not empty: {error}"]
    except AssertionError:
        return [f"left: {one}" for one in cluster.remains()] or ["left: something, and meanwhile it is gone"]
    return []


if __name__ == "__main__":
    sys.exit(main())
