"""Whether the kernel has what plugins use, and is set so that their containers can reach anything.

Invariant: what nothing here needs may be missing.
"""

from __future__ import annotations

from domain.doctor.diagnosis import error, ok, warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.doctor.diagnosis import Diagnosis
    from domain.doctor.seen import Uplink

NETNS, VETH, BRIDGE, VXLAN, NFTABLES = "network namespaces", "veth", "bridge", "vxlan", "nftables"
FEATURES = (NETNS, VETH, BRIDGE, VXLAN, NFTABLES)
KERNEL, ROUTE, FORWARDING, RP_FILTER, MTU = "kernel", "default-route", "forwarding", "rp-filter", "mtu"
FORWARDING_OF = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}
RP_FILTER_ALL = "net.ipv4.conf.all.rp_filter"
DISABLE_IPV6 = "net.ipv6.conf.all.disable_ipv6"
SETTINGS = (*FORWARDING_OF.values(), RP_FILTER_ALL, DISABLE_IPV6)
_LOOSE = "2"
_NO_SETTINGS = "see that /proc is mounted here, and that the kernel has that protocol"
_USUAL_MTU = 1500
VXLAN_TAKES, IPIP_TAKES = {4: 50, 6: 70}, 20  # bytes of each packet


def judge_features(lacking: Mapping[str, str], needs: Mapping[str, str]) -> tuple[Diagnosis, ...]:
    """`lacking` is why each feature is not to be had; `needs` who needs it, for those that somebody does."""
    found = [
        error(KERNEL, f"{feature}: {lacking[feature]}, and {needs[feature]} needs it", _remedy(feature))
        for feature in FEATURES
        if feature in lacking and feature in needs
    ]
    if found:
        return tuple(found)
    there = ", ".join([feature for feature in FEATURES if feature not in lacking])
    missing = ", ".join([f"{feature} ({lacking[feature]})" for feature in FEATURES if feature in lacking])
    return (ok(KERNEL, there + (f"; not needed here: {missing}" if missing else "")),)


def _remedy(feature: str) -> str:
    modules = {NETNS: "", NFTABLES: "nf_tables"}
    module = modules.get(feature, feature)
    return f"`modprobe {module}`, or a kernel that has it" if module else "take a kernel with CONFIG_NET_NS"


def judge_settings(values: Mapping[str, str], versions: Sequence[int]) -> tuple[Diagnosis, ...]:
    """`values` are kernel settings by name, "" for those that are not there; `versions` those that containers get."""
    found: list[Diagnosis] = []
    off = [name for version, name in FORWARDING_OF.items() if version in versions and values.get(name) == "0"]
    if off:
        seen = " and ".join([f"{name}=0" for name in off])
        do = "; ".join([f"sysctl -w {name}=1" for name in off])
        found.append(
            error(FORWARDING, f"{seen}: containers reach nothing beyond this host", f"{do} (and in /etc/sysctl.d)")
        )
    if 6 in versions and values.get(DISABLE_IPV6) == "1":
        found.append(
            error(FORWARDING, f"{DISABLE_IPV6}=1, and containers get IPv6 addresses", f"sysctl -w {DISABLE_IPV6}=0")
        )
    names = [FORWARDING_OF[version] for version in versions]
    if unknown := [name for name in names if not values.get(name)]:
        found.append(warning(FORWARDING, f"{' and '.join(unknown)} cannot be read", _NO_SETTINGS))
    if not found:
        found.append(ok(FORWARDING, ", ".join([f"{name}={values[name]}" for name in names])))
    return (*found, _judge_rp_filter(values.get(RP_FILTER_ALL, "")))


def _judge_rp_filter(value: str) -> Diagnosis:
    if value == _LOOSE:
        seen = f"{RP_FILTER_ALL}=2 (loose): containers can send under others' addresses, and Felix refuses to start"
        return warning(RP_FILTER, seen, f"sysctl -w {RP_FILTER_ALL}=1 (and in /etc/sysctl.d)")
    if not value:
        return warning(RP_FILTER, f"{RP_FILTER_ALL} cannot be read", _NO_SETTINGS)
    return ok(RP_FILTER, f"{RP_FILTER_ALL}={value}")


def judge_route(uplinks: Sequence[Uplink]) -> Diagnosis:
    """The host answers for containers' gateway, 169.254.1.1, by proxy ARP: only if it has a route to that itself."""
    of_ipv4 = [uplink.device for uplink in uplinks if uplink.version == 4]
    if of_ipv4:
        return ok(ROUTE, f"over {', '.join(dict.fromkeys(of_ipv4))}")
    seen = "no IPv4 default route: the host does not answer for the containers' gateway, 169.254.1.1"
    return error(ROUTE, seen, "add one (`ip route add default via …`), or one to 169.254.1.1")


def judge_mtu(mtu: int, source: str, uplinks: Sequence[Uplink], takes: tuple[int, str] = (0, "")) -> Diagnosis:
    """`mtu` is what containers' devices get, 0 for the kernel's default. `takes` is how much of a packet a tunnel takes
    between nodes, and which.
    """
    given = mtu or _USUAL_MTU
    narrowest = min([uplink for uplink in uplinks if uplink.mtu], key=lambda uplink: uplink.mtu, default=None)
    shown = f"{given} ({source})"
    if narrowest is None:
        return ok(MTU, f"{shown}; no default route to compare with")
    room = narrowest.mtu - takes[0]
    of = f"{narrowest.device} carries {narrowest.mtu}" + (f", of which {takes[1]} takes {takes[0]}" if takes[0] else "")
    if given > room:
        do = f'set "mtu" in the configuration to {room} or less, and make the containers anew'
        return warning(MTU, f"{shown}, but {of}: large packets are lost", do)
    return ok(MTU, f"{shown}; {of}")
