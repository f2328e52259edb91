"""A cluster of two nodes under a random mix of pod churn and faults; then everything is healed, drained and counted.

    python tests/integration/runtimes/chaos.py --minutes 30 --seed 7 --bin dist/linux-amd64

Each line of the log has the second, the number of the deed and what it was, so that a violation can be traced; the same
seed gives the same deeds in the same order. When they meet what they are done to is the machine's to say.

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

from integration.runtimes.cluster import KubeCluster, KubeNode, template  # noqa: E402 - found by the path above
from integration.runtimes.nodes import Rack, children  # noqa: E402
from integration.runtimes.starts import Starts  # noqa: E402
from services.kube_client import Refused  # noqa: E402

APPS = ("red", "green", "blue")
MOST = 12
PLUGINS = ("calico", "calico-ipam", "portmap")


class Chaos:
    """Deeds are chosen by weight; one that breaks something registers how it is mended, and a later one mends it."""

    def __init__(self, cluster: KubeCluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.begun = time.monotonic()
        self.count = 0
        self.broken: dict[str, Callable[[], object]] = {}
        self._deeds: list[tuple[int, Callable[[], str]]] = [
            (10, self.scale),
            (5, self.roll),
            (5, self.end_pod),
            (8, self.kill_plugin),
            (3, self.kill_runtime),
            (3, self.kill_kubelet),
            (2, self.kill_apiserver),
            (2, self.kill_etcd),
            (3, self.pause),
            (1, self.pause_apiserver),
            (2, self.lose_replies),
            (2, self.fill_disk),
            (1, self.lose_node),
        ]

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:8.1f} #{self.count} {text}", flush=True)

    def run(self, minutes: float) -> None:
        ends = self.begun + minutes * 60
        while time.monotonic() < ends:
            self.count += 1
            deed = self.random.choices([one for _, one in self._deeds], [weight for weight, _ in self._deeds])[0]
            pause = self.random.uniform(0.2, 4.0)
            try:
                self.say(deed())
            except (OSError, Refused, RuntimeError, TimeoutError) as error:
                self.say(f"{deed.__name__}: {type(error).__name__}: {str(error)[:200]}")
            time.sleep(pause)
            if self.broken and self.random.random() < 0.5:
                self.mend(self.random.choice(sorted(self.broken)))

    def mend(self, what: str) -> None:
        self.say(f"mend: {what}")
        self.broken.pop(what)()

    def node(self) -> KubeNode:
        return self.cluster.nodes[self.random.choice(("node-a", "node-b"))]

    # Pods come and go

    def scale(self) -> str:
        app, replicas = self.random.choice(APPS), self.random.randint(0, MOST)
        self.cluster.change(app, replicas=replicas)
        return f"scale {app} to {replicas}"

    def roll(self) -> str:
        app = self.random.choice(APPS)
        self.cluster.change(app, template=template(app, turn=str(self.count)))
        return f"roll {app}"

    def end_pod(self) -> str:
        pods = self.cluster.pods()
        if not pods:
            return "end a pod: there is none"
        name = self.random.choice(pods)["metadata"]["name"]
        grace = self.random.choice((0, 1))
        self.cluster.client.drop(f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds={grace}")
        return f"end {name} within {grace} s"

    # Something breaks

    def kill_plugin(self) -> str:
        """Whichever plugin runs within the next seconds, at whatever it is doing."""
        node, wait = self.node(), self.random.uniform(0.0, 0.03)
        ends = time.monotonic() + 3
        while time.monotonic() < ends:
            with suppress(KeyError, OSError):
                for pid in children(node.runtime.daemon.pid):
                    if Path(f"/proc/{pid}/comm").read_text().strip() in PLUGINS:
                        time.sleep(wait)
                        os.kill(pid, signal.SIGKILL)
                        return f"kill a plugin of {node.name}"
            time.sleep(0.005)
        return f"kill a plugin of {node.name}: none has run"

    def kill_runtime(self) -> str:
        node = self.node()
        node.runtime.kill()
        self.broken[f"containerd of {node.name}"] = node.runtime.launch
        return f"kill containerd of {node.name}"

    def kill_kubelet(self) -> str:
        node = self.node()
        node.kubelet.kill()
        self.broken[f"kubelet of {node.name}"] = node.launch
        return f"kill the kubelet of {node.name}"

    def kill_apiserver(self) -> str:
        self.cluster.server.kill()
        self.broken["API server"] = self.cluster.server.start
        return "kill the API server"

    def kill_etcd(self) -> str:
        self.cluster.server.etcd.kill()
        self.cluster.server.etcd.start()
        return "kill etcd and start it again"

    def pause(self) -> str:
        node = self.node()
        name, one = self.random.choice((("kubelet", node.kubelet), ("containerd", node.runtime.daemon)))
        one.send(signal.SIGSTOP)
        self.broken[f"pause of {name} of {node.name}"] = lambda: one.send(signal.SIGCONT)
        return f"pause {name} of {node.name}"

    def pause_apiserver(self) -> str:
        seconds = self.random.uniform(1, 12)
        self.cluster.server.pause()
        time.sleep(seconds)
        self.cluster.server.resume()
        return f"pause the API server for {seconds:.0f} s"

    def lose_replies(self) -> str:
        """What the API server answers is lost on its way to one node."""
        node = self.node()
        if f"lost replies to {node.name}" in self.broken:
            return f"lose replies to {node.name}: they are lost already"
        rule = ["INPUT", "-p", "tcp", "-s", self.cluster.server.address, "--sport", str(self.cluster.server.port)]
        rule += ["-m", "statistic", "--mode", "random", "--probability", "0.5", "-j", "DROP"]
        node.node.run("iptables", "-A", *rule)
        self.broken[f"lost replies to {node.name}"] = lambda: node.node.call("iptables", "-D", *rule)
        return f"lose half of the replies to {node.name}"

    def fill_disk(self) -> str:
        """Of /run, where locks and namespaces are."""
        node = self.node()
        node.node.call("sh", "-c", "dd if=/dev/zero of=/run/filler bs=1M count=100000 2>/dev/null")
        self.broken[f"full disk of {node.name}"] = lambda: node.node.call("rm", "-f", "/run/filler")
        return f"fill /run of {node.name}"

    def lose_node(self) -> str:
        node = self.node()
        node.lose()
        for what in [one for one in self.broken if one.endswith(node.name)]:
            self.broken.pop(what)  # all of it is in its memory
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
        cluster.add_node("node-a")
        cluster.add_node("node-b")
        cluster.install()
        cluster.await_installed(2)
        for app in APPS:
            cluster.deploy(app, 3)
        chaos = Chaos(cluster, asked.seed)
        with Starts(cluster.server.connect()) as starts:
            chaos.run(asked.minutes)
            for what in sorted(chaos.broken):
                chaos.mend(what)
            violations += healed(cluster, chaos)
        violations += starts.doubled + counted(cluster, chaos)
        chaos.say(f"{chaos.count} deeds, {len(starts.seconds())} pods became ready")
    for violation in violations:
        print(f"VIOLATION {violation}")
    print(f"RESULT: {'FAILED' if violations else 'passed'} (seed {asked.seed}, {asked.minutes:g} minutes)")
    return 1 if violations else 0


def healed(cluster: KubeCluster, chaos: Chaos) -> list[str]:
    chaos.say("all is mended: every pod has to come up")
    try:
        cluster.await_ready_nodes(2)
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
    except (TimeoutError, AssertionError):
        return [f"left: {one}" for one in cluster.remains()]
    return []


if __name__ == "__main__":
    sys.exit(main())
