"""Which dataplane makes the devices, and over which transport: the network plugin's choice, which IPAM never makes.

Invariant: what is asked for and not to be had is refused before anything is done.
"""

from __future__ import annotations

from entrypoints.wiring.this_program import wants_library
from ports.errors import BadConfiguration, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from adapters.grpc.transport import GrpcTransport
    from adapters.linux.netlink.transports import NetlinkLoader
    from domain.cni.netconf import NetConf
    from ports.clock import Clock
    from ports.dataplane import Dataplane
    from ports.log import Log

    Load = TypeVar("Load", bound=Callable[[], object])


def dataplane(netconf: NetConf, clock: Clock, log: Log, environment: Mapping[str, str]) -> Dataplane:
    """By `dataplane_options.type`: absent is this system's own."""
    if netconf.dataplane_type == "grpc":
        return grpc_dataplane(netconf.dataplane_options, clock, log, environment)
    if netconf.dataplane_type is not None:
        known = 'leave "type" out of "dataplane_options" for this system\'s own, or set it to "grpc"'
        raise Refused(f"invalid dataplane type: {netconf.dataplane_type}", details=known)
    from adapters.linux.dataplane import LinuxDataplane

    return LinuxDataplane(clock, log, netlink(environment))


def netlink(environment: Mapping[str, str]) -> NetlinkLoader:
    from adapters.linux.netlink.transports import load_lean, load_pyroute2

    return chosen_netlink(environment, load_lean, load_pyroute2)


def chosen_netlink(environment: Mapping[str, str], lean: Load, library: Load) -> Load:
    """Our own transport, or the library's where that is asked for and installed."""
    if not wants_library(environment):
        return lean
    try:
        library()
    except ImportError as error:
        raise BadConfiguration(
            f'TORTIE_TRANSPORT "library" needs the packages of the extra "linux": {error}'
        ) from error
    return library


def grpc_dataplane(options: Mapping[str, str], clock: Clock, log: Log, environment: Mapping[str, str]) -> Dataplane:
    """The service that listens at the option `socket`."""
    socket = options.get("socket")
    if not socket:
        raise Refused("GRPC dataplane socket not configured")
    from adapters.grpc.dataplane import GrpcDataplane

    return GrpcDataplane(options, _grpc_transport(socket, environment), clock, log)


def _grpc_transport(socket: str, environment: Mapping[str, str]) -> GrpcTransport:
    if not wants_library(environment):
        from adapters.grpc.transport_lean import LeanGrpcTransport

        return LeanGrpcTransport(socket)
    from adapters.grpc.transport_grpcio import GrpcioTransport
    from adapters.linux.process.signals import Withheld

    return GrpcioTransport(socket, Withheld)
