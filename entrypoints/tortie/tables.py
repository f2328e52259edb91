"""What `tortie get` shows of each kind: calicoctl's columns, one row a record.

Invariant: a table shows records, it never decides; a field that says nothing is an empty cell.
"""

from __future__ import annotations

from adapters.records.custom_names import object_name
from domain.json_text import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from adapters.records.kinds import Kind
    from domain.cluster import ClusterInformation, Node
    from domain.ipam.pools import IPAMConfiguration, IPReservation, Pool
    from domain.workload.endpoint import Profile, WorkloadEndpoint
    from ports.datastore import Stored

    Column: TypeAlias = tuple[str, Callable[[Any], str]]

_DEFAULT_AS_NUMBER = "64512"


def _flag(value: bool | None) -> str:
    return "" if value is None else str(value).lower()


def _name(record: Pool | IPReservation | Node | Profile | WorkloadEndpoint | ClusterInformation) -> str:
    return record.metadata.name


def _bgp(node: Node, member: str) -> str:
    """A member of the node's BGP settings; a node without the member speaks for the default autonomous system."""
    spec = parse(node.spec)
    bgp = spec.get("bgp") if isinstance(spec, dict) else None
    if not isinstance(bgp, dict):
        return ""
    if member == "asNumber":
        return str(bgp.get(member) or f"({_DEFAULT_AS_NUMBER})")
    return str(bgp.get(member) or "")


def _workload(endpoint: WorkloadEndpoint) -> str:
    return endpoint.pod or endpoint.workload or endpoint.container_id


def _networks(endpoint: WorkloadEndpoint) -> str:
    return ",".join([str(network) for network in endpoint.ip_networks])


def _block_limit(config: IPAMConfiguration) -> str:
    return str(config.max_blocks_per_host or "")


def _inner_name(stored: Stored[Any]) -> str:
    return object_name(stored.key)


def _block_cidr(stored: Stored[Any]) -> str:
    return str(stored.key.cidr)  # type: ignore[attr-defined]  # that of a block or an affinity


def _affinity(stored: Stored[Any]) -> str:
    return stored.record.affinity or ""


def _held(stored: Stored[Any]) -> str:
    return str(len(stored.record.allocations) - stored.record.allocations.count(None))


def _counted(stored: Stored[Any]) -> str:
    return str(sum(stored.record.blocks.values()))


def _owner(stored: Stored[Any]) -> str:
    return str(stored.key.owner.name)  # type: ignore[attr-defined]  # that of an affinity


def _state(stored: Stored[Any]) -> str:
    return stored.record.state or "confirmed"


_POOL_HEAD: tuple[Column, ...] = (("NAME", _name), ("CIDR", lambda pool: pool.cidr_text))
_SELECTOR: Column = ("SELECTOR", lambda pool: pool.node_selector or "all()")
_ENDPOINT: tuple[Column, ...] = (
    ("WORKLOAD", _workload),
    ("NODE", lambda endpoint: endpoint.node),
    ("NETWORKS", _networks),
    ("INTERFACE", lambda endpoint: endpoint.interface_name),
)

# For each kind: the columns of the short table, and those of `-o wide`.
_COLUMNS: dict[str, tuple[tuple[Column, ...], tuple[Column, ...]]] = {
    "IPPool": (
        (*_POOL_HEAD, _SELECTOR),
        (
            *_POOL_HEAD,
            ("NAT", lambda pool: _flag(pool.nat_outgoing)),
            ("IPIPMODE", lambda pool: pool.ipip_mode or "Never"),
            ("VXLANMODE", lambda pool: pool.vxlan_mode or "Never"),
            ("DISABLED", lambda pool: _flag(pool.disabled)),
            ("DISABLEBGPEXPORT", lambda pool: _flag(pool.disable_bgp_export)),
            _SELECTOR,
        ),
    ),
    "Node": (
        (("NAME", _name),),
        (
            ("NAME", _name),
            ("ASN", lambda node: _bgp(node, "asNumber")),
            ("IPV4", lambda node: _bgp(node, "ipv4Address")),
            ("IPV6", lambda node: _bgp(node, "ipv6Address")),
        ),
    ),
    "WorkloadEndpoint": (
        _ENDPOINT,
        (
            ("NAME", _name),
            *_ENDPOINT,
            ("PROFILES", lambda endpoint: ",".join(endpoint.profiles)),
            ("NATS", lambda endpoint: ",".join([f"{nat.external}->{nat.internal}" for nat in endpoint.ip_nats])),
        ),
    ),
    "Profile": (
        (("NAME", _name),),
        (
            ("NAME", _name),
            ("LABELS", lambda profile: ",".join([f"{key}={text}" for key, text in profile.labels_to_apply.items()])),
        ),
    ),
    "IPReservation": (
        (("NAME", _name),),
        (("NAME", _name), ("CIDRS", lambda reservation: ",".join(reservation.cidrs))),
    ),
    "ClusterInformation": (
        (("NAME", _name), ("DATASTOREREADY", lambda cluster: _flag(cluster.datastore_ready))),
        (
            ("NAME", _name),
            ("DATASTOREREADY", lambda cluster: _flag(cluster.datastore_ready)),
            ("CLUSTERGUID", lambda cluster: cluster.cluster_guid),
            ("CLUSTERTYPE", lambda cluster: cluster.cluster_type),
            ("CALICOVERSION", lambda cluster: cluster.calico_version),
        ),
    ),
    "IPAMBlock": (
        (("NAME", _inner_name), ("CIDR", _block_cidr), ("AFFINITY", _affinity)),
        (
            ("NAME", _inner_name),
            ("CIDR", _block_cidr),
            ("AFFINITY", _affinity),
            ("HELD", _held),
            ("FREE", lambda stored: str(stored.record.allocations.count(None))),
        ),
    ),
    "IPAMHandle": (
        (("NAME", _inner_name), ("ADDRESSES", _counted)),
        (
            ("NAME", _inner_name),
            ("ADDRESSES", _counted),
            ("BLOCKS", lambda stored: ",".join([str(cidr) for cidr in stored.record.blocks])),
        ),
    ),
    "BlockAffinity": (
        (("NAME", _inner_name), ("OWNER", _owner), ("CIDR", _block_cidr), ("STATE", _state)),
        (
            ("NAME", _inner_name),
            ("OWNER", _owner),
            ("TYPE", lambda stored: stored.key.owner.kind),
            ("CIDR", _block_cidr),
            ("STATE", _state),
            ("DELETED", lambda stored: _flag(stored.record.deleted)),
        ),
    ),
    "IPAMConfiguration": (
        (("NAME", _name),),
        (
            ("NAME", _name),
            ("STRICTAFFINITY", lambda config: _flag(config.strict_affinity)),
            ("AUTOALLOCATEBLOCKS", lambda config: _flag(config.auto_allocate_blocks)),
            ("MAXBLOCKSPERHOST", _block_limit),
        ),
    ),
}


def headings(kind: Kind, *, wide: bool, namespaces: bool) -> tuple[str, ...]:
    """`namespaces` adds a first column that tells them apart."""
    return (*(["NAMESPACE"] if namespaces else []), *[heading for heading, _ in _COLUMNS[kind.name][wide]])


def cells(kind: Kind, stored: Stored[Any]) -> dict[str, str]:
    """By heading, of all columns that there are of the kind."""
    about = stored if kind.inner else stored.record
    short, wide = _COLUMNS[kind.name]
    found = {heading: cell(about) for heading, cell in (*wide, *short)}
    return {**found, "NAMESPACE": stored.record.metadata.namespace} if kind.namespaced else found
