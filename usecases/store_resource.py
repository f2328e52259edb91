"""Stores what an operator wrote by hand, after checking what a later reader would stumble over.

Invariant: a record that was refused has left nothing behind, and a record that is replaced keeps its uid and its
creation time, which belong to the store.
"""

from __future__ import annotations

from domain.cluster import ClusterInformation, Node
from domain.ipam.address import Cidr
from domain.ipam.pool_rules import check_pool, check_pool_among, check_pool_change
from domain.ipam.pools import IPAMConfiguration, IPReservation, Pool
from domain.workload.endpoint import Profile, WorkloadEndpoint
from domain.workload.endpoint_rules import check_endpoint, require_subdomain, with_forced_labels
from domain.workload.identity import InvalidField
from ports.datastore import IPPools
from ports.errors import AlreadyExists, Conflict, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    from ports.clock import Deadline
    from ports.datastore import Datastore, Key, Revision, Stored

    Resource: TypeAlias = (
        Pool | IPReservation | Node | Profile | WorkloadEndpoint | ClusterInformation | IPAMConfiguration
    )
    R = TypeVar("R", bound=Resource)

MAX_TRIES = 10
MAX_COOLDOWN = 1200  # seconds
_SINGLETON = "default"


def create_resource(datastore: Datastore, key: Key[R], record: R, deadline: Deadline) -> Stored[R]:
    """Write a record that must not exist, else `AlreadyExists`. BadPool or InvalidField when it cannot be right."""
    return datastore.create(key, _checked(datastore, record, None, deadline), deadline)


def apply_resource(
    datastore: Datastore, key: Key[R], record: R, replaces: Revision | None, deadline: Deadline
) -> Stored[R]:
    """Create the record or replace what is there; if `replaces` is given, only at that revision, else `Conflict`."""
    for _ in range(MAX_TRIES):  # not `until_won`: who gives `replaces` is told of the conflict and not tried again
        stored = datastore.get(key, deadline)
        if replaces is not None and (stored is None or stored.revision != replaces):
            raise Conflict(key)
        checked = _checked(datastore, record, None if stored is None else stored.record, deadline)
        try:
            if stored is None:
                return datastore.create(key, checked, deadline)
            return datastore.update(key, _with_identity_of(stored.record, checked), stored.revision, deadline)
        except (AlreadyExists, Missing, Conflict):
            continue  # somebody wrote in between: look again
    raise Conflict(key)


def _with_identity_of(stored: R, record: R) -> R:
    metadata = record.metadata.replace(uid=stored.metadata.uid, created=stored.metadata.created)
    return record.replace(metadata=metadata)  # type: ignore[return-value]  # `replace` keeps the type, whichever it is


def _checked(datastore: Datastore, record: R, stored: R | None, deadline: Deadline) -> R:
    """The record in the form to be stored."""
    if isinstance(record, WorkloadEndpoint):
        check_endpoint(record)
        return with_forced_labels(record)  # type: ignore[return-value]  # R is WorkloadEndpoint in this branch
    require_subdomain("name", record.metadata.name)
    if isinstance(record, Pool):
        check_pool(record)
        if isinstance(stored, Pool):
            check_pool_change(stored, record)
        pools = [pool.record for pool in datastore.list(IPPools(), deadline)]
        check_pool_among(record, [pool for pool in pools if pool.metadata.name != record.metadata.name])
    elif isinstance(record, IPReservation):
        _check_reservation(record)
    elif isinstance(record, (ClusterInformation, IPAMConfiguration)):
        _check_singleton(record)
    return record


def _check_reservation(record: IPReservation) -> None:
    for text in record.cidrs:
        try:
            Cidr.parse_lenient(text)
        except ValueError as error:
            raise InvalidField("reservedCIDRs", text, str(error)) from None


def _check_singleton(record: ClusterInformation | IPAMConfiguration) -> None:
    if record.metadata.name != _SINGLETON:
        raise InvalidField("name", record.metadata.name, f"there is only one of this kind, named {_SINGLETON}")
    if isinstance(record, ClusterInformation):
        return
    if record.max_blocks_per_host < 0:
        raise InvalidField("maxBlocksPerHost", str(record.max_blocks_per_host), "must not be negative")
    if not 0 <= record.cooldown_seconds <= MAX_COOLDOWN:
        raise InvalidField("ipCooldownSeconds", str(record.cooldown_seconds), f"must be 0 to {MAX_COOLDOWN}")
