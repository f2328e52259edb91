"""What containers have left behind on a host, and what is missing of those that run.

Containers come and go while somebody looks, so one look proves nothing: what counts is what two looks have found.

Invariant: pure; only what is without an owner in both looks is called left over.
"""

from __future__ import annotations

from domain.doctor.diagnosis import error, listed, ok, warning
from domain.value import Value
from domain.workload.identity import DEFAULT_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from domain.doctor.diagnosis import Diagnosis
    from domain.linux.link import Link
    from domain.workload.endpoint import WorkloadEndpoint

DEVICES, ENDPOINTS, RESERVATIONS = "leftover-devices", "endpoints", "leftover-reservations"
_PAIRS = ("veth", "netkit")


class Strays(Value):
    """`devices` on the host that no endpoint of the node names; `endpoints` of it, as (name, device), without one."""

    devices: frozenset[str] = frozenset()
    endpoints: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.devices or self.endpoints)

    def both(self, other: Strays) -> Strays:
        return Strays(self.devices & other.devices, self.endpoints & other.endpoints)


def strays(
    links: Iterable[Link], endpoints: Iterable[WorkloadEndpoint], node: str, prefixes: Sequence[str] = (DEFAULT_PREFIX,)
) -> Strays:
    """What one look finds. `prefixes` are those of containers' devices.

    A pod before its first address, or after its last, has an endpoint all the same, and may lack a device.
    """
    own = [endpoint for endpoint in endpoints if endpoint.node == node]
    devices = {link.name for link in links}
    pairs = {link.name for link in links if link.kind in _PAIRS and link.name.startswith(tuple(prefixes))}
    named = {endpoint.interface_name for endpoint in own}
    return Strays(
        frozenset(pairs - named),
        frozenset(
            [
                (f"{endpoint.metadata.namespace}/{endpoint.metadata.name}", endpoint.interface_name)
                for endpoint in own
                if endpoint.ip_networks and endpoint.interface_name not in devices
            ]
        ),
    )


def judge_strays(found: Strays, number: int) -> tuple[Diagnosis, ...]:
    """`number` is how many endpoints the node has."""
    told: list[Diagnosis] = []
    if found.devices:
        names = listed(sorted(found.devices))
        do = "if their containers are gone, `ip link delete NAME`; `tortie ipam check` names addresses in use"
        told.append(warning(DEVICES, f"no endpoint of this node has {names}", do))
    else:
        told.append(ok(DEVICES, "none"))
    if found.endpoints:
        names = listed([f"{name} ({device or 'no device'})" for name, device in sorted(found.endpoints)])
        do = "make those containers anew, or `tortie delete workloadendpoint` the records, then `tortie ipam gc`"
        told.append(error(ENDPOINTS, f"without their device on this host: {names}", do))
    else:
        told.append(ok(ENDPOINTS, f"{number} on this node, each with its device"))
    return tuple(told)


class Reserved(Value):
    """host-local's reservations of one network: (address, container); `folder` has them.

    `by_its_plugin` is whether the network's configuration uses host-local now.
    """

    network: str
    folder: str
    holders: tuple[tuple[str, str], ...]
    by_its_plugin: bool = True


class Alive(Value):
    """Containers that are known to be networked: by their endpoints, and by the names in the folder where the CNI
    library keeps results, `<network>-<container>-<interface>`; None without that folder.
    """

    containers: frozenset[str] = frozenset()
    results: frozenset[str] | None = None

    def has(self, network: str, container: str) -> bool:
        start = f"{network}-{container}-"
        return container in self.containers or any(name.startswith(start) for name in self.results or ())


def judge_reservations(reserved: Sequence[Reserved], alive: Alive) -> tuple[Diagnosis, ...]:
    told: list[Diagnosis] = []
    for one in reserved:
        if one.holders and not one.by_its_plugin:
            seen = f"{one.folder} has {len(one.holders)} of host-local, which network {one.network} no longer uses"
            do = "`tortie ipam upgrade` takes them over into Calico's IPAM; or remove the folder with the last of them"
            told.append(warning(RESERVATIONS, seen, do))
            continue
        lost = [address for address, container in one.holders if not alive.has(one.network, container)]
        if lost and alive.results is not None:
            seen = f"{len(lost)} of {len(one.holders)} in {one.folder} are of no container that runs: {listed(lost)}"
            do = "if no container of this host has them, remove those files"
            told.append(warning(RESERVATIONS, seen, do))
    if told:
        return tuple(told)
    number = sum([len(one.holders) for one in reserved])
    blind = " (whose containers run is not known: /var/lib/cni/results is not there)"
    judged = "" if alive.results is not None or not number else blind
    return (ok(RESERVATIONS, f"none among {number}{judged}" if number else "host-local has none here"),)
