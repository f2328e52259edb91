"""What an operator sets about allocation: IP pools, reservations, settings; and which pools a request may draw from.

Invariant: choosing is a pure function of the stored pools, the node's and namespace's labels and the request.
"""

from __future__ import annotations

from domain.cni.errors import INVALID_CONFIG
from domain.ipam.address import V4, Address, Cidr
from domain.ipam.errors import IpamError, NoPool
from domain.resource import NO_LABELS, Metadata
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


AUTOMATIC = "Automatic"
SELECT_ALL = ("", "all()")
WORKLOAD, TUNNEL, LOAD_BALANCER = "Workload", "Tunnel", "LoadBalancer"
DEFAULT_BLOCK_SIZE = {4: 26, 6: 122}
BLOCK_SIZES = {4: (20, 32), 6: (116, 128)}  # a block is one record: at most 4,096 addresses


_ranges: dict[str, Cidr | None] = {}  # what texts mean; a choice looks at each pool's range a dozen times


def _range(text: str) -> Cidr | None:
    try:
        return Cidr.parse(text).network
    except ValueError:
        return None


class Pool(Value):
    """An IPPool. `cidr_text` is what the record says (possibly with host bits, possibly not a CIDR at all).

    `block_size` 0 and empty `allowed_uses`, `node_selector`, `assignment_mode` mean the defaults (the properties
    below give them). `conditions` are the status conditions as (type, status). `deleting` mirrors a deletionTimestamp.
    """

    metadata: Metadata
    cidr_text: str
    block_size: int = 0
    disabled: bool = False
    node_selector: str = ""
    namespace_selector: str = ""
    allowed_uses: tuple[str, ...] = ()
    assignment_mode: str = ""
    ipip_mode: str = ""
    vxlan_mode: str = ""
    nat_outgoing: bool = False
    disable_bgp_export: bool = False
    conditions: tuple[tuple[str, str], ...] = ()
    deleting: bool = False
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()

    @property
    def cidr(self) -> Cidr | None:
        """The canonical range; None when the record's text is no CIDR."""
        if self.cidr_text not in _ranges:
            _ranges[self.cidr_text] = _range(self.cidr_text)
        return _ranges[self.cidr_text]

    @property
    def block_length(self) -> int:
        """Prefix length of the pool's blocks."""
        version = self.cidr.version if self.cidr else V4
        return self.block_size or DEFAULT_BLOCK_SIZE[version]

    @property
    def uses(self) -> tuple[str, ...]:
        return self.allowed_uses or (WORKLOAD, TUNNEL)


class IPReservation(Value):
    """Addresses that automatic allocation must leave alone.

    `cidrs` are texts as stored; malformed entries are skipped when they are used.
    """

    metadata: Metadata
    cidrs: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()


class AllocationConfig(Value):
    """The cluster's settings that allocation reads, and what holds while nobody has stored any.

    `max_blocks_per_host` 0 means no configured limit; `cooldown_seconds` is 0..1200.
    """

    strict_affinity: bool = False
    auto_allocate_blocks: bool = True
    max_blocks_per_host: int = 0
    kubevirt_persistence: str | None = "Enabled"
    cooldown_seconds: int = 0
    unknown: tuple[tuple[str, str], ...] = ()


class IPAMConfiguration(Value):
    """The v3 resource of the same settings, which KubeVirt persistence and calicoctl read; nothing keeps the two equal.

    `spec_unknown` as in `AllocationConfig.unknown`.
    """

    metadata: Metadata
    strict_affinity: bool = False
    auto_allocate_blocks: bool = True
    max_blocks_per_host: int = 0
    kubevirt_persistence: str | None = None
    cooldown_seconds: int = 0
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()


class PoolRequest(Value):
    """What decides the choice of pools for one IP version.

    `wanted` are the pools asked for by range, in the order asked; empty leaves the choice to the pools' own settings.
    `namespace_labels` None means that no namespace is known. `longest_block` is the longest block prefix that can
    still serve the request (shorter than 32/128 only where a host reserves addresses in each block).
    """

    version: int
    node: str
    node_labels: Mapping[str, str]
    namespace_labels: Mapping[str, str] | None
    wanted: tuple[Cidr, ...] = ()
    use: str = WORKLOAD
    longest_block: int = 128


class PoolChoice(Value):
    """`usable` pools may serve the request, in order; `selected` are those that select this node, whatever their use.

    `enabled` are all enabled pools of the version.
    """

    usable: tuple[Pool, ...]
    selected: tuple[Pool, ...]
    enabled: tuple[Pool, ...]


def enabled_pools(pools: Iterable[Pool], version: int) -> tuple[Pool, ...]:
    """Pools of that version that may serve new allocations."""
    return tuple(
        pool
        for pool in pools
        if not pool.deleting
        and not pool.disabled
        and ("Allocatable", "False") not in pool.conditions
        and pool.cidr is not None
        and pool.cidr.version == version
    )


def pool_of(pools: Iterable[Pool], inside: Cidr | Address) -> Pool | None:
    """The first pool that contains an address or a block."""
    return next((pool for pool in pools if pool.cidr is not None and inside in pool.cidr), None)


def choose_pools(pools: Iterable[Pool], request: PoolRequest) -> PoolChoice:
    """Which pools may serve the request. IpamError when none may, saying at which step they fell out.

    It is `NoPool` if the request names no pool, so that the pools' own settings are the reason.
    """
    pools = tuple(pools)
    enabled = enabled_pools(pools, request.version)
    table = {pool.cidr: pool for pool in enabled if pool.block_length <= request.longest_block}
    if not table:
        raise NoPool("cannot find a qualified ippool", details=_passed_over(pools, request))
    selected = _requested(table, request, pools) if request.wanted else _automatic(enabled, request, pools)
    if not request.use:
        raise IpamError("must specify the intended use when assigning an IP")
    usable = tuple(pool for pool in selected if request.use in pool.uses and pool.block_length <= request.longest_block)
    if not usable:
        kind = IpamError if request.wanted else NoPool
        text = f"cannot find a qualified ippool, no pools match the required use ({request.use})"
        raise kind(text, details=_passed_over(pools, request))
    for pool in usable:
        require_block_size(pool)
    return PoolChoice(usable, selected, enabled)


def require_versions(pools: Mapping[int, tuple[Cidr, ...]]) -> None:
    """IpamError if a pool is asked for under the wrong IP version."""
    for version, cidrs in pools.items():
        others = {cidr.version for cidr in cidrs} - {version}
        if others:
            raise IpamError(f"provided IPv{version} IPPools list contains one or more IPv{others.pop()} IPPools")


def require_block_size(pool: Pool) -> None:
    """IpamError for a pool whose blocks would not fit in a record."""
    version = pool.cidr.version if pool.cidr else V4
    low, high = BLOCK_SIZES[version]
    if not low <= pool.block_length <= high:
        raise IpamError(
            f"IPPool {pool.metadata.name} has blockSize {pool.block_length}, "
            f"which for IPv{version} must be from {low} to {high}",
            code=INVALID_CONFIG,
        )


def _passed_over(pools: tuple[Pool, ...], request: PoolRequest) -> str:
    from domain.ipam.pool_reasons import passed_over  # few calls are refused

    return passed_over(pools, request)


def _requested(table: Mapping[Cidr | None, Pool], request: PoolRequest, pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """The pools asked for, in that order; their selectors and mode do not matter then."""
    for cidr in request.wanted:
        if cidr.network not in table:
            from domain.ipam.pool_reasons import unknown_pool  # as above

            why = unknown_pool(pools, cidr)
            raise IpamError(f"the given pool ({cidr}) does not exist, or is not enabled", details=why)
    return tuple(table[cidr.network] for cidr in request.wanted)


def _automatic(enabled: tuple[Pool, ...], request: PoolRequest, pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """The pools that select the node and the namespace by themselves."""
    selected = tuple(pool for pool in enabled if _selects(pool, request))
    if not selected:
        text = f"no configured Calico pools for node {request.node}"
        raise NoPool(text, details=_passed_over(pools, request))
    return selected


def _selects(pool: Pool, request: PoolRequest) -> bool:
    try:
        return (
            (pool.assignment_mode or AUTOMATIC) == AUTOMATIC
            and _matches(pool.node_selector, request.node_labels)
            and _matches(pool.namespace_selector, request.namespace_labels or NO_LABELS)
        )
    except ValueError as error:
        raise IpamError(f"IPPool {pool.metadata.name}: {error}") from error


def deselects(pool: Pool, node_labels: Mapping[str, str]) -> bool:
    """Whether the pool does not want a node with these labels. A selector that cannot be read turns nobody away."""
    try:
        return not _matches(pool.node_selector, node_labels)
    except ValueError:
        return False


def _matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether the labels satisfy the selector; `SelectorError`, a ValueError, for a text that is none."""
    if selector in SELECT_ALL:
        return True
    from domain.workload.selector import selects  # few pools select

    return selects(selector, labels)


def reserved_cidrs(reservations: Iterable[IPReservation], version: int) -> tuple[Cidr, ...]:
    """All reserved ranges of one IP version; blanks around a text are fine, what is no address or CIDR is skipped."""
    found: list[Cidr] = []
    for reservation in reservations:
        for text in reservation.cidrs:
            try:
                cidr = Cidr.parse_lenient(text.strip()).network
            except ValueError:
                continue
            if cidr.version == version:
                found.append(cidr)
    return tuple(found)
