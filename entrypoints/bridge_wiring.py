"""Which adapter serves which port of the bridge plugin; the counterpart of entrypoints/wiring.

Invariant: nothing is opened, and no adapter loaded, before a use case first asks for the port.
"""

from __future__ import annotations

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


def open_bridge_runtime(conf: BridgeConf, environ: Mapping[str, str], log: Log) -> BridgeRuntime:
    """The ports of one plugin call."""
    from entrypoints.wiring import clock

    timepiece = clock()
    return BridgeRuntime(
        bridges=lambda: bridges(timepiece, log),
        firewall=lambda: firewall(environ, timepiece),
        attachments=lambda: attachments(conf.state_dir),
        ipam_plugin=lambda: ipam_plugin(environ, timepiece, log),
        lock=lambda: lock(timepiece, log),
        clock=timepiece,
        log=log,
    )


def bridges(clock: Clock, log: Log) -> Bridges:
    from adapters.linux.bridges import LinuxBridges

    return LinuxBridges(clock, log)


def firewall(environ: Mapping[str, str], clock: Clock) -> Firewall:
    from adapters.linux.firewall import LinuxFirewall

    return LinuxFirewall(environ, clock)


def attachments(directory: str) -> Attachments:
    from adapters.linux.attachment_files import AttachmentFiles

    return AttachmentFiles(directory)


def ipam_plugin(environ: Mapping[str, str], clock: Clock, log: Log) -> IpamPlugin:
    from adapters.linux.plugin_exec import ExecutedIpamPlugin

    return ExecutedIpamPlugin(environ, clock, log)


def lock(clock: Clock, log: Log) -> Lock:
    """Only for the locks on containers' namespaces: the bridge plugin shares nothing else on the host."""
    from adapters.linux.lock_file import LockFile

    return LockFile("", clock, log)
