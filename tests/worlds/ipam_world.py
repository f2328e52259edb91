"""A small cluster over the memory datastore: three nodes, few addresses, and what must always hold about them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import pairwise

from adapters.memory.clock import START, MemoryClock
from adapters.memory.cluster import MemoryCluster
from adapters.memory.former import MemoryFormer
from adapters.memory.lock import MemoryLock
from adapters.memory.log import RecordingLog
from adapters.memory.node import MemoryNode
from domain.cluster import Node
from domain.cni.netconf import IpamSettings, NetConf
from domain.cni.request import CniArgs, Request
from domain.cni.result import Result
from domain.ipam.address import Address, Cidr
from domain.ipam.block import CONFIRMED, HOST, PENDING, PENDING_DELETION, Affinity, Owner
from domain.ipam.errors import IpamError
from domain.ipam.pools import AllocationConfig, Pool
from domain.ipam.release import Release
from domain.ipam.request import AssignRequest
from domain.moment import go_string
from domain.resource import Metadata
from ports.clock import Deadline
from ports.datastore import Affinities, AffinityKey, AllocationConfigKey, Blocks, Handles, IPPoolKey, NodeKey
from ports.errors import AlreadyExists, Missing
from ports.runtime import Runtime
from usecases.assign_addresses import assign_addresses
from usecases.calls.call import Call
from usecases.calls.safeguards import Undo
from usecases.configure_ipam import get_config, set_config
from usecases.ipam.affinities import release_host_affinities
from usecases.ipam.auto_assign import auto_assign
from usecases.ipam.free_addresses import free_handle, free_unfinished
from usecases.ipam.owners import addresses_of_handle
from usecases.ipam.release_listed import release_listed
from usecases.ipam.work import Work, guarded_write
from usecases.release_addresses import release_addresses
from worlds.remembering_datastore import RememberingDatastore

NEVER = Deadline(float("inf"))
NODES = ("node-a", "node-b", "node-c")
GONE = "node-z"  # has no record any more
POOL = Cidr.parse("10.9.0.0/28")  # four blocks of four addresses
POOL6 = Cidr.parse("fd09::/124")
VM = "net.vmi.shop.vm"  # the handle that the containers of a virtual machine share, one address of a version for all


def call_of(container: str, node: str, verb: str = "ADD", address: str = "", **ipam: str) -> Call:
    netconf = NetConf(cni_version="1.0.0", name="net", nodename=node, ipam=IpamSettings(type="calico-ipam", **ipam))
    return Call(
        Request(verb, container, "", "eth0", "", ()),
        CniArgs(Address.parse(address) if address else None),
        netconf,
        "",
        NEVER,
    )


def answer_of(call: Call, runtime: Runtime, *, delivered: bool = True) -> Result:
    """Of one ADD; all is undone on failure, as the entrypoint does, and if the answer cannot be delivered."""
    undo = Undo(runtime.clock, runtime.log)
    try:
        result = assign_addresses(call, runtime, undo)
    except BaseException:
        undo.run()
        raise
    if not delivered:
        undo.run()
    return result


class World:
    """`store` is shared; each call gets a runtime of its own over whatever view of the store it is given.

    `paged`: listings go page by page, so those that may lag are asked for; until `stand_still` they show a cluster
    without blocks. `together`: several records are written at once, and what may lag is read before the host's lock.
    """

    def __init__(
        self, *, strict: bool = False, cooldown: int = 0, paged: bool = False, together: bool = False, now: int = START
    ) -> None:
        self._checked = -1
        self.former = MemoryFormer(lambda _netconf: self.runtime(), None, None)
        self.clock = MemoryClock(now)
        self.store = RememberingDatastore(self.clock)
        self.store.lists_in_one_go = not paged
        self.store.writes_together = self.store.brings_along = together
        for node in NODES:
            self.store.create(NodeKey(node), Node(Metadata(node)), NEVER)
        self.store.create(IPPoolKey("p4"), Pool(Metadata("p4"), str(POOL), 30), NEVER)
        self.store.create(IPPoolKey("p6"), Pool(Metadata("p6"), str(POOL6), 126), NEVER)
        config = AllocationConfig(strict_affinity=strict, cooldown_seconds=cooldown)
        self.store.create(AllocationConfigKey(), config, NEVER)
        self.stand_still()

    def runtime(self, store=None) -> Runtime:
        log = RecordingLog()
        return Runtime(
            datastore=lambda: store or self.store,
            cluster=MemoryCluster,
            dataplane=lambda: None,
            ipam_plugin=lambda: None,
            node=lambda: MemoryNode("host"),
            lock=lambda: MemoryLock(self.clock, log),  # one lock each: the use cases must be right without it
            readiness=lambda: None,
            former=lambda: self.former,
            clock=self.clock,
            log=log,
        )

    def add(self, call: Call, store=None) -> frozenset[str]:
        """The addresses of one ADD."""
        return frozenset(str(ip.address.address) for ip in answer_of(call, self.runtime(store)).ips)

    def delete(self, call: Call, store=None) -> None:
        release_addresses(call, self.runtime(store))

    def work(self, store=None) -> Work:
        return Work(store or self.store, self.clock, RecordingLog(), NEVER)

    def give_up(self, node: str, store=None, *, must_be_empty: bool) -> None:
        """What an operator does to a node that leaves: its blocks, with or without the addresses in them."""
        release_host_affinities(self.work(store), Owner(HOST, node), must_be_empty=must_be_empty)

    def free(self, container: str, store=None) -> None:
        """Release by address, as garbage collection does: only while the handle still has it."""
        work = self.work(store)
        try:
            addresses = addresses_of_handle(work, f"net.{container}")
        except Missing:
            return
        release_listed(work, [Release(address, f"net.{container}") for address in addresses])

    def add_vm(
        self, pod: str, node: str, store=None, *, dual: bool = False, delivered: bool = True
    ) -> frozenset[str] | None:
        """The virtual machine starts in a container of its own on a node; on failure that is undone.

        So it is if the answer cannot be delivered.
        """
        work = self.work(store)
        secondary = {"node": node, "pod": pod, "timestamp": go_string(self.clock.now())}
        request = AssignRequest(Owner(HOST, node), VM, secondary, {4: 1, 6: int(dual)}, max_per_handle=1)
        undo = Undo(work.clock, work.log)
        undo.register("an unfinished assignment", lambda deadline: free_unfinished(work.until(deadline), request))
        try:
            families = auto_assign(work, request, undo)
            for family in families:
                if family.shortfall:
                    raise IpamError(family.shortfall)
        except BaseException:
            undo.run()
            raise
        if not delivered:
            return undo.run()
        return frozenset(str(allocation.address) for family in families for allocation in family.allocations)

    def delete_vm(self, store=None) -> None:
        free_handle(self.work(store), VM)

    def states_left_behind(self) -> tuple[str, ...]:
        """What a claim or a release leaves that died; and a lost block, where a claim looks for that."""
        half = (PENDING, PENDING_DELETION)
        return (*half, CONFIRMED) if self.store.lists_in_one_go else half

    def leave_behind(self, place: int, state: str) -> None:
        """The affinity without a block of a node that is no more, to one of the eight places for blocks."""
        pool, length = (POOL, 30) if place < 4 else (POOL6, 126)
        cidr = Cidr(pool.version, pool.first + place % 4 * 4, length)
        with suppress(AlreadyExists):
            self.store.create(AffinityKey(Owner(HOST, GONE), cidr), Affinity(state), NEVER)

    def switch_pool(self, store=None, *, disabled: bool) -> None:
        """An operator drains the IPv4 pool, or has it serve again."""
        guarded_write(self.work(store), IPPoolKey("p4"), lambda pool: pool.replace(disabled=disabled))

    def make_strict(self, store=None, *, strict: bool) -> None:
        work = self.work(store)
        set_config(work, get_config(work).replace(strict_affinity=strict))

    def stand_still(self) -> None:
        """From now on listings that may lag show what is there now."""
        if not self.store.lists_in_one_go:
            self.store.lag = self.store.snapshot()

    # --- what must hold ---

    def held(self) -> Counter[tuple[str, Cidr]]:
        """How many addresses each handle holds in each block, by what the blocks say."""
        found: Counter[tuple[str, Cidr]] = Counter()
        for stored in self.store.list(Blocks(), NEVER):
            block = stored.record
            assert block.is_consistent(), block
            holders = [block.holder(ordinal) for ordinal in range(block.cidr.size)]
            found.update((one.handle, block.cidr) for one in holders if one is not None and not one.released_at)
        return found

    def held_by(self, handle: str) -> list[Address]:
        """The addresses of a handle, by what the blocks say."""
        blocks = [stored.record for stored in self.store.list(Blocks(), NEVER)]
        return [block.cidr.at(ordinal) for block in blocks for ordinal in block.held_by(handle)]

    def counted(self) -> Counter[tuple[str, Cidr]]:
        """The same by what the handles say."""
        return Counter(
            {
                (stored.key.handle, cidr): count
                for stored in self.store.list(Handles(), NEVER)
                for cidr, count in stored.record.blocks.items()
            }
        )

    def check(self) -> None:
        """Holds after every step, whatever is in flight."""
        _, revision = self.store.snapshot()
        if revision == self._checked:
            return  # nothing was written since
        self._checked = revision
        blocks = {stored.key.cidr: stored.record for stored in self.store.list(Blocks(), NEVER)}
        cidrs = sorted(blocks, key=lambda cidr: (cidr.version, cidr.first))
        assert not any(one.overlaps(other) for one, other in pairwise(cidrs)), cidrs
        held, counted = self.held(), self.counted()
        for version in (4, 6):
            several = sum(count for (handle, cidr), count in held.items() if handle == VM and cidr.version == version)
            assert several <= 1, f"the virtual machine has {several} IPv{version} addresses"
        under = {key: (count, counted[key]) for key, count in held.items() if counted[key] < count}
        assert not under, f"handles count less than blocks hold: {under}"
        leads = self.leads()
        confirmed = {cidr: [owner for owner, state in led.items() if state == CONFIRMED] for cidr, led in leads.items()}
        doubled = {cidr: owners for cidr, owners in confirmed.items() if len(owners) > 1}
        assert not doubled, f"blocks with two confirmed affinities: {doubled}"
        if self.store.lists_in_one_go:
            left = {cidr: led for cidr, led in leads.items() if GONE in led and (set(confirmed[cidr]) - {GONE})}
            assert not left, f"blocks with the affinity of a node that is no more: {left}"

    def leads(self) -> dict[Cidr, dict[str, str]]:
        """All nodes' affinities by block: node → state."""
        leads: dict[Cidr, dict[str, str]] = {}
        for stored in self.store.list(Affinities(Owner(HOST, "")), NEVER):
            leads.setdefault(stored.key.cidr, {})[stored.key.owner.name] = stored.record.state
        return leads

    def blocks_led_to_twice(self) -> dict[Cidr, dict[str, str]]:
        return {cidr: led for cidr, led in self.leads().items() if len(led) > 1}

    def check_at_rest(self, alive: set[str]) -> None:
        """Holds when nothing is in flight and every container but the living ones has been deleted."""
        self.check()
        held = {key: count for key, count in self.held().items() if count}
        assert held == {key: count for key, count in self.counted().items() if count}
        handles = {stored.key.handle for stored in self.store.list(Handles(), NEVER)}
        assert handles == {f"net.{container}" for container in alive}, handles
