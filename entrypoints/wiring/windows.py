"""Which adapter serves which port on a Windows node; as entrypoints/wiring/calico says it of Linux.

Invariant: nothing is opened, and no adapter loaded, before a use case first asks for the port.
"""

from __future__ import annotations

import sys
from os.path import isfile

from domain.cni.plugin_conf import NETWORK_PLUGIN, OWN_IPAM
from domain.windows.conf import read_windows_conf
from entrypoints.wiring.datastores import api_servers, cluster, datastore, exported, whole
from entrypoints.wiring.this_program import own_path
from ports.errors import BadConfiguration, Refused
from ports.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapters.windows.dataplane import Host
    from domain.cni.netconf import NetConf
    from ports.clock import Clock
    from ports.dataplane import Dataplane
    from ports.former import Former
    from ports.host_networking import HostNetworking
    from ports.ipam_plugin import IpamPlugin
    from ports.lock import Lock
    from ports.log import Log
    from ports.node import ThisNode
    from ports.readiness import Readiness


def open_windows_runtime(netconf: NetConf, environ: Mapping[str, str], log: Log) -> Runtime:
    """The ports of one plugin call."""
    timepiece = clock()
    environment = exported(netconf, environ)
    servers = api_servers(netconf, environment, timepiece)
    opened: list[Host] = []

    def host() -> Host:
        if not opened:
            opened.append(open_host(timepiece, log))
        return opened[0]

    runtime = Runtime(
        datastore=lambda: datastore(
            environment, whole(netconf, netconf.datastore_type).sqlite_path, timepiece, servers, log=log
        ),
        cluster=lambda: cluster(whole(netconf, "kubernetes"), environment, servers),
        dataplane=lambda: dataplane(netconf, environment, host()),
        ipam_plugin=lambda: ipam_plugin(netconf, environment, runtime),
        node=node,
        lock=lambda: lock(netconf.ipam_lock_file, timepiece, log),
        readiness=lambda: readiness(timepiece),
        former=lambda: former(environ, runtime, log),
        host_networking=lambda: host_networking(netconf, environment, host()),
        clock=timepiece,
        log=log,
    )
    return runtime


def open_host(clock: Clock, log: Log) -> Host:
    from adapters.windows.dataplane import Host
    from adapters.windows.hns_library import LibraryHns
    from adapters.windows.host_interfaces import PowerShellInterfaces
    from adapters.windows.mutex import NamedMutex
    from adapters.windows.powershell import PowerShell

    return Host(LibraryHns(), PowerShellInterfaces(PowerShell(clock).run), NamedMutex(clock), clock, log)


def dataplane(netconf: NetConf, environment: Mapping[str, str], host: Host) -> Dataplane:
    """By `dataplane_options.type`: absent is HNS."""
    if netconf.dataplane_type is not None:
        from entrypoints.wiring.dataplanes import dataplane as other

        return other(netconf, host.clock, host.log, environment)
    from adapters.windows.dataplane import WindowsDataplane

    return WindowsDataplane(host, read_windows_conf(netconf), environment.get("CNI_CONTAINERID", ""))


def host_networking(netconf: NetConf, environment: Mapping[str, str], host: Host) -> HostNetworking:
    from adapters.windows.deletion_stamps import RegistryStamps
    from adapters.windows.host_networking import WindowsHostNetworking

    container_id = environment.get("CNI_CONTAINERID", "")
    return WindowsHostNetworking(host, RegistryStamps(), read_windows_conf(netconf), container_id)


def ipam_plugin(netconf: NetConf, environment: Mapping[str, str], runtime: Runtime, program: str = "") -> IpamPlugin:
    """Our own calico-ipam works in this process if it is what CNI_PATH has; anything else is executed.

    `program` is the executable that we are, if that is not to be found out.
    """
    own = _is_own(netconf.ipam.type, environment, program or _own_path())
    if netconf.ipam.type == NETWORK_PLUGIN and own:
        raise BadConfiguration(f'ipam.type "{NETWORK_PLUGIN}" is the network plugin itself; set "{OWN_IPAM}"')
    if netconf.ipam.type == OWN_IPAM and own:
        from entrypoints.wiring.own_ipam import OwnIpamPlugin

        return OwnIpamPlugin(runtime)
    from adapters.windows.plugin_exec import WindowsIpamPlugin

    return WindowsIpamPlugin(environment, runtime.clock, runtime.log)


def _is_own(type: str, environment: Mapping[str, str], program: str) -> bool:
    from adapters.plugin_path import is_this_program
    from adapters.windows.plugin_path import find_plugin

    try:
        path = find_plugin(type, tuple(environment.get("CNI_PATH", "").split(":")))
    except Refused:
        return False  # the executed plugin will say why it cannot be found
    return is_this_program(path, program)


def _own_path() -> str:
    """The executable that we are: the script, or the program that has Python in it."""
    script = own_path()
    return script if isfile(script) else sys.executable


def node() -> ThisNode:
    from adapters.windows.node import WindowsNode

    return WindowsNode()


def lock(path: str, clock: Clock, log: Log) -> Lock:
    from adapters.windows.lock import WindowsLock

    return WindowsLock(path, clock, log)


def readiness(clock: Clock) -> Readiness:
    from adapters.linux.readiness_http import HttpReadiness

    return HttpReadiness(clock)


def former(environ: Mapping[str, str], runtime: Runtime, log: Log) -> Former:
    from entrypoints.wiring.former import WiredFormer

    return WiredFormer(environ, runtime, lambda netconf: open_windows_runtime(netconf, environ, log))


def clock() -> Clock:
    from adapters.linux.clock import SystemClock

    return SystemClock()
