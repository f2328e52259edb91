"""CHECK of the IPAM plugin: are the addresses that ADD answered still allocated to this container?

The original has no handler and always succeeds; here every fault is named, in one message. Without `prevResult` there
is nothing to compare with, and the answer is the original's.

Invariant: CHECK changes nothing, and an unreachable datastore is reported as such, not as a fault of the container.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.ipam.block import KEPT_BY, MACHINE_MARK
from domain.workload.identity import identify
from ports.datastore import BlockKey, HandleKey, IPPools
from usecases.calls.this_node import node_name
from usecases.ipam.locate_block import BlockLocator
from usecases.ipam.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address, Cidr
    from domain.workload.identity import Identity
    from ports.runtime import Runtime
    from usecases.calls.call import Call


def check_addresses(call: Call, runtime: Runtime) -> None:
    """Silent when all is well; CniError naming each fault otherwise."""
    if not call.netconf.prev_result:
        return
    previous = call.previous_result()
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    checking = _Checking(Work.on(runtime, call.deadline), call.netconf.name, identity)
    faults = checking.faults([ip.address.address for ip in previous.ips])
    if faults:
        raise CniError(INTERNAL, f"CHECK of the addresses of {identity.container_id} failed: {'; '.join(faults)}")


class _Checking:
    def __init__(self, work: Work, network: str, identity: Identity) -> None:
        self._work = work
        self._container = identity.container_id
        self._handle = f"{network}.{identity.container_id}"
        self._machines = network + MACHINE_MARK if identity.is_named_as_launcher else ""
        self._held: dict[str, dict[Cidr, int]] = {}
        self._faults: list[str] = []

    def faults(self, addresses: list[Address]) -> list[str]:
        pools = self._work.datastore.list(IPPools(), self._work.deadline)
        locator = BlockLocator(self._work, [pool.record for pool in pools])
        for address in addresses:
            self._look(address, locator.block_of(address))
        for handle, counts in self._held.items():
            self._count(handle, counts)
        return self._faults

    def _look(self, address: Address, cidr: Cidr | None) -> None:
        stored = self._work.datastore.get(BlockKey(cidr), self._work.deadline) if cidr else None
        holder = stored.record.holder(stored.record.ordinal(address)) if stored else None
        if stored is None or holder is None or holder.released_at:
            self._faults.append(f"address {address} is not allocated")
            return
        handle = holder.holder or ""
        is_machines = bool(self._machines) and handle.startswith(self._machines)
        if handle != self._handle and not is_machines and holder.secondary.get(KEPT_BY) != self._container:
            self._faults.append(f"address {address} is allocated to {handle or 'nobody'} instead of {self._handle}")
            return
        counts = self._held.setdefault(handle, {})
        counts[stored.record.cidr] = counts.get(stored.record.cidr, 0) + 1

    def _count(self, handle: str, counts: dict[Cidr, int]) -> None:
        """What is allocated under a handle must be counted by it, or its DEL would not find it."""
        stored = self._work.datastore.get(HandleKey(handle), self._work.deadline)
        if stored is None:
            self._faults.append(f"handle {handle} is missing")
            return
        self._faults += [
            f"handle {handle} counts {stored.record.blocks.get(cidr, 0)} of {count} addresses in block {cidr}"
            for cidr, count in counts.items()
            if stored.record.blocks.get(cidr, 0) < count
        ]
