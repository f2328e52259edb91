"""calico-ipam's configuration with the pools and IP versions that a pod or its namespace wishes, and the name that its
addresses are kept for.

Invariant: the text and the values say the same, and all other members are as they were given.
"""

from __future__ import annotations

from domain.ipam.address import V4, V6
from domain.json_text import dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.cni.netconf import KeepAs, NetConf
    from domain.json_text import Json
    from domain.workload.annotations import PoolWishes


class NoIpamSection(ValueError):
    """The configuration has no `ipam` object to write to. `str()` is the original's text."""


def with_pools(netconf: NetConf, text: str, wishes: PoolWishes) -> tuple[NetConf, str]:
    """Both forms of the configuration, for calico-ipam in this process and in another.

    With IP versions wished for exactly those are assigned; an empty list of pools leaves the choice to IPAM.
    NoIpamSection if the text has none.
    """
    changes = _changes(wishes)
    if not changes:
        return netconf, text
    told = _told(text, {name: list(value) if isinstance(value, tuple) else value for name, value in changes.items()})
    return netconf.replace(ipam=netconf.ipam.replace(**changes)), told


def with_kept(netconf: NetConf, text: str, keep_as: KeepAs) -> tuple[NetConf, str]:
    """The same for the name that the addresses are kept for."""
    told = _told(text, {"keep_as": {"name": keep_as.name, "pod_uid": keep_as.pod_uid, "owner": keep_as.owner}})
    return netconf.replace(ipam=netconf.ipam.replace(keep_as=keep_as)), told


def _told(text: str, members: Mapping[str, Json]) -> str:
    document = parse(text)
    ipam = document.get("ipam") if isinstance(document, dict) else None
    if not isinstance(ipam, dict):
        raise NoIpamSection("data on stdin was of unexpected type")
    for name, value in members.items():
        ipam.pop(name, None)  # of several spellings of one key the last one counts
        ipam[name] = value
    return dumps(document)


def _changes(wishes: PoolWishes) -> dict[str, tuple[str, ...] | str]:
    """The members of `ipam` to set, whose names are the same in the text and in its values."""
    changes: dict[str, tuple[str, ...] | str] = {}
    if wishes.ipv4_pools is not None:
        changes["ipv4_pools"] = wishes.ipv4_pools
    if wishes.ipv6_pools is not None:
        changes["ipv6_pools"] = wishes.ipv6_pools
    if wishes.families is not None:
        changes["assign_ipv4"] = "true" if V4 in wishes.families else "false"
        changes["assign_ipv6"] = "true" if V6 in wishes.families else "false"
    return changes
