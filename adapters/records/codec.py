"""Keys and records ↔ the texts by which etcd and the embedded datastore know them, and what a list covers.

Invariant: `parse_key(key_text(key)) == key`; a text of an unknown kind is None. The
prefix of a list ends where a name ends, so a list of `/a` never sees `/ab` (endpoint name prefixes are the exception).
`decode(key, encode(key, record)) == record`, and for text that the original wrote and whose members we all know,
`encode(key, decode(key, text)) == text`.
"""

from __future__ import annotations

from adapters.records.endpoints import decode_endpoint, decode_profile, encode_endpoint, encode_profile
from adapters.records.ipam import (
    decode_affinity,
    decode_allocation_config,
    decode_block,
    decode_handle,
    decode_ipam_configuration,
    encode_affinity,
    encode_allocation_config,
    encode_block,
    encode_handle,
    encode_ipam_configuration,
)
from adapters.records.members import BadName, BadRecord
from adapters.records.resources import (
    decode_cluster_information,
    decode_node,
    decode_pool,
    decode_reservation,
    encode_cluster_information,
    encode_node,
    encode_pool,
    encode_reservation,
)
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, VIRTUAL, Owner
from domain.ipam.pools import BLOCK_SIZES
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    ClusterInformations,
    HandleKey,
    Handles,
    IPAMConfigurationKey,
    IPAMConfigurations,
    IPPoolKey,
    IPPools,
    IPReservationKey,
    IPReservations,
    NodeKey,
    Nodes,
    ProfileKey,
    Profiles,
    WorkloadEndpointKey,
    WorkloadEndpoints,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ports.datastore import Key, Listing

    NamedKey = (
        type[IPPoolKey]
        | type[IPReservationKey]
        | type[IPAMConfigurationKey]
        | type[ClusterInformationKey]
        | type[ProfileKey]
        | type[NodeKey]
    )
    R = TypeVar("R")

_IPAM = "/calico/ipam/v2/"
_RESOURCES = "/calico/resources/v3/projectcalico.org/"
ROOTS = (_IPAM, _RESOURCES)  # all keys that we know begin with one of these
_CONFIG = _IPAM + "config"
_ENDPOINTS = "workloadendpoints"
_PLURALS: dict[type, str] = {
    IPPoolKey: "ippools",
    IPReservationKey: "ipreservations",
    IPAMConfigurationKey: "ipamconfigurations",
    ClusterInformationKey: "clusterinformations",
    ProfileKey: "profiles",
    NodeKey: "nodes",
}
_NAMED: dict[str, NamedKey] = {plural: kind for kind, plural in _PLURALS.items()}
_LISTED: dict[type, str] = {
    Handles: _IPAM + "handle/",
    IPPools: _RESOURCES + "ippools/",
    IPReservations: _RESOURCES + "ipreservations/",
    IPAMConfigurations: _RESOURCES + "ipamconfigurations/",
    ClusterInformations: _RESOURCES + "clusterinformations/",
    Profiles: _RESOURCES + "profiles/",
    Nodes: _RESOURCES + "nodes/",
}


def _part(key: object, name: str) -> str:
    """One path element. BadName for a name that would name another record or none."""
    if not name or "/" in name or "\0" in name or any("\ud800" <= one <= "\udfff" for one in name):
        raise BadName(key, f"{name!r} cannot be part of a datastore key")
    return name


def _cidr_part(cidr: Cidr) -> str:
    return f"{cidr.network.address}-{cidr.length}"


def key_text(key: Key[Any]) -> str:
    """The etcd key. BadName for a name that no key can hold."""
    if isinstance(key, BlockKey):
        return f"{_IPAM}assignment/ipv{key.cidr.version}/block/{_cidr_part(key.cidr)}"
    if isinstance(key, AffinityKey):
        owner = f"{_part(key, key.owner.kind)}/{_part(key, key.owner.name)}"
        return f"{_IPAM}{owner}/ipv{key.cidr.version}/block/{_cidr_part(key.cidr)}"
    if isinstance(key, HandleKey):
        return f"{_IPAM}handle/{_part(key, key.handle)}"
    if isinstance(key, AllocationConfigKey):
        return _CONFIG
    if isinstance(key, WorkloadEndpointKey):
        return f"{_RESOURCES}{_ENDPOINTS}/{_part(key, key.namespace)}/{_part(key, key.name)}"
    name: str = key.name  # type: ignore[attr-defined]  # every other key is that of a v3 resource without namespace
    return f"{_RESOURCES}{_PLURALS[type(key)]}/{_part(key, name)}"


def _parse_cidr(version: str, text: str) -> Cidr | None:
    try:
        cidr = Cidr.parse(text.replace("-", "/"))
    except ValueError:
        return None
    return cidr if f"ipv{cidr.version}" == version and _cidr_part(cidr) == text else None


def _parse_ipam(parts: list[str]) -> Key[Any] | None:
    if len(parts) == 2 and parts[0] == "handle":
        return HandleKey(parts[1])
    if len(parts) == 4 and parts[0] == "assignment" and parts[2] == "block":
        cidr = _parse_cidr(parts[1], parts[3])
        return BlockKey(cidr) if cidr else None
    if len(parts) == 5 and parts[0] in {HOST, VIRTUAL} and parts[3] == "block":
        cidr = _parse_cidr(parts[2], parts[4])
        return AffinityKey(Owner(parts[0], parts[1]), cidr) if cidr else None
    return None


def _parse_resource(parts: list[str]) -> Key[Any] | None:
    if len(parts) == 3 and parts[0] == _ENDPOINTS:
        return WorkloadEndpointKey(parts[1], parts[2])
    if len(parts) == 2 and parts[0] in _NAMED:
        return _NAMED[parts[0]](parts[1])
    return None


def parse_key(text: str) -> Key[Any] | None:
    """The key that a text spells; None for records of other kinds."""
    if text == _CONFIG:
        return AllocationConfigKey()
    for root, parse in ((_IPAM, _parse_ipam), (_RESOURCES, _parse_resource)):
        if text.startswith(root):
            parts = text[len(root) :].split("/")
            return parse(parts) if all(parts) else None
    return None


def listing_prefix(listing: Listing[Any]) -> str:
    """What its records' keys begin with, but for `listed_beside`; `matches` decides about the rest."""
    if isinstance(listing, Blocks):
        if listing.around is not None:
            return _prefix_within(listing.around)
        return _IPAM + "assignment/" + (f"ipv{listing.version}/" if listing.version else "")
    if isinstance(listing, Affinities):
        prefix = f"{_IPAM}{listing.owner.kind}/"
        if not listing.owner.name:
            return prefix
        return f"{prefix}{listing.owner.name}/" + (f"ipv{listing.version}/" if listing.version else "")
    if isinstance(listing, WorkloadEndpoints):
        prefix = f"{_RESOURCES}{_ENDPOINTS}/"
        return f"{prefix}{listing.namespace}/{listing.name_prefix}" if listing.namespace else prefix
    return _LISTED[type(listing)]


def listed_beside(listing: Listing[Any]) -> list[str]:
    """Keys that a listing covers although they do not begin with its prefix: of the larger blocks around a range."""
    if not isinstance(listing, Blocks) or listing.around is None:
        return []
    around, prefix = listing.around, listing_prefix(listing)
    lengths = range(BLOCK_SIZES[around.version][0], around.length)
    larger = [key_text(BlockKey(around.replace(length=length))) for length in lengths]
    return [text for text in larger if not text.startswith(prefix)]


def listing_suffix(listing: Listing[Any]) -> str:
    """What the keys of all records of a listing end with: most of them need not be read closer then."""
    to = listing.to if isinstance(listing, Affinities) else None
    return f"/ipv{to.version}/block/{_cidr_part(to)}" if to else ""


def _prefix_within(cidr: Cidr) -> str:
    """What the keys of all blocks inside a block begin with: the groups that their addresses have in common.

    A block has at most 4,096 addresses, so those of IPv6 differ in the last group only, and all but its zero are
    spelled alike.
    """
    first, last = str(cidr.network.address), str(cidr.at(cidr.size - 1))
    ends = [at for at, (one, other) in enumerate(zip(first, last)) if one == other and one in ".:"]
    same = [end for end in ends if first[:end] == last[:end]]
    return f"{_IPAM}assignment/ipv{cidr.version}/block/{first[: same[-1] + 1] if same else ''}"


def matches(listing: Listing[Any], key: Key[Any]) -> bool:
    """Whether a record under the listing's prefix belongs to it."""
    if isinstance(listing, Affinities):
        if not isinstance(key, AffinityKey):
            return False
        return listing.version in (None, key.cidr.version) and listing.to in (None, key.cidr)
    if isinstance(listing, Blocks) and listing.around is not None:
        return isinstance(key, BlockKey) and key.cidr.overlaps(listing.around)
    return not isinstance(listing, WorkloadEndpoints) or _is_listed(listing, key)


def _is_listed(listing: WorkloadEndpoints, key: Key[Any]) -> bool:
    if not isinstance(key, WorkloadEndpointKey) or not key.name.startswith(listing.name_prefix):
        return False
    if not listing.node:
        return True
    from domain.workload.identity import is_of_node  # no plugin asks for these

    return is_of_node(key.name, listing.node)


_CODECS: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    BlockKey: (encode_block, decode_block),
    AffinityKey: (encode_affinity, decode_affinity),
    HandleKey: (encode_handle, decode_handle),
    AllocationConfigKey: (encode_allocation_config, decode_allocation_config),
    IPAMConfigurationKey: (encode_ipam_configuration, decode_ipam_configuration),
    ClusterInformationKey: (encode_cluster_information, decode_cluster_information),
    NodeKey: (encode_node, decode_node),
    IPPoolKey: (encode_pool, decode_pool),
    IPReservationKey: (encode_reservation, decode_reservation),
    ProfileKey: (encode_profile, decode_profile),
    WorkloadEndpointKey: (encode_endpoint, decode_endpoint),
}


def _check(key: Key[Any], record: Any) -> None:
    """A record says again some of what its key says; when the two differ, nobody may act on it."""
    if isinstance(key, BlockKey) and record.cidr != key.cidr:
        raise BadRecord(key, f"its cidr is {record.cidr}")
    name = getattr(key, "name", None)
    if name is not None and record.metadata.name != name:
        raise BadRecord(key, f"its name is {record.metadata.name!r}")
    if isinstance(key, WorkloadEndpointKey) and record.metadata.namespace != key.namespace:
        raise BadRecord(key, f"its namespace is {record.metadata.namespace!r}")


def encode(key: Key[R], record: R) -> str:
    """JSON text as the original writes it. BadRecord when the record belongs under another key."""
    _check(key, record)
    return _CODECS[type(key)][0](record)


def decode(key: Key[R], text: str) -> R:
    """The record. BadRecord, naming key and fault, when the text does not describe one that is safe to use."""
    try:
        record: R = _CODECS[type(key)][1](text)
    except ValueError as fault:
        raise BadRecord(key, str(fault)) from fault
    _check(key, record)
    return record
