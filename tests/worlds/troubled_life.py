"""What the Hypothesis machines of lives have in common: sandboxes, and calls about them that anything may befall.

Every call may be cut short at any of its port calls, and a rival may make a whole call of his own there.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from domain.ipam.audit import is_clean
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from ports.datastore import Blocks, WorkloadEndpointKey
from usecases.check_ipam import check_ipam
from worlds.ipam_world import NEVER, NODES
from worlds.scheduler import DIE_AFTER, DIE_BEFORE, LOSE_REPLY, PROCEED
from worlds.troubled_ports import Outside

SPACE = "shop"
DUAL = {"assign_ipv6": "true"}
CALM = (PROCEED, 0, None, 0)
deliveries = st.sampled_from([True, True, True, False])
numbers = st.integers(0, 5)
nodes = st.sampled_from(NODES)


def troubles_by(rivals: tuple[str | None, ...], last_moment: int):
    """What may befall a call, and when; `rivals` are names that `_rival` knows."""
    fates, moments = st.sampled_from([PROCEED, LOSE_REPLY, DIE_BEFORE, DIE_AFTER]), st.integers(1, last_moment)
    return st.one_of(st.just(CALM), st.tuples(fates, moments, st.sampled_from(rivals), moments))


def endpoint_key(pod: str) -> WorkloadEndpointKey:
    return WorkloadEndpointKey(SPACE, f"n-k8s-{pod.replace('-', '--')}-eth0")


class TroubledLife(RuleBasedStateMachine):
    """Its heirs have `_rival`, a whole call or change by somebody else, and `_take_down`, the DEL of a sandbox."""

    def __init__(self, world) -> None:
        super().__init__()
        self.world = world
        self.sandboxes: list = []
        self.busy: set[str] = set()  # pods with a call at work: kubelet makes no other call about them meanwhile
        self.made = 0

    def up(self) -> list:
        """Those that were answered, and no DEL yet; their pods may be gone."""
        return [one for one in self.sandboxes if one.addresses]

    def _outside(self, trouble) -> Outside:
        fate, at, rival, rival_at = trouble
        return Outside(self.world, fate, at, self._rival(rival), rival_at)

    def _calm(self) -> Outside:
        return Outside(self.world, PROCEED, 0, None, 0)

    def _create_endpoint(self, pod: str, node: str) -> None:
        key = endpoint_key(pod)
        self.world.store.create(key, WorkloadEndpoint(Metadata(key.name, SPACE), node=node, pod=pod), NEVER)

    def _require_nothing_left(self) -> None:
        self.world.check_at_rest(set())
        assert all(stored.record.is_empty() for stored in self.world.store.list(Blocks(), NEVER))
        findings = check_ipam(self.world.work(), self.world.cluster).findings
        assert is_clean(findings), findings
