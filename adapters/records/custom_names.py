"""Where our records live on a kube-apiserver: API groups, plurals, names, paths, labels.

A name is made from the key by rules that lose information (`.`, `:` and `/` become `-`, letters become lower case), so
it finds an object but never says which record that is: the object's own spec does.

Invariant: two keys share a path only if they differ in the case of a handle, or are a host's and a virtual owner's
affinity of one name and block (the original has it so).
"""

from __future__ import annotations

from adapters.records.members import BadName
from domain.ipam.address import Cidr
from domain.value import Value
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
    Key,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.ipam.block import Owner
    from ports.datastore import Need

V1 = "crd.projectcalico.org/v1"
V3 = "projectcalico.org/v3"

TYPE_LABEL = "projectcalico.org/affinity-type"
HOST_LABEL = "projectcalico.org/hostname-hash"
VERSION_LABEL = "projectcalico.org/ip-version"
UNLABELLED = f"!{TYPE_LABEL}"  # selects the affinities that versions before the labels wrote

_DEFAULT = "default"
_LONGEST = 253
_CONFIG = ("IPAMConfig", "ipamconfigs"), ("IPAMConfiguration", "ipamconfigurations")
_KINDS: dict[type, tuple[str, str]] = {
    BlockKey: ("IPAMBlock", "ipamblocks"),
    Blocks: ("IPAMBlock", "ipamblocks"),
    AffinityKey: ("BlockAffinity", "blockaffinities"),
    Affinities: ("BlockAffinity", "blockaffinities"),
    HandleKey: ("IPAMHandle", "ipamhandles"),
    Handles: ("IPAMHandle", "ipamhandles"),
    IPPoolKey: ("IPPool", "ippools"),
    IPPools: ("IPPool", "ippools"),
    IPReservationKey: ("IPReservation", "ipreservations"),
    IPReservations: ("IPReservation", "ipreservations"),
    ClusterInformationKey: ("ClusterInformation", "clusterinformations"),
    ClusterInformations: ("ClusterInformation", "clusterinformations"),
}
KIND_OF = {plural: kind for kind, plural in (*_CONFIG, *_KINDS.values())}
"""By the plural in their paths, in both groups."""
_CONFIG_TYPES = frozenset((AllocationConfigKey, IPAMConfigurationKey, IPAMConfigurations))
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class ObjectKey(Key["Any"]):
    """Names an object whose own text does not say which record it is; for errors only."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}({self.name})"


class CustomKind(Value):
    """`kind` and `plural` of a custom resource in one of the groups."""

    kind: str
    plural: str


def place_of(need: Need[Any] | type, group: str) -> CustomKind:
    """Where the records of a key or listing (or of their type) are. LookupError if they are no custom resources."""
    wanted = need if isinstance(need, type) else type(need)
    if wanted in _CONFIG_TYPES:
        return CustomKind(*_CONFIG[group == V3])
    if wanted not in _KINDS:
        raise LookupError(f"{wanted.__name__} names no custom resource")
    return CustomKind(*_KINDS[wanted])


def block_name(cidr: Cidr) -> str:
    """`172-16-178-160-29`, `fd00-10-244--40-122`."""
    return str(cidr.network).replace(".", "-").replace(":", "-").replace("/", "-")


def _affinity_name(owner: Owner, cidr: Cidr) -> str:
    """Owner and block; a name that would be too long is cut in the owner and told apart by a hash."""
    block = block_name(cidr)
    name = f"{owner.name}-{block}"
    if len(name) < _LONGEST:
        return name
    digest = _sha256(f"{owner.name}+{block}".encode())
    return f"{owner.name[: 239 - len(block)]}-{block}-{digest[:11]}"


def _sha256(text: bytes) -> str:
    """Hex. The C module alone: `hashlib` takes three times as long and loads OpenSSL (see `hostname_label`)."""
    try:
        from _sha2 import sha256  # type: ignore[import-not-found]  # CPython's own since 3.12, unknown to typeshed
    except ImportError:
        from _sha256 import sha256  # type: ignore[import-not-found]  # its name in 3.11

    digest: str = sha256(text).hexdigest()
    return digest


def hostname_label(host: str) -> str:
    """Base32 without padding of the SHA3-256: a node's name may be longer than a label's value.

    Measured on 3.11 for a cold process: `_sha3` 0.8 ms, `hashlib` 2.6 ms; `base64` 6 ms, the lines below nothing.
    """
    from _sha3 import sha3_256  # type: ignore[import-not-found]  # CPython's own C module, unknown to typeshed

    number = int.from_bytes(sha3_256(host.encode("utf-8", "surrogateescape")).digest(), "big") << 4  # 52 × 5 bits
    return "".join([_BASE32[number >> shift & 31] for shift in range(255, -1, -5)])


def object_name(key: Key[Any]) -> str:
    """The name of the object that holds a record, in lower case as the server wants it."""
    if isinstance(key, BlockKey):
        return block_name(key.cidr)
    if isinstance(key, AffinityKey):
        return _affinity_name(key.owner, key.cidr).lower()
    if isinstance(key, HandleKey):
        return key.handle.lower()
    if isinstance(key, AllocationConfigKey):
        return _DEFAULT
    name: str = key.name  # type: ignore[attr-defined]  # every other key is that of a v3 resource
    return name.lower()


def key_named(found: ObjectKey) -> Key[Any] | None:
    """The record that an object's name alone stands for; None where that is not certain."""
    if found.kind == "IPAMHandle":
        return HandleKey(found.name)
    if found.kind != "IPAMBlock":
        return None
    words = found.name.split("-")
    for separator in ".:":
        try:
            key = BlockKey(Cidr.parse(f"{separator.join(words[:-1])}/{words[-1]}"))
        except ValueError:
            continue
        if object_name(key) == found.name:
            return key
    return None


def path_segment(key: object, name: str) -> str:
    """The name percent-encoded. BadName for one that no object can have: it would lead to something else."""
    if not name or name in {".", ".."} or "/" in name or "%" in name:
        raise BadName(key, f"{name!r} cannot be the name of an object")
    if _PLAIN.issuperset(name):
        return name
    try:
        octets = name.encode()
    except UnicodeEncodeError:
        raise BadName(key, f"{name!r} cannot be the name of an object") from None
    return "".join([chr(one) if chr(one) in _PLAIN else f"%{one:02X}" for one in octets])


def collection_path(need: Need[Any] | type, group: str) -> str:
    """Where to list the records of a key or listing (or of their type), and where to create one."""
    return f"/apis/{group}/{place_of(need, group).plural}"


def object_path(key: Key[Any], group: str) -> str:
    """`/apis/crd.projectcalico.org/v1/ipamblocks/172-16-178-160-29`. BadName for a name that no object can have."""
    return f"{collection_path(key, group)}/{path_segment(key, object_name(key))}"


def affinity_labels(key: AffinityKey) -> dict[str, str]:
    """The labels by which affinities are listed."""
    return {
        TYPE_LABEL: key.owner.kind,
        HOST_LABEL: hostname_label(key.owner.name),
        VERSION_LABEL: str(key.cidr.version),
    }


def affinity_selector(listing: Affinities) -> str:
    """The label selector for the server; who lists compares the keys it gets as well."""
    parts = [f"{TYPE_LABEL}={listing.owner.kind}"]
    if listing.owner.name:
        parts.append(f"{HOST_LABEL}={hostname_label(listing.owner.name)}")
    if listing.version:
        parts.append(f"{VERSION_LABEL}={listing.version}")
    return ",".join(parts)
