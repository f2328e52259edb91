"""What the owner of a pod asks of its network: the annotations' names, and the values that their texts spell.

Lists are JSON texts. Whatever cannot be read is refused in the original's words before anything is allocated. An empty
text counts as no annotation.

Invariant: every function depends on the given texts alone.
"""

from __future__ import annotations

from domain.cni.plugin_conf import OWN_IPAM
from domain.ipam.address import BITS, V4, V6, Address, BadAddressText, Cidr
from domain.json_text import JsonError, kind_of, parse
from domain.value import Value
from domain.workload.endpoint import Nat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CNI = "cni.projectcalico.org/"
IP_ADDRS = _CNI + "ipAddrs"
IP_ADDRS_NO_IPAM = _CNI + "ipAddrsNoIpam"
IPV4_POOLS = _CNI + "ipv4pools"
IPV6_POOLS = _CNI + "ipv6pools"
IP_FAMILIES = _CNI + "ipFamilies"
HW_ADDR = _CNI + "hwAddr"
FLOATING_IPS = _CNI + "floatingIPs"
ALLOWED_SOURCE_PREFIXES = _CNI + "allowedSourcePrefixes"
KEEP_ADDRESSES = "tortie.io/keep-addresses"  # ours
# What an ADD writes back to the pod.
POD_IP = _CNI + "podIP"
POD_IPS = _CNI + "podIPs"
CONTAINER_ID = _CNI + "containerID"
# Written by others.
AWS_POD_IPS = "vpc.amazonaws.com/pod-ips"
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"

MIRROR = "kubernetes.io/config.mirror"  # by a kubelet, on what stands for a static pod of its node

NO_ADDRESS = "<nil>"  # Go's text for an address that is not there


class BadAnnotation(ValueError):
    """`str()` is the original's text. `key` is the annotation's name, `raw` its whole text."""

    def __init__(self, key: str, raw: str, message: str) -> None:
        super().__init__(message)
        self.key = key
        self.raw = raw


def _json_texts(raw: str) -> tuple[str, ...]:
    """A JSON list of strings; `null` is the empty list. JsonError in Go's words."""
    value = parse(raw)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise JsonError(f"json: cannot unmarshal {kind_of(value)} into Go value of type []string")
    for item in value:
        if not isinstance(item, str) and item is not None:
            raise JsonError(f"json: cannot unmarshal {kind_of(item)} into Go value of type string")
    return tuple([item if isinstance(item, str) else "" for item in value])


def _texts(key: str, raw: str) -> tuple[str, ...]:
    try:
        return _json_texts(raw)
    except JsonError as error:
        raise BadAnnotation(key, raw, f"failed to parse '{raw}' as JSON: {error}") from None


def parse_ip_list(key: str, raw: str) -> tuple[Address, ...]:
    """The addresses that a pod asks for by name (`ipAddrs`, `ipAddrsNoIpam`): one or two, at most one per version."""
    try:
        texts = _texts(key, raw)
    except BadAnnotation as error:
        raise BadAnnotation(key, raw, f'failed to parse IPs {raw} for annotation "{key}": {error}') from None
    if not texts:
        raise BadAnnotation(key, raw, f'annotation "{key}" specified but empty')
    found: dict[int, Address] = {}
    for text in texts:
        try:
            address = Address.parse(text)
        except ValueError:
            raise BadAnnotation(key, raw, f"invalid IP format: {text}") from None
        if address.version in found:
            wording = f'cannot have more than one IPv{address.version} address for "{key}" annotation'
            raise BadAnnotation(key, raw, wording)
        found[address.version] = address
    return tuple(found.values())


def allowed_source_prefixes(raw: str) -> tuple[str, ...]:
    """The prefixes that a pod may send from beside its own addresses, without host bits; an address counts too."""
    prefixes: list[str] = []
    for text in _texts(ALLOWED_SOURCE_PREFIXES, raw) if raw else ():
        try:
            prefixes.append(str(parse_prefix(text).network))
        except ValueError as error:
            wording = f"failed to parse '{text}' as a CIDR: {error}"
            raise BadAnnotation(ALLOWED_SOURCE_PREFIXES, raw, wording) from None
    return tuple(prefixes)


def parse_prefix(text: str) -> Cidr:
    """A CIDR or an address. BadAddressText `invalid CIDR address: <text>` for anything else."""
    try:
        return Cidr.parse_lenient(text)
    except ValueError:
        raise BadAddressText(f"invalid CIDR address: {text}") from None


def floating_nats(raw: str, networks: Sequence[Cidr]) -> tuple[Nat, ...]:
    """Each floating address with the pod's own address of its version, `networks` being the pod's addresses.

    As in the original an entry with a colon counts as IPv6, and that is the only check. An entry of a version that the
    pod lacks is translated to `NO_ADDRESS`, which every datastore refuses.
    """
    floating = _texts(FLOATING_IPS, raw) if raw else ()
    internal = {V4: NO_ADDRESS, V6: NO_ADDRESS}
    for network in networks if floating else ():
        bits = BITS[network.version]
        if network.length != bits:
            wording = f"is not a valid IPv{network.version}: Mask size is {network.length}, not {bits}"
            raise BadAnnotation(FLOATING_IPS, raw, f"PodIP {network} {wording}")
        internal[network.version] = str(network.address)
    return tuple([Nat(internal[V6 if ":" in external else V4], external) for external in floating])


class FixedAddresses(Value):
    """Addresses that the pod names itself. With `from_ipam` IPAM is to assign them, else it is not even asked."""

    addresses: tuple[Address, ...]
    from_ipam: bool


def fixed_addresses(annotations: Mapping[str, str], ipam_type: str, *, no_ipam_allowed: bool) -> FixedAddresses | None:
    """What `ipAddrs` or `ipAddrsNoIpam` ask for; None without either. BadAnnotation if it cannot be had."""
    assigned, unmanaged = annotations.get(IP_ADDRS, ""), annotations.get(IP_ADDRS_NO_IPAM, "")
    if not assigned and not unmanaged:
        return None
    if assigned and unmanaged:
        wording = "can't have both annotations: 'ipAddrs' and 'ipAddrsNoIpam' in use at the same time"
        raise BadAnnotation(IP_ADDRS, assigned, wording)
    key, raw = (IP_ADDRS, assigned) if assigned else (IP_ADDRS_NO_IPAM, unmanaged)
    if ipam_type != OWN_IPAM:
        short = key.removeprefix(_CNI)
        raise BadAnnotation(key, raw, f"{short} is not compatible with configured IPAM: {ipam_type}")
    if unmanaged and not no_ipam_allowed:
        raise BadAnnotation(key, raw, "requested feature is not enabled: ip_addrs_no_ipam")
    return FixedAddresses(parse_ip_list(key, raw), from_ipam=bool(assigned))


class PoolWishes(Value):
    """None where neither the pod nor its namespace says anything. `families` are 4 and 6."""

    ipv4_pools: tuple[str, ...] | None = None
    ipv6_pools: tuple[str, ...] | None = None
    families: tuple[int, ...] | None = None


_FAMILIES = {"IPv4": V4, "IPv6": V6}


def pool_wishes(pod: Mapping[str, str], namespace: Mapping[str, str]) -> PoolWishes:
    """Pools and families from both sets of annotations; for each key the pod's own counts first."""
    raws = [pod.get(key) or namespace.get(key, "") for key in (IPV4_POOLS, IPV6_POOLS, IP_FAMILIES)]
    return PoolWishes(_pools(IPV4_POOLS, raws[0]), _pools(IPV6_POOLS, raws[1]), _families(raws[2]))


def _pools(key: str, raw: str) -> tuple[str, ...] | None:
    """Names or CIDRs of pools. BadAnnotation with the bare JSON error."""
    if not raw:
        return None
    try:
        return _json_texts(raw)
    except JsonError as error:
        raise BadAnnotation(key, raw, str(error)) from None


def _families(raw: str) -> tuple[int, ...] | None:
    names = _pools(IP_FAMILIES, raw)
    if names is None:
        return None
    if not _FAMILIES.keys() >= set(names):
        raise BadAnnotation(IP_FAMILIES, raw, f"error parsing ipFamilies: {raw}")
    return tuple([version for name, version in _FAMILIES.items() if name in names])


def hardware_address(annotations: Mapping[str, str]) -> str | None:
    """The text for the container's MAC as the pod gives it, unchecked; None where it gives none."""
    return annotations.get(HW_ADDR)
