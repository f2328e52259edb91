"""Which adapter serves which port of the bridge plugin; as entrypoints/wiring/calico says it of the others.

Invariant: nothing is opened, and no adapter loaded, before a use case first asks for the port.
"""

from __future__ import annotations

from ports.errors import Refused
from ports.ipam_plugin import IpamPlugin
from ports.runtime import BridgeRuntime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from domain.bridge.conf import BridgeConf
    from domain.cni.result import Result
    from ports.attachments import Attachments
    from ports.bridge import Bridges
    from ports.clock import Clock, Deadline
    from ports.firewall import Firewall
    from ports.ipam_plugin import IpamCall
    from ports.lock import Lock
    from ports.log import Log

HOST_LOCAL = "host-local"


def open_bridge_runtime(conf: BridgeConf, environ: Mapping[str, str], log: Log) -> BridgeRuntime:
    """The ports of one plugin call."""
    from adapters.linux.clock import SystemClock

    timepiece = SystemClock()
    return BridgeRuntime(
        bridges=lambda: bridges(environ, timepiece, log),
        firewall=lambda: firewall(environ, timepiece),
        attachments=lambda: attachments(conf.state_dir),
        ipam_plugin=lambda: IpamByType(lambda type: ipam_plugin(type, conf, environ, timepiece, log)),
        lock=lambda: lock(timepiece, log),
        clock=timepiece,
        log=log,
    )


def bridges(environ: Mapping[str, str], clock: Clock, log: Log) -> Bridges:
    from adapters.linux.bridges import LinuxBridges
    from adapters.linux.netlink.transports import load_lean_bridge, load_pyroute2_bridge
    from entrypoints.wiring.dataplanes import chosen_netlink

    return LinuxBridges(clock, log, chosen_netlink(environ, load_lean_bridge, load_pyroute2_bridge))


def firewall(environ: Mapping[str, str], clock: Clock) -> Firewall:
    from adapters.linux.filter.firewall import LinuxFirewall

    return LinuxFirewall(environ, clock)


def attachments(directory: str) -> Attachments:
    from adapters.linux.attachment_files import AttachmentFiles

    return AttachmentFiles(directory)


class IpamByType(IpamPlugin):
    """The plugin that a call names: not the configuration's, if that has changed since ADD."""

    def __init__(self, open_plugin: Callable[[str], IpamPlugin]) -> None:
        self._open_plugin = open_plugin
        self._opened: dict[str, IpamPlugin] = {}

    def _of(self, call: IpamCall) -> IpamPlugin:
        type = call.netconf.ipam.type
        if type not in self._opened:
            self._opened[type] = self._open_plugin(type)
        return self._opened[type]

    def add(self, call: IpamCall, deadline: Deadline) -> Result:
        return self._of(call).add(call, deadline)

    def delete(self, call: IpamCall, deadline: Deadline) -> None:
        self._of(call).delete(call, deadline)

    def check(self, call: IpamCall, deadline: Deadline) -> None:
        self._of(call).check(call, deadline)

    def withdraw(self, call: IpamCall, result: Result, deadline: Deadline) -> None:
        self._of(call).withdraw(call, result, deadline)

    def collect(self, call: IpamCall, deadline: Deadline) -> None:
        self._of(call).collect(call, deadline)

    def status(self, call: IpamCall, deadline: Deadline) -> None:
        self._of(call).status(call, deadline)


def ipam_plugin(type: str, conf: BridgeConf, environ: Mapping[str, str], clock: Clock, log: Log) -> IpamPlugin:
    """host-local is built in where CNI_PATH has none; anything else is executed."""
    if type == HOST_LOCAL:
        from entrypoints.wiring.own_host_local import CollectedHostLocal, OwnHostLocal

        if not _is_installed(type, environ):
            log.debug("CNI_PATH has no host-local: using the built-in one")
            return OwnHostLocal(clock, log)
        if conf.collect_host_local:
            return CollectedHostLocal(environ, clock, log)
    from adapters.linux.process.plugin_exec import ExecutedIpamPlugin

    return ExecutedIpamPlugin(environ, clock, log)


def _is_installed(type: str, environ: Mapping[str, str]) -> bool:
    from adapters.plugin_path import find_plugin

    try:
        find_plugin(type, tuple(environ.get("CNI_PATH", "").split(":")))
    except Refused:
        return False
    return True


def lock(clock: Clock, log: Log) -> Lock:
    """Only for the locks on containers' namespaces: the bridge plugin shares nothing else on the host."""
    from adapters.linux.lock_file import LockFile

    return LockFile("", clock, log)
