"""Stored v3 resources ↔ the manifests that people read and write with calicoctl.

A manifest is the stored text plus `metadata.resourceVersion`, so both share the codecs; what differs is strictness. A
record of an unknown version must survive, but a person's typing error must be named before it is stored.

Invariant: `from_manifest(to_manifest(stored)) == (stored.key, stored.record)` for records without unknown members.
"""

from __future__ import annotations

from adapters.records.codec import decode, encode, key_text
from adapters.records.custom_names import V1, object_name
from adapters.records.custom_resources import encode_object
from adapters.records.kinds import KINDS, kind_named, kind_of
from adapters.records.members import expect
from adapters.records.resources import API_VERSION
from domain.ipam.address import Cidr
from domain.ipam.pool_rules import complete_pool
from domain.json_text import dumps, parse
from ports.datastore import (
    ClusterInformationKey,
    IPAMConfigurationKey,
    IPPoolKey,
    IPReservationKey,
    NodeKey,
    ProfileKey,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from adapters.records.kinds import Kind
    from domain.json_text import Json
    from domain.resource import Metadata
    from ports.datastore import Key, Stored

_METADATA = frozenset(
    ("generation", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields")
)
_NODE_SPEC = frozenset(
    (
        *("bgp", "orchRefs", "addresses", "interfaces", "wireguard", "ipv4VXLANTunnelAddr", "ipv6VXLANTunnelAddr"),
        *("vxlanTunnelMACAddr", "vxlanTunnelMACAddrV6"),
    )
)
_RULE = frozenset(
    ("ipVersion", "protocol", "icmp", "notProtocol", "notICMP", "source", "destination", "http", "metadata")
)
_KNOWN_SPEC: dict[type, frozenset[str]] = {
    ClusterInformationKey: frozenset(("variant",)),
    IPPoolKey: frozenset(("awsSubnetID",)),
}
# What a reader of stored records passes over if its type is wrong, and what a manifest must have right all the same.
_SPARE: dict[str, type] = {
    **dict.fromkeys(("metadata.generateName", "metadata.uid", "metadata.creationTimestamp"), str),
    **dict.fromkeys(("spec.ipipMode", "spec.vxlanMode", "spec.clusterGUID", "spec.clusterType"), str),
    **dict.fromkeys(("spec.natOutgoing", "spec.disableBGPExport"), bool),
    **dict.fromkeys(("metadata.annotations", "spec", "status"), dict),
    "spec.calicoVersion": str,
}
_ACTIONS = ("Allow", "Deny", "Log", "Pass")
_ONLY_DEFAULT = (ClusterInformationKey, IPAMConfigurationKey)


class BadManifest(ValueError):
    """What is wrong with a manifest, for the person who wrote it: `<Kind>(<name>): <fault>`."""


def to_manifest(stored: Stored[Any]) -> dict[str, Json]:
    """What `calicoctl get -o json` prints: the stored object with its resourceVersion.

    IPAM's own records are shown as kubectl shows their custom resources, whatever the datastore.
    """
    if kind_of(stored.key).inner:
        inner = parse(encode_object(stored.key, stored.record, V1, stored.revision))
        assert isinstance(inner, dict)  # noqa: S101 - every custom resource is an object
        return inner
    manifest = parse(encode(stored.key, stored.record))
    assert isinstance(manifest, dict)  # noqa: S101 - every v3 resource is an object
    metadata: dict[str, Json] = {}
    for name, value in manifest["metadata"].items():  # type: ignore[union-attr]  # so is its metadata
        if name in {"creationTimestamp", "labels", "annotations"}:
            metadata.setdefault("resourceVersion", stored.revision)  # where Go's order of members puts it
        metadata[name] = value
    metadata.setdefault("resourceVersion", stored.revision)
    manifest["metadata"] = metadata
    return manifest


def to_list(kinds: Sequence[Kind], found: Iterable[Stored[Any]]) -> dict[str, Json]:
    """What `calicoctl get <plural>` prints for several; of several kinds kubectl's `List`."""
    items: list[Json] = [to_manifest(stored) for stored in found]
    if len(kinds) != 1:
        return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}
    group = V1 if kinds[0].inner else API_VERSION
    return {"kind": f"{kinds[0].name}List", "apiVersion": group, "metadata": {}, "items": items}


def name_of(key: Key[Any]) -> str:
    """What a record is called within its kind and namespace."""
    if kind_of(key).inner:
        return object_name(key)
    name: str = key.name  # type: ignore[attr-defined]  # every key of a v3 resource has one
    return name


def exported(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Without what belongs to one cluster only."""
    own = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in own}
    return {**manifest, "metadata": metadata}


def expand(document: Any) -> list[Any]:
    """The manifests in a document: itself, the elements of a list, the items of a `…List`."""
    if isinstance(document, list):
        return [one for item in document for one in expand(item)]
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        return expand(document.get("items") or [])
    return [] if document is None else [document]


def revision_of(manifest: Mapping[str, Any]) -> str | None:
    """The revision that the manifest was read at, if it says one: writing it back then must not hide a change."""
    metadata = manifest.get("metadata")
    revision = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return str(revision) if revision else None


def from_manifest(manifest: Any) -> tuple[Key[Any], Any]:
    """The key and the record that a manifest describes, defaults filled in. BadManifest names what is wrong with it."""
    document = _json(manifest, "the manifest")
    if not isinstance(document, dict):
        raise BadManifest("a manifest must be an object with apiVersion, kind, metadata and spec")
    kind = _kind(document)
    key = _key(kind, document)
    try:
        record = decode(key, dumps(document))
        _check_known(key, record)
        return key, _completed(key, record, document)
    except ValueError as error:
        fault = str(getattr(error, "fault", error))
        quotes = "; write it in quotes" if fault.endswith(("a string, not a number", "a string, not a boolean")) else ""
        raise BadManifest(f"{key}: {fault}{quotes}") from error


def _json(value: Any, path: str) -> Json:
    """YAML can hold values that JSON cannot: instants become RFC 3339 text, others are refused."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, list):
        return [_json(item, f"{path}[{at}]") for at, item in enumerate(value)]
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):
                raise BadManifest(f"{path}: the name of a member must be a string, not {name!r}")
        return {name: _json(item, f"{path}.{name}") for name, item in value.items()}
    if hasattr(value, "utctimetuple"):
        year, month, day, hour, minute, second = value.utctimetuple()[:6]
        return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}Z"
    raise BadManifest(f"{path}: a {type(value).__name__} has no place in a manifest")


def _kind(document: dict[str, Json]) -> Kind:
    version, name = document.get("apiVersion"), document.get("kind")
    for member, given in (("apiVersion", version), ("kind", name)):
        if given is None:
            raise BadManifest(f"{member} is missing; write apiVersion: {API_VERSION} and a kind")
    kind = kind_named(name) if isinstance(name, str) else None
    if kind is not None and kind.inner:
        raise BadManifest(f"kind {kind.name} is IPAM's own, which `tortie ipam` repairs; it is not written by hand")
    if version != API_VERSION:
        hint = "; `tortie convert` takes what kubectl shows of it" if version == V1 else ""
        raise BadManifest(f"apiVersion must be {API_VERSION}, not {version!r}{hint}")
    if kind is None or kind.name != name:
        known = ", ".join(one.name for one in KINDS)
        raise BadManifest(f"kind {name!r} is not one of {known}; for others take calicoctl or kubectl")
    return kind


def _key(kind: Kind, document: dict[str, Json]) -> Key[Any]:
    """The key that the metadata name; a namespaced kind without a namespace is in `default`."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise BadManifest(f"{kind.name}: metadata must be an object with at least a name")
    name, namespace = metadata.get("name"), metadata.get("namespace") or ""
    if not isinstance(name, str) or not name:
        raise BadManifest(f"{kind.name}: metadata.name is missing")
    if not isinstance(namespace, str):
        raise BadManifest(f"{kind.name}({name}): metadata.namespace must be a string")
    if namespace and not kind.namespaced:
        raise BadManifest(f"{kind.name}({name}): metadata.namespace must not be given, the kind has no namespaces")
    if kind.namespaced:
        namespace = namespace or "default"
        document["metadata"] = {**metadata, "namespace": namespace}
    key = kind.key(name, namespace)
    if isinstance(key, _ONLY_DEFAULT) and name != "default":
        raise BadManifest(f"{key}: metadata.name must be 'default', there is only one")
    try:
        key_text(key)
    except ValueError as fault:
        raise BadManifest(f"{key}: metadata.name cannot hold {name!r}") from fault
    return key


def _check_known(key: Key[Any], record: Any) -> None:
    """BadManifest naming every member that nobody would read."""
    metadata: Metadata = record.metadata
    for where, members in (("metadata.", metadata.unknown), ("", record.unknown), ("spec.", _spec_unknown(record))):
        for name, text in members:
            if where + name in _SPARE:
                expect(parse(text), _SPARE[where + name], where + name)
    found = [f"metadata.{name}" for name, _ in metadata.unknown if name not in _METADATA]
    found += [name for name, _ in record.unknown if name != "status"]
    spec = [name for name, _ in _spec_unknown(record)]
    known = _KNOWN_SPEC.get(type(key), frozenset())
    if isinstance(key, NodeKey):
        spec, known = list(parse(record.spec)), _NODE_SPEC  # type: ignore[arg-type]  # the codec made it an object
    found += [f"spec.{name}" for name in spec if name not in known]
    if isinstance(key, ProfileKey):
        for direction in ("ingress", "egress"):
            rules = getattr(record, direction)
            names = [(at, name) for at, rule in enumerate(rules) for name, _ in rule.unknown if name not in _RULE]
            found += [f"spec.{direction}[{at}].{name}" for at, name in names]
    if found:
        raise BadManifest(f"unknown field{'s' if len(found) > 1 else ''} {', '.join(found)}")


def _spec_unknown(record: Any) -> tuple[tuple[str, str], ...]:
    found: tuple[tuple[str, str], ...] = getattr(record, "spec_unknown", ())
    return found


def _completed(key: Key[Any], record: Any, document: dict[str, Json]) -> Any:
    if isinstance(key, IPPoolKey):
        return complete_pool(record)
    if isinstance(key, IPReservationKey):
        for cidr in record.cidrs:
            Cidr.parse_lenient(cidr)
    if isinstance(key, ProfileKey):
        for rule in (*record.ingress, *record.egress):
            if rule.action not in _ACTIONS:
                raise BadManifest(f"the action of a rule must be one of {', '.join(_ACTIONS)}, not {rule.action!r}")
    if isinstance(key, IPAMConfigurationKey):
        return _completed_configuration(record, document.get("spec"))
    return record


def _completed_configuration(record: Any, spec: Json) -> Any:
    """Left out of a manifest, automatic blocks stay on, as an API server would default it."""
    if record.kubevirt_persistence not in (None, "Enabled", "Disabled"):
        raise BadManifest("spec.kubeVirtVMAddressPersistence must be Enabled or Disabled")
    if not 0 <= record.cooldown_seconds <= 1200:
        raise BadManifest("spec.ipCooldownSeconds must be 0 to 1200")
    if not 0 <= record.max_blocks_per_host <= 1_000_000:
        raise BadManifest("spec.maxBlocksPerHost must be 0 to 1000000")
    if not isinstance(spec, dict) or spec.get("autoAllocateBlocks") is None:
        return record.replace(auto_allocate_blocks=True)
    return record
