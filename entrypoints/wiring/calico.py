"""Which adapter serves which port: one plain function per port, each importing its adapter inside.

A plugin process thus loads only what its call uses. Which datastore that is, `datastores` knows.

Invariant: nothing is opened, and no adapter loaded, before a use case first asks for the port.
"""

from __future__ import annotations

from domain.cni.plugin_conf import NETWORK_PLUGIN, OWN_IPAM
from entrypoints.wiring.datastores import api_servers, cluster, datastore, exported, whole
from entrypoints.wiring.this_program import ON_WINDOWS, own_path
from ports.errors import BadConfiguration, Refused
from ports.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.cni.netconf import NetConf
    from ports.clock import Clock
    from ports.dataplane import Dataplane
    from ports.former import Former
    from ports.host_view import HostView
    from ports.ipam_plugin import IpamPlugin
    from ports.lock import Lock
    from ports.log import Log
    from ports.node import ThisNode
    from ports.readiness import Readiness


def open_runtime(netconf: NetConf, environ: Mapping[str, str], log: Log) -> Runtime:
    """The ports of one plugin call."""
    if ON_WINDOWS:
        from entrypoints.wiring.windows import open_windows_runtime

        return open_windows_runtime(netconf, environ, log)
    timepiece = clock()
    environment = exported(netconf, environ)
    servers = api_servers(netconf, environment, timepiece)
    runtime = Runtime(
        datastore=lambda: datastore(
            environment, whole(netconf, netconf.datastore_type).sqlite_path, timepiece, servers, log=log
        ),
        cluster=lambda: cluster(whole(netconf, "kubernetes"), environment, servers),
        dataplane=lambda: _dataplane(netconf, timepiece, log, environment),
        ipam_plugin=lambda: ipam_plugin(netconf, environment, runtime),
        node=node,
        lock=lambda: lock(netconf.ipam_lock_file, timepiece, log),
        readiness=lambda: readiness(timepiece),
        former=lambda: former(environ, runtime, log),
        clock=timepiece,
        log=log,
    )
    return runtime


def _dataplane(netconf: NetConf, clock: Clock, log: Log, environment: Mapping[str, str]) -> Dataplane:
    from entrypoints.wiring.dataplanes import dataplane

    return dataplane(netconf, clock, log, environment)


def ipam_plugin(netconf: NetConf, environment: Mapping[str, str], runtime: Runtime) -> IpamPlugin:
    """Our own calico-ipam works in this process if it is what CNI_PATH has; anything else is executed."""
    if netconf.ipam.type == NETWORK_PLUGIN and _is_own(netconf.ipam.type, environment):
        raise BadConfiguration(f'ipam.type "{NETWORK_PLUGIN}" is the network plugin itself; set "{OWN_IPAM}"')
    if netconf.ipam.type == OWN_IPAM and _is_own(netconf.ipam.type, environment):
        from entrypoints.wiring.own_ipam import OwnIpamPlugin

        return OwnIpamPlugin(runtime)
    from adapters.linux.process.plugin_exec import ExecutedIpamPlugin

    return ExecutedIpamPlugin(environment, runtime.clock, runtime.log)


def _is_own(type: str, environment: Mapping[str, str]) -> bool:
    from adapters.plugin_path import find_plugin, is_this_program

    own = own_path()
    try:
        path = find_plugin(type, tuple(environment.get("CNI_PATH", "").split(":")))
    except Refused:
        return False  # the executed plugin will say why it cannot be found
    return bool(own) and is_this_program(path, own)


def node() -> ThisNode:
    from adapters.linux.node_files import NodeFiles

    return NodeFiles()


def host_view(clock: Clock, root: str) -> HostView:
    """This host's, or that of the root which is mounted there."""
    from adapters.linux.host_view import LinuxHost

    return LinuxHost(clock, root)


def lock(path: str, clock: Clock, log: Log) -> Lock:
    from adapters.linux.lock_file import LockFile

    return LockFile(path, clock, log)


def readiness(clock: Clock) -> Readiness:
    from adapters.linux.readiness_http import HttpReadiness

    return HttpReadiness(clock)


def former(environ: Mapping[str, str], runtime: Runtime, log: Log) -> Former:
    from entrypoints.wiring.former import WiredFormer

    return WiredFormer(environ, runtime, lambda netconf: open_runtime(netconf, environ, log))


def clock() -> Clock:
    from adapters.linux.clock import SystemClock

    return SystemClock()
