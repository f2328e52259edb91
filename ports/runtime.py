"""The ports of one call, each opened on first use: a VERSION opens none, a DEL never opens what only ADD needs.

Invariant: a port is opened at most once in a call.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ports.attachments import Attachments
    from ports.bridge import Bridges
    from ports.clock import Clock
    from ports.cluster import Cluster
    from ports.dataplane import Dataplane
    from ports.datastore import Datastore
    from ports.firewall import Firewall
    from ports.former import Former
    from ports.host_networking import HostNetworking
    from ports.ipam_plugin import IpamPlugin
    from ports.lock import Lock
    from ports.log import Log
    from ports.node import ThisNode
    from ports.readiness import Readiness
    from ports.reservation_files import ReservationFiles


def unheard(_what: str) -> None:
    """Where nobody waits for what is being done."""


class Ports:
    """`openers` has one function per port; each is called at most once."""

    def __init__(self, openers: Mapping[str, Callable[[], object]], clock: Clock, log: Log) -> None:
        self._open = openers
        self.clock = clock
        self.log = log

    if TYPE_CHECKING:
        lock: Lock
    else:

        def __getattr__(self, name):
            """Only called while the attribute does not exist yet."""
            if name.startswith("_") or name not in self._open:
                raise AttributeError(name)
            opened = self._open[name]()
            setattr(self, name, opened)
            return opened


class Runtime(Ports):
    """What Calico's plugins need. `host_networking` is there on Windows alone, which `on_windows` says."""

    def __init__(  # noqa: PLR0913 - one parameter per port is what this class is
        self,
        *,
        datastore: Callable[[], Datastore],
        cluster: Callable[[], Cluster],
        dataplane: Callable[[], Dataplane],
        ipam_plugin: Callable[[], IpamPlugin],
        node: Callable[[], ThisNode],
        lock: Callable[[], Lock],
        readiness: Callable[[], Readiness],
        former: Callable[[], Former],
        clock: Clock,
        log: Log,
        host_networking: Callable[[], HostNetworking] | None = None,
    ) -> None:
        openers: dict[str, Callable[[], object]] = {
            "datastore": datastore,
            "cluster": cluster,
            "dataplane": dataplane,
            "ipam_plugin": ipam_plugin,
            "node": node,
            "lock": lock,
            "readiness": readiness,
            "former": former,
        }
        self.on_windows = host_networking is not None
        if host_networking is not None:
            openers["host_networking"] = host_networking
        super().__init__(openers, clock, log)

    if TYPE_CHECKING:
        datastore: Datastore
        cluster: Cluster
        dataplane: Dataplane
        ipam_plugin: IpamPlugin
        node: ThisNode
        readiness: Readiness
        former: Former
        host_networking: HostNetworking


class UpgradeRuntime(Ports):
    """What an upgrade from host-local needs. `doing` hears what is being done, for a person who waits."""

    def __init__(  # noqa: PLR0913 - one parameter per port is what this class is
        self,
        *,
        datastore: Callable[[], Datastore],
        cluster: Callable[[], Cluster],
        reservations: Callable[[], ReservationFiles],
        node: Callable[[], ThisNode],
        clock: Clock,
        log: Log,
    ) -> None:
        openers: dict[str, Callable[[], object]] = {
            "datastore": datastore,
            "cluster": cluster,
            "reservations": reservations,
            "node": node,
        }
        super().__init__(openers, clock, log)
        self.doing: Callable[[str], None] = unheard

    if TYPE_CHECKING:
        datastore: Datastore
        cluster: Cluster
        reservations: ReservationFiles
        node: ThisNode


class BridgeRuntime(Ports):
    """What the bridge plugin needs."""

    def __init__(  # noqa: PLR0913 - one parameter per port is what this class is
        self,
        *,
        bridges: Callable[[], Bridges],
        firewall: Callable[[], Firewall],
        attachments: Callable[[], Attachments],
        ipam_plugin: Callable[[], IpamPlugin],
        lock: Callable[[], Lock],
        clock: Clock,
        log: Log,
    ) -> None:
        openers: dict[str, Callable[[], object]] = {
            "bridges": bridges,
            "firewall": firewall,
            "attachments": attachments,
            "ipam_plugin": ipam_plugin,
            "lock": lock,
        }
        super().__init__(openers, clock, log)

    if TYPE_CHECKING:
        bridges: Bridges
        firewall: Firewall
        attachments: Attachments
        ipam_plugin: IpamPlugin
