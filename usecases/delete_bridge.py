"""DEL of the bridge plugin: take back what an ADD made for one interface; the bridge and its addresses stay.

The interface goes before its addresses are given back, so that nobody gets one that is still in use. Without a
namespace, its record, its alias and `prevResult` lead to what is left on the host.

Invariant: every part is tried whatever fails before; the first failure is the answer, and the record stays for the
repeated DEL. DEL of what never was succeeds.
"""

from __future__ import annotations

from domain.bridge.conf import NFTABLES
from domain.bridge.marks import alias, host_name
from domain.cni.errors import CniError
from domain.cni.result import Result, parse_result
from domain.linux.steps import CONTAINER, HOST, Device
from ports.bridge import NamespaceGone
from ports.errors import PortError
from ports.ipam_plugin import IpamCall
from usecases.bridge.release_bridge import release_addresses
from usecases.calls.safeguards import attempt, lock_container, refuse_host_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.attachment import BridgeAttachment
    from domain.ipam.address import Cidr
    from ports.bridge import Sides
    from ports.runtime import BridgeRuntime
    from usecases.calls.call import BridgeCall


def delete_bridge(call: BridgeCall, runtime: BridgeRuntime) -> None:
    refuse_host_namespace(call, runtime)
    lock_container(call, runtime)
    deletion = _Deletion(call, runtime)
    attempts = (
        attempt(runtime, "remove the container's interface", deletion.leave_namespace),
        attempt(runtime, "remove the host's device", deletion.leave_host),
        attempt(runtime, "release the addresses", deletion.release),
        attempt(runtime, "stop masquerading", deletion.stop_masquerade),
    )
    for failure in attempts:
        if failure is not None:
            raise failure
    runtime.attachments.forget(call.netconf.name, call.owner.attachment)


def previous(call: BridgeCall) -> Result:
    """What `prevResult` says; nothing if it cannot be read."""
    try:
        return (
            parse_result(call.netconf.prev_result, call.netconf.cni_version) if call.netconf.prev_result else Result()
        )
    except CniError:
        return Result()


class _Deletion:
    def __init__(self, call: BridgeCall, runtime: BridgeRuntime) -> None:
        self._call, self._runtime = call, runtime
        self._owner = call.owner
        self._alias = alias(self._owner.network, self._owner.attachment)
        self._record: BridgeAttachment | None = runtime.attachments.load(self._owner.network, self._owner.attachment)
        self._previous = previous(call)
        self._seen: tuple[Cidr, ...] = ()

    def leave_namespace(self) -> None:
        """The addresses are looked at before they go."""
        if not self._call.request.netns:
            return
        container = Device(CONTAINER, self._call.request.ifname)
        try:
            with self._runtime.bridges.enter(self._call.request.netns, self._call.deadline) as sides:
                self._seen = sides.addresses(container)
                sides.remove(container)
        except NamespaceGone as error:
            self._runtime.log.debug("The namespace is gone already", error=error)

    def leave_host(self) -> None:
        """Usually it has gone with its other end. Its alias says that it is this attachment's."""
        with self._runtime.bridges.enter("", self._call.deadline) as sides:
            for device in self._candidates(sides):
                link = sides.link(device)
                if link is not None and link.alias == self._alias:
                    sides.remove(device)

    def _candidates(self, sides: Sides) -> list[Device]:
        """Without a record all devices have to be looked at."""
        if self._record is not None:
            return [Device(HOST, self._record.host_name)]
        names = [host_name(self._owner.attachment)]
        names += [interface.name for interface in self._previous.interfaces if interface.name and not interface.sandbox]
        names += [link.name for link in sides.host_links() if link.alias == self._alias]
        return [Device(HOST, name) for name in dict.fromkeys(names)]

    def release(self) -> None:
        """Rules that hold a device to its MAC go first. They are harmless if they stay: a failure is only logged."""
        if self._call.netconf.mac_spoof_check or (self._record is not None and self._record.guarded):
            try:
                self._runtime.firewall.stop_guarding(self._owner, self._call.deadline)
            except PortError as error:
                self._runtime.log.warning("Cannot remove the MAC spoof check", error=error)
        call = IpamCall(self._call.request, self._call.netconf, self._call.netconf_text)
        release_addresses(call, self._record, self._runtime, self._call.deadline)

    def stop_masquerade(self) -> None:
        """The record says which rules there are; without one they are looked for.

        iptables' do not tell the interfaces of a container apart, so that without an address they stay while another
        interface of it is known.
        """
        record = self._record
        if record is not None and not record.masquerade and not self._call.netconf.masquerade:
            return
        backend = record.masquerade if record is not None else ""
        recorded = record.addresses if record is not None else ()
        addresses = (*recorded, *[ip.address for ip in self._previous.ips], *self._seen)
        if not addresses and self._has_other_interfaces():
            backend = NFTABLES
        self._runtime.firewall.stop_masquerade(
            backend, self._owner, tuple(dict.fromkeys(addresses)), self._call.deadline
        )

    def _has_other_interfaces(self) -> bool:
        """Or may have, for all we know."""
        own = self._owner.attachment
        try:
            known = [attachment.id for attachment in self._runtime.attachments.all(self._owner.network)]
        except PortError as error:
            self._runtime.log.warning("Cannot tell whether the container has other interfaces", error=error)
            return True
        return any(known_id.container_id == own.container_id and known_id != own for known_id in known)
