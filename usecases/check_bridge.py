"""CHECK of the bridge plugin: is the attachment as ADD left it?

First IPAM is asked, then the bridge, the container's interface, the host's device and its port, addresses, routes and
packet filter rules are compared with `prevResult` and the configuration. Without a `prevResult` (my-custom-cni allows
that) only what the configuration says can be compared.

Invariant: nothing is changed.
"""

from __future__ import annotations

from domain.bridge.addressing import MAIN_TABLE, gateways, is_default
from domain.bridge.marks import alias
from domain.bridge.plan import gateway_device
from domain.cni.result import parse_result
from domain.linux.link import PortVlan
from domain.linux.steps import CONTAINER, HOST, Device
from ports.errors import Missing, Refused
from ports.ipam_plugin import IpamCall
from usecases.calls.safeguards import refuse_host_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.result import Result, ResultInterface, ResultRoute
    from domain.linux.link import Link, Route
    from ports.bridge import Sides
    from ports.runtime import BridgeRuntime
    from usecases.calls.call import BridgeCall


def check_bridge(call: BridgeCall, runtime: BridgeRuntime) -> None:
    """Refused, with the reference plugin's words where it checks the same."""
    refuse_host_namespace(call, runtime)
    try:
        sides = runtime.bridges.enter(call.request.netns, call.deadline)
    except Missing as error:
        raise Refused(str(error)) from error
    with sides:
        if call.netconf.layer_3:
            runtime.ipam_plugin.check(IpamCall(call.request, call.netconf, call.netconf_text), call.deadline)
        check = _Check(call, runtime, sides, _previous(call))
        bridge = check.bridge()
        container = check.container_end()
        check.port(bridge, check.host_end(bridge, container))
        check.addresses(container)
        check.routes(container)
        check.gateways()
        check.rules()


def _previous(call: BridgeCall) -> Result | None:
    if not call.netconf.prev_result:
        if call.netconf.requires_prev_result:
            raise Refused("Required prevResult missing")
        return None
    return parse_result(call.netconf.prev_result, call.netconf.cni_version)


class _Check:
    """`previous` is None if nothing is known of what ADD answered."""

    def __init__(self, call: BridgeCall, runtime: BridgeRuntime, sides: Sides, previous: Result | None) -> None:
        self._call, self._runtime, self._sides, self._previous = call, runtime, sides, previous
        self._conf = call.netconf
        self._owner = call.owner
        self._ifname, self._netns = call.request.ifname, call.request.netns

    def _claimed(self, name: str, sandbox: str) -> ResultInterface | None:
        """What ADD said of an interface."""
        told = self._previous.interfaces if self._previous is not None else ()
        return next((interface for interface in told if interface.name == name and interface.sandbox == sandbox), None)

    def bridge(self) -> Link:
        name = self._conf.bridge
        claim = self._claimed(name, "")
        if self._previous is not None and claim is None:
            raise Refused(f"CNI created bridge {name} in host namespace was not found")
        link = self._sides.link(Device(HOST, name))
        if link is None:
            raise Refused(f"Interface name {name} not found")
        if link.kind != "bridge":
            raise Refused(f"Interface {name} does not have link type of bridge")
        if claim is not None and claim.mac and claim.mac != link.mac and self._conf.is_gateway:
            raise Refused(f"Bridge interface {name} Mac doesn't match: {claim.mac}")
        if link.promiscuous != self._conf.promiscuous:
            wanted, is_now = str(self._conf.promiscuous).lower(), str(link.promiscuous).lower()
            raise Refused(
                f"Bridge interface {name} configured Promisc Mode {wanted} doesn't match current state: {is_now} "
            )
        return self._up(link)

    def container_end(self) -> Link:
        claim = self._claimed(self._ifname, self._netns)
        if self._previous is not None and claim is None:
            other = next(
                (
                    interface
                    for interface in self._previous.interfaces
                    if interface.name == self._ifname and interface.sandbox
                ),
                None,
            )
            if other is not None:
                raise Refused(f"Sandbox in prevResult {other.sandbox} doesn't match configured netns: {self._netns}")
            raise Refused(f"CNI created interface in container {self._ifname} not found")
        link = self._sides.link(Device(CONTAINER, self._ifname))
        if link is None:
            raise Refused(f'container interface "{self._ifname}" not found in netns "{self._netns}"')
        if link.kind != "veth":
            raise Refused(f"Error: Container interface {self._ifname} not of type veth")
        if claim is not None and claim.mac and claim.mac != link.mac:
            raise Refused(f"Interface {self._ifname} Mac {claim.mac} doesn't match container Mac: {link.mac}")
        return link if self._conf.disable_container_interface else self._up(link)

    def host_end(self, bridge: Link, container: Link) -> Link:
        """The other end, among those that ADD told of or, without that, by its alias."""
        candidates = [link for name in self._host_names() if (link := self._sides.link(Device(HOST, name)))]
        for link in candidates:
            if link.peer_index != container.index or link.index != container.peer_index:
                continue
            claim = self._claimed(link.name, "")
            if claim is not None and claim.mac and claim.mac != link.mac:
                raise Refused(f"Interface {link.name} Mac doesn't match: {claim.mac} not found")
            if link.master != bridge.index:
                raise Refused(f'host veth "{link.name}" is not attached to bridge "{bridge.name}"')
            return self._up(link)
        raise Refused(f"CNI veth created for bridge {bridge.name} was not found")

    def _host_names(self) -> list[str]:
        if self._previous is not None:
            return [
                interface.name for interface in self._previous.interfaces if interface.name and not interface.sandbox
            ]
        mark = alias(self._owner.network, self._owner.attachment)
        return [link.name for link in self._sides.host_links() if link.alias == mark]

    def _up(self, link: Link) -> Link:
        if not link.up:
            raise Refused(f'interface "{link.name}" is not up')
        return link

    def port(self, bridge: Link, host: Link) -> None:
        conf = self._conf
        for what, wanted, is_now in (
            ("hairpin mode", conf.hairpin, host.hairpin),
            ("isolation", conf.port_isolation, host.isolated),
        ):
            if wanted != is_now:
                raise Refused(f"{what} of {host.name} at bridge {bridge.name} is not {str(wanted).lower()}")
        members = {vlan.number for vlan in host.vlans}
        wanted_vlans = {*conf.vlans, *([conf.vlan] if conf.vlan else [])}
        if missing := wanted_vlans - members:
            raise Refused(f"{host.name} is not a member of VLAN {min(missing)} at bridge {bridge.name}")
        if conf.vlan and PortVlan(conf.vlan, pvid=True, untagged=True) not in host.vlans:
            raise Refused(f"VLAN {conf.vlan} is not the own one of {host.name} at bridge {bridge.name}")

    def addresses(self, container: Link) -> None:
        present = self._sides.addresses(Device(CONTAINER, container.name))
        if self._previous is not None:
            for ip in self._previous.ips:
                if ip.address not in present:
                    raise Refused(f"Failed to match addr {ip.address} on interface {container.name}")
                if ip.address.network not in self._destinations(container, ip.address.version):
                    raise Refused(f"Failed to find Gateway {ip.gateway} for interface {container.name}")
        elif self._conf.layer_3 and not present:
            raise Refused(f'no IP address found for container interface "{container.name}"')

    def _destinations(self, container: Link, version: int) -> list[object]:
        return [route.destination for route in self._sides.routes(version) if route.link == container.index]

    def routes(self, container: Link) -> None:
        """Default routes by their destination alone; others also by gateway and table, where ADD named them."""
        for route in self._previous.routes if self._previous is not None else ():
            present = self._sides.routes(route.dst.version)
            if not any(_is(route, route_there) for route_there in present):
                raise Refused(f"Expected Route {route.dst} not found in routing table")
        if self._conf.is_default_gateway:
            self._require_default_route(container)

    def _require_default_route(self, container: Link) -> None:
        """In each family that the container has an address of."""
        versions = {cidr.version for cidr in self._sides.addresses(Device(CONTAINER, container.name))}
        for version in sorted(versions):
            if not any(
                is_default(route.destination) and route.link == container.index for route in self._sides.routes(version)
            ):
                raise Refused(f'no default route found for container interface "{container.name}"')

    def gateways(self) -> None:
        """The host still has the addresses that containers send to."""
        if not self._conf.is_gateway or self._previous is None:
            return
        device = gateway_device(self._conf)
        present = self._sides.addresses(device, link_local=True)
        for wanted in gateways(self._previous):
            if wanted not in present:
                raise Refused(f'gateway address {wanted} is not on "{device.name}"')

    def rules(self) -> None:
        conf, firewall, deadline = self._conf, self._runtime.firewall, self._call.deadline
        if conf.mac_spoof_check and not firewall.is_guarded(self._owner, deadline):
            raise Refused(f"the MAC spoof check of interface {self._ifname} is missing")
        if not conf.masquerade or self._previous is None:
            return
        record = self._runtime.attachments.load(self._owner.network, self._owner.attachment)
        backend = record.masquerade if record is not None else ""
        backend = backend or firewall.choose_backend(conf.masquerade_backend, deadline)
        addresses = tuple([ip.address for ip in self._previous.ips])
        if missing := firewall.missing_masquerade(backend, self._owner, addresses, deadline):
            raise Refused(f"traffic from {missing[0].address} is not masqueraded")


def _is(wanted: ResultRoute, present: Route) -> bool:
    if present.destination != wanted.dst.network or present.table != (wanted.table or MAIN_TABLE):
        return False
    if is_default(wanted.dst) or wanted.gateway is None:
        return True
    return present.gateway == wanted.gateway and wanted.priority in {0, present.priority}
