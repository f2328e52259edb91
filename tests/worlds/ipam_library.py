"""The IPAM library over any datastore, in the words of the conformance list: pools, nodes, assign, release, look.

`Meddled` stands between the library and the store, so that a test can be a rival, or let a call fail, over any adapter.
"""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager

from adapters.memory.log import RecordingLog
from domain.cluster import Node
from domain.ipam.address import Address, Cidr
from domain.ipam.block import HOST, VIRTUAL, Owner
from domain.ipam.pools import AllocationConfig, IPReservation, Pool
from domain.ipam.release import Release
from domain.ipam.request import Assigned, AssignRequest
from domain.moment import go_string
from domain.resource import Metadata
from ports.clock import Deadline
from ports.datastore import (
    Affinities,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    Datastore,
    Handles,
    IPPoolKey,
    IPPools,
    IPReservationKey,
    NodeKey,
)
from usecases.calls.safeguards import Undo
from usecases.ipam.affinities import ensure_block
from usecases.ipam.assign_specific import assign_specific
from usecases.ipam.auto_assign import auto_assign
from usecases.ipam.claim_block import claim_block
from usecases.ipam.free_addresses import free_handle
from usecases.ipam.release_listed import release_listed
from usecases.ipam.work import Work
from worlds.scheduler import PROCEED, Process, Schedule

SOON = Deadline(1_000_000.0)


def cidr(text: str) -> Cidr:
    return Cidr.parse(text)


def address(text: str) -> Address:
    return Address.parse(text)


def host(name: str) -> Owner:
    return Owner(HOST, name)


class Meddled(Datastore):
    """`before(verb, key)` comes before each write and each thing read; what it writes itself passes unnoticed."""

    def __init__(self, store: Datastore) -> None:
        self.store = store
        self.lists_in_one_go = store.lists_in_one_go
        self.brings_along, self.writes_together = store.brings_along, store.writes_together
        self.before = None
        self.writes: list[tuple[str, object]] = []
        self.fetches = 0

    def _meddle(self, verb: str, *keys: object) -> None:
        hook, self.before = self.before, None
        try:
            for key in keys:
                if hook is not None:
                    hook(verb, key)
        finally:
            self.before = hook
        if verb != "fetch":
            self.writes += [(verb, key) for key in keys]

    def fetch(self, *needs, deadline):
        self.fetches += 1
        self._meddle("fetch", *needs)
        return self.store.fetch(*needs, deadline=deadline)

    def create(self, key, record, deadline):
        self._meddle("create", key)
        return self.store.create(key, record, deadline)

    def update(self, key, record, replaces, deadline):
        self._meddle("update", key)
        return self.store.update(key, record, replaces, deadline)

    def delete(self, key, replaces, deadline):
        self._meddle("delete", key)
        self.store.delete(key, replaces, deadline)

    def write(self, changes, deadline):
        self._meddle("write", *[change.key for change in changes])
        return self.store.write(changes, deadline)

    def unreadable(self, deadline, listing=None):
        return self.store.unreadable(deadline, listing)


class Library:
    def __init__(self, store: Datastore, clock) -> None:
        self.clock = clock
        self.log = RecordingLog()
        self.meddled = Meddled(store)
        self.work = self.work_on(self.meddled)

    def work_on(self, store: Datastore) -> Work:
        return Work(store, self.clock, self.log, SOON)

    # --- records ---------------------------------------------------------------------------------------------------

    def put(self, key, record):
        stored = self.work.datastore.get(key, SOON)
        if stored is None:
            return self.meddled.store.create(key, record, SOON)
        return self.meddled.store.update(key, record, stored.revision, SOON)

    def get(self, key):
        stored = self.meddled.store.get(key, SOON)
        return None if stored is None else stored.record

    def remove(self, key) -> None:
        self.meddled.store.delete(key, None, SOON)

    def touch(self, key) -> None:
        self.put(key, self.get(key))

    def node(self, name: str, /, **labels: str) -> None:
        self.put(NodeKey(name), Node(Metadata(name, labels=labels)))

    def pool(self, text: str, block_size: int = 0, **fields: object) -> None:
        """A pool is known by its range here, so the same range again replaces it."""
        name = "pool-" + str(cidr(text)).replace(".", "-").replace(":", "-").replace("/", "-")
        self.put(IPPoolKey(name), Pool(Metadata(name), text, block_size, **fields))

    def claim(self, text: str, node: str) -> None:
        claim_block(self.work, host(node), cidr(text))

    def remove_block(self, text: str) -> None:
        self.remove(BlockKey(cidr(text)))

    def delete_pools(self) -> None:
        for stored in self.meddled.store.list(IPPools(), SOON):
            self.remove(stored.key)

    def configure(self, **settings: object) -> None:
        self.put(AllocationConfigKey(), AllocationConfig(**settings))

    def reserve(self, *texts: str, name: str = "r") -> None:
        self.put(IPReservationKey(name), IPReservation(Metadata(name), texts))

    # --- calls -----------------------------------------------------------------------------------------------------

    def request(self, node: str, handle: str, v4: int = 0, v6: int = 0, **fields: object) -> AssignRequest:
        pools = {version: tuple(map(cidr, texts)) for version, texts in fields.pop("pools", {}).items()}
        secondary = fields.pop("attributes", {"node": node, "timestamp": go_string(self.clock.now())})
        return AssignRequest(host(node), handle, secondary, {4: v4, 6: v6}, pools, **fields)

    def assign(
        self, node: str, v4: int = 1, v6: int = 0, *, handle: str = "h", work: Work | None = None, **fields: object
    ) -> list[str]:
        """AutoAssign: the addresses that came of it."""
        families = self.families(node, v4, v6, handle=handle, work=work, **fields)
        return [str(allocation.address) for family in families for allocation in family.allocations]

    def families(
        self, node: str, v4: int = 1, v6: int = 0, *, handle: str = "h", work: Work | None = None, **fields: object
    ) -> tuple[Assigned, ...]:
        """AutoAssign: what each IP version got."""
        work = work or self.work
        return auto_assign(work, self.request(node, handle, v4, v6, **fields), Undo(work.clock, work.log))

    def ensure(self, node: str, v4: int = 1, v6: int = 0, **fields: object) -> list[str]:
        """EnsureBlock."""
        return [str(one) for one in ensure_block(self.work, self.request(node, "", v4, v6, **fields)).values()]

    def assign_ip(self, text: str, node: str = "host-a", handle: str = "h", **fields: object) -> None:
        assign_specific(
            self.work, self.request(node, handle, **fields), address(text), Undo(self.work.clock, self.work.log)
        )

    def release(self, *texts: str, **fields: object):
        """ReleaseIPs: (unallocated, released, error). `fields` go for all addresses."""
        outcome = release_listed(self.work, [Release(address(text), **fields) for text in texts])
        freed = [str(one.address) for one in outcome.released]
        return [str(one) for one in outcome.unallocated], freed, outcome.error

    def release_handle(self, handle: str = "h") -> bool:
        return free_handle(self.work, handle)

    def race(self, bodies) -> list[object]:
        """Run `body(work)` for all at once, interleaved at every datastore call; their results."""
        processes = [
            Process(str(number), lambda store, body=body: body(self.work_on(store)))
            for number, body in enumerate(bodies)
        ]
        dice = random.Random(7)
        Schedule(self.meddled.store, dice.randrange, lambda: PROCEED, lambda: None).run(processes)
        for process in processes:
            if process.error is not None:
                raise process.error
        return [process.result for process in processes]

    # --- rivals and failures ---------------------------------------------------------------------------------------

    @contextmanager
    def before(self, verb: str, kind: type, move, *, times: int = 1):
        """Before the next `times` such verbs somebody makes a move, or raises. All of them must come."""
        left = [times]

        def hook(done: str, key: object) -> None:
            if left[0] and done in {verb, "write"} and isinstance(key, kind):
                left[0] -= 1
                move(key)

        self.meddled.before = hook
        try:
            yield
        finally:
            self.meddled.before = None
        assert left == [0], f"{left[0]} of {times} moves never came"

    # --- what is there ---------------------------------------------------------------------------------------------

    def blocks(self) -> dict[str, str | None]:
        """Each block and who it is affine to; all must be consistent."""
        found = {}
        for stored in self.meddled.store.list(Blocks(), SOON):
            assert stored.record.is_consistent(), stored.record
            found[str(stored.key.cidr)] = stored.record.affinity
        return found

    def block(self, text: str):
        return self.get(BlockKey(cidr(text)))

    def affinities(self, name: str = "", version: int | None = None) -> dict[str, tuple[str, str]]:
        """Each claimed block: by whom, and how far."""
        return {
            str(stored.key.cidr): (str(stored.key.owner), stored.record.state)
            for kind in (HOST, VIRTUAL)
            for stored in self.meddled.store.list(Affinities(Owner(kind, name), version), SOON)
        }

    def counts(self) -> dict[str, int]:
        """How many addresses each handle counts."""
        listed = self.meddled.store.list(Handles(), SOON)
        return {stored.key.handle: sum(stored.record.blocks.values()) for stored in listed}

    def holders(self, name: str) -> list[str]:
        """All addresses of a handle, by what the blocks say."""
        blocks = [stored.record for stored in self.meddled.store.list(Blocks(), SOON)]
        return [str(block.cidr.at(ordinal)) for block in blocks for ordinal in block.held_by(name)]

    def sequence_of(self, text: str) -> int:
        """Under which sequence number an address was taken."""
        where = address(text)
        for stored in self.meddled.store.list(Blocks(), SOON):
            if where in stored.record.cidr:
                return stored.record.sequences[stored.record.ordinal(where)]
        raise AssertionError(f"{text} is in no block")


def in_threads(bodies) -> list[object]:
    """Run bodies at once in real threads; their results."""
    results: list[object] = [None] * len(bodies)
    errors: list[BaseException] = []

    def live(number, body) -> None:
        try:
            results[number] = body()
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=live, args=item) for item in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
