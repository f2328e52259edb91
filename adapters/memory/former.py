"""Another configuration's ports and plugins as a test has prepared them.

Invariant: nothing is there but what a test has put there.
"""

from __future__ import annotations

from ports.former import Former, Installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.cni.netconf import NetConf
    from ports.ipam_plugin import IpamPlugin
    from ports.runtime import Runtime


class MemoryFormer(Former):
    """`files` is what is installed; `opened` lists the configurations for which `open_runtime` has been asked."""

    def __init__(
        self, open_runtime: Callable[[NetConf], Runtime], calico_ipam: IpamPlugin, host_local: IpamPlugin
    ) -> None:
        self._open = open_runtime
        self._calico_ipam, self._host_local = calico_ipam, host_local
        self.files = Installed("/etc/cni/net.d")
        self.opened: list[NetConf] = []

    def installed(self) -> Installed:
        return self.files

    def runtime(self, netconf: NetConf) -> Runtime:
        self.opened.append(netconf)
        return self._open(netconf)

    def calico_ipam(self) -> IpamPlugin:
        return self._calico_ipam

    def host_local(self) -> IpamPlugin:
        return self._host_local
