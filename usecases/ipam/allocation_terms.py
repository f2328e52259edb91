"""What an automatic assignment goes by: settings, pools, reservations and the node's own blocks, read all at once.

Few pools select nodes by labels. Where each record is a request, a node that is known to be there is read for such
pools only: its record may be the largest of all.

Invariant: nothing is decided before everything is read, and reading changes nothing.
"""

from __future__ import annotations

from domain.ipam.address import V4, V6
from domain.ipam.errors import IpamError
from domain.ipam.pools import (
    SELECT_ALL,
    AllocationConfig,
    PoolRequest,
    choose_pools,
    require_versions,
    reserved_cidrs,
)
from domain.value import Value
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    IPPools,
    IPReservations,
    NodeKey,
)
from ports.errors import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from domain.cluster import Node
    from domain.ipam.address import Cidr
    from domain.ipam.block import Affinity
    from domain.ipam.pools import IPReservation, Pool, PoolChoice
    from domain.ipam.request import AssignRequest
    from ports.datastore import Need, Stored
    from usecases.ipam.work import Work

UNREAD: Mapping[str, str] = {}
"""The labels of a node that has not been read."""
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


def needs_of(request: AssignRequest, *, may_lag: bool = False, own: bool = True) -> tuple[Need[Any], ...]:
    """What an assignment reads: settings, reservations, pools, and affinities (unless these are known), and the node's
    record if it needs that.
    """
    needs: tuple[Need[Any], ...] = (AllocationConfigKey(), IPReservations(may_lag), IPPools(may_lag))
    if own:
        needs += (own_affinities(request, may_lag=may_lag),)
    return needs if request.on_known_node else (*needs, NodeKey(request.owner.name))


def own_affinities(request: AssignRequest, *, may_lag: bool = False) -> Affinities:
    """Those of the node, of the versions asked for."""
    versions = versions_of(request)
    return Affinities(request.owner, versions[0] if len(versions) == 1 else None, may_lag)


def remembered_affinities(work: Work, request: AssignRequest) -> tuple[Stored[Affinity], ...] | None:
    """The node's, as an earlier call left word of them; None unless they lead to a block in use for each version.

    Nobody gives up a block that is in use, but for a node that leaves. So its affinity is still confirmed, which an
    address of it depends on: others route by that.
    """
    own = work.datastore.remembered(own_affinities(request))
    blocks = [work.datastore.remembered(BlockKey(cidr_of(affinity))) for affinity in own or ()]
    used = {
        block.record.cidr.version
        for block in blocks
        if block is not None and block.record.affinity == str(request.owner) and not block.record.is_empty()
    }
    return own if used.issuperset(versions_of(request)) else None


def read_surroundings(work: Work, request: AssignRequest, *, may_lag: bool = False) -> Surroundings:
    """One fetch. Missing without a record of the node; IpamError for a request that cannot be met as it stands."""
    require_versions(request.pools)
    affinities = remembered_affinities(work, request) if may_lag else None
    needs = needs_of(request, may_lag=may_lag, own=affinities is None)
    found: tuple[Any, ...] = work.datastore.fetch(*needs, deadline=work.deadline)
    config, reservations, pools, *node = found
    if affinities is None:
        affinities, *node = node
    settings = config.record if config else AllocationConfig()
    known = tuple([pool.record for pool in pools])
    labels = _labels_of(request, node[0]) if node else labels_for(work, request, known, UNREAD)
    if request.on_windows and not settings.strict_affinity:
        raise IpamError(NOT_STRICT, details="set strictAffinity in the IPAM configuration")
    return Surroundings(
        request,
        settings,
        known,
        tuple([reservation.record for reservation in reservations]),
        labels,
        affinities,
        may_lag,
    )


def labels_for(
    work: Work, request: AssignRequest, pools: Iterable[Pool], known: Mapping[str, str]
) -> Mapping[str, str]:
    """The node's labels, read now if the pools go by them and they are UNREAD. Missing as above."""
    if known is not UNREAD or all(pool.node_selector in SELECT_ALL for pool in pools):
        return known
    return _labels_of(request, work.datastore.get(NodeKey(request.owner.name), work.deadline))


def _labels_of(request: AssignRequest, node: Stored[Node] | None) -> Mapping[str, str]:
    if node is None:
        raise Missing(NodeKey(request.owner.name), "Node not found")
    return node.record.metadata.labels


def read_ahead(work: Work, request: AssignRequest) -> Surroundings | None:
    """The surroundings as of a moment ago, read before the host's lock is taken.

    Only for datastores where that saves something: those that do not list in one go.

    An API server answers at once from what it remembers. An up-to-date list has to wait until 100 ms after the server
    last asked its etcd how far it is. Each round trip before the lock is one less for the calls that wait for the lock.
    Surroundings that lag refuse nobody: None if no pool in them serves the request.
    """
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


def renewed(work: Work, terms: Terms, pools: tuple[Pool, ...], affinities: tuple[Stored[Affinity], ...]) -> Terms:
    """The terms by the pools and affinities that there are now. IpamError as `terms_for`."""
    labels = labels_for(work, terms.request, pools, terms.labels)
    choice = choose_pools(pools, pool_request(terms.request, terms.version, labels))
    return terms.replace(choice=choice, affinities=affinities, labels=labels)


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
    return AffinityKey.of(affinity).cidr
