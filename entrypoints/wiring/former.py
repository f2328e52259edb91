"""What a DEL needs of its ADD when the configuration has changed in between: the ports of that other configuration.

Invariant: both configurations' calls are under the one lock of this call.
"""

from __future__ import annotations

from ports.former import Former

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from domain.cni.netconf import NetConf
    from ports.former import Installed
    from ports.ipam_plugin import IpamPlugin
    from ports.runtime import Runtime


class WiredFormer(Former):
    """`current` are the call's own ports; `open_runtime` opens those of another configuration."""

    def __init__(
        self, environment: Mapping[str, str], current: Runtime, open_runtime: Callable[[NetConf], Runtime]
    ) -> None:
        self._environment = environment
        self._current = current
        self._open = open_runtime

    def installed(self) -> Installed:
        from adapters.linux.installed_settings import DEFAULT_FOLDER, installed_settings

        folder = self._environment.get("TORTIE_CNI_CONF_DIR", "") or DEFAULT_FOLDER
        return installed_settings(folder, self._current.node)

    def runtime(self, netconf: NetConf) -> Runtime:
        opened = self._open(netconf)
        opened.lock = self._current.lock  # a second lock of the same files would wait for the first
        return opened

    def calico_ipam(self) -> IpamPlugin:
        from entrypoints.wiring.own_ipam import OwnIpamPlugin

        return OwnIpamPlugin(self._current)

    def host_local(self) -> IpamPlugin:
        if self._current.on_windows:
            from adapters.windows.plugin_exec import WindowsIpamPlugin

            return WindowsIpamPlugin(self._environment, self._current.clock, self._current.log)
        from entrypoints.wiring.own_host_local import OwnHostLocal

        return OwnHostLocal(self._current.clock, self._current.log)
