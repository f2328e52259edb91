"""`ipam check`: read everything that says who has which address, and audit it.

Invariant: nothing is written.
"""

from __future__ import annotations

from domain.ipam.audit import audit
from domain.ipam.inventory import Claim, DamagedRecord, Finding, Inventory, Unreadable
from domain.ipam.pools import AllocationConfig
from domain.resource import Metadata
from domain.value import Value
from domain.workload.endpoint import WorkloadEndpoint
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    HandleKey,
    Handles,
    IPAMConfigurationKey,
    IPPools,
    IPReservations,
    NodeKey,
    Nodes,
    WorkloadEndpointKey,
    WorkloadEndpoints,
    affinities_of_all,
)
from ports.errors import Refused
from ports.record_title import record_title
from usecases.pods.known_machines import known_machines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from domain.ipam.address import Address
    from domain.ipam.block import Affinity
    from domain.ipam.pools import IPAMConfiguration
    from ports.cluster import Cluster
    from ports.datastore import BadText, Key, Stored
    from usecases.ipam.work import Work

    R = TypeVar("R")


class Report(Value):
    inventory: Inventory
    findings: tuple[Finding, ...]


def check_ipam(work: Work, cluster: Cluster | None = None, host_routes: tuple[tuple[Address, str], ...] = ()) -> Report:
    """`cluster` says which virtual machines there are; without it none is known to be gone.

    `host_routes` are those of the machine that asks: (address, interface).
    """
    inventory = take_inventory(work, cluster).replace(host_routes=host_routes)
    work.doing(f"comparing {len(inventory.blocks)} blocks with {len(inventory.endpoints)} endpoints")
    return Report(inventory, audit(inventory))


def take_inventory(work: Work, cluster: Cluster | None = None) -> Inventory:
    """What there is to know. What cannot be read is read first, so that nothing is missing from both lists."""
    store, deadline = work.datastore, work.deadline
    work.doing("reading all that the datastore has")
    unreadable = _unreadable(store.unreadable(deadline))
    handles, blocks, hosts, virtual = store.fetch(Handles(), Blocks(), *affinities_of_all(), deadline=deadline)
    endpoints, nodes, pools, reservations = store.fetch(
        WorkloadEndpoints(), Nodes(), IPPools(), IPReservations(), deadline=deadline
    )
    config, configuration = _settings(work)
    workloads = tuple([endpoint.record for endpoint in endpoints])
    machines = known_machines(work, cluster, [block.record for block in blocks], workloads) if cluster else {}
    return Inventory(
        now=work.clock.now(),
        blocks={block.record.cidr: (block.record, block.revision) for block in blocks},
        handles={
            stored.key.handle: (stored.record, stored.revision)
            for stored in handles
            if isinstance(stored.key, HandleKey)
        },
        claims=tuple([_claim(affinity) for affinity in (*hosts, *virtual)]),
        pools=tuple([pool.record for pool in pools]),
        reservations=tuple([reservation.record for reservation in reservations]),
        endpoints=tuple([_who_has_what(workload) for workload in workloads]),
        nodes=frozenset([node.record.metadata.name for node in nodes]),
        config=config.record if config else AllocationConfig(),
        configuration=configuration.record if configuration else None,
        unreadable=unreadable,
        machines=machines,
    )


def _who_has_what(endpoint: WorkloadEndpoint) -> WorkloadEndpoint:
    """What an audit and a trace look at: there may be a hundred thousand of them."""
    metadata = endpoint.metadata
    return WorkloadEndpoint(
        Metadata(metadata.name, metadata.namespace, created=metadata.created),
        node=endpoint.node,
        container_id=endpoint.container_id,
        pod=endpoint.pod,
        ip_networks=endpoint.ip_networks,
        interface_name=endpoint.interface_name,
    )


def _settings(work: Work) -> tuple[Stored[AllocationConfig] | None, Stored[IPAMConfiguration] | None]:
    keys = AllocationConfigKey(), IPAMConfigurationKey("default")
    try:
        return work.datastore.fetch(*keys, deadline=work.deadline)
    except Refused:
        return _if_sound(work, keys[0]), _if_sound(work, keys[1])


def _if_sound(work: Work, key: Key[R]) -> Stored[R] | None:
    """None also for one that cannot be read: it is among the unreadable."""
    try:
        return work.datastore.get(key, work.deadline)
    except Refused:
        return None


def _claim(stored: Stored[Affinity]) -> Claim:
    key = AffinityKey.of(stored)
    return Claim(key.owner, key.cidr, stored.record.state, stored.revision)


def _damaged(bad: BadText) -> DamagedRecord:
    key = bad.key
    return DamagedRecord(
        record_title(key),
        bad.fault,
        bad.revision,
        block=key.cidr if isinstance(key, BlockKey) and bad.salvage else None,
        handle=key.handle if isinstance(key, HandleKey) else "",
        claim=(key.owner, key.cidr) if isinstance(key, AffinityKey) else None,
        settings=isinstance(key, (AllocationConfigKey, IPAMConfigurationKey)),
    )


def _unreadable(bad: tuple[BadText, ...]) -> Unreadable:
    keys = [damaged.key for damaged in bad]
    return Unreadable(
        records=tuple([_damaged(damaged) for damaged in bad]),
        blocks=frozenset([key.cidr for key in keys if isinstance(key, BlockKey)]),
        handles=frozenset([key.handle for key in keys if isinstance(key, HandleKey)]),
        claims=frozenset([(key.owner, key.cidr) for key in keys if isinstance(key, AffinityKey)]),
        nodes=frozenset([key.name for key in keys if isinstance(key, NodeKey)]),
        endpoints=any(isinstance(key, WorkloadEndpointKey) for key in keys),
    )
