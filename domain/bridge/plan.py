"""How a container is connected to a bridge, as values: what is done before IPAM is asked and what with its answer.

Duplicate address detection is switched off, unless it is asked for, before the interface has an address, so that no
container waits for it.

Invariant: pure, and in the reference plugin's order; nothing in here deletes a device.
"""

from __future__ import annotations

from domain.bridge.addressing import first_gateway, gateways
from domain.ipam.address import V4, V6
from domain.linux.bridge_steps import (
    AppendRoute,
    AssignAddress,
    AwaitPort,
    AwaitSettled,
    Enslave,
    EnsureAddress,
    EnsureBridge,
    EnsureSysctl,
    EnsureVlanDevice,
    JoinVlans,
    MakePair,
    PinMac,
    SetAlias,
)
from domain.linux.steps import CONTAINER, HOST, Device, KeepLearnedRoutes, SetUp, Step, WriteSysctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.bridge.conf import BridgeConf
    from domain.cni.result import Result

_DEFAULT_VLAN = 1
_LONGEST_SETTLING = 5.0  # seconds
_LOOPBACK = "lo"
# A port is operational as soon as its other end is up, but for the time that the kernel needs to tell.
_PORT_PAUSES = (0.001, 0.004, 0.02, 0.05, 0.5, 1.0, 1.0)


def bridge_plan(conf: BridgeConf) -> tuple[Step, ...]:
    failure = f'failed to create bridge "{conf.bridge}": '
    return (
        Step(EnsureBridge(conf.bridge, conf.mtu, conf.filters_vlans, conf.promiscuous), failure),
        Step(WriteSysctl(HOST, f"net/ipv6/conf/{conf.bridge}/accept_ra", "0"), failure, fatal=False),
        Step(SetUp(Device(HOST, conf.bridge)), failure),
    )


def pair_plan(conf: BridgeConf, container: Device, wanted: str, mac: str) -> tuple[Step, ...]:
    return (Step(MakePair(container, wanted, conf.mtu, mac), "failed to make veth pair: "),)


def port_plan(conf: BridgeConf, host: Device, alias: str) -> tuple[Step, ...]:
    """The host's end of the new pair, until frames can pass."""
    steps = [
        Step(SetAlias(host, alias), f'failed to mark "{host.name}": ', fatal=False),
        Step(WriteSysctl(HOST, f"net/ipv6/conf/{host.name}/accept_ra", "0"), "failed to ignore routers: ", fatal=False),
        Step(SetUp(host), f'failed to set "{host.name}" up: '),
        Step(
            Enslave(host, conf.bridge, conf.hairpin, conf.port_isolation),
            f'failed to connect "{host.name}" to bridge {conf.bridge}: ',
        ),
    ]
    if conf.vlan or conf.vlans:
        join = JoinVlans(host, conf.vlan or _DEFAULT_VLAN, conf.vlans, only=not conf.preserve_default_vlan)
        steps.append(Step(join, f'failed to setup vlans of "{host.name}": '))
    return tuple(steps)


def container_plan(conf: BridgeConf, container: Device, result: Result) -> tuple[Step, ...]:
    """Addresses and routes, in the order that the kernel needs."""
    versions = {ip.address.version for ip in result.ips}
    return (
        *_loopback(conf),
        *_detection(conf, container),
        *(_enable_v6(container) if V6 in versions else ()),
        *[
            Step(
                AssignAddress(container, ip.address, settled=not conf.dad),
                f'failed to add IP addr {ip.address} to "{container.name}": ',
            )
            for ip in result.ips
        ],
        Step(SetUp(container), f'failed to set "{container.name}" UP: '),
        *(_settle(container) if first_gateway(result, V6) is not None else ()),
        *_routes(container, result),
    )


def _loopback(conf: BridgeConf) -> Iterator[Step]:
    if conf.loopback_up:
        yield Step(SetUp(Device(CONTAINER, _LOOPBACK)), "failed to set lo up: ")


def _detection(conf: BridgeConf, container: Device) -> Iterator[Step]:
    settings = [("ipv6", "accept_dad", "0")]
    if conf.dad:
        settings = [("ipv6", "enhanced_dad", "1"), ("ipv6", "accept_dad", "1")]
    for family, setting, value in (*settings, ("ipv4", "arp_notify", "1")):
        action = WriteSysctl(CONTAINER, f"net/{family}/conf/{container.name}/{setting}", value)
        yield Step(action, f"failed to set {setting} of {container.name}: ", fatal=False)


def _enable_v6(container: Device) -> Iterator[Step]:
    for name in (_LOOPBACK, container.name):
        action = EnsureSysctl(CONTAINER, f"net/ipv6/conf/{name}/disable_ipv6", "0")
        yield Step(action, f'failed to enable IPv6 for interface "{name}": ', fatal=False)
    action = EnsureSysctl(CONTAINER, f"net/ipv6/conf/{container.name}/keep_addr_on_down", "1")
    yield Step(action, f'failed to enable keep_addr_on_down for interface "{container.name}": ')


def _settle(container: Device) -> Iterator[Step]:
    action = AwaitSettled(container, limit=_LONGEST_SETTLING, pause=0.01)
    yield Step(action, f'failed to settle addresses for "{container.name}": ')


def _routes(container: Device, result: Result) -> Iterator[Step]:
    for route in result.routes:
        gateway = route.gateway if route.gateway is not None else first_gateway(result, route.dst.version)
        action = AppendRoute(
            device=container,
            destination=route.dst.network,
            gateway=gateway,
            priority=route.priority,
            table=route.table or 0,
            scope=route.scope or 0,
            mtu=route.mtu,
            advmss=route.advmss,
        )
        yield Step(action, f"failed to add route '{route.dst} via {gateway} dev {container.name}': ")


def gateway_device(conf: BridgeConf) -> Device:
    """Who has the gateway's addresses: the bridge, or the device of the VLAN."""
    return Device(HOST, f"{conf.bridge}.{conf.vlan}" if conf.vlan else conf.bridge)


def gateway_plan(conf: BridgeConf, result: Result) -> tuple[Step, ...]:
    """Empty without `isGateway`, or without a known gateway."""
    wanted = gateways(result) if conf.is_gateway else ()
    if not wanted:
        return ()
    device = gateway_device(conf)
    failure = "failed to set bridge addr: "
    steps: list[Step] = []
    if conf.vlan:
        failure = "failed to set vlan interface for bridge with addr: "
        make = EnsureVlanDevice(device.name, conf.bridge, conf.vlan, only=not conf.preserve_default_vlan)
        steps.append(Step(make, "failed to create vlan interface: "))
    steps += [Step(EnsureAddress(device, cidr, conf.force_address), failure) for cidr in wanted]
    steps.append(Step(PinMac(device), failure))
    forwarding = {V4: "net/ipv4/ip_forward", V6: "net/ipv6/conf/all/forwarding"}
    if any(cidr.version == V6 for cidr in wanted):
        steps.append(Step(KeepLearnedRoutes(forwarding[V6]), "failed to keep the host's routers: ", fatal=False))
    for version in (V4, V6):
        if any(cidr.version == version for cidr in wanted):
            steps.append(Step(EnsureSysctl(HOST, forwarding[version], "1"), "failed to enable forwarding: "))
    return tuple(steps)


def layer_2_plan(conf: BridgeConf, container: Device) -> tuple[Step, ...]:
    if conf.disable_container_interface:
        return ()
    return (*_loopback(conf), Step(SetUp(container), f'failed to set "{container.name}" up: '))


def port_check_plan(conf: BridgeConf, host: Device) -> tuple[Step, ...]:
    if conf.disable_container_interface:
        return ()
    return (Step(AwaitPort(host, _PORT_PAUSES), "bridge port in error state: "),)
