"""The life of names whose addresses are kept: a Hypothesis machine over the memory adapters (F01).

Pods of a StatefulSet and pods that share a name by their annotation come and go on three nodes, a node is lost with
what runs there, plain pods compete for few addresses, an operator changes pools and settings, the original's own tools
free what they take for leaked, time passes. Every call may be cut short at any of its port calls, and a rival may make
a whole call of his own there. What must hold:

- no two pods that the API server has, and that were answered, have the same address, and each holds its own;
- an ADD that nothing disturbs gives a name back what is kept for it and unused;
- once everybody has gone, and time has passed, garbage collection leaves nothing.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from adapters.memory.cluster import MemoryCluster
from adapters.memory.log import RecordingLog
from adapters.memory.node import MemoryNode
from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings, KeepAddresses, NetConf
from domain.cni.request import CniArgs, Request
from domain.ipam.address import Address
from domain.ipam.block import KEPT_BY
from domain.ipam.errors import IpamError, StillContended
from domain.ipam.kept import is_unused, kept_in
from domain.ipam.release import Release
from domain.workload.annotations import KEEP_ADDRESSES
from domain.workload.kept_wish import wished_name
from domain.workload.pod import OwnerReference, Pod
from ports.datastore import Blocks
from ports.errors import PortError
from usecases.calls.call import Call
from usecases.collect_ipam import Sweep, collect_ipam
from usecases.ipam.free_addresses import free_handle
from usecases.ipam.release_listed import release_listed
from usecases.release_addresses import release_addresses
from worlds.ipam_world import NEVER, NODES, World, answer_of
from worlds.scheduler import Died
from worlds.troubled_life import DUAL, SPACE, TroubledLife, deliveries, endpoint_key, nodes, numbers, troubles_by
from worlds.troubled_ports import Outside

NETWORK = "net"
SECONDS = 1000  # for which an address is kept
SETTINGS = KeepAddresses(seconds=SECONDS, max_per_node=0, max_pool_percent=50)
WEB, SHARED, PLAIN = (
    "web-0",
    "db",
    "plain",
)  # a pod of a StatefulSet, one of those that share a name, one like any other


class KeptWorld(World):
    """Its pods are those of one namespace; `made` counts what was ever made."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.cluster = MemoryCluster({SPACE: {}})
        self.made = 0
        self.settings = SETTINGS
        self.node = MemoryNode("host")
        self.log = RecordingLog()

    def runtime(self, store=None, cluster=None):
        runtime = super().runtime(store)
        runtime.cluster = cluster or self.cluster
        runtime.node, runtime.log = self.node, self.log
        return runtime

    def pod(self, name: str, node: str = NODES[0], *, keep: str = "", owner: str = "", **fields: object) -> Pod:
        """A pod as the API server has it from now on, whoever had that name before."""
        self.made += 1
        owners = (OwnerReference("apps/v1", owner, "web", "owner-uid", controller=True),) if owner else ()
        annotations = {KEEP_ADDRESSES: keep} if keep else {}
        made = {"uid": f"uid-{self.made}", "owners": owners, "annotations": annotations, "node": node, **fields}
        self.cluster.pods[SPACE, name] = Pod(name, SPACE, **made)
        return self.cluster.pods[SPACE, name]

    def call(self, pod: Pod, container: str, verb: str = "ADD", node: str = "", **ipam: object) -> Call:
        """What the network plugin asks about a pod that it has read; the DEL of one may know nothing of it."""
        keep_as = wished_name(pod, self.settings) if verb == "ADD" else None
        wishes = {"keep_addresses": self.settings, "keep_as": keep_as, **ipam}
        netconf = NetConf(
            cni_version="1.0.0",
            name=NETWORK,
            nodename=node or pod.node,
            ipam=IpamSettings(type="calico-ipam", **wishes),
        )
        args = CniArgs(None, pod_name=pod.name, pod_namespace=SPACE)
        return Call(Request(verb, container, "", "eth0", "", ()), args, netconf, "", NEVER)

    def answer(self, call: Call, store=None, cluster=None, *, delivered: bool = True) -> frozenset[Address]:
        """The addresses of one ADD; undone on failure, and if the answer cannot be delivered."""
        result = answer_of(call, self.runtime(store, cluster), delivered=delivered)
        return frozenset(ip.address.address for ip in result.ips)

    def add_pod(self, pod: Pod, container: str = "", **ipam: object) -> list[str]:
        return sorted(map(str, self.answer(self.call(pod, container or f"c-{pod.uid}", **ipam))))

    def del_pod(self, pod: Pod, container: str = "", store=None, cluster=None, **fields: object) -> None:
        release_addresses(self.call(pod, container or f"c-{pod.uid}", "DEL", **fields), self.runtime(store, cluster))

    def kept(self, name: str):
        """Each address that is the name's, and who has it as the block says."""
        found = {}
        for stored in self.store.list(Blocks(), NEVER):
            for ordinal, holder in kept_in(stored.record):
                if holder.handle == f"{NETWORK}.kept.{SPACE}.{name}":
                    found[stored.record.cidr.at(ordinal)] = holder
        return found


class Sandbox:
    """One attempt to network a pod. `addresses` are what it was answered; None before, and after its DEL was sent."""

    def __init__(self, pod: Pod, container: str) -> None:
        self.pod, self.container = pod, container
        self.addresses: frozenset[Address] | None = None


RIVALS = (None, "end", "start", "again", "lose", "leaks", "late", "switch", "strict")
troubles = troubles_by(RIVALS, 14)
kinds = st.sampled_from([WEB, WEB, SHARED, SHARED, PLAIN])


class KeptLife(TroubledLife):
    def __init__(self) -> None:
        super().__init__(KeptWorld())
        self.strict = self.disabled = False

    # --- objects -----------------------------------------------------------------------------------------------------

    def is_there(self, sandbox: Sandbox) -> bool:
        found = self.world.cluster.pods.get((SPACE, sandbox.pod.name))
        return found is not None and found.uid == sandbox.pod.uid

    def live(self) -> list[Sandbox]:
        return [one for one in self.up() if self.is_there(one)]

    def _make_pod(self, kind: str, node: str) -> Pod:
        self.made += 1
        if kind == WEB:
            self._forget(WEB)  # its controller makes one only when the one before is gone from the API server
            pod = self.world.pod(WEB, node, owner="StatefulSet")
        elif kind == SHARED:
            pod = self.world.pod(f"db-{self.made}", node, keep=SHARED)
        else:
            pod = self.world.pod(f"plain-{self.made}", node)
        self._create_endpoint(pod.name, node)
        return pod

    def _forget(self, name: str) -> None:
        if self.world.cluster.pods.pop((SPACE, name), None) is not None:
            self.world.store.delete(endpoint_key(name), None, NEVER)

    @precondition(lambda self: self.sandboxes)
    @rule(number=numbers)
    def lose(self, number: int) -> None:
        """By force, as when its node is lost: whether its sandbox is taken down ever, or late, or not."""
        sandbox = self.sandboxes[number % len(self.sandboxes)]
        if self.is_there(sandbox):
            self._forget(sandbox.pod.name)

    @rule(seconds=st.sampled_from([1, 60, SECONDS // 2, SECONDS + 1]))
    def wait(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @rule()
    def switch(self) -> None:
        self.disabled = not self.disabled
        self.world.switch_pool(disabled=self.disabled)

    @rule()
    def turn_strict(self) -> None:
        self.strict = not self.strict
        self.world.make_strict(strict=self.strict)

    # --- calls -------------------------------------------------------------------------------------------------------

    @rule(kind=kinds, node=nodes, trouble=troubles, delivered=deliveries)
    def start(self, kind: str, node: str, trouble, delivered: bool) -> None:
        self._start(kind, node, self._outside(trouble), delivered=delivered)

    @precondition(lambda self: self.sandboxes)
    @rule(number=numbers, trouble=troubles)
    def network_again(self, number: int, trouble) -> None:
        """A new sandbox for a pod, as when the runtime has given an earlier one up."""
        self._again(number, self._outside(trouble))

    @precondition(lambda self: self.sandboxes)
    @rule(number=numbers, trouble=troubles)
    def end(self, number: int, trouble) -> None:
        """Any DEL: a first one, a late one, one more."""
        self._take_down(self.sandboxes[number % len(self.sandboxes)], self._outside(trouble))

    @precondition(lambda self: self.up())
    @rule(number=numbers, trouble=troubles)
    def end_and_remove(self, number: int, trouble) -> None:
        """As a pod goes when nothing goes wrong."""
        sandbox = self.up()[number % len(self.up())]
        self._take_down(sandbox, self._outside(trouble))
        if self.is_there(sandbox):
            self._forget(sandbox.pod.name)

    @precondition(lambda self: self.up())
    @rule(number=numbers)
    def end_by_the_original(self, number: int) -> None:
        """It knows the container's handle only."""
        sandbox = self.up()[number % len(self.up())]
        sandbox.addresses = None
        free_handle(self.world.work(), f"{NETWORK}.{sandbox.container}")

    @rule()
    def leaks(self) -> None:
        """The original's collection: what a pod has that the API server does not know goes."""
        gone = [
            Release(stored.record.cidr.at(ordinal), holder.handle, stored.record.sequences.get(ordinal))
            for stored in self.world.store.list(Blocks(), NEVER)
            for ordinal, holder in kept_in(stored.record)
            if "pod" in holder.secondary and (SPACE, holder.secondary["pod"]) not in self.world.cluster.pods
        ]
        release_listed(self.world.work(), gone)

    @rule(trouble=troubles)
    def collect(self, trouble) -> None:
        outside = self._outside(trouble)
        self.world.clock.advance(200)
        self._survive(
            lambda: collect_ipam(self.world.work(outside.store), Sweep(leaked=True), outside.cluster), outside
        )

    def _rival(self, what: str | None):
        """A whole call, or change, by somebody else."""

        def end() -> None:
            for sandbox in [one for one in self.up() if one.pod.uid not in self.busy][:1]:
                self._take_down(sandbox, self._calm())

        def late() -> None:
            for sandbox in [one for one in self.sandboxes if not self.is_there(one)][-1:]:
                self._take_down(sandbox, self._calm())

        found = {
            "end": end,
            "late": late,
            "start": lambda: self._start(WEB if self.made % 2 else SHARED, NODES[1], self._calm()),
            "again": lambda: self._again(0, self._calm()),
            "lose": lambda: self.lose(0) if self.sandboxes else None,
            "leaks": self.leaks,
            "switch": self.switch,
            "strict": self.turn_strict,
        }
        return found.get(what or "")

    def _start(self, kind: str, node: str, outside: Outside, *, delivered: bool = True) -> None:
        if len(self.live()) >= 6:
            return
        pod = self._make_pod(kind, node)
        self._network(self._add(pod), outside, delivered=delivered)

    def _again(self, number: int, outside: Outside) -> None:
        there = [one for one in self.sandboxes if self.is_there(one) and one.pod.uid not in self.busy]
        if there:
            self._network(self._add(there[number % len(there)].pod), outside)

    def _add(self, pod: Pod) -> Sandbox:
        self.made += 1
        self.sandboxes.append(Sandbox(pod, f"c{self.made}"))
        return self.sandboxes[-1]

    def _survive(self, action, outside: Outside) -> object:
        """The call's answer, or None if it failed in one of the ways that it may."""
        try:
            return action()
        except StillContended as error:
            raise AssertionError("a name is wedged") from error
        except (Died, CniError, IpamError, PortError):
            outside.disturbed = True
            return None

    def _network(self, sandbox: Sandbox, outside: Outside, *, delivered: bool = True) -> None:
        call = self.world.call(sandbox.pod, sandbox.container, **DUAL)
        keep_as = call.netconf.ipam.keep_as
        waiting = self._waiting(keep_as.name) if keep_as else set()
        for earlier in self.sandboxes:
            if earlier.pod.uid == sandbox.pod.uid and earlier is not sandbox:
                earlier.addresses = None  # the pod has left that sandbox
        self.busy.add(sandbox.pod.uid)
        answered = self._survive(
            lambda: self.world.answer(call, outside.store, outside.cluster, delivered=delivered), outside
        )
        self.busy.discard(sandbox.pod.uid)
        if answered is None or not delivered:
            return
        sandbox.addresses = answered
        self._mark(sandbox)
        if not outside.disturbed:
            for version in {one.version for one in waiting}:
                of_version = {one for one in answered if one.version == version}
                assert of_version <= waiting, "what is kept for the name and unused is not given back"

    def _waiting(self, name: str) -> set[Address]:
        """What is kept for the name, and can be had wherever the pod is: all of it, or none."""
        kept = self.world.kept(name)
        if self.strict or self.disabled or not all(map(is_unused, kept.values())):
            return set()
        return {*kept}

    def _mark(self, sandbox: Sandbox) -> None:
        """What the network plugin writes about a pod, if it is still there."""
        stored = self.world.store.get(endpoint_key(sandbox.pod.name), NEVER)
        if stored is not None and self.is_there(sandbox):
            networks = tuple([address.host_cidr for address in sandbox.addresses])
            record = stored.record.replace(container_id=sandbox.container, ip_networks=networks)
            self.world.store.update(stored.key, record, stored.revision, NEVER)

    def _take_down(self, sandbox: Sandbox, outside: Outside) -> None:
        sandbox.addresses = None
        self.busy.add(sandbox.pod.uid)
        done = self._survive(
            lambda: self.world.del_pod(sandbox.pod, sandbox.container, outside.store, outside.cluster) or True, outside
        )
        self.busy.discard(sandbox.pod.uid)
        if done and not outside.disturbed:
            assert not self.world.held_by(f"{NETWORK}.{sandbox.container}")

    # --- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def records_are_sound(self) -> None:
        self.world.check()

    @invariant()
    def nobody_has_the_address_of_another(self) -> None:
        seen: dict[Address, str] = {}
        holders = {
            stored.record.cidr.at(ordinal): stored.record.holder(ordinal)
            for stored in self.world.store.list(Blocks(), NEVER)
            for ordinal in range(stored.record.cidr.size)
        }
        for sandbox in self.live():
            for address in sandbox.addresses or ():
                assert address not in seen, f"{address} is of {sandbox.pod.name} and of {seen[address]}"
                seen[address] = sandbox.pod.name
                holder = holders.get(address)
                assert holder is not None, f"{address} was freed under {sandbox.pod.name}"
                own = holder.handle == f"{NETWORK}.{sandbox.container}"
                assert own or holder.secondary.get(KEPT_BY) == sandbox.container, (sandbox.pod, holder)

    def teardown(self) -> None:
        """Everything ends, as runtimes end it; whoever was cut short is called again."""
        for sandbox in [*self.sandboxes, *reversed(self.sandboxes)]:
            self.world.del_pod(sandbox.pod, sandbox.container)
        for _, name in [*self.world.cluster.pods]:
            self._forget(name)
        for _ in range(2):  # what nobody has left begins its time with the first, and ends it with the second
            self.world.clock.advance(SECONDS + 100)
            collect_ipam(self.world.work(), Sweep(leaked=True), self.world.cluster)
        self._require_nothing_left()
