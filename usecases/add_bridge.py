"""ADD of the bridge plugin: connect a container to a bridge of this host.

The bridge, a pair of devices with one end in it, the addresses that IPAM gives, the host as gateway, masquerading, and
a record of it all. Every effect but the bridge itself and its addresses, which others share, is registered for undo.

Invariant: what is taken back is what this call made, and no more.
"""

from __future__ import annotations

from domain.bridge.addressing import complete
from domain.bridge.attachment import BridgeAttachment, ipam_section
from domain.bridge.conf import NAMED_AFTER_CONTAINER, refuse_contradictions
from domain.bridge.marks import alias, host_name
from domain.bridge.plan import (
    bridge_plan,
    container_plan,
    gateway_device,
    gateway_plan,
    layer_2_plan,
    pair_plan,
    port_check_plan,
    port_plan,
)
from domain.cni.errors import INTERNAL, CniError
from domain.cni.result import Dns, Result, ResultInterface
from domain.linux.link import is_device_mac, parse_mac
from domain.linux.steps import CONTAINER, HOST, Device
from ports.errors import Missing, Refused
from ports.ipam_plugin import IpamCall
from usecases.calls.effects import ask_ipam
from usecases.calls.safeguards import lock_container, refuse_host_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.linux.link import Link
    from ports.bridge import Sides
    from ports.clock import Deadline
    from ports.runtime import BridgeRuntime
    from usecases.calls.call import BridgeCall
    from usecases.calls.safeguards import Undo


def add_bridge(call: BridgeCall, runtime: BridgeRuntime, undo: Undo) -> Result:
    """The answer to print, in internal form."""
    refuse_contradictions(call.netconf)
    mac = _wanted_mac(call)
    refuse_host_namespace(call, runtime)
    if call.netconf.prev_result:
        runtime.log.warning("Ignoring prevResult: this plugin makes an interface of its own")
    lock_container(call, runtime)
    try:
        sides = runtime.bridges.enter(call.request.netns, call.deadline)
    except Missing as error:
        raise Refused(str(error)) from error
    with sides:
        return _Connection(call, runtime, undo, sides).make(mac)


def _wanted_mac(call: BridgeCall) -> str:
    """The runtime's, the configuration's, or that of CNI_ARGS; "" leaves it to the kernel."""
    wanted = call.netconf.mac or call.args.mac
    if not wanted:
        return ""
    try:
        mac = parse_mac(wanted)
    except ValueError as error:
        raise CniError(INTERNAL, f"failed to make veth pair: {error}") from None
    if not is_device_mac(mac):
        raise CniError(INTERNAL, f"failed to make veth pair: address {wanted}: not that of one Ethernet device")
    return mac


class _Connection:
    """One interface being made."""

    def __init__(self, call: BridgeCall, runtime: BridgeRuntime, undo: Undo, sides: Sides) -> None:
        self._call, self._runtime, self._undo, self._sides = call, runtime, undo, sides
        self._conf = call.netconf
        self._owner = call.owner
        self._container = Device(CONTAINER, call.request.ifname)

    def make(self, mac: str) -> Result:
        self._sides.apply(bridge_plan(self._conf))
        host = self._make_port(mac)
        if self._conf.mac_spoof_check:
            self._guard(host)
        answer = Result()
        if self._conf.layer_3:
            answer = self._addresses()
            self._sides.apply(container_plan(self._conf, self._container, answer))
            self._sides.apply(gateway_plan(self._conf, answer))
            backend = self._masquerade(answer)
        else:
            backend = ""
            self._sides.apply(layer_2_plan(self._conf, self._container))
        self._sides.apply(port_check_plan(self._conf, host))
        self._record(host, answer, backend)
        return self._complete(host, answer)

    def _make_port(self, mac: str) -> Device:
        wanted = host_name(self._owner.attachment) if self._conf.host_naming == NAMED_AFTER_CONTAINER else ""
        if self._sides.link(self._container) is not None:
            what = f'container veth name ("{self._container.name}") peer provided ("{wanted}")'
            raise Refused(f"failed to make veth pair: {what} already exists")
        self._remove_leftover(Device(HOST, wanted))
        self._undo.register(f"make the device pair of {self._container.name}", self._remove_pair)
        (host,) = self._sides.apply(pair_plan(self._conf, self._container, wanted, mac))
        self._runtime.log.debug("Made a device pair", host=host.name)
        self._sides.apply(port_plan(self._conf, host, alias(self._owner.network, self._owner.attachment)))
        return host

    def _remove_leftover(self, device: Device) -> None:
        """What an earlier, broken off ADD for this interface has left behind has the name that this one wants."""
        present = self._sides.link(device) if device.name else None
        if present is not None and present.alias == alias(self._owner.network, self._owner.attachment):
            self._sides.remove(device)

    def _remove_pair(self, deadline: Deadline) -> None:
        """Over connections of its own: a signal may have interrupted a conversation on the others."""
        with self._runtime.bridges.enter(self._call.request.netns, deadline) as sides:
            sides.remove(self._container)

    def _guard(self, host: Device) -> None:
        self._undo.register(
            f"guard {host.name}", lambda deadline: self._runtime.firewall.stop_guarding(self._owner, deadline)
        )
        made = self._link(self._container)
        self._runtime.firewall.guard(self._owner, host.name, made.mac, self._call.deadline)

    def _addresses(self) -> Result:
        """From the IPAM plugin, with what the result has to say beyond it."""
        ipam_call = IpamCall(self._call.request, self._conf, self._call.netconf_text)
        answer = ask_ipam(self._runtime, ipam_call, self._call.deadline, self._undo)
        if not answer.ips:
            raise Refused("IPAM plugin returned missing IP config")
        return complete(answer, is_gateway=self._conf.is_gateway, is_default_gateway=self._conf.is_default_gateway)

    def _masquerade(self, answer: Result) -> str:
        """The back end that has the rules, "" without any."""
        if not self._conf.masquerade:
            return ""
        firewall, deadline = self._runtime.firewall, self._call.deadline
        backend = firewall.choose_backend(self._conf.masquerade_backend, deadline)
        addresses = tuple([ip.address for ip in answer.ips])
        self._undo.register(
            "masquerade", lambda later: firewall.stop_masquerade(backend, self._owner, addresses, later)
        )
        firewall.masquerade(backend, self._owner, addresses, deadline)
        return backend

    def _record(self, host: Device, answer: Result, backend: str) -> None:
        """Before the answer goes out, so that whatever a runtime knows of can be cleaned up by GC."""
        attachments, owner = self._runtime.attachments, self._owner
        self._undo.register("record the attachment", lambda _: attachments.forget(owner.network, owner.attachment))
        attachments.save(
            owner.network,
            BridgeAttachment(
                id=owner.attachment,
                bridge=self._conf.bridge,
                host_name=host.name,
                host_index=self._link(host).index,
                mac=self._link(self._container).mac,
                netns=self._call.request.netns,
                addresses=tuple([ip.address for ip in answer.ips]),
                masquerade=backend,
                guarded=self._conf.mac_spoof_check,
                ipam=self._conf.ipam.type,
                version=self._conf.cni_version,
                ipam_section=ipam_section(self._call.netconf_text) if self._conf.layer_3 else "",
            ),
        )

    def _complete(self, host: Device, answer: Result) -> Result:
        """With the devices as they are now: a bridge's MAC changes with its first port."""
        bridge = self._link(Device(HOST, self._conf.bridge))
        container = self._link(self._container)
        interfaces = [
            _shown(bridge),
            _shown(self._link(host)),
            _shown(container).replace(sandbox=self._call.request.netns),
        ]
        if self._conf.vlan and gateway_plan(self._conf, answer):
            interfaces.append(_shown(self._link(gateway_device(self._conf))))
        dns = answer.dns if self._conf.dns == Dns() else self._conf.dns
        return answer.replace(interfaces=tuple(interfaces), dns=dns)

    def _link(self, device: Device) -> Link:
        link = self._sides.link(device)
        if link is None:
            raise Refused(f'failed to lookup "{device.name}": Link not found')
        return link


def _shown(link: Link) -> ResultInterface:
    return ResultInterface(link.name, link.mac, link.mtu)
