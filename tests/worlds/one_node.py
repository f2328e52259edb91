"""One node with every port in memory, and the calls that a runtime makes on it.

Tests of use cases run on this: they arrange ports, make a call as a runtime would, and look at what is left.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

from adapters.memory.clock import MemoryClock
from adapters.memory.cluster import MemoryCluster
from adapters.memory.dataplane import MemoryDataplane
from adapters.memory.datastore import MemoryDatastore
from adapters.memory.former import MemoryFormer
from adapters.memory.ipam_plugin import ScriptedIpamPlugin
from adapters.memory.lock import MemoryLock
from adapters.memory.log import RecordingLog
from adapters.memory.node import MemoryNode
from adapters.memory.readiness import MemoryReadiness
from domain.cluster import ClusterInformation, Node
from domain.cni.netconf import IpamSettings, NetConf
from domain.cni.request import CniArgs, Request
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Affinity, Attribute, Block, Owner, new_block
from domain.ipam.pools import Pool
from domain.ipam.request import AssignRequest
from domain.moment import rfc3339
from domain.resource import Metadata
from entrypoints.wiring.own_ipam import OwnIpamPlugin
from ports.clock import Deadline
from ports.datastore import (
    Affinities,
    AffinityKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    Handles,
    IPPoolKey,
    NodeKey,
    Profiles,
    WorkloadEndpoints,
)
from ports.errors import Unavailable
from ports.runtime import Runtime
from usecases.add_workload import add_workload
from usecases.assign_addresses import assign_addresses
from usecases.calls.call import Call
from usecases.calls.safeguards import Undo
from usecases.check_workload import check_workload
from usecases.delete_workload import delete_workload
from usecases.ipam.work import Work
from usecases.release_addresses import release_addresses

NEVER = Deadline(1e9)  # a server wants to be told a number
NODE = "node1"
OWNER = Owner(HOST, NODE)
PATH = ("/opt/cni/bin",)
POOL4, POOL6 = "10.244.0.0/24", "fd00:10:244::/120"


class OneNode:
    """`node1` of a ready cluster with one pool of each version, and a network namespace for each of some containers."""

    def __init__(
        self, *, pools: tuple[str, ...] = (POOL4, POOL6), own_ipam: bool = True, datastore=MemoryDatastore
    ) -> None:
        self.clock = MemoryClock()
        self.log = RecordingLog()
        self.datastore = datastore(self.clock)
        self.cluster = MemoryCluster()
        self.dataplane = MemoryDataplane(self.clock, self.log)
        self.plugin = ScriptedIpamPlugin(self.clock)
        self.own_ipam = own_ipam
        self.node = MemoryNode(NODE, {"/var/lib/calico/nodename": NODE})
        self.lock = MemoryLock(self.clock, self.log)
        self.readiness = MemoryReadiness(self.clock)
        self.former = MemoryFormer(self.runtime_for, OwnIpamPlugin(self.runtime()), self.plugin)
        self.set_ready(ready=True)
        self.add_node(NODE)
        for number, cidr in enumerate(pools):
            self.add_pool(f"pool{number}", cidr)
        for container in ("c1", "c2", "c3"):
            self.dataplane.network.add_namespace(netns(container))

    def runtime(self, datastore=None) -> Runtime:
        """A fresh one: each call of a plugin is a process of its own. `datastore` opens another datastore."""
        runtime = Runtime(
            datastore=datastore or (lambda: self.datastore),
            cluster=lambda: self.cluster,
            dataplane=lambda: self.dataplane,
            ipam_plugin=lambda: OwnIpamPlugin(runtime) if self.own_ipam else self.plugin,
            node=lambda: self.node,
            lock=lambda: self.lock,
            readiness=lambda: self.readiness,
            former=lambda: self.former,
            clock=self.clock,
            log=self.log,
        )
        return runtime

    def runtime_for(self, _netconf: NetConf) -> Runtime:
        """What another configuration leads to; a test may put something else in its place."""
        return self.runtime()

    def work(self) -> Work:
        return Work.on(self.runtime(), NEVER)

    def undo(self) -> Undo:
        return Undo(self.clock, self.log)

    # --- records ---------------------------------------------------------------------------------------------------

    def put(self, key, record):
        """Create or replace, unnoticed by the datastore's hooks."""
        if not isinstance(self.datastore, MemoryDatastore):
            return self._put(key, record)
        before, self.datastore.before = self.datastore.before, lambda _verb, _key: None
        try:
            return self._put(key, record)
        finally:
            self.datastore.before = before

    def _put(self, key, record):
        stored = self.datastore.get(key, NEVER)
        if stored is None:
            return self.datastore.create(key, record, NEVER)
        return self.datastore.update(key, record, stored.revision, NEVER)

    def set_ready(self, *, ready: bool | None) -> None:
        self.put(ClusterInformationKey("default"), ClusterInformation(Metadata("default"), datastore_ready=ready))

    def add_node(self, name: str, **labels: str) -> None:
        self.put(NodeKey(name), Node(Metadata(name, labels=labels)))

    def add_pool(self, name: str, cidr: str, **fields: object) -> None:
        self.put(IPPoolKey(name), Pool(Metadata(name), cidr, **fields))

    def add_block(self, cidr: str, owner: Owner | None = OWNER, *held: tuple[str, int], state: str = "confirmed"):
        """A block with its affinity (state "": none), claimed two minutes ago; `held` are (handle, count)."""
        key = BlockKey(Cidr.parse(cidr))
        now = self.clock.now() - 120 * 10**9
        block = new_block(key.cidr, owner, rfc3339(now), now)
        if owner is None:
            block = block.replace(affinity=None, claimed_at=None)
        elif state:
            self.put(AffinityKey(owner, key.cidr), Affinity(state))
        for handle, count in held:
            block = block.take(block.free(())[:count], Attribute(handle, {"node": "elsewhere"}))
        return self.put(key, block)

    # --- calls -----------------------------------------------------------------------------------------------------

    def call(self, verb: str = "ADD", container: str = "c1", ifname: str = "eth0", **fields: object) -> Call:
        """`fields` are those of CniArgs (as `args`), Request (`netns`, `netns_override`) and NetConf."""
        args = fields.pop("args", CniArgs())
        request = Request(
            verb,
            container,
            fields.pop("netns", netns(container)),
            ifname,
            "",
            PATH,
            fields.pop("netns_override", False),
        )
        deadline = Deadline(self.clock.monotonic() + fields.pop("seconds", 60.0))
        text = fields.pop("text", '{"the": "text"}')
        netconf = NetConf(
            **{"name": "net1", "ipam": IpamSettings(type="calico-ipam"), "cni_version": "1.0.0", **fields}
        )
        return Call(request, args, netconf, text, deadline)

    def add(self, container: str = "c1", **fields: object):
        """ADD of the network plugin, undone on failure as the entrypoint does."""
        return self.undoing(lambda undo: add_workload(self.call("ADD", container, **fields), self.runtime(), undo))

    def delete(self, container: str = "c1", **fields: object) -> None:
        delete_workload(self.call("DEL", container, **fields), self.runtime())

    def check(self, container: str = "c1", **fields: object) -> None:
        check_workload(self.call("CHECK", container, **fields), self.runtime())

    def assign(self, container: str = "c1", **fields: object):
        """ADD of the IPAM plugin, undone on failure as the entrypoint does."""
        return self.undoing(lambda undo: assign_addresses(self.call("ADD", container, **fields), self.runtime(), undo))

    def release(self, container: str = "c1", **fields: object) -> None:
        release_addresses(self.call("DEL", container, **fields), self.runtime())

    def undoing(self, action):
        undo = self.undo()
        try:
            return action(undo)
        except BaseException:
            undo.run()
            raise

    def request(self, handle: str = "net1.c1", v4: int = 1, v6: int = 0, **fields: object) -> AssignRequest:
        secondary = {"node": NODE, "timestamp": str(self.clock.now())}
        return AssignRequest(OWNER, handle, secondary, {4: v4, 6: v6}, **fields)

    # --- failures ----------------------------------------------------------------------------------------------------

    def fail(self, verb: str, kind: type, error: Exception | None = None, *, after: bool = False) -> None:
        """Every such verb on such a key or listing fails from now on; `after` it has happened: its answer is lost."""

        def hook(done: str, key: object) -> None:
            if done == verb and isinstance(key, kind):
                raise error or Unavailable("the datastore is away")

        if after:
            self.datastore.after = hook
        else:
            self.datastore.before = hook

    def heal(self) -> None:
        self.datastore.before = self.datastore.after = lambda _verb, _key: None

    @contextmanager
    def rival(self, verb: str, kind: type, move, *, times: int = 1):
        """Before the next `times` such verbs somebody else makes a move. Afterwards all of them must have happened."""
        left = [times]

        def hook(done: str, key: object) -> None:
            if left[0] and done == verb and isinstance(key, kind):
                left[0] -= 1
                move(key)

        self.datastore.before = hook
        yield
        self.heal()
        assert left == [0], f"{left[0]} of {times} moves never came"

    def touch(self, key) -> None:
        """Write a record back as it is: only its revision changes."""
        stored = self.datastore.get(key, NEVER)
        self.datastore.update(key, stored.record, stored.revision, NEVER)

    def remove(self, key) -> None:
        self.datastore.delete(key, None, NEVER)

    # --- what is there -----------------------------------------------------------------------------------------------

    def get(self, key):
        stored = self.datastore.get(key, NEVER)
        return None if stored is None else stored.record

    def block(self, cidr: str) -> Block | None:
        return self.get(BlockKey(Cidr.parse(cidr)))

    def blocks(self) -> list[str]:
        return [str(stored.key.cidr) for stored in self.datastore.list(Blocks(), NEVER)]

    def holders(self) -> dict[str, str | None]:
        """Who holds each address that is not free."""
        found = {}
        for stored in self.datastore.list(Blocks(), NEVER):
            assert stored.record.is_consistent(), stored.record
            for ordinal in range(stored.record.cidr.size):
                holder = stored.record.holder(ordinal)
                if holder is not None:
                    found[str(stored.record.cidr.at(ordinal))] = holder.handle
        return found

    def counts(self) -> dict[str, dict[str, int]]:
        """What each handle counts in each block."""
        listed = self.datastore.list(Handles(), NEVER)
        return {one.key.handle: {str(cidr): count for cidr, count in one.record.blocks.items()} for one in listed}

    def affinities(self, owner: Owner = OWNER) -> dict[str, str]:
        return {str(one.key.cidr): one.record.state for one in self.datastore.list(Affinities(owner), NEVER)}

    def endpoints(self):
        return [one.record for one in self.datastore.list(WorkloadEndpoints(), NEVER)]

    def profiles(self) -> list[str]:
        listed = self.datastore.list(Profiles(), NEVER)
        return [one.key.name for one in listed if one.key.name != "projectcalico-default-allow"]

    def host_links(self) -> list[str]:
        return sorted(self.dataplane.network.namespaces[""])

    def pod_links(self, container: str = "c1") -> list[str]:
        return sorted(set(self.dataplane.network.namespaces[netns(container)]) - {"lo"})

    def counts_match(self) -> bool:
        """Whether the handles count exactly what the blocks hold."""
        held: Counter[tuple[str | None, str]] = Counter()
        for stored in self.datastore.list(Blocks(), NEVER):
            block = stored.record
            held.update((block.holder(at).handle, str(block.cidr)) for at in range(block.cidr.size) if block.holder(at))
        counted = {(handle, cidr): count for handle, blocks in self.counts().items() for cidr, count in blocks.items()}
        return dict(held) == counted

    def leftovers(self) -> dict[str, object]:
        """Everything that a container could have left behind; empty when there is nothing."""
        found = {
            "addresses": self.holders(),
            "handles": self.counts(),
            "endpoints": self.endpoints(),
            "host links": self.host_links(),
            "pod links": [*self.pod_links("c1"), *self.pod_links("c2")],
            "unfinished": self.dataplane.unfinished,
        }
        return {what: left for what, left in found.items() if left}


def netns(container: str) -> str:
    return f"/run/netns/{container}"
