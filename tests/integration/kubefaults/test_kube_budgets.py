"""How many requests an ADD and a DEL send to a real kube-apiserver, and that neither they nor their size grow (P01).

Invariant: an ADD sends at most 9 requests on a node that has a block to take from, at most 14 on one that claims its
first; a DEL at most 6, two more if earlier calls have left no notes, one more where only an old version's handle is
there, two more when a block gets empty. Without a setting that names the group each sends one more.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adapters.kubernetes.api import AHEAD
from integration.kubefaults.crowd import Crowd
from integration.kubefaults.kube_rig import NETWORK, KubeRig
from integration.plugin.host import Answer
from integration.plugin.store import IPAM
from integration.pods.world import Sandbox
from patience import TRIES

CROWD = 5000
FIRST, ADD, DEL = 14, 9, 6
UNNOTED, LEGACY, EMPTY, DISCOVERY = 2, 1, 2, 1


class Counted:
    """Requests and octets by what was called; the rig's node has no block to begin with."""

    def __init__(self, rig: KubeRig, **more: object) -> None:
        self.rig, self.more = rig, more
        self.requests: dict[str, int] = {}
        self.octets: dict[str, int] = {}
        self.slowest = 0.0

    def call(self, name: str, verb: str, sandbox: Sandbox, **more: object) -> Answer:
        self.rig.proxy.forget()
        answer, seconds = self.rig.timed(verb, sandbox, **self.more, **more)
        self.slowest = max(self.slowest, seconds)
        assert answer.exit == 0, answer
        self.requests[name], self.octets[name] = len(self.rig.proxy.asked), self.rig.proxy.size
        assert self.rig.proxy.refusals == []
        assert len({asked.connection for asked in self.rig.proxy.asked}) == 1  # nobody connects twice
        return answer

    def story(self) -> Counted:
        """Told again if the machine was so busy that what a call had read was too old for it, and asked for anew."""
        for _ in range(TRIES):
            self.slowest = 0.0
            self._tell()
            if self.slowest < AHEAD:
                break
        return self

    def _tell(self) -> None:
        rig = self.rig
        rig.new_node()
        first, second, old = rig.pod(), rig.pod(), rig.pod()
        self.call("first", "ADD", first)
        result = self.call("add", "ADD", second).result()
        self.call("check", "CHECK", second, prevResult=result)
        rig.add(old).result()
        self.call("del", "DEL", second)
        make_legacy(rig, old)
        rig.forget_notes()
        self.call("legacy", "DEL", old)
        self.call("empty", "DEL", first)
        self.call("again", "DEL", first)
        for one in (first, second, old):
            rig.gone(one)


def make_legacy(rig: KubeRig, sandbox: Sandbox) -> None:
    """As if a plugin of version 2.x had networked it: the handle bears the pod's name, not the container's."""
    ours, legacy = f"{NETWORK}.{sandbox.identity}", f"{sandbox.namespace}.{sandbox.pod}"
    rig.store.put(f"{IPAM}/handle/{legacy}", rig.store.handles()[ours])
    rig.store.drop(f"{IPAM}/handle/{ours}")
    for key, block in rig.store.blocks().items():
        for attribute in block["attributes"]:
            if attribute["handle_id"] == ours:
                attribute["handle_id"] = legacy
                rig.store.put(key, block)


def within_budget(counted: Counted, more: int = 0) -> None:
    limits = {"first": FIRST, "add": ADD, "del": DEL}
    limits |= {"legacy": DEL + UNNOTED + LEGACY, "empty": DEL + UNNOTED + EMPTY}
    assert counted.requests["legacy"] > counted.requests["del"]  # it was one
    over = {name: counted.requests[name] for name, limit in limits.items() if counted.requests[name] > limit + more}
    assert over == {}


def test_p01_calls_keep_within_their_budgets(rig: KubeRig) -> None:
    within_budget(Counted(rig).story())
    rig.everything_agrees()


def test_p01_finding_out_the_group_is_one_request(rig: KubeRig) -> None:
    """And it is the right one, whichever is served."""
    named, unnamed = Counted(rig).story(), Counted(rig, calico_api_group=None).story()
    within_budget(unnamed, DISCOVERY)
    assert {name: count - named.requests[name] for name, count in unnamed.requests.items()} == dict.fromkeys(
        named.requests, DISCOVERY
    )


@pytest.fixture
def crowd(rig: KubeRig) -> Iterator[Crowd]:
    with Crowd(rig.served.server, rig.kind) as crowd:
        yield crowd


def test_p01_nothing_grows_with_the_cluster(rig: KubeRig, crowd: Crowd) -> None:
    """With 5,000 blocks and affinities of other nodes calls send as many requests, and as many octets, as with none."""
    before = Counted(rig).story()
    crowd.fill(CROWD)
    assert crowd.seen() == {"ipamblocks": CROWD + 1, "blockaffinities": CROWD + 1}
    after = Counted(rig).story()
    within_budget(after)
    assert after.requests == before.requests
    for name, octets in after.octets.items():
        assert abs(octets - before.octets[name]) < 600, (name, before.octets, after.octets)  # names and versions differ
