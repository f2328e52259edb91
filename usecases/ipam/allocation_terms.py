"""What an automatic assignment goes by: settings, pools, reservations and the node's own blocks, read all at once.

Invariant: nothing is decided before everything is read, and reading changes nothing.
"""

from __future__ import annotations

from domain.ipam.address import V4, V6
from domain.ipam.errors import IpamError
from domain.ipam.pools import AllocationConfig, PoolRequest, choose_pools, require_versions, reserved_cidrs
from domain.value import Value
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    IPPools,
    IPReservations,
    NodeKey,
)
from ports.errors import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.block import Affinity
    from domain.ipam.pools import IPReservation, Pool, PoolChoice
    from domain.ipam.request import AssignRequest
    from ports.datastore import Stored
    from usecases.ipam.work import Work

NOT_STRICT = "global strict affinity should not be false for Windows node"


class Surroundings(Value):
    """What is stored that matters to a request. `affinities` are the node's, of the versions asked for.

    With `may_lag` the affinities, pools and reservations are as of a moment ago.
    """

    request: AssignRequest
    config: AllocationConfig
    pools: tuple[Pool, ...]
    reservations: tuple[IPReservation, ...]
    labels: Mapping[str, str]
    affinities: tuple[Stored[Affinity], ...]
    may_lag: bool = False


class Terms(Value):
    """What one IP version's addresses may come from: the chosen pools, without the `reserved` ranges.

    `affinities` are the node's. With `may_lag` all of it is as of a moment ago.
    """

    request: AssignRequest
    version: int
    config: AllocationConfig
    choice: PoolChoice
    reserved: tuple[Cidr, ...]
    labels: Mapping[str, str]
    affinities: tuple[Stored[Affinity], ...]
    may_lag: bool = False


def versions_of(request: AssignRequest) -> tuple[int, ...]:
    """The IP versions asked for, IPv4 first."""
    return tuple([version for version in (V4, V6) if request.counts.get(version, 0) > 0])


def read_surroundings(work: Work, request: AssignRequest, *, may_lag: bool = False) -> Surroundings:
    """One fetch. Missing without a record of the node; IpamError for a request that cannot be met as it stands."""
    require_versions(request.pools)
    versions = versions_of(request)
    config, reservations, node, pools, affinities = work.datastore.fetch(
        AllocationConfigKey(),
        IPReservations(may_lag),
        NodeKey(request.owner.name),
        IPPools(may_lag),
        Affinities(request.owner, versions[0] if len(versions) == 1 else None, may_lag),
        deadline=work.deadline,
    )
    if node is None:
        raise Missing(NodeKey(request.owner.name), "Node not found")
    settings = config.record if config else AllocationConfig()
    if request.on_windows and not settings.strict_affinity:
        raise IpamError(NOT_STRICT, details="set strictAffinity in the IPAM configuration")
    return Surroundings(
        request,
        settings,
        tuple([pool.record for pool in pools]),
        tuple([reservation.record for reservation in reservations]),
        node.record.metadata.labels,
        affinities,
        may_lag,
    )


def read_ahead(work: Work, request: AssignRequest) -> Surroundings | None:
    """The surroundings as of a moment ago, read before the host's lock is taken; None where that saves nothing.

    An API server answers at once from what it remembers. An up-to-date list has to wait until 100 ms after the server
    last asked its etcd how far it is. Each round trip before the lock is one less for the calls that wait for the lock.
    Surroundings that lag refuse nobody: None if no pool in them serves the request.
    """
    if work.datastore.lists_in_one_go:
        return None
    found = read_surroundings(work, request, may_lag=True)
    return found if _serve(found) else None


def _serve(found: Surroundings) -> bool:
    try:
        for version in versions_of(found.request):
            terms_for(version, found)
    except IpamError:
        return False
    return True


def terms_for(version: int, found: Surroundings) -> Terms:
    """IpamError when no pool may serve the version; `NoPool` if that is because of the pools' own settings."""
    request = found.request
    choice = choose_pools(found.pools, pool_request(request, version, found.labels))
    reserved = reserved_cidrs(found.reservations, version)
    reserved += tuple([device for device in request.busy if device.version == version])
    affinities = tuple([affinity for affinity in found.affinities if cidr_of(affinity).version == version])
    return Terms(request, version, found.config, choice, reserved, found.labels, affinities, found.may_lag)


def renewed(terms: Terms, pools: tuple[Pool, ...], affinities: tuple[Stored[Affinity], ...]) -> Terms:
    """The terms by the pools and affinities that there are now. IpamError as `terms_for`."""
    choice = choose_pools(pools, pool_request(terms.request, terms.version, terms.labels))
    return terms.replace(choice=choice, affinities=affinities)


def pool_request(request: AssignRequest, version: int, labels: Mapping[str, str]) -> PoolRequest:
    """What decides the choice of pools."""
    return PoolRequest(
        version,
        request.owner.name,
        labels,
        request.namespace_labels,
        wanted=request.pools.get(version, ()),
        use=request.use,
        longest_block=request.longest_block(version),
    )


def cidr_of(affinity: Stored[Affinity]) -> Cidr:
    """The block that an affinity leads to."""
    key = affinity.key
    assert isinstance(key, AffinityKey)  # noqa: S101 - narrows the type
    return key.cidr
