"""What the datastore has to say about this node: its own record, and pools to take addresses from.

Invariant: the choice of pools is the very one that an ADD makes.
"""

from __future__ import annotations

from domain.doctor.diagnosis import error, ok
from domain.doctor.kernel import IPIP_TAKES, VXLAN_TAKES
from domain.ipam.errors import IpamError
from domain.ipam.pools import PoolRequest, choose_pools, enabled_pools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.cni.netconf import IpamSettings
    from domain.doctor.diagnosis import Diagnosis
    from domain.ipam.pools import Pool

DATASTORE, NODE_NAME, NODE_RECORD, POOLS = "datastore", "node-name", "node-record", "pools"


def versions_wanted(ipam: IpamSettings) -> tuple[int, ...]:
    """The IP versions of which a container gets an address."""
    wanted = {4: ipam.assign_ipv4 != "false", 6: ipam.assign_ipv6 == "true"}
    return tuple([version for version, is_wanted in wanted.items() if is_wanted])


def judge_node_name(name: str, source: str, file_name: str | None) -> Diagnosis:
    """`file_name` is what calico-node has written, None if it has not; `source` says where the name is from."""
    if not name:
        return error(NODE_NAME, "this node has no name", 'set "nodename" in the network configuration')
    if file_name and file_name != name:
        seen = f"{name} ({source}), but calico-node calls this node {file_name}"
        return error(NODE_NAME, seen, f'set "nodename" to {file_name}: records of one node have to be under one name')
    return ok(NODE_NAME, f"{name} ({source})")


def judge_node_record(node: str, *, is_there: bool) -> Diagnosis:
    if is_there:
        return ok(NODE_RECORD, node)
    do = f'`tortie init --node {node}` makes it; if the node has another name, set "nodename" to that'
    return error(NODE_RECORD, f"the datastore has no node {node}: no container of it gets an address", do)


def judge_pools(
    pools: Sequence[Pool], node: str, labels: Mapping[str, str], ipam: IpamSettings
) -> tuple[tuple[Diagnosis, ...], tuple[Pool, ...]]:
    """What is to be said for each IP version, and the pools that serve this node."""
    found: list[Diagnosis] = []
    serving: list[Pool] = []
    for version in versions_wanted(ipam):
        named = (ipam.ipv4_pools, ipam.ipv6_pools)[version == 6]
        try:
            if named:
                mine = _named(pools, version, named)
            else:
                mine = choose_pools(pools, PoolRequest(version, node, labels, None)).usable
        except IpamError as refused:
            if ipam.optional_families:
                found.append(ok(POOLS, f"IPv{version}: none, and optional_families lets that be"))
                continue
            why = f": {refused.details}" if refused.details else ""
            do = "apply an IPPool that serves this node (`tortie get ippools -o wide` shows those there are)"
            found.append(error(POOLS, f"IPv{version}: {refused}{why}", do))
            continue
        serving += mine
        shown = ", ".join([f"{pool.metadata.name} {pool.cidr_text}" for pool in mine])
        found.append(ok(POOLS, f"IPv{version}: {shown}"))
    return tuple(found), tuple(serving)


def _named(pools: Sequence[Pool], version: int, named: Sequence[str]) -> tuple[Pool, ...]:
    """Those that the configuration names, by range or by name. IpamError for one that cannot serve."""
    usable = enabled_pools(pools, version)
    mine: list[Pool] = []
    for text in named:
        pool = next((one for one in usable if text in (one.metadata.name, one.cidr_text, str(one.cidr))), None)
        if pool is None:
            raise IpamError(f"the given pool ({text}) does not exist, or is not enabled")
        mine.append(pool)
    return tuple(mine)


def tunnel_takes(serving: Sequence[Pool]) -> tuple[int, str]:
    """How much of each packet the pools' tunnels between nodes take, and which; (0, "") without tunnels."""
    most, which = 0, ""
    for pool in serving:
        version = pool.cidr.version if pool.cidr else 4
        for mode, takes, name in (
            (pool.vxlan_mode, VXLAN_TAKES[version], "VXLAN"),
            (pool.ipip_mode, IPIP_TAKES, "IPIP"),
        ):
            if mode not in ("", "Never") and takes > most:
                most, which = takes, name
    return most, which
