"""The ports of one call, each opened on first use: a VERSION opens none, a DEL never opens what only ADD needs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ports.clock import Clock
    from ports.cluster import Cluster
    from ports.dataplane import Dataplane
    from ports.datastore import Datastore
    from ports.ipam_plugin import IpamPlugin
    from ports.lock import Lock
    from ports.log import Log
    from ports.node import Node
    from ports.readiness import Readiness


class Runtime:
    """Built from one function per port; each is called at most once."""

    def __init__(  # noqa: PLR0913 - one parameter per port is what this class is
        self,
        *,
        datastore: Callable[[], Datastore],
        cluster: Callable[[], Cluster],
        dataplane: Callable[[], Dataplane],
        ipam_plugin: Callable[[], IpamPlugin],
        node: Callable[[], Node],
        lock: Callable[[], Lock],
        readiness: Callable[[], Readiness],
        clock: Clock,
        log: Log,
    ) -> None:
        self._open: dict[str, Callable[[], object]] = {
            "datastore": datastore,
            "cluster": cluster,
            "dataplane": dataplane,
            "ipam_plugin": ipam_plugin,
            "node": node,
            "lock": lock,
            "readiness": readiness,
        }
        self.clock = clock
        self.log = log

    if TYPE_CHECKING:
        datastore: Datastore
        cluster: Cluster
        dataplane: Dataplane
        ipam_plugin: IpamPlugin
        node: Node
        lock: Lock
        readiness: Readiness
    else:

        def __getattr__(self, name):
            """Only called while the attribute does not exist yet."""
            if name.startswith("_") or name not in self._open:
                raise AttributeError(name)
            opened = self._open[name]()
            setattr(self, name, opened)
            return opened
