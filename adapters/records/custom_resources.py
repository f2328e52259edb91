"""Our records ↔ custom resources of a kube-apiserver, in both API groups.

The members of a spec are those of the other datastores, so their codecs do the reading and writing; what is different
here is the envelope, the metadata, and that the spec repeats what elsewhere only the key says.

Invariant: `decode_object(encode_object(key, record, group), group, key)` gives the key and the record again, and an
object whose spec and name disagree is nobody's record.
"""

from __future__ import annotations

from adapters.records.custom_metadata import bare_metadata, converted_uid, read_metadata, write_metadata
from adapters.records.custom_names import (
    UNLABELLED,
    V1,
    V3,
    ObjectKey,
    affinity_labels,
    affinity_selector,
    collection_path,
    hostname_label,
    key_named,
    object_name,
    object_path,
    place_of,
)
from adapters.records.ipam import (
    attributes_text,
    block_members,
    handle_members,
    read_affinity,
    read_block,
    read_handle,
    read_ipam_configuration,
    settings_members,
)
from adapters.records.members import BadMember, BadRecord, Members, object_text
from adapters.records.resources import (
    cluster_information_spec,
    pool_spec,
    pool_status,
    read_cluster_information,
    read_pool,
    read_reservation,
    reservation_spec,
)
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Owner
from domain.ipam.pools import AllocationConfig
from domain.json_text import dumps, parse
from domain.resource import NO_LABELS
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPAMConfigurationKey,
    IPPoolKey,
    IPReservationKey,
    Stored,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from domain.ipam.block import Affinity, Block, Handle
    from domain.ipam.pools import IPAMConfiguration
    from domain.json_text import Json
    from domain.resource import Metadata
    from ports.datastore import Key, Revision

__all__ = [
    "UNLABELLED",
    "V1",
    "V3",
    "ObjectKey",
    "affinity_selector",
    "collection_path",
    "decode_object",
    "encode_object",
    "hostname_label",
    "is_deleted",
    "key_named",
    "object_name",
    "object_path",
    "object_revision",
    "object_uid",
]


# --- writing ---------------------------------------------------------------------------------------------------------


def _block_spec(key: BlockKey, block: Block, _group: str) -> str:
    known = [("cidr", dumps(str(key.cidr.network)))]
    if block.affinity is not None:
        known.append(("affinity", dumps(block.affinity)))
    if block.claimed_at is not None:
        known.append(("affinityClaimTime", dumps(block.claimed_at)))
    known.append(("strictAffinity", "false"))  # nobody reads it, but the schema requires it
    return object_text([*known, *block_members(block, attributes_text(block))], block.unknown)


def _affinity_spec(key: AffinityKey, affinity: Affinity, group: str) -> str:
    deleted = "true" if affinity.deleted else "false"
    known = [
        ("state", dumps(affinity.state)),
        ("node", dumps(key.owner.name)),
        ("type", dumps(key.owner.kind)),
        ("cidr", dumps(str(key.cidr.network))),
        ("deleted", deleted if group == V3 else dumps(deleted)),
    ]
    return object_text(known, affinity.unknown)


def _handle_spec(key: HandleKey, handle: Handle, _group: str) -> str:
    return object_text([("handleID", dumps(key.handle)), *handle_members(handle)], handle.unknown)


def _settings_spec(_key: AllocationConfigKey, config: AllocationConfig, _group: str) -> str:
    return object_text(settings_members(config), config.unknown)


def _configuration_spec(config: IPAMConfiguration) -> str:
    return object_text(settings_members(config), config.spec_unknown)


_BARE_SPECS: dict[type, Callable[[Any, Any, str], str]] = {
    BlockKey: _block_spec,
    AffinityKey: _affinity_spec,
    HandleKey: _handle_spec,
    AllocationConfigKey: _settings_spec,
}
_RESOURCE_SPECS: dict[type, Callable[[Any], str]] = {
    IPAMConfigurationKey: _configuration_spec,
    ClusterInformationKey: cluster_information_spec,
    IPPoolKey: pool_spec,
    IPReservationKey: reservation_spec,
}


def encode_object(key: Key[Any], record: Any, group: str, revision: Revision = "", uid: str = "") -> str:
    """The object's JSON text: for a POST without a revision, else for the PUT over that one.

    `uid` is the object's own (`object_uid`); a PUT that names it cannot hit a namesake created since. Resources know
    theirs. BadRecord when the record belongs under another key.
    """
    _check(key, record)
    place = place_of(key, group)
    envelope = [("kind", dumps(place.kind)), ("apiVersion", dumps(group))]
    if type(key) in _BARE_SPECS:
        labels = affinity_labels(key) if isinstance(key, AffinityKey) else NO_LABELS
        metadata = bare_metadata(object_name(key), group, labels, (revision, uid if revision else ""))
        spec = _BARE_SPECS[type(key)](key, record, group)
        return object_text([*envelope, ("metadata", metadata), ("spec", spec)])
    known_uid = converted_uid(record.metadata.uid) if group == V1 else record.metadata.uid
    metadata = write_metadata(record.metadata, group, (revision, (uid or known_uid) if revision else ""))
    known = [*envelope, ("metadata", metadata), ("spec", _RESOURCE_SPECS[type(key)](record))]
    status, unknown = pool_status(record) if isinstance(key, IPPoolKey) else ("", record.unknown)
    if status:
        known.append(("status", status))
    return object_text(known, unknown)


def _check(key: Key[Any], record: Any) -> None:
    """A record says again some of what its key says; when the two differ, nobody may act on it."""
    if isinstance(key, BlockKey) and record.cidr != key.cidr:
        raise BadRecord(key, f"its cidr is {record.cidr}")
    name = getattr(key, "name", None)
    if name is not None and record.metadata.name != name:
        raise BadRecord(key, f"its name is {record.metadata.name!r}")


# --- reading ---------------------------------------------------------------------------------------------------------


def _cidr_of(spec: dict[str, Json]) -> Cidr:
    return Cidr.parse_lenient(_required(spec, "cidr")).network


def _required(spec: dict[str, Json], name: str) -> str:
    text = spec.get(name)
    if not isinstance(text, str) or not text:
        raise BadMember(f"spec.{name} must be a string that is not empty")
    return text


def _block_key(_name: str, spec: dict[str, Json]) -> BlockKey:
    return BlockKey(_cidr_of(spec))


def _affinity_key(_name: str, spec: dict[str, Json]) -> AffinityKey:
    kind = _required(spec, "type") if spec.get("type") else HOST  # old objects have no type
    return AffinityKey(Owner(kind, _required(spec, "node")), _cidr_of(spec))


def _handle_key(name: str, spec: dict[str, Json]) -> HandleKey:
    r"""The name is in lower case, the spec has the ID as it was given; old versions left a `\r…` at its end."""
    handle = _required(spec, "handleID") if spec.get("handleID") else name
    return HandleKey(handle.partition("\r")[0])


_KEYS: dict[str, Callable[[str, dict[str, Json]], Key[Any]]] = {
    "IPAMBlock": _block_key,
    "BlockAffinity": _affinity_key,
    "IPAMHandle": _handle_key,
    "IPAMConfig": lambda name, _spec: IPAMConfigurationKey(name),
    "IPAMConfiguration": lambda name, _spec: IPAMConfigurationKey(name),
    "ClusterInformation": lambda name, _spec: ClusterInformationKey(name),
    "IPPool": lambda name, _spec: IPPoolKey(name),
    "IPReservation": lambda name, _spec: IPReservationKey(name),
}


def _read_block(spec: Members) -> Block:
    spec.drop("strictAffinity")
    return read_block(spec, "affinityClaimTime")


def _read_affinity(spec: Members) -> Affinity:
    spec.drop("node", "type", "cidr")
    return read_affinity(spec)


def _read_handle(spec: Members) -> Handle:
    spec.drop("handleID")
    return read_handle(spec)


def _read_settings(members: Members, metadata: Metadata) -> AllocationConfig:
    config = read_ipam_configuration(members, metadata)
    return AllocationConfig(
        strict_affinity=config.strict_affinity,
        auto_allocate_blocks=config.auto_allocate_blocks,
        max_blocks_per_host=config.max_blocks_per_host,
        kubevirt_persistence=config.kubevirt_persistence,
        cooldown_seconds=config.cooldown_seconds,
        unknown=config.spec_unknown,
    )


_BARE_READERS: dict[type, Callable[[Members], Any]] = {
    BlockKey: _read_block,
    AffinityKey: _read_affinity,
    HandleKey: _read_handle,
}
_RESOURCE_READERS: dict[type, Callable[[Members, Metadata], Any]] = {
    AllocationConfigKey: _read_settings,
    IPAMConfigurationKey: read_ipam_configuration,
    ClusterInformationKey: read_cluster_information,
    IPPoolKey: read_pool,
    IPReservationKey: read_reservation,
}


def decode_object(source: Json, group: str, key: Key[Any] | None = None) -> Stored[Any]:
    """The record that an object (JSON text or its value) holds, with the object's resourceVersion.

    `key` is the one that was asked for: the object must be its, and an `AllocationConfigKey` gets the allocation
    settings out of the object which otherwise is an IPAMConfiguration. Items of lists may lack their kind then.
    BadRecord names key and fault of an object that cannot be used.
    """
    subject: object = key or "of an unknown kind"
    try:
        value = parse(source) if isinstance(source, str) else source
        members = Members(value)
        metadata = members.inner("metadata")
        kind = members.text("kind") or (place_of(key, group).kind if key else "")
        name = _text(value, "metadata", "name")
        subject = key or ObjectKey(kind, name)
        found = subject = _found_key(kind, name, value, key)
        members.drop("apiVersion")
        record = _record(found, members, metadata, group)
    except ValueError as fault:
        raise BadRecord(subject, str(fault)) from fault
    return Stored(found, record, object_revision(value))


def _describes(found: Key[Any]) -> str:
    from ports.record_title import record_title  # only errors need it

    return f"it describes {record_title(found)}"


def _found_key(kind: str, name: str, value: Json, wanted: Key[Any] | None) -> Key[Any]:
    """BadMember when the object is not what its name says, or not what was asked for."""
    if kind not in _KEYS:
        raise BadMember(f"kind {kind!r} is none of ours")
    spec = value.get("spec") if isinstance(value, dict) else None
    found = _KEYS[kind](name, spec if isinstance(spec, dict) else {})
    if object_name(found) != name.lower():
        raise BadMember(f"its name is {name!r}, but {_describes(found)}")
    if isinstance(wanted, AllocationConfigKey) and isinstance(found, IPAMConfigurationKey):
        return wanted
    if wanted is not None and found != wanted:
        raise BadMember(_describes(found))
    return found


def _record(key: Key[Any], members: Members, metadata: Members, group: str) -> Any:
    if type(key) in _BARE_READERS:
        return _BARE_READERS[type(key)](members.inner("spec"))
    return _RESOURCE_READERS[type(key)](members, read_metadata(metadata, group))


def _text(value: Json, *path: str) -> str:
    """A text deep inside of an object; "" when there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def object_revision(value: Json) -> Revision:
    """The object's resourceVersion."""
    return _text(value, "metadata", "resourceVersion")


def object_uid(value: Json) -> str:
    """The object's own uid, which preconditions name; that of a v1 resource is another (`converted_uid`)."""
    return _text(value, "metadata", "uid")


def is_deleted(value: Json) -> bool:
    """Whether the object is only waiting for somebody to remove it."""
    spec = value.get("spec") if isinstance(value, dict) else None
    return isinstance(spec, dict) and spec.get("deleted") in (True, "true")
