"""Why there is no address although there are pools: what an operator asks first, and the original's texts do not say.

They say that no pool is configured, or qualified; here each pool that was passed over is named with the setting that
decided. Loaded only when something is refused.

Invariant: a pool has a reason exactly if `choose_pools` passes it over.
"""

from __future__ import annotations

from domain.ipam.pools import AUTOMATIC, enabled_pools, reserved_cidrs
from domain.resource import NO_LABELS
from domain.workload.selector import selects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Address, Cidr
    from domain.ipam.pools import IPReservation, Pool, PoolRequest

_MOST = 10  # that are named in one answer


def why_off(pool: Pool) -> str:
    """Why nothing new comes from the pool, whoever asks; "" if it does."""
    if pool.deleting:
        return "is being deleted"
    if pool.disabled:
        return "is disabled"
    if ("Allocatable", "False") in pool.conditions:
        return "is not Allocatable, by its status"
    return f"has no range but {pool.cidr_text!r}" if pool.cidr is None else ""


def why_not(pool: Pool, request: PoolRequest) -> str:
    """Why the pool does not serve the request, whose IP version it has; "" if it does.

    SelectorError for a selector that cannot be read.
    """
    off = why_off(pool)
    if off:
        return off
    if pool.block_length > request.longest_block:
        return (
            f"has blocks of /{pool.block_length}, too small for the addresses that this host keeps for itself in each"
        )
    if not request.wanted and (why := _why_not_unasked(pool, request)):
        return why
    return "" if request.use in pool.uses else f"is not for {request.use} (allowedUses: [{' '.join(pool.uses)}])"


def _why_not_unasked(pool: Pool, request: PoolRequest) -> str:
    """Why its own settings keep the pool from those who do not name it."""
    if (pool.assignment_mode or AUTOMATIC) != AUTOMATIC:
        return f"has assignmentMode {pool.assignment_mode}, so it serves only those who name it"
    if not selects(pool.node_selector, request.node_labels):
        return f"does not select node {request.node} (nodeSelector: {pool.node_selector})"
    if not selects(pool.namespace_selector, request.namespace_labels or NO_LABELS):
        whose = "the namespace" if request.namespace_labels is not None else "a container without a namespace"
        return f"does not select {whose} (namespaceSelector: {pool.namespace_selector})"
    return ""


def passed_over(pools: Iterable[Pool], request: PoolRequest) -> str:
    """Each pool of the version that could have been meant, and why it does not serve. "" if all do."""
    family = [pool for pool in pools if pool.cidr is not None and pool.cidr.version == request.version]
    meant = [pool for pool in family if not request.wanted or _is_wanted(pool, request)]
    said = [f"{_named(pool)} {why}" for pool in meant if (why := why_not(pool, request))]
    if not family:
        return f"there is no IPv{request.version} pool"
    return _joined(said)


def unknown_pool(pools: Iterable[Pool], cidr: Cidr) -> str:
    """About a range that was asked for and that no enabled pool has."""
    known = tuple(pools)
    same = [pool for pool in known if pool.cidr == cidr.network]
    if same:
        return _joined([f"{_named(pool)} {why_off(pool)}" for pool in same if why_off(pool)])
    near = [pool for pool in known if pool.cidr is not None and pool.cidr.overlaps(cidr)]
    if near:
        return _joined([f"{_named(pool)} overlaps it: ask for the pool's name or its whole range" for pool in near])
    return those_there_are(known, cidr.version)


def outside(pools: Iterable[Pool], address: Address) -> str:
    """About an address that no enabled pool has."""
    known = tuple(pools)
    holding = [pool for pool in known if pool.cidr is not None and address in pool.cidr]
    if holding:
        return _joined([f"{_named(pool)} has it, but {why_off(pool)}" for pool in holding])
    return those_there_are(enabled_pools(known, address.version), address.version)


def those_there_are(pools: Iterable[Pool], version: int) -> str:
    """What could have been asked for."""
    known = [_named(pool) for pool in pools if pool.cidr is not None and pool.cidr.version == version]
    return f"IPv{version} pools: {_joined(known, ', ')}" if known else f"there is no IPv{version} pool"


def reserved_in(pools: Iterable[Pool], reservations: Iterable[IPReservation]) -> str:
    """Which reservations take addresses of these pools away."""
    inside = [pool.cidr for pool in pools if pool.cidr is not None]
    said = []
    for reservation in reservations:
        kept = [cidr for has in inside for cidr in reserved_cidrs((reservation,), has.version) if cidr.overlaps(has)]
        if kept:
            ranges = " ".join([str(cidr) for cidr in kept[:_MOST]])
            said.append(f"IPReservation {reservation.metadata.name} keeps {ranges}")
    return _joined(said)


def _is_wanted(pool: Pool, request: PoolRequest) -> bool:
    return any(pool.cidr == cidr.network for cidr in request.wanted)


def _named(pool: Pool) -> str:
    return f"IPPool {pool.metadata.name} ({pool.cidr_text})"


def _joined(said: list[str], between: str = "; ") -> str:
    more = [f"and {len(said) - _MOST} more"] if len(said) > _MOST else []
    return between.join([*said[:_MOST], *more])
