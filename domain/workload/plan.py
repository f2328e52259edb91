"""How a Calico workload is connected on Linux, as a value: each step in its order, and what its failure is called.

The container has one /32 or /128 per address and reaches everything through a gateway that nobody owns: 169.254.1.1,
for which the host end answers ARP, or the host end's link-local address. That address follows from the host end's MAC,
which is the same for every container.

Invariant: pure. Nothing is asked of the kernel while planning, and the order of steps is part of the contract: the
host end stays down until duplicate address detection is off, and addresses come after the routes that need none.
"""

from __future__ import annotations

from domain.ipam.address import V4, V6, Address, Cidr
from domain.linux.link import BadMac, parse_mac
from domain.linux.steps import (
    CONTAINER,
    HOST,
    SCOPE_LINK,
    SCOPE_UNIVERSE,
    AddAddress,
    AddRoute,
    AwaitLinkLocal,
    AwaitUsable,
    CreatePair,
    Device,
    EnsureRoute,
    FindLink,
    HoldMac,
    KeepLearnedRoutes,
    RemoveLeftover,
    SetMac,
    SetUp,
    Step,
    WriteSysctl,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.workload.attachment import Attachment

HOST_MAC = "ee:ee:ee:ee:ee:ee"
GATEWAY_V4 = Address(V4, 0xA9FE0101)  # 169.254.1.1
HOST_TX_QUEUE_LENGTH = 0  # Calico quirk: its netlink library sends 0 for the peer when nothing is asked for
_HWADDR = "cni.projectcalico.org/hwAddr"


def plan_for(attachment: Attachment) -> tuple[Step, ...]:
    """All steps, in order. BadMac, with the text for the user, for a MAC that cannot be read."""
    host, container = Device(HOST, attachment.host_name), Device(CONTAINER, attachment.ifname)
    versions = {cidr.version for cidr in attachment.addresses}
    return (
        *_create(attachment, host, container),
        *_prepare_host(host, container, versions),
        *_prepare_container(attachment, container),
        *(_route_v4(attachment, container) if V4 in versions else ()),
        *(_route_v6(attachment, host, container) if V6 in versions else ()),
        *_add_addresses(attachment, container),
        *_forward(attachment, versions),
        *(_route_host(attachment, host) if attachment.host_routes else ()),
        # By now it is over, but for a kernel whose workers are late.
        *([Step(AwaitUsable(container, limit=0.5, pause=0.002), fatal=False)] if V6 in versions else ()),
    )


def _create(attachment: Attachment, host: Device, container: Device) -> Iterator[Step]:
    leftover = RemoveLeftover(host, container, attachment.replace_host_link)
    yield Step(leftover, f"failed to delete old hostVeth {host.name}: ")
    netkit = attachment.device_type == "netkit"
    yield Step(
        CreatePair(
            host=host,
            container=container,
            kind="netkit" if netkit else "veth",
            fallback="veth" if netkit else "",
            mtu=attachment.mtu,
            queues=max(1, attachment.num_queues),
            mac=HOST_MAC,
            tx_queue_length=HOST_TX_QUEUE_LENGTH,
        )
    )
    yield _find(host)
    yield Step(
        HoldMac(host, HOST_MAC, limit=5.0, pause=0.1),
        f'timed out waiting for host-side interface "{host.name}" to accept MAC {HOST_MAC}',
    )


def _find(device: Device) -> Step:
    return Step(FindLink(device), f'failed to lookup "{device.name}": ')


def _set_up(device: Device) -> Step:
    return Step(SetUp(device), f'failed to set "{device.name}" up: ')


def _prepare_host(host: Device, container: Device, versions: set[int]) -> Iterator[Step]:
    """Duplicate address detection must be off before a link is up: a tentative address cannot be used."""
    name = host.name
    if V6 in versions:
        path = f"net/ipv6/conf/{container.name}/accept_dad"
        yield Step(WriteSysctl(CONTAINER, path, "0"), f"failed to disable DAD for {container.name}: ")
    if V4 in versions:
        yield _host_sysctl(name, f"ipv4/conf/{name}/route_localnet", "1")
        yield _host_sysctl(name, f"ipv4/neigh/{name}/proxy_delay", "0", fatal=False)
        yield _host_sysctl(name, f"ipv4/conf/{name}/proxy_arp", "1")
        yield _host_sysctl(name, f"ipv4/conf/{name}/forwarding", "1")
    if V6 in versions:
        yield Step(KeepLearnedRoutes(), "failed to keep the host's routers: ", fatal=False)
        for setting, value in (("accept_dad", "0"), ("disable_ipv6", "0"), ("proxy_ndp", "1"), ("forwarding", "1")):
            yield _host_sysctl(name, f"ipv6/conf/{name}/{setting}", value)
        # A host whose default is "none" or "stable secret" would leave us without the address pods are routed to.
        yield _host_sysctl(name, f"ipv6/conf/{name}/addr_gen_mode", "0", fatal=False)
    yield _host_sysctl(name, f"ipv6/conf/{name}/accept_ra", "0", fatal=False)
    yield _set_up(host)


def _host_sysctl(name: str, path: str, value: str, *, fatal: bool = True) -> Step:
    key = "net." + path.replace("/", ".")
    text = f"error configuring sysctls for interface: {name}, error: failed to set {key}={value}: "
    return Step(WriteSysctl(HOST, f"net/{path}", value), text, fatal)


def _prepare_container(attachment: Attachment, container: Device) -> Iterator[Step]:
    yield _find(container)
    yield _set_up(container)
    if attachment.mac is None:
        return
    try:
        mac = parse_mac(attachment.mac)
    except BadMac as error:
        raise BadMac(f"failed to parse MAC address {attachment.mac} provided via {_HWADDR}: {error}") from None
    text = f"failed to set container-side interface MAC to {attachment.mac} as requested via {_HWADDR}: "
    yield Step(SetMac(container, mac), text)


def _route_v4(attachment: Attachment, container: Device) -> Iterator[Step]:
    on_link = AddRoute(container, GATEWAY_V4.host_cidr, None, SCOPE_LINK)
    yield Step(on_link, "failed to add route inside the container: ")
    for route in _routes(attachment, V4):
        text = f"failed to add IPv4 route for {route} via {GATEWAY_V4}: "
        yield Step(AddRoute(container, route, GATEWAY_V4, SCOPE_UNIVERSE), text)


def _route_v6(attachment: Attachment, host: Device, container: Device) -> Iterator[Step]:
    for scope in ("all", "default", "lo"):
        text = f"failed to set net.ipv6.conf.{scope}.disable_ipv6=0: "
        yield Step(WriteSysctl(CONTAINER, f"net/ipv6/conf/{scope}/disable_ipv6", "0"), text)
    # As long in all as upstream's ten looks 50 ms apart, but most addresses are there within a few milliseconds.
    yield Step(AwaitLinkLocal(host, HOST_MAC, limit=0.5, pause=0.002, settle=0.05))
    for route in _routes(attachment, V6):
        text = f"failed to add IPv6 route for {route} via {{gateway}}: "
        yield Step(AddRoute(container, route, host, SCOPE_UNIVERSE), text)


def _routes(attachment: Attachment, version: int) -> list[Cidr]:
    return [route.network for route in attachment.routes if route.version == version]


def _add_addresses(attachment: Attachment, container: Device) -> Iterator[Step]:
    """It is alone on its link, whatever prefix IPAM gave."""
    for cidr in attachment.addresses:
        yield Step(AddAddress(container, cidr.address.host_cidr), f'failed to add IP addr to "{container.name}": ')


def _forward(attachment: Attachment, versions: set[int]) -> Iterator[Step]:
    value = "1" if attachment.allow_ip_forwarding else "0"
    text = "error configuring sysctls for the container netns, error: "
    if V4 in versions:
        yield Step(WriteSysctl(CONTAINER, "net/ipv4/ip_forward", value), text)
    if V6 in versions:
        yield Step(WriteSysctl(CONTAINER, "net/ipv6/conf/all/forwarding", value), text)


def _route_host(attachment: Attachment, host: Device) -> Iterator[Step]:
    yield _find(host)
    text = f"error adding host side routes for interface: {host.name}, error: "
    for cidr in attachment.addresses:
        yield Step(EnsureRoute(host, cidr.address.host_cidr, SCOPE_LINK), text)
