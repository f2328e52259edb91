"""GC of the bridge plugin: remove what attachments of this network have left that are not valid any more.

An attachment is known by its record, its device's alias, or the comment of its packet filter rules. Its addresses are
given back by a DEL of the IPAM plugin, which works with those that have no GC, too.

Invariant: what belongs to another network or to a valid attachment stays. Every part is tried, and the failures are
told together. Without a list of valid attachments GC does nothing.
"""

from __future__ import annotations

from domain.bridge.conf import AttachmentId
from domain.bridge.marks import attachment_of
from domain.cni.errors import INTERNAL, CniError
from domain.json_text import dumps, parse
from domain.linux.steps import HOST, Device
from ports.errors import PortError, Refused
from ports.firewall import RuleOwner
from ports.ipam_plugin import IpamCall
from usecases.bridge.release_bridge import release_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.bridge.attachment import BridgeAttachment
    from ports.runtime import BridgeRuntime
    from usecases.calls.call import BridgeCall


def collect_bridge(call: BridgeCall, runtime: BridgeRuntime) -> None:
    """Refused with all that went wrong."""
    if call.netconf.valid_attachments is None:
        runtime.log.warning("GC without cni.dev/valid-attachments: nothing is done")
        return
    _GarbageCollection(call, runtime, frozenset(call.netconf.valid_attachments)).run()


class _GarbageCollection:
    def __init__(self, call: BridgeCall, runtime: BridgeRuntime, valid: frozenset[AttachmentId]) -> None:
        self._call, self._runtime, self._valid = call, runtime, valid
        self._network = call.netconf.name
        self._failures: list[str] = []

    def run(self) -> None:
        for attachment in self._runtime.attachments.all(self._network):
            if attachment.id not in self._valid:
                self._attempt(lambda stale=attachment: self._collect(stale))  # type: ignore[misc]  # its own each time
        self._attempt(self._collect_devices)
        self._attempt(
            lambda: self._runtime.firewall.collect_masquerade(self._network, self._valid, self._call.deadline)
        )
        if self._call.netconf.layer_3:
            self._attempt(lambda: self._runtime.ipam_plugin.collect(self._ipam_call(None), self._call.deadline))
        if self._failures:
            raise Refused("; ".join(self._failures), INTERNAL)

    def _attempt(self, part: Callable[[], None]) -> None:
        try:
            part()
        except (PortError, CniError) as error:
            self._runtime.log.error("GC could not do all", error=error)
            self._failures.append(str(error))

    def _collect(self, stale: BridgeAttachment) -> None:
        """The record goes last, so that a failure is found again by the next GC."""
        owner = RuleOwner(self._network, stale.id)
        deadline = self._call.deadline
        self._remove_device(stale)
        if stale.guarded:
            self._runtime.firewall.stop_guarding(owner, deadline)
        if stale.masquerade:
            self._runtime.firewall.stop_masquerade(stale.masquerade, owner, stale.addresses, deadline)
        if stale.ipam:
            release_addresses(self._ipam_call(stale), stale, self._runtime, deadline)
        self._runtime.attachments.forget(self._network, stale.id)
        self._runtime.log.info("Collected", container=stale.id.container_id, interface=stale.id.ifname)

    def _remove_device(self, stale: BridgeAttachment) -> None:
        """If it is still this attachment's: names and indexes are used again."""
        with self._runtime.bridges.enter("", self._call.deadline) as sides:
            device = Device(HOST, stale.host_name)
            link = sides.link(device)
            if link is not None and attachment_of(self._network, link.alias) == stale.id:
                sides.remove(device)

    def _collect_devices(self) -> None:
        """Those of attachments without a record."""
        with self._runtime.bridges.enter("", self._call.deadline) as sides:
            for link in sides.host_links():
                owner = attachment_of(self._network, link.alias)
                if owner is not None and owner not in self._valid:
                    sides.remove(Device(HOST, link.name))

    def _ipam_call(self, stale: BridgeAttachment | None) -> IpamCall:
        """GC's own request, or that of a DEL which the runtime has never sent: in the version of the ADD, since a
        plugin need not know GC's.
        """
        request, conf, text = self._call.request, self._call.netconf, self._call.netconf_text
        if stale is not None:
            request = request.replace(container_id=stale.id.container_id, ifname=stale.id.ifname, netns="", args="")
            conf = conf.replace(cni_version=stale.version)
            text = _with_version(text, stale.version)
        return IpamCall(request, conf, text)


def _with_version(netconf_text: str, version: str) -> str:
    document = parse(netconf_text)
    assert isinstance(document, dict)  # noqa: S101 - the call has been read from it
    return dumps({**document, "cniVersion": version})
