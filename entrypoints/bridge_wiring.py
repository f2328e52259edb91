"""Which adapter serves which port of the bridge plugin; the counterpart of entrypoints/wiring.

Invariant: nothing is opened, and no adapter loaded, before a use case first asks for the port.
"""

from __future__ import annotations

from ports.errors import Refused
from ports.runtime import BridgeRuntime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.bridge.conf import BridgeConf
    from ports.attachments import Attachments
    from ports.bridge import Bridges
    from ports.clock import Clock
    from ports.firewall import Firewall
    from ports.ipam_plugin import IpamPlugin
    from ports.lock import Lock
    from ports.log import Log

HOST_LOCAL = "host-local"


def open_bridge_runtime(conf: BridgeConf, environ: Mapping[str, str], log: Log) -> BridgeRuntime:
    """The ports of one plugin call."""
    from entrypoints.wiring import clock

    timepiece = clock()
    return BridgeRuntime(
        bridges=lambda: bridges(environ, timepiece, log),
        firewall=lambda: firewall(environ, timepiece),
        attachments=lambda: attachments(conf.state_dir),
        ipam_plugin=lambda: ipam_plugin(conf, environ, timepiece, log),
        lock=lambda: lock(timepiece, log),
        clock=timepiece,
        log=log,
    )


def bridges(environ: Mapping[str, str], clock: Clock, log: Log) -> Bridges:
    from adapters.linux.bridges import LinuxBridges
    from adapters.linux.netlink_transports import load_lean_bridge, load_pyroute2_bridge
    from entrypoints.wiring import chosen_netlink

    return LinuxBridges(clock, log, chosen_netlink(environ, load_lean_bridge, load_pyroute2_bridge))


def firewall(environ: Mapping[str, str], clock: Clock) -> Firewall:
    from adapters.linux.firewall import LinuxFirewall

    return LinuxFirewall(environ, clock)


def attachments(directory: str) -> Attachments:
    from adapters.linux.attachment_files import AttachmentFiles

    return AttachmentFiles(directory)


def ipam_plugin(conf: BridgeConf, environ: Mapping[str, str], clock: Clock, log: Log) -> IpamPlugin:
    """host-local is built in where CNI_PATH has none; anything else is executed."""
    if conf.ipam.type == HOST_LOCAL:
        from entrypoints.own_host_local import CollectedHostLocal, OwnHostLocal

        if not _is_installed(conf.ipam.type, environ):
            log.debug("CNI_PATH has no host-local: using the built-in one")
            return OwnHostLocal(clock, log)
        if conf.collect_host_local:
            return CollectedHostLocal(environ, clock, log)
    from adapters.linux.plugin_exec import ExecutedIpamPlugin

    return ExecutedIpamPlugin(environ, clock, log)


def _is_installed(type: str, environ: Mapping[str, str]) -> bool:
    from adapters.linux.plugin_path import find_plugin

    try:
        find_plugin(type, tuple(environ.get("CNI_PATH", "").split(":")))
    except Refused:
        return False
    return True


def lock(clock: Clock, log: Log) -> Lock:
    """Only for the locks on containers' namespaces: the bridge plugin shares nothing else on the host."""
    from adapters.linux.lock_file import LockFile

    return LockFile("", clock, log)
